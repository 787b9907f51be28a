//! One second of a crew's work, as it is told while the load runs.

use crate::histogram::LatencyHistogram;
use crate::live::{Live, Totals};

/// The counters at an instant, and the latencies since the sample before.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Since the load's start.
    pub elapsed_ns: u64,
    pub totals: Totals,
    pub latency: LatencyHistogram,
}

impl Sample {
    pub fn take(elapsed_ns: u64, live: &Live) -> Self {
        Self {
            elapsed_ns,
            totals: live.totals(),
            latency: live.take_interval(),
        }
    }
    /// The counters alone.
    pub fn standing(&self) -> Self {
        Self {
            latency: LatencyHistogram::new(),
            ..*self
        }
    }

    /// Of two crews at the same time.
    pub fn merge(&mut self, other: &Self) {
        self.elapsed_ns = self.elapsed_ns.max(other.elapsed_ns);
        self.totals.add(&other.totals);
        self.latency.merge(&other.latency);
    }
}
