//! A partition as its shard holds it: the leader's state and the flags of the tasks that work on it.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use crate::config::TopicConfig;
use crate::io::clock::Monotonic;
use crate::model::{TopicName, TopicPartition};
use crate::partition::leader::{CheckedBatch, Leader};
use crate::shard::append::AppendToken;
use crate::shard::read::DataWaiter;

/// The leader, with what this product hands back to those who wait.
pub type HostedLeader = Leader<AppendToken, DataWaiter>;

/// A batch that waits for room in the log. The queue keeps the order in which batches came.
pub struct ParkedBatch {
    pub batch: CheckedBatch,
    pub token: AppendToken,
}

pub struct HostedPartition {
    pub partition: TopicPartition,
    pub topic: TopicName,
    pub config: Cell<TopicConfig>,
    pub leader: RefCell<HostedLeader>,
    pub parked: RefCell<VecDeque<ParkedBatch>>,
    pub flags: Flags,
    pub last_append: Cell<Monotonic>,
    /// When the oldest bytes that no fdatasync covers were written.
    pub unsynced_since: Cell<Option<Monotonic>>,
    /// The log's end at the last checkpoint.
    pub checkpointed: Cell<crate::model::Offset>,
}

/// One flag for each task of which a partition has at most one.
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
    /// A file was made in its directory since the directory was last synced.
    pub has_new_files: Cell<bool>,
    /// Deleted: tasks that still run on it must not touch its directory.
    pub is_gone: Cell<bool>,
}
