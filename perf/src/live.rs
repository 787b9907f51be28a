//! What the load threads tell while they run: counters for the progress bar and the timeline, and the latencies
//! and failures of the last interval.

use std::collections::BTreeMap;
use std::mem;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::Relaxed};

use serde::{Deserialize, Serialize};

use crate::client::connection::Traffic;
use crate::client::failure::Failure;
use crate::histogram::LatencyHistogram;
use crate::load_stage::LoadStage;

/// Shared by all threads of a run. The counters only grow.
#[derive(Default)]
pub struct Live {
    pub sent_records: AtomicU64,
    pub sent_bytes: AtomicU64,
    /// Of whole Produce requests, as they go to the sockets.
    pub wire_bytes: AtomicU64,
    pub produce_requests: AtomicU64,
    /// Everything that went over the load's sockets.
    pub network_sent_bytes: AtomicU64,
    pub network_received_bytes: AtomicU64,
    pub acked_records: AtomicU64,
    pub acked_bytes: AtomicU64,
    pub failed_records: AtomicU64,
    pub consumed_records: AtomicU64,
    pub consumed_bytes: AtomicU64,
    /// Answers to consumers' Fetch requests, empty ones included.
    pub fetches: AtomicU64,
    /// By the consumers that replay the log beside the others; bytes are those of whole batches.
    pub replayed_records: AtomicU64,
    pub replayed_bytes: AtomicU64,
    pub requests_in_flight: AtomicU64,
    /// Since the interval began; 0 where none came.
    first_ack_ns: AtomicU64,
    last_ack_ns: AtomicU64,
    interval: Mutex<Interval>,
    /// Set once, by Ctrl-C or by an error: every thread ends as soon as it can.
    stop: AtomicBool,
    /// A `LoadStage`'s code.
    stage: AtomicU8,
}

/// What happened since the interval before it was taken.
#[derive(Default)]
pub struct Interval {
    pub latencies: Option<LatencyHistogram>,
    pub failures: Failures,
    pub first_ack_ns: Option<u64>,
    pub last_ack_ns: Option<u64>,
}

/// What went wrong in an interval, by Kafka's name of the error or what else happened.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Failures {
    /// Records that failed.
    pub errors: BTreeMap<String, u64>,
    /// Records that an idempotent producer is to send again.
    pub resent: BTreeMap<String, u64>,
    /// Fetches and connections of consumers.
    pub consumer_errors: BTreeMap<String, u64>,
}

impl Failures {
    pub fn is_empty(&self) -> bool {
        self.errors.is_empty() && self.resent.is_empty() && self.consumer_errors.is_empty()
    }

    pub fn add(&mut self, other: &Self) {
        for (all, more) in [
            (&mut self.errors, &other.errors),
            (&mut self.resent, &other.resent),
            (&mut self.consumer_errors, &other.consumer_errors),
        ] {
            for (name, count) in more {
                *all.entry(name.clone()).or_default() += count;
            }
        }
    }
}

impl Live {
    pub fn add(counter: &AtomicU64, count: u64) {
        counter.fetch_add(count, Relaxed);
    }

    pub fn subtract(counter: &AtomicU64, count: u64) {
        counter.fetch_sub(count, Relaxed);
    }

    pub fn moved(&self, traffic: Traffic) {
        Self::add(&self.network_sent_bytes, traffic.sent_bytes);
        Self::add(&self.network_received_bytes, traffic.received_bytes);
    }

    pub fn stop(&self) {
        self.stop.store(true, Relaxed);
    }

    pub fn is_stopped(&self) -> bool {
        self.stop.load(Relaxed)
    }

    /// All threads act on it as soon as they can.
    pub fn enter(&self, stage: LoadStage) {
        self.stage.store(stage.code(), Relaxed);
    }

    pub fn stage(&self) -> LoadStage {
        LoadStage::of_code(self.stage.load(Relaxed)).expect("only `enter` stores it")
    }

    /// Moves a thread's latencies since its last call here.
    pub fn publish(&self, latencies: &mut LatencyHistogram) {
        if latencies.is_empty() {
            return;
        }
        self.lock()
            .latencies
            .get_or_insert_with(LatencyHistogram::new)
            .merge(latencies);
        latencies.clear();
    }

    /// Records were confirmed at this instant.
    pub fn acked_at(&self, now_ns: u64) {
        if self.first_ack_ns.load(Relaxed) == 0 {
            // Another thread may have been faster, by next to nothing.
            let _ = self
                .first_ack_ns
                .compare_exchange(0, now_ns, Relaxed, Relaxed);
        }
        self.last_ack_ns.fetch_max(now_ns, Relaxed);
    }

    pub fn failed(&self, failure: Failure, records: u64) {
        Self::add(&self.failed_records, records);
        count(&mut self.lock().failures.errors, failure, records);
    }

    pub fn will_be_resent(&self, failure: Failure, records: u64) {
        count(&mut self.lock().failures.resent, failure, records);
    }

    pub fn consumer_failed(&self, failure: Failure) {
        count(&mut self.lock().failures.consumer_errors, failure, 1);
    }

    /// What was published since the last call.
    pub fn take_interval(&self) -> Interval {
        let ack_ns = |at_ns: &AtomicU64| Some(at_ns.swap(0, Relaxed)).filter(|at_ns| *at_ns > 0);
        Interval {
            first_ack_ns: ack_ns(&self.first_ack_ns),
            last_ack_ns: ack_ns(&self.last_ack_ns),
            ..mem::take(&mut *self.lock())
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Interval> {
        self.interval
            .lock()
            .expect("no thread panics while it adds to an interval")
    }

    pub fn totals(&self) -> Totals {
        Totals {
            sent_records: self.sent_records.load(Relaxed),
            sent_bytes: self.sent_bytes.load(Relaxed),
            wire_bytes: self.wire_bytes.load(Relaxed),
            produce_requests: self.produce_requests.load(Relaxed),
            network_sent_bytes: self.network_sent_bytes.load(Relaxed),
            network_received_bytes: self.network_received_bytes.load(Relaxed),
            acked_records: self.acked_records.load(Relaxed),
            acked_bytes: self.acked_bytes.load(Relaxed),
            failed_records: self.failed_records.load(Relaxed),
            consumed_records: self.consumed_records.load(Relaxed),
            consumed_bytes: self.consumed_bytes.load(Relaxed),
            fetches: self.fetches.load(Relaxed),
            replayed_records: self.replayed_records.load(Relaxed),
            replayed_bytes: self.replayed_bytes.load(Relaxed),
            requests_in_flight: self.requests_in_flight.load(Relaxed),
        }
    }
}

fn count(counts: &mut BTreeMap<String, u64>, failure: Failure, more: u64) {
    *counts.entry(failure.to_string()).or_default() += more;
}

/// The counters at one instant.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Totals {
    pub sent_records: u64,
    pub sent_bytes: u64,
    pub wire_bytes: u64,
    pub produce_requests: u64,
    pub network_sent_bytes: u64,
    pub network_received_bytes: u64,
    pub acked_records: u64,
    pub acked_bytes: u64,
    pub failed_records: u64,
    pub consumed_records: u64,
    pub consumed_bytes: u64,
    pub fetches: u64,
    pub replayed_records: u64,
    pub replayed_bytes: u64,
    pub requests_in_flight: u64,
}

impl Totals {
    /// Those of two crews are one load's.
    pub fn add(&mut self, other: &Self) {
        // Whole, so that no counter is left out.
        let Self {
            sent_records,
            sent_bytes,
            wire_bytes,
            produce_requests,
            network_sent_bytes,
            network_received_bytes,
            acked_records,
            acked_bytes,
            failed_records,
            consumed_records,
            consumed_bytes,
            fetches,
            replayed_records,
            replayed_bytes,
            requests_in_flight,
        } = other;
        self.sent_records += sent_records;
        self.sent_bytes += sent_bytes;
        self.wire_bytes += wire_bytes;
        self.produce_requests += produce_requests;
        self.network_sent_bytes += network_sent_bytes;
        self.network_received_bytes += network_received_bytes;
        self.acked_records += acked_records;
        self.acked_bytes += acked_bytes;
        self.failed_records += failed_records;
        self.consumed_records += consumed_records;
        self.consumed_bytes += consumed_bytes;
        self.fetches += fetches;
        self.replayed_records += replayed_records;
        self.replayed_bytes += replayed_bytes;
        self.requests_in_flight += requests_in_flight;
    }
}
