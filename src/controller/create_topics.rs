use std::collections::HashMap;

use super::command::{NewTopic, NewTopicLayout};
use super::error::{CreateTopicError, LayoutError};
use super::layout::{assignment_of, check_room, one_replica_each};
use crate::config::{BrokerConfig, ConfigError, Overrides, check_topic_overrides};
use crate::metadata::{MetadataImage, MetadataRecord, PartitionRecord};
use crate::model::internal_topic::CLUSTER_METADATA_TOPIC;
use crate::model::limits::PARTITIONS_PER_TOPIC_MAX;
use crate::model::{NodeId, PartitionIndex, TopicId, TopicName};

/// The record that creates each topic, or why it cannot be.
pub(super) fn plan(
    image: &MetadataImage,
    config: &BrokerConfig,
    topics: &[NewTopic],
    mut next_id: impl FnMut() -> TopicId,
) -> Vec<Result<MetadataRecord, CreateTopicError>> {
    let mut named: HashMap<&str, usize> = HashMap::new();
    for topic in topics {
        *named.entry(&topic.name).or_default() += 1;
    }
    let mut partition_count = image.partition_count();
    let mut dotted = DottedNames::of(image, topics);
    let mut plan_one = |topic: &NewTopic| {
        let name = TopicName::new(&topic.name)?;
        if named[topic.name.as_str()] > 1 {
            return Err(CreateTopicError::Twice(topic.name.clone()));
        }
        if image.topic(name.as_str()).is_some() {
            return Err(CreateTopicError::Exists(topic.name.clone()));
        }
        if name.as_str() == CLUSTER_METADATA_TOPIC {
            return Err(CreateTopicError::ClusterMetadata);
        }
        if let Some(other) = dotted.collision(&topic.name) {
            return Err(CreateTopicError::Collides {
                name: topic.name.clone(),
                other: other.clone(),
            });
        }
        let partitions = layout(config, &topic.layout, partition_count)?;
        let overrides = overrides(&topic.settings)?;
        partition_count += partitions.len();
        dotted.add(&topic.name);
        Ok(MetadataRecord::TopicCreated {
            topic_id: next_id().0.as_u128(),
            name: topic.name.clone(),
            partitions,
            settings: overrides
                .iter()
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
        })
    };
    topics.iter().map(&mut plan_one).collect()
}

/// A topic id as Kafka draws them: random, and not beginning with `-` where it is written in base64, which a command line would
/// take for an option.
pub(super) fn random_topic_id() -> TopicId {
    const DASH: u128 = 62;
    loop {
        let id = uuid::Uuid::new_v4();
        if id.as_u128() >> 122 != DASH {
            return TopicId(id);
        }
    }
}

/// Names with '.' or '_' in them, by what they are with '_' alone: Kafka's tools make the names of their metrics that way, so two topics may
/// not have the same one.
struct DottedNames(HashMap<String, String>);

impl DottedNames {
    /// Those of the topics that are there; none where no wanted name could collide with them.
    fn of(image: &MetadataImage, wanted: &[NewTopic]) -> Self {
        let mut names = Self(HashMap::new());
        if wanted.iter().any(|topic| has_dots(&topic.name)) {
            image
                .topics()
                .for_each(|topic| names.add(topic.name.as_str()));
        }
        names
    }

    fn add(&mut self, name: &str) {
        if has_dots(name) {
            self.0.insert(without_dots(name), name.to_owned());
        }
    }

    /// The other name that this one cannot be told from.
    fn collision(&self, name: &str) -> Option<&String> {
        match has_dots(name) {
            true => self.0.get(&without_dots(name)),
            false => None,
        }
    }
}

fn has_dots(name: &str) -> bool {
    name.contains(['.', '_'])
}

fn without_dots(name: &str) -> String {
    name.replace('.', "_")
}

/// `present` partitions are there already.
fn layout(
    config: &BrokerConfig,
    layout: &NewTopicLayout,
    present: usize,
) -> Result<Vec<PartitionRecord>, LayoutError> {
    match layout {
        NewTopicLayout::Counts {
            partition_count,
            replication_factor,
        } => {
            let partition_count = if *partition_count == -1 {
                config.num_partitions
            } else {
                *partition_count
            };
            if !(1..=PARTITIONS_PER_TOPIC_MAX).contains(&partition_count) {
                return Err(LayoutError::PartitionCount);
            }
            check_replication_factor(config, *replication_factor)?;
            check_room(present, partition_count as usize)?;
            Ok(one_replica_each(config.node_id, partition_count as usize))
        }
        NewTopicLayout::Assigned(assigned) => {
            check_room(present, assigned.len())?;
            assigned_layout(config.node_id, assigned)
        }
    }
}

fn check_replication_factor(config: &BrokerConfig, wanted: i16) -> Result<(), LayoutError> {
    let wanted = if wanted == -1 {
        config.default_replication_factor
    } else {
        wanted
    };
    match wanted {
        1 => Ok(()),
        2.. => Err(LayoutError::TooFewBrokers { wanted, brokers: 1 }),
        _ => Err(LayoutError::ReplicationFactor),
    }
}

fn assigned_layout(
    node: NodeId,
    assigned: &[(PartitionIndex, Vec<NodeId>)],
) -> Result<Vec<PartitionRecord>, LayoutError> {
    if assigned.is_empty() || assigned.len() > PARTITIONS_PER_TOPIC_MAX as usize {
        return Err(LayoutError::PartitionCount);
    }
    let mut by_index: Vec<Option<PartitionRecord>> = vec![None; assigned.len()];
    for (index, replicas) in assigned {
        let record = assignment_of(node, replicas)?;
        // An index past the end means that a lower one is missing or stands twice; the gap is the clearer answer.
        let Ok(position) = usize::try_from(index.0) else {
            return Err(LayoutError::AssignmentIndex(index.0));
        };
        if let Some(place) = by_index.get_mut(position)
            && place.replace(record).is_some()
        {
            return Err(LayoutError::AssignmentIndex(index.0));
        }
    }
    let gap = |position| LayoutError::AssignmentGap(position as i32);
    by_index
        .into_iter()
        .enumerate()
        .map(|(position, record)| record.ok_or_else(|| gap(position)))
        .collect()
}

fn overrides(settings: &[(String, Option<String>)]) -> Result<Overrides, ConfigError> {
    let mut overrides = Overrides::default();
    for (name, value) in settings {
        if overrides.get(name).is_some() {
            return Err(ConfigError::Twice(name.clone()));
        }
        let value = value
            .as_deref()
            .ok_or_else(|| ConfigError::NoValue(name.clone()))?;
        overrides.set(name, value);
    }
    check_topic_overrides(&overrides)?;
    Ok(overrides)
}
