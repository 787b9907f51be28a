use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;
use std::sync::Arc;

use super::cluster_id::ClusterId;
use super::delta::{MetadataDelta, TopicChange};
use super::record::{MetadataRecord, PartitionRecord};
use super::topic::{Partition, Topic};
use crate::config::Overrides;
use crate::model::{
    LeaderEpoch, NodeId, ProducerId, TopicId, TopicName, TopicNameError, TopicPartition,
};

/// What the cluster agreed on, at one moment. It never changes: `apply` makes the next one, which shares with this one
/// everything that stayed the same. A clone costs three reference counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetadataImage {
    cluster_id: ClusterId,
    ids: Arc<BTreeMap<TopicName, TopicId>>,
    topics: Arc<HashMap<TopicId, Arc<Topic>>>,
    broker_settings: Arc<BTreeMap<Option<NodeId>, Overrides>>,
    next_producer_id: ProducerId,
}

/// Why a record does not fit the image: the log was written by something else, or damaged in a way that its checksums do not
/// see.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    #[error("topic {0} does not exist")]
    NoSuchTopic(TopicId),
    #[error("topic {0} exists already")]
    TopicExists(String),
    #[error("a topic is named {name:?}: {reason}")]
    TopicName {
        name: String,
        reason: TopicNameError,
    },
    #[error("topic {0} has no partitions")]
    NoPartitions(String),
    #[error("producer ids go back from {from} to {to}")]
    ProducerIdsGoBack { from: ProducerId, to: i64 },
    #[error("the cluster was formed twice")]
    ClusterFormedTwice,
    #[error("the first record is not that of the cluster's forming")]
    NotFormed,
}

impl MetadataImage {
    /// A cluster without topics.
    pub fn new(cluster_id: ClusterId) -> Self {
        Self {
            cluster_id,
            ids: Arc::default(),
            topics: Arc::default(),
            broker_settings: Arc::default(),
            next_producer_id: ProducerId(0),
        }
    }

    /// The image that a cluster's records from its first one on build.
    pub fn from_records(records: &[MetadataRecord]) -> Result<Self, ApplyError> {
        match records {
            [MetadataRecord::ClusterFormed { cluster_id }, rest @ ..] => {
                Ok(Self::new(ClusterId::from_bits(*cluster_id)).apply(rest)?.0)
            }
            _ => Err(ApplyError::NotFormed),
        }
    }

    pub fn cluster_id(&self) -> ClusterId {
        self.cluster_id
    }

    pub fn topic(&self, name: &str) -> Option<&Arc<Topic>> {
        self.topic_by_id(*self.ids.get(name)?)
    }

    pub fn topic_by_id(&self, id: TopicId) -> Option<&Arc<Topic>> {
        self.topics.get(&id)
    }

    pub fn partition(&self, id: TopicPartition) -> Option<&Partition> {
        self.topic_by_id(id.topic)?.partition(id.partition)
    }

    pub fn topic_count(&self) -> usize {
        self.topics.len()
    }

    pub fn partition_count(&self) -> usize {
        self.topics
            .values()
            .map(|topic| topic.partitions.len())
            .sum()
    }

    /// In the order of their names.
    pub fn topics(&self) -> impl Iterator<Item = &Arc<Topic>> {
        self.ids.values().filter_map(|id| self.topics.get(id))
    }

    /// Those whose name is `first` or sorts behind it, in the order of their names.
    pub fn topics_from<'a>(&'a self, first: &str) -> impl Iterator<Item = &'a Arc<Topic>> {
        let range = self
            .ids
            .range::<str, _>((Bound::Included(first), Bound::Unbounded));
        range.filter_map(|(_, id)| self.topics.get(id))
    }

    /// What is set online for one broker, or (`None`) for all of them.
    pub fn broker_settings(&self, node: Option<NodeId>) -> Overrides {
        self.broker_settings.get(&node).cloned().unwrap_or_default()
    }

    /// Producer ids from this one up were never handed out.
    pub fn next_producer_id(&self) -> ProducerId {
        self.next_producer_id
    }

    /// The image after these records, and what they changed. Either all of them apply or none.
    pub fn apply(&self, records: &[MetadataRecord]) -> Result<(Self, MetadataDelta), ApplyError> {
        let mut next = self.clone();
        let mut touched = BTreeSet::new();
        let mut delta = MetadataDelta::default();
        for record in records {
            match next.apply_one(record)? {
                Touched::Topic(id) => drop(touched.insert(id.0)),
                Touched::BrokerSettings => delta.broker_settings_changed = true,
                Touched::ProducerIds => {}
            }
        }
        delta.topics = touched
            .into_iter()
            .map(|id| (self.topics.get(&TopicId(id)), next.topics.get(&TopicId(id))))
            .filter(|(before, after)| before.is_some() || after.is_some())
            .map(|(before, after)| TopicChange {
                before: before.cloned(),
                after: after.cloned(),
            })
            .collect();
        Ok((next, delta))
    }

    /// Records that build this image: the content of a snapshot.
    pub fn to_records(&self) -> Vec<MetadataRecord> {
        let mut records = vec![MetadataRecord::ClusterFormed {
            cluster_id: self.cluster_id.to_bits(),
        }];
        for (node, settings) in self.broker_settings.iter() {
            let node_id = node.map(|node| node.0);
            records.push(MetadataRecord::BrokerSettingsReplaced {
                node_id,
                settings: pairs(settings),
            });
        }
        records.extend(self.topics().map(|topic| MetadataRecord::TopicCreated {
            topic_id: topic.id.0.as_u128(),
            name: topic.name.as_str().into(),
            partitions: topic.partitions.iter().map(PartitionRecord::from).collect(),
            settings: pairs(&topic.overrides),
        }));
        records.push(MetadataRecord::ProducerIdsAllocated {
            next_producer_id: self.next_producer_id.0,
        });
        records
    }

    fn apply_one(&mut self, record: &MetadataRecord) -> Result<Touched, ApplyError> {
        match record {
            MetadataRecord::ClusterFormed { .. } => Err(ApplyError::ClusterFormedTwice),
            MetadataRecord::TopicCreated {
                topic_id,
                name,
                partitions,
                settings,
            } => {
                let id = topic_id_from(*topic_id);
                self.create_topic(id, name, partitions, settings)?;
                Ok(Touched::Topic(id))
            }
            MetadataRecord::TopicDeleted { topic_id } => {
                let id = topic_id_from(*topic_id);
                let topic = Arc::make_mut(&mut self.topics)
                    .remove(&id)
                    .ok_or(ApplyError::NoSuchTopic(id))?;
                Arc::make_mut(&mut self.ids).remove(topic.name.as_str());
                Ok(Touched::Topic(id))
            }
            MetadataRecord::PartitionsAdded {
                topic_id,
                partitions,
            } => {
                let id = topic_id_from(*topic_id);
                self.topic_mut(id)?
                    .partitions
                    .extend(partitions.iter().map(Partition::from));
                Ok(Touched::Topic(id))
            }
            MetadataRecord::TopicSettingsReplaced { topic_id, settings } => {
                let id = topic_id_from(*topic_id);
                self.topic_mut(id)?.overrides = settings.iter().cloned().collect();
                Ok(Touched::Topic(id))
            }
            MetadataRecord::BrokerSettingsReplaced { node_id, settings } => {
                let all = Arc::make_mut(&mut self.broker_settings);
                if settings.is_empty() {
                    all.remove(&node_id.map(NodeId));
                } else {
                    all.insert(node_id.map(NodeId), settings.iter().cloned().collect());
                }
                Ok(Touched::BrokerSettings)
            }
            MetadataRecord::ProducerIdsAllocated { next_producer_id } => {
                if *next_producer_id < self.next_producer_id.0 {
                    return Err(ApplyError::ProducerIdsGoBack {
                        from: self.next_producer_id,
                        to: *next_producer_id,
                    });
                }
                self.next_producer_id = ProducerId(*next_producer_id);
                Ok(Touched::ProducerIds)
            }
        }
    }

    fn create_topic(
        &mut self,
        id: TopicId,
        name: &str,
        partitions: &[PartitionRecord],
        settings: &[(String, String)],
    ) -> Result<(), ApplyError> {
        let name = TopicName::new(name).map_err(|reason| ApplyError::TopicName {
            name: name.into(),
            reason,
        })?;
        if self.ids.contains_key(&name) || self.topics.contains_key(&id) {
            return Err(ApplyError::TopicExists(name.to_string()));
        }
        if partitions.is_empty() {
            return Err(ApplyError::NoPartitions(name.to_string()));
        }
        let topic = Topic {
            id,
            name: name.clone(),
            partitions: partitions.iter().map(Partition::from).collect(),
            overrides: settings.iter().cloned().collect(),
        };
        Arc::make_mut(&mut self.ids).insert(name, id);
        Arc::make_mut(&mut self.topics).insert(id, Arc::new(topic));
        Ok(())
    }

    fn topic_mut(&mut self, id: TopicId) -> Result<&mut Topic, ApplyError> {
        let topic = Arc::make_mut(&mut self.topics)
            .get_mut(&id)
            .ok_or(ApplyError::NoSuchTopic(id))?;
        Ok(Arc::make_mut(topic))
    }
}

enum Touched {
    Topic(TopicId),
    BrokerSettings,
    ProducerIds,
}

fn topic_id_from(bits: u128) -> TopicId {
    TopicId(uuid::Uuid::from_u128(bits))
}

fn pairs(settings: &Overrides) -> Vec<(String, String)> {
    settings
        .iter()
        .map(|(name, value)| (name.into(), value.into()))
        .collect()
}

impl From<&Partition> for PartitionRecord {
    fn from(partition: &Partition) -> Self {
        Self {
            replicas: partition.replicas.iter().map(|node| node.0).collect(),
            isr: partition.isr.iter().map(|node| node.0).collect(),
            leader: partition.leader.map(|node| node.0),
            leader_epoch: partition.leader_epoch.0,
            partition_epoch: partition.partition_epoch,
        }
    }
}

impl From<&PartitionRecord> for Partition {
    fn from(record: &PartitionRecord) -> Self {
        Self {
            replicas: record.replicas.iter().copied().map(NodeId).collect(),
            isr: record.isr.iter().copied().map(NodeId).collect(),
            leader: record.leader.map(NodeId),
            leader_epoch: LeaderEpoch(record.leader_epoch),
            partition_epoch: record.partition_epoch,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::PartitionIndex;

    fn partitions(count: usize) -> Vec<PartitionRecord> {
        vec![PartitionRecord::from(&Partition::new(vec![NodeId(1)])); count]
    }

    fn created(id: u128, name: &str, partition_count: usize) -> MetadataRecord {
        let partitions = partitions(partition_count);
        MetadataRecord::TopicCreated {
            topic_id: id,
            name: name.into(),
            partitions,
            settings: Vec::new(),
        }
    }

    fn with_topics(records: &[MetadataRecord]) -> MetadataImage {
        MetadataImage::new(ClusterId::from_bits(1))
            .apply(records)
            .unwrap()
            .0
    }

    fn settings(value: &str) -> Vec<(String, String)> {
        vec![("retention.ms".into(), value.into())]
    }

    #[test]
    fn a_topic_is_found_by_name_and_by_id_until_it_is_deleted() {
        let image = with_topics(&[created(7, "b", 2), created(8, "a", 1)]);
        assert_eq!(image.topic("b").unwrap().id, topic_id_from(7));
        assert_eq!(
            image.topic_by_id(topic_id_from(8)).unwrap().name.as_str(),
            "a"
        );
        assert_eq!(
            image
                .topics()
                .map(|topic| topic.name.as_str())
                .collect::<Vec<_>>(),
            ["a", "b"]
        );
        assert_eq!(image.topics_from("aa").count(), 1);
        assert_eq!((image.topic_count(), image.partition_count()), (2, 3));
        let (after, delta) = image
            .apply(&[MetadataRecord::TopicDeleted { topic_id: 7 }])
            .unwrap();
        assert!(after.topic("b").is_none() && after.topic_by_id(topic_id_from(7)).is_none());
        assert_eq!(delta.topics[0].deleted().unwrap().name.as_str(), "b");
        assert!(image.topic("b").is_some(), "the image before is as it was");
    }

    #[test]
    fn a_new_partition_is_led_by_its_first_replica_at_epoch_0() {
        let image = with_topics(&[created(7, "t", 1)]);
        let id = TopicPartition {
            topic: topic_id_from(7),
            partition: PartitionIndex(0),
        };
        let partition = image.partition(id).unwrap();
        assert_eq!(
            (partition.leader, partition.leader_epoch),
            (Some(NodeId(1)), LeaderEpoch(0))
        );
        assert_eq!(partition.isr, partition.replicas);
        for absent in [-1, 1, i32::MAX] {
            assert!(
                image
                    .partition(TopicPartition {
                        partition: PartitionIndex(absent),
                        ..id
                    })
                    .is_none()
            );
        }
    }

    #[test]
    fn a_delta_says_what_a_shard_must_do() {
        let image = with_topics(&[created(7, "t", 2)]);
        let more = MetadataRecord::PartitionsAdded {
            topic_id: 7,
            partitions: partitions(2),
        };
        let (after, delta) = image.apply(&[more, created(8, "u", 1)]).unwrap();
        let new: Vec<_> = delta
            .topics
            .iter()
            .flat_map(|change| change.created_partitions())
            .collect();
        let names: Vec<_> = new
            .iter()
            .map(|(topic, id, _)| (topic.name.as_str(), id.partition.0))
            .collect();
        assert_eq!(names, [("t", 2), ("t", 3), ("u", 0)]);
        assert!(
            delta
                .topics
                .iter()
                .all(|change| change.reconfigured().is_none() && change.deleted().is_none())
        );

        let settings = MetadataRecord::TopicSettingsReplaced {
            topic_id: 7,
            settings: settings("5"),
        };
        let (_, delta) = after.apply(&[settings]).unwrap();
        assert_eq!(
            delta.topics[0]
                .reconfigured()
                .unwrap()
                .overrides
                .get("retention.ms"),
            Some("5")
        );
        assert_eq!(delta.topics[0].created_partitions().count(), 0);

        let start = MetadataDelta::from_nothing(&after);
        assert_eq!(
            start
                .topics
                .iter()
                .flat_map(|change| change.created_partitions())
                .count(),
            5
        );
    }

    #[test]
    fn a_topic_made_and_deleted_in_one_batch_leaves_no_change() {
        let records = [
            created(7, "t", 2),
            MetadataRecord::TopicDeleted { topic_id: 7 },
        ];
        let (_, delta) = MetadataImage::new(ClusterId::from_bits(1))
            .apply(&records)
            .unwrap();
        assert!(delta.is_empty());
    }

    #[test]
    fn a_topic_made_again_under_its_name_is_another_one() {
        let image = with_topics(&[created(7, "t", 2)]);
        let (after, delta) = image
            .apply(&[
                MetadataRecord::TopicDeleted { topic_id: 7 },
                created(8, "t", 1),
            ])
            .unwrap();
        assert_eq!(after.topic("t").unwrap().id, topic_id_from(8));
        assert_eq!(delta.topics.len(), 2);
    }

    #[test]
    fn records_that_do_not_fit_are_refused_and_change_nothing() {
        let image = with_topics(&[
            created(7, "t", 1),
            MetadataRecord::ProducerIdsAllocated {
                next_producer_id: 10,
            },
        ]);
        let refused = [
            created(8, "t", 1),
            created(7, "u", 1),
            created(8, "u", 0),
            created(8, "u/../v", 1),
            MetadataRecord::TopicDeleted { topic_id: 8 },
            MetadataRecord::PartitionsAdded {
                topic_id: 8,
                partitions: partitions(1),
            },
            MetadataRecord::ProducerIdsAllocated {
                next_producer_id: 9,
            },
            MetadataRecord::ClusterFormed { cluster_id: 1 },
        ];
        let before = image.clone();
        for record in refused {
            assert!(
                image.apply(&[created(9, "w", 1), record.clone()]).is_err(),
                "{record:?}"
            );
        }
        assert_eq!(image, before);
    }

    #[test]
    fn a_snapshots_records_build_the_same_image() {
        let image = with_topics(&[
            created(7, "t", 3),
            created(8, "u", 1),
            MetadataRecord::TopicSettingsReplaced {
                topic_id: 7,
                settings: settings("5"),
            },
            MetadataRecord::BrokerSettingsReplaced {
                node_id: Some(1),
                settings: settings("6"),
            },
            MetadataRecord::BrokerSettingsReplaced {
                node_id: None,
                settings: settings("7"),
            },
            MetadataRecord::ProducerIdsAllocated {
                next_producer_id: 2000,
            },
        ]);
        assert_eq!(
            MetadataImage::from_records(&image.to_records()),
            Ok(image.clone())
        );
        assert_eq!(image.broker_settings(None).get("retention.ms"), Some("7"));
        assert_eq!(
            MetadataImage::from_records(&image.to_records()[1..]),
            Err(ApplyError::NotFormed)
        );
    }
}
