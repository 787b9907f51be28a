use std::collections::BTreeMap;

use serde::Serialize;

use crate::client::cluster::Cluster;
use crate::client::error::ErrorCode;
use crate::client::groups::Committer;
use crate::client::metadata::TopicPartition;
use crate::client::offsets::OffsetAt;
use crate::model::Offset;

use super::super::exit::{CliError, Outcome};
use super::super::table::{Align, Table};
use super::super::{print, to_json};
use super::partitions::PartitionChoice;
use super::{ResetArguments, Target};

/// Where a partition's group stands and where it is to go on, as `corelog group reset-offsets --json` prints it.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Move {
    topic: String,
    partition: i32,
    /// `null`: it has committed nothing.
    current: Option<i64>,
    new: i64,
}

/// What a partition holds and what the group has committed for it.
#[derive(Clone, Copy, Debug)]
struct Span {
    start: Offset,
    end: Offset,
    committed: Option<Offset>,
    /// The first record that is not older than the wanted time, where one is wanted and there is one.
    at_time: Option<Offset>,
}

pub(super) fn run(arguments: &ResetArguments) -> Result<Outcome, CliError> {
    let mut cluster = arguments.cluster.connect()?;
    let group = &arguments.group;
    refuse_members(&mut cluster, group)?;
    let committed = cluster.committed(group)?;
    let partitions = match arguments.all_topics {
        true => committed.keys().cloned().collect(),
        false => PartitionChoice::resolve(&arguments.topic, &mut cluster)?,
    };
    let moves = moves(
        &mut cluster,
        arguments.target.target(),
        &partitions,
        &committed,
    )?;
    if arguments.yes && !moves.is_empty() {
        let offsets = moves
            .iter()
            .map(|row| {
                (
                    TopicPartition::new(&row.topic, row.partition),
                    Offset(row.new),
                )
            })
            .collect();
        cluster.commit(group, &Committer::outsider(), &offsets)?;
    }
    print(&if arguments.json {
        to_json(&moves)
    } else if moves.is_empty() {
        format!("{group} has committed nothing")
    } else {
        let end = match arguments.yes {
            true => "done",
            false => "nothing is changed yet; add --yes to do it",
        };
        format!("{}\n{end}", table(&moves))
    })?;
    Ok(Outcome::Done)
}

/// A member would go on from where it is and commit over what is set here. A group that does not exist comes to be.
fn refuse_members(cluster: &mut Cluster, group: &str) -> Result<(), CliError> {
    match cluster.group(group) {
        Ok(described) if described.members.is_empty() => Ok(()),
        Ok(described) => Err(CliError::Input(format!(
            "group '{group}' is {} and has {} members; its offsets can be reset when they have left",
            described.state,
            described.members.len()
        ))),
        Err(error) if error.code() == Some(ErrorCode::GROUP_ID_NOT_FOUND) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn moves(
    cluster: &mut Cluster,
    target: Target,
    partitions: &[TopicPartition],
    committed: &BTreeMap<TopicPartition, Offset>,
) -> Result<Vec<Move>, CliError> {
    let starts = cluster.offsets(partitions, OffsetAt::Earliest)?;
    let ends = cluster.offsets(partitions, OffsetAt::Latest)?;
    let times = match target {
        Target::Time(time) => cluster.offsets(partitions, OffsetAt::Time(time))?,
        _ => BTreeMap::new(),
    };
    partitions
        .iter()
        .map(|at| {
            let end = ends[at].unwrap_or(Offset::ZERO);
            let span = Span {
                start: starts[at].unwrap_or(end).min(end),
                end,
                committed: committed.get(at).copied(),
                at_time: times.get(at).copied().flatten(),
            };
            let new = goal(target, span).ok_or_else(|| {
                CliError::Input(format!(
                    "nothing is committed for {at}, so there is nothing to shift"
                ))
            })?;
            Ok(Move {
                topic: at.topic.clone(),
                partition: at.partition,
                current: span.committed.map(|offset| offset.0),
                new: new.0,
            })
        })
        .collect::<Result<Vec<_>, CliError>>()
}

/// Always an offset of the partition, or the one behind its last; none: there is nothing to shift.
fn goal(target: Target, span: Span) -> Option<Offset> {
    let wanted = match target {
        Target::Earliest => span.start,
        Target::Latest => span.end,
        Target::Current => span.committed.unwrap_or(span.end),
        Target::Offset(offset) => offset,
        Target::Time(_) => span.at_time.unwrap_or(span.end),
        Target::Shift(count) => Offset(span.committed?.0.saturating_add(count)),
    };
    Some(wanted.clamp(span.start, span.end))
}

fn table(moves: &[Move]) -> Table {
    let mut table = Table::new(&[
        ("TOPIC", Align::Left),
        ("PARTITION", Align::Right),
        ("CURRENT", Align::Right),
        ("NEW", Align::Right),
    ]);
    for row in moves {
        table.push([
            row.topic.clone(),
            row.partition.to_string(),
            row.current
                .map_or("-".to_owned(), |offset| offset.to_string()),
            row.new.to_string(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::TimestampMs;

    const SPAN: Span = Span {
        start: Offset(10),
        end: Offset(100),
        committed: Some(Offset(40)),
        at_time: Some(Offset(70)),
    };

    #[test]
    fn each_target_has_its_offset_and_none_lies_outside_the_partition() {
        let cases = [
            (Target::Earliest, 10),
            (Target::Latest, 100),
            (Target::Current, 40),
            (Target::Offset(Offset(50)), 50),
            (Target::Offset(Offset(5)), 10),
            (Target::Offset(Offset(500)), 100),
            (Target::Time(TimestampMs(1)), 70),
            (Target::Shift(-10), 30),
            (Target::Shift(-100), 10),
            (Target::Shift(i64::MAX), 100),
        ];
        for (target, expected) in cases {
            assert_eq!(goal(target, SPAN), Some(Offset(expected)), "{target:?}");
        }
    }

    #[test]
    fn what_is_not_there_is_the_end_and_nothing_committed_cannot_be_shifted() {
        let span = Span {
            committed: None,
            at_time: None,
            ..SPAN
        };
        assert_eq!(goal(Target::Current, span), Some(Offset(100)));
        assert_eq!(goal(Target::Time(TimestampMs(1)), span), Some(Offset(100)));
        assert_eq!(goal(Target::Shift(1), span), None);
    }

    #[test]
    fn a_reset_is_shown_with_the_offsets_before_and_after() {
        let row = |partition, current, new| Move {
            topic: "orders".to_owned(),
            partition,
            current,
            new,
        };
        let expected = "\
TOPIC   PARTITION  CURRENT  NEW
orders          0     1200    0
orders          1        -   17";
        let table = table(&[row(0, Some(1200), 0), row(1, None, 17)]);
        assert_eq!(table.to_string(), expected);
    }
}
