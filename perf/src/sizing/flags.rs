//! The flags of `size`, what is assumed without them, and what they must not say together.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, value_parser};

use super::broker_capacity::{BrokerCapacity, UnitCosts};
use super::demand::{Demand, partitions_for};
use super::measured::{Measured, MeasuredError};
use super::source::{Source, Sourced};
use crate::quantity::{self, Bytes, Percent, QuantityError, Rate};

#[derive(Args)]
pub struct SizeArgs {
    /// Reproduce the estimate of the walkthrough line by line, then what it leaves out; with --from also with the
    /// measured figures in place of the assumed ones
    #[arg(long, conflicts_with_all = ["DemandArgs", "BrokerArgs"])]
    pub walkthrough: bool,
    #[command(flatten)]
    pub demand: DemandArgs,
    #[command(flatten)]
    pub broker: BrokerArgs,
    /// Take the disk's rate, cores, memory, c_lead and c_fetch from a report of `corelog-perf run`, or all costs of CPU and
    /// of partitions from one of `corelog-perf unit-costs`, or both from all reports in a directory; may be repeated. A
    /// flag comes before a report
    #[arg(long, value_name = "PATH", help_heading = "Broker")]
    pub from: Vec<PathBuf>,
    /// Use at most this share of what a broker has
    #[arg(long, default_value = "70%", value_name = "PERCENT", value_parser = quantity::percent, allow_hyphen_values = true)]
    pub headroom: Percent,
    /// Print everything as JSON instead of text
    #[arg(long)]
    pub json: bool,
    /// Also write a page with a chart of brokers against ingest to this file
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

#[derive(Args)]
#[command(next_help_heading = "Load")]
pub struct DemandArgs {
    /// What producers send on average, before compression: 200MB/s, or 1Mmsg/s with --message-size
    #[arg(long, value_name = "RATE", value_parser = ingest, allow_hyphen_values = true)]
    pub ingest: Option<Ingest>,
    /// Size of a message [default: 1KB]
    #[arg(long, value_name = "SIZE", value_parser = quantity::bytes_with_unit, allow_hyphen_values = true)]
    pub message_size: Option<Bytes>,
    /// The busiest time against the average, as 1.5 [default: 1]
    #[arg(long, value_name = "FACTOR", value_parser = quantity::factor, allow_hyphen_values = true)]
    pub peak_factor: Option<f64>,
    /// Size before compression by the producers against the size after it, as 3 [default: 1]
    #[arg(long, value_name = "FACTOR", value_parser = quantity::factor, allow_hyphen_values = true)]
    pub compression_ratio: Option<f64>,
    /// Copies of each partition, the leader's included [default: 3]
    #[arg(long, value_name = "COUNT", value_parser = value_parser!(u64).range(1..=100), allow_hyphen_values = true)]
    pub copies: Option<u64>,
    /// How long records are kept [default: 7d]
    #[arg(long, value_name = "TIME", value_parser = quantity::duration, allow_hyphen_values = true)]
    pub retention: Option<Duration>,
    /// Consumer groups that each read everything [default: 1]
    #[arg(long, value_name = "COUNT", value_parser = value_parser!(u64).range(1..=10_000), allow_hyphen_values = true)]
    pub readers: Option<u64>,
    /// How many of these groups do not keep up, so that what they read comes from the disk [default: 0]
    #[arg(long, value_name = "COUNT", value_parser = value_parser!(u64).range(0..=10_000), allow_hyphen_values = true)]
    pub cold_readers: Option<u64>,
    /// What producers put into one request, before compression; small requests cost CPU where c_request is known [default: 1MB]
    #[arg(long, value_name = "SIZE", value_parser = quantity::bytes_with_unit, allow_hyphen_values = true)]
    pub request_size: Option<Bytes>,
    /// Share of the ingest that the busiest topic brings [default: all of it]
    #[arg(long, value_name = "RATE", value_parser = quantity::bytes_per_s, allow_hyphen_values = true)]
    pub topic_ingest: Option<u64>,
    /// What one consumer server processes [default: 50MB/s]
    #[arg(long, value_name = "RATE", value_parser = quantity::bytes_per_s, allow_hyphen_values = true)]
    pub consumer_rate: Option<u64>,
    /// Partitions of all topics together, copies not counted [default: as many as consumer servers for all of the ingest]
    #[arg(long, value_name = "COUNT", value_parser = value_parser!(u64).range(1..=100_000_000), allow_hyphen_values = true)]
    pub partitions: Option<u64>,
    /// Size of a segment file [default: 1GB]
    #[arg(long, value_name = "SIZE", value_parser = quantity::bytes_with_unit, allow_hyphen_values = true)]
    pub segment_bytes: Option<Bytes>,
    /// How much of the newest is kept in memory, for readers and followers that keep up [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = quantity::duration, allow_hyphen_values = true)]
    pub cached: Option<Duration>,
}

#[derive(Args, Default)]
#[command(next_help_heading = "Broker")]
pub struct BrokerArgs {
    /// How many brokers one has in mind [default: what the headroom and the loss of one ask for]
    #[arg(long, value_name = "COUNT", value_parser = value_parser!(u64).range(1..=1_000_000), allow_hyphen_values = true)]
    pub brokers: Option<u64>,
    /// What a broker's disks write in sequence [default: 500MB/s]
    #[arg(long, value_name = "RATE", value_parser = quantity::bytes_per_s, allow_hyphen_values = true)]
    pub disk_rate: Option<u64>,
    /// What a broker's disks hold; no default, as it often decides
    #[arg(long, value_name = "SIZE", value_parser = quantity::bytes_with_unit, allow_hyphen_values = true)]
    pub disk_space: Option<Bytes>,
    /// A broker's network, each way: 1GB/s or 10Gbit/s [default: 1GB/s]
    #[arg(long, value_name = "RATE", value_parser = quantity::bytes_per_s, allow_hyphen_values = true)]
    pub nic: Option<u64>,
    /// Cores of a broker [default: 16]
    #[arg(long, value_name = "COUNT", value_parser = value_parser!(u64).range(1..=100_000), allow_hyphen_values = true)]
    pub cores: Option<u64>,
    /// Memory of a broker [default: 64GB]
    #[arg(long, value_name = "SIZE", value_parser = quantity::bytes_with_unit, allow_hyphen_values = true)]
    pub memory: Option<Bytes>,
    /// Copies of partitions that a broker may hold [default: 4000]
    #[arg(long, value_name = "COUNT", value_parser = value_parser!(u64).range(1..=10_000_000), allow_hyphen_values = true)]
    pub partitions_per_broker: Option<u64>,
    /// Memory of one copy of a partition [default: 1MB]
    #[arg(long, value_name = "SIZE", value_parser = quantity::bytes_with_unit, allow_hyphen_values = true)]
    pub partition_memory: Option<Bytes>,
    /// CPU of a leader to take and write what is produced [default: 1.2s/GB]
    #[arg(long, value_name = "COST", value_parser = quantity::cpu_ns_per_gb, allow_hyphen_values = true)]
    pub c_lead: Option<u64>,
    /// CPU of a leader to send to a consumer that keeps up [default: 0.5s/GB]
    #[arg(long, value_name = "COST", value_parser = quantity::cpu_ns_per_gb, allow_hyphen_values = true)]
    pub c_fetch: Option<u64>,
    /// CPU of a leader to send to one follower [default: 0.5s/GB]
    #[arg(long, value_name = "COST", value_parser = quantity::cpu_ns_per_gb, allow_hyphen_values = true)]
    pub c_send: Option<u64>,
    /// CPU of a follower to take and write [default: 1.2s/GB]
    #[arg(long, value_name = "COST", value_parser = quantity::cpu_ns_per_gb, allow_hyphen_values = true)]
    pub c_follow: Option<u64>,
    /// CPU of a leader to send from the disk to a consumer that does not keep up [default: 0.5s/GB]
    #[arg(long, value_name = "COST", value_parser = quantity::cpu_ns_per_gb, allow_hyphen_values = true)]
    pub c_cold: Option<u64>,
    /// CPU of each Produce request beside its bytes, as 40us [default: none, it is in c_lead]
    #[arg(long, value_name = "TIME", value_parser = quantity::cpu_ns, allow_hyphen_values = true)]
    pub c_request: Option<u64>,
    /// CPU of each Produce request that a consumer that keeps up reads, beside its bytes [default: none, it is in c_fetch]
    #[arg(long, value_name = "TIME", value_parser = quantity::cpu_ns, allow_hyphen_values = true)]
    pub c_fetch_request: Option<u64>,
    /// CPU of each copy of a partition in each second [default: none]
    #[arg(long, value_name = "TIME", value_parser = quantity::cpu_ns, allow_hyphen_values = true)]
    pub c_partition: Option<u64>,
}

/// What producers send, counted either way.
#[derive(Clone, Copy, Debug)]
pub enum Ingest {
    BytesPerS(u64),
    MessagesPerS(u64),
}

/// A rate without what only a run has: its own maximum.
fn ingest(text: &str) -> Result<Ingest, String> {
    match text.parse() {
        Ok(Rate::Bytes(bytes_per_s)) => Ok(Ingest::BytesPerS(bytes_per_s)),
        Ok(Rate::Records(messages_per_s)) => Ok(Ingest::MessagesPerS(messages_per_s)),
        Ok(Rate::Max | Rate::PercentOfMax(_))
        | Err(QuantityError::NoUnit { .. } | QuantityError::UnknownUnit { .. }) => Err(format!(
            "'{text}' is no rate to size for; write for instance 200MB/s or 1Mmsg/s"
        )),
        Err(error) => Err(error.to_string()),
    }
}

/// What cannot be sized.
#[derive(Debug, thiserror::Error)]
pub enum SizeError {
    #[error("--{flag} is missing: {what}; `corelog-perf size --help` lists all flags")]
    Missing {
        flag: &'static str,
        what: &'static str,
    },
    #[error("--{flag} must be at least 1s")]
    Zero { flag: &'static str },
    #[error("--{flag} is too large: at most {most}")]
    TooLarge {
        flag: &'static str,
        most: &'static str,
    },
    #[error(
        "--topic-ingest is more than --ingest: a topic brings no more than all topics together"
    )]
    TopicAboveIngest,
    #[error(
        "--cold-readers {cold} is more than --readers {readers}: they are some of these groups"
    )]
    ColdAboveReaders { cold: u64, readers: u64 },
    #[error("--message-size is larger than --segment-bytes: a segment holds at least one message")]
    MessageAboveSegment,
    #[error(
        "--partitions {got} is less than the {needed} that --topic-ingest, --peak-factor and --consumer-rate ask for"
    )]
    TooFewPartitions { got: u64, needed: u64 },
    #[error(
        "--copies {copies} is more than --brokers {brokers}: each copy is on a broker of its own"
    )]
    CopiesAboveBrokers { copies: u64, brokers: u64 },
    #[error(transparent)]
    Measured(#[from] MeasuredError),
}

/// Assumed until said or measured: broker hardware of the middle, and costs of the order that brokers without
/// replication were measured at with large batches. A follower writes as a leader does and sends as to a reader.
pub const DISK_BYTES_PER_S: u64 = 500_000_000;
pub const NIC_BYTES_PER_S: u64 = 1_000_000_000;
const CORES: u64 = 16;
const MEMORY_BYTES: u64 = 64_000_000_000;
const PARTITIONS_PER_BROKER: u64 = 4_000;
/// One chunk of half of it that fills, and one on its way to the disk.
const PARTITION_MEMORY_BYTES: u64 = 1_000_000;
const LEAD_NS_PER_GB: u64 = 1_200_000_000;
const FETCH_NS_PER_GB: u64 = 500_000_000;
/// What is not measured apart is in the costs of bytes.
const IN_THE_BYTES: u64 = 0;

const MESSAGE_BYTES: u64 = 1_000;
pub const REQUEST_BYTES: u64 = 1_000_000;
const COPIES: u64 = 3;
const RETENTION_S: u64 = 7 * 86_400;
const CONSUMER_BYTES_PER_S: u64 = 50_000_000;
const SEGMENT_BYTES: u64 = 1_000_000_000;
const CACHED_S: u64 = 10;

const INGEST_BYTES_PER_S_MAX: u64 = 1_000_000_000_000_000;
const TIME_S_MAX: u64 = 100 * 365 * 86_400;

impl DemandArgs {
    /// Fills in what is assumed and refuses what contradicts itself.
    pub fn demand(&self) -> Result<Demand, SizeError> {
        let message_bytes = Sourced::flag_or(self.message_size.map(|size| size.0), MESSAGE_BYTES);
        let ingest = self.ingest_bytes_per_s()?;
        let peak_factor = Sourced::flag_or(self.peak_factor, 1.0);
        let segment_bytes = Sourced::flag_or(self.segment_bytes.map(|size| size.0), SEGMENT_BYTES);
        if message_bytes.value > segment_bytes.value {
            return Err(SizeError::MessageAboveSegment);
        }
        let topic_ingest = match self.topic_ingest {
            Some(topic) if topic > ingest => return Err(SizeError::TopicAboveIngest),
            Some(topic) => Sourced::new(topic, Source::Flag),
            None => Sourced::new(ingest, Source::Derived),
        };
        let consumer = Sourced::flag_or(self.consumer_rate, CONSUMER_BYTES_PER_S);
        let needed = partitions_for(topic_ingest.value, peak_factor.value, consumer.value);
        let partitions = match self.partitions {
            Some(got) if got < needed => return Err(SizeError::TooFewPartitions { got, needed }),
            Some(partitions) => Sourced::new(partitions, Source::Flag),
            None => Sourced::new(
                partitions_for(ingest, peak_factor.value, consumer.value),
                Source::Derived,
            ),
        };
        let readers = Sourced::flag_or(self.readers, 1);
        let cold_readers = Sourced::flag_or(self.cold_readers, 0);
        if cold_readers.value > readers.value {
            return Err(SizeError::ColdAboveReaders {
                cold: cold_readers.value,
                readers: readers.value,
            });
        }
        Ok(Demand {
            ingest_bytes_per_s: Sourced::new(ingest, Source::Flag),
            message_bytes,
            peak_factor,
            compression_ratio: Sourced::flag_or(self.compression_ratio, 1.0),
            copies: Sourced::flag_or(self.copies, COPIES),
            retention_s: Sourced::flag_or(seconds("retention", self.retention)?, RETENTION_S),
            reader_groups: readers,
            cold_reader_groups: cold_readers,
            request_bytes: Sourced::flag_or(self.request_size.map(|size| size.0), REQUEST_BYTES),
            topic_ingest_bytes_per_s: topic_ingest,
            consumer_bytes_per_s: consumer,
            partitions,
            segment_bytes,
            cached_s: Sourced::flag_or(seconds("cached", self.cached)?, CACHED_S),
        })
    }

    fn ingest_bytes_per_s(&self) -> Result<u64, SizeError> {
        let ingest = match (self.ingest, self.message_size) {
            (None, _) => {
                return Err(SizeError::Missing {
                    flag: "ingest",
                    what: "what producers send, as 200MB/s, or 1Mmsg/s with --message-size",
                });
            }
            (Some(Ingest::MessagesPerS(_)), None) => {
                return Err(SizeError::Missing {
                    flag: "message-size",
                    what: "--ingest counts messages, so their size is needed, as 1KB",
                });
            }
            (Some(Ingest::MessagesPerS(messages)), Some(size)) => messages.saturating_mul(size.0),
            (Some(Ingest::BytesPerS(bytes_per_s)), _) => bytes_per_s,
        };
        if ingest > INGEST_BYTES_PER_S_MAX {
            return Err(SizeError::TooLarge {
                flag: "ingest",
                most: "1000TB/s",
            });
        }
        Ok(ingest)
    }
}

fn seconds(flag: &'static str, time: Option<Duration>) -> Result<Option<u64>, SizeError> {
    match time.map(|time| time.as_secs()) {
        Some(0) => Err(SizeError::Zero { flag }),
        Some(seconds) if seconds > TIME_S_MAX => Err(SizeError::TooLarge {
            flag,
            most: "100 years",
        }),
        seconds => Ok(seconds),
    }
}

impl BrokerArgs {
    /// A flag comes before a report, a report before what is assumed.
    pub fn capacity(&self, measured: &Measured) -> Result<BrokerCapacity, SizeError> {
        let disk_space = self.disk_space.ok_or(SizeError::Missing {
            flag: "disk-space",
            what: "what one broker's disks hold, as 20TB",
        })?;
        Ok(BrokerCapacity {
            disk_bytes_per_s: chosen(self.disk_rate, &measured.disk_bytes_per_s, DISK_BYTES_PER_S),
            disk_bytes: Sourced::new(disk_space.0, Source::Flag),
            nic_bytes_per_s: Sourced::flag_or(self.nic, NIC_BYTES_PER_S),
            cores: chosen(self.cores, &measured.cores, CORES),
            memory_bytes: chosen(
                self.memory.map(|size| size.0),
                &measured.memory_bytes,
                MEMORY_BYTES,
            ),
            partitions_max: Sourced::flag_or(self.partitions_per_broker, PARTITIONS_PER_BROKER),
            partition_memory_bytes: chosen(
                self.partition_memory.map(|size| size.0),
                &measured.partition_memory_bytes,
                PARTITION_MEMORY_BYTES,
            ),
            cost: self.unit_costs(measured),
        })
    }

    pub fn unit_costs(&self, measured: &Measured) -> UnitCosts {
        UnitCosts {
            lead_ns_per_gb: chosen(self.c_lead, &measured.lead_ns_per_gb, LEAD_NS_PER_GB),
            fetch_ns_per_gb: chosen(self.c_fetch, &measured.fetch_ns_per_gb, FETCH_NS_PER_GB),
            send_ns_per_gb: Sourced::flag_or(self.c_send, FETCH_NS_PER_GB),
            follow_ns_per_gb: Sourced::flag_or(self.c_follow, LEAD_NS_PER_GB),
            cold_ns_per_gb: chosen(self.c_cold, &measured.cold_ns_per_gb, FETCH_NS_PER_GB),
            request_ns: chosen(self.c_request, &measured.request_ns, IN_THE_BYTES),
            fetch_request_ns: chosen(
                self.c_fetch_request,
                &measured.fetch_request_ns,
                IN_THE_BYTES,
            ),
            partition_ns_per_s: chosen(
                self.c_partition,
                &measured.partition_ns_per_s,
                IN_THE_BYTES,
            ),
        }
    }
}

fn chosen(flag: Option<u64>, measured: &Option<Sourced<u64>>, default: u64) -> Sourced<u64> {
    match (flag, measured) {
        (None, Some(measured)) => measured.clone(),
        _ => Sourced::flag_or(flag, default),
    }
}

/// Copies are on different brokers, so there are at least as many brokers.
pub fn check_copies(demand: &Demand, brokers: Option<u64>) -> Result<(), SizeError> {
    match brokers {
        Some(brokers) if brokers < demand.copies.value => Err(SizeError::CopiesAboveBrokers {
            copies: demand.copies.value,
            brokers,
        }),
        _ => Ok(()),
    }
}
