//! Opening every partition at start: in parallel, with progress.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crossbeam::queue::SegQueue;

use crate::admin::{Phase, Readiness};
use crate::config::BrokerConfig;
use crate::metadata::MetadataImage;
use crate::shard::command::UnopenedPartition;
use crate::shard::open_partition::{OpenError, PartitionToOpen, RecoveredPartition};
use crate::storage::partition_directory::WithoutId;
use crate::storage::recovery::Recovered;

/// Where progress is shown.
pub trait Progress: Sync {
    /// One more of `all_count` partitions was dealt with; `None` if it could not be opened.
    fn partition_done(&self, done_count: usize, all_count: usize, recovered: Option<&Recovered>);

    /// Those were all; so many are open.
    fn all_done(&self, open_count: usize);
}

#[derive(Debug, thiserror::Error)]
pub enum RecoverAllError {
    #[error("partition {partition} of topic {topic}: {source}")]
    Partition {
        topic: String,
        partition: i32,
        source: OpenError,
    },
    #[error("topic {topic}: {reason}")]
    Config { topic: String, reason: String },
}

/// What became of the partitions of the image.
#[derive(Default)]
pub struct RecoveredAll {
    pub partitions: Vec<RecoveredPartition>,
    /// Those that the broker starts without, and tries again.
    pub unopened: Vec<UnopenedPartition>,
    /// Directories that had a partition's name and were not its.
    pub displaced: Vec<PathBuf>,
}

/// Recovers the directories of all partitions of `image`, on `thread_count` threads. Blocks; the log directory is then to be synced. A
/// full disk keeps a partition waiting. Any other error ends it: a broker that cannot read a partition does not start.
pub fn recover_all(
    log_dir: &Path,
    config: &BrokerConfig,
    image: &MetadataImage,
    thread_count: usize,
    readiness: &Readiness,
    progress: &dyn Progress,
) -> Result<RecoveredAll, RecoverAllError> {
    let work = SegQueue::new();
    for topic in image.topics() {
        for (partition, _) in topic.partitions_from(0) {
            work.push(PartitionToOpen {
                topic: topic.clone(),
                partition,
                without_id: WithoutId::Adopt,
            });
        }
    }
    let all_count = work.len();
    let done_count = AtomicUsize::new(0);
    let recover_some = || {
        let mut found = RecoveredAll::default();
        while let Some(to_open) = work.pop() {
            let recovered = open(log_dir, config, &to_open, &mut found)?;
            let done = done_count.fetch_add(1, Ordering::Relaxed) + 1;
            readiness.advance(Phase::Recovering {
                partitions_done: done,
                partitions_all: all_count,
            });
            progress.partition_done(done, all_count, recovered);
        }
        Ok(found)
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..thread_count.max(1))
            .map(|_| scope.spawn(recover_some))
            .collect();
        let mut all = RecoveredAll::default();
        for thread in threads {
            let some = thread
                .join()
                .expect("a panic in recovery ends the process")?;
            all.partitions.extend(some.partitions);
            all.unopened.extend(some.unopened);
            all.displaced.extend(some.displaced);
        }
        progress.all_done(all.partitions.len());
        Ok(all)
    })
}

/// What recovery found, if the partition is open.
fn open<'a>(
    log_dir: &Path,
    config: &BrokerConfig,
    to_open: &PartitionToOpen,
    found: &'a mut RecoveredAll,
) -> Result<Option<&'a Recovered>, RecoverAllError> {
    let PartitionToOpen {
        topic, partition, ..
    } = to_open;
    let topic_config =
        config
            .topic_config(&topic.overrides)
            .map_err(|error| RecoverAllError::Config {
                topic: topic.name.to_string(),
                reason: error.to_string(),
            })?;
    match to_open.open(log_dir, topic_config, 0, &mut found.displaced) {
        Ok(recovered) => {
            found.partitions.push(recovered);
            Ok(found.partitions.last().map(RecoveredPartition::recovered))
        }
        Err(error) if error.leaves_the_rest_sound() => {
            found.unopened.push(UnopenedPartition {
                partition: *partition,
                why: Arc::from(error.to_string()),
            });
            Ok(None)
        }
        Err(source) => Err(RecoverAllError::Partition {
            topic: topic.name.to_string(),
            partition: partition.partition.0,
            source,
        }),
    }
}
