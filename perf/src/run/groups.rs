//! Consumer groups of a load step: who their members are, and what they were handed.

use std::collections::BTreeMap;

use super::Run;
use crate::client::cluster::BrokerAddress;
use crate::consumer::group::{Consumption, GroupSettings, MemberPlan};
use crate::crew::GroupYield;
use crate::histogram::LatencyHistogram;
use crate::report::GroupsReport;

impl Run<'_> {
    /// Every subscription is a group of its own in every step, so that no step begins where another left off.
    pub(super) fn members(
        &self,
        settings: GroupSettings,
        step: usize,
        starts: &[Vec<i64>],
    ) -> Vec<MemberPlan> {
        let mut members = Vec::new();
        for (topic_place, (topic, starts)) in self.topics.iter().zip(starts).enumerate() {
            for subscription in 0..self.plan.subscriptions {
                let group = format!(
                    "{}-{:08x}-step-{step}-subscription-{subscription}",
                    topic.name, self.id.0
                );
                members.extend((0..self.plan.consumers).map(|number| MemberPlan {
                    group: group.clone(),
                    number,
                    members: self.plan.consumers,
                    topic_place,
                    topic: (**topic).clone(),
                    starts: starts.clone(),
                    bootstrap: BrokerAddress(self.cluster.bootstrap().to_owned()),
                    limits: self.plan.fetch,
                    settings,
                }));
            }
        }
        members
    }

    /// What the groups were handed against what lies in the log now. None if its end is not known.
    pub(super) fn consumption(
        &self,
        groups: &BTreeMap<String, GroupYield>,
        starts: &[Vec<i64>],
    ) -> Option<Consumption> {
        let ends = self.end_offsets().ok()?;
        let mut all = Consumption::default();
        for (name, group) in groups {
            let (starts, ends) = (&starts[group.topic], &ends[group.topic]);
            let ranges: Vec<_> = starts.iter().copied().zip(ends.iter().copied()).collect();
            all.merge(group.handed.consumption(name, &ranges));
        }
        Some(all)
    }
}

/// Of all groups, with their raw histograms: pauses and commits.
pub fn report(
    groups: &BTreeMap<String, GroupYield>,
    consumption: Option<Consumption>,
) -> (GroupsReport, [LatencyHistogram; 2]) {
    let (mut pause, mut commit_latency) = (LatencyHistogram::new(), LatencyHistogram::new());
    for group in groups.values() {
        pause.merge(&group.pause);
        commit_latency.merge(&group.commit_latency);
    }
    let all = || groups.values();
    let partitions = || all().flat_map(|group| group.partitions.iter().copied());
    // The generation that the load began in is no rebalance, and no member enters it again.
    let rebalances = all().map(|group| group.generations.len() as u64).sum();
    let report = GroupsReport {
        groups: groups.len(),
        members: partitions().count(),
        partitions_per_member_min: partitions().min().unwrap_or(0),
        partitions_per_member_max: partitions().max().unwrap_or(0),
        rebalances,
        rebalance_pause: pause.summary(),
        commits: all().map(|group| group.commits).sum(),
        commit_latency: commit_latency.summary(),
        consumption,
    };
    (report, [pause, commit_latency])
}
