//! One second of a crew's work, as it is told while the load runs.

use serde::{Deserialize, Serialize};

use crate::histogram::LatencyHistogram;
use crate::live::{Failures, Live, Totals};
use crate::load_stage::LoadStage;

/// The counters at an instant, and the latencies since the sample before.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Sample {
    /// Since the load's start.
    pub elapsed_ns: u64,
    /// Of the whole time since the sample before.
    pub stage: LoadStage,
    pub totals: Totals,
    pub latency: LatencyHistogram,
    pub failures: Failures,
    /// Since the load's start; None if no ack came.
    pub first_ack_ns: Option<u64>,
    pub last_ack_ns: Option<u64>,
}

impl Sample {
    /// At `elapsed_ns` of a load that began at `start_ns` of the crew's clock.
    pub fn take(start_ns: u64, elapsed_ns: u64, live: &Live) -> Self {
        let totals = live.totals();
        let interval = live.take_interval();
        let since_start = |at_ns: u64| at_ns.saturating_sub(start_ns);
        Self {
            elapsed_ns,
            stage: live.stage(),
            totals,
            latency: interval.latencies.unwrap_or_else(LatencyHistogram::new),
            failures: interval.failures,
            first_ack_ns: interval.first_ack_ns.map(since_start),
            last_ack_ns: interval.last_ack_ns.map(since_start),
        }
    }

    /// The counters alone.
    pub fn standing(&self) -> Self {
        Self {
            elapsed_ns: self.elapsed_ns,
            stage: self.stage,
            totals: self.totals,
            latency: LatencyHistogram::new(),
            failures: Failures::default(),
            first_ack_ns: None,
            last_ack_ns: None,
        }
    }

    /// Of two crews at the same time.
    pub fn merge(&mut self, other: &Self) {
        self.elapsed_ns = self.elapsed_ns.max(other.elapsed_ns);
        self.stage = self.stage.min(other.stage);
        self.totals.add(&other.totals);
        self.latency.merge(&other.latency);
        self.failures.add(&other.failures);
        let acks = [self.first_ack_ns, other.first_ack_ns];
        self.first_ack_ns = acks.into_iter().flatten().min();
        self.last_ack_ns = self.last_ack_ns.max(other.last_ack_ns);
    }
}
