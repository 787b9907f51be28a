//! Fetch (key 1), versions 4 to 18. KIP-74 (max bytes), KIP-227 (sessions: declined), KIP-320 (leader epochs), KIP-516 (topic ids from
//! 13 on). Replicas do not fetch here: their traffic has a listener of its own.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_lite::future;
use kafka_protocol::ResponseError;
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchRequest};
use kafka_protocol::protocol::StrBytes;

use crate::api::admin_context::AdminContext;
use crate::api::context::ApiContext;
use crate::api::error_code;
use crate::api::owners::ByOwner;
use crate::api::reply::{PendingReply, Reply, RequestId};
use crate::io::executor;
use crate::metrics::{Gauge, Stage};
use crate::model::{LeaderEpoch, Offset, PartitionIndex, TopicId, TopicPartition};
use crate::protocol::fetch_response::{
    self, FetchResponse, FetchedPartition, FetchedTopic, Segment,
};
use crate::protocol::response;
use crate::shard::command::{Command, ReadItem, ReadReply, ReadRequest};

/// From this version on topics are named by id.
const TOPIC_IDS_FROM: i16 = 13;

/// A fetch as it is worked on: the answers that are known, and what is asked of the owners.
struct Fetch {
    context: ApiContext,
    id: RequestId,
    topics: Vec<TopicSlots>,
    /// By place in the request.
    asked: Vec<ReadItem>,
    min_bytes: usize,
    max_bytes: usize,
    max_wait: Duration,
}

struct TopicSlots {
    name: StrBytes,
    id: TopicId,
    slots: Vec<Slot>,
}

struct Slot {
    index: PartitionIndex,
    /// `None`: the next answer of those asked.
    refused: Option<ResponseError>,
}

pub fn dispatch(context: &ApiContext, id: RequestId, request: FetchRequest) -> PendingReply {
    let is_replica = request.replica_id.0 >= 0 || request.replica_state.replica_id.0 >= 0;
    if is_replica {
        return ready(refuse_each(id, request, ResponseError::InvalidRequest));
    }
    // A client that was given no session may ask for everything anew (epoch 0 or -1), not go on with one.
    if request.session_id != 0 {
        return ready(refuse(id, ResponseError::FetchSessionIdNotFound));
    }
    if request.session_epoch > 0 {
        return ready(refuse(id, ResponseError::InvalidFetchSessionEpoch));
    }
    let fetch = Fetch::new(context.clone(), id, request);
    let first_round = fetch.ask();
    Box::pin(fetch.complete(first_round))
}

fn ready(reply: Result<Reply, response::ResponseError>) -> PendingReply {
    Box::pin(future::ready(reply))
}

type Round = Pin<Box<dyn Future<Output = Vec<Option<ReadReply>>>>>;

impl Fetch {
    fn new(context: ApiContext, id: RequestId, request: FetchRequest) -> Self {
        let mut asked = Vec::new();
        let topics = request.topics.into_iter().map(|topic| {
            let by_id = id.version >= TOPIC_IDS_FROM;
            let found = match by_id {
                true => context
                    .topic_by_id(TopicId(topic.topic_id))
                    .ok_or(ResponseError::UnknownTopicId),
                false => context
                    .topic(&topic.topic)
                    .ok_or(ResponseError::UnknownTopicOrPartition),
            };
            let slots = topic.partitions.iter().map(|partition| {
                let index = PartitionIndex(partition.partition);
                let refused = match &found {
                    Err(error) => Some(*error),
                    Ok(topic) if topic.partition(index).is_none() => {
                        Some(ResponseError::UnknownTopicOrPartition)
                    }
                    Ok(topic) => {
                        asked.push(read_item(
                            TopicPartition {
                                topic: topic.id,
                                partition: index,
                            },
                            partition,
                        ));
                        None
                    }
                };
                Slot { index, refused }
            });
            TopicSlots {
                slots: slots.collect(),
                name: topic.topic.0,
                id: TopicId(topic.topic_id),
            }
        });
        let topics = topics.collect();
        let limit = context.config().fetch_max_bytes;
        Self {
            topics,
            asked,
            min_bytes: usize::try_from(request.min_bytes).unwrap_or(0),
            max_bytes: usize::try_from(request.max_bytes).unwrap_or(0).min(limit),
            max_wait: Duration::from_millis(u64::try_from(request.max_wait_ms).unwrap_or(0)),
            context,
            id,
        }
    }

    /// Reads what there is now, of every partition.
    fn ask(&self) -> Round {
        let shard = &self.context.shard;
        let mut by_owner = ByOwner::default();
        for (index, item) in self.asked.iter().enumerate() {
            by_owner.push(shard.router(), item.partition, index, *item);
        }
        let max_bytes = self.max_bytes / by_owner.len().max(1);
        let sent_at = shard.clock().monotonic();
        let asked = by_owner.ask(|owner, items| {
            shard.call(owner, |reply| {
                Command::Read(
                    ReadRequest {
                        items,
                        max_bytes,
                        sent_at,
                    },
                    reply,
                )
            })
        });
        let mut answers: Vec<Option<ReadReply>> = self.asked.iter().map(|_| None).collect();
        Box::pin(async move {
            asked.collect_into(&mut answers).await;
            answers
        })
    }

    async fn complete(self, first_round: Round) -> Result<Reply, response::ResponseError> {
        let clock = self.context.shard.clock().clone();
        let deadline = clock.monotonic() + self.max_wait;
        let mut answers = first_round.await;
        while !self.is_enough(&answers) && !self.context.shard.is_stopping() {
            let left = deadline.since(clock.monotonic());
            if left.is_zero() {
                break;
            }
            let metrics = self.context.shard.metrics();
            metrics.raise_gauge(Gauge::FetchesWaiting, 1);
            let waiting_since = clock.monotonic();
            self.wait_for_more(&answers, left).await;
            metrics.lower_gauge(Gauge::FetchesWaiting, 1);
            let waited_ns = clock.monotonic().since(waiting_since).as_nanos() as u64;
            metrics.record_stage(self.id.key as i16, Stage::Wait, waited_ns);
            answers = self.ask().await;
        }
        self.respond(answers)
    }

    /// Enough to answer: `min_bytes`, or anything that the client should learn at once.
    fn is_enough(&self, answers: &[Option<ReadReply>]) -> bool {
        let refused = self
            .topics
            .iter()
            .flat_map(|topic| &topic.slots)
            .any(|slot| slot.refused.is_some());
        let failed = answers.iter().flatten().any(Result::is_err);
        let bytes: usize = answers
            .iter()
            .flatten()
            .flatten()
            .map(|done| done.records_bytes)
            .sum();
        refused || failed || bytes >= self.min_bytes || self.asked.is_empty()
    }

    /// Completes when one of the partitions has got more than it gave, or after `left`.
    async fn wait_for_more(&self, answers: &[Option<ReadReply>], left: Duration) {
        let shard = &self.context.shard;
        let waiting = Arc::new(());
        let mut owners: HashMap<_, Vec<_>> = HashMap::new();
        for (item, answer) in self.asked.iter().zip(answers) {
            // What lies beyond the high watermark that was answered is news.
            let from = answer
                .as_ref()
                .and_then(|it| it.as_ref().ok())
                .map_or(item.offset, |done| done.high_watermark);
            let owner = shard.router().owner_of(item.partition);
            owners
                .entry(owner)
                .or_default()
                .push((item.partition, from.max(item.offset)));
        }
        let calls: Vec<_> = owners
            .into_iter()
            .map(|(owner, items)| {
                let flag = Arc::downgrade(&waiting);
                shard.call(owner, |reply| Command::AwaitData(items, flag, reply))
            })
            .collect();
        let first = first_of(calls);
        future::or(first, async { executor::sleep(left).await }).await;
    }

    fn respond(self, answers: Vec<Option<ReadReply>>) -> Result<Reply, response::ResponseError> {
        let Self { id, topics, .. } = self;
        let mut answers = answers.into_iter();
        let mut codes = Vec::new();
        let topics = topics.into_iter().map(|topic| {
            let partitions = topic.slots.into_iter().map(|slot| {
                let partition = match slot.refused {
                    Some(error) => FetchedPartition::error(slot.index, error.code()),
                    None => fetched(
                        slot.index,
                        answers
                            .next()
                            .flatten()
                            .expect("every asked partition was answered"),
                    ),
                };
                codes.push(partition.error_code);
                partition
            });
            FetchedTopic {
                partitions: partitions.collect(),
                name: topic.name,
                id: topic.id,
            }
        });
        let response = FetchResponse {
            throttle_time_ms: 0,
            error_code: 0,
            session_id: 0,
            topics: topics.collect(),
            node_endpoints: Vec::new(),
        };
        Ok(encode(id, response)?.with_error_codes(codes))
    }
}

fn read_item(partition: TopicPartition, asked: &FetchPartition) -> ReadItem {
    ReadItem {
        partition,
        offset: Offset(asked.fetch_offset),
        max_bytes: usize::try_from(asked.partition_max_bytes).unwrap_or(0),
        current_epoch: LeaderEpoch(asked.current_leader_epoch),
    }
}

fn fetched(index: PartitionIndex, answer: ReadReply) -> FetchedPartition<Bytes> {
    match answer {
        Ok(done) => FetchedPartition {
            index,
            error_code: 0,
            high_watermark: done.high_watermark,
            last_stable_offset: done.high_watermark,
            log_start_offset: done.log_start,
            aborted_transactions: None,
            diverging_epoch: None,
            current_leader: None,
            records: done.records.into_vec(),
        },
        Err(error) => FetchedPartition::error(index, error_code::of_partition(&error).code()),
    }
}

/// An error of the whole request.
fn refuse(id: RequestId, error: ResponseError) -> Result<Reply, response::ResponseError> {
    let response = FetchResponse::<Bytes> {
        throttle_time_ms: 0,
        error_code: error.code(),
        session_id: 0,
        topics: Vec::new(),
        node_endpoints: Vec::new(),
    };
    Ok(encode(id, response)?.with_error_codes([error.code()]))
}

/// The same error for the request and for each partition that it names: versions 4 to 6 have none for the request.
fn refuse_each(
    id: RequestId,
    request: FetchRequest,
    error: ResponseError,
) -> Result<Reply, response::ResponseError> {
    let refused = |index| FetchedPartition::<Bytes>::error(PartitionIndex(index), error.code());
    let topics = request.topics.into_iter().map(|topic| FetchedTopic {
        partitions: topic
            .partitions
            .iter()
            .map(|it| refused(it.partition))
            .collect(),
        name: topic.topic.0,
        id: TopicId(topic.topic_id),
    });
    let response = FetchResponse {
        throttle_time_ms: 0,
        error_code: error.code(),
        session_id: 0,
        topics: topics.collect(),
        node_endpoints: Vec::new(),
    };
    Ok(encode(id, response)?.with_error_codes([error.code()]))
}

fn encode(id: RequestId, response: FetchResponse<Bytes>) -> Result<Reply, response::ResponseError> {
    let segments =
        fetch_response::encode(response, id.version, id.correlation_id).map_err(|error| {
            response::ResponseError {
                key: id.key,
                version: id.version,
                reason: error.to_string(),
            }
        })?;
    let pieces = segments.into_iter().map(|segment| match segment {
        Segment::Head(bytes) | Segment::Records(bytes) => bytes,
    });
    Ok(Reply {
        pieces: pieces.collect(),
        ..Reply::default()
    })
}

/// Completes with the first of the futures; the others are dropped.
async fn first_of<F: Future<Output = ()> + Unpin>(mut futures: Vec<F>) {
    std::future::poll_fn(move |context| {
        let ready = futures
            .iter_mut()
            .any(|it| Pin::new(it).poll(context).is_ready());
        if ready {
            std::task::Poll::Ready(())
        } else {
            std::task::Poll::Pending
        }
    })
    .await;
}
