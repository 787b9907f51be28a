//! Opening a partition: its directory is claimed, its log is recovered, and it is hosted.

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use crate::config::{ConfigError, TopicConfig};
use crate::io::fs;
use crate::metadata::Topic;
use crate::model::limits::PAGE_BYTES;
use crate::model::{LeaderEpoch, TopicName, TopicPartition};
use crate::partition::leader::Leader;
use crate::shard::hosted::{Checkpointed, HostedPartition};
use crate::shard::runtime::Shard;
use crate::storage::active_segment::RollRules;
use crate::storage::file_error::FileError;
use crate::storage::log::{Log, LogSettings};
use crate::storage::offset_index::OFFSET_INDEX_ENTRY_BYTES;
use crate::storage::partition_directory::{ClaimError, PartitionDirectory, WithoutId};
use crate::storage::recovery::{FoundLog, Recovered, RecoveryError, RecoveryRules, recover};
use crate::storage::segment_name::{SegmentFileKind, SegmentFileName};
use crate::storage::segment_times::SegmentTimes;

/// A partition of the image that is not hosted yet.
#[derive(Clone, Debug)]
pub struct PartitionToOpen {
    pub topic: Arc<Topic>,
    pub partition: TopicPartition,
    pub without_id: WithoutId,
}

/// A partition that recovery has read, on its way to the shard that will host it.
pub struct RecoveredPartition {
    partition: TopicPartition,
    topic: TopicName,
    epoch: LeaderEpoch,
    in_sync_count: u32,
    config: TopicConfig,
    directory: PathBuf,
    recovered: Recovered,
    active_times: SegmentTimes,
    tail_page: Box<[u8]>,
}

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(transparent)]
    Claim(#[from] ClaimError),
    #[error(transparent)]
    Recovery(#[from] RecoveryError),
    #[error(transparent)]
    File(#[from] FileError),
    #[error("its settings: {0}")]
    Settings(#[from] ConfigError),
}

impl OpenError {
    fn file_error(&self) -> Option<&FileError> {
        match self {
            Self::Claim(ClaimError::File(error))
            | Self::Recovery(RecoveryError::File(error))
            | Self::File(error) => Some(error),
            _ => None,
        }
    }

    /// Whether a later attempt may succeed by itself: the disk is full, or something else is used up.
    pub fn is_shortage(&self) -> bool {
        self.file_error()
            .is_some_and(|error| error.shortage().is_some())
    }

    /// Whether it is no fault of the partition's files: a start goes on without the partition.
    pub fn leaves_the_rest_sound(&self) -> bool {
        self.is_shortage() || matches!(self, Self::Claim(ClaimError::Foreign(_)))
    }

    /// Whether the disk can no longer be trusted.
    pub fn is_of_a_broken_disk(&self) -> bool {
        self.file_error()
            .is_some_and(FileError::is_of_a_broken_disk)
    }
}

impl PartitionToOpen {
    /// Claims the partition's directory and recovers what is in it; what was in the way is put into `displaced`. Blocks, and may read
    /// much after a crash. The log directory is then to be synced, before the partition is hosted.
    pub fn open(
        &self,
        log_dir: &Path,
        config: TopicConfig,
        now_ns: u64,
        displaced: &mut Vec<PathBuf>,
    ) -> Result<RecoveredPartition, OpenError> {
        let Self {
            topic, partition, ..
        } = self;
        let state = topic
            .partition(partition.partition)
            .expect("a topic has its partitions");
        let in_sync_count = u32::try_from(state.isr.len()).expect("replicas are few");
        let directory = PartitionDirectory::new(log_dir, &topic.name, *partition);
        directory.claim(self.without_id, displaced)?;
        let directory = directory.path().to_owned();
        let rules = RecoveryRules {
            index_interval_bytes: config.index_interval_bytes,
            now_ns,
        };
        let recovered = recover(&directory, *partition, &rules)?;
        let tail_page = read_tail_page(&directory, &recovered)?;
        let active = &recovered.active;
        let active_times =
            SegmentTimes::read(&active_path(&directory, &recovered), active.size_bytes)?;
        Ok(RecoveredPartition {
            partition: *partition,
            topic: topic.name.clone(),
            epoch: state.leader_epoch,
            in_sync_count,
            config,
            directory,
            recovered,
            active_times,
            tail_page,
        })
    }
}

impl RecoveredPartition {
    pub fn partition(&self) -> TopicPartition {
        self.partition
    }

    /// What recovery did, for the log.
    pub fn recovered(&self) -> &Recovered {
        &self.recovered
    }
}

impl Shard {
    /// Hosts what recovery found.
    pub fn host_recovered(&self, found: RecoveredPartition) {
        let RecoveredPartition {
            partition,
            topic,
            epoch,
            in_sync_count,
            config,
            directory,
            recovered,
            active_times,
            tail_page,
        } = found;
        let checkpointed = Checkpointed {
            offset: recovered.recovery_point.offset,
            at: self.clock().monotonic(),
            size_bytes: 0,
        };
        let found = FoundLog {
            start: recovered.log_start_offset,
            end: recovered.log_end_offset,
            sealed: recovered.sealed,
            active: recovered.active,
            active_times,
            epochs: recovered.leader_epochs,
            tail_page,
        };
        let log = Log::open(
            self.next_log_id(),
            directory,
            log_settings(&config),
            self.pool().clone(),
            found,
        );
        let checkpointed = Checkpointed {
            size_bytes: log.size_bytes(),
            ..checkpointed
        };
        let leader = Leader::new(epoch, log, recovered.producers, config.flush_message_count);
        let hosted = Rc::new(HostedPartition::new(
            partition,
            topic,
            config,
            in_sync_count,
            leader,
            checkpointed,
        ));
        if hosted.is_behind() {
            self.mark_active(&hosted);
        }
        self.host(hosted);
    }
}

pub(super) fn log_settings(config: &TopicConfig) -> LogSettings {
    LogSettings {
        roll: RollRules {
            segment_bytes: config.segment_bytes,
            segment_ms: config.roll_ms(),
            index_entries_max: config.segment_index_bytes as usize / OFFSET_INDEX_ENTRY_BYTES,
        },
        index_interval_bytes: config.index_interval_bytes,
    }
}

fn active_path(directory: &Path, recovered: &Recovered) -> PathBuf {
    let name = SegmentFileName::new(recovered.active.base_offset, SegmentFileKind::Log);
    directory.join(name.to_string())
}

/// The bytes from the start of the active segment's last page to its end, which the next write covers again.
fn read_tail_page(directory: &Path, recovered: &Recovered) -> Result<Box<[u8]>, FileError> {
    let partial_bytes = recovered.active.size_bytes as usize % PAGE_BYTES;
    let mut page = vec![0; partial_bytes].into_boxed_slice();
    if partial_bytes > 0 {
        let path = active_path(directory, recovered);
        let file = fs::File::open(&path).map_err(FileError::of("open", &path))?;
        let position = recovered.active.size_bytes - partial_bytes as u64;
        file.read_exact_at(&mut page, position)
            .map_err(FileError::of("read", &path))?;
    }
    Ok(page)
}
