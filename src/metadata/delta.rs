use std::sync::Arc;

use super::image::MetadataImage;
use super::topic::{Partition, Topic};
use crate::model::TopicPartition;

/// What is different between an image and the one before: what a shard must do to follow.
#[derive(Clone, Debug, Default)]
pub struct MetadataDelta {
    pub topics: Vec<TopicChange>,
    /// Online settings of this broker or of all brokers changed, and with them perhaps every topic's defaults.
    pub broker_settings_changed: bool,
}

/// One topic before and after; at least one of them is there.
#[derive(Clone, Debug)]
pub struct TopicChange {
    pub before: Option<Arc<Topic>>,
    pub after: Option<Arc<Topic>>,
}

impl MetadataDelta {
    /// From nothing to `image`: what a shard does at start.
    pub fn from_nothing(image: &MetadataImage) -> Self {
        let topics = image
            .topics()
            .map(|topic| TopicChange {
                before: None,
                after: Some(topic.clone()),
            })
            .collect();
        Self {
            topics,
            broker_settings_changed: true,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.topics.is_empty() && !self.broker_settings_changed
    }
}

impl TopicChange {
    /// The partitions that are new, with the topic that they belong to.
    pub fn created_partitions(
        &self,
    ) -> impl Iterator<Item = (&Arc<Topic>, TopicPartition, &Partition)> {
        let first = self
            .before
            .as_ref()
            .map_or(0, |topic| topic.partition_count());
        let topic = self.after.as_ref();
        topic.into_iter().flat_map(move |topic| {
            topic
                .partitions_from(first)
                .map(move |(id, state)| (topic, id, state))
        })
    }

    /// The topic that is gone, with all its partitions.
    pub fn deleted(&self) -> Option<&Arc<Topic>> {
        if self.after.is_none() {
            self.before.as_ref()
        } else {
            None
        }
    }

    /// The topic, if its settings changed while it existed.
    pub fn reconfigured(&self) -> Option<&Arc<Topic>> {
        let (before, after) = (self.before.as_ref()?, self.after.as_ref()?);
        (before.overrides != after.overrides).then_some(after)
    }
}
