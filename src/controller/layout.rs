use super::error::LayoutError;
use crate::metadata::{Partition, PartitionRecord};
use crate::model::NodeId;
use crate::model::limits::PARTITIONS_PER_BROKER_MAX;

/// New partitions, each with this node as its one replica.
pub(super) fn one_replica_each(node: NodeId, count: usize) -> Vec<PartitionRecord> {
    vec![PartitionRecord::from(&Partition::new(vec![node])); count]
}

/// A new partition with the replicas that a client chose, if they can be.
pub(super) fn assignment_of(
    node: NodeId,
    replicas: &[NodeId],
) -> Result<PartitionRecord, LayoutError> {
    for (position, replica) in replicas.iter().enumerate() {
        if *replica != node {
            return Err(LayoutError::UnknownBroker(*replica));
        }
        if replicas[..position].contains(replica) {
            return Err(LayoutError::BrokerTwice(*replica));
        }
    }
    match replicas {
        [] => Err(LayoutError::NoBroker),
        _ => Ok(PartitionRecord::from(&Partition::new(replicas.to_vec()))),
    }
}

/// Whether so many partitions more fit, before anything is made of them.
pub(super) fn check_room(partition_count: usize, more: usize) -> Result<(), LayoutError> {
    if partition_count + more > PARTITIONS_PER_BROKER_MAX {
        Err(LayoutError::TooManyPartitions)
    } else {
        Ok(())
    }
}
