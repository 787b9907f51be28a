//! Consumers: a tail that follows the producers, alone or as a member of a group, passes over what is there beside them, a replay of
//! what was written, and the audit's reading back.
//!
//! Owns: its connections and positions. Must never know: how the load was made. Runs on: one thread for each
//! consumer and leader, and one for each member of a group.

pub mod group;
mod passes;
mod reader;
mod replay;
mod tail;
mod verify;

pub use passes::{PassesPlan, PassesResult, passes};
pub use reader::{Position, ReadPlan};
pub use replay::{ReplayResult, replay};
pub use tail::{Assigned, Begun, Following, TailResult, tail};
pub use verify::verify;

use std::sync::Arc;

use crate::client::cluster::Topic;
use crate::client::fetch::FetchLimits;

/// Deals the partitions out to `consumers`, and each consumer's again to the brokers that lead them: one plan
/// per thread. `ranges` holds for each partition where to begin and where to end.
pub fn plans(
    topic: &Arc<Topic>,
    consumers: u32,
    ranges: &[(i64, i64)],
    limits: FetchLimits,
) -> Vec<ReadPlan> {
    let mut plans = Vec::new();
    for consumer in 0..consumers as usize {
        for (leader, partitions) in topic.partitions_by_leader() {
            let mine = partitions
                .into_iter()
                .filter(|partition| partition % consumers as usize == consumer);
            let positions: Vec<_> = mine
                .map(|partition| Position {
                    partition,
                    next_offset: ranges[partition].0,
                    end_offset: ranges[partition].1,
                })
                .filter(|position| position.next_offset < position.end_offset)
                .collect();
            if !positions.is_empty() {
                plans.push(ReadPlan {
                    topic: topic.name.clone(),
                    leader: leader.clone(),
                    positions,
                    limits,
                });
            }
        }
    }
    plans
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::cluster::BrokerAddress;

    #[test]
    fn each_partition_is_read_once_from_its_leader_and_empty_ranges_are_left_out() {
        let leader = |name: &str| BrokerAddress(name.to_owned());
        let topic = Arc::new(Topic {
            name: "t".to_owned(),
            leaders: vec![
                leader("a"),
                leader("b"),
                leader("a"),
                leader("b"),
                leader("a"),
            ],
        });
        let limits = FetchLimits {
            response_bytes_max: 1,
            partition_bytes_max: 1,
            response_bytes_min: 1,
            wait_ms_max: 0,
        };
        let plans = plans(&topic, 2, &[(0, 9), (0, 9), (5, 5), (0, 9), (0, 9)], limits);
        let read: Vec<_> = plans
            .iter()
            .map(|plan| {
                (
                    plan.leader.0.as_str(),
                    plan.positions
                        .iter()
                        .map(|position| position.partition)
                        .collect::<Vec<_>>(),
                )
            })
            .collect();
        assert_eq!(read, [("a", vec![0, 4]), ("b", vec![1, 3])]);
    }
}
