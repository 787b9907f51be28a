use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Serialize;

use crate::client::cluster::{Cluster, Topics};
use crate::client::error::ClientError;
use crate::client::groups::Group;
use crate::client::metadata::TopicPartition;
use crate::client::offsets::OffsetAt;
use crate::model::Offset;

use super::super::exit::{CliError, Outcome};
use super::super::print_described;
use super::super::table::{Align, Table, printable};
use super::DescribeArguments;

/// A group, as `corelog group describe --json` prints it.
#[derive(Debug, Serialize)]
struct Described {
    group: String,
    state: String,
    #[serde(rename = "type")]
    group_type: &'static str,
    protocol_type: String,
    assignor: String,
    /// Over all partitions whose lag is known.
    lag: i64,
    members: Vec<DescribedMember>,
    partitions: Vec<DescribedPartition>,
}

#[derive(Debug, Serialize)]
struct DescribedMember {
    member_id: String,
    instance_id: Option<String>,
    client_id: String,
    host: String,
    partitions: usize,
    lag: i64,
}

#[derive(Debug, Serialize)]
struct DescribedPartition {
    topic: String,
    partition: i32,
    /// `null`: nothing is committed.
    committed: Option<i64>,
    /// `null`: the topic is gone, or the partition has no leader.
    end_offset: Option<i64>,
    /// Records behind what is committed; `null` where one of both is not known.
    lag: Option<i64>,
    /// Who has it.
    member_id: Option<String>,
}

pub(super) fn run(arguments: &DescribeArguments) -> Result<Outcome, CliError> {
    let mut cluster = arguments.cluster.connect()?;
    let described = arguments
        .groups
        .iter()
        .map(|group| describe(&mut cluster, group))
        .collect::<Result<Vec<_>, _>>()?;
    print_described(&described, arguments.json)?;
    Ok(Outcome::Done)
}

fn describe(cluster: &mut Cluster, name: &str) -> Result<Described, ClientError> {
    let group = cluster.group(name)?;
    let committed = cluster.committed(name)?;
    let partitions: BTreeSet<TopicPartition> = group
        .members
        .iter()
        .flat_map(|member| member.assigned.iter().cloned())
        .chain(committed.keys().cloned())
        .collect();
    let ends = ends(cluster, &partitions)?;
    Ok(Described::of(group, &partitions, &committed, &ends))
}

/// Of those that are there and have a leader.
fn ends(
    cluster: &mut Cluster,
    partitions: &BTreeSet<TopicPartition>,
) -> Result<BTreeMap<TopicPartition, Offset>, ClientError> {
    let topics: BTreeSet<&String> = partitions.iter().map(|at| &at.topic).collect();
    let topics: Vec<String> = topics.into_iter().cloned().collect();
    let metadata = cluster.metadata(Topics::Named(&topics))?;
    let mut led = Vec::new();
    for topic in &metadata.topics {
        for partition in &topic.partitions {
            let at = TopicPartition::new(&topic.name, partition.index);
            if partition.leader.is_some() && partitions.contains(&at) {
                led.push(at);
            }
        }
    }
    let ends = cluster.offsets(&led, OffsetAt::Latest)?;
    Ok(ends
        .into_iter()
        .filter_map(|(at, end)| end.map(|end| (at, end)))
        .collect())
}

impl Described {
    fn of(
        group: Group,
        partitions: &BTreeSet<TopicPartition>,
        committed: &BTreeMap<TopicPartition, Offset>,
        ends: &BTreeMap<TopicPartition, Offset>,
    ) -> Self {
        let lag_of = |at: &TopicPartition| {
            let (committed, end) = (committed.get(at)?, ends.get(at)?);
            Some(end.since(*committed).max(0))
        };
        let owners: BTreeMap<&TopicPartition, &str> = group
            .members
            .iter()
            .flat_map(|member| {
                let id = member.member_id.as_str();
                member.assigned.iter().map(move |at| (at, id))
            })
            .collect();
        let partitions: Vec<DescribedPartition> = partitions
            .iter()
            .map(|at| DescribedPartition {
                topic: at.topic.clone(),
                partition: at.partition,
                committed: committed.get(at).map(|offset| offset.0),
                end_offset: ends.get(at).map(|offset| offset.0),
                lag: lag_of(at),
                member_id: owners.get(at).map(|&id| id.to_owned()),
            })
            .collect();
        let members = group
            .members
            .iter()
            .map(|member| DescribedMember {
                member_id: member.member_id.clone(),
                instance_id: member.instance_id.clone(),
                client_id: member.client_id.clone(),
                host: member.host.clone(),
                partitions: member.assigned.len(),
                lag: member.assigned.iter().filter_map(lag_of).sum(),
            })
            .collect();
        Self {
            group: group.group,
            state: group.state,
            group_type: group.group_type.name(),
            protocol_type: group.protocol_type,
            assignor: group.assignor,
            lag: partitions.iter().filter_map(|row| row.lag).sum(),
            members,
            partitions,
        }
    }
}

impl fmt::Display for Described {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {}, {}",
            printable(&self.group),
            printable(&self.state),
            self.group_type
        )?;
        if !self.assignor.is_empty() {
            write!(f, ", {} assignor", printable(&self.assignor))?;
        }
        let noun = match self.members.len() {
            1 => "member",
            _ => "members",
        };
        write!(f, ", {} {noun}, lag {}", self.members.len(), self.lag)?;
        if !self.members.is_empty() {
            let mut table = Table::new(&[
                ("MEMBER", Align::Left),
                ("CLIENT", Align::Left),
                ("HOST", Align::Left),
                ("PARTITIONS", Align::Right),
                ("LAG", Align::Right),
            ]);
            for member in &self.members {
                let name = member.instance_id.as_ref().unwrap_or(&member.member_id);
                table.push([
                    name.clone(),
                    member.client_id.clone(),
                    member.host.clone(),
                    member.partitions.to_string(),
                    member.lag.to_string(),
                ]);
            }
            write!(f, "\n{table}")?;
        }
        if !self.partitions.is_empty() {
            let mut table = Table::new(&[
                ("TOPIC", Align::Left),
                ("PARTITION", Align::Right),
                ("COMMITTED", Align::Right),
                ("END", Align::Right),
                ("LAG", Align::Right),
                ("MEMBER", Align::Left),
            ]);
            let number = |number: Option<i64>| number.map_or("-".to_owned(), |n| n.to_string());
            for row in &self.partitions {
                table.push([
                    row.topic.clone(),
                    row.partition.to_string(),
                    number(row.committed),
                    number(row.end_offset),
                    number(row.lag),
                    row.member_id.clone().unwrap_or_else(|| "-".to_owned()),
                ]);
            }
            write!(f, "\n{table}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::groups::{GroupMember, GroupType};

    #[test]
    fn lag_is_told_for_the_group_each_member_and_each_partition() {
        let at = |topic: &str, partition| TopicPartition::new(topic, partition);
        let group = Group {
            group: "billing".to_owned(),
            state: "Stable".to_owned(),
            group_type: GroupType::Classic,
            protocol_type: "consumer".to_owned(),
            assignor: "range".to_owned(),
            members: vec![GroupMember {
                member_id: "c-1".to_owned(),
                instance_id: None,
                client_id: "c".to_owned(),
                host: "/10.0.0.7".to_owned(),
                assigned: vec![at("orders", 0), at("orders", 1)],
            }],
        };
        let offsets = |offsets: &[(TopicPartition, i64)]| -> BTreeMap<TopicPartition, Offset> {
            offsets
                .iter()
                .map(|(at, offset)| (at.clone(), Offset(*offset)))
                .collect()
        };
        let committed = offsets(&[(at("orders", 0), 40), (at("gone", 0), 7)]);
        let ends = offsets(&[(at("orders", 0), 100), (at("orders", 1), 5)]);
        let partitions = [at("gone", 0), at("orders", 0), at("orders", 1)].into();
        let described = Described::of(group, &partitions, &committed, &ends);
        let expected = "\
billing: Stable, classic, range assignor, 1 member, lag 60
MEMBER  CLIENT  HOST       PARTITIONS  LAG
c-1     c       /10.0.0.7           2   60
TOPIC   PARTITION  COMMITTED  END  LAG  MEMBER
gone            0          7    -    -  -
orders          0         40  100   60  c-1
orders          1          -    5    -  c-1";
        assert_eq!(described.to_string(), expected);
    }
}
