//! Which member reads which partitions, as Kafka's assignors of the same names decide for one topic.

use serde::{Deserialize, Serialize};

use crate::client::coordinator::Share;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Assignor {
    /// Neighbours go to one member; the first members have one more where it does not come out even.
    Range,
    /// One after the other in turn.
    RoundRobin,
}

impl Assignor {
    /// As the members of a group agree on it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Range => "range",
            Self::RoundRobin => "roundrobin",
        }
    }

    /// The members are taken in the order of their ids.
    pub fn assign(self, mut members: Vec<String>, partitions: usize) -> Vec<(String, Share)> {
        members.sort_unstable();
        let count = members.len();
        let (each, more) = (partitions / count.max(1), partitions % count.max(1));
        let mine = |place: usize| -> Vec<usize> {
            match self {
                Self::Range => {
                    let first = place * each + place.min(more);
                    (first..first + each + usize::from(place < more)).collect()
                }
                Self::RoundRobin => (place..partitions).step_by(count).collect(),
            }
        };
        members
            .into_iter()
            .enumerate()
            .map(|(place, member)| {
                let share = Share {
                    partitions: mine(place),
                    members: count as u32,
                };
                (member, share)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assigned(assignor: Assignor, members: &[&str], partitions: usize) -> Vec<Vec<usize>> {
        let members = members.iter().map(ToString::to_string).collect();
        let shares = assignor.assign(members, partitions).into_iter();
        shares.map(|(_, share)| share.partitions).collect()
    }

    #[test]
    fn range_gives_neighbours_and_the_first_members_have_one_more() {
        let assigned = assigned(Assignor::Range, &["c", "a", "b"], 7);
        assert_eq!(assigned, [vec![0, 1, 2], vec![3, 4], vec![5, 6]]);
    }

    #[test]
    fn round_robin_deals_them_out_in_turn() {
        let assigned = assigned(Assignor::RoundRobin, &["a", "b", "c"], 7);
        assert_eq!(assigned, [vec![0, 3, 6], vec![1, 4], vec![2, 5]]);
    }

    #[test]
    fn every_partition_has_one_member_and_members_too_many_have_none() {
        for assignor in [Assignor::Range, Assignor::RoundRobin] {
            for partitions in 0..20 {
                let shares = assigned(assignor, &["d", "b", "a", "c"], partitions);
                let mut all = shares.concat();
                all.sort_unstable();
                assert_eq!(all, (0..partitions).collect::<Vec<_>>(), "{assignor:?}");
                let sizes = || shares.iter().map(Vec::len);
                assert!(sizes().max().unwrap() - sizes().min().unwrap() <= 1);
            }
        }
    }

    #[test]
    fn members_go_by_their_ids_and_each_is_told_how_many_there_are() {
        let members = vec!["b".to_owned(), "a".to_owned()];
        let shares = Assignor::Range.assign(members, 2);
        let expected = |name: &str, partition| {
            let share = Share {
                partitions: vec![partition],
                members: 2,
            };
            (name.to_owned(), share)
        };
        assert_eq!(shares, [expected("a", 0), expected("b", 1)]);
    }
}
