//! How busy the disk is with a shard's writes, and how much of them waits for an fdatasync.

use std::cell::Cell;
use std::time::Duration;

use crate::io::clock::Monotonic;
use crate::model::limits::{DISK_RELAXED_BUSY_PERCENT_MAX, SYNC_AHEAD_BYTES};

/// A device with a write cache keeps writes waiting while it empties the cache for an fdatasync: 50 ms for what a second at 50 MB/s
/// leaves there. So while the disk has time, what is written is synced in small steps, which nobody notices; at full load that would
/// cost throughput, and `flush.ms` alone decides.
#[derive(Debug)]
pub struct DiskLoad {
    writes_in_flight: Cell<usize>,
    busy_since: Cell<Monotonic>,
    busy: Cell<Duration>,
    tick_at: Cell<Monotonic>,
    is_relaxed: Cell<bool>,
    unsynced_bytes: Cell<u64>,
}

impl Default for DiskLoad {
    fn default() -> Self {
        Self {
            writes_in_flight: Cell::new(0),
            busy_since: Cell::new(Monotonic::ZERO),
            busy: Cell::new(Duration::ZERO),
            tick_at: Cell::new(Monotonic::ZERO),
            is_relaxed: Cell::new(true),
            unsynced_bytes: Cell::new(0),
        }
    }
}

impl DiskLoad {
    pub fn on_write_started(&self, now: Monotonic) {
        if self
            .writes_in_flight
            .replace(self.writes_in_flight.get() + 1)
            == 0
        {
            self.busy_since.set(now);
        }
    }

    pub fn on_write_ended(&self, now: Monotonic, write_bytes: usize) {
        let others = self.writes_in_flight.get() - 1;
        self.writes_in_flight.set(others);
        if others == 0 {
            self.busy
                .set(self.busy.get() + now.since(self.busy_since.get()));
        }
        self.unsynced_bytes
            .set(self.unsynced_bytes.get() + write_bytes as u64);
    }

    /// An fdatasync begins, which takes whatever lies in the device's cache with it.
    pub fn on_sync_started(&self) {
        self.unsynced_bytes.set(0);
    }

    /// Judges the time since the last tick.
    pub fn tick(&self, now: Monotonic) {
        if self.writes_in_flight.get() > 0 {
            self.busy
                .set(self.busy.get() + now.since(self.busy_since.replace(now)));
        }
        let busy = self.busy.replace(Duration::ZERO);
        let passed = now.since(self.tick_at.replace(now));
        let busy_percent_of_passed = busy.as_nanos() * 100;
        self.is_relaxed.set(
            busy_percent_of_passed <= passed.as_nanos() * u128::from(DISK_RELAXED_BUSY_PERCENT_MAX),
        );
    }

    /// Whether an fdatasync should begin though none is due.
    pub fn wants_sync_ahead(&self) -> bool {
        self.is_relaxed.get() && self.unsynced_bytes.get() >= SYNC_AHEAD_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_ms(ms: u64) -> Monotonic {
        Monotonic::ZERO + Duration::from_millis(ms)
    }

    /// Writes of `write_ms` each 10 ms, over one tick.
    fn load_with(write_ms: u64) -> DiskLoad {
        let load = DiskLoad::default();
        for start in (0..100).step_by(10) {
            load.on_write_started(at_ms(start));
            load.on_write_ended(at_ms(start + write_ms), SYNC_AHEAD_BYTES as usize / 10);
        }
        load.tick(at_ms(100));
        load
    }

    #[test]
    fn a_disk_with_time_is_synced_ahead_once_enough_is_written() {
        let load = load_with(3);
        assert!(!load.wants_sync_ahead(), "a little less than the step");
        load.on_write_started(at_ms(101));
        load.on_write_ended(at_ms(102), 4096);
        assert!(load.wants_sync_ahead());
        load.on_sync_started();
        assert!(!load.wants_sync_ahead(), "nothing is left to sync");
    }

    #[test]
    fn a_busy_disk_is_not_synced_ahead() {
        let load = load_with(8);
        load.on_write_started(at_ms(101));
        load.on_write_ended(at_ms(102), SYNC_AHEAD_BYTES as usize);
        assert!(!load.wants_sync_ahead());
    }

    #[test]
    fn a_write_longer_than_a_tick_counts_as_busy() {
        let load = load_with(3);
        load.on_write_started(at_ms(100));
        load.tick(at_ms(200));
        load.on_write_started(at_ms(200));
        load.on_write_ended(at_ms(201), SYNC_AHEAD_BYTES as usize);
        assert!(!load.wants_sync_ahead());
    }
}
