//! Fetch (key 1), versions 4 to 18. KIP-74 (max bytes), KIP-227 (sessions: declined), KIP-320 (leader epochs), KIP-516 (topic ids from
//! 13 on). Replicas do not fetch here: their traffic has a listener of its own.

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
use crate::api::owners::{Asked, ByOwner};
use crate::api::reply::{PendingReply, Reply, RequestId};
use crate::api::reply_budget::{HeldReply, ReplyBudget, ReplySize};
use crate::io::executor;
use crate::metrics::{Gauge, ShardMetrics, Stage};
use crate::model::limits::{
    FETCH_OVERHEAD_BYTES, READ_PIECES_MAX, REPLY_GRANT_BYTES_MIN, REPLY_PARTITION_BYTES_MIN,
};
use crate::model::{LeaderEpoch, Offset, PartitionIndex, ShardId, TopicId, TopicPartition};
use crate::protocol::fetch_response::{
    self, FetchResponse, FetchedPartition, FetchedTopic, Segment,
};
use crate::protocol::response;
use crate::shard::command::{
    AwaitItem, Command, ReadBounds, ReadDone, ReadItem, ReadReply, ReadRequest,
};
use crate::shard::long_poll::LongPoll;

/// From this version on topics are named by id.
const TOPIC_IDS_FROM: i16 = 13;

/// A fetch as it is worked on: the answers that are known, and what is asked of the owners.
struct Fetch {
    context: ApiContext,
    id: RequestId,
    topics: Vec<TopicSlots>,
    /// By place in the request.
    asked: Vec<ReadItem>,
    /// What must be there before the answer goes out. Never more than fits into it.
    min_bytes: u64,
    /// Of records, as the client asked.
    asked_bytes: usize,
    /// Of records, as far as there is room for replies.
    max_bytes: usize,
    max_wait: Duration,
    /// What the answer counts as.
    held: HeldReply,
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

pub fn dispatch(
    context: &ApiContext,
    replies: &ReplyBudget,
    id: RequestId,
    request: FetchRequest,
) -> PendingReply {
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
    let held = replies.hold(ReplySize::OfGrant);
    let mut fetch = Fetch::new(context.clone(), id, request, held);
    // There is room, since the request was let in.
    let _has_room = fetch.take_room();
    let first_round = fetch.ask(fetch.enough_bytes());
    Box::pin(fetch.complete(first_round))
}

fn ready(reply: Result<Reply, response::ResponseError>) -> PendingReply {
    Box::pin(future::ready(reply))
}

type Round = Pin<Box<dyn Future<Output = Vec<Option<ReadReply>>>>>;

impl Fetch {
    fn new(context: ApiContext, id: RequestId, request: FetchRequest, held: HeldReply) -> Self {
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
        let topics: Vec<TopicSlots> = topics.collect();
        let asked_bytes = usize::try_from(request.max_bytes).unwrap_or(0);
        let max_bytes = asked_bytes.min(context.config().fetch_max_bytes);
        let max_wait = Duration::from_millis(u64::try_from(request.max_wait_ms).unwrap_or(0));
        let is_refused = topics
            .iter()
            .flat_map(|topic| &topic.slots)
            .any(|slot| slot.refused.is_some());
        let min_bytes = match is_refused || max_wait.is_zero() {
            true => 0,
            false => min_bytes(request.min_bytes, max_bytes, &asked),
        };
        let names = topics
            .iter()
            .map(|topic| (topic.name.len(), topic.slots.len()));
        let head_bytes = fetch_response::head_bytes_max(names);
        Self {
            min_bytes,
            asked_bytes: max_bytes.saturating_sub(head_bytes.saturating_sub(FETCH_OVERHEAD_BYTES)),
            max_bytes: 0,
            max_wait,
            topics,
            asked,
            context,
            id,
            held,
        }
    }

    /// Takes room for what may be read next, which is then all that is; false if there is none.
    fn take_room(&mut self) -> bool {
        let partition_bytes = self.asked.iter().map(|item| item.max_bytes);
        let wanted_bytes = self.asked_bytes.min(partition_bytes.sum());
        let Some(granted_bytes) = self.held.grant(wanted_bytes) else {
            return false;
        };
        self.max_bytes = match granted_bytes < wanted_bytes {
            true => granted_bytes,
            false => self.asked_bytes,
        };
        true
    }

    /// Has the owners of all partitions read what there is now, if it is `min_bytes` or more; else they only count it, as they do where
    /// bounds that span several owners decide what is read.
    fn ask(&self, min_bytes: u64) -> Round {
        let mut by_owner = ByOwner::default();
        for (index, item) in self.asked.iter().enumerate() {
            by_owner.push(self.context.shard.router(), item.partition, index, *item);
        }
        let bounds = match by_owner.len() {
            0 | 1 => ReadBounds::Whole {
                max_bytes: self.max_bytes,
            },
            owner_count => ReadBounds::Share {
                share_bytes: self.max_bytes / owner_count,
            },
        };
        let asked = self.read(by_owner, min_bytes, |_| bounds);
        let mut answers: Vec<Option<ReadReply>> = self.asked.iter().map(|_| None).collect();
        Box::pin(async move {
            asked.collect_into(&mut answers).await;
            answers
        })
    }

    /// `bounds` are those of an owner, by the order of the owners.
    fn read(
        &self,
        by_owner: ByOwner<ReadItem>,
        min_bytes: u64,
        bounds: impl Fn(usize) -> ReadBounds,
    ) -> Asked<ReadReply> {
        let shard = &self.context.shard;
        let sent_at = shard.clock().monotonic();
        let max_pieces = READ_PIECES_MAX / by_owner.len().max(1);
        let mut owners = 0..;
        by_owner.ask(|owner, items| {
            let request = ReadRequest {
                items,
                bounds: bounds(owners.next().expect("it has no end")),
                min_bytes,
                max_pieces,
                sent_at,
            };
            shard.call(owner, |reply| Command::Read(request, reply))
        })
    }

    async fn complete(mut self, first_round: Round) -> Result<Reply, response::ResponseError> {
        let mut answers = first_round.await;
        if !self.is_enough(&answers) {
            // It was only counted what there is: while it waits it holds nothing.
            self.held.settle(0);
            if !self.context.shard.is_stopping() {
                self.wait_for_data().await;
            }
            // Others take no replies: this client may ask again, and then waits for room with everybody else.
            if !self.take_room() {
                return self.respond(answers);
            }
            self.context.shard.router().ready().await;
            answers = self.ask(0).await;
        }
        if counted(&answers).next().is_some() {
            self.context.shard.router().ready().await;
            self.read_counted(&mut answers).await;
        }
        self.respond(answers)
    }

    /// Enough to answer: what was asked for, or anything that the client should learn at once.
    fn is_enough(&self, answers: &[Option<ReadReply>]) -> bool {
        let has_failed = answers.iter().flatten().any(Result::is_err);
        // An owner reads only what is enough.
        let mut done = answers.iter().flatten().flatten();
        let has_records = done.any(|it| it.records_bytes > 0);
        let counted_bytes: u64 = counted(answers).map(|it| it.unread.bytes).sum();
        has_failed || has_records || counted_bytes >= self.enough_bytes() || self.asked.is_empty()
    }

    /// What must be there before the answer goes out: not more than may be read.
    fn enough_bytes(&self) -> u64 {
        self.min_bytes.min(self.max_bytes.max(1) as u64)
    }

    /// Completes when all partitions together have enough, when one cannot be read from any more, or when the client waits no longer.
    async fn wait_for_data(&self) {
        let shard = &self.context.shard;
        let _waiting = WaitingFetch::new(shard.metrics().clone());
        let waiting_since = shard.clock().monotonic();
        let (reply, told) = shard.router().open_call();
        let poll = Arc::new(LongPoll::new(self.enough_bytes(), reply));
        let mut owners: Vec<(ShardId, Vec<AwaitItem>)> = Vec::new();
        for item in &self.asked {
            let owner = shard.router().owner_of(item.partition);
            let awaited = AwaitItem {
                partition: item.partition,
                offset: item.offset,
                max_bytes: item.max_bytes,
            };
            match owners.iter_mut().find(|(shard, _)| *shard == owner) {
                Some((_, items)) => items.push(awaited),
                None => owners.push((owner, vec![awaited])),
            }
        }
        let told = async {
            shard.router().ready().await;
            for (owner, items) in owners {
                shard.tell(owner, Command::AwaitData(items, Arc::downgrade(&poll)));
            }
            told.await;
        };
        future::or(told, async { executor::sleep(self.max_wait).await }).await;
        let waited_ns = shard.clock().monotonic().since(waiting_since).as_nanos() as u64;
        let metrics = shard.metrics();
        metrics.record_stage(self.id.key as i16, Stage::Wait, waited_ns);
    }

    /// Reads what owners have only counted, in the order of the request and within what each takes from `max_bytes`. Only the first partition
    /// that has something may exceed it and its own bound (KIP-74).
    async fn read_counted(&self, answers: &mut [Option<ReadReply>]) {
        let mut by_owner = ByOwner::default();
        let mut left_bytes = self.max_bytes;
        let mut is_first = true;
        let mut is_first_counted = false;
        for (index, (item, answer)) in self.asked.iter().zip(&*answers).enumerate() {
            let Some(Ok(done)) = answer else { continue };
            let unread = done.unread;
            if done.records_bytes > 0 {
                left_bytes = left_bytes.saturating_sub(done.records_bytes);
                is_first = false;
            }
            if unread.bytes == 0 {
                continue;
            }
            // What is granted and not used is lost to the others.
            let usable_bytes = unread.at_once_bytes.min(unread.bytes as usize);
            let mut granted_bytes = left_bytes.min(usable_bytes);
            if is_first {
                granted_bytes = granted_bytes.max(unread.first_batch_bytes);
                is_first_counted = true;
            } else if granted_bytes < unread.first_batch_bytes.max(1) {
                continue;
            }
            is_first = false;
            left_bytes = left_bytes.saturating_sub(granted_bytes);
            let granted = ReadItem {
                max_bytes: granted_bytes,
                ..*item
            };
            by_owner.push(self.context.shard.router(), item.partition, index, granted);
        }
        // The first partition that has something is also the first item of the first owner.
        let read = self.read(by_owner, 0, |owner| ReadBounds::Granted {
            first_may_exceed: is_first_counted && owner == 0,
        });
        read.collect_into(answers).await;
        keep_within(self.max_bytes, answers);
    }

    fn respond(self, answers: Vec<Option<ReadReply>>) -> Result<Reply, response::ResponseError> {
        let Self {
            id,
            topics,
            mut held,
            ..
        } = self;
        let records_bytes = memory_bytes(&answers);
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
        let mut reply = encode(id, response)?.with_error_codes(codes);
        held.settle(records_bytes.max(reply.len()));
        reply.held = Some(held);
        Ok(reply)
    }
}

/// What the records keep in memory: a few of them keep all that they were read with.
fn memory_bytes(answers: &[Option<ReadReply>]) -> usize {
    let records = answers.iter().flatten().flatten();
    let partitions = records.filter(|done| done.records_bytes > 0);
    let bytes: usize = partitions
        .map(|done| done.records_bytes.max(REPLY_PARTITION_BYTES_MIN))
        .sum();
    match bytes {
        0 => 0,
        _ => bytes.max(REPLY_GRANT_BYTES_MIN),
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

/// What must be there before an answer with these bounds goes out. What cannot fit into it is not waited for.
fn min_bytes(asked_min_bytes: i32, max_bytes: usize, asked: &[ReadItem]) -> u64 {
    let room_bytes: u64 = asked.iter().map(|it| it.max_bytes.max(1) as u64).sum();
    let min_bytes = u64::try_from(asked_min_bytes).unwrap_or(0);
    min_bytes.min(max_bytes.max(1) as u64).min(room_bytes)
}

/// The answers of partitions that have something which was counted and not read.
fn counted(answers: &[Option<ReadReply>]) -> impl Iterator<Item = &ReadDone> {
    let done = answers.iter().flatten().flatten();
    done.filter(|it| it.unread.bytes > 0)
}

/// Takes out what is too much after all: a first batch may turn out larger than was known before it was read.
fn keep_within(max_bytes: usize, answers: &mut [Option<ReadReply>]) {
    let mut left_bytes = max_bytes;
    let mut is_first = true;
    for done in answers.iter_mut().flatten().flatten() {
        if done.records_bytes > left_bytes && !is_first {
            done.records.clear();
            done.records_bytes = 0;
        }
        is_first &= done.records_bytes == 0;
        left_bytes = left_bytes.saturating_sub(done.records_bytes);
    }
}

/// Counts a fetch among those that wait, for as long as it does: its client may leave at any time.
struct WaitingFetch {
    metrics: ShardMetrics,
}

impl WaitingFetch {
    fn new(metrics: ShardMetrics) -> Self {
        metrics.raise_gauge(Gauge::FetchesWaiting, 1);
        Self { metrics }
    }
}

impl Drop for WaitingFetch {
    fn drop(&mut self) {
        self.metrics.lower_gauge(Gauge::FetchesWaiting, 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(max_bytes: usize) -> ReadItem {
        ReadItem {
            partition: TopicPartition {
                topic: TopicId(uuid::Uuid::nil()),
                partition: PartitionIndex(0),
            },
            offset: Offset::ZERO,
            max_bytes,
            current_epoch: LeaderEpoch::UNKNOWN,
        }
    }

    fn answer(records_bytes: usize) -> Option<ReadReply> {
        let records = Bytes::from(vec![0; records_bytes]);
        Some(Ok(ReadDone {
            high_watermark: Offset::ZERO,
            log_start: Offset::ZERO,
            records: [records].into_iter().collect(),
            records_bytes,
            unread: Default::default(),
        }))
    }

    fn kept(max_bytes: usize, sizes: &[usize]) -> Vec<usize> {
        let mut answers: Vec<_> = sizes.iter().map(|bytes| answer(*bytes)).collect();
        keep_within(max_bytes, &mut answers);
        let done = answers.iter().flatten().flatten();
        done.map(|it| it.records_bytes).collect()
    }

    #[test]
    fn only_the_first_partition_that_has_something_exceeds_max_bytes() {
        assert_eq!(kept(100, &[0, 150, 10, 10]), [0, 150, 0, 0]);
        assert_eq!(kept(100, &[60, 50, 40, 1]), [60, 0, 40, 0]);
        assert_eq!(kept(100, &[60, 40]), [60, 40]);
    }

    #[test]
    fn what_does_not_fit_into_the_answer_is_not_waited_for() {
        assert_eq!(min_bytes(1_000, 600, &[item(4_000)]), 600);
        assert_eq!(min_bytes(1_000, 4_000, &[item(300), item(300)]), 600);
        assert_eq!(min_bytes(1_000, 0, &[item(0)]), 1);
        assert_eq!(min_bytes(-1, 4_000, &[item(300)]), 0);
        assert_eq!(min_bytes(1, 4_000, &[item(300)]), 1);
    }

    #[test]
    fn a_fetch_whose_client_leaves_while_it_waits_is_counted_no_more() {
        let registry = crate::metrics::MetricsRegistry::new(1);
        let metrics = registry.shard(ShardId(0));
        let waiting = || metrics.figures().gauge(Gauge::FetchesWaiting);
        let poll = WaitingFetch::new(metrics.clone());
        let mut fetch = Box::pin(async move {
            let _poll = poll;
            future::pending::<()>().await
        });
        assert!(future::block_on(future::poll_once(&mut fetch)).is_none());
        assert_eq!(waiting(), 1);
        drop(fetch);
        assert_eq!(waiting(), 0);
    }
}
