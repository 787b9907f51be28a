//! What a cluster tells about itself: brokers, topics, and who leads their partitions.

use std::collections::BTreeMap;
use std::fmt;

use kafka_protocol::messages::metadata_response::{
    MetadataResponsePartition, MetadataResponseTopic,
};
use kafka_protocol::messages::{MetadataResponse, TopicName};
use kafka_protocol::protocol::StrBytes;
use uuid::Uuid;

use crate::model::NodeId;

use super::error::ErrorCode;

/// A partition as clients name it: by the topic's name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicPartition {
    pub topic: String,
    pub partition: i32,
}

impl TopicPartition {
    pub fn new(topic: &str, partition: i32) -> Self {
        Self {
            topic: topic.to_owned(),
            partition,
        }
    }
}

impl fmt::Display for TopicPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.topic, self.partition)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broker {
    pub node: NodeId,
    pub address: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicMetadata {
    pub name: String,
    pub id: Uuid,
    pub is_internal: bool,
    pub error: ErrorCode,
    /// By their numbers.
    pub partitions: Vec<PartitionMetadata>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionMetadata {
    pub index: i32,
    pub leader: Option<NodeId>,
    pub replicas: Vec<NodeId>,
    pub in_sync: Vec<NodeId>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterMetadata {
    pub controller: Option<NodeId>,
    pub brokers: Vec<Broker>,
    /// By name.
    pub topics: Vec<TopicMetadata>,
}

impl ClusterMetadata {
    pub fn address_of(&self, node: NodeId) -> Option<&str> {
        self.brokers
            .iter()
            .find(|broker| broker.node == node)
            .map(|broker| broker.address.as_str())
    }
}

impl TopicMetadata {
    /// The most copies that one of its partitions has.
    pub fn replication(&self) -> usize {
        let copies = self
            .partitions
            .iter()
            .map(|partition| partition.replicas.len());
        copies.max().unwrap_or(0)
    }

    pub fn partition_indexes(&self) -> impl Iterator<Item = TopicPartition> {
        self.partitions
            .iter()
            .map(|partition| TopicPartition::new(&self.name, partition.index))
    }

    fn read(topic: &MetadataResponseTopic) -> Self {
        let partitions: BTreeMap<i32, PartitionMetadata> = topic
            .partitions
            .iter()
            .map(|partition| {
                (
                    partition.partition_index,
                    PartitionMetadata::read(partition),
                )
            })
            .collect();
        Self {
            name: topic
                .name
                .as_ref()
                .map(|name| name.to_string())
                .unwrap_or_default(),
            id: topic.topic_id,
            is_internal: topic.is_internal,
            error: ErrorCode(topic.error_code),
            partitions: partitions.into_values().collect(),
        }
    }
}

impl PartitionMetadata {
    fn read(partition: &MetadataResponsePartition) -> Self {
        let nodes = |nodes: &[kafka_protocol::messages::BrokerId]| {
            nodes.iter().map(|node| NodeId(node.0)).collect()
        };
        Self {
            index: partition.partition_index,
            leader: (partition.leader_id.0 >= 0).then_some(NodeId(partition.leader_id.0)),
            replicas: nodes(&partition.replica_nodes),
            in_sync: nodes(&partition.isr_nodes),
        }
    }
}

impl From<&MetadataResponse> for ClusterMetadata {
    fn from(response: &MetadataResponse) -> Self {
        let brokers: Vec<Broker> = response
            .brokers
            .iter()
            .map(|broker| Broker {
                node: NodeId(broker.node_id.0),
                address: host_and_port(&broker.host, broker.port),
            })
            .collect();
        let controller = NodeId(response.controller_id.0);
        let mut topics: Vec<_> = response.topics.iter().map(TopicMetadata::read).collect();
        topics.sort_by(|a, b| a.name.cmp(&b.name));
        Self {
            controller: (controller.0 >= 0).then_some(controller),
            brokers,
            topics,
        }
    }
}

/// As it can be connected to; a numeric IPv6 host gets its brackets.
pub(super) fn host_and_port(host: &str, port: i32) -> String {
    match host.contains(':') && !host.starts_with('[') {
        true => format!("[{host}]:{port}"),
        false => format!("{host}:{port}"),
    }
}

pub(super) fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

pub(super) fn topic_name(name: &str) -> TopicName {
    TopicName(text(name))
}

/// The same partitions by topic, as requests list them.
pub(super) fn by_topic<'a, T>(
    partitions: impl IntoIterator<Item = (&'a TopicPartition, T)>,
) -> BTreeMap<&'a str, Vec<(i32, T)>> {
    let mut topics: BTreeMap<&str, Vec<(i32, T)>> = BTreeMap::new();
    for (at, value) in partitions {
        topics
            .entry(&at.topic)
            .or_default()
            .push((at.partition, value));
    }
    topics
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ipv6_host_gets_brackets_and_others_do_not() {
        assert_eq!(host_and_port("::1", 9092), "[::1]:9092");
        assert_eq!(host_and_port("[::1]", 9092), "[::1]:9092");
        assert_eq!(host_and_port("b.example", 1), "b.example:1");
    }
}
