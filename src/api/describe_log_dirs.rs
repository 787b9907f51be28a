//! DescribeLogDirs (key 35), versions 1 to 4. KIP-113, KIP-827 (total and usable bytes from version 4 on).

use std::collections::BTreeMap;

use kafka_protocol::ResponseError;
use kafka_protocol::messages::TopicName as WireTopicName;
use kafka_protocol::messages::describe_log_dirs_request::DescribeLogDirsRequest;
use kafka_protocol::messages::describe_log_dirs_response::{
    DescribeLogDirsPartition, DescribeLogDirsResponse, DescribeLogDirsResult, DescribeLogDirsTopic,
};
use kafka_protocol::protocol::StrBytes;

use crate::api::admin_context::AdminContext;
use crate::api::context::ApiContext;
use crate::api::reply::{PendingReply, Reply, RequestId};
use crate::model::{PartitionIndex, TopicPartition};
use crate::shard::command::Command;

pub fn dispatch(
    context: &ApiContext,
    id: RequestId,
    request: DescribeLogDirsRequest,
) -> PendingReply {
    let calls: Vec<_> = context
        .shard
        .router()
        .shards()
        .map(|shard| context.shard.call(shard, Command::LogSizes))
        .collect();
    let context = context.clone();
    Box::pin(async move {
        let mut sizes = BTreeMap::new();
        for call in calls {
            sizes.extend(
                call.await
                    .into_iter()
                    .map(|size| (size.partition, size.size_bytes)),
            );
        }
        let log_dir = context.shard.log_dir();
        let path =
            std::path::absolute(log_dir.path()).unwrap_or_else(|_| log_dir.path().to_owned());
        let path = StrBytes::from_string(path.display().to_string());
        let mut result = DescribeLogDirsResult::default()
            .with_log_dir(path)
            .with_topics(topics(&context, &request, &sizes))
            .with_total_bytes(-1)
            .with_usable_bytes(-1);
        if let Ok(space) = rustix::fs::statvfs(log_dir.path()) {
            result = result
                .with_total_bytes((space.f_blocks * space.f_frsize) as i64)
                .with_usable_bytes((space.f_bavail * space.f_frsize) as i64);
        }
        if log_dir.failure().is_some() {
            result = result.with_error_code(ResponseError::KafkaStorageError.code());
        }
        let code = result.error_code;
        let response = DescribeLogDirsResponse::default().with_results(vec![result]);
        Ok(Reply::of(&id, &response)?.with_error_codes([code]))
    })
}

/// The topics that are asked for, all of them if none is named; partitions that do not exist are left out.
fn topics(
    context: &ApiContext,
    request: &DescribeLogDirsRequest,
    sizes: &BTreeMap<TopicPartition, u64>,
) -> Vec<DescribeLogDirsTopic> {
    let partition = |id: TopicPartition| {
        let size_bytes = *sizes.get(&id)?;
        let partition = DescribeLogDirsPartition::default().with_partition_index(id.partition.0);
        Some(partition.with_partition_size(size_bytes as i64))
    };
    let row = |name: &str, partitions: Vec<DescribeLogDirsPartition>| {
        let name = WireTopicName(StrBytes::from_string(name.to_owned()));
        DescribeLogDirsTopic::default()
            .with_name(name)
            .with_partitions(partitions)
    };
    let image = context.image();
    match &request.topics {
        None => image
            .topics()
            .map(|topic| {
                let partitions = topic.partitions_from(0).filter_map(|(id, _)| partition(id));
                row(topic.name.as_str(), partitions.collect())
            })
            .collect(),
        Some(asked) => asked
            .iter()
            .filter_map(|asked| {
                let topic = image.topic(&asked.topic)?;
                let ids = asked.partitions.iter().map(|index| TopicPartition {
                    topic: topic.id,
                    partition: PartitionIndex(*index),
                });
                Some(row(
                    topic.name.as_str(),
                    ids.filter_map(partition).collect(),
                ))
            })
            .collect(),
    }
}
