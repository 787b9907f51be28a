//! Opening every partition at start: in parallel, with progress.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crossbeam::queue::SegQueue;

use crate::admin::{Phase, Readiness};
use crate::config::BrokerConfig;
use crate::metadata::{MetadataImage, Topic};
use crate::model::TopicPartition;
use crate::shard::metadata::{OpenError, RecoveredPartition};

/// Where progress is shown.
pub trait Progress: Sync {
    fn partition_done(&self, done_count: usize, all_count: usize, bytes_scanned: u64);
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

struct Work {
    topic: Arc<Topic>,
    partition: TopicPartition,
}

/// Recovers the directories of all partitions of `image`, on `thread_count` threads. Blocks. The first error ends it: a broker that
/// cannot open a partition does not start.
pub fn recover_all(
    log_dir: &Path,
    config: &BrokerConfig,
    image: &MetadataImage,
    thread_count: usize,
    readiness: &Readiness,
    progress: &dyn Progress,
) -> Result<Vec<RecoveredPartition>, RecoverAllError> {
    let work = SegQueue::new();
    for topic in image.topics() {
        for (partition, _) in topic.partitions_from(0) {
            work.push(Work {
                topic: topic.clone(),
                partition,
            });
        }
    }
    let all_count = work.len();
    let done_count = AtomicUsize::new(0);
    let recover_some =
        || {
            let mut found = Vec::new();
            while let Some(Work { topic, partition }) = work.pop() {
                let topic_config = config.topic_config(&topic.overrides).map_err(|error| {
                    RecoverAllError::Config {
                        topic: topic.name.to_string(),
                        reason: error.to_string(),
                    }
                })?;
                let recovered =
                    RecoveredPartition::recover(log_dir, &topic, partition, topic_config, 0)
                        .map_err(|source| RecoverAllError::Partition {
                            topic: topic.name.to_string(),
                            partition: partition.partition.0,
                            source,
                        })?;
                let done = done_count.fetch_add(1, Ordering::Relaxed) + 1;
                readiness.advance(Phase::Recovering {
                    partitions_done: done,
                    partitions_all: all_count,
                });
                progress.partition_done(done, all_count, recovered.recovered().bytes_scanned);
                found.push(recovered);
            }
            Ok(found)
        };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..thread_count.max(1))
            .map(|_| scope.spawn(recover_some))
            .collect();
        let mut all = Vec::with_capacity(all_count);
        for thread in threads {
            all.extend(
                thread
                    .join()
                    .expect("a panic in recovery ends the process")?,
            );
        }
        Ok(all)
    })
}
