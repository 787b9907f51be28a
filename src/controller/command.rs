use std::sync::Arc;

use super::error::{
    AlterConfigError, CreatePartitionsError, CreateTopicError, DeleteTopicError, ProducerIdError,
};
use super::followed::Followed;
use crate::config::Alteration;
use crate::metadata::{MetadataDelta, MetadataImage, Topic};
use crate::model::{NodeId, PartitionIndex, ProducerId, TopicId};

/// Takes a result to whoever waits for it, on whatever core that is.
pub type Reply<T> = Box<dyn FnOnce(T) + Send>;

/// What can be asked of the controller. Each list is answered by a list of the same length and order.
pub enum ControllerCommand {
    CreateTopics {
        topics: Vec<NewTopic>,
        validate_only: bool,
        reply: Reply<Vec<Result<Arc<Topic>, CreateTopicError>>>,
    },
    DeleteTopics {
        topics: Vec<TopicSelector>,
        reply: Reply<Vec<Result<Arc<Topic>, DeleteTopicError>>>,
    },
    CreatePartitions {
        topics: Vec<NewPartitions>,
        validate_only: bool,
        reply: Reply<Vec<Result<(), CreatePartitionsError>>>,
    },
    AlterConfigs {
        changes: Vec<ConfigChange>,
        validate_only: bool,
        reply: Reply<Vec<Result<(), AlterConfigError>>>,
    },
    /// A producer id that was never handed out.
    AllocateProducerId {
        reply: Reply<Result<ProducerId, ProducerIdError>>,
    },
}

/// A topic as a client wants it. The name is as it was sent; the controller checks it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewTopic {
    pub name: String,
    pub layout: NewTopicLayout,
    /// Settings with values, as sent. A null value is refused.
    pub settings: Vec<(String, Option<String>)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NewTopicLayout {
    /// Numbers as sent: -1 stands for the broker's default.
    Counts {
        partition_count: i32,
        replication_factor: i16,
    },
    /// The replicas of each partition, chosen by the client.
    Assigned(Vec<(PartitionIndex, Vec<NodeId>)>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TopicSelector {
    Name(String),
    Id(TopicId),
}

/// A topic that is to have more partitions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewPartitions {
    pub name: String,
    /// How many it is to have in all.
    pub total_count: i32,
    /// The replicas of each new partition, if the client chose them.
    pub assignments: Option<Vec<Vec<NodeId>>>,
}

/// Whose settings are changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigResource {
    Topic(String),
    Broker(NodeId),
    /// What holds for every broker that does not say otherwise.
    AllBrokers,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigChange {
    pub resource: ConfigResource,
    pub settings: SettingsChange,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingsChange {
    Incremental(Vec<Alteration>),
    /// What is not named here goes back to its default (the older AlterConfigs).
    ReplaceAll(Vec<(String, Option<String>)>),
}

/// What a command led to. The order is the caller's duty: first the update goes to every shard, and only when each has followed it
/// `reply` is called, with what became of it; so a client that was told of a topic finds it everywhere.
pub struct Execution {
    pub update: Option<MetadataUpdate>,
    pub reply: Reply<Followed>,
}

/// A new image that is durable, and what it changed.
#[derive(Clone, Debug)]
pub struct MetadataUpdate {
    pub image: Arc<MetadataImage>,
    pub delta: Arc<MetadataDelta>,
}
