//! The command line, and what it must not say.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::compare::{self, FailOn};
use crate::producer::frame::Acks;
use crate::quantity::{self, Bytes, Rate};
use crate::record::STAMP_BYTES;
use crate::sizing::SizeArgs;
use crate::workload::{self, UnknownWorkload, Workload};

/// Kafka keeps five batches of an idempotent producer, so no more requests may be under way.
const IDEMPOTENT_IN_FLIGHT_MAX: usize = 5;

#[derive(Parser)]
#[command(name = "corelog-perf", version, about, max_term_width = 110)]
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
    /// List the built-in workloads
    Workloads,
    /// Print what a run found, from its directory
    Show(ShowArgs),
    /// Do a run again as its report says
    Rerun(RerunArgs),
    /// Show what differs between runs, and whether it is more than runs differ by themselves
    Compare(CompareArgs),
    /// Be a broker that keeps nothing and answers at once: what a client costs against it is not the broker's cost
    NullBroker(NullBrokerArgs),
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
    /// Where the new run leaves its report; the old one is not written over
    #[arg(long)]
    pub out: Option<PathBuf>,
    /// Another cluster than the one of the report
    #[arg(long)]
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

#[derive(Args)]
pub struct RunArgs {
    /// The whole command line, for the report
    #[arg(skip)]
    pub argv: Vec<String>,
    /// A built-in workload
    #[arg(default_value = workload::DEFAULT)]
    pub workload: String,
    /// Address of any broker
    #[arg(long, default_value = "127.0.0.1:9092")]
    pub bootstrap: String,
    /// Load offered: 200MB/s, 50000msg/s, max, or a share of the max measured before in this run, as in max,20%
    /// [default: the workload's]
    #[arg(long, value_delimiter = ',')]
    pub rate: Vec<Rate>,
    /// How long each rate is measured
    #[arg(long, default_value = "20s", value_parser = quantity::duration)]
    pub duration: Duration,
    /// Load before that which does not count
    #[arg(long, default_value = "2s", value_parser = quantity::duration)]
    pub warmup: Duration,
    /// Payload of a record [default: the workload's]
    #[arg(long)]
    pub message_size: Option<Bytes>,
    /// Largest record batch [default: the workload's]
    #[arg(long)]
    pub batch_bytes: Option<Bytes>,
    /// Largest Produce request, if batches of several partitions are due together
    #[arg(long, default_value = "1MB")]
    pub request_bytes: Bytes,
    /// Partitions of the topic [default: the workload's]
    #[arg(long)]
    pub partitions: Option<u32>,
    /// Copies of each partition
    #[arg(long, default_value_t = 1)]
    pub replication: u16,
    /// Use this topic, created if it is not there, and keep it [default: a new one that is deleted afterwards]
    #[arg(long)]
    pub topic: Option<String>,
    /// Setting of the created topic, as flush.messages=1; may be repeated
    #[arg(long = "topic-config", value_name = "NAME=VALUE", value_parser = name_and_value)]
    pub topic_settings: Vec<(String, String)>,
    /// Keep the topic that was created
    #[arg(long)]
    pub keep_topic: bool,
    /// Which replicas must have a record before it is confirmed
    #[arg(long, default_value = "1")]
    pub acks: AcksArg,
    /// How long the first record of a batch may wait for more
    #[arg(long, default_value_t = 5)]
    pub linger_ms: u64,
    /// Requests under way from one producer to one broker
    #[arg(long, default_value_t = 5)]
    pub in_flight: usize,
    /// Producer threads [default: the workload's]
    #[arg(long)]
    pub producers: Option<u32>,
    /// Consumers that follow the producers; 0 measures producing alone [default: the workload's]
    #[arg(long)]
    pub consumers: Option<u32>,
    /// Number the batches so that the broker drops repeats; needs --acks all
    #[arg(long)]
    pub idempotence: bool,
    /// How long each read afterwards may take; 0s leaves them out
    #[arg(long, default_value = "3s", value_parser = quantity::duration)]
    pub read_duration: Duration,
    /// How much at the log's end the read from memory goes over again and again
    #[arg(long, default_value = "64MB")]
    pub recent_bytes: Bytes,
    /// Largest answer to a fetch
    #[arg(long, default_value = "16MiB")]
    pub fetch_bytes: Bytes,
    /// Proof at the end that nothing was lost
    #[arg(long, default_value = "full")]
    pub audit: AuditArg,
    /// Process of a broker on this machine [default: who listens on the bootstrap port]
    #[arg(long)]
    pub broker_pid: Option<u32>,
    /// Where to measure the disk [default: beside the broker's log directory, if that is on this machine]
    #[arg(long)]
    pub baseline_dir: Option<PathBuf>,
    /// How long each baseline measurement takes, before and after the load; 0s leaves them out
    #[arg(long, default_value = "200ms", value_parser = quantity::duration)]
    pub baseline_seconds: Duration,
    /// Size of the file that the disk baseline overwrites and reads
    #[arg(long, default_value = "256MiB")]
    pub baseline_bytes: Bytes,
    /// Write the report to this file
    #[arg(long)]
    pub json: Option<PathBuf>,
    /// Write report.html, report.json, report.txt and the raw histograms into this directory
    #[arg(long)]
    pub out: Option<PathBuf>,
}

fn name_and_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(format!("'{text}' is not NAME=VALUE")),
    }
}

/// What the flags together must not say.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum PlanError {
    #[error(transparent)]
    Workload(#[from] UnknownWorkload),
    #[error("--{flag} must be more than 0")]
    Zero { flag: &'static str },
    #[error(
        "--message-size {got} is too small: {STAMP_BYTES} bytes carry a record's sequence and checksum"
    )]
    MessageTooSmall { got: u64 },
    #[error("--{flag} {got} is too large: at most {max}")]
    TooLarge {
        flag: &'static str,
        got: u64,
        max: u64,
    },
    #[error("--idempotence needs --acks all")]
    IdempotenceNeedsAcksAll,
    #[error(
        "--idempotence allows at most {IDEMPOTENT_IN_FLIGHT_MAX} requests under way, not --in-flight {got}"
    )]
    IdempotenceInFlight { got: usize },
    #[error("--rate {percent}% needs 'max' before it, as in --rate max,{percent}%")]
    PercentWithoutMax { percent: f64 },
    #[error("--bootstrap '{0}' is not HOST:PORT")]
    Bootstrap(String),
}

/// A load, whole and checked.
#[derive(Clone, Debug)]
pub struct LoadPlan {
    pub workload: String,
    pub rates: Vec<Rate>,
    pub partitions: u32,
    pub message_bytes: usize,
    pub batch_bytes_max: usize,
    pub request_bytes_max: usize,
    pub producers: u32,
    pub consumers: u32,
    pub acks: Acks,
    pub linger: Duration,
    pub in_flight_max: usize,
    pub idempotence: bool,
}

const BATCH_BYTES_MAX: u64 = 100 * 1024 * 1024;
const MESSAGE_BYTES_MAX: u64 = 64 * 1024 * 1024;
const FETCH_BYTES_MAX: u64 = 256 * 1024 * 1024;
const PARTITIONS_MAX: u64 = 100_000;
const CLIENTS_MAX: u64 = 1_000;

impl RunArgs {
    /// Fills in the workload's values and refuses what cannot be run.
    pub fn plan(&self) -> Result<LoadPlan, PlanError> {
        let Workload {
            name,
            partitions_per_topic,
            message_size,
            producers_per_topic,
            consumer_per_subscription,
            producer_rate,
            batch_bytes,
        } = workload::find(&self.workload)?;
        let plan = LoadPlan {
            workload: name.to_owned(),
            rates: if self.rate.is_empty() {
                vec![producer_rate]
            } else {
                self.rate.clone()
            },
            partitions: self.partitions.unwrap_or(partitions_per_topic),
            message_bytes: within(
                "message-size",
                self.message_size.map_or(message_size, |size| size.0),
                MESSAGE_BYTES_MAX,
            )? as usize,
            batch_bytes_max: within(
                "batch-bytes",
                self.batch_bytes.map_or(batch_bytes, |size| size.0),
                BATCH_BYTES_MAX,
            )? as usize,
            request_bytes_max: within("request-bytes", self.request_bytes.0, BATCH_BYTES_MAX)?
                as usize,
            producers: self.producers.unwrap_or(producers_per_topic),
            consumers: self.consumers.unwrap_or(consumer_per_subscription),
            acks: match self.acks {
                AcksArg::None => Acks::None,
                AcksArg::Leader => Acks::Leader,
                AcksArg::All => Acks::All,
            },
            linger: Duration::from_millis(self.linger_ms),
            in_flight_max: self.in_flight,
            idempotence: self.idempotence,
        };
        within("fetch-bytes", self.fetch_bytes.0, FETCH_BYTES_MAX)?;
        within("partitions", u64::from(plan.partitions), PARTITIONS_MAX)?;
        within("producers", u64::from(plan.producers), CLIENTS_MAX)?;
        within("consumers", u64::from(plan.consumers), CLIENTS_MAX)?;
        let not_zero = [
            ("duration", self.duration.is_zero()),
            ("partitions", plan.partitions == 0),
            ("producers", plan.producers == 0),
            ("in-flight", plan.in_flight_max == 0),
            ("replication", self.replication == 0),
        ];
        if let Some((flag, _)) = not_zero.into_iter().find(|(_, zero)| *zero) {
            return Err(PlanError::Zero { flag });
        }
        if plan.message_bytes < STAMP_BYTES {
            return Err(PlanError::MessageTooSmall {
                got: plan.message_bytes as u64,
            });
        }
        if self.idempotence && plan.acks != Acks::All {
            return Err(PlanError::IdempotenceNeedsAcksAll);
        }
        if self.idempotence && self.in_flight > IDEMPOTENT_IN_FLIGHT_MAX {
            return Err(PlanError::IdempotenceInFlight {
                got: self.in_flight,
            });
        }
        let mut max_known = false;
        for rate in &plan.rates {
            match rate {
                Rate::Max => max_known = true,
                Rate::PercentOfMax(percent) if !max_known => {
                    return Err(PlanError::PercentWithoutMax { percent: *percent });
                }
                _ => {}
            }
        }
        let host_and_port = self
            .bootstrap
            .rsplit_once(':')
            .map(|(host, port)| (host, port.parse::<u16>()));
        let is_address = self.bootstrap.parse::<SocketAddr>().is_ok();
        match host_and_port {
            Some((host, Ok(_))) if !host.is_empty() => Ok(plan),
            _ if is_address => Ok(plan),
            _ => Err(PlanError::Bootstrap(self.bootstrap.clone())),
        }
    }
}

fn within(flag: &'static str, got: u64, max: u64) -> Result<u64, PlanError> {
    if got > max {
        return Err(PlanError::TooLarge { flag, got, max });
    }
    Ok(got)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(arguments: &[&str]) -> Result<LoadPlan, PlanError> {
        let cli = Cli::try_parse_from(["corelog-perf", "run"].iter().chain(arguments))
            .expect("clap accepts it");
        let Command::Run(run) = cli.command else {
            panic!("another command")
        };
        run.plan()
    }

    fn is_refused_by_clap(arguments: &[&str]) -> bool {
        Cli::try_parse_from(["corelog-perf", "run"].iter().chain(arguments)).is_err()
    }

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }

    #[test]
    fn flags_override_the_workload() {
        let plan = plan(&[
            "1-topic-16-partitions-1kb",
            "--partitions",
            "3",
            "--batch-bytes",
            "1MB",
            "--rate",
            "max,20%",
        ])
        .unwrap();
        assert_eq!(
            (plan.partitions, plan.message_bytes, plan.batch_bytes_max),
            (3, 1024, 1_000_000)
        );
        assert_eq!(plan.rates, [Rate::Max, Rate::PercentOfMax(20.0)]);
    }

    #[test]
    fn what_cannot_be_run_is_refused_with_its_flag() {
        assert!(matches!(plan(&["no-such"]), Err(PlanError::Workload(_))));
        assert_eq!(
            plan(&["--message-size", "31"]).unwrap_err(),
            PlanError::MessageTooSmall { got: 31 }
        );
        assert_eq!(
            plan(&["--partitions", "0"]).unwrap_err(),
            PlanError::Zero { flag: "partitions" }
        );
        assert_eq!(
            plan(&["--duration", "0s"]).unwrap_err(),
            PlanError::Zero { flag: "duration" }
        );
        assert_eq!(
            plan(&["--idempotence"]).unwrap_err(),
            PlanError::IdempotenceNeedsAcksAll
        );
        assert!(matches!(
            plan(&["--idempotence", "--acks", "all", "--in-flight", "6"]),
            Err(PlanError::IdempotenceInFlight { got: 6 })
        ));
        assert!(matches!(
            plan(&["--rate", "20%,max"]),
            Err(PlanError::PercentWithoutMax { .. })
        ));
        assert!(matches!(
            plan(&["--batch-bytes", "1GB"]),
            Err(PlanError::TooLarge {
                flag: "batch-bytes",
                ..
            })
        ));
        assert!(matches!(
            plan(&["--bootstrap", "localhost"]),
            Err(PlanError::Bootstrap(_))
        ));
    }

    #[test]
    fn values_without_their_unit_or_of_another_kind_are_refused() {
        assert!(is_refused_by_clap(&["--rate", "200"]));
        assert!(is_refused_by_clap(&["--duration", "20"]));
        assert!(is_refused_by_clap(&["--acks", "2"]));
        assert!(is_refused_by_clap(&["--message-size", "0"]));
        assert!(is_refused_by_clap(&["--topic-config", "novalue"]));
    }
}
