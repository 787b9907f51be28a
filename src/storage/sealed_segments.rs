//! The segments of a log that are no longer appended to: sealed ones, and behind them those on the way to be.
//!
//! ```text
//! | sealed: exact length, indexes on disk | being sealed | rolled: writes not yet complete |  active
//! ```

use std::collections::VecDeque;
use std::path::PathBuf;
use std::rc::Rc;

use crate::model::{FilePosition, Offset, TimestampMs};
use crate::storage::index_files::IndexTail;
use crate::storage::log::SegmentKey;
use crate::storage::sealed_segment::SealedSegment;

/// A segment whose last write has completed: to be cut to its length, its indexes to be stored.
pub struct ToSeal {
    pub key: SegmentKey,
    pub path: PathBuf,
    pub size: FilePosition,
    /// What of its indexes is not yet in their files.
    pub index_tail: IndexTail,
}

/// When old segments are due (`retention.bytes`, `retention.ms`); `None` is no limit.
#[derive(Clone, Copy, Debug)]
pub struct RetentionRules {
    pub bytes: Option<u64>,
    pub ms: Option<u64>,
}

pub struct SealedSegments {
    /// All of them, oldest first.
    segments: VecDeque<Rc<SealedSegment>>,
    /// Rolled away from, with writes not yet complete; oldest first.
    rolled: VecDeque<ToSeal>,
    /// Handed out to be sealed and not yet done.
    being_sealed_count: usize,
}

impl SealedSegments {
    pub fn new(segments: impl Iterator<Item = SealedSegment>) -> Self {
        Self {
            segments: segments.map(Rc::new).collect(),
            rolled: VecDeque::new(),
            being_sealed_count: 0,
        }
    }

    pub fn len(&self) -> usize {
        self.segments.len()
    }

    pub fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Rc<SealedSegment>> {
        self.segments.iter()
    }

    pub fn size_bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.size().0).sum()
    }

    pub fn max_timestamp(&self) -> TimestampMs {
        let timestamps = self.segments.iter().map(|segment| segment.max_timestamp());
        timestamps.max().unwrap_or(TimestampMs::NONE)
    }

    /// The segment that holds `offset` or, where a gap is, the next one.
    pub fn find(&self, offset: Offset) -> Option<&Rc<SealedSegment>> {
        let at = self
            .segments
            .partition_point(|segment| segment.next_offset() <= offset);
        self.segments.get(at)
    }

    /// Takes the segment that was the active one.
    pub fn push_rolled(&mut self, segment: SealedSegment, to_seal: ToSeal) {
        self.segments.push_back(Rc::new(segment));
        self.rolled.push_back(to_seal);
    }

    /// Hands out the rolled segments below `written`, the segment up to which every write has completed.
    pub fn take_to_seal(&mut self, written: Offset) -> Vec<ToSeal> {
        let done = self
            .rolled
            .iter()
            .take_while(|segment| segment.key.segment < written)
            .count();
        self.being_sealed_count += done;
        self.rolled.drain(..done).collect()
    }

    /// A segment from `take_to_seal` has its exact length and its indexes.
    pub fn on_sealed(&mut self) {
        self.being_sealed_count -= 1;
    }

    /// Whether every one has its exact length and its indexes on disk.
    pub fn is_sealed_up(&self) -> bool {
        self.rolled.is_empty() && self.being_sealed_count == 0
    }

    /// Lets go of the indexes in memory; whoever looks something up reads them again.
    pub fn release_indexes(&self) {
        if self.is_sealed_up() {
            self.segments
                .iter()
                .for_each(|segment| segment.release_indexes());
        }
    }

    /// How many of the oldest are due: their newest record is too old, or the log (`log_bytes` in all) is large enough without them, or
    /// they lie wholly below `start`. None is due that reaches above `below`, or while one is being sealed.
    pub fn due_count(
        &self,
        rules: RetentionRules,
        mut log_bytes: u64,
        start: Offset,
        below: Offset,
        now: TimestampMs,
    ) -> usize {
        if !self.is_sealed_up() {
            return 0;
        }
        let due = self.segments.iter().take_while(|segment| {
            let age_ms = now.0.saturating_sub(segment.max_timestamp().0);
            let is_too_old = segment.max_timestamp() != TimestampMs::NONE
                && rules
                    .ms
                    .is_some_and(|limit| u64::try_from(age_ms).is_ok_and(|age| age > limit));
            log_bytes -= segment.size().0;
            let is_too_much = rules.bytes.is_some_and(|limit| log_bytes >= limit);
            let is_below_start = segment.next_offset() <= start;
            segment.next_offset() <= below && (is_too_old || is_too_much || is_below_start)
        });
        due.count()
    }

    pub fn drop_front(&mut self, count: usize) -> Vec<Rc<SealedSegment>> {
        self.segments.drain(..count).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn three() -> SealedSegments {
        let segment = |n: i64| {
            let (base, next) = (Offset(n * 10), Offset(n * 10 + 10));
            let size = FilePosition(100);
            SealedSegment::new(
                Path::new("d"),
                base,
                next,
                size,
                TimestampMs(n * 1_000),
                4096,
                None,
            )
        };
        SealedSegments::new((0..3).map(segment))
    }

    fn due(bytes: Option<u64>, ms: Option<u64>, start: i64, below: i64) -> usize {
        let rules = RetentionRules { bytes, ms };
        three().due_count(rules, 350, Offset(start), Offset(below), TimestampMs(3_000))
    }

    #[test]
    fn segments_go_whole_when_their_newest_record_is_too_old() {
        assert_eq!(due(None, Some(1_500), 0, 100), 2);
        assert_eq!(due(None, Some(5_000), 0, 100), 0);
    }

    #[test]
    fn segments_go_while_the_log_without_them_is_large_enough() {
        assert_eq!(due(Some(150), None, 0, 100), 2);
        assert_eq!(due(Some(300), None, 0, 100), 0);
    }

    #[test]
    fn segments_below_the_start_go_and_none_above_the_high_watermark() {
        assert_eq!(due(None, None, 20, 100), 2);
        assert_eq!(due(None, Some(0), 0, 15), 1);
    }

    #[test]
    fn an_offset_is_found_in_its_segment() {
        let segments = three();
        assert_eq!(
            segments.find(Offset(10)).map(|it| it.base_offset()),
            Some(Offset(10))
        );
        assert_eq!(
            segments.find(Offset(29)).map(|it| it.base_offset()),
            Some(Offset(20))
        );
        assert!(segments.find(Offset(30)).is_none());
    }
}
