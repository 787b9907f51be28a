use std::path::PathBuf;

use crate::model::{FilePosition, Offset, TimestampMs};

use super::checkpoint::RecoveryPoint;
use super::index_builder::{IndexBuilder, IndexLengths};
use super::leader_epochs::LeaderEpochs;
use super::producer_state::ProducerState;
use super::recovery_start::Distrust;
use super::scan::{BadBatch, ScanStop};
use super::segment_times::SegmentTimes;
use super::time_index::TimeIndexEntry;

/// A partition's log as it may be appended to and read again.
#[derive(Debug)]
pub struct Recovered {
    pub log_start_offset: Offset,
    pub log_end_offset: Offset,
    /// In order; each ends where the next one (at last the active one) starts.
    pub sealed: Vec<SealedSegmentInfo>,
    pub active: ActiveSegmentInfo,
    pub producers: ProducerState,
    pub leader_epochs: LeaderEpochs,
    /// What a crash right now would start from. `log_end_offset` lies at or above it.
    pub recovery_point: RecoveryPoint,
    pub bytes_scanned: u64,
    pub cuts: Vec<Cut>,
    /// Segments whose indexes were damaged or missing.
    pub indexes_rebuilt: usize,
    pub damaged: Vec<DamagedSegment>,
    /// Why the whole log was read, if it was.
    pub distrust: Option<Distrust>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedSegmentInfo {
    pub base_offset: Offset,
    pub size_bytes: u64,
    /// The next segment's base offset.
    pub end_offset: Offset,
    /// The largest timestamp, by which `retention.ms` judges the segment; `None` if it has none.
    pub latest: Option<TimeIndexEntry>,
    /// When its file was last written; looked up only where no record has a timestamp.
    pub written_at: TimestampMs,
    /// Indexes that were made anew and that a full disk has no room for.
    pub unstored_indexes: Option<IndexBuilder>,
}

#[derive(Debug)]
pub struct ActiveSegmentInfo {
    pub base_offset: Offset,
    /// Where the next batch goes. The file has exactly this length; of an empty segment there may be no file yet.
    pub size_bytes: u64,
    pub indexes: IndexBuilder,
    /// How many entries the index files have.
    pub saved: IndexLengths,
}

/// What recovery found that a log is made of.
pub struct FoundLog {
    pub start: Offset,
    pub end: Offset,
    pub sealed: Vec<SealedSegmentInfo>,
    pub active: ActiveSegmentInfo,
    pub active_times: SegmentTimes,
    pub epochs: LeaderEpochs,
    /// The bytes from the start of the last page up to the log's end.
    pub tail_page: Box<[u8]>,
}

/// A place where recovery gave something up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    pub path: PathBuf,
    pub position: FilePosition,
    /// The first offset that is gone (or, at the log's start, the first that is left).
    pub offset: Offset,
    /// What lay behind in this file. Space that was reserved and never written counts too.
    pub dropped_bytes: u64,
    pub reason: CutReason,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CutReason {
    #[error(transparent)]
    BadBatch(#[from] BadBatch),
    #[error("the segment does not continue the log, which ends at {log_end_offset}")]
    NotContinuous { log_end_offset: Offset },
    #[error("the log ends below its start offset {log_start_offset}")]
    BelowLogStart { log_start_offset: Offset },
    #[error("the segments are missing, from offset {expected} on")]
    Missing { expected: Offset },
}

/// A segment below the recovery point whose batches are not what was written. It is left as it is: a good copy, where there is one,
/// must replace it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamagedSegment {
    pub path: PathBuf,
    pub position: FilePosition,
    pub offset: Offset,
    pub stop: ScanStop,
}
