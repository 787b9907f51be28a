//! One thread that looks after the ticks of all executors and wakes an executor whose tick has stopped.
//!
//! An executor that is merely busy is woken for nothing, which costs it one write to an event counter.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Waker;
use std::thread;
use std::time::Duration;

use crate::model::limits::PULSE_MS;

/// Periods without a tick after which the log says so: about a second.
const PERIODS_UNTIL_WARNING: u64 = 1000u64.div_ceil(PULSE_MS).next_power_of_two();

/// One executor's sign of life.
pub(super) struct Heart {
    name: String,
    beats: AtomicU64,
    tick: Mutex<Option<Waker>>,
}

impl Heart {
    /// From now on a stopped tick is woken by `tick`.
    pub(super) fn start(&self, tick: Waker) {
        *lock(&self.tick) = Some(tick);
    }

    pub(super) fn beat(&self) {
        self.beats.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn stop(&self) {
        *lock(&self.tick) = None;
    }
}

struct Watched {
    heart: Weak<Heart>,
    beats_seen: u64,
    periods_without_beat: u64,
}

struct Watch {
    hearts: Vec<Watched>,
    thread_runs: bool,
}

static WATCH: Mutex<Watch> = Mutex::new(Watch {
    hearts: Vec::new(),
    thread_runs: false,
});

/// Puts an executor under watch for as long as its heart is held.
pub(super) fn watch(name: &str) -> Arc<Heart> {
    let heart = Arc::new(Heart {
        name: name.to_owned(),
        beats: AtomicU64::new(0),
        tick: Mutex::new(None),
    });
    let mut watch = lock(&WATCH);
    watch.hearts.push(Watched {
        heart: Arc::downgrade(&heart),
        beats_seen: 0,
        periods_without_beat: 0,
    });
    if !watch.thread_runs {
        let started = thread::Builder::new()
            .name("pulse".to_owned())
            .spawn(look_after_all);
        match started {
            Ok(_detached) => watch.thread_runs = true,
            // The next executor tries again; until then the tick alone has to do.
            Err(error) => {
                tracing::warn!(%error, "cannot start the thread that looks after stopped executors")
            }
        }
    }
    heart
}

/// Runs while there is an executor.
fn look_after_all() {
    loop {
        thread::sleep(Duration::from_millis(PULSE_MS));
        let mut watch = lock(&WATCH);
        watch.hearts.retain_mut(look_after);
        if watch.hearts.is_empty() {
            watch.thread_runs = false;
            return;
        }
    }
}

/// False once the executor is gone.
fn look_after(watched: &mut Watched) -> bool {
    let Some(heart) = watched.heart.upgrade() else {
        return false;
    };
    let beats = heart.beats.load(Ordering::Relaxed);
    if beats != watched.beats_seen {
        watched.beats_seen = beats;
        watched.periods_without_beat = 0;
        return true;
    }
    watched.periods_without_beat += 1;
    // Ever more rarely: each wake that the executor has not seen yet holds a 16-bit reference to its tick.
    if watched.periods_without_beat.is_power_of_two() {
        let tick = lock(&heart.tick);
        if let Some(tick) = tick.as_ref() {
            tick.wake_by_ref();
            if watched.periods_without_beat >= PERIODS_UNTIL_WARNING {
                let stopped_ms = watched.periods_without_beat * PULSE_MS;
                tracing::warn!(
                    executor = heart.name,
                    stopped_ms,
                    "an executor does not run"
                );
            }
        }
    }
    true
}

/// A panic while one of these locks is held leaves plain data that is still right.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Wakes(AtomicUsize);

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_stopped_tick_is_woken_at_once_and_then_ever_more_rarely() {
        let heart = Arc::new(Heart {
            name: "shard-0".to_owned(),
            beats: AtomicU64::new(0),
            tick: Mutex::new(None),
        });
        let wakes = Arc::new(Wakes::default());
        let count = || wakes.0.load(Ordering::Relaxed);
        heart.start(Arc::clone(&wakes).into());
        let mut watched = Watched {
            heart: Arc::downgrade(&heart),
            beats_seen: 0,
            periods_without_beat: 0,
        };

        heart.beat();
        assert!(look_after(&mut watched));
        assert_eq!(count(), 0, "a beating heart was woken");
        assert!(look_after(&mut watched));
        assert_eq!(count(), 1);
        for _ in 1..1000 {
            assert!(look_after(&mut watched));
        }
        assert_eq!(count(), 10, "the periods 1, 2, 4 ... 512");

        heart.beat();
        assert!(look_after(&mut watched));
        assert!(look_after(&mut watched));
        assert_eq!(
            count(),
            11,
            "a heart that stops again is woken at once again"
        );

        heart.stop();
        for _ in 0..10 {
            assert!(look_after(&mut watched));
        }
        assert_eq!(count(), 11, "an executor that has ended was woken");
        drop(heart);
        assert!(!look_after(&mut watched));
    }
}
