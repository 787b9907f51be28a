//! Following the cluster's metadata: partitions come, go and are reconfigured.
//!
//! A change is stored before a shard hears of it, so a shard never refuses one: its image always becomes the new one, and a partition
//! that cannot be opened waits apart (`pending_partitions`). After a crash a start brings directories and image together again.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use rustc_hash::FxHashSet;

use crate::config::{BrokerConfig, ConfigError, TopicConfig};
use crate::io::executor;
use crate::metadata::{MetadataDelta, MetadataImage, TopicChange};
use crate::model::limits::PENDING_PARTITIONS_RETRY_MS;
use crate::shard::call::ReplyTo;
use crate::shard::command::UnopenedPartition;
use crate::shard::hosted::HostedPartition;
use crate::shard::open_partition::{PartitionToOpen, log_settings};
use crate::shard::runtime::Shard;
use crate::storage::partition_directory::WithoutId;

/// One change, and who waits until this shard has followed it.
#[derive(Debug)]
pub struct MetadataChange {
    pub image: Arc<MetadataImage>,
    pub delta: Arc<MetadataDelta>,
    /// Told of the partitions that the change made and that could not be opened.
    pub reply: ReplyTo<Vec<UnopenedPartition>>,
}

impl Shard {
    /// Runs as long as the shard does: follows each change in its turn, and in between tries the partitions that wait.
    pub(super) async fn follow_metadata(self: Rc<Self>) {
        let retry_after = Duration::from_millis(PENDING_PARTITIONS_RETRY_MS);
        let mut retry_at = self.clock().monotonic() + retry_after;
        loop {
            let change = self.metadata_queue().next();
            let change = if self.pending().is_empty() {
                Some(change.await)
            } else {
                let wait = retry_at.since(self.clock().monotonic());
                executor::timeout(wait, change).await.ok()
            };
            if let Some(MetadataChange {
                image,
                delta,
                reply,
            }) = change
            {
                let unopened = self.follow(image, &delta).await;
                self.answer(reply, unopened);
            }
            if self.clock().monotonic() >= retry_at {
                if !self.pending().is_empty() {
                    self.open_pending().await;
                }
                retry_at = self.clock().monotonic() + retry_after;
            }
        }
    }

    /// Completes when every partition of the new image that belongs here is there or waits, and the deleted ones are gone.
    async fn follow(
        self: &Rc<Self>,
        image: Arc<MetadataImage>,
        delta: &MetadataDelta,
    ) -> Vec<UnopenedPartition> {
        let config = if delta.broker_settings_changed {
            // The controller has made the same of them, so that this cannot fail.
            online_config(&self.config(), &image).map_or_else(
                |error| {
                    tracing::error!(%error, "the settings set online do not hold together; those before stay");
                    self.config()
                },
                Arc::new,
            )
        } else {
            self.config()
        };
        self.delete_topics(delta).await;
        self.set_config(config.clone());
        let unopened = self.open_partitions(self.created_by(delta)).await;
        if let Some(first) = unopened.first() {
            tracing::error!(
                partitions = unopened.len(),
                reason = %first.why,
                "new partitions could not be opened: they answer KAFKA_STORAGE_ERROR and are tried again"
            );
        }
        self.set_image(image.clone());
        self.open_groups();
        self.forget_offsets_of(delta).await;
        if delta.broker_settings_changed {
            self.set_group_rules();
        }
        let reconfigured = delta.topics.iter().filter_map(TopicChange::reconfigured);
        let reconfigured: FxHashSet<_> = reconfigured.map(|topic| topic.id).collect();
        if reconfigured.is_empty() && !delta.broker_settings_changed {
            return unopened;
        }
        for partition in self.partitions() {
            executor::yield_if_needed().await;
            let Some(topic) = image.topic_by_id(partition.partition.topic) else {
                continue;
            };
            if !delta.broker_settings_changed && !reconfigured.contains(&topic.id) {
                continue;
            }
            match config.topic_config(&topic.overrides) {
                Ok(topic_config) => self.reconfigure(&partition, topic_config),
                Err(error) => tracing::error!(
                    topic = %topic.name,
                    %error,
                    "a topic's settings do not hold together; those before stay"
                ),
            }
        }
        unopened
    }

    /// The new partitions that belong here.
    fn created_by(&self, delta: &MetadataDelta) -> Vec<PartitionToOpen> {
        let created = delta.topics.iter().flat_map(|it| it.created_partitions());
        let created =
            created.filter(|(_, id, _)| self.router().owner_of(*id) == self.router().me());
        created
            .map(|(topic, partition, _)| PartitionToOpen {
                topic: topic.clone(),
                partition,
                without_id: WithoutId::Displace,
            })
            .collect()
    }

    fn reconfigure(&self, partition: &HostedPartition, config: TopicConfig) {
        partition.config.set(config);
        let mut leader = partition.leader.borrow_mut();
        leader.set_flush_messages(config.flush_message_count);
        leader.log_mut().set_settings(log_settings(&config));
    }
}

/// The broker's settings with what was set online.
pub fn online_config(
    config: &BrokerConfig,
    image: &MetadataImage,
) -> Result<BrokerConfig, ConfigError> {
    let cluster = image.broker_settings(None);
    let node = image.broker_settings(Some(config.node_id));
    config.with_online(&cluster, &node)
}
