use std::path::Path;

use crate::io::fs::File;
use crate::model::TimestampMs;
use crate::model::limits::RECORD_BATCH_HEADER_BYTES;
use crate::record::RecordBatchHeader;

use super::file_error::FileError;

/// What an active segment's age goes by. Kafka's rule for `segment.ms`: the records' own time says how much a segment spans, from its
/// first batch to the one that comes; the wall clock counts only where the first batch has no timestamp. So records of long ago do not
/// share a segment with those of today, which would keep them from being deleted. Nothing is rolled because time passes alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentTimes {
    /// The largest timestamp of the first batch.
    first_batch: TimestampMs,
    /// When the first and the last batch were appended, by the wall clock.
    first_append: TimestampMs,
    last_append: TimestampMs,
}

impl SegmentTimes {
    /// Of a segment without a batch.
    pub const EMPTY: Self = Self {
        first_batch: TimestampMs::NONE,
        first_append: TimestampMs::NONE,
        last_append: TimestampMs::NONE,
    };

    /// Of a segment file that holds `size_bytes` of whole batches.
    pub fn read(path: &Path, size_bytes: u64) -> Result<Self, FileError> {
        if size_bytes == 0 {
            return Ok(Self::EMPTY);
        }
        let file = File::open(path).map_err(FileError::of("open", path))?;
        let mut first = [0; RECORD_BATCH_HEADER_BYTES];
        file.read_exact_at(&mut first, 0)
            .map_err(FileError::of("read", path))?;
        let first_batch = RecordBatchHeader::parse(&first)
            .map_or(TimestampMs::NONE, |header| header.max_timestamp);
        let written_at = file.metadata().and_then(|it| it.modified());
        let written_at = written_at.map_err(FileError::of("look up", path))?;
        Ok(Self::found(first_batch, written_at))
    }

    fn found(first_batch: TimestampMs, written_at: TimestampMs) -> Self {
        Self {
            first_batch,
            first_append: written_at,
            last_append: written_at,
        }
    }

    /// Takes note of a batch with this largest timestamp.
    pub fn on_append(&mut self, max_timestamp: TimestampMs, now: TimestampMs) {
        if self.first_append == TimestampMs::NONE {
            self.first_batch = max_timestamp;
            self.first_append = now;
        }
        self.last_append = now;
    }

    pub fn last_append(&self) -> TimestampMs {
        self.last_append
    }

    /// How long ago its first batch was appended; zero where there is none.
    pub fn age_ms(&self, now: TimestampMs) -> i64 {
        match self.first_append {
            TimestampMs::NONE => 0,
            first => now.0.saturating_sub(first.0),
        }
    }

    /// What the segment would span with one more batch; negative where that is older than the first.
    pub fn span_ms(&self, max_timestamp: TimestampMs, now: TimestampMs) -> i64 {
        if self.first_batch > TimestampMs::NONE {
            max_timestamp.0.saturating_sub(self.first_batch.0)
        } else if self.first_append > TimestampMs::NONE {
            now.0.saturating_sub(self.first_append.0)
        } else {
            0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_counted_in_the_records_own_time() {
        let mut times = SegmentTimes::EMPTY;
        assert_eq!(times.span_ms(TimestampMs(77), TimestampMs(9_000)), 0);
        times.on_append(TimestampMs(1_000), TimestampMs(9_000));
        times.on_append(TimestampMs(5_000), TimestampMs(9_100));
        assert_eq!(
            times.span_ms(TimestampMs(6_000), TimestampMs(99_000)),
            5_000
        );
        assert_eq!(times.span_ms(TimestampMs(400), TimestampMs(99_000)), -600);
        assert_eq!(times.last_append(), TimestampMs(9_100));
    }

    #[test]
    fn without_timestamps_the_wall_clock_counts() {
        let mut times = SegmentTimes::EMPTY;
        times.on_append(TimestampMs::NONE, TimestampMs(9_000));
        assert_eq!(times.span_ms(TimestampMs::NONE, TimestampMs(9_500)), 500);
        let found = SegmentTimes::found(TimestampMs::NONE, TimestampMs(8_000));
        assert_eq!(found.span_ms(TimestampMs::NONE, TimestampMs(9_500)), 1_500);
    }
}
