//! The report of `commits`, as it is written to JSON. `perf/REPORT.md` documents it.

use std::collections::BTreeMap;

use serde::Serialize;

use super::committer::CommitsAudit;
use crate::cpu::{CpuUse, MachineShare};
use crate::histogram::LatencySummary;
use crate::provenance::{Broker, Machine, Tool};
use crate::report::Loop;

pub const SCHEMA: &str = "corelog-perf-commits";
pub const SCHEMA_VERSION: u32 = 1;

#[derive(Debug, Serialize)]
pub struct CommitsReport {
    pub schema: &'static str,
    pub schema_version: u32,
    /// False if it was ended early; what is there was measured.
    pub complete: bool,
    pub started_unix_ms: u64,
    pub argv: Vec<String>,
    pub tool: Tool,
    pub machine: Machine,
    pub broker: Broker,
    pub load: CommitsLoad,
    pub durability: CommitsDurability,
    /// Of the measured time.
    pub seconds: f64,
    /// OffsetCommit requests that were confirmed within it.
    pub commits: u64,
    pub commits_per_s: f64,
    pub offsets_per_s: f64,
    /// From when a commit was due, in a closed loop from when it was sent, to its answer.
    pub latency: Option<LatencySummary>,
    pub errors: BTreeMap<String, u64>,
    pub broker_cpu: Option<CpuUse>,
    /// How many cores' time the brokers used.
    pub broker_cores: Option<f64>,
    /// What a second of one core's time confirms.
    pub commits_per_broker_cpu_s: Option<f64>,
    pub client_cpu: Option<CpuUse>,
    pub machine_share: MachineShare,
    pub timeline: Vec<CommitsSecond>,
    pub audit: CommitsAudit,
}

#[derive(Debug, Serialize)]
pub struct CommitsLoad {
    #[serde(rename = "loop")]
    pub kind: Loop,
    pub rate: Option<u32>,
    pub groups: u32,
    pub coordinators: usize,
    /// To each coordinator.
    pub connections: u32,
    pub in_flight: u32,
    pub partitions: u32,
}

/// What a confirmed commit means, by the topic that commits lie in and the broker's settings.
#[derive(Debug, Serialize)]
pub struct CommitsDurability {
    pub topic: &'static str,
    pub partitions: Option<usize>,
    pub replication_factor: Option<String>,
    pub min_insync_replicas: Option<String>,
    pub flush_messages: Option<String>,
    pub flush_ms: Option<String>,
    /// Whether a commit's answer waits for an fdatasync; None if the broker does not tell.
    pub synced_before_answer: Option<bool>,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub struct CommitsSecond {
    /// Since the load began, warm-up included.
    pub at_s: f64,
    pub commits_per_s: f64,
}
