//! Consumer groups in a load step.

use std::fmt::Write;

use serde::Serialize;

use super::{Report, StepReport, number};
use crate::consumer::group::Consumption;
use crate::histogram::LatencySummary;

/// Of all groups together.
#[derive(Clone, Debug, Serialize)]
pub struct GroupsReport {
    pub groups: usize,
    pub members: usize,
    /// That a member had at the end: the least and the most.
    pub partitions_per_member_min: usize,
    pub partitions_per_member_max: usize,
    /// Generations that groups entered during the load.
    pub rebalances: u64,
    /// From when a member gave up its partitions to when it read again.
    pub rebalance_pause: Option<LatencySummary>,
    /// OffsetCommit requests that were confirmed.
    pub commits: u64,
    pub commit_latency: Option<LatencySummary>,
    /// What became of the records that lie in the log; None if its end is not known.
    pub consumption: Option<Consumption>,
}

/// How the consumers got their partitions, in words.
pub fn assignment(name: &str) -> String {
    match name {
        "fixed" => "each consumer has its partitions for good, and commits nothing".to_owned(),
        assignor => format!(
            "each subscription is a consumer group of the classic protocol, partitions by '{assignor}'"
        ),
    }
}

pub fn write_step(out: &mut String, step: &StepReport) -> std::fmt::Result {
    let Some(groups) = &step.groups else {
        return Ok(());
    };
    let rate = step.rate;
    let with_p99 = |what: &str, latency: &Option<LatencySummary>| {
        latency.as_ref().map_or_else(String::new, |it| {
            let (p50, p99, max) = (number(it.p50_ms), number(it.p99_ms), number(it.max_ms));
            format!(" ({what} p50 {p50} ms, p99 {p99} ms, max {max} ms)")
        })
    };
    writeln!(
        out,
        "At {rate}, groups: {} with {} members of {} to {} partitions; {} rebalances{}; {} commits{}.",
        groups.groups,
        groups.members,
        groups.partitions_per_member_min,
        groups.partitions_per_member_max,
        groups.rebalances,
        with_p99("a member's pause", &groups.rebalance_pause),
        groups.commits,
        with_p99("latency", &groups.commit_latency)
    )
}

/// Behind the audit of what the log holds.
pub fn write_consumption(out: &mut String, report: &Report) -> std::fmt::Result {
    let has_groups = report.steps.iter().any(|step| step.groups.is_some());
    match &report.audit.consumption {
        None if has_groups => writeln!(
            out,
            "Consumption: not known; what the groups were handed was not compared with the log."
        ),
        None => Ok(()),
        Some(it) => {
            writeln!(out, "{}.", sentence(it))?;
            it.first_skipped
                .iter()
                .try_for_each(|skipped| writeln!(out, "  {skipped}"))
        }
    }
}

pub fn sentence(it: &Consumption) -> String {
    let Consumption {
        records,
        repeated,
        unread,
        skipped,
        ..
    } = it;
    match (skipped, unread) {
        (0, 0) => format!(
            "Consumption: each of {records} records was handed to a member of its group; {repeated} more than once"
        ),
        (0, unread) => format!(
            "Consumption: of {records} records {unread} at the logs' ends were not reached in time, every other was handed to a member; {repeated} more than once"
        ),
        (skipped, unread) => format!(
            "CONSUMPTION FAILED: of {records} records {skipped} were handed to no member although later ones were; {unread} were not reached, {repeated} handed out more than once"
        ),
    }
}
