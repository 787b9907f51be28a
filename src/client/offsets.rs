//! Where a partition begins, where it ends, and where it had come to at a time.

use std::collections::BTreeMap;

use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use kafka_protocol::messages::{ApiKey, BrokerId, ListOffsetsRequest};

use crate::model::{Offset, TimestampMs};

use super::cluster::Cluster;
use super::connection::Connection;
use super::error::ClientError;
use super::metadata::{TopicPartition, by_topic, topic_name};

/// Which offset of each partition is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OffsetAt {
    /// Of the first record that is still there.
    Earliest,
    /// Behind the last record that consumers see: the high watermark.
    Latest,
    /// Of the first record whose timestamp is not before this one.
    Time(TimestampMs),
}

impl OffsetAt {
    /// As ListOffsets says it.
    fn timestamp(self) -> i64 {
        match self {
            Self::Latest => -1,
            Self::Earliest => -2,
            // Negative ones mean other things.
            Self::Time(time) => time.0.max(0),
        }
    }
}

impl Cluster {
    /// Each partition's offset; None: no record is as young as that.
    pub fn offsets(
        &mut self,
        partitions: &[TopicPartition],
        at: OffsetAt,
    ) -> Result<BTreeMap<TopicPartition, Option<Offset>>, ClientError> {
        self.until_ready(|cluster| {
            let mut offsets = BTreeMap::new();
            for (leader, partitions) in cluster.by_leader(partitions)? {
                let request = list_offsets_request(&partitions, at);
                let found = cluster.ask(&leader, |broker| list_offsets(broker, &request))?;
                offsets.extend(found);
            }
            match partitions.iter().find(|at| !offsets.contains_key(*at)) {
                None => Ok(offsets),
                Some(missing) => Err(ClientError::Protocol {
                    address: cluster.leader(missing)?,
                    reason: format!("ListOffsets without {missing}, which it was asked for"),
                }),
            }
        })
    }
}

fn list_offsets_request(partitions: &[&TopicPartition], at: OffsetAt) -> ListOffsetsRequest {
    let asked = |(partition, ()): &(i32, ())| {
        ListOffsetsPartition::default()
            .with_partition_index(*partition)
            .with_current_leader_epoch(-1)
            .with_timestamp(at.timestamp())
    };
    let topics = by_topic(partitions.iter().map(|&at| (at, ())))
        .into_iter()
        .map(|(topic, partitions)| {
            ListOffsetsTopic::default()
                .with_name(topic_name(topic))
                .with_partitions(partitions.iter().map(asked).collect())
        })
        .collect();
    ListOffsetsRequest::default()
        .with_replica_id(BrokerId(-1))
        .with_topics(topics)
}

fn list_offsets(
    broker: &mut Connection,
    request: &ListOffsetsRequest,
) -> Result<Vec<(TopicPartition, Option<Offset>)>, ClientError> {
    let response = broker.call(request)?;
    let mut offsets = Vec::new();
    for topic in &response.topics {
        for result in &topic.partitions {
            let at = TopicPartition::new(&topic.name, result.partition_index);
            let about = format!("the offsets of {at}");
            broker.refuse_error(ApiKey::ListOffsets, &about, result.error_code, None)?;
            offsets.push((at, (result.offset >= 0).then_some(Offset(result.offset))));
        }
    }
    Ok(offsets)
}
