use std::collections::HashMap;

use super::command::NewPartitions;
use super::error::{CreatePartitionsError, LayoutError};
use super::layout::{assignment_of, check_room, one_replica_each};
use crate::config::BrokerConfig;
use crate::metadata::{MetadataImage, MetadataRecord, PartitionRecord};
use crate::model::NodeId;
use crate::model::internal_topic::is_internal;
use crate::model::limits::PARTITIONS_PER_TOPIC_MAX;

/// The record that gives each topic its new partitions, or why it cannot be.
pub(super) fn plan(
    image: &MetadataImage,
    config: &BrokerConfig,
    topics: &[NewPartitions],
) -> Vec<Result<MetadataRecord, CreatePartitionsError>> {
    let mut named: HashMap<&str, usize> = HashMap::new();
    for topic in topics {
        *named.entry(&topic.name).or_default() += 1;
    }
    let mut partition_count = image.partition_count();
    let mut plan_one = |wanted: &NewPartitions| {
        if named[wanted.name.as_str()] > 1 {
            return Err(CreatePartitionsError::Twice(wanted.name.clone()));
        }
        let Some(topic) = image.topic(&wanted.name) else {
            return Err(CreatePartitionsError::UnknownTopic(wanted.name.clone()));
        };
        if is_internal(&wanted.name) {
            return Err(CreatePartitionsError::Internal(wanted.name.clone()));
        }
        let current = topic.partition_count();
        if wanted.total_count <= current {
            let (topic, wanted) = (wanted.name.clone(), wanted.total_count);
            return Err(CreatePartitionsError::NoIncrease {
                topic,
                current,
                wanted,
            });
        }
        if wanted.total_count > PARTITIONS_PER_TOPIC_MAX {
            return Err(LayoutError::PartitionCount.into());
        }
        let more = wanted.total_count - current;
        check_room(partition_count, more as usize)?;
        let partitions = new_partitions(config.node_id, more, wanted.assignments.as_deref())?;
        partition_count += partitions.len();
        Ok(MetadataRecord::PartitionsAdded {
            topic_id: topic.id.0.as_u128(),
            partitions,
        })
    };
    topics.iter().map(&mut plan_one).collect()
}

fn new_partitions(
    node: NodeId,
    count: i32,
    assignments: Option<&[Vec<NodeId>]>,
) -> Result<Vec<PartitionRecord>, LayoutError> {
    match assignments {
        None => Ok(one_replica_each(node, count as usize)),
        Some(assignments) if assignments.len() == count as usize => assignments
            .iter()
            .map(|replicas| assignment_of(node, replicas))
            .collect(),
        Some(assignments) => Err(LayoutError::AssignmentCount {
            wanted: count,
            assigned: assignments.len(),
        }),
    }
}
