//! `corelog consume`: records become lines.

mod format;
mod output;
mod session;
mod start;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use clap::Args;
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::client::cluster::Cluster;
use crate::client::membership::Membership;
use crate::client::metadata::TopicPartition;
use crate::model::TimestampMs;

use super::cluster_arguments::ClusterArguments;
use super::exit::{CliError, Outcome};
use super::time::{parse_time, parse_timeout};
use format::RecordFormat;
use output::{Format, Output};
use session::{Bounds, Session};
use start::Start;

#[derive(Args, Debug)]
pub(super) struct ConsumeArguments {
    #[arg(value_name = "TOPIC", required = true)]
    topics: Vec<String>,
    /// These partitions only.
    #[arg(long, short, value_delimiter = ',', conflicts_with = "group",
        value_parser = clap::value_parser!(i32).range(0..))]
    partition: Vec<i32>,
    /// Where to begin: earliest, latest, an offset, or -N for the last N of each partition. In a group: where nothing is committed.
    #[arg(
        long,
        short = 'o',
        value_name = "WHERE",
        default_value = "earliest",
        allow_hyphen_values = true
    )]
    from: Start,
    /// Begin with the first record that is not older: 2026-11-30T08:00:00Z, milliseconds since 1970, or how long ago, as 2h.
    #[arg(long, value_name = "TIME", value_parser = parse_time, conflicts_with = "from")]
    from_time: Option<TimestampMs>,
    /// Be a member of this group: share the partitions with its other members, begin where it has committed, and commit.
    #[arg(long, short)]
    group: Option<String>,
    /// End after so many records.
    #[arg(long, short = 'n', value_name = "COUNT")]
    max_messages: Option<u64>,
    /// End when nothing has come for so long, such as 5s. While no broker answers it does not count.
    #[arg(long, value_name = "DURATION", value_parser = parse_timeout)]
    idle_timeout: Option<Duration>,
    /// End behind the records that are there now.
    #[arg(long, short = 'e')]
    until_end: bool,
    /// What to print of each record: %t topic, %p partition, %o offset, %T timestamp in ms, %k key, %v value, %h headers; \t, \n.
    #[arg(
        long,
        short,
        value_name = "FORMAT",
        default_value = "%v",
        conflicts_with = "json"
    )]
    format: RecordFormat,
    /// What is printed for a key, value or header that is null.
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "null",
        conflicts_with = "json"
    )]
    null_marker: String,
    /// Print JSON, one document a line.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    cluster: ClusterArguments,
}

pub(super) fn run(arguments: &ConsumeArguments) -> Result<Outcome, CliError> {
    let mut cluster = arguments.cluster.connect()?;
    let start = match arguments.from_time {
        Some(time) => Start::Time(time),
        None => arguments.from,
    };
    let partitions = partitions(&mut cluster, arguments)?;
    let format = match arguments.json {
        true => Format::Json,
        false => Format::Text {
            format: arguments.format.clone(),
            null: arguments.null_marker.clone(),
        },
    };
    let bounds = Bounds {
        records_max: arguments.max_messages,
        idle_timeout: arguments.idle_timeout,
        until_end: arguments.until_end,
    };
    let mut session = Session::new(start, bounds, Output::new(format), stop_flag()?);
    match &arguments.group {
        None => session.run_alone(&mut cluster, &partitions)?,
        Some(group) => {
            let mut membership = Membership::join(&mut cluster, group, &arguments.topics)?;
            let ended = session.run_as_member(&mut cluster, &mut membership);
            // Also where the end was an error, so that the others need not wait for it.
            let left = membership.leave(&mut cluster);
            ended?;
            left?;
        }
    }
    Ok(Outcome::Done)
}

/// Those that were named, or all; each topic and partition exists.
fn partitions(
    cluster: &mut Cluster,
    arguments: &ConsumeArguments,
) -> Result<Vec<TopicPartition>, CliError> {
    let mut partitions = Vec::new();
    for name in &arguments.topics {
        let topic = cluster.topic(name)?;
        let there: Vec<TopicPartition> = topic.partition_indexes().collect();
        let wanted: Vec<TopicPartition> = match arguments.partition.is_empty() {
            true => there.clone(),
            false => arguments
                .partition
                .iter()
                .map(|&index| TopicPartition::new(name, index))
                .collect(),
        };
        if let Some(missing) = wanted.iter().find(|at| !there.contains(at)) {
            return Err(CliError::Input(format!(
                "{name} has {} partitions, so there is no partition {}",
                there.len(),
                missing.partition
            )));
        }
        partitions.extend(wanted);
    }
    Ok(partitions)
}

/// Set by the first SIGINT or SIGTERM, so that a member commits and leaves; the second ends the process at once.
fn stop_flag() -> Result<Arc<AtomicBool>, CliError> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&stop))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&stop)))
            .map_err(CliError::Signals)?;
    }
    Ok(stop)
}
