use crate::config::Overrides;
use crate::model::{LeaderEpoch, NodeId, PartitionIndex, TopicId, TopicName, TopicPartition};

/// What the cluster agreed on about one topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topic {
    pub id: TopicId,
    pub name: TopicName,
    /// By partition index; at least one.
    pub partitions: Vec<Partition>,
    /// The settings that were set for this topic.
    pub overrides: Overrides,
}

impl Topic {
    pub fn partition(&self, index: PartitionIndex) -> Option<&Partition> {
        self.partitions.get(usize::try_from(index.0).ok()?)
    }

    pub fn partition_count(&self) -> i32 {
        self.partitions.len() as i32
    }

    /// How many replicas each partition was created with.
    pub fn replication_factor(&self) -> i16 {
        self.partitions
            .first()
            .map_or(0, |partition| partition.replicas.len() as i16)
    }

    /// The partitions from `first` up, with their ids.
    pub fn partitions_from(
        &self,
        first: i32,
    ) -> impl Iterator<Item = (TopicPartition, &Partition)> {
        let topic = self.id;
        let id = move |index: usize| TopicPartition {
            topic,
            partition: PartitionIndex(index as i32),
        };
        let partitions = self.partitions.iter().enumerate();
        partitions
            .skip(first.max(0) as usize)
            .map(move |(index, partition)| (id(index), partition))
    }
}

/// What the cluster agreed on about one partition: who has it, who is in sync, who leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// The preferred leader first.
    pub replicas: Vec<NodeId>,
    pub isr: Vec<NodeId>,
    /// `None` while nobody can lead.
    pub leader: Option<NodeId>,
    /// Rises with every new leader.
    pub leader_epoch: LeaderEpoch,
    /// Rises with every change of this partition; what an ISR change must carry to be accepted.
    pub partition_epoch: i32,
}

impl Partition {
    /// A new partition: all its replicas are in sync, for there is nothing to have missed, and the first one leads.
    pub fn new(replicas: Vec<NodeId>) -> Self {
        Self {
            isr: replicas.clone(),
            leader: replicas.first().copied(),
            replicas,
            leader_epoch: LeaderEpoch::FIRST,
            partition_epoch: 0,
        }
    }
}
