//! The report of a run, as it is written to JSON. `perf/REPORT.md` documents every field; a change of meaning
//! raises the version.

mod backlog;
mod baseline_lines;
mod files;
mod groups;
mod headline;
mod limit;
mod page;
#[cfg(test)]
pub mod sample;
mod search;
mod settings;
mod stored;
mod summary;
mod workers;
mod workloads;

pub use baseline_lines::BaselineLines;
pub use files::{
    OccupiedError, RawHistogram, WriteError, check_free, default_directory, make_directory,
    read_text, write_directory, write_files, write_json, write_text,
};
pub use groups::GroupsReport;
pub use headline::Headline;
pub use search::{SearchReport, TryKind, TryReport};
pub use stored::{Schema, StoredError, StoredReport};
pub use summary::{number, text};
pub use workers::{ClockReport, WorkerReport, WorkerStepReport};
pub use workloads::workloads_text;

use std::collections::BTreeMap;

use serde::Serialize;

use crate::audit::AuditFindings;
use crate::baseline::Baseline;
use crate::consumer::group::Consumption;
use crate::cpu::{CpuUse, InterfaceBytes, MachineShare};
use crate::histogram::LatencySummary;
use crate::keys::KeyDistributor;
use crate::load_stage::LoadStage;
use crate::outage::Outage;
use crate::provenance::Provenance;
use crate::quantity::Rate;
use crate::ramp::Ramp;
use crate::replay_from::ReplayFrom;
use crate::timeline::Second;

pub const SCHEMA: &str = "corelog-perf-report";
pub const SCHEMA_VERSION: u32 = 1;

#[derive(Clone, Debug, Serialize)]
pub struct Report {
    pub schema: &'static str,
    pub schema_version: u32,
    /// False if the run was ended early; everything that is there was measured.
    pub complete: bool,
    /// What went wrong, if the run ended early by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    pub provenance: Provenance,
    pub workload: WorkloadReport,
    pub baseline_before: Option<Baseline>,
    pub baseline_after: Option<Baseline>,
    pub steps: Vec<StepReport>,
    /// Only where the highest rate that holds was searched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub search: Option<SearchReport>,
    pub reads: Vec<ReadReport>,
    pub audit: AuditReport,
    /// The figures to quote, each against this run's baseline.
    pub headline: Headline,
}

/// The load, under the OpenMessaging Benchmark's names where it has them.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadReport {
    pub name: String,
    pub topic: String,
    pub topics: u32,
    pub partitions_per_topic: u32,
    pub replication_factor: u16,
    pub message_size: usize,
    pub payload: String,
    pub key_distributor: KeyDistributor,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_count: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zipf_exponent: Option<f64>,
    pub producers_per_topic: u32,
    pub subscriptions_per_topic: u32,
    pub consumer_per_subscription: u32,
    /// How a subscription's consumers got their partitions: `fixed`, or the assignor of their group.
    pub consumer_assignment: &'static str,
    pub warmup_seconds: f64,
    pub test_duration_seconds: f64,
    /// What was asked for: a rate of each step, or a search.
    pub producer_rates: Vec<String>,
    /// In units of 2^30 bytes of payload over all subscriptions, as the benchmark counts it.
    #[serde(
        rename = "consumerBacklogSizeGB",
        skip_serializing_if = "Option::is_none"
    )]
    pub consumer_backlog_size_gb: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backlog_drain_ratio: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replay_consumers: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replay_from: Option<ReplayFrom>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replay_once: Option<bool>,
    /// Absent where no driver file was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    pub producer_config: BTreeMap<String, String>,
    pub consumer_config: BTreeMap<String, String>,
    pub topic_config: BTreeMap<String, String>,
    pub durability: Durability,
}

/// Runs of different durability do not compare.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Durability {
    pub acks: i16,
    pub replication_factor: u16,
    pub min_insync_replicas: Option<String>,
    pub flush_messages: Option<String>,
    pub flush_ms: Option<String>,
    /// Whether an ack waits for an fdatasync; None if the broker does not tell.
    pub synced_before_ack: Option<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Loop {
    /// Records are sent by the clock: latency counts all waiting.
    Open,
    /// The next request waits for an answer: latency hides waiting, and only the rate means something.
    Closed,
}

/// One offered rate.
#[derive(Clone, Debug, Serialize)]
pub struct StepReport {
    pub rate: Rate,
    pub load: Loop,
    /// Of the measured window, without the warm-up.
    pub seconds: f64,
    /// None in a closed loop.
    pub offered_mb_per_s: Option<f64>,
    pub sent_mb_per_s: f64,
    /// Of whole Produce requests: keys, headers and framing included, after compression.
    pub wire_mb_per_s: f64,
    pub produce_requests_per_s: f64,
    pub acked_mb_per_s: f64,
    pub sent_records_per_s: f64,
    pub acked_records_per_s: f64,
    pub consumed_mb_per_s: f64,
    /// Answers to the consumers, empty ones included.
    pub fetches_per_s: f64,
    /// From the intended send time to the ack, of the records intended within the window.
    pub publish_latency: Option<LatencySummary>,
    /// From the intended send time to the consumer's hand.
    pub end_to_end_latency: Option<LatencySummary>,
    /// By how much that may be wrong where different clocks took its two ends. Absent if one clock took both.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_to_end_uncertainty_ms: Option<f64>,
    /// Absent where consumers are in no groups.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub groups: Option<GroupsReport>,
    pub generator: GeneratorReport,
    /// Records that failed, by Kafka's name of the error or what else happened, warm-up included.
    pub errors: BTreeMap<String, u64>,
    pub consumer_errors: BTreeMap<String, u64>,
    /// Records that were sent again, by the reason.
    pub resent: BTreeMap<String, u64>,
    /// Records of the window that never got their turn: the broker did not keep up.
    pub unsent_records: u64,
    /// Of record batches as they lie in the log; absent without consumers that replay it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replay_mb_per_s: Option<f64>,
    /// Times that such a consumer came to the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replay_passes: Option<u64>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub replay_errors: BTreeMap<String, u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backlog: Option<BacklogReport>,
    pub cpu: CpuReport,
    /// Bytes that all brokers together wrote to disks for each byte of payload that was acked, copies included; None if they do not tell.
    pub write_amplification: Option<f64>,
    pub network: NetworkReport,
    /// When acks stopped, and when errors came.
    pub outages: Vec<Outage>,
    /// Absent if the rate did not rise within the measured part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ramp: Option<Ramp>,
    /// What each worker did of it, if workers did.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub workers: Vec<WorkerStepReport>,
    pub timeline: Vec<Second>,
}

/// A backlog, in GB of payload over all subscriptions.
#[derive(Clone, Debug, Serialize)]
pub struct BacklogReport {
    pub asked_gb: f64,
    /// What was not read when the consumers went on; None: it never was enough.
    pub built_gb: Option<f64>,
    pub build_s: Option<f64>,
    /// None: it was not drained.
    pub drain_s: Option<f64>,
    /// What the consumers read while it was drained, and what came meanwhile with it.
    pub drain_mb_per_s: Option<f64>,
    /// What was not read when it was given up, because at its pace it would have grown or drained for more than a day.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub given_up_gb: Option<f64>,
    pub stretches: Vec<StretchReport>,
}

/// A step while its backlog was built or drained, or after that.
#[derive(Clone, Debug, Serialize)]
pub struct StretchReport {
    pub stage: LoadStage,
    /// Since the step's start, warm-up included.
    pub at_s: f64,
    pub seconds: f64,
    pub acked_mb_per_s: f64,
    pub consumed_mb_per_s: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replay_mb_per_s: Option<f64>,
    /// From the intended send time to the ack, of the acks that came within the stretch.
    pub publish_latency: Option<LatencySummary>,
}

/// How good the generator itself was.
#[derive(Clone, Debug, Serialize)]
pub struct GeneratorReport {
    /// Per request: from when it was due and could be sent to when its sending began.
    pub lag: Option<LatencySummary>,
    /// Per record: from its intended time to the begin of its sending, waiting for the broker included.
    pub send_delay: Option<LatencySummary>,
    /// False if the generator's own lag would distort the latencies.
    pub valid: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What to do about it, if it is not valid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

/// CPU time over a stretch of the run.
#[derive(Clone, Debug, Serialize)]
pub struct CpuReport {
    /// What the time is divided by.
    pub payload_gb: f64,
    /// None without a process or a metrics page of each broker.
    pub broker_cpu_s_per_gb: Option<f64>,
    /// Of all workers together, if workers put the load on.
    pub client_cpu_s_per_gb: Option<f64>,
    /// Of all brokers together; None if one of them could not be measured.
    pub broker: Option<CpuUse>,
    pub brokers: Vec<BrokerUse>,
    /// None if workers put the load on: each has its own.
    pub client: Option<CpuUse>,
    pub machine: MachineShare,
}

/// What one broker used.
#[derive(Clone, Debug, Serialize)]
pub struct BrokerUse {
    /// Its process, or the URL of its metrics page.
    pub source: String,
    /// False for a metrics page beside the process that it tells of.
    pub in_sum: bool,
    /// Why there are no figures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_measured: Option<String>,
    #[serde(flatten)]
    pub used: Option<CpuUse>,
}

/// Bytes that the load moved.
#[derive(Clone, Debug, Default, Serialize)]
pub struct NetworkReport {
    /// Of this program's own sockets to brokers, without the headers of TCP and IP.
    pub client_sent_bytes: u64,
    pub client_received_bytes: u64,
    /// Everything that went through the interface of the bootstrap connection meanwhile.
    pub interface: Option<InterfaceBytes>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ReadKind {
    /// The newest records again and again: what is still in memory.
    Recent,
    /// From the beginning of the log.
    Backlog,
    /// Of a topic that was there, from a place in it to its end over and over.
    Replay,
}

impl ReadKind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Recent => "recent",
            Self::Backlog => "backlog",
            Self::Replay => "replay",
        }
    }
}

#[derive(Clone, Debug, Serialize)]
pub struct ReadReport {
    pub kind: ReadKind,
    pub seconds: f64,
    pub records: u64,
    pub mb_per_s: f64,
    pub fetches: u64,
    /// False if time was up before the end of the log.
    pub reached_end: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Of a replay, whose rate is of record batches as they lie in the log.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub replay: Option<ReplayReport>,
    pub cpu: CpuReport,
    pub network: NetworkReport,
}

/// What only a replay has.
#[derive(Clone, Debug, Serialize)]
pub struct ReplayReport {
    pub from: ReplayFrom,
    /// Times that a reader came to the end, over all readers.
    pub passes: u64,
    pub errors: BTreeMap<String, u64>,
    pub timeline: Vec<ReplaySecond>,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub struct ReplaySecond {
    /// Since the reading began, warm-up included.
    pub at_s: f64,
    pub seconds: f64,
    pub mb_per_s: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AuditOutcome {
    Passed,
    Failed,
    NotRun,
    /// Begun, but not ended: nothing is proven.
    Incomplete,
}

#[derive(Clone, Debug, Serialize)]
pub struct AuditReport {
    /// `full`, `watermark` or `off`.
    pub mode: &'static str,
    pub outcome: AuditOutcome,
    pub records_acked: u64,
    /// Offsets between the log's end before the run and after it.
    pub offsets_advanced: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub findings: Option<AuditFindings>,
    /// Whether each subscription's group was handed every record, over all steps; absent without groups, or if it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consumption: Option<Consumption>,
}
