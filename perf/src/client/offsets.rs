//! ListOffsets: where a partition begins, where it ends, and where it had come to at a time.

use std::collections::{BTreeMap, BTreeSet};

use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use kafka_protocol::messages::{ApiKey, BrokerId, ListOffsetsRequest, TopicName};
use kafka_protocol::protocol::StrBytes;

use super::connection::Connection;
use super::error::ClientError;

/// Which offset of each partition is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OffsetAt {
    /// Of the first record that is still there.
    Earliest,
    /// Behind the last record that consumers see: the high watermark.
    Latest,
    /// Of the first record whose timestamp is not before this one.
    UnixMs(i64),
}

impl OffsetAt {
    /// As ListOffsets says it.
    fn timestamp(self) -> i64 {
        match self {
            Self::Latest => -1,
            Self::Earliest => -2,
            // Negative ones mean other things.
            Self::UnixMs(unix_ms) => unix_ms.max(0),
        }
    }
}

/// Asks the broker at the other end, which leads all these partitions, and returns each with its offset; None:
/// no record is as young as that.
pub fn list_offsets(
    connection: &mut Connection,
    topic: &str,
    partitions: &[usize],
    at: OffsetAt,
) -> Result<BTreeMap<usize, Option<i64>>, ClientError> {
    let asked = |&partition: &usize| {
        ListOffsetsPartition::default()
            .with_partition_index(partition as i32)
            .with_current_leader_epoch(-1)
            .with_timestamp(at.timestamp())
    };
    let wanted = ListOffsetsTopic::default()
        .with_name(TopicName(StrBytes::from_string(topic.to_owned())))
        .with_partitions(partitions.iter().map(asked).collect());
    let request = ListOffsetsRequest::default()
        .with_replica_id(BrokerId(-1))
        .with_topics(vec![wanted]);
    let response = connection.call(&request, 1, 5)?;
    let mut offsets = BTreeMap::new();
    for result in response.topics.iter().flat_map(|topic| &topic.partitions) {
        connection.refuse_error(ApiKey::ListOffsets, result.error_code, None)?;
        let offset = (result.offset >= 0).then_some(result.offset);
        offsets.insert(result.partition_index as usize, offset);
    }
    let wanted: BTreeSet<_> = partitions.iter().collect();
    match wanted.into_iter().eq(offsets.keys()) {
        true => Ok(offsets),
        false => Err(connection.protocol(format!(
            "ListOffsets: {} partitions, and not those that were asked for",
            offsets.len()
        ))),
    }
}
