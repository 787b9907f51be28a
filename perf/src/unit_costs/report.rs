//! The report of unit costs, as it is written to JSON. `perf/SIZING.md` documents every field; a change of meaning raises the
//! version.

use serde::Serialize;

use super::cost::{Check, Costs};
use super::fit::Fit;
use super::stretch::Stretch;
use crate::provenance::Provenance;
use crate::report::WorkloadReport;

pub const SCHEMA: &str = "corelog-perf-unit-costs";
pub const SCHEMA_VERSION: u32 = 1;

#[derive(Clone, Debug, Serialize)]
pub struct UnitCostsReport {
    pub schema: &'static str,
    pub schema_version: u32,
    pub complete: bool,
    /// False if the check does not hold: then the costs are not to be used.
    pub valid: bool,
    pub reason: Option<String>,
    pub provenance: Provenance,
    /// Of the check's run.
    pub workload: WorkloadReport,
    pub costs: Costs,
    /// With large batches, requests included: what one sees who does not ask for parts.
    pub at_large_batches: AtLargeBatches,
    pub reads: Vec<ReadCost>,
    pub partitions: PartitionCosts,
    pub absent: Vec<Absent>,
    pub fits: Fits,
    pub check: Check,
    pub stretches: Vec<Stretch>,
    pub remarks: Vec<String>,
}

#[derive(Clone, Debug, Serialize)]
pub struct AtLargeBatches {
    pub batch_bytes: u64,
    pub lead_cpu_s_per_gb: f64,
    pub fetch_cpu_s_per_gb: f64,
}

/// One line through all batch sizes, of GB and of requests: its residual tells how far from a line they are.
#[derive(Clone, Debug, Serialize)]
pub struct Fits {
    pub produce: Fit,
    pub fetch: Fit,
}

/// Reading as fast as the broker gives it.
#[derive(Clone, Debug, Serialize)]
pub struct ReadCost {
    pub what: ReadFrom,
    pub mb_per_s: f64,
    pub seconds: f64,
    pub broker_cpu_s_per_gb: f64,
    pub disk_read_bytes: u64,
    /// Bytes that the broker had read from its disk for each byte of payload that it sent.
    pub from_disk: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ReadFrom {
    /// The newest records over and over.
    Memory,
    /// A log from its start: from the disk, as far as `from_disk` says so.
    Start,
}

/// A stretch without a load.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct IdleWindow {
    pub seconds: f64,
    pub broker_cpu_s: f64,
    pub broker_cores: f64,
    pub broker_rss_bytes: u64,
}

#[derive(Clone, Debug, Serialize)]
pub struct PartitionCosts {
    pub count: u32,
    pub before: IdleWindow,
    /// With the partitions, which nobody has written to.
    pub idle: IdleWindow,
    /// After every partition was written to.
    pub written_rss_bytes: u64,
    /// What one holds in memory that nobody has written to, and that somebody has.
    pub idle_memory_bytes: u64,
    pub written_memory_bytes: u64,
}

/// A cost that was not measured.
#[derive(Clone, Debug, Serialize)]
pub struct Absent {
    pub cost: &'static str,
    pub reason: String,
}
