//! Which offsets of a partition the members of a group were handed, to tell what nobody got and what came twice.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};

/// How many skipped stretches are shown; all are counted.
const SKIPPED_SHOWN_MAX: usize = 10;

/// Of each partition the stretches of offsets, in the order in which they were handed out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Handed(BTreeMap<usize, Vec<(i64, i64)>>);

/// What became of the offsets from the load's begin to the log's end, in one partition or in all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Consumption {
    /// All that were to be handed to some member.
    pub records: u64,
    /// Handed out again, after a rebalance: allowed, for a group consumes at least once.
    pub repeated: u64,
    /// Behind the last that was handed out: the consumers did not get that far in time.
    pub unread: u64,
    /// Before one that was handed out, and handed to nobody. Forbidden.
    pub skipped: u64,
    /// The first of these, in words.
    pub first_skipped: Vec<String>,
}

impl Handed {
    /// What directly follows the stretch before belongs to it.
    pub fn add(&mut self, partition: usize, offsets: Range<i64>) {
        let stretches = self.0.entry(partition).or_default();
        match stretches.last_mut() {
            Some((_, end)) if *end == offsets.start => *end = offsets.end,
            _ => stretches.push((offsets.start, offsets.end)),
        }
    }

    /// By another member of the same group.
    pub fn merge(&mut self, other: Self) {
        for (partition, stretches) in other.0 {
            self.0.entry(partition).or_default().extend(stretches);
        }
    }

    /// Against what lies in the partitions: `ranges` by partition, each from where the load began to the log's end.
    pub fn consumption(&self, group: &str, ranges: &[(i64, i64)]) -> Consumption {
        let mut all = Consumption::default();
        for (partition, &(start, end)) in ranges.iter().enumerate() {
            let mut stretches = self.0.get(&partition).cloned().unwrap_or_default();
            stretches.sort_unstable();
            let mut next = start;
            let mut skipped = Vec::new();
            for (from, to) in stretches {
                if from > next {
                    skipped.push(next..from);
                }
                all.repeated += (to.min(next) - from).max(0) as u64;
                next = next.max(to);
            }
            all.records += (end - start).max(0) as u64;
            all.unread += (end - next).max(0) as u64;
            for stretch in skipped {
                all.skipped += (stretch.end - stretch.start) as u64;
                if all.first_skipped.len() < SKIPPED_SHOWN_MAX {
                    all.first_skipped.push(format!(
                        "group {group}, partition {partition}: offsets {} to {} were handed to no member",
                        stretch.start,
                        stretch.end - 1
                    ));
                }
            }
        }
        all
    }
}

impl Consumption {
    pub fn merge(&mut self, other: Self) {
        self.records += other.records;
        self.repeated += other.repeated;
        self.unread += other.unread;
        self.skipped += other.skipped;
        let room = SKIPPED_SHOWN_MAX - self.first_skipped.len();
        self.first_skipped
            .extend(other.first_skipped.into_iter().take(room));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handed(stretches: &[(usize, Range<i64>)]) -> Handed {
        let mut handed = Handed::default();
        for (partition, offsets) in stretches {
            handed.add(*partition, offsets.clone());
        }
        handed
    }

    fn counts(it: &Consumption) -> (u64, u64, u64, u64) {
        (it.records, it.repeated, it.unread, it.skipped)
    }

    #[test]
    fn what_all_members_together_were_handed_once_adds_up() {
        let mut all = handed(&[(0, 10..20), (0, 20..30), (1, 0..5)]);
        all.merge(handed(&[(0, 30..40)]));
        let consumption = all.consumption("g", &[(10, 40), (0, 5)]);
        assert_eq!(counts(&consumption), (35, 0, 0, 0));
    }

    #[test]
    fn what_a_new_owner_begins_before_the_old_ones_end_is_repeated() {
        let mut all = handed(&[(0, 0..50)]);
        all.merge(handed(&[(0, 40..60)]));
        assert_eq!(counts(&all.consumption("g", &[(0, 60)])), (60, 10, 0, 0));
    }

    #[test]
    fn a_gap_between_two_owners_is_skipped_and_shown() {
        let mut all = handed(&[(0, 0..50)]);
        all.merge(handed(&[(0, 53..60)]));
        let consumption = all.consumption("g", &[(0, 60)]);
        assert_eq!(counts(&consumption), (60, 0, 0, 3));
        let shown = "group g, partition 0: offsets 50 to 52 were handed to no member";
        assert_eq!(consumption.first_skipped, [shown]);
    }

    #[test]
    fn a_begin_that_nobody_got_is_skipped_and_an_end_is_unread() {
        let all = handed(&[(0, 5..50)]);
        let consumption = all.consumption("g", &[(0, 60), (7, 9)]);
        assert_eq!(counts(&consumption), (62, 0, 12, 5));
    }

    #[test]
    fn only_the_first_ten_are_shown_and_all_are_counted() {
        let mut all = handed(&[]);
        for number in 0..25 {
            all.add(0, number * 10 + 1..number * 10 + 10);
        }
        let mut consumption = all.consumption("g", &[(0, 250)]);
        consumption.merge(all.consumption("h", &[(0, 250)]));
        assert_eq!(
            (consumption.skipped, consumption.first_skipped.len()),
            (50, 10)
        );
    }
}
