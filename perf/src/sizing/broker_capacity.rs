//! What one broker gives, and what the load costs it.

use serde::Serialize;

use super::demand::Demand;
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

/// CPU time of a broker in nanoseconds: 10^9 are one CPU-second.
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
    /// A leader sends it to a consumer that does not keep up, from the disk.
    pub cold_ns_per_gb: Sourced<u64>,
    /// For each Produce request, beside its bytes.
    pub request_ns: Sourced<u64>,
    /// For each Produce request that a consumer that keeps up reads, beside its bytes.
    pub fetch_request_ns: Sourced<u64>,
    /// For each copy of a partition and second, whether it is used or not.
    pub partition_ns_per_s: Sourced<u64>,
}

/// CPU is counted in bytes/s * ns/GB, so that nothing is rounded: a core has 10^9 ns a second, a GB 10^9 bytes.
pub const CPU_UNITS_PER_CORE: u128 = CPU_UNITS_PER_NS_PER_S * 1_000_000_000;
const CPU_UNITS_PER_NS_PER_S: u128 = 1_000_000_000;

impl UnitCosts {
    /// CPU of all brokers together at the load's peak, in `CPU_UNITS_PER_CORE`. What a consumer that keeps up
    /// reads goes by the requests that it came in: there is nothing new more often.
    pub fn cluster_cpu(&self, demand: &Demand) -> u128 {
        let of = |cost: &Sourced<u64>| u128::from(cost.value);
        let copies = u128::from(demand.copies.value);
        let cold = u128::from(demand.cold_reader_groups.value);
        let keeping_up = u128::from(demand.reader_groups.value) - cold;
        let bytes_ns_per_gb = of(&self.lead_ns_per_gb)
            + (copies - 1) * (of(&self.send_ns_per_gb) + of(&self.follow_ns_per_gb))
            + keeping_up * of(&self.fetch_ns_per_gb)
            + cold * of(&self.cold_ns_per_gb);
        let each_request_ns = of(&self.request_ns) + keeping_up * of(&self.fetch_request_ns);
        let requests_ns_per_s = u128::from(demand.peak_requests_per_s()) * each_request_ns;
        let partitions_ns_per_s =
            u128::from(demand.partitions.value) * copies * of(&self.partition_ns_per_s);
        let rest = (requests_ns_per_s + partitions_ns_per_s).saturating_mul(CPU_UNITS_PER_NS_PER_S);
        (u128::from(demand.peak_bytes_per_s()) * bytes_ns_per_gb).saturating_add(rest)
    }
}
