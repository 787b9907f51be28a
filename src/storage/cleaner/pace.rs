//! How fast a cleaning may go: by `log.cleaner.io.max.bytes.per.second`, and slower than that while clients are served.

use std::time::Duration;

use crate::io::clock::Monotonic;
use crate::model::limits::{
    CLEANING_BUSY_PERCENT_MAX, CLEANING_BUSY_PERCENT_MIN, CLEANING_ROUND_MS_MAX,
    CLEANING_SERVING_BYTES_PER_SECOND_MIN, CLEANING_SERVING_MS,
};

/// The speed of a shard's cleaner. At full speed it takes the disk and the core from whoever produces meanwhile, in bursts of a tenth
/// of a second; at the least speed that keeps up nobody notices. That speed is found by how long the cleaner rests: a round is
/// everything between two rests, and one that takes most of the time, or has no end, makes the next bytes faster.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// When everything so far may have been done at the earliest.
    earned: Monotonic,
    /// Bytes per second while clients are served.
    serving_speed: f64,
    rested_from: Monotonic,
    round_from: Monotonic,
    /// In this round: when the speed was last raised, or the round began.
    raised_at: Monotonic,
    served_count: u64,
    served_at: Option<Monotonic>,
}

/// What a piece of work has cost, and what it has to heed.
#[derive(Clone, Copy, Debug)]
pub struct Spent {
    /// Read and written.
    pub bytes: u64,
    /// `log.cleaner.io.max.bytes.per.second`, this shard's share.
    pub limit_bytes_per_second: f64,
    /// Of what clients asked, since the start: it grows while they are served.
    pub served_count: u64,
}

impl Pace {
    pub fn starting(now: Monotonic) -> Self {
        Self {
            earned: now,
            serving_speed: CLEANING_SERVING_BYTES_PER_SECOND_MIN,
            rested_from: now,
            round_from: now,
            raised_at: now,
            served_count: 0,
            served_at: None,
        }
    }

    /// The rest is over.
    pub fn begin_round(&mut self, now: Monotonic) {
        self.round_from = now;
        self.raised_at = now;
    }

    /// All is clean.
    pub fn end_round(&mut self, now: Monotonic) {
        let busy = now.since(self.round_from).as_secs_f64();
        let whole = now.since(self.rested_from).as_secs_f64();
        let busy_percent = 100.0 * busy / whole.max(f64::MIN_POSITIVE);
        if busy_percent > CLEANING_BUSY_PERCENT_MAX {
            self.serving_speed *= 2.0;
        } else if busy_percent < CLEANING_BUSY_PERCENT_MIN {
            self.serving_speed =
                (self.serving_speed / 2.0).max(CLEANING_SERVING_BYTES_PER_SECOND_MIN);
        }
        self.rested_from = now;
    }

    /// How long to wait after a piece of work. What was not used is not saved up: after a pause the cleaner does not go any faster.
    pub fn spend(&mut self, spent: Spent, now: Monotonic) -> Duration {
        if now.since(self.raised_at) >= Duration::from_millis(CLEANING_ROUND_MS_MAX) {
            self.raised_at = now;
            self.serving_speed *= 2.0;
        }
        let limit = spent.limit_bytes_per_second.max(1.0);
        let bytes_per_second = match self.serves(spent.served_count, now) {
            true => limit.min(self.serving_speed),
            false => limit,
        };
        let cost_s = spent.bytes as f64 / bytes_per_second;
        // A wait is at most a minute long, so that a limit that is raised or a stop is soon seen.
        let cost = Duration::from_secs_f64(cost_s.min(60.0));
        self.earned = self.earned.max(now) + cost;
        self.earned.since(now)
    }

    fn serves(&mut self, served_count: u64, now: Monotonic) -> bool {
        if self.served_count != served_count {
            self.served_count = served_count;
            self.served_at = Some(now);
        }
        let recently = Duration::from_millis(CLEANING_SERVING_MS);
        self.served_at.is_some_and(|at| now.since(at) < recently)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAST: f64 = 1e12;
    const SLOWEST: f64 = CLEANING_SERVING_BYTES_PER_SECOND_MIN;

    fn at(ms: u64) -> Monotonic {
        Monotonic::ZERO + Duration::from_millis(ms)
    }

    fn spent(bytes: u64, limit_bytes_per_second: f64) -> Spent {
        Spent {
            bytes,
            limit_bytes_per_second,
            served_count: 0,
        }
    }

    /// How fast a second's worth of the slowest speed may go while clients are served.
    fn serving_ms(pace: &mut Pace, now: Monotonic) -> u64 {
        let spent = Spent {
            bytes: SLOWEST as u64,
            limit_bytes_per_second: FAST,
            served_count: pace.served_count + 1,
        };
        let wait = pace.spend(spent, now);
        pace.earned = now;
        wait.as_millis() as u64
    }

    #[test]
    fn each_byte_takes_its_time() {
        let mut pace = Pace::starting(at(0));
        let half = spent(500, 1_000.0);
        assert_eq!(pace.spend(half, at(0)), Duration::from_millis(500));
        assert_eq!(pace.spend(half, at(400)), Duration::from_millis(600));
        assert_eq!(
            pace.spend(spent(1_000, f64::MAX), at(1_000)),
            Duration::ZERO
        );
    }

    #[test]
    fn a_pause_earns_nothing() {
        let mut pace = Pace::starting(at(0));
        let wait = pace.spend(spent(100, 1_000.0), at(60_000));
        assert_eq!(wait, Duration::from_millis(100));
    }

    #[test]
    fn a_wait_has_an_end_whatever_the_limit() {
        let mut pace = Pace::starting(at(0));
        let wait = pace.spend(spent(u64::MAX, 0.0), at(0));
        assert_eq!(wait, Duration::from_secs(60));
    }

    #[test]
    fn while_clients_are_served_it_is_slow_whatever_the_limit() {
        let mut pace = Pace::starting(at(0));
        assert_eq!(serving_ms(&mut pace, at(0)), 1_000);
        // Nobody asked since.
        let idle = Spent {
            served_count: pace.served_count,
            ..spent(SLOWEST as u64, FAST)
        };
        assert!(pace.spend(idle, at(CLEANING_SERVING_MS - 1)) > Duration::from_millis(900));
        pace.earned = at(0);
        assert!(pace.spend(idle, at(CLEANING_SERVING_MS)) < Duration::from_millis(1));
        let limited = spent(500, 1_000.0);
        assert_eq!(
            pace.spend(limited, at(2_000)),
            Duration::from_millis(500),
            "the limit holds"
        );
    }

    #[test]
    fn rounds_that_take_most_of_the_time_make_it_faster_and_short_ones_slower() {
        let mut pace = Pace::starting(at(0));
        pace.begin_round(at(1_000));
        pace.end_round(at(9_000));
        assert_eq!(serving_ms(&mut pace, at(9_000)), 500);
        // Half of the time: it stays.
        pace.begin_round(at(11_000));
        pace.end_round(at(13_000));
        assert_eq!(serving_ms(&mut pace, at(13_000)), 500);
        for _ in 0..5 {
            pace.begin_round(at(22_000));
            pace.end_round(at(22_100));
            pace.rested_from = at(12_000);
        }
        assert_eq!(serving_ms(&mut pace, at(22_100)), 1_000, "not below that");
    }

    #[test]
    fn a_round_without_an_end_gets_faster() {
        let mut pace = Pace::starting(at(0));
        pace.begin_round(at(0));
        for doubled in 0..5 {
            let now = at(doubled * CLEANING_ROUND_MS_MAX);
            assert_eq!(serving_ms(&mut pace, now), 1_000 >> doubled);
        }
    }
}
