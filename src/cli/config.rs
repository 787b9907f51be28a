//! `corelog config`: the settings that this software has, and those of a running cluster.

use clap::{ArgGroup, Args, Subcommand};
use serde::Serialize;

use crate::client::configs::{ConfigChange, ConfigEntry, ConfigSource, Resource};
use crate::model::NodeId;

use super::assignment::parse_assignment;
use super::changes::Changes;
use super::cluster_arguments::ClusterArguments;
use super::exit::{CliError, Outcome};
use super::table::{Align, Table};
use super::{list_settings, print, to_json};

#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct ConfigArguments {
    #[command(subcommand)]
    command: Option<ConfigCommand>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// List all settings there are: name, default, unit, and what each does. Needs no broker.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show the settings of a topic or of a broker that runs.
    Describe(DescribeArguments),
    /// Change settings of a topic or of a broker that runs.
    Alter(AlterArguments),
}

/// Whose settings.
#[derive(Args, Debug)]
#[command(group(ArgGroup::new("resource").required(true)))]
struct ResourceArguments {
    /// Those of this topic.
    #[arg(long, group = "resource")]
    topic: Option<String>,
    /// Those of the broker with this id (node.id).
    #[arg(long, group = "resource", value_name = "ID")]
    broker: Option<i32>,
}

#[derive(Args, Debug)]
struct DescribeArguments {
    #[command(flatten)]
    resource: ResourceArguments,
    /// Show those too that have the default of the software.
    #[arg(long)]
    all: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    cluster: ClusterArguments,
}

#[derive(Args, Debug)]
#[command(group(ArgGroup::new("change").required(true).multiple(true).args(["set", "unset"])))]
struct AlterArguments {
    #[command(flatten)]
    resource: ResourceArguments,
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

impl ResourceArguments {
    fn resource(&self) -> Resource {
        match (&self.topic, self.broker) {
            (Some(topic), _) => Resource::Topic(topic.clone()),
            (None, Some(node)) => Resource::Broker(NodeId(node)),
            (None, None) => unreachable!("the group of both is required"),
        }
    }
}

/// What `--set` and `--unset` ask for.
pub(super) fn changes_of(set: &[(String, String)], unset: &[String]) -> Vec<ConfigChange> {
    let set = set.iter().map(|(name, value)| ConfigChange::Set {
        name: name.clone(),
        value: value.clone(),
    });
    let unset = unset
        .iter()
        .map(|name| ConfigChange::Delete { name: name.clone() });
    set.chain(unset).collect()
}

pub(super) fn run(arguments: ConfigArguments) -> Result<Outcome, CliError> {
    match arguments.command {
        None => list(arguments.json),
        Some(ConfigCommand::List { json }) => list(json),
        Some(ConfigCommand::Describe(arguments)) => describe(&arguments),
        Some(ConfigCommand::Alter(arguments)) => alter(&arguments),
    }
}

fn list(json: bool) -> Result<Outcome, CliError> {
    print(&if json {
        list_settings::json()
    } else {
        list_settings::text()
    })?;
    Ok(Outcome::Done)
}

fn alter(arguments: &AlterArguments) -> Result<Outcome, CliError> {
    let resource = arguments.resource.resource();
    let settings = changes_of(&arguments.set, &arguments.unset);
    let mut cluster = arguments.cluster.connect()?;
    let mut changes = Changes::default();
    match cluster.alter_configs(&resource, &settings) {
        Ok(()) => changes.done(&resource.to_string(), "settings changed"),
        Err(error) => changes.refused(error),
    }
    changes.finish(arguments.json)
}

/// A setting with its value, as `corelog config describe --json` prints it.
#[derive(Debug, Serialize)]
struct Described {
    name: String,
    value: Option<String>,
    source: &'static str,
    read_only: bool,
    sensitive: bool,
}

impl From<ConfigEntry> for Described {
    fn from(entry: ConfigEntry) -> Self {
        Self {
            name: entry.name,
            value: entry.value,
            source: entry.source.name(),
            read_only: entry.is_read_only,
            sensitive: entry.is_sensitive,
        }
    }
}

fn describe(arguments: &DescribeArguments) -> Result<Outcome, CliError> {
    let resource = arguments.resource.resource();
    let mut cluster = arguments.cluster.connect()?;
    // A broker says the settings of any topic name, also of one that does not exist.
    if let Resource::Topic(name) = &resource {
        cluster.topic(name)?;
    }
    let described: Vec<Described> = cluster
        .describe_configs(&resource)?
        .into_iter()
        .filter(|entry| arguments.all || entry.source != ConfigSource::Default)
        .map(Described::from)
        .collect();
    print(&if arguments.json {
        to_json(&described)
    } else {
        table(&described).to_string()
    })?;
    Ok(Outcome::Done)
}

fn table(described: &[Described]) -> Table {
    let mut table = Table::new(&[
        ("SETTING", Align::Left),
        ("VALUE", Align::Left),
        ("SOURCE", Align::Left),
    ]);
    for setting in described {
        let value = match &setting.value {
            Some(value) => value.clone(),
            None if setting.sensitive => "(secret)".to_owned(),
            None => "(unset)".to_owned(),
        };
        table.push([setting.name.clone(), value, setting.source.to_owned()]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_told_with_their_source_and_no_secret() {
        let setting = |name: &str, value: Option<&str>, sensitive| Described {
            name: name.to_owned(),
            value: value.map(str::to_owned),
            source: ConfigSource::Topic.name(),
            read_only: false,
            sensitive,
        };
        let expected = "\
SETTING       VALUE     SOURCE
password      (secret)  DYNAMIC_TOPIC_CONFIG
retention.ms  1000      DYNAMIC_TOPIC_CONFIG";
        let table = table(&[
            setting("password", None, true),
            setting("retention.ms", Some("1000"), false),
        ]);
        assert_eq!(table.to_string(), expected);
    }
}
