//! The command line. `plan.rs` says what it must not say.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

use crate::broker_metrics::MetricsUrl;
use crate::commits::CommitsArgs;
use crate::compare::{self, FailOn};
use crate::compression::Compression;
use crate::keys::KeyDistributor;
use crate::offer::{Hold, RateTerm};
use crate::quantity::{self, Bytes};
use crate::replay_from::ReplayFrom;
use crate::series::Contender;
use crate::sizing::SizeArgs;
use crate::unit_costs::UnitCostsArgs;
use crate::workload;

/// As `corelog` has them.
const EXIT_CODES: &str = "Exit codes:
  0    measured, and nothing is wrong
  1    it could not be measured, or not to the end; no broker answers
  2    wrong arguments, or what was asked for cannot be run
  3    it was measured and is not as it must be: records are lost, a bound of --fail-on is exceeded, unit costs do not add up
  130  a second Ctrl-C ended it at once";

#[derive(Parser)]
#[command(name = "corelog-perf", version, about, max_term_width = 110, after_help = EXIT_CODES)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    /// Put a load on a broker, measure it, and prove that no record was lost
    Run(Box<RunArgs>),
    /// Measure this machine's disk, loopback network and memory, without a broker
    Baseline(BaselineArgs),
    /// Tell how many brokers a load needs, and what decides it
    Size(Box<SizeArgs>),
    /// Measure what a byte, a request and a partition cost a broker, for `size`, and whether a mixed load costs what they add up to
    UnitCosts(UnitCostsArgs),
    /// Measure how many offset commits a second a broker confirms, and what they cost it
    Commits(CommitsArgs),
    /// List the built-in workloads
    Workloads,
    /// Print what a run found, from its directory
    Show(ShowArgs),
    /// Do a run again as its report says
    Rerun(RerunArgs),
    /// Show what differs between runs, and whether it is more than runs differ by themselves
    Compare(CompareArgs),
    /// Put the same loads on two clusters by turns, and compare
    Versus(VersusArgs),
    /// Be a broker that keeps nothing and answers at once: what a client costs against it is not the broker's cost
    NullBroker(NullBrokerArgs),
    /// Put load on a broker for a run on another machine, which names this one with --workers
    Worker(WorkerArgs),
    /// Print the completions of a shell, such as: source <(corelog-perf completions bash)
    Completions {
        #[arg(value_enum)]
        shell: Shell,
    },
}

#[derive(Args)]
pub struct ShowArgs {
    /// The directory that --out named
    pub directory: PathBuf,
}

#[derive(Args)]
pub struct RerunArgs {
    /// The report.json of the run
    pub report: PathBuf,
    /// Where the new run leaves its report: a directory that is new, or empty
    #[arg(long)]
    pub out: Option<PathBuf>,
    /// Another cluster than the one of the report
    #[arg(long, short)]
    pub bootstrap: Option<String>,
}

#[derive(Args)]
pub struct CompareArgs {
    /// A run's directory or report.json; several runs of one side are parted by commas. The others are compared with the first
    #[arg(required = true, num_args = 2..)]
    pub reports: Vec<String>,
    /// Exit with 1 if a metric is worse by more than this, as p99:10%; may be repeated
    #[arg(long, value_name = "METRIC:PERCENT%", value_parser = compare::parse_fail_on)]
    pub fail_on: Vec<FailOn>,
    /// Compare also what does not compare: other hardware, durability or load
    #[arg(long)]
    pub anyway: bool,
    /// Also write the comparison to this file as a page with charts
    #[arg(long)]
    pub html: Option<PathBuf>,
    /// Also write the comparison to this file as JSON
    #[arg(long)]
    pub json: Option<PathBuf>,
}

#[derive(Args)]
pub struct VersusArgs {
    /// The whole command line, for the report
    #[arg(skip)]
    pub argv: Vec<String>,
    /// The cluster that is compared with
    #[arg(long, value_name = "NAME=HOST:PORT")]
    pub a: Contender,
    /// The cluster that is compared
    #[arg(long, value_name = "NAME=HOST:PORT")]
    pub b: Contender,
    /// Cases from this file, instead of one from the command line
    #[arg(long, value_name = "FILE")]
    pub set: Option<PathBuf>,
    /// Only these cases of the set
    #[arg(long, value_delimiter = ',', requires = "set")]
    pub cases: Vec<String>,
    /// Runs of each case on each cluster: A, B, A, B ...
    #[arg(long, default_value_t = 3)]
    pub runs: u32,
    /// Load on each cluster before the first turn, which is in no figure, so that neither is measured cold; 0s leaves it out
    #[arg(long, value_name = "TIME", default_value = "3s", value_parser = quantity::duration)]
    pub warm: Duration,
    /// Run this before each turn with the cluster's name behind it, for instance to stop one broker and start the other
    #[arg(long, value_name = "COMMAND")]
    pub switch: Option<PathBuf>,
    /// Where all reports go: a directory that is new, or empty [default: results/<date>-versus]
    #[arg(long)]
    pub out: Option<PathBuf>,
    /// The workload and the flags of 'corelog-perf run'; with a set, flags that every case gets
    #[arg(last = true)]
    pub run: Vec<String>,
}

#[derive(Args)]
pub struct NullBrokerArgs {
    /// Address to listen on; port 0 takes any that is free
    #[arg(long, default_value = "127.0.0.1:9095")]
    pub listen: SocketAddr,
    /// Partitions of a topic that nobody created
    #[arg(long, default_value_t = 16)]
    pub partitions: u32,
}

#[derive(Args)]
pub struct WorkerArgs {
    /// Address to listen on, as 0.0.0.0:9096; whoever reaches it can put load on any address, so only in a network
    /// that is trusted
    #[arg(long)]
    pub listen: SocketAddr,
}

#[derive(Args)]
pub struct BaselineArgs {
    /// Directory on the disk to measure
    #[arg(long, default_value = ".")]
    pub dir: PathBuf,
    /// How long each measurement takes
    #[arg(long, default_value = "1s", value_parser = quantity::duration)]
    pub baseline_seconds: Duration,
    /// Size of the file that is overwritten and read
    #[arg(long, default_value = "512MiB")]
    pub baseline_bytes: Bytes,
    /// Also write the figures to this file as JSON
    #[arg(long)]
    pub json: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AcksArg {
    #[value(name = "0")]
    None,
    #[value(name = "1")]
    Leader,
    All,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AuditArg {
    /// Read every record back and check it against what the producers were told
    Full,
    /// Compare the number of acked records with the high watermarks
    Watermark,
    Off,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum GroupAssignmentArg {
    Range,
    #[value(name = "roundrobin")]
    RoundRobin,
    None,
}

/// The groups of `run --help`.
const CLUSTER: &str = "Cluster and topic";
const OFFERED: &str = "Offered load";
const RECORDS: &str = "Records";
const PRODUCERS: &str = "Producers";
const CONSUMERS: &str = "Consumers";
const MEASURED: &str = "What is measured beside it";
const REPORT: &str = "Report";

#[derive(Args)]
pub struct RunArgs {
    /// The whole command line, for the report
    #[arg(skip)]
    pub argv: Vec<String>,
    /// A built-in workload, or the path of a workload file of the OpenMessaging Benchmark: it ends in .yaml or
    /// .yml or has a '/'
    #[arg(default_value = workload::DEFAULT)]
    pub workload: String,
    /// Driver file of the OpenMessaging Benchmark for Kafka: cluster, topic, producer and consumer settings
    #[arg(help_heading = CLUSTER, long, value_name = "FILE")]
    pub driver: Option<PathBuf>,
    /// Address of any broker, or several separated by commas; without a port 9092 [default: the driver's, or
    /// $CORELOG_BOOTSTRAP, or 127.0.0.1:9092]
    #[arg(help_heading = CLUSTER, long, short)]
    pub bootstrap: Option<String>,
    /// Load offered: 200MB/s, 50000msg/s, max, or a share of the max measured before in this run, as in max,20%;
    /// rising rates as ramp:50MB/s..400MB/s:8; search, or search:START, looks for the highest rate that holds --hold
    /// [default: the workload's]
    #[arg(help_heading = OFFERED, long, value_delimiter = ',')]
    pub rate: Vec<RateTerm>,
    /// What a searched rate must hold: keep-up, or that within a latency (p50, p90, p99, p99.9, max), as p99:10ms
    /// [default: keep-up]
    #[arg(help_heading = OFFERED, long, value_name = "keep-up|QUANTILE:TIME")]
    pub hold: Option<Hold>,
    /// How long each try of a search is measured; the rate that is found is then measured for --duration
    /// [default: 5s, or --duration if that is shorter]
    #[arg(help_heading = OFFERED, long, value_parser = quantity::duration)]
    pub try_duration: Option<Duration>,
    /// How long each rate is measured [default: the workload file's, or 20s]
    #[arg(help_heading = OFFERED, long, value_parser = quantity::duration)]
    pub duration: Option<Duration>,
    /// Load before that which does not count [default: the workload file's, or 2s]
    #[arg(help_heading = OFFERED, long, value_parser = quantity::duration)]
    pub warmup: Option<Duration>,
    /// Payload of a record [default: the workload's]
    #[arg(help_heading = RECORDS, long)]
    pub message_size: Option<Bytes>,
    /// Largest record batch, before compression [default: the driver's, or the workload's]
    #[arg(help_heading = PRODUCERS, long)]
    pub batch_bytes: Option<Bytes>,
    /// Largest Produce request, if batches of several partitions are due together [default: the driver's, or 1MB]
    #[arg(help_heading = PRODUCERS, long)]
    pub request_bytes: Option<Bytes>,
    /// Topics, each with partitions, producers and subscriptions of its own [default: the workload's]
    #[arg(help_heading = CLUSTER, long)]
    pub topics: Option<u32>,
    /// Partitions of each topic [default: the workload's]
    #[arg(help_heading = CLUSTER, long)]
    pub partitions: Option<u32>,
    /// Copies of each partition [default: the driver's, or 1]
    #[arg(help_heading = CLUSTER, long)]
    pub replication: Option<u16>,
    /// Use this topic, created if it is not there, and keep it; of several topics each has a number behind the
    /// name [default: a new one that is deleted afterwards]
    #[arg(help_heading = CLUSTER, long)]
    pub topic: Option<String>,
    /// Setting of the created topic, as flush.messages=1; may be repeated
    #[arg(help_heading = CLUSTER, long = "topic-config", value_name = "NAME=VALUE", value_parser = name_and_value)]
    pub topic_settings: Vec<(String, String)>,
    /// Keep the topic that was created
    #[arg(help_heading = CLUSTER, long)]
    pub keep_topic: bool,
    /// Which replicas must have a record before it is confirmed [default: the driver's, or 1]
    #[arg(help_heading = PRODUCERS, long)]
    pub acks: Option<AcksArg>,
    /// How long the first record of a batch may wait for more [default: the driver's, or 5]
    #[arg(help_heading = PRODUCERS, long)]
    pub linger_ms: Option<u64>,
    /// Requests under way from one producer to one broker [default: the driver's, or 5]
    #[arg(help_heading = PRODUCERS, long)]
    pub in_flight: Option<usize>,
    /// Producer threads of each topic; 0 reads a topic that is there, with --topic and --replay-consumers [default: the workload's]
    #[arg(help_heading = PRODUCERS, long)]
    pub producers: Option<u32>,
    /// Sets of consumers of each topic; every set reads every record [default: the workload's]
    #[arg(help_heading = CONSUMERS, long)]
    pub subscriptions: Option<u32>,
    /// Consumers of each subscription, which follow the producers and share its partitions; 0 measures producing alone [default: the workload's]
    #[arg(help_heading = CONSUMERS, long)]
    pub consumers: Option<u32>,
    /// How a subscription's consumers get their partitions: as members of a group, by one of Kafka's assignors, or each the same
    /// ones for good [default: the driver's; with a workload file range, otherwise none]
    #[arg(help_heading = CONSUMERS, long, value_name = "range|roundrobin|none")]
    pub group_assignment: Option<GroupAssignmentArg>,
    /// How often the members of a group commit where they stand; 0s: after each fetch [default: the driver's, or 5s]
    #[arg(help_heading = CONSUMERS, long, value_name = "TIME", value_parser = quantity::duration)]
    pub commit_interval: Option<Duration>,
    /// So often a member of each group leaves and comes back, one after the other
    #[arg(help_heading = CONSUMERS, long, value_name = "TIME", value_parser = quantity::duration)]
    pub rebalance_every: Option<Duration>,
    /// Pause the consumers after the warm-up until this much is unread, over all subscriptions, then measure how long they take to
    /// catch up while producers go on; the load lasts for --duration after that [default: the workload's]
    #[arg(help_heading = OFFERED, long, value_name = "SIZE", value_parser = quantity::bytes_with_unit)]
    pub backlog: Option<Bytes>,
    /// Which share of the backlog must be read for it to count as drained, from 0 to 1 [default: the workload's, or 1]
    #[arg(help_heading = OFFERED, long, value_name = "RATIO")]
    pub backlog_drain_ratio: Option<f64>,
    /// Consumers of each topic that read it from --replay-from to its end over and over, each all of it, while the load goes on
    #[arg(help_heading = CONSUMERS, long, value_name = "COUNT", default_value_t = 0)]
    pub replay_consumers: u32,
    /// Where they begin: earliest, an offset, a time as 2026-11-30T08:00:00Z, or how long ago as -10m [default: earliest]
    #[arg(help_heading = CONSUMERS, long, value_name = "PLACE", allow_hyphen_values = true)]
    pub replay_from: Option<ReplayFrom>,
    /// They read to the end once and not over and over
    #[arg(help_heading = CONSUMERS, long)]
    pub replay_once: bool,
    /// Let these workers put the load on instead of this process: HOST:PORT each, separated by commas, where
    /// 'corelog-perf worker' listens; producers and consumers are dealt out to them
    #[arg(help_heading = OFFERED, long, value_name = "ADDRESSES", value_delimiter = ',')]
    pub workers: Vec<String>,
    /// Codec of the batches [default: the driver's, or none]
    #[arg(help_heading = RECORDS, long)]
    pub compression: Option<Compression>,
    /// Share of random bytes in a payload, from 0 to 1; the rest is zeros and compresses [default: the workload's]
    #[arg(help_heading = RECORDS, long, value_name = "RATIO")]
    pub random_bytes_ratio: Option<f64>,
    /// Cut the payloads from this file, one after the other, as many as a batch holds [default: the workload's]
    #[arg(help_heading = RECORDS, long, value_name = "FILE", conflicts_with = "random_bytes_ratio")]
    pub payload_file: Option<PathBuf>,
    /// Which keys the records have [default: the workload's]
    #[arg(help_heading = RECORDS, long)]
    pub keys: Option<KeyDistributor>,
    /// How many different keys there are [default: 10000]
    #[arg(help_heading = RECORDS, long)]
    pub key_count: Option<u32>,
    /// How uneven zipf is: the n-th key comes 1/n^EXPONENT as often as the first [default: 0.99]
    #[arg(help_heading = RECORDS, long, value_name = "EXPONENT")]
    pub zipf_exponent: Option<f64>,
    /// Number the batches so that the broker drops repeats; needs --acks all [default: the driver's, or false]
    #[arg(help_heading = PRODUCERS, long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "true|false")]
    pub idempotence: Option<bool>,
    /// How long each read afterwards may take; 0s leaves them out
    #[arg(help_heading = CONSUMERS, long, default_value = "3s", value_parser = quantity::duration)]
    pub read_duration: Duration,
    /// How much at the log's end the read from memory goes over again and again
    #[arg(help_heading = CONSUMERS, long, default_value = "64MB")]
    pub recent_bytes: Bytes,
    /// Largest answer to a fetch [default: the driver's, or 16MiB]
    #[arg(help_heading = CONSUMERS, long)]
    pub fetch_bytes: Option<Bytes>,
    /// Proof at the end that nothing was lost
    #[arg(help_heading = MEASURED, long, default_value = "full")]
    pub audit: AuditArg,
    /// Processes of the brokers on this machine, separated by commas; what they use is added up [default: who listens at the
    /// cluster's addresses, if they are of this machine]
    #[arg(help_heading = MEASURED, long, value_delimiter = ',', value_name = "PID")]
    pub broker_pid: Vec<u32>,
    /// Prometheus pages of brokers on other machines, as http://10.0.0.1:9644/metrics, separated by commas: CPU time, memory, disk and
    /// network bytes as they tell them
    #[arg(help_heading = MEASURED, long, value_delimiter = ',', value_name = "URL")]
    pub broker_metrics: Vec<MetricsUrl>,
    /// Where to measure the disk [default: beside the broker's log directory, if that is on this machine]
    #[arg(help_heading = MEASURED, long)]
    pub baseline_dir: Option<PathBuf>,
    /// How long each baseline measurement takes, before and after the load; 0s leaves them out
    #[arg(help_heading = MEASURED, long, default_value = "200ms", value_parser = quantity::duration)]
    pub baseline_seconds: Duration,
    /// Size of the file that the disk baseline overwrites and reads
    #[arg(help_heading = MEASURED, long, default_value = "256MiB")]
    pub baseline_bytes: Bytes,
    /// Runs, one after the other, and how far they lie apart; each has its report
    #[arg(help_heading = REPORT, long, default_value_t = 1)]
    pub runs: u32,
    /// Write only the report's JSON, to this file
    #[arg(help_heading = REPORT, long)]
    pub json: Option<PathBuf>,
    /// Write report.html, report.json, report.txt and the raw histograms into this directory, which is new, or empty
    /// [default, without --json: results/<date>-<workload>]
    #[arg(help_heading = REPORT, long)]
    pub out: Option<PathBuf>,
}

/// Why a stored command line is not one of a run.
#[derive(Debug, thiserror::Error)]
pub enum ArgvError {
    #[error("{0}")]
    Refused(#[from] clap::Error),
    #[error("it is another command")]
    NotARun,
}

impl RunArgs {
    /// From a whole command line, `corelog-perf run ...`.
    pub fn from_argv(argv: Vec<String>) -> Result<Self, ArgvError> {
        match Cli::try_parse_from(&argv)?.command {
            Command::Run(run) => Ok(Self { argv, ..*run }),
            _ => Err(ArgvError::NotARun),
        }
    }
}

fn name_and_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(format!("'{text}' is not NAME=VALUE")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_refused_by_clap(arguments: &[&str]) -> bool {
        Cli::try_parse_from(["corelog-perf", "run"].iter().chain(arguments)).is_err()
    }

    #[test]
    fn every_flag_of_a_run_stands_in_a_group_of_its_help() {
        use clap::CommandFactory;
        let command = Cli::command();
        let run = command.find_subcommand("run").expect("there is a run");
        let ungrouped: Vec<_> = run
            .get_arguments()
            .filter(|flag| flag.get_long().is_some_and(|name| name != "help"))
            .filter(|flag| flag.get_help_heading().is_none())
            .map(|flag| flag.get_id().as_str())
            .collect();
        assert!(ungrouped.is_empty(), "{ungrouped:?}");
    }

    #[test]
    fn a_broker_is_named_as_corelog_names_it() {
        for command in ["run", "unit-costs", "commits"] {
            let argv = ["corelog-perf", command, "-b", "a:1"];
            assert!(Cli::try_parse_from(argv).is_ok(), "{command}");
        }
    }

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }

    #[test]
    fn values_without_their_unit_or_of_another_kind_are_refused() {
        assert!(is_refused_by_clap(&["--rate", "200"]));
        assert!(is_refused_by_clap(&["--rate", "ramp:9MB/s..1MB/s"]));
        assert!(is_refused_by_clap(&["--hold", "p99:10"]));
        assert!(is_refused_by_clap(&["--duration", "20"]));
        assert!(is_refused_by_clap(&["--acks", "2"]));
        assert!(is_refused_by_clap(&["--message-size", "0"]));
        assert!(is_refused_by_clap(&["--topic-config", "novalue"]));
    }
}
