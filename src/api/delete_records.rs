//! DeleteRecords (key 21), versions 0 to 2. KIP-107.

use kafka_protocol::ResponseError;
use kafka_protocol::messages::delete_records_request::DeleteRecordsRequest;
use kafka_protocol::messages::delete_records_response::{
    DeleteRecordsPartitionResult, DeleteRecordsResponse, DeleteRecordsTopicResult,
};

use crate::api::context::ApiContext;
use crate::api::owners::Questions;
use crate::api::reply::{PendingReply, Reply, RequestId};
use crate::model::internal_topic::is_internal;
use crate::model::{Offset, PartitionIndex};
use crate::shard::command::{Command, DeleteBefore};

/// The offset that stands for the high watermark.
const HIGH_WATERMARK: i64 = -1;

pub fn dispatch(
    context: &ApiContext,
    id: RequestId,
    request: DeleteRecordsRequest,
) -> PendingReply {
    let mut questions = Questions::default();
    let mut topics = Vec::with_capacity(request.topics.len());
    for topic in request.topics {
        let found = context.topic(&topic.name);
        for asked in &topic.partitions {
            questions.add(
                context,
                found.as_deref(),
                PartitionIndex(asked.partition_index),
                |partition| match is_internal(&topic.name) {
                    true => Err(ResponseError::InvalidTopicException),
                    false => Ok((partition, delete_before(asked.offset))),
                },
            );
        }
        topics.push((topic.name, topic.partitions));
    }
    let answers = questions.ask(|owner, items| {
        context
            .shard
            .call(owner, |reply| Command::DeleteRecords(items, reply))
    });
    Box::pin(async move {
        let mut answers = answers.collect().await;
        let mut codes = Vec::new();
        let topics = topics.into_iter().map(|(name, partitions)| {
            let partitions = partitions.iter().zip(&mut answers).map(|(asked, answer)| {
                let result = DeleteRecordsPartitionResult::default()
                    .with_partition_index(asked.partition_index);
                match answer {
                    Ok(start) => result.with_low_watermark(start.0),
                    Err(error) => {
                        codes.push(error.code());
                        result.with_error_code(error.code()).with_low_watermark(-1)
                    }
                }
            });
            DeleteRecordsTopicResult::default()
                .with_name(name)
                .with_partitions(partitions.collect())
        });
        let response = DeleteRecordsResponse::default().with_topics(topics.collect());
        Ok(Reply::of(&id, &response)?.with_error_codes(codes))
    })
}

fn delete_before(offset: i64) -> DeleteBefore {
    match offset {
        HIGH_WATERMARK => DeleteBefore::HighWatermark,
        offset => DeleteBefore::Offset(Offset(offset)),
    }
}
