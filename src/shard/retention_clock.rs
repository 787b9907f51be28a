//! The time by which ages are judged: the wall clock, without what it has jumped ahead. And the time that is written down to be judged
//! by later: the wall clock, without what it was set back.
//!
//! A clock that is set far ahead would make everything due at once, and what is deleted does not come back when it is set right. So a step
//! that the monotonic clock did not take is held back: it counts only once it has lasted for `log.retention.clock.jump.hold.ms`, or the
//! broker is started anew. A step back takes back what was held; beyond that ages are judged by the clock as it is now, by which
//! everything is younger and nothing more is due. A broker's start has nothing to compare with and believes the clock.
//!
//! The other way round, what is stamped while a clock is set back would be old at once when the clock is set right. So a step back counts
//! for stamps only once it has lasted as long. Of the two times, ages are judged by the earlier and stamps are made by the later one.
//!
//! ```text
//!   wall       12:00   12:01   +3 days   +3 days 00:01   ...   held for a day      or   12:03 (set right)
//!   judged by  12:00   12:01   12:01     12:02           ...   the wall clock again     12:03
//!
//!   wall       12:00   12:01   -3 days   -3 days 00:01   ...   for a day           or   12:03 (set right)
//!   stamped    12:00   12:01   12:01     12:02           ...   the wall clock again     12:03
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
    /// How far behind the time by which stamps are made it is; not negative.
    back_ms: i64,
    /// The last step ahead.
    held_since: Monotonic,
    /// The last step back.
    back_since: Monotonic,
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
            self.back_ms = without_rest(self.back_ms.saturating_sub(step_ms));
            self.held_since = monotonic;
            return Some(ClockStep::Ahead { ms: step_ms });
        }
        if step_ms < -CLOCK_STEP_MS_MAX {
            let left_ms = self.held_ms.saturating_add(step_ms);
            self.held_ms = without_rest(left_ms);
            let back_ms = without_rest(left_ms.saturating_neg());
            self.back_ms = self.back_ms.saturating_add(back_ms);
            self.back_since = monotonic;
            return Some(ClockStep::Back {
                ms: step_ms.saturating_neg(),
            });
        }
        if monotonic.since(self.back_since) >= hold {
            self.back_ms = 0;
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

    /// What is written down at `wall` for `judging` to be compared with later.
    pub fn stamping(&self, wall: TimestampMs) -> TimestampMs {
        TimestampMs(wall.0.saturating_add(self.back_ms))
    }

    pub fn held_ms(&self) -> u64 {
        self.held_ms.unsigned_abs()
    }
}

/// A step that undoes another one is seldom of the same length to the millisecond.
fn without_rest(ms: i64) -> i64 {
    if ms <= CLOCK_STEP_MS_MAX { 0 } else { ms }
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

        /// How far the wall clock is behind the time by which stamps are made.
        fn behind_ms(&self) -> i64 {
            self.retention.stamping(self.clock.now()).0 - self.clock.now().0
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
    fn what_is_stamped_while_the_clock_is_set_back_is_not_old_when_it_is_set_right() {
        let mut watched = Watched::new();
        watched.step(-10 * DAY_MS);
        assert_eq!(watched.behind_ms(), 10 * DAY_MS);
        watched.pass(Duration::from_secs(3_600));
        assert_eq!(watched.behind_ms(), 10 * DAY_MS);
        watched.step(10 * DAY_MS - 70);
        assert_eq!(watched.behind_ms(), 0);
    }

    #[test]
    fn a_step_back_that_lasts_counts_for_stamps_too() {
        let mut watched = Watched::new();
        watched.step(-10 * DAY_MS);
        watched.pass(HOLD - Duration::from_secs(1));
        assert_eq!(watched.behind_ms(), 10 * DAY_MS);
        watched.pass(Duration::from_secs(1));
        assert_eq!(watched.behind_ms(), 0);
    }

    #[test]
    fn a_step_back_that_only_undoes_one_ahead_leaves_stamps_at_the_wall_clock() {
        let mut watched = Watched::new();
        watched.step(3 * DAY_MS);
        assert_eq!(watched.behind_ms(), 0, "stamps are not held back");
        watched.step(-3 * DAY_MS);
        assert_eq!((watched.ahead_ms(), watched.behind_ms()), (0, 0));
        watched.step(3 * DAY_MS);
        watched.step(-5 * DAY_MS);
        assert_eq!((watched.ahead_ms(), watched.behind_ms()), (0, 2 * DAY_MS));
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
