//! When a segment has to go. Kafka's rules: whole segments, oldest first, and the first one that may stay keeps all behind it.
//!
//! ```text
//!              below the log start    the log is large enough without it    its newest record is too old
//!   policy     any                    delete                                delete
//! ```
//!
//! A segment whose newest timestamp lies in the future is not old: it stays until the clock has passed that time and `retention.ms`, and
//! everything behind it with it, unless it is due by size. `message.timestamp.after.max.ms` bounds how far ahead that may be.

use crate::model::{FilePosition, Offset, TimestampMs};
use crate::storage::log::Log;

/// When old segments are due (`retention.bytes`, `retention.ms`); `None` is no limit.
#[derive(Clone, Copy, Debug)]
pub struct RetentionRules {
    pub bytes: Option<u64>,
    pub ms: Option<u64>,
}

/// What a segment is judged by.
#[derive(Clone, Copy, Debug)]
pub struct SegmentAge {
    /// The offset behind its last record.
    pub next_offset: Offset,
    /// The largest timestamp of its records, or when it was written where none has one.
    pub newest: TimestampMs,
    /// Bytes of the log without it and what is older.
    pub left_bytes: u64,
}

/// Why a segment goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// It lies wholly below the log start offset, which DeleteRecords has moved.
    LogStart,
    Size,
    Age,
}

impl RetentionRules {
    /// Why the segment is due in a log that starts at `start`; `None` if it stays.
    pub fn judge(self, segment: SegmentAge, start: Offset, now: TimestampMs) -> Option<Due> {
        let age_ms = now.0.saturating_sub(segment.newest.0);
        let is_older = |limit: u64| u64::try_from(age_ms).is_ok_and(|age| age > limit);
        if segment.next_offset <= start {
            Some(Due::LogStart)
        } else if self.bytes.is_some_and(|limit| segment.left_bytes >= limit) {
            Some(Due::Size)
        } else if segment.newest != TimestampMs::NONE && self.ms.is_some_and(is_older) {
            Some(Due::Age)
        } else {
            None
        }
    }
}

/// What of a log is due at one moment.
#[derive(Debug)]
pub struct DueSegments {
    reasons: Vec<Due>,
    bases: Vec<Offset>,
    start: Offset,
    is_active_due: bool,
}

impl DueSegments {
    /// None is due that reaches above `below`.
    pub fn of(log: &Log, rules: RetentionRules, below: Offset, now: TimestampMs) -> Self {
        let sealed = log.sealed();
        let reasons = sealed.due(rules, log.size_bytes(), log.start(), below, now);
        let oldest = || sealed.iter().take(reasons.len());
        let last = oldest().last().map(|last| last.next_offset());
        Self {
            bases: oldest().map(|segment| segment.base_offset()).collect(),
            start: last.map_or(log.start(), |last| last.max(log.start())),
            is_active_due: reasons.len() == sealed.len() && is_active_due(log, rules, below, now),
            reasons,
        }
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.reasons.is_empty() && !self.is_active_due
    }

    /// Why each sealed segment is due, the oldest first.
    pub fn reasons(&self) -> &[Due] {
        &self.reasons
    }

    /// The base offsets of the sealed segments that are due, the oldest first.
    pub fn bases(&self) -> &[Offset] {
        &self.bases
    }

    /// Where the log starts without the sealed segments that are due.
    pub fn start(&self) -> Offset {
        self.start
    }

    /// Whether every sealed segment is due and the active one too, by its age or size: it is to be rolled first.
    pub fn is_active_due(&self) -> bool {
        self.is_active_due
    }
}

/// Where DeleteRecords has emptied an active segment, that goes on: its space is used again only when it is full.
fn is_active_due(log: &Log, rules: RetentionRules, below: Offset, now: TimestampMs) -> bool {
    let (end, active) = (log.end(), log.active());
    let age = SegmentAge {
        next_offset: end.offset,
        newest: match active.max_timestamp() {
            TimestampMs::NONE => active.last_append(),
            newest => newest,
        },
        left_bytes: 0,
    };
    end.position > FilePosition::ZERO
        && end.offset <= below
        && log.is_all_written()
        && rules.judge(age, Offset::ZERO, now).is_some()
}

/// The newest timestamp of a log's oldest segment.
pub fn oldest_newest(log: &Log) -> TimestampMs {
    let oldest = log.sealed().iter().next();
    oldest.map_or(log.active().max_timestamp(), |segment| segment.newest())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: TimestampMs = TimestampMs(10_000);

    fn judge(rules: RetentionRules, newest: i64, left_bytes: u64) -> Option<Due> {
        let segment = SegmentAge {
            next_offset: Offset(100),
            newest: TimestampMs(newest),
            left_bytes,
        };
        rules.judge(segment, Offset(0), NOW)
    }

    fn by_age(ms: u64) -> RetentionRules {
        RetentionRules {
            bytes: None,
            ms: Some(ms),
        }
    }

    #[test]
    fn a_segment_is_due_when_its_newest_record_is_older_than_the_limit_and_not_before() {
        assert_eq!(judge(by_age(4_000), 6_000, 0), None);
        assert_eq!(judge(by_age(4_000), 5_999, 0), Some(Due::Age));
        assert_eq!(judge(by_age(0), 10_000, 0), None);
    }

    #[test]
    fn a_newest_record_in_the_future_is_never_too_old() {
        assert_eq!(judge(by_age(0), 10_001, 0), None);
        assert_eq!(judge(by_age(0), i64::MAX, 0), None);
        assert_eq!(judge(by_age(u64::MAX), 0, 0), None);
    }

    #[test]
    fn what_has_no_time_at_all_is_not_too_old() {
        assert_eq!(judge(by_age(0), TimestampMs::NONE.0, 0), None);
    }

    #[test]
    fn a_segment_is_due_by_size_when_the_rest_is_still_large_enough() {
        let rules = RetentionRules {
            bytes: Some(150),
            ms: None,
        };
        assert_eq!(judge(rules, 10_001, 150), Some(Due::Size));
        assert_eq!(judge(rules, 0, 149), None);
    }

    #[test]
    fn without_limits_only_what_lies_below_the_start_goes() {
        let rules = RetentionRules {
            bytes: None,
            ms: None,
        };
        let segment = SegmentAge {
            next_offset: Offset(100),
            newest: TimestampMs(0),
            left_bytes: u64::MAX,
        };
        assert_eq!(rules.judge(segment, Offset(99), NOW), None);
        assert_eq!(rules.judge(segment, Offset(100), NOW), Some(Due::LogStart));
    }
}
