//! Where a member's readers hand in what they were handed, for the thread that commits it.

use std::ops::Range;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use super::{Handed, Seen};
use crate::consumer::tail::Handover;

pub struct Desk {
    /// Of this group, by all members of this process.
    seen: Arc<Seen>,
    /// Where the next record of each partition is that this member is to be handed.
    next: Vec<AtomicI64>,
    handed: Mutex<Handed>,
    moved: Condvar,
}

impl Desk {
    pub(super) fn new(seen: Arc<Seen>, starts: &[i64]) -> Self {
        Self {
            seen,
            next: starts.iter().map(|start| (*start).into()).collect(),
            handed: Mutex::new(Handed::default()),
            moved: Condvar::new(),
        }
    }

    /// The partition is read from there on.
    pub fn begin(&self, partition: usize, next_offset: i64) {
        self.next[partition].store(next_offset, Relaxed);
    }

    /// Behind the last record that was handed in.
    pub fn next(&self, partition: usize) -> i64 {
        self.next[partition].load(Relaxed)
    }

    /// Until something is handed in after `is_idle` was true, but no longer than `timeout`.
    pub fn wait_while(&self, is_idle: impl Fn() -> bool, timeout: Duration) {
        let handed = self.handed.lock().expect("no reader panics");
        if is_idle() {
            let _woken = self.moved.wait_timeout(handed, timeout);
        }
    }

    pub fn into_handed(self) -> Handed {
        self.handed.into_inner().expect("no reader panics")
    }
}

impl Handover for Desk {
    fn first_new(&self, partition: usize, first: i64) -> i64 {
        first.max(self.seen.0[partition].load(Relaxed))
    }

    fn handed(&self, partition: usize, offsets: Range<i64>) {
        self.seen.0[partition].fetch_max(offsets.end, Relaxed);
        let mut handed = self.handed.lock().expect("no reader panics");
        self.next[partition].store(offsets.end, Relaxed);
        handed.add(partition, offsets);
        self.moved.notify_one();
    }
}
