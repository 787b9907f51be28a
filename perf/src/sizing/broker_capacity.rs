//! What one broker gives, and what the load costs it.

use serde::Serialize;

use super::source::Sourced;

#[derive(Clone, Debug, Serialize)]
pub struct BrokerCapacity {
    /// Sequential writes.
    pub disk_bytes_per_s: Sourced<u64>,
    pub disk_bytes: Sourced<u64>,
    /// One way; a network card does it both ways at once.
    pub nic_bytes_per_s: Sourced<u64>,
    pub cores: Sourced<u64>,
    pub memory_bytes: Sourced<u64>,
    /// Copies of partitions, led and followed.
    pub partitions_max: Sourced<u64>,
    /// What one copy of a partition holds in memory.
    pub partition_memory_bytes: Sourced<u64>,
    pub cost: UnitCosts,
}

/// CPU time of a broker for each GB, in nanoseconds: 10^9 are one CPU-second.
#[derive(Clone, Debug, Serialize)]
pub struct UnitCosts {
    /// A leader takes it from a producer and writes it.
    pub lead_ns_per_gb: Sourced<u64>,
    /// A leader sends it to a consumer that keeps up.
    pub fetch_ns_per_gb: Sourced<u64>,
    /// A leader sends it to one follower.
    pub send_ns_per_gb: Sourced<u64>,
    /// A follower takes it and writes it.
    pub follow_ns_per_gb: Sourced<u64>,
}

impl UnitCosts {
    /// CPU time of all brokers together for each GB that producers send.
    pub fn cluster_ns_per_gb(&self, copies: u64, reader_groups: u64) -> u128 {
        let followers = u128::from(copies - 1);
        u128::from(self.lead_ns_per_gb.value)
            + followers * u128::from(self.send_ns_per_gb.value)
            + followers * u128::from(self.follow_ns_per_gb.value)
            + u128::from(reader_groups) * u128::from(self.fetch_ns_per_gb.value)
    }
}
