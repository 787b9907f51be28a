//! The segments of a log that are no longer appended to: sealed ones, and behind them those on the way to be.
//!
//! ```text
//! | sealed: exact length, indexes on disk | being sealed | rolled: writes not yet complete |  active
//! ```

use std::collections::VecDeque;
use std::path::PathBuf;
use std::rc::Rc;

use crate::model::{FilePosition, Offset, TimestampMs};
use crate::storage::cleaner::segment_group::SegmentGroup;
use crate::storage::index_files::IndexTail;
use crate::storage::log::SegmentKey;
use crate::storage::retention::{Due, RetentionRules, SegmentAge};
use crate::storage::sealed_segment::SealedSegment;

/// A segment whose last write has completed: to be cut to its length, its indexes to be stored.
pub struct ToSeal {
    pub key: SegmentKey,
    pub path: PathBuf,
    pub size: FilePosition,
    /// What of its indexes is not yet in their files.
    pub index_tail: IndexTail,
}

pub struct SealedSegments {
    /// All of them, oldest first.
    segments: VecDeque<Rc<SealedSegment>>,
    /// Of all of them, so that asking every partition for its size is no walk over every segment.
    size_bytes: u64,
    /// Rolled away from, with writes not yet complete; oldest first.
    rolled: VecDeque<ToSeal>,
    /// Handed out to be sealed and not yet done.
    being_sealed_count: usize,
    /// Files of some are just being replaced, so that none may leave.
    is_swapping: bool,
}

impl SealedSegments {
    pub fn new(segments: impl Iterator<Item = SealedSegment>) -> Self {
        let segments: VecDeque<_> = segments.map(Rc::new).collect();
        Self {
            size_bytes: sum_bytes(&segments),
            segments,
            rolled: VecDeque::new(),
            being_sealed_count: 0,
            is_swapping: false,
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
        self.size_bytes
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
        self.size_bytes += segment.size().0;
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

    /// A segment from `take_to_seal` has its exact length, and its indexes are in their files or, where `are_indexes_stored` is false, in
    /// memory.
    pub fn on_sealed(&mut self, base_offset: Offset, are_indexes_stored: bool) {
        self.being_sealed_count -= 1;
        if are_indexes_stored && let Some(segment) = self.find(base_offset) {
            segment.note_indexes_stored();
        }
    }

    /// The segments whose indexes only memory has.
    pub fn with_unstored_indexes(&self) -> Vec<Rc<SealedSegment>> {
        let segments = self.segments.iter().take(self.sealed_count());
        let unstored = segments.filter(|segment| segment.unstored_indexes().is_some());
        unstored.cloned().collect()
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

    /// Why each of the oldest is due, as far as they are, in a log of `log_bytes` in all that starts at `start`. None is due that reaches
    /// above `below`, or that is still on its way to be sealed; none at all while some are being replaced.
    pub fn due(
        &self,
        rules: RetentionRules,
        log_bytes: u64,
        start: Offset,
        below: Offset,
        now: TimestampMs,
    ) -> Vec<Due> {
        let sealed_count = self.sealed_count();
        let mut left_bytes = log_bytes;
        let due = self
            .segments
            .iter()
            .take(sealed_count)
            .map_while(|segment| {
                left_bytes -= segment.size().0;
                let age = SegmentAge {
                    next_offset: segment.next_offset(),
                    newest: segment.newest(),
                    left_bytes,
                };
                let is_below = segment.next_offset() <= below;
                rules.judge(age, start, now).filter(|_| is_below)
            });
        due.collect()
    }

    /// Takes out those that lie wholly below `start`, but for those on their way to be sealed.
    pub fn drop_below(&mut self, start: Offset) -> Vec<Rc<SealedSegment>> {
        let sealed = self.segments.iter().take(self.sealed_count());
        let below = sealed.take_while(|segment| segment.next_offset() <= start);
        let count = below.count();
        let dropped: Vec<_> = self.segments.drain(..count).collect();
        self.size_bytes -= sum_bytes(&dropped);
        dropped
    }

    /// If all of `group` are still here, they stay until [`Self::end_swap`], and true.
    pub fn begin_swap(&mut self, group: &SegmentGroup) -> bool {
        assert!(!self.is_swapping, "one group is replaced at a time");
        self.is_swapping = self.place_of(group).is_some();
        self.is_swapping
    }

    /// Puts the cleaned segment, if there is one, in the place of those that it was made from.
    pub fn end_swap(&mut self, group: &SegmentGroup, cleaned: Option<SealedSegment>) {
        assert!(self.is_swapping, "a swap has begun");
        self.is_swapping = false;
        if let Some(cleaned) = cleaned {
            let at = self
                .place_of(group)
                .expect("segments that are swapped stay");
            let replaced = self.segments.drain(at..at + group.segments().len());
            let replaced: Vec<_> = replaced.collect();
            self.size_bytes = self.size_bytes - sum_bytes(&replaced) + cleaned.size().0;
            self.segments.insert(at, Rc::new(cleaned));
            debug_assert_eq!(self.size_bytes, sum_bytes(&self.segments));
        }
    }

    fn place_of(&self, group: &SegmentGroup) -> Option<usize> {
        let first = group.base_offset();
        let at = self.segments.partition_point(|it| it.base_offset() < first);
        let here = self.segments.iter().skip(at);
        let mut both = here.zip(group.segments());
        let is_whole = self.segments.len() >= at + group.segments().len();
        (is_whole && both.all(|(here, there)| Rc::ptr_eq(here, there))).then_some(at)
    }

    /// How many have their exact length and their indexes on disk; none as long as some are being replaced.
    fn sealed_count(&self) -> usize {
        match self.is_swapping {
            true => 0,
            false => self.segments.len() - self.rolled.len() - self.being_sealed_count,
        }
    }
}

fn sum_bytes<'a>(segments: impl IntoIterator<Item = &'a Rc<SealedSegment>>) -> u64 {
    segments.into_iter().map(|segment| segment.size().0).sum()
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

    fn due(bytes: Option<u64>, ms: Option<u64>, start: i64, below: i64) -> Vec<Due> {
        let rules = RetentionRules { bytes, ms };
        three().due(rules, 350, Offset(start), Offset(below), TimestampMs(3_000))
    }

    #[test]
    fn the_size_is_that_of_the_segments_that_are_here() {
        let mut segments = three();
        assert_eq!(segments.size_bytes(), 300);
        assert_eq!(segments.drop_below(Offset(25)).len(), 2);
        assert_eq!(segments.size_bytes(), sum_bytes(segments.iter()));
        assert_eq!(segments.size_bytes(), 100);
    }

    #[test]
    fn the_oldest_go_up_to_the_first_that_may_stay() {
        assert_eq!(due(None, Some(1_500), 0, 100), [Due::Age; 2]);
        assert_eq!(due(None, Some(5_000), 0, 100), []);
        assert_eq!(due(Some(150), None, 0, 100), [Due::Size; 2]);
        assert_eq!(due(Some(300), None, 0, 100), []);
        assert_eq!(due(None, None, 20, 100), [Due::LogStart; 2]);
        let all_three = [Due::LogStart, Due::Size, Due::Age];
        assert_eq!(due(Some(150), Some(500), 10, 100), all_three);
    }

    #[test]
    fn none_goes_above_the_high_watermark_nor_before_it_is_sealed() {
        assert_eq!(due(None, Some(0), 0, 15), [Due::Age]);
        let mut segments = three();
        segments.being_sealed_count = 1;
        let rules = RetentionRules {
            bytes: None,
            ms: Some(0),
        };
        let due = segments.due(rules, 350, Offset(0), Offset(100), TimestampMs(9_000));
        assert_eq!(due, [Due::Age; 2]);
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
