//! How much of a log compaction has yet to look at.

use std::rc::Rc;

use crate::model::{Offset, TimestampMs};
use crate::storage::sealed_segment::SealedSegment;

/// What of a log may be cleaned now.
#[derive(Clone, Copy, Debug)]
pub struct CleaningBounds {
    /// Below it the log was cleaned before.
    pub first_dirty: Offset,
    /// Records from here on stay out of it, whatever their age.
    pub below: Offset,
    /// `min.compaction.lag.ms`
    pub min_lag_ms: u64,
    /// The time by which ages are judged.
    pub now: TimestampMs,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dirtiness {
    pub first_dirty: Offset,
    /// Where cleaning has to stop: the active segment, or the first one that is too young.
    pub first_uncleanable: Offset,
    pub clean_bytes: u64,
    /// Sealed, old enough and not cleaned.
    pub dirty_bytes: u64,
}

impl Dirtiness {
    /// Of a log whose sealed segments are `sealed`, oldest first.
    pub fn of<'a>(
        sealed: impl Iterator<Item = &'a Rc<SealedSegment>>,
        bounds: CleaningBounds,
    ) -> Self {
        let CleaningBounds {
            first_dirty,
            below,
            min_lag_ms,
            now,
        } = bounds;
        let mut dirtiness = Self {
            first_dirty,
            first_uncleanable: first_dirty,
            clean_bytes: 0,
            dirty_bytes: 0,
        };
        let youngest = now.0.saturating_sub_unsigned(min_lag_ms);
        for segment in sealed {
            let is_dirty = segment.next_offset() > first_dirty;
            let is_too_young = min_lag_ms > 0 && segment.max_timestamp().0 > youngest;
            if segment.next_offset() > below || is_dirty && is_too_young {
                break;
            }
            if is_dirty {
                dirtiness.dirty_bytes += segment.size().0;
                dirtiness.first_uncleanable = segment.next_offset();
            } else {
                dirtiness.clean_bytes += segment.size().0;
            }
        }
        dirtiness
    }

    /// The share of the log that is dirty, of what could be clean.
    pub fn ratio(&self) -> f64 {
        let bytes = self.clean_bytes + self.dirty_bytes;
        if bytes == 0 {
            return 0.0;
        }
        self.dirty_bytes as f64 / bytes as f64
    }

    pub fn is_clean(&self) -> bool {
        self.dirty_bytes == 0
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::model::FilePosition;

    /// Segments of 10 offsets and 100 bytes, the newest record of each a second younger than the one before.
    fn of(count: i64, first_dirty: i64, below: i64, min_lag_ms: u64) -> Dirtiness {
        let segments: Vec<_> = (0..count)
            .map(|n| {
                let (base, next) = (Offset(n * 10), Offset(n * 10 + 10));
                let newest = TimestampMs(n * 1_000);
                let size = FilePosition(100);
                Rc::new(SealedSegment::new(
                    Path::new("d"),
                    base,
                    next,
                    size,
                    newest,
                    4096,
                    None,
                ))
            })
            .collect();
        let bounds = CleaningBounds {
            first_dirty: Offset(first_dirty),
            below: Offset(below),
            min_lag_ms,
            now: TimestampMs(5_000),
        };
        Dirtiness::of(segments.iter(), bounds)
    }

    #[test]
    fn what_was_cleaned_before_is_not_dirty() {
        let dirtiness = of(4, 10, 100, 0);
        assert_eq!((dirtiness.clean_bytes, dirtiness.dirty_bytes), (100, 300));
        assert_eq!(dirtiness.first_uncleanable, Offset(40));
        assert_eq!(dirtiness.ratio(), 0.75);
        assert!(of(4, 40, 100, 0).is_clean());
        assert_eq!(of(0, 0, 100, 0).ratio(), 0.0);
    }

    #[test]
    fn a_segment_whose_middle_was_reached_is_dirty_still() {
        assert_eq!(of(4, 15, 100, 0).dirty_bytes, 300);
    }

    #[test]
    fn cleaning_stops_at_the_first_young_segment_and_at_what_is_not_confirmed() {
        let young = of(4, 0, 100, 3_500);
        assert_eq!(
            (young.dirty_bytes, young.first_uncleanable),
            (200, Offset(20))
        );
        let unconfirmed = of(4, 0, 25, 0);
        assert_eq!(
            (unconfirmed.dirty_bytes, unconfirmed.first_uncleanable),
            (200, Offset(20))
        );
    }
}
