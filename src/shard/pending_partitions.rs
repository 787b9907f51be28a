//! Partitions of the image that belong here and are not hosted, because their directories could not be made or read: on a full disk
//! mostly. They answer that, and are tried again until they can be.

use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::config::TopicConfig;
use crate::io::{blocking, dir};
use crate::model::TopicPartition;
use crate::shard::command::{PartitionError, UnopenedPartition};
use crate::shard::hosted::HostedPartition;
use crate::shard::log_dir::LogDir;
use crate::shard::open_partition::{OpenError, PartitionToOpen, RecoveredPartition};
use crate::shard::runtime::Shard;
use crate::shard::stray_directories::tell_of_strays;
use crate::storage::partition_directory::WithoutId;

#[derive(Debug, Default)]
pub struct PendingPartitions {
    waiting: RefCell<FxHashMap<TopicPartition, Pending>>,
}

#[derive(Debug)]
struct Pending {
    without_id: WithoutId,
    why: Arc<str>,
}

impl PendingPartitions {
    pub fn len(&self) -> usize {
        self.waiting.borrow().len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Why the partition waits, if it does.
    pub fn why(&self, id: TopicPartition) -> Option<Arc<str>> {
        self.waiting.borrow().get(&id).map(|it| it.why.clone())
    }

    pub fn insert(&self, id: TopicPartition, without_id: WithoutId, why: Arc<str>) {
        self.waiting
            .borrow_mut()
            .insert(id, Pending { without_id, why });
    }

    /// Whether it waited.
    pub fn remove(&self, id: TopicPartition) -> bool {
        self.waiting.borrow_mut().remove(&id).is_some()
    }

    fn all(&self) -> Vec<(TopicPartition, WithoutId)> {
        let waiting = self.waiting.borrow();
        waiting
            .iter()
            .map(|(id, it)| (*id, it.without_id))
            .collect()
    }
}

/// What became of several partitions that were to be opened.
struct Opened {
    hosted: Vec<RecoveredPartition>,
    failed: Vec<(PartitionToOpen, Arc<str>)>,
    displaced: Vec<PathBuf>,
}

impl Shard {
    /// The partition, or why it does not answer here.
    pub(super) fn hosted(&self, id: TopicPartition) -> Result<Rc<HostedPartition>, PartitionError> {
        self.partition(id)
            .ok_or_else(|| match self.pending().why(id) {
                Some(why) => PartitionError::NotOpened(why),
                None => PartitionError::Unknown(id),
            })
    }

    /// Opens and hosts these partitions; those that cannot be opened wait, and come back with the reason.
    pub(super) async fn open_partitions(
        self: &Rc<Self>,
        wanted: Vec<PartitionToOpen>,
    ) -> Vec<UnopenedPartition> {
        if wanted.is_empty() {
            return Vec::new();
        }
        let config = self.config();
        let wanted = wanted.into_iter().map(|it| {
            let topic_config = config.topic_config(&it.topic.overrides);
            (it, topic_config.map_err(OpenError::from))
        });
        let wanted: Vec<_> = wanted.collect();
        let log_dir = self.log_dir().clone();
        let now_ns = self.clock().monotonic().as_ns();
        let opened = blocking::run(move || open_all(wanted, &log_dir, now_ns)).await;
        let Opened {
            hosted,
            failed,
            displaced,
        } = opened;
        tell_of_strays(&displaced);
        self.remove_strays_later(displaced);
        for partition in hosted {
            self.pending().remove(partition.partition());
            self.host_recovered(partition);
        }
        let unopened = failed.into_iter().map(|(it, why)| {
            let partition = it.partition;
            self.pending().insert(partition, it.without_id, why.clone());
            UnopenedPartition { partition, why }
        });
        unopened.collect()
    }

    /// Tries those that wait once more.
    pub(super) async fn open_pending(self: &Rc<Self>) {
        if self.log_dir().failure().is_some() || self.is_stopping() {
            return;
        }
        let image = self.image();
        let waiting = self.pending().all().into_iter();
        let wanted = waiting.filter_map(|(partition, without_id)| {
            Some(PartitionToOpen {
                topic: image.topic_by_id(partition.topic)?.clone(),
                partition,
                without_id,
            })
        });
        let wanted: Vec<_> = wanted.collect();
        let wanted_count = wanted.len();
        let opened_count = wanted_count - self.open_partitions(wanted).await.len();
        if opened_count > 0 {
            tracing::info!(
                partitions = opened_count,
                waiting = self.pending().len(),
                "partitions that could not be opened are open now"
            );
            self.open_groups();
        }
    }
}

/// Blocks. A shortage that one partition has met is not looked for again by the others.
fn open_all(
    wanted: Vec<(PartitionToOpen, Result<TopicConfig, OpenError>)>,
    log_dir: &LogDir,
    now_ns: u64,
) -> Opened {
    let mut opened = Opened {
        hosted: Vec::with_capacity(wanted.len()),
        failed: Vec::new(),
        displaced: Vec::new(),
    };
    let mut hosted_of = Vec::with_capacity(wanted.len());
    let mut shortage: Option<Arc<str>> = None;
    for (partition, config) in wanted {
        if let Some(why) = &shortage {
            opened.failed.push((partition, why.clone()));
            continue;
        }
        let found = config.and_then(|config| {
            partition.open(log_dir.path(), config, now_ns, &mut opened.displaced)
        });
        match found {
            Ok(found) => {
                opened.hosted.push(found);
                hosted_of.push(partition);
            }
            Err(error) => {
                let why: Arc<str> = error.to_string().into();
                if error.is_of_a_broken_disk() {
                    log_dir.fail(&error);
                } else if error.is_shortage() {
                    shortage = Some(why.clone());
                }
                opened.failed.push((partition, why));
            }
        }
    }
    if (opened.hosted.is_empty() && opened.displaced.is_empty()) || log_dir.failure().is_some() {
        return opened;
    }
    // Their names survive a power cut before anything in them is confirmed.
    if let Err(error) = dir::sync_dir(log_dir.path()) {
        // In a shortage nothing was asked of the disk: they are tried again.
        if error.shortage().is_none() {
            log_dir.fail(&error);
        }
        let why: Arc<str> = error.to_string().into();
        opened.hosted.clear();
        let failed = hosted_of.into_iter().map(|it| (it, why.clone()));
        opened.failed.extend(failed);
    }
    opened
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{PartitionIndex, TopicId};

    #[test]
    fn a_partition_waits_until_it_is_taken_out_with_the_newest_reason() {
        let pending = PendingPartitions::default();
        let id = |partition| TopicPartition {
            topic: TopicId(uuid::Uuid::from_u128(1)),
            partition: PartitionIndex(partition),
        };
        assert!(pending.is_empty());
        for why in ["full", "still full"] {
            pending.insert(id(0), WithoutId::Displace, why.into());
        }
        assert_eq!(pending.why(id(0)).as_deref(), Some("still full"));
        assert_eq!(pending.why(id(1)), None);
        assert_eq!(pending.all(), [(id(0), WithoutId::Displace)]);
        assert!(pending.remove(id(0)) && !pending.remove(id(0)));
        assert!(pending.is_empty());
    }
}
