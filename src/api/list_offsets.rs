//! ListOffsets (key 2), versions 1 to 10. KIP-79, KIP-734 (max timestamp, -3, from version 7 on).

use kafka_protocol::ResponseError;
use kafka_protocol::messages::list_offsets_request::ListOffsetsRequest;
use kafka_protocol::messages::list_offsets_response::{
    ListOffsetsPartitionResponse, ListOffsetsResponse, ListOffsetsTopicResponse,
};

use crate::api::context::ApiContext;
use crate::api::owners::Questions;
use crate::api::reply::{PendingReply, Reply, RequestId};
use crate::model::{LeaderEpoch, PartitionIndex, TimestampMs};
use crate::shard::command::{Command, ListOffsetsItem, OffsetAt};

const LATEST: i64 = -1;
const EARLIEST: i64 = -2;
const MAX_TIMESTAMP: i64 = -3;
/// The earliest offset on local disk; the same as the earliest where nothing is kept elsewhere (KIP-405, from version 8 on).
const EARLIEST_LOCAL: i64 = -4;
/// The latest offset in tiered storage, of which there is none (KIP-1005, from version 9 on).
const LATEST_TIERED: i64 = -5;

/// From this version on the answer names the leader epoch of the offset.
const LEADER_EPOCH_FROM: i16 = 4;

pub fn dispatch(context: &ApiContext, id: RequestId, request: ListOffsetsRequest) -> PendingReply {
    let mut questions = Questions::default();
    let mut topics = Vec::with_capacity(request.topics.len());
    for topic in request.topics {
        let found = context.topic(&topic.name);
        for asked in &topic.partitions {
            questions.add(
                context,
                found.as_deref(),
                PartitionIndex(asked.partition_index),
                |partition| {
                    let at = offset_at(asked.timestamp, id.version)?;
                    Ok(ListOffsetsItem {
                        partition,
                        current_epoch: LeaderEpoch(asked.current_leader_epoch),
                        at,
                    })
                },
            );
        }
        topics.push((topic.name, topic.partitions));
    }
    let answers = questions.ask(|owner, items| {
        context
            .shard
            .call(owner, |reply| Command::ListOffsets(items, reply))
    });
    Box::pin(async move {
        let mut answers = answers.collect().await;
        let mut codes = Vec::new();
        let topics = topics.into_iter().map(|(name, partitions)| {
            let partitions = partitions.iter().zip(&mut answers).map(|(asked, answer)| {
                let response = ListOffsetsPartitionResponse::default()
                    .with_partition_index(asked.partition_index)
                    .with_timestamp(-1)
                    .with_offset(-1);
                match answer {
                    Ok(Some(found)) => response
                        .with_timestamp(found.timestamp.0)
                        .with_offset(found.offset.0)
                        .with_leader_epoch(if id.version >= LEADER_EPOCH_FROM {
                            found.leader_epoch.0
                        } else {
                            -1
                        }),
                    Ok(None) => response,
                    Err(error) => {
                        codes.push(error.code());
                        response.with_error_code(error.code())
                    }
                }
            });
            ListOffsetsTopicResponse::default()
                .with_name(name)
                .with_partitions(partitions.collect())
        });
        let response = ListOffsetsResponse::default().with_topics(topics.collect());
        Ok(Reply::of(&id, &response)?.with_error_codes(codes))
    })
}

fn offset_at(timestamp: i64, version: i16) -> Result<OffsetAt, ResponseError> {
    match timestamp {
        LATEST => Ok(OffsetAt::Latest),
        EARLIEST => Ok(OffsetAt::Earliest),
        MAX_TIMESTAMP if version >= 7 => Ok(OffsetAt::MaxTimestamp),
        EARLIEST_LOCAL if version >= 8 => Ok(OffsetAt::Earliest),
        LATEST_TIERED if version >= 9 => Ok(OffsetAt::Nowhere),
        0.. => Ok(OffsetAt::Timestamp(TimestampMs(timestamp))),
        _ => Err(ResponseError::UnsupportedVersion),
    }
}
