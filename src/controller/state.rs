use std::path::Path;
use std::sync::Arc;

use super::command::{
    ConfigChange, ControllerCommand, Execution, MetadataUpdate, NewPartitions, NewTopic, Reply,
    TopicSelector,
};
use super::data_directory::{self, DataDirectoryError};
use super::error::{
    AlterConfigError, CreatePartitionsError, CreateTopicError, DeleteTopicError, NotStored,
    ProducerIdError,
};
use super::followed::{Followed, NotFollowed};
use super::metadata_log::MetadataLog;
use super::{alter_configs, create_partitions, create_topics, delete_topics};
use crate::config::{BrokerConfig, ConfigError};
use crate::metadata::{MetadataImage, MetadataRecord, Topic};
use crate::model::ProducerId;
use crate::model::limits::PRODUCER_ID_BLOCK_COUNT;

/// Decides every change of the metadata, one after the other, and makes it durable before anybody hears of it. It blocks while
/// it writes, so it runs where that harms nobody.
pub struct Controller {
    /// As the properties file and the online settings make it.
    config: BrokerConfig,
    image: Arc<MetadataImage>,
    log: MetadataLog,
    /// What the command that is being executed changed.
    update: Option<MetadataUpdate>,
    /// The ids that were set aside and not yet handed out: from the first up to, but without, the second.
    producer_ids: (i64, i64),
}

#[derive(Debug, thiserror::Error)]
pub enum ControllerError {
    #[error(transparent)]
    DataDirectory(#[from] DataDirectoryError),
    #[error("a setting that was stored online cannot hold any more: {0}")]
    OnlineSettings(#[from] ConfigError),
}

impl Controller {
    /// Opens the metadata in the data directory, or makes it in a new one. `config` is what the properties file says.
    pub fn open(data: &Path, config: &BrokerConfig) -> Result<Self, ControllerError> {
        let (log, image) = data_directory::open(
            data,
            config.node_id,
            config.metadata_snapshot_interval_bytes,
        )?;
        let config = with_online(config, &image)?;
        let next = image.next_producer_id().0;
        Ok(Self {
            config,
            image: Arc::new(image),
            log,
            update: None,
            producer_ids: (next, next),
        })
    }

    /// The image that is durable now.
    pub fn image(&self) -> &Arc<MetadataImage> {
        &self.image
    }

    /// The settings in effect now: the properties file with the online settings over it.
    pub fn config(&self) -> &BrokerConfig {
        &self.config
    }

    /// Does one command. It blocks until the change is durable.
    pub fn execute(&mut self, command: ControllerCommand) -> Execution {
        let reply: Reply<Followed> = match command {
            ControllerCommand::CreateTopics {
                topics,
                validate_only,
                reply,
            } => {
                let results = self.create_topics(&topics, validate_only);
                Box::new(move |followed| reply(in_effect(results, &followed)))
            }
            ControllerCommand::DeleteTopics { topics, reply } => {
                let results = self.delete_topics(&topics);
                Box::new(move |followed| reply(in_effect(results, &followed)))
            }
            ControllerCommand::CreatePartitions {
                topics,
                validate_only,
                reply,
            } => {
                let results = self.create_partitions(&topics, validate_only);
                Box::new(move |followed| {
                    let results = in_effect(results, &followed).into_iter();
                    reply(results.map(|result| result.map(drop)).collect());
                })
            }
            ControllerCommand::AlterConfigs {
                changes,
                validate_only,
                reply,
            } => {
                let results = self.alter_configs(&changes, validate_only);
                Box::new(move |_| reply(results))
            }
            ControllerCommand::AllocateProducerId { reply } => {
                let result = self.allocate_producer_id();
                Box::new(move |_| reply(result))
            }
        };
        Execution {
            update: self.update.take(),
            reply,
        }
    }

    fn create_topics(
        &mut self,
        topics: &[NewTopic],
        validate_only: bool,
    ) -> Vec<Result<Arc<Topic>, CreateTopicError>> {
        let plans = create_topics::plan(
            &self.image,
            &self.config,
            topics,
            create_topics::random_topic_id,
        );
        let committed = self.commit(plans.iter().flatten().cloned().collect(), validate_only);
        let created = |name: &str| {
            let image = committed.as_ref().map_err(Clone::clone)?;
            Ok(image
                .topic(name)
                .expect("a topic that was created is in the image")
                .clone())
        };
        let results = topics.iter().zip(plans);
        results
            .map(|(topic, plan)| plan.and_then(|_| created(&topic.name)))
            .collect()
    }

    fn delete_topics(
        &mut self,
        topics: &[TopicSelector],
    ) -> Vec<Result<Arc<Topic>, DeleteTopicError>> {
        let plans = delete_topics::plan(&self.image, &self.config, topics);
        let deletions = plans.iter().flatten();
        let records = deletions
            .map(|topic| MetadataRecord::TopicDeleted {
                topic_id: topic.id.0.as_u128(),
            })
            .collect();
        let committed = self.commit(records, false).map(drop);
        plans
            .into_iter()
            .map(|plan| plan.and_then(|topic| stored(&committed, topic)))
            .collect()
    }

    fn create_partitions(
        &mut self,
        topics: &[NewPartitions],
        validate_only: bool,
    ) -> Vec<Result<Arc<Topic>, CreatePartitionsError>> {
        let plans = create_partitions::plan(&self.image, &self.config, topics);
        let committed = self.commit(plans.iter().flatten().cloned().collect(), validate_only);
        let grown = |name: &str| {
            let image = committed.as_ref().map_err(Clone::clone)?;
            Ok(image
                .topic(name)
                .expect("a topic that got partitions is in the image")
                .clone())
        };
        let results = topics.iter().zip(plans);
        results
            .map(|(topic, plan)| plan.and_then(|_| grown(&topic.name)))
            .collect()
    }

    fn alter_configs(
        &mut self,
        changes: &[ConfigChange],
        validate_only: bool,
    ) -> Vec<Result<(), AlterConfigError>> {
        let plans = alter_configs::plan(&self.image, &self.config, changes);
        let records = plans.iter().flatten().flatten().cloned().collect();
        let committed = self.commit(records, validate_only).map(drop);
        plans
            .into_iter()
            .map(|plan| plan.and_then(|_| stored(&committed, ())))
            .collect()
    }

    fn allocate_producer_id(&mut self) -> Result<ProducerId, ProducerIdError> {
        let (next, end) = self.producer_ids;
        if next == end {
            let block_end = next
                .checked_add(PRODUCER_ID_BLOCK_COUNT)
                .ok_or(ProducerIdError::Exhausted)?;
            self.commit(
                vec![MetadataRecord::ProducerIdsAllocated {
                    next_producer_id: block_end,
                }],
                false,
            )?;
            self.producer_ids.1 = block_end;
        }
        self.producer_ids.0 = next + 1;
        Ok(ProducerId(next))
    }

    /// The image after these records: durable and in effect, unless it was only asked what would be.
    fn commit(
        &mut self,
        records: Vec<MetadataRecord>,
        validate_only: bool,
    ) -> Result<Arc<MetadataImage>, NotStored> {
        let (image, delta) = self
            .image
            .apply(&records)
            .expect("a planned change fits the image that it was planned on");
        let image = Arc::new(image);
        if validate_only || records.is_empty() {
            return Ok(image);
        }
        self.log.append(&records).map_err(|error| {
            tracing::error!(%error, "a change of the metadata could not be stored");
            NotStored(Arc::new(error))
        })?;
        if delta.broker_settings_changed {
            self.config =
                with_online(&self.config, &image).expect("online settings are checked one by one");
        }
        self.log.compact_if_long(&image);
        self.image = image.clone();
        self.update = Some(MetadataUpdate {
            image: image.clone(),
            delta: Arc::new(delta),
        });
        Ok(image)
    }
}

fn with_online(config: &BrokerConfig, image: &MetadataImage) -> Result<BrokerConfig, ConfigError> {
    config.with_online(
        &image.broker_settings(None),
        &image.broker_settings(Some(config.node_id)),
    )
}

/// The results, less those that are stored but not in effect.
fn in_effect<E: From<NotFollowed>>(
    results: Vec<Result<Arc<Topic>, E>>,
    followed: &Followed,
) -> Vec<Result<Arc<Topic>, E>> {
    let check = |topic: Arc<Topic>| followed.check(topic.id).map(|()| topic).map_err(E::from);
    results
        .into_iter()
        .map(|result| result.and_then(check))
        .collect()
}

fn stored<T, E: From<NotStored>>(committed: &Result<(), NotStored>, value: T) -> Result<T, E> {
    committed.clone().map(|()| value).map_err(E::from)
}

#[cfg(test)]
mod tests;
