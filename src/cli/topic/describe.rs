use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use crate::client::cluster::Cluster;
use crate::client::configs::{ConfigSource, Resource};
use crate::client::error::ClientError;
use crate::client::metadata::{PartitionMetadata, TopicMetadata, TopicPartition};
use crate::client::offsets::OffsetAt;
use crate::model::{NodeId, Offset};

use super::super::exit::{CliError, Outcome};
use super::super::print_described;
use super::super::table::{Align, Table, printable};
use super::DescribeArguments;

/// A topic, as `corelog topic describe --json` prints it.
#[derive(Debug, Serialize)]
struct Described {
    name: String,
    id: String,
    internal: bool,
    replication: usize,
    /// The settings that are not the defaults of the software.
    settings: BTreeMap<String, Option<String>>,
    partitions: Vec<DescribedPartition>,
}

#[derive(Debug, Serialize)]
struct DescribedPartition {
    partition: i32,
    /// `null`: it has none at the moment.
    leader: Option<i32>,
    replicas: Vec<i32>,
    in_sync: Vec<i32>,
    /// `null`: there is no leader to ask.
    start_offset: Option<i64>,
    end_offset: Option<i64>,
}

pub(super) fn run(arguments: &DescribeArguments) -> Result<Outcome, CliError> {
    let mut cluster = arguments.cluster.connect()?;
    let described = arguments
        .topics
        .iter()
        .map(|name| describe(&mut cluster, name))
        .collect::<Result<Vec<_>, _>>()?;
    print_described(&described, arguments.json)?;
    Ok(Outcome::Done)
}

fn describe(cluster: &mut Cluster, name: &str) -> Result<Described, ClientError> {
    let topic = cluster.topic(name)?;
    let settings = cluster
        .describe_configs(&Resource::Topic(name.to_owned()))?
        .into_iter()
        .filter(|entry| entry.source != ConfigSource::Default)
        .map(|entry| (entry.name, entry.value))
        .collect();
    let led: Vec<TopicPartition> = topic
        .partitions
        .iter()
        .filter(|partition| partition.leader.is_some())
        .map(|partition| TopicPartition::new(name, partition.index))
        .collect();
    let starts = cluster.offsets(&led, OffsetAt::Earliest)?;
    let ends = cluster.offsets(&led, OffsetAt::Latest)?;
    let partitions = topic
        .partitions
        .iter()
        .map(|partition| {
            let at = TopicPartition::new(name, partition.index);
            let offset = |offsets: &BTreeMap<_, Option<Offset>>| {
                offsets.get(&at).copied().flatten().map(|offset| offset.0)
            };
            DescribedPartition::of(partition, offset(&starts), offset(&ends))
        })
        .collect();
    Ok(Described::of(&topic, settings, partitions))
}

impl Described {
    fn of(
        topic: &TopicMetadata,
        settings: BTreeMap<String, Option<String>>,
        partitions: Vec<DescribedPartition>,
    ) -> Self {
        Self {
            name: topic.name.clone(),
            id: topic.id.to_string(),
            internal: topic.is_internal,
            replication: topic.replication(),
            settings,
            partitions,
        }
    }
}

impl DescribedPartition {
    fn of(partition: &PartitionMetadata, start: Option<i64>, end: Option<i64>) -> Self {
        let ids = |nodes: &[NodeId]| nodes.iter().map(|node| node.0).collect();
        Self {
            partition: partition.index,
            leader: partition.leader.map(|node| node.0),
            replicas: ids(&partition.replicas),
            in_sync: ids(&partition.in_sync),
            start_offset: start,
            end_offset: end,
        }
    }
}

impl fmt::Display for Described {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{}: {} partitions, {} {}, id {}{}",
            printable(&self.name),
            self.partitions.len(),
            self.replication,
            if self.replication == 1 {
                "copy"
            } else {
                "copies"
            },
            self.id,
            if self.internal { ", internal" } else { "" }
        )?;
        for (name, value) in &self.settings {
            let value = value.as_deref().unwrap_or("(secret)");
            writeln!(f, "    {}={}", printable(name), printable(value))?;
        }
        let mut table = Table::new(&[
            ("PARTITION", Align::Right),
            ("LEADER", Align::Right),
            ("REPLICAS", Align::Left),
            ("IN SYNC", Align::Left),
            ("START", Align::Right),
            ("END", Align::Right),
        ]);
        let number = |number: Option<i64>| number.map_or("-".to_owned(), |n| n.to_string());
        let nodes = |nodes: &[i32]| {
            let nodes: Vec<String> = nodes.iter().map(i32::to_string).collect();
            nodes.join(",")
        };
        for partition in &self.partitions {
            table.push([
                partition.partition.to_string(),
                number(partition.leader.map(i64::from)),
                nodes(&partition.replicas),
                nodes(&partition.in_sync),
                number(partition.start_offset),
                number(partition.end_offset),
            ]);
        }
        write!(f, "{table}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_is_told_with_its_settings_and_a_line_for_each_partition() {
        let partition = |partition, leader, end_offset| DescribedPartition {
            partition,
            leader,
            replicas: vec![1, 2],
            in_sync: vec![1],
            start_offset: leader.map(|_| 0),
            end_offset,
        };
        let described = Described {
            name: "orders".to_owned(),
            id: "6f1e".to_owned(),
            internal: false,
            replication: 2,
            settings: BTreeMap::from([("retention.ms".to_owned(), Some("1000".to_owned()))]),
            partitions: vec![
                partition(0, Some(1), Some(12_345)),
                partition(1, None, None),
            ],
        };
        let expected = "\
orders: 2 partitions, 2 copies, id 6f1e
    retention.ms=1000
PARTITION  LEADER  REPLICAS  IN SYNC  START    END
        0       1  1,2       1            0  12345
        1       -  1,2       1            -      -";
        assert_eq!(described.to_string(), expected);
    }
}
