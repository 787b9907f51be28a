//! What a crew brings back.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::consumer::group::{Handed, MemberResult};
use crate::consumer::{PassesResult, TailResult};
use crate::histogram::LatencyHistogram;
use crate::live::Totals;
use crate::producer::ProducerResult;
use crate::producer::ledger::Ledger;

/// What all threads of one crew measured in one load step.
#[derive(Debug, Serialize, Deserialize)]
pub struct LoadYield {
    pub measured: Edges,
    /// As the producers' and consumers' results have them, merged.
    pub latency: LatencyHistogram,
    pub lag: LatencyHistogram,
    pub send_delay: LatencyHistogram,
    pub end_to_end: LatencyHistogram,
    pub errors: BTreeMap<String, u64>,
    pub consumer_errors: BTreeMap<String, u64>,
    /// By name.
    pub groups: BTreeMap<String, GroupYield>,
    pub replay_passes: u64,
    pub replay_errors: BTreeMap<String, u64>,
    pub resent: BTreeMap<String, u64>,
    pub unsent_records: u64,
    /// Too large to go with the rest.
    #[serde(skip)]
    pub ledgers: Vec<TopicLedger>,
}

/// The counters at the edges of the measured window, and when that was, counted from the load's start.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Edges {
    pub opened_ns: u64,
    pub closed_ns: u64,
    pub before: Totals,
    pub after: Totals,
}

/// What the members of one group did, as far as they are of the crew.
#[derive(Debug, Serialize, Deserialize)]
pub struct GroupYield {
    /// The topic's place in the order's topics.
    pub topic: usize,
    pub handed: Handed,
    /// Those that a member entered while the load was on.
    pub generations: BTreeSet<i32>,
    /// From when a member gave up its partitions to when it read again.
    pub pause: LatencyHistogram,
    pub commits: u64,
    pub commit_latency: LatencyHistogram,
    /// What each member had last.
    pub partitions: Vec<usize>,
}

/// The ledger of one producer.
#[derive(Debug)]
pub struct TopicLedger {
    /// The topic's place in the order's topics.
    pub topic: usize,
    pub ledger: Ledger,
}

impl LoadYield {
    /// `topics`: where each producer sent to.
    pub fn of(
        measured: Edges,
        topics: &[usize],
        produced: Vec<ProducerResult>,
        consumed: Consumed,
        replayed: &[PassesResult],
    ) -> Self {
        let Consumed { tails, members } = consumed;
        let consumed = || {
            tails
                .iter()
                .chain(members.iter().map(|member| &member.read))
        };
        let merged = |histograms: &mut dyn Iterator<Item = &LatencyHistogram>| {
            let mut all = LatencyHistogram::new();
            histograms.for_each(|histogram| all.merge(histogram));
            all
        };
        Self {
            measured,
            latency: merged(&mut produced.iter().map(|producer| &producer.latency)),
            lag: merged(&mut produced.iter().map(|producer| &producer.lag)),
            send_delay: merged(&mut produced.iter().map(|producer| &producer.send_delay)),
            end_to_end: merged(&mut consumed().map(|consumer| &consumer.end_to_end)),
            errors: sum(produced.iter().map(|producer| &producer.errors)),
            consumer_errors: sum(consumed().map(|consumer| &consumer.errors)),
            groups: members.into_iter().fold(BTreeMap::new(), |groups, member| {
                with_group(groups, member.group.clone(), GroupYield::of(member))
            }),
            replay_passes: replayed.iter().map(|replay| replay.passes).sum(),
            replay_errors: sum(replayed.iter().map(|replay| &replay.errors)),
            resent: sum(produced.iter().map(|producer| &producer.resent)),
            unsent_records: produced
                .iter()
                .map(|producer| producer.unsent_records)
                .sum(),
            ledgers: topics
                .iter()
                .zip(produced)
                .map(|(&topic, producer)| TopicLedger {
                    topic,
                    ledger: producer.ledger,
                })
                .collect(),
        }
    }

    /// Both crews worked at the same time.
    pub fn merged_with(mut self, other: Self) -> Self {
        self.measured.merge(other.measured);
        self.latency.merge(&other.latency);
        self.lag.merge(&other.lag);
        self.send_delay.merge(&other.send_delay);
        self.end_to_end.merge(&other.end_to_end);
        self.errors = sum([&self.errors, &other.errors].into_iter());
        self.consumer_errors = sum([&self.consumer_errors, &other.consumer_errors].into_iter());
        for (name, group) in other.groups {
            self.groups = with_group(self.groups, name, group);
        }
        self.replay_passes += other.replay_passes;
        self.replay_errors = sum([&self.replay_errors, &other.replay_errors].into_iter());
        self.resent = sum([&self.resent, &other.resent].into_iter());
        self.unsent_records += other.unsent_records;
        self.ledgers.extend(other.ledgers);
        self
    }
}

/// All consumers of a crew.
pub struct Consumed {
    pub tails: Vec<TailResult>,
    pub members: Vec<MemberResult>,
}

impl GroupYield {
    fn of(member: MemberResult) -> Self {
        Self {
            topic: member.topic_place,
            handed: member.handed,
            generations: member.generations,
            pause: member.pause,
            commits: member.commits,
            commit_latency: member.commit_latency,
            partitions: vec![member.partitions],
        }
    }

    fn merge(&mut self, other: Self) {
        self.handed.merge(other.handed);
        self.generations.extend(other.generations);
        self.pause.merge(&other.pause);
        self.commits += other.commits;
        self.commit_latency.merge(&other.commit_latency);
        self.partitions.extend(other.partitions);
    }
}

fn with_group(
    mut groups: BTreeMap<String, GroupYield>,
    name: String,
    group: GroupYield,
) -> BTreeMap<String, GroupYield> {
    match groups.get_mut(&name) {
        Some(known) => known.merge(group),
        None => drop(groups.insert(name, group)),
    }
    groups
}

impl Edges {
    /// The whole time in which any of the two measured.
    fn merge(&mut self, other: Self) {
        self.opened_ns = self.opened_ns.min(other.opened_ns);
        self.closed_ns = self.closed_ns.max(other.closed_ns);
        self.before.add(&other.before);
        self.after.add(&other.after);
    }

    pub fn acked_bytes(&self) -> u64 {
        self.after.acked_bytes - self.before.acked_bytes
    }

    pub fn seconds(&self) -> f64 {
        self.closed_ns.saturating_sub(self.opened_ns) as f64 / 1e9
    }
}

fn sum<'a>(maps: impl Iterator<Item = &'a BTreeMap<String, u64>>) -> BTreeMap<String, u64> {
    let mut all = BTreeMap::new();
    for (name, count) in maps.flatten() {
        *all.entry(name.clone()).or_default() += count;
    }
    all
}
