//! Time as a value that a test can set.

use std::ops::Add;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::model::TimestampMs;

/// A moment of the clock that never jumps; counts from the making of its `Clock`. Time-outs and sessions use this
/// one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Monotonic {
    ns: u64,
}

impl Monotonic {
    pub const ZERO: Self = Self { ns: 0 };

    pub fn as_ns(self) -> u64 {
        self.ns
    }

    pub fn as_ms(self) -> u64 {
        self.ns / 1_000_000
    }

    /// Zero if `earlier` is the later one.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.ns.saturating_sub(earlier.ns))
    }
}

/// Saturates: 584 years are for ever.
impl Add<Duration> for Monotonic {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        let ns = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        Self {
            ns: self.ns.saturating_add(ns),
        }
    }
}

/// The wall clock (which may jump) and the monotonic clock. A clone shows the same time; it may go to any thread.
#[derive(Clone, Debug)]
pub struct Clock(Source);

#[derive(Clone, Debug)]
enum Source {
    System { start: Instant },
    Manual(Arc<Hands>),
}

#[derive(Debug)]
struct Hands {
    wall_ms: AtomicI64,
    monotonic_ns: AtomicU64,
}

impl Clock {
    pub fn system() -> Self {
        Self(Source::System {
            start: Instant::now(),
        })
    }

    /// A clock that stands still until it is moved.
    pub fn manual(wall: TimestampMs) -> Self {
        Self(Source::Manual(Arc::new(Hands {
            wall_ms: AtomicI64::new(wall.0),
            monotonic_ns: AtomicU64::new(0),
        })))
    }

    pub fn now(&self) -> TimestampMs {
        match &self.0 {
            Source::System { .. } => {
                // A machine set before 1970 shows 1970: record timestamps below zero mean "none".
                let since_epoch = SystemTime::now()
                    .duration_since(UNIX_EPOCH)
                    .unwrap_or_default();
                TimestampMs(i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX))
            }
            Source::Manual(hands) => TimestampMs(hands.wall_ms.load(Ordering::Relaxed)),
        }
    }

    pub fn monotonic(&self) -> Monotonic {
        match &self.0 {
            Source::System { start } => Monotonic::ZERO + start.elapsed(),
            Source::Manual(hands) => Monotonic {
                ns: hands.monotonic_ns.load(Ordering::Relaxed),
            },
        }
    }

    /// Moves both hands of a manual clock. Panics on a system clock.
    pub fn advance(&self, duration: Duration) {
        let hands = self.hands();
        let ms = i64::try_from(duration.as_millis())
            .expect("a clock is advanced by less than 292 million years");
        hands.wall_ms.fetch_add(ms, Ordering::Relaxed);
        hands
            .monotonic_ns
            .store((self.monotonic() + duration).as_ns(), Ordering::Relaxed);
    }

    /// Makes the wall clock of a manual clock jump; the monotonic hand stays. Panics on a system clock.
    pub fn set_wall(&self, wall: TimestampMs) {
        self.hands().wall_ms.store(wall.0, Ordering::Relaxed);
    }

    fn hands(&self) -> &Hands {
        match &self.0 {
            Source::Manual(hands) => hands,
            Source::System { .. } => panic!("the system's clock cannot be moved"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manual_clock_moves_only_when_told_and_for_every_clone() {
        let clock = Clock::manual(TimestampMs(1000));
        let seen_elsewhere = clock.clone();
        assert_eq!(
            (clock.now(), clock.monotonic()),
            (TimestampMs(1000), Monotonic::ZERO)
        );
        clock.advance(Duration::from_millis(5));
        assert_eq!(
            (seen_elsewhere.now(), seen_elsewhere.monotonic().as_ms()),
            (TimestampMs(1005), 5)
        );
    }

    #[test]
    fn a_jump_of_the_wall_clock_leaves_the_monotonic_one() {
        let clock = Clock::manual(TimestampMs(1000));
        let before = clock.monotonic();
        clock.set_wall(TimestampMs(0));
        assert_eq!((clock.now(), clock.monotonic()), (TimestampMs(0), before));
    }

    #[test]
    fn the_system_clock_never_runs_backwards() {
        let clock = Clock::system();
        let (first, second) = (clock.monotonic(), clock.monotonic());
        assert!(second >= first);
        assert!(clock.now() > TimestampMs(1_600_000_000_000));
    }

    #[test]
    fn moments_add_and_subtract_without_overflow() {
        let late = Monotonic::ZERO + Duration::MAX;
        assert_eq!(late.as_ns(), u64::MAX);
        assert_eq!(Monotonic::ZERO.since(late), Duration::ZERO);
        assert_eq!(
            (Monotonic::ZERO + Duration::from_millis(3)).since(Monotonic::ZERO),
            Duration::from_millis(3)
        );
    }
}
