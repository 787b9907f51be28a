//! One clock for a run: monotonic nanoseconds since the run's start, tied once to the wall clock.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Copied into every thread, so that all of them mean the same instant by the same number.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: Instant,
    origin_unix_ns: i64,
}

impl Clock {
    pub fn start() -> Self {
        let since_epoch = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .expect("the wall clock is after 1970");
        Self {
            origin: Instant::now(),
            origin_unix_ns: since_epoch.as_nanos() as i64,
        }
    }

    /// Nanoseconds since the run's start.
    pub fn now_ns(&self) -> u64 {
        self.origin.elapsed().as_nanos() as u64
    }

    /// What the wall clock showed at this clock's start.
    pub fn origin_unix_ns(&self) -> i64 {
        self.origin_unix_ns
    }

    /// The same instants under another machine's wall clock.
    pub fn with_origin_unix_ns(self, origin_unix_ns: i64) -> Self {
        Self {
            origin_unix_ns,
            ..self
        }
    }

    /// What the wall clock showed, or will show, at an instant of this run.
    pub fn unix_ns(&self, at_ns: u64) -> i64 {
        self.origin_unix_ns + at_ns as i64
    }

    /// The instant of this run at which the wall clock showed `unix_ns`; 0 if that was before the run.
    pub fn at_ns(&self, unix_ns: i64) -> u64 {
        unix_ns.saturating_sub(self.origin_unix_ns).max(0) as u64
    }
}
