//! `corelog group`: who consumes what, how far behind, and setting that right.

mod delete;
mod describe;
mod list;
mod partitions;
mod reset;

use clap::{ArgGroup, Args, Subcommand};

use crate::model::{Offset, TimestampMs};

use super::cluster_arguments::ClusterArguments;
use super::exit::{CliError, Outcome};
use super::time::parse_time;
use partitions::PartitionChoice;

#[derive(Debug, Subcommand)]
pub(super) enum GroupCommand {
    /// List the groups.
    List(ListArguments),
    /// Show members, committed offsets and lag of groups.
    Describe(DescribeArguments),
    /// Delete groups with what they have committed. Refused while a group has members.
    Delete(DeleteArguments),
    /// Set what a group has committed. Shows what would be; done with --yes. Refused while the group has members.
    ResetOffsets(ResetArguments),
    /// Forget what a group has committed for some partitions. Refused while a member is subscribed to the topic.
    DeleteOffsets(DeleteOffsetsArguments),
}

#[derive(Args, Debug)]
pub(super) struct ListArguments {
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    cluster: ClusterArguments,
}

#[derive(Args, Debug)]
pub(super) struct DescribeArguments {
    #[arg(value_name = "GROUP", required = true)]
    groups: Vec<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    cluster: ClusterArguments,
}

#[derive(Args, Debug)]
pub(super) struct DeleteArguments {
    #[arg(value_name = "GROUP", required = true)]
    groups: Vec<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    cluster: ClusterArguments,
}

#[derive(Args, Debug)]
pub(super) struct DeleteOffsetsArguments {
    #[arg(value_name = "GROUP")]
    group: String,
    /// A topic, or some of its partitions; may be repeated.
    #[arg(long, value_name = "TOPIC[:0,1,...]", required = true)]
    topic: Vec<PartitionChoice>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    cluster: ClusterArguments,
}

#[derive(Args, Debug)]
#[command(group(ArgGroup::new("which").required(true)))]
pub(super) struct ResetArguments {
    #[arg(value_name = "GROUP")]
    group: String,
    /// A topic, or some of its partitions; may be repeated.
    #[arg(long, group = "which", value_name = "TOPIC[:0,1,...]")]
    topic: Vec<PartitionChoice>,
    /// All partitions for which the group has committed something.
    #[arg(long, group = "which")]
    all_topics: bool,
    #[command(flatten)]
    target: TargetArguments,
    /// Do it, in place of showing what would be done.
    #[arg(long, alias = "execute")]
    yes: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    cluster: ClusterArguments,
}

/// Where the group is to go on.
#[derive(Args, Debug)]
#[command(group(ArgGroup::new("target").required(true)))]
struct TargetArguments {
    /// At the first record that is still there.
    #[arg(long, group = "target")]
    to_earliest: bool,
    /// Behind the last record.
    #[arg(long, group = "target")]
    to_latest: bool,
    /// Where it is; where it has committed nothing, behind the last record.
    #[arg(long, group = "target")]
    to_current: bool,
    /// At this offset, or the nearest that there is.
    #[arg(long, group = "target", value_name = "OFFSET", value_parser = clap::value_parser!(i64).range(0..))]
    to_offset: Option<i64>,
    /// At the first record that is not older: 2026-11-30T08:00:00Z, milliseconds since 1970, or how long ago, as 2h.
    #[arg(long, group = "target", value_name = "TIME", value_parser = parse_time)]
    to_time: Option<TimestampMs>,
    /// So many records further, or back if negative; no further than there are records.
    #[arg(
        long,
        group = "target",
        value_name = "COUNT",
        allow_negative_numbers = true
    )]
    shift_by: Option<i64>,
}

/// Where in each partition a group is to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    Earliest,
    Latest,
    Current,
    Offset(Offset),
    Time(TimestampMs),
    Shift(i64),
}

impl TargetArguments {
    fn target(&self) -> Target {
        match self {
            Self {
                to_offset: Some(offset),
                ..
            } => Target::Offset(Offset(*offset)),
            Self {
                to_time: Some(time),
                ..
            } => Target::Time(*time),
            Self {
                shift_by: Some(count),
                ..
            } => Target::Shift(*count),
            Self {
                to_earliest: true, ..
            } => Target::Earliest,
            Self {
                to_latest: true, ..
            } => Target::Latest,
            Self { .. } => Target::Current,
        }
    }
}

pub(super) fn run(command: GroupCommand) -> Result<Outcome, CliError> {
    match command {
        GroupCommand::List(arguments) => list::run(&arguments),
        GroupCommand::Describe(arguments) => describe::run(&arguments),
        GroupCommand::Delete(arguments) => delete::run(&arguments),
        GroupCommand::ResetOffsets(arguments) => reset::run(&arguments),
        GroupCommand::DeleteOffsets(arguments) => delete::run_offsets(&arguments),
    }
}
