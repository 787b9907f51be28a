//! `corelog topic`: what there is, and making it otherwise.

mod alter;
mod create;
mod delete;
mod describe;
mod list;

use clap::{Args, Subcommand};

use super::assignment::parse_assignment;
use super::cluster_arguments::ClusterArguments;
use super::exit::{CliError, Outcome};

#[derive(Debug, Subcommand)]
pub(super) enum TopicCommand {
    /// Create topics.
    Create(CreateArguments),
    /// List the topics.
    List(ListArguments),
    /// Show settings, leaders, replicas and offsets of topics.
    Describe(DescribeArguments),
    /// Add partitions to a topic, or change its settings.
    Alter(AlterArguments),
    /// Delete topics with all that is in them.
    Delete(DeleteArguments),
}

#[derive(Args, Debug)]
pub(super) struct CreateArguments {
    #[arg(value_name = "TOPIC", required = true)]
    topics: Vec<String>,
    /// How many partitions [default: the broker's num.partitions]
    #[arg(long, short, value_parser = clap::value_parser!(i32).range(1..))]
    partitions: Option<i32>,
    /// How many copies of each [default: the broker's default.replication.factor]
    #[arg(long, short, value_parser = clap::value_parser!(i16).range(1..))]
    replication: Option<i16>,
    /// A setting of the topics; may be repeated.
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_assignment)]
    set: Vec<(String, String)>,
    /// A topic that is there already is left as it is, and is no error.
    #[arg(long)]
    if_not_exists: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    cluster: ClusterArguments,
}

#[derive(Args, Debug)]
pub(super) struct ListArguments {
    /// Show the cluster's own topics too, such as __consumer_offsets.
    #[arg(long)]
    internal: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    cluster: ClusterArguments,
}

#[derive(Args, Debug)]
pub(super) struct DescribeArguments {
    #[arg(value_name = "TOPIC", required = true)]
    topics: Vec<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    cluster: ClusterArguments,
}

#[derive(Args, Debug)]
pub(super) struct AlterArguments {
    #[arg(value_name = "TOPIC")]
    topic: String,
    /// How many partitions it is to have; more than now.
    #[arg(long, short, value_parser = clap::value_parser!(i32).range(1..))]
    partitions: Option<i32>,
    /// A setting that gets a value; may be repeated.
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_assignment)]
    set: Vec<(String, String)>,
    /// A setting that gets its default back; may be repeated.
    #[arg(long, value_name = "NAME")]
    unset: Vec<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    cluster: ClusterArguments,
}

#[derive(Args, Debug)]
pub(super) struct DeleteArguments {
    #[arg(value_name = "TOPIC", required = true)]
    topics: Vec<String>,
    /// A topic that is not there is no error.
    #[arg(long)]
    if_exists: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    cluster: ClusterArguments,
}

pub(super) fn run(command: TopicCommand) -> Result<Outcome, CliError> {
    match command {
        TopicCommand::Create(arguments) => create::run(&arguments),
        TopicCommand::List(arguments) => list::run(&arguments),
        TopicCommand::Describe(arguments) => describe::run(&arguments),
        TopicCommand::Alter(arguments) => alter::run(&arguments),
        TopicCommand::Delete(arguments) => delete::run(&arguments),
    }
}
