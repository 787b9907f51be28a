//! A report of unit costs as sizing reads it: the figures in it.

use serde::Deserialize;

use super::run_report::Provenance;
use crate::report::Schema;
use crate::unit_costs;

pub const SCHEMA: Schema = Schema {
    name: unit_costs::SCHEMA,
    version: unit_costs::SCHEMA_VERSION,
};

/// A report of schema version 1, as far as sizing reads it.
#[derive(Deserialize)]
pub struct UnitCostReport {
    pub provenance: Provenance,
    pub costs: Costs,
    pub partitions: Partitions,
    reads: Vec<Read>,
}

#[derive(Deserialize)]
pub struct Costs {
    pub partition_cores: f64,
    pub produce: Vec<Segment>,
    pub fetch: Vec<Segment>,
}

/// What a GB and a request cost among requests from this size on; from large ones to small ones.
#[derive(Deserialize)]
pub struct Segment {
    request_bytes_min: u64,
    pub cpu_s_per_gb: f64,
    pub request_cpu_s: f64,
}

/// The segment that requests of this size belong to; beyond the ends it is the nearest.
pub fn segment_of(segments: &[Segment], request_bytes: u64) -> Option<&Segment> {
    let within = segments
        .iter()
        .find(|segment| request_bytes >= segment.request_bytes_min);
    within.or(segments.last())
}

#[derive(Deserialize)]
pub struct Partitions {
    idle_memory_bytes: u64,
    written_memory_bytes: u64,
}

#[derive(Deserialize)]
struct Read {
    what: String,
    broker_cpu_s_per_gb: f64,
    from_disk: f64,
}

impl UnitCostReport {
    pub fn cold_s_per_gb(&self) -> Option<f64> {
        self.cold().map(|read| read.broker_cpu_s_per_gb)
    }

    /// Bytes from the disk for each byte of the cold read.
    pub fn disk_share(&self) -> Option<f64> {
        self.cold().map(|read| read.from_disk)
    }

    fn cold(&self) -> Option<&Read> {
        self.reads.iter().find(|read| read.what == "start")
    }

    /// What a partition holds that is used.
    pub fn partition_memory_bytes(&self) -> f64 {
        let memory = &self.partitions;
        memory.written_memory_bytes.max(memory.idle_memory_bytes) as f64
    }
}
