//! The active segment: the one file of a log that grows.

use std::path::PathBuf;

use crate::model::{FilePosition, Offset, TimestampMs};
use crate::record::header::RecordBatchHeader;
use crate::storage::index_builder::{IndexBuilder, IndexLengths};
use crate::storage::segment_name::{SegmentFileKind, SegmentFileName};
use crate::storage::segment_times::SegmentTimes;
use crate::storage::space::PreparedSpace;

/// When a segment must end, from the topic's settings.
#[derive(Clone, Copy, Debug)]
pub struct RollRules {
    pub segment_bytes: u64,
    pub segment_ms: u64,
    /// `segment.index.bytes`, in entries.
    pub index_entries_max: usize,
}

pub struct ActiveSegment {
    base_offset: Offset,
    path: PathBuf,
    size: FilePosition,
    indexes: IndexBuilder,
    /// How much of the indexes their files hold.
    saved: IndexLengths,
    times: SegmentTimes,
    pub space: PreparedSpace,
}

impl ActiveSegment {
    /// Continues a segment that holds `size` bytes, or starts an empty one.
    pub fn new(
        directory: &std::path::Path,
        base_offset: Offset,
        size: FilePosition,
        indexes: IndexBuilder,
        saved: IndexLengths,
        space: PreparedSpace,
    ) -> Self {
        Self {
            base_offset,
            path: directory
                .join(SegmentFileName::new(base_offset, SegmentFileKind::Log).to_string()),
            size,
            indexes,
            saved,
            times: SegmentTimes::EMPTY,
            space,
        }
    }

    /// The same segment, of which batches were found that had these times.
    pub fn with_times(self, times: SegmentTimes) -> Self {
        Self { times, ..self }
    }

    pub fn base_offset(&self) -> Offset {
        self.base_offset
    }

    pub fn path(&self) -> &std::path::Path {
        &self.path
    }

    pub fn size(&self) -> FilePosition {
        self.size
    }

    pub fn max_timestamp(&self) -> TimestampMs {
        self.indexes
            .latest()
            .map_or(TimestampMs::NONE, |latest| latest.timestamp)
    }

    /// When the last batch was appended, by the wall clock.
    pub fn last_append(&self) -> TimestampMs {
        self.times.last_append()
    }

    /// Whether its first batch was appended longer ago than `segment_ms` allows.
    pub fn is_aged(&self, rules: RollRules, now: TimestampMs) -> bool {
        u64::try_from(self.times.age_ms(now)).is_ok_and(|age| age > rules.segment_ms)
    }

    pub fn saved(&self) -> IndexLengths {
        self.saved
    }

    pub fn set_saved(&mut self, saved: IndexLengths) {
        self.saved = saved;
    }

    pub fn indexes(&self) -> &IndexBuilder {
        &self.indexes
    }

    /// Whether a batch of `batch_bytes` with this largest timestamp, which would end at `last_offset`, belongs in the next segment.
    pub fn must_roll(
        &self,
        rules: RollRules,
        batch_bytes: u64,
        max_timestamp: TimestampMs,
        last_offset: Offset,
        now: TimestampMs,
    ) -> bool {
        if self.size == FilePosition::ZERO {
            return false;
        }
        let span_ms = self.times.span_ms(max_timestamp, now);
        let aged = u64::try_from(span_ms).is_ok_and(|span| span > rules.segment_ms);
        self.size.0 + batch_bytes > rules.segment_bytes.min(i32::MAX as u64)
            || aged
            || last_offset.since(self.base_offset) > i64::from(i32::MAX)
            || self.indexes.offsets().len() >= rules.index_entries_max
    }

    /// Takes note of a batch that the appender has copied to this segment's end.
    pub fn on_append(&mut self, header: &RecordBatchHeader, now: TimestampMs) {
        let size_bytes = header.size_bytes() as u64;
        self.indexes
            .on_batch(header.last_offset(), header.max_timestamp, self.size);
        self.size = self.size.plus(size_bytes);
        self.times.on_append(header.max_timestamp, now);
    }

    pub fn into_indexes(self) -> IndexBuilder {
        self.indexes
    }
}
