//! When each record is meant to be sent. The schedule never waits for the broker: that is what makes the loop open.

use serde::{Deserialize, Serialize};

use std::time::Duration;

/// The send times of one producer's records, numbered from 0.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum Schedule {
    /// Record `k` is due at `start + k / rate`, whatever the broker does; none is due from `end` on.
    Paced {
        start_ns: u64,
        end_ns: u64,
        records_per_second: f64,
    },
    /// Until `end`, every record is due now. Only the requests in flight hold the load back, so its latency is
    /// a closed loop's.
    Closed { end_ns: u64 },
}

/// The records that go into the next batch, and when that batch is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// This many records, in a batch that could be sent since `since_ns`.
    Now { since_ns: u64, record_count: u32 },
    /// Not before this instant.
    At(u64),
    /// No record is left.
    Never,
}

impl Schedule {
    /// The same, with all its instants moved.
    pub fn later_by(self, by_ns: u64) -> Self {
        match self {
            Self::Paced {
                start_ns,
                end_ns,
                records_per_second,
            } => Self::Paced {
                start_ns: start_ns + by_ns,
                end_ns: end_ns + by_ns,
                records_per_second,
            },
            Self::Closed { end_ns } => Self::Closed {
                end_ns: end_ns + by_ns,
            },
        }
    }

    /// The same, but none is due from `earlier_ns` on, if that is before its end.
    pub fn ending_at(self, earlier_ns: u64) -> Self {
        match self {
            Self::Paced {
                start_ns,
                end_ns,
                records_per_second,
            } => Self::Paced {
                start_ns,
                end_ns: end_ns.min(earlier_ns),
                records_per_second,
            },
            Self::Closed { end_ns } => Self::Closed {
                end_ns: end_ns.min(earlier_ns),
            },
        }
    }

    /// When record `k` is meant to be sent. In a closed loop that is when its batch was built.
    pub fn intended_ns(&self, record: u64, built_ns: u64) -> u64 {
        match *self {
            Self::Paced {
                start_ns,
                records_per_second,
                ..
            } => start_ns + (record as f64 * 1e9 / records_per_second) as u64,
            Self::Closed { .. } => built_ns,
        }
    }

    /// How many records are due before `at_ns`; in a closed loop that is not known.
    pub fn record_count_before(&self, at_ns: u64) -> Option<u64> {
        match *self {
            Self::Paced {
                start_ns,
                end_ns,
                records_per_second,
            } => {
                let seconds = at_ns.min(end_ns).saturating_sub(start_ns) as f64 / 1e9;
                Some((seconds * records_per_second).ceil() as u64)
            }
            Self::Closed { .. } => None,
        }
    }

    /// Whether no record is due after `now_ns` that was not due before.
    pub fn is_over(&self, now_ns: u64) -> bool {
        match *self {
            Self::Paced { end_ns, .. } | Self::Closed { end_ns } => now_ns >= end_ns,
        }
    }

    /// What may be sent at `now_ns` if record `next` is the first that was not sent yet. A batch is complete
    /// when it is full or when its first record has waited for `linger`; it then takes every record that is
    /// due, up to `record_count_max`.
    pub fn due(&self, next: u64, record_count_max: u32, linger: Duration, now_ns: u64) -> Due {
        let (start_ns, end_ns, records_per_second) = match *self {
            Self::Closed { end_ns } if now_ns >= end_ns => return Due::Never,
            Self::Closed { .. } => {
                return Due::Now {
                    since_ns: now_ns,
                    record_count: record_count_max,
                };
            }
            Self::Paced {
                start_ns,
                end_ns,
                records_per_second,
            } => (start_ns, end_ns, records_per_second),
        };
        let left = self
            .record_count_before(end_ns)
            .map_or(0, |count| count.saturating_sub(next));
        if left == 0 {
            return Due::Never;
        }
        let full_count = left.min(u64::from(record_count_max));
        let full_ns = self.intended_ns(next + full_count - 1, now_ns);
        let lingered_ns = self.intended_ns(next, now_ns) + linger.as_nanos() as u64;
        let since_ns = full_ns.min(lingered_ns);
        if now_ns < since_ns {
            return Due::At(since_ns);
        }
        let due_up_to = ((now_ns - start_ns) as f64 * records_per_second / 1e9) as u64 + 1;
        Due::Now {
            since_ns,
            record_count: due_up_to.saturating_sub(next).clamp(1, full_count) as u32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn one_record_a_millisecond() -> Schedule {
        Schedule::Paced {
            start_ns: 0,
            end_ns: 1000 * MS,
            records_per_second: 1000.0,
        }
    }

    #[test]
    fn a_batch_waits_until_its_first_record_has_lingered() {
        let schedule = one_record_a_millisecond();
        let linger = Duration::from_millis(5);
        assert_eq!(schedule.due(10, 100, linger, 14 * MS), Due::At(15 * MS));
        assert_eq!(
            schedule.due(10, 100, linger, 15 * MS),
            Due::Now {
                since_ns: 15 * MS,
                record_count: 6
            }
        );
    }

    #[test]
    fn a_full_batch_does_not_wait_for_its_linger() {
        let schedule = one_record_a_millisecond();
        let due = schedule.due(0, 3, Duration::from_secs(1), 2 * MS);
        assert_eq!(
            due,
            Due::Now {
                since_ns: 2 * MS,
                record_count: 3
            }
        );
    }

    #[test]
    fn a_late_sender_finds_every_record_that_came_due_up_to_a_full_batch() {
        let schedule = one_record_a_millisecond();
        assert_eq!(
            schedule.due(0, 1000, Duration::ZERO, 100 * MS),
            Due::Now {
                since_ns: 0,
                record_count: 101
            }
        );
        assert_eq!(
            schedule.due(0, 64, Duration::ZERO, 100 * MS),
            Due::Now {
                since_ns: 0,
                record_count: 64
            }
        );
    }

    #[test]
    fn exactly_the_records_before_the_end_are_due_however_late_the_sender_is() {
        let schedule = one_record_a_millisecond();
        assert_eq!(schedule.record_count_before(u64::MAX), Some(1000));
        assert_eq!(
            schedule.due(990, 100, Duration::ZERO, 5000 * MS),
            Due::Now {
                since_ns: 990 * MS,
                record_count: 10
            }
        );
        assert_eq!(
            schedule.due(1000, 100, Duration::ZERO, 5000 * MS),
            Due::Never
        );
    }

    #[test]
    fn the_last_batch_does_not_wait_for_records_that_never_come() {
        let schedule = one_record_a_millisecond();
        let due = schedule.due(990, 100, Duration::from_secs(9), 999 * MS);
        assert_eq!(
            due,
            Due::Now {
                since_ns: 999 * MS,
                record_count: 10
            }
        );
    }

    #[test]
    fn the_schedule_keeps_its_rate_over_an_hour() {
        let schedule = Schedule::Paced {
            start_ns: 7,
            end_ns: u64::MAX,
            records_per_second: 195_312.5,
        };
        let hour_of_records = (3600.0 * 195_312.5) as u64;
        assert_eq!(
            schedule.intended_ns(hour_of_records, 0),
            7 + 3_600_000_000_000
        );
    }

    #[test]
    fn a_closed_loop_has_a_full_batch_until_its_end_and_intends_it_when_it_is_built() {
        let schedule = Schedule::Closed { end_ns: 100 };
        assert_eq!(
            schedule.due(5, 10, Duration::from_secs(1), 77),
            Due::Now {
                since_ns: 77,
                record_count: 10
            }
        );
        assert_eq!(schedule.due(5, 10, Duration::ZERO, 100), Due::Never);
        assert_eq!(schedule.intended_ns(5, 77), 77);
    }
}
