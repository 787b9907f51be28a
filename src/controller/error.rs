use super::followed::NotFollowed;
use super::metadata_log::MetadataLogError;
use crate::config::ConfigError;
use crate::model::internal_topic::CLUSTER_METADATA_TOPIC;
use crate::model::limits::{PARTITIONS_PER_BROKER_MAX, PARTITIONS_PER_TOPIC_MAX};
use crate::model::{NodeId, TopicId, TopicName, TopicNameError};
use std::sync::Arc;

/// A change was right but could not be made durable, so it was not made.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the change could not be stored: {0}")]
pub struct NotStored(pub Arc<MetadataLogError>);

/// Why a number of partitions, or the replicas of one, cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    #[error(
        "the number of partitions must be at least 1 and at most {PARTITIONS_PER_TOPIC_MAX}, or -1 for the default"
    )]
    PartitionCount,
    #[error("the broker would have more than {PARTITIONS_PER_BROKER_MAX} partitions")]
    TooManyPartitions,
    #[error("the replication factor must be at least 1, or -1 for the default")]
    ReplicationFactor,
    #[error("the replication factor is {wanted}, but the cluster has {brokers} broker")]
    TooFewBrokers { wanted: i16, brokers: i16 },
    #[error("partitions are numbered from 0 up without gaps; {0} is missing")]
    AssignmentGap(i32),
    #[error("a partition stands twice in the assignment, or is negative: {0}")]
    AssignmentIndex(i32),
    #[error("broker {0} of the assignment is not in the cluster")]
    UnknownBroker(NodeId),
    #[error("an assignment names broker {0} twice")]
    BrokerTwice(NodeId),
    #[error("an assignment names no broker")]
    NoBroker,
    #[error("{wanted} new partitions were asked for, with assignments for {assigned}")]
    AssignmentCount { wanted: i32, assigned: usize },
}

#[derive(Clone, Debug, thiserror::Error)]
pub enum CreateTopicError {
    #[error("{0}")]
    Name(#[from] TopicNameError),
    #[error("'{CLUSTER_METADATA_TOPIC}' is the name of the controllers' own log")]
    ClusterMetadata,
    #[error("topic '{0}' already exists")]
    Exists(String),
    #[error(
        "topic '{name}' collides with topic '{other}': '.' and '_' are the same in the names of metrics"
    )]
    Collides { name: String, other: String },
    #[error("topic '{0}' stands twice in the request")]
    Twice(String),
    #[error("{0}")]
    Layout(#[from] LayoutError),
    #[error("{0}")]
    Config(#[from] ConfigError),
    #[error("{0}")]
    NotStored(#[from] NotStored),
    #[error("{0}")]
    NotFollowed(#[from] NotFollowed),
}

#[derive(Clone, Debug, thiserror::Error)]
pub enum DeleteTopicError {
    #[error("topic '{0}' does not exist")]
    UnknownName(String),
    #[error("no topic has the id {0}")]
    UnknownId(TopicId),
    #[error("topic '{0}' is the broker's own and may not be deleted")]
    Internal(TopicName),
    #[error("the topic stands twice in the request")]
    Twice,
    #[error("topics may not be deleted: delete.topic.enable is false")]
    Disabled,
    #[error("{0}")]
    NotStored(#[from] NotStored),
    #[error("{0}")]
    NotFollowed(#[from] NotFollowed),
}

#[derive(Clone, Debug, thiserror::Error)]
pub enum CreatePartitionsError {
    #[error("topic '{0}' does not exist")]
    UnknownTopic(String),
    #[error("topic '{0}' stands twice in the request")]
    Twice(String),
    #[error(
        "groups find their offsets by the number of partitions of '{0}', so that it keeps them"
    )]
    Internal(String),
    #[error("topic '{topic}' has {current} partitions; {wanted} would not be an increase")]
    NoIncrease {
        topic: String,
        current: i32,
        wanted: i32,
    },
    #[error("{0}")]
    Layout(#[from] LayoutError),
    #[error("{0}")]
    NotStored(#[from] NotStored),
    #[error("{0}")]
    NotFollowed(#[from] NotFollowed),
}

#[derive(Clone, Debug, thiserror::Error)]
pub enum AlterConfigError {
    #[error("topic '{0}' does not exist")]
    UnknownTopic(String),
    #[error("broker {0} is not in the cluster")]
    UnknownBroker(NodeId),
    #[error("the resource stands twice in the request")]
    Twice,
    #[error("{0}")]
    Config(#[from] ConfigError),
    #[error("{0}")]
    NotStored(#[from] NotStored),
}

#[derive(Clone, Debug, thiserror::Error)]
pub enum ProducerIdError {
    #[error("every producer id was handed out")]
    Exhausted,
    #[error("{0}")]
    NotStored(#[from] NotStored),
}
