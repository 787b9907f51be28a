//! How fast a cleaning may go: `log.cleaner.io.max.bytes.per.second`.

use std::time::Duration;

use crate::io::clock::Monotonic;

/// Bytes read and written, against the time that they may take. What was not used is not saved up: after a pause the cleaner does not
/// go any faster.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// When everything so far may have been done at the earliest.
    earned: Monotonic,
}

impl Pace {
    pub fn starting(now: Monotonic) -> Self {
        Self { earned: now }
    }

    /// How long to wait after `bytes` more, at `bytes_per_second` from here on.
    pub fn spend(&mut self, bytes: u64, bytes_per_second: f64, now: Monotonic) -> Duration {
        let cost_s = bytes as f64 / bytes_per_second.max(1.0);
        // A wait is at most a minute long, so that a limit that is raised or a stop is soon seen.
        let cost = Duration::from_secs_f64(cost_s.min(60.0));
        self.earned = self.earned.max(now) + cost;
        self.earned.since(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Monotonic {
        Monotonic::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn each_byte_takes_its_time() {
        let mut pace = Pace::starting(at(0));
        assert_eq!(pace.spend(500, 1_000.0, at(0)), Duration::from_millis(500));
        assert_eq!(
            pace.spend(500, 1_000.0, at(400)),
            Duration::from_millis(600)
        );
        assert_eq!(pace.spend(1_000, f64::MAX, at(1_000)), Duration::ZERO);
    }

    #[test]
    fn a_pause_earns_nothing() {
        let mut pace = Pace::starting(at(0));
        assert_eq!(
            pace.spend(100, 1_000.0, at(60_000)),
            Duration::from_millis(100)
        );
    }

    #[test]
    fn a_wait_has_an_end_whatever_the_limit() {
        let mut pace = Pace::starting(at(0));
        assert_eq!(pace.spend(u64::MAX, 0.0, at(0)), Duration::from_secs(60));
    }
}
