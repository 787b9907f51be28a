//! What the load threads tell while they run: counters for the progress bar and the timeline, and the latencies
//! of the last interval.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use crate::histogram::LatencyHistogram;

/// Shared by all threads of a run. The counters only grow.
#[derive(Default)]
pub struct Live {
    pub sent_records: AtomicU64,
    pub sent_bytes: AtomicU64,
    /// Of whole Produce requests, as they go to the sockets.
    pub wire_bytes: AtomicU64,
    pub acked_records: AtomicU64,
    pub acked_bytes: AtomicU64,
    pub failed_records: AtomicU64,
    pub consumed_records: AtomicU64,
    pub consumed_bytes: AtomicU64,
    pub requests_in_flight: AtomicU64,
    interval: Mutex<Option<LatencyHistogram>>,
    /// Set once, by Ctrl-C or by an error: every thread ends as soon as it can.
    stop: AtomicBool,
}

impl Live {
    pub fn add(counter: &AtomicU64, count: u64) {
        counter.fetch_add(count, Relaxed);
    }

    pub fn subtract(counter: &AtomicU64, count: u64) {
        counter.fetch_sub(count, Relaxed);
    }

    pub fn stop(&self) {
        self.stop.store(true, Relaxed);
    }

    pub fn is_stopped(&self) -> bool {
        self.stop.load(Relaxed)
    }

    /// Moves a thread's latencies since its last call here.
    pub fn publish(&self, latencies: &mut LatencyHistogram) {
        if latencies.is_empty() {
            return;
        }
        self.lock()
            .get_or_insert_with(LatencyHistogram::new)
            .merge(latencies);
        latencies.clear();
    }

    /// All latencies published since the last call.
    pub fn take_interval(&self) -> LatencyHistogram {
        self.lock().take().unwrap_or_else(LatencyHistogram::new)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<LatencyHistogram>> {
        self.interval
            .lock()
            .expect("no thread panics while it merges histograms")
    }

    pub fn totals(&self) -> Totals {
        Totals {
            sent_records: self.sent_records.load(Relaxed),
            sent_bytes: self.sent_bytes.load(Relaxed),
            wire_bytes: self.wire_bytes.load(Relaxed),
            acked_records: self.acked_records.load(Relaxed),
            acked_bytes: self.acked_bytes.load(Relaxed),
            failed_records: self.failed_records.load(Relaxed),
            consumed_records: self.consumed_records.load(Relaxed),
            consumed_bytes: self.consumed_bytes.load(Relaxed),
            requests_in_flight: self.requests_in_flight.load(Relaxed),
        }
    }
}

/// The counters at one instant.
#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    pub sent_records: u64,
    pub sent_bytes: u64,
    pub wire_bytes: u64,
    pub acked_records: u64,
    pub acked_bytes: u64,
    pub failed_records: u64,
    pub consumed_records: u64,
    pub consumed_bytes: u64,
    pub requests_in_flight: u64,
}

impl Totals {
    /// Those of two crews are one load's.
    pub fn add(&mut self, other: &Self) {
        self.sent_records += other.sent_records;
        self.sent_bytes += other.sent_bytes;
        self.wire_bytes += other.wire_bytes;
        self.acked_records += other.acked_records;
        self.acked_bytes += other.acked_bytes;
        self.failed_records += other.failed_records;
        self.consumed_records += other.consumed_records;
        self.consumed_bytes += other.consumed_bytes;
        self.requests_in_flight += other.requests_in_flight;
    }
}
