//! Produce (key 0), versions 3 to 13. KIP-98, KIP-516 (topic ids from 13 on), KIP-467 (record errors from 8 on).

use bytes::Bytes;
use kafka_protocol::ResponseError;
use kafka_protocol::messages::TopicName as WireTopicName;
use kafka_protocol::messages::produce_request::ProduceRequest;
use kafka_protocol::messages::produce_response::{
    BatchIndexAndErrorMessage, PartitionProduceResponse, ProduceResponse, TopicProduceResponse,
};
use kafka_protocol::protocol::StrBytes;

use crate::api::context::ApiContext;
use crate::api::error_code;
use crate::api::owners::ByOwner;
use crate::api::reply::{PendingReply, Reply, RequestId};
use crate::model::internal_topic::is_internal;
use crate::model::{PartitionIndex, TopicId, TopicPartition};
use crate::record::compression::Codec;
use crate::record::header::RecordBatchHeader;
use crate::shard::command::{AppendDone, AppendItem, AppendReply, AppendRequest, Command};

/// From this version on topics are named by id.
const TOPIC_IDS_FROM: i16 = 13;

/// From this version on batches may be compressed with zstd.
const ZSTD_FROM: i16 = 7;

/// From this version on a refusal carries a message and the records it is about.
const RECORD_ERRORS_FROM: i16 = 8;

/// `acks`: answered once every in-sync replica has the batch.
const ACKS_ALL: i16 = -1;

/// One partition of the request: where its answer goes, and what is known of it already.
struct Slot {
    index: i32,
    answer: Option<Result<AppendDone, Refusal>>,
}

struct Refusal {
    error: ResponseError,
    message: String,
    record_indexes: Vec<i32>,
}

struct TopicSlots {
    name: WireTopicName,
    id: uuid::Uuid,
    slots: Vec<Slot>,
}

pub fn dispatch(context: &ApiContext, id: RequestId, request: ProduceRequest) -> PendingReply {
    let mut topics = Vec::with_capacity(request.topic_data.len());
    let mut by_owner = ByOwner::default();
    let mut asked_count = 0;
    let refusal = check_request(&request);
    let needs_all = request.acks == ACKS_ALL;
    for topic in request.topic_data {
        let mut slots = TopicSlots {
            name: topic.name,
            id: topic.topic_id,
            slots: Vec::new(),
        };
        let found = match id.version >= TOPIC_IDS_FROM {
            true => context
                .topic_by_id(TopicId(slots.id))
                .ok_or(ResponseError::UnknownTopicId),
            false => context
                .topic(&slots.name)
                .ok_or(ResponseError::UnknownTopicOrPartition),
        };
        for data in topic.partition_data {
            let index = PartitionIndex(data.index);
            let refused = match (&refusal, &found) {
                (Some(error), _) | (None, Err(error)) => Some(Refusal::of(*error)),
                (None, Ok(topic)) if is_internal(topic.name.as_str()) => {
                    Some(Refusal::of(ResponseError::InvalidTopicException))
                }
                (None, Ok(topic)) if topic.partition(index).is_none() => {
                    Some(Refusal::of(ResponseError::UnknownTopicOrPartition))
                }
                (None, Ok(_)) if is_zstd_too_early(id.version, data.records.as_deref()) => {
                    Some(Refusal::of(ResponseError::UnsupportedCompressionType))
                }
                (None, Ok(topic)) => {
                    let partition = TopicPartition {
                        topic: topic.id,
                        partition: index,
                    };
                    let records = data.records.unwrap_or_else(Bytes::new);
                    by_owner.push(
                        context.shard.router(),
                        partition,
                        asked_count,
                        AppendItem {
                            partition,
                            records,
                            needs_all,
                        },
                    );
                    asked_count += 1;
                    None
                }
            };
            slots.slots.push(Slot {
                index: data.index,
                answer: refused.map(Err),
            });
        }
        topics.push(slots);
    }
    let sent_at = context.shard.clock().monotonic();
    let asked = by_owner.ask(|owner, items| {
        context.shard.call(owner, |reply| {
            Command::Append(AppendRequest { items, sent_at }, reply)
        })
    });
    let acks = request.acks;
    Box::pin(async move {
        let mut answers: Vec<Option<AppendReply>> = (0..asked_count).map(|_| None).collect();
        asked.collect_into(&mut answers).await;
        fill(&mut topics, answers, id.version);
        respond(id, acks, topics)
    })
}

/// A client of an older version could not read zstd back (KIP-110).
fn is_zstd_too_early(version: i16, records: Option<&[u8]>) -> bool {
    version < ZSTD_FROM
        && records.is_some_and(|records| {
            RecordBatchHeader::parse(records)
                .is_ok_and(|header| header.attributes.codec() == Ok(Codec::Zstd))
        })
}

/// What makes every partition of the request fail.
fn check_request(request: &ProduceRequest) -> Option<ResponseError> {
    if request.transactional_id.is_some() {
        return Some(ResponseError::TransactionalIdAuthorizationFailed);
    }
    match request.acks {
        ACKS_ALL..=1 => None,
        _ => Some(ResponseError::InvalidRequiredAcks),
    }
}

/// Puts the owners' answers into the slots that have none yet, in the request's order.
fn fill(topics: &mut [TopicSlots], answers: Vec<Option<AppendReply>>, version: i16) {
    let mut answers = answers.into_iter();
    for slot in topics.iter_mut().flat_map(|topic| &mut topic.slots) {
        if slot.answer.is_none() {
            let answer = answers
                .next()
                .flatten()
                .expect("every asked partition was answered");
            slot.answer = Some(answer.map_err(|error| Refusal {
                error: error_code::of_append(&error, version),
                record_indexes: error_code::record_indexes(&error).to_vec(),
                message: error.to_string(),
            }));
        }
    }
}

fn respond(
    id: RequestId,
    acks: i16,
    topics: Vec<TopicSlots>,
) -> Result<Reply, crate::protocol::response::ResponseError> {
    let mut codes = Vec::new();
    let mut response = ProduceResponse::default();
    for topic in topics {
        let partitions = topic.slots.into_iter().map(|slot| {
            let answer = slot.answer.expect("every partition is answered");
            codes.extend(answer.as_ref().err().map(|refusal| refusal.error.code()));
            partition_response(slot.index, answer, id.version)
        });
        let partitions = partitions.collect();
        response.responses.push(
            TopicProduceResponse::default()
                .with_name(topic.name)
                .with_topic_id(topic.id)
                .with_partition_responses(partitions),
        );
    }
    if acks == 0 {
        return Ok(Reply {
            closes: !codes.is_empty(),
            error_codes: codes,
            ..Reply::default()
        });
    }
    Ok(Reply::of(&id, &response)?.with_error_codes(codes))
}

fn partition_response(
    index: i32,
    answer: Result<AppendDone, Refusal>,
    version: i16,
) -> PartitionProduceResponse {
    let response = PartitionProduceResponse::default().with_index(index);
    match answer {
        Ok(done) => response
            .with_base_offset(done.base_offset.0)
            .with_log_append_time_ms(done.log_append_time.map_or(-1, |time| time.0))
            .with_log_start_offset(done.log_start.0),
        Err(refusal) => {
            let response = response
                .with_error_code(refusal.error.code())
                .with_base_offset(-1)
                .with_log_append_time_ms(-1)
                .with_log_start_offset(-1);
            if version < RECORD_ERRORS_FROM {
                return response;
            }
            let message = StrBytes::from_string(refusal.message);
            let record_errors = refusal.record_indexes.iter().map(|&batch_index| {
                BatchIndexAndErrorMessage::default()
                    .with_batch_index(batch_index)
                    .with_batch_index_error_message(Some(message.clone()))
            });
            response
                .with_record_errors(record_errors.collect())
                .with_error_message(Some(message))
        }
    }
}

impl Refusal {
    fn of(error: ResponseError) -> Self {
        Self {
            error,
            message: error.to_string(),
            record_indexes: Vec::new(),
        }
    }
}
