//! A partition as its shard holds it: the leader's state and the flags of the tasks that work on it.

use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::sync::Arc;

use crate::config::TopicConfig;
use crate::io::clock::Monotonic;
use crate::io::disk::DiskError;
use crate::model::{FilePosition, Offset, TopicName, TopicPartition};
use crate::partition::leader::Leader;
use crate::shard::append::AppendToken;
use crate::shard::clean::CleanerState;
use crate::shard::long_poll::DataWaiter;
use crate::shard::parked::ParkedBatches;
use crate::storage::log::LogId;

/// The leader, with what this product hands back to those who wait.
pub type HostedLeader = Leader<AppendToken, DataWaiter>;

pub struct HostedPartition {
    pub partition: TopicPartition,
    pub topic: TopicName,
    pub config: Cell<TopicConfig>,
    /// Replicas in sync, this one included.
    pub in_sync_count: u32,
    pub leader: RefCell<HostedLeader>,
    pub parked: ParkedBatches,
    pub flags: Flags,
    pub last_append: Cell<Monotonic>,
    /// When the oldest bytes that no fdatasync covers were written.
    pub unsynced_since: Cell<Option<Monotonic>>,
    pub checkpointed: Cell<Checkpointed>,
    /// After a shortage: before this no checkpoint is begun that nobody waits for.
    pub checkpoint_not_before: Cell<Monotonic>,
    /// What the cleaner knows of it.
    pub cleaner: CleanerState,
    /// How much space the file holds that waits to become the next segment, if there is one.
    pub spare: Cell<Option<FilePosition>>,
    /// Why what was appended cannot be written for now: the system is short of something. Nothing more is appended meanwhile.
    pub write_shortage: RefCell<Option<Arc<DiskError>>>,
    log_id: LogId,
    directory: PathBuf,
}

/// The last checkpoint.
#[derive(Clone, Copy, Debug)]
pub struct Checkpointed {
    pub offset: Offset,
    pub at: Monotonic,
    /// The log's size then, as far as it counts for how much a recovery would read.
    pub size_bytes: u64,
}

impl HostedPartition {
    pub fn new(
        partition: TopicPartition,
        topic: TopicName,
        config: TopicConfig,
        in_sync_count: u32,
        leader: HostedLeader,
        checkpointed: Checkpointed,
    ) -> Self {
        Self {
            partition,
            topic,
            config: Cell::new(config),
            in_sync_count,
            parked: ParkedBatches::default(),
            flags: Flags::default(),
            last_append: Cell::new(checkpointed.at),
            unsynced_since: Cell::new(None),
            checkpointed: Cell::new(checkpointed),
            checkpoint_not_before: Cell::new(checkpointed.at),
            cleaner: CleanerState::default(),
            spare: Cell::new(None),
            write_shortage: RefCell::default(),
            log_id: leader.log().id(),
            directory: leader.log().directory().to_owned(),
            leader: RefCell::new(leader),
        }
    }

    pub fn log_id(&self) -> LogId {
        self.log_id
    }

    pub fn write_shortage(&self) -> Option<Arc<DiskError>> {
        self.write_shortage.borrow().clone()
    }

    pub fn directory(&self) -> PathBuf {
        self.directory.clone()
    }

    /// From here on no index file of its segments is read or made anew: of a deleted partition they may be another's. Completes when
    /// nobody does any more.
    pub async fn retire_indexes(&self) {
        let sealed: Vec<_> = self
            .leader
            .borrow()
            .log()
            .sealed()
            .iter()
            .cloned()
            .collect();
        for segment in sealed {
            segment.retire().await;
        }
    }

    /// Whether a recovery now would have something to read.
    pub fn is_behind(&self) -> bool {
        self.leader.borrow().log().end().offset > self.checkpointed.get().offset
    }

    /// How much that would be.
    pub fn behind_bytes(&self) -> u64 {
        let size_bytes = self.leader.borrow().log().size_bytes();
        size_bytes.saturating_sub(self.checkpointed.get().size_bytes)
    }
}

/// What the tasks that work on a partition tell each other; one flag for each task of which there is at most one.
#[derive(Default)]
pub struct Flags {
    /// In the list of partitions with something to write.
    pub is_dirty: Cell<bool>,
    /// Space or a segment is being prepared.
    pub is_preparing: Cell<bool>,
    /// In the group that the next round of fdatasyncs covers.
    pub wants_sync: Cell<bool>,
    /// In the list of partitions that were appended to lately.
    pub is_active: Cell<bool>,
    pub is_checkpointing: Cell<bool>,
    /// Tasks that wait for their turn to change files.
    pub waiting_for_turn: Cell<u32>,
    /// A file was made in its directory since the directory was last synced.
    pub has_new_files: Cell<bool>,
    /// What is due by retention is being deleted.
    pub is_deleting: Cell<bool>,
    /// Its oldest segment has a timestamp in the future.
    pub is_held_by_future: Cell<bool>,
    /// The last attempt to prepare space failed.
    pub is_out_of_space: Cell<bool>,
    /// The last attempt to make a spare file failed: the next one comes after the roll, which makes its own, so that not every append
    /// takes all that is left of the disk for a moment.
    pub has_no_space_for_spare: Cell<bool>,
    /// Deleted: tasks that still run on it must not touch its directory.
    pub is_gone: Cell<bool>,
}
