//! `corelog produce`: lines become records.

mod batches;
mod lines;

use std::io;
use std::path::PathBuf;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use serde::Serialize;

use crate::client::cluster::Cluster;
use crate::client::error::ErrorCode;
use crate::client::metadata::TopicMetadata;
use crate::client::produce::{Acks, Delivery};
use crate::client::topics::NewTopic;
use crate::record::Codec;

use super::assignment::parse_assignment;
use super::cluster_arguments::ClusterArguments;
use super::exit::{CliError, Outcome};
use super::time::parse_duration;
use super::{print, tell, to_json};
use batches::Batches;
use lines::{LineFormat, Lines};

/// How long a record waits for others to go with, unless its batch is full before.
const LINGER: Duration = Duration::from_millis(5);

#[derive(Args, Debug)]
pub(super) struct ProduceArguments {
    #[arg(value_name = "TOPIC")]
    topic: String,
    /// Create the topic if it is not there, with the broker's defaults.
    #[arg(long)]
    create: bool,
    /// Read this file in place of stdin.
    #[arg(long, short, value_name = "FILE")]
    file: Option<PathBuf>,
    /// What stands in each line between key and value, such as ':'; without it lines are values.
    #[arg(long, short, value_name = "TEXT", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    key_separator: Option<String>,
    /// A value that says this makes a record without a value: a tombstone, where the topic is compacted.
    #[arg(long, value_name = "TEXT")]
    null_marker: Option<String>,
    /// A header of every record; may be repeated.
    #[arg(long, short = 'H', value_name = "NAME=VALUE", value_parser = parse_assignment)]
    header: Vec<(String, String)>,
    /// The partition [default: by the key as Kafka's clients do, else batch by batch in turn]
    #[arg(long, short, value_parser = clap::value_parser!(i32).range(0..))]
    partition: Option<i32>,
    /// Who confirms each record: nobody, its leader, or all replicas in sync.
    #[arg(long, short, value_enum, default_value_t = AcksArgument::All)]
    acks: AcksArgument,
    #[arg(long, short = 'z', value_enum, default_value_t = CodecArgument::None)]
    compression: CodecArgument,
    /// For how long records are sent again while brokers do not answer or take them, as when one is restarted.
    #[arg(long, value_name = "DURATION", default_value = "2m", value_parser = parse_duration)]
    delivery_timeout: Duration,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    cluster: ClusterArguments,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum AcksArgument {
    #[value(name = "0")]
    None,
    #[value(name = "1")]
    Leader,
    All,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum CodecArgument {
    None,
    Gzip,
    Snappy,
    Lz4,
    Zstd,
}

impl From<AcksArgument> for Acks {
    fn from(acks: AcksArgument) -> Self {
        match acks {
            AcksArgument::None => Self::None,
            AcksArgument::Leader => Self::Leader,
            AcksArgument::All => Self::All,
        }
    }
}

impl From<CodecArgument> for Codec {
    fn from(codec: CodecArgument) -> Self {
        match codec {
            CodecArgument::None => Self::None,
            CodecArgument::Gzip => Self::Gzip,
            CodecArgument::Snappy => Self::Snappy,
            CodecArgument::Lz4 => Self::Lz4,
            CodecArgument::Zstd => Self::Zstd,
        }
    }
}

/// What was sent, as `corelog produce --json` prints it.
#[derive(Debug, Serialize)]
struct Produced {
    topic: String,
    records: u64,
    /// False with acks 0: nobody said that they arrived.
    confirmed: bool,
}

pub(super) fn run(arguments: &ProduceArguments) -> Result<Outcome, CliError> {
    let mut cluster = arguments.cluster.connect()?;
    let partitions = topic(&mut cluster, arguments)?.partitions.len();
    if let Some(partition) = arguments.partition
        && partition as usize >= partitions
    {
        return Err(CliError::Input(format!(
            "{} has {partitions} partitions, so there is no partition {partition}",
            arguments.topic
        )));
    }
    let format = LineFormat {
        key_separator: arguments.key_separator.clone(),
        null_marker: arguments.null_marker.clone(),
    };
    let lines = match &arguments.file {
        Some(path) => {
            let file = std::fs::File::open(path).map_err(|error| {
                CliError::Input(format!("{} cannot be read: {error}", path.display()))
            })?;
            Lines::read(io::BufReader::new(file))
        }
        None => Lines::read(io::BufReader::new(io::stdin())),
    };
    let acks: Acks = arguments.acks.into();
    let producer = match acks {
        Acks::None => None,
        Acks::Leader | Acks::All => cluster.producer_id()?,
    };
    let delivery = Delivery {
        acks,
        is_idempotent: producer.is_some(),
        timeout: arguments.delivery_timeout,
    };
    let mut batches = Batches::new(
        &arguments.topic,
        partitions,
        arguments.partition,
        arguments.compression.into(),
        arguments.header.clone(),
        producer,
    );
    let mut confirmed = 0;
    let sent = send_all(
        &mut cluster,
        &delivery,
        &lines,
        &format,
        &mut batches,
        &mut confirmed,
    );
    let produced = Produced {
        topic: arguments.topic.clone(),
        records: confirmed,
        confirmed: !matches!(arguments.acks, AcksArgument::None),
    };
    print(&if arguments.json {
        to_json(&produced)
    } else {
        produced.to_string()
    })?;
    sent.map(|()| Outcome::Done)
}

/// The topic, which is created only where that was asked for: a name with a typing error would make another one.
fn topic(cluster: &mut Cluster, arguments: &ProduceArguments) -> Result<TopicMetadata, CliError> {
    let name = &arguments.topic;
    let found = cluster.topic(name);
    let is_missing = found
        .as_ref()
        .is_err_and(|error| error.code() == Some(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION));
    match found {
        Err(error) if is_missing && !arguments.create => Err(CliError::Input(format!(
            "{error}; --create makes the topic"
        ))),
        Err(_) if is_missing => {
            let topic = NewTopic {
                name: name.clone(),
                ..NewTopic::default()
            };
            match cluster.create_topic(&topic) {
                Err(error) if error.code() != Some(ErrorCode::TOPIC_ALREADY_EXISTS) => {
                    Err(error.into())
                }
                _ => Ok(cluster.topic(name)?),
            }
        }
        found => Ok(found?),
    }
}

/// `confirmed` counts the records of which the cluster said that it has them, also where the end is an error.
fn send_all(
    cluster: &mut Cluster,
    delivery: &Delivery,
    lines: &Lines,
    format: &LineFormat,
    batches: &mut Batches,
    confirmed: &mut u64,
) -> Result<(), CliError> {
    let mut line_number = 0;
    loop {
        let line = match batches.oldest() {
            None => lines.next().map_err(|_| RecvTimeoutError::Disconnected),
            Some(since) => lines.next_within((since + LINGER) - Instant::now().min(since + LINGER)),
        };
        let is_end = matches!(line, Err(RecvTimeoutError::Disconnected));
        let mut failed = None;
        if let Ok(line) = line {
            line_number += 1;
            let pushed = line
                .map_err(|error| format!("cannot be read: {error}"))
                .and_then(|line| {
                    format
                        .split(&line)
                        .map(|(key, value)| batches.push(key, value))
                });
            if let Err(reason) = pushed {
                failed = Some(CliError::Input(format!("line {line_number} {reason}")));
            }
        }
        // What came before a line that is wrong is sent.
        if is_end || failed.is_some() || batches.are_due(LINGER) {
            let (counts, batches) = batches.take();
            let mut is_told = false;
            cluster.produce(
                delivery,
                batches,
                |at, _| *confirmed += counts[at],
                |error| {
                    is_told = true;
                    let limit_s = delivery.timeout.as_secs();
                    tell(&format!("{error}; trying again for up to {limit_s} s"));
                },
            )?;
            if is_told {
                tell("the cluster answers again");
            }
        }
        match failed {
            Some(error) => return Err(error),
            None if is_end => return Ok(()),
            None => {}
        }
    }
}

impl std::fmt::Display for Produced {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let noun = if self.records == 1 {
            "record"
        } else {
            "records"
        };
        let state = if self.confirmed { "confirmed" } else { "sent" };
        write!(f, "{}: {} {noun} {state}", self.topic, self.records)
    }
}
