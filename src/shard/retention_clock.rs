//! The time by which ages are judged: the wall clock, without what it has jumped ahead.
//!
//! A clock that is set far ahead would make everything due at once, and what is deleted does not come back when it is set right. So a step
//! that the monotonic clock did not take is held back: it counts only once it has lasted for `log.retention.clock.jump.hold.ms`, or the
//! broker is started anew. A step back takes back what was held; beyond that ages are judged by the clock as it is now, by which
//! everything is younger and nothing more is due. A broker's start has nothing to compare with and believes the clock.
//!
//! ```text
//!   wall       12:00   12:01   +3 days   +3 days 00:01   ...   held for a day      or   12:03 (set right)
//!   judged by  12:00   12:01   12:01     12:02           ...   the wall clock again     12:03
//! ```

use std::time::Duration;

use crate::io::clock::Monotonic;
use crate::model::TimestampMs;
use crate::model::limits::CLOCK_STEP_MS_MAX;

#[derive(Debug, Default)]
pub struct RetentionClock {
    last: Option<(TimestampMs, Monotonic)>,
    /// How far ahead of the time by which ages are judged the wall clock is; not negative.
    held_ms: i64,
    /// The last step ahead.
    held_since: Monotonic,
}

/// What an operator is told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockStep {
    Ahead {
        ms: i64,
    },
    Back {
        ms: i64,
    },
    /// What was held has lasted long enough and counts from now on.
    Believed {
        ms: i64,
    },
}

impl RetentionClock {
    /// To be told both clocks often. A step is believed after `hold`.
    pub fn observe(
        &mut self,
        wall: TimestampMs,
        monotonic: Monotonic,
        hold: Duration,
    ) -> Option<ClockStep> {
        let (wall_before, monotonic_before) = self.last.replace((wall, monotonic))?;
        let passed_ms = i64::try_from(monotonic.since(monotonic_before).as_millis());
        let step_ms = wall
            .0
            .saturating_sub(wall_before.0)
            .saturating_sub(passed_ms.unwrap_or(i64::MAX));
        if step_ms > CLOCK_STEP_MS_MAX {
            self.held_ms = self.held_ms.saturating_add(step_ms);
            self.held_since = monotonic;
            return Some(ClockStep::Ahead { ms: step_ms });
        }
        if step_ms < -CLOCK_STEP_MS_MAX {
            self.held_ms = self.held_ms.saturating_add(step_ms);
            // A step back that undoes one ahead is seldom of the same length to the millisecond.
            if self.held_ms <= CLOCK_STEP_MS_MAX {
                self.held_ms = 0;
            }
            return Some(ClockStep::Back {
                ms: step_ms.saturating_neg(),
            });
        }
        if self.held_ms > 0 && monotonic.since(self.held_since) >= hold {
            let ms = std::mem::take(&mut self.held_ms);
            return Some(ClockStep::Believed { ms });
        }
        None
    }

    /// The time by which ages are judged, as of the last observation: a later look at the wall clock might already see a jump that nobody
    /// has noticed. `NONE`, by which nothing is old, before the first.
    pub fn judging(&self) -> TimestampMs {
        self.last.map_or(TimestampMs::NONE, |(wall, _)| {
            TimestampMs(wall.0.saturating_sub(self.held_ms))
        })
    }

    pub fn held_ms(&self) -> u64 {
        self.held_ms.unsigned_abs()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::clock::Clock;

    const DAY_MS: i64 = 24 * 3_600_000;
    const NOW: TimestampMs = TimestampMs(20_000 * DAY_MS);
    const HOLD: Duration = Duration::from_secs(24 * 3_600);

    struct Watched {
        clock: Clock,
        retention: RetentionClock,
    }

    impl Watched {
        fn new() -> Self {
            let mut watched = Self {
                clock: Clock::manual(NOW),
                retention: RetentionClock::default(),
            };
            assert_eq!(watched.observe(), None);
            watched
        }

        fn observe(&mut self) -> Option<ClockStep> {
            let (wall, monotonic) = (self.clock.now(), self.clock.monotonic());
            self.retention.observe(wall, monotonic, HOLD)
        }

        fn step(&mut self, ms: i64) -> Option<ClockStep> {
            self.clock.set_wall(TimestampMs(self.clock.now().0 + ms));
            self.observe()
        }

        fn pass(&mut self, time: Duration) -> Option<ClockStep> {
            self.clock.advance(time);
            self.observe()
        }

        /// How far the wall clock is ahead of the time by which ages are judged.
        fn ahead_ms(&self) -> i64 {
            self.clock.now().0 - self.retention.judging().0
        }
    }

    #[test]
    fn before_the_first_look_nothing_is_old() {
        assert_eq!(RetentionClock::default().judging(), TimestampMs::NONE);
    }

    #[test]
    fn a_clock_that_goes_as_time_does_is_the_wall_clock() {
        let mut watched = Watched::new();
        for _ in 0..100 {
            assert_eq!(watched.pass(Duration::from_secs(3_600)), None);
        }
        assert_eq!(watched.ahead_ms(), 0);
    }

    #[test]
    fn a_step_ahead_makes_nothing_older_until_it_has_lasted() {
        let mut watched = Watched::new();
        let ahead = ClockStep::Ahead { ms: 3 * DAY_MS };
        assert_eq!(watched.step(3 * DAY_MS), Some(ahead));
        assert_eq!(watched.ahead_ms(), 3 * DAY_MS);
        assert_eq!(watched.pass(HOLD - Duration::from_secs(1)), None);
        assert_eq!(watched.ahead_ms(), 3 * DAY_MS, "time goes on beside it");
        let believed = ClockStep::Believed { ms: 3 * DAY_MS };
        assert_eq!(watched.pass(Duration::from_secs(1)), Some(believed));
        assert_eq!(watched.ahead_ms(), 0);
    }

    #[test]
    fn steps_ahead_add_up_and_the_last_one_counts_for_how_long_they_last() {
        let mut watched = Watched::new();
        watched.step(DAY_MS);
        watched.pass(HOLD - Duration::from_secs(1));
        watched.step(DAY_MS);
        assert_eq!(watched.pass(HOLD - Duration::from_secs(1)), None);
        assert_eq!(watched.ahead_ms(), 2 * DAY_MS);
        let believed = ClockStep::Believed { ms: 2 * DAY_MS };
        assert_eq!(watched.pass(Duration::from_secs(1)), Some(believed));
    }

    #[test]
    fn a_clock_that_is_set_right_again_holds_nothing() {
        let mut watched = Watched::new();
        watched.step(3 * DAY_MS);
        let ms = 3 * DAY_MS - 70;
        assert_eq!(watched.step(-ms), Some(ClockStep::Back { ms }));
        assert_eq!(watched.ahead_ms(), 0);
        assert_eq!(watched.retention.held_ms(), 0);
    }

    #[test]
    fn a_step_back_is_followed_at_once_and_the_way_ahead_again_is_a_step() {
        let mut watched = Watched::new();
        assert_eq!(watched.step(-DAY_MS), Some(ClockStep::Back { ms: DAY_MS }));
        assert_eq!(watched.ahead_ms(), 0, "everything is younger now");
        watched.step(DAY_MS);
        assert_eq!(watched.ahead_ms(), DAY_MS);
    }

    #[test]
    fn what_a_clock_is_corrected_by_little_by_little_is_no_step() {
        let mut watched = Watched::new();
        for _ in 0..1_000 {
            assert_eq!(watched.step(CLOCK_STEP_MS_MAX), None);
            assert_eq!(watched.step(-CLOCK_STEP_MS_MAX), None);
        }
        assert_eq!(watched.ahead_ms(), 0);
    }
}
