//! What one core asks of the core that owns a partition. It carries ids and record bytes, no versions and no Kafka errors.

use std::sync::{Arc, Weak};

use bytes::Bytes;
use smallvec::SmallVec;

use crate::group::{GroupAnswer, GroupError, GroupRequest};
use crate::io::clock::Monotonic;
use crate::io::disk::DiskError;
use crate::model::{LeaderEpoch, Offset, TimestampMs, TopicPartition};
use crate::partition::leader::ProducerRefusal;
use crate::record::InvalidBatch;
use crate::shard::call::{CallSlot, ReplyTo};
use crate::shard::disk_guard::Room;
use crate::shard::long_poll::LongPoll;
use crate::shard::metadata::MetadataChange;
use crate::storage::file_error::FileError;
use crate::storage::producer_state::ActiveProducer;
use crate::storage::reader::ReadError;

/// What travels over the mesh.
#[derive(Debug)]
pub enum Message {
    Command(Command),
    /// The call in this slot has its answer.
    Wake(CallSlot),
    /// Everything stands; clients may come.
    Start,
    /// The shard has stopped; its executor may end.
    End,
}

#[derive(Debug)]
pub enum Command {
    Append(AppendRequest, ReplyTo<Vec<AppendReply>>),
    Read(ReadRequest, ReplyTo<Vec<ReadReply>>),
    AwaitData(Vec<AwaitItem>, Weak<LongPoll>),
    ListOffsets(Vec<ListOffsetsItem>, ReplyTo<Vec<ListOffsetsReply>>),
    EpochEnds(Vec<EpochEndItem>, ReplyTo<Vec<EpochEndReply>>),
    DeleteRecords(
        Vec<(TopicPartition, DeleteBefore)>,
        ReplyTo<Vec<DeleteRecordsReply>>,
    ),
    LogSizes(ReplyTo<Vec<LogSize>>),
    Producers(Vec<TopicPartition>, ReplyTo<Vec<ProducersReply>>),
    Groups(Vec<GroupItem>, ReplyTo<Vec<GroupReply>>),
    ApplyMetadata(MetadataChange),
    /// Flush and checkpoint everything; nothing is appended afterwards.
    Stop(ReplyTo<Result<(), String>>),
}

/// Why a partition's owner refuses.
#[derive(Clone, Debug, thiserror::Error)]
pub enum PartitionError {
    #[error("partition {0} is not here")]
    Unknown(TopicPartition),
    #[error("it is not open yet: {0}")]
    NotOpened(Arc<str>),
    #[error("leader epoch {given} is older than {current}")]
    FencedLeaderEpoch {
        given: LeaderEpoch,
        current: LeaderEpoch,
    },
    #[error("leader epoch {given} is newer than {current}")]
    UnknownLeaderEpoch {
        given: LeaderEpoch,
        current: LeaderEpoch,
    },
    #[error("offset {offset} is not in {start}..{end}")]
    OffsetOutOfRange {
        offset: Offset,
        start: Offset,
        end: Offset,
    },
    #[error("{0}")]
    InvalidBatch(InvalidBatch),
    #[error("{0}")]
    Producer(ProducerRefusal),
    #[error("{in_sync_count} replicas are in sync; min.insync.replicas is {needed_count}")]
    NotEnoughReplicas {
        in_sync_count: u32,
        needed_count: u32,
    },
    #[error("the disk is filled up to {}: nothing is appended until space is freed", .0.setting())]
    NoRoom(Room),
    #[error("the disk is full: {0}")]
    DiskFull(Arc<DiskError>),
    /// Descriptors or memory of the kernel; it passes.
    #[error("the system is short of something: {0}")]
    Shortage(Arc<DiskError>),
    #[error("the log directory is offline: {0}")]
    LogDirOffline(Arc<str>),
    #[error("cleanup.policy is compact alone, by which the latest record of each key is kept")]
    OnlyCompacted,
    #[error("{0}")]
    Read(Arc<ReadError>),
    #[error("the checkpoint was not written: {0}")]
    Checkpoint(Arc<FileError>),
    #[error("the broker is stopping")]
    Stopping,
}

#[derive(Debug)]
pub struct AppendRequest {
    pub items: Vec<AppendItem>,
    /// When it was dispatched, on the clock that all cores share.
    pub sent_at: Monotonic,
}

#[derive(Debug)]
pub struct AppendItem {
    pub partition: TopicPartition,
    /// The `records` field of the produce request, as it came.
    pub records: Bytes,
    /// acks=all: refused while fewer replicas are in sync than `min.insync.replicas`.
    pub needs_all: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppendDone {
    pub base_offset: Offset,
    /// Set where the topic's timestamps are the broker's.
    pub log_append_time: Option<TimestampMs>,
    pub log_start: Offset,
}

pub type AppendReply = Result<AppendDone, PartitionError>;

#[derive(Debug)]
pub struct ReadRequest {
    pub items: Vec<ReadItem>,
    pub bounds: ReadBounds,
    /// Nothing is read while there is less, only counted; an error of one of the items counts as enough.
    pub min_bytes: u64,
    /// Pieces of memory; at the limit the answer ends after a whole batch.
    pub max_pieces: usize,
    /// When it was dispatched.
    pub sent_at: Monotonic,
}

/// How an owner keeps a fetch within its `max_bytes`, of which only the first partition that has something may send more (KIP-74).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadBounds {
    /// These are all partitions of the fetch.
    Whole { max_bytes: usize },
    /// Others own some of them. What surely fits into `share_bytes`, with nothing cut, is read; else it is only counted.
    Share { share_bytes: usize },
    /// After all owners have counted: each item's own bound is what it was granted, and only the first item may exceed it, if
    /// `first_may_exceed`.
    Granted { first_may_exceed: bool },
}

#[derive(Clone, Copy, Debug)]
pub struct ReadItem {
    pub partition: TopicPartition,
    pub offset: Offset,
    pub max_bytes: usize,
    /// The leader epoch the client believes in, if it says so (KIP-320).
    pub current_epoch: LeaderEpoch,
}

#[derive(Debug)]
pub struct ReadDone {
    pub high_watermark: Offset,
    pub log_start: Offset,
    /// Whole batches, in pieces that are not copied.
    pub records: SmallVec<[Bytes; 4]>,
    pub records_bytes: usize,
    /// What was only counted, with no records.
    pub unread: Unread,
}

/// What a partition has for a fetch that has not been read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unread {
    /// Not beyond what the item asks for; where something is, at least 1.
    pub bytes: u64,
    /// The size of the first batch where it is known, else 0.
    pub first_batch_bytes: usize,
    /// What one read gives of them at the most: the disk gives less at once than memory does.
    pub at_once_bytes: usize,
}

pub type ReadReply = Result<ReadDone, PartitionError>;

/// A partition that a long poll waits for.
#[derive(Clone, Copy, Debug)]
pub struct AwaitItem {
    pub partition: TopicPartition,
    pub offset: Offset,
    /// More of it does not count.
    pub max_bytes: usize,
}

#[derive(Clone, Copy, Debug)]
pub struct ListOffsetsItem {
    pub partition: TopicPartition,
    pub current_epoch: LeaderEpoch,
    pub at: OffsetAt,
}

/// Which offset ListOffsets asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OffsetAt {
    Earliest,
    Latest,
    MaxTimestamp,
    Timestamp(TimestampMs),
    /// Where nothing is, such as in tiered storage.
    Nowhere,
}

#[derive(Clone, Copy, Debug)]
pub struct ListedOffset {
    pub timestamp: TimestampMs,
    pub offset: Offset,
    pub leader_epoch: LeaderEpoch,
}

/// None: no record has such a timestamp.
pub type ListOffsetsReply = Result<Option<ListedOffset>, PartitionError>;

#[derive(Clone, Copy, Debug)]
pub struct EpochEndItem {
    pub partition: TopicPartition,
    pub current_epoch: LeaderEpoch,
    pub epoch: LeaderEpoch,
}

pub type EpochEndReply = Result<(LeaderEpoch, Offset), PartitionError>;

/// Up to where DeleteRecords deletes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeleteBefore {
    Offset(Offset),
    HighWatermark,
}

/// The log start offset afterwards.
pub type DeleteRecordsReply = Result<Offset, PartitionError>;

#[derive(Clone, Copy, Debug)]
pub struct LogSize {
    pub partition: TopicPartition,
    pub size_bytes: u64,
}

/// A new partition that could not be opened, and is tried again.
#[derive(Clone, Debug)]
pub struct UnopenedPartition {
    pub partition: TopicPartition,
    pub why: Arc<str>,
}

/// A request to the coordinator of a group.
#[derive(Debug)]
pub struct GroupItem {
    /// The partition of the offsets topic that the group is in.
    pub partition: TopicPartition,
    pub request: GroupRequest,
}

/// The error: no coordinator has seen the request.
pub type GroupReply = Result<GroupAnswer, GroupError>;

pub type ProducersReply = Result<Vec<ActiveProducer>, PartitionError>;
