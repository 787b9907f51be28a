//! The report for a reader.

use std::fmt::Write;

use super::report::{CommitsDurability, CommitsReport};
use crate::columns::Columns;
use crate::report::{Loop, number};

/// Of what was offered; below it the broker did not keep up.
const KEPT_UP_SHARE: f64 = 0.99;

pub fn text(report: &CommitsReport, columns: Columns) -> String {
    let mut out = String::new();
    write_all(&mut out, report).expect("writing to a string does not fail");
    columns.fit(&out)
}

fn write_all(out: &mut String, report: &CommitsReport) -> std::fmt::Result {
    let load = &report.load;
    writeln!(
        out,
        "offset commits at {}: {} groups without members, {} connections with at most {} under way, {} partition{} each, {}",
        report.broker.bootstrap,
        load.groups,
        load.connections as usize * load.coordinators,
        load.in_flight,
        load.partitions,
        if load.partitions == 1 { "" } else { "s" },
        match load.rate {
            Some(rate) => format!("{rate} a second offered"),
            None => "closed loop".to_owned(),
        }
    )?;
    writeln!(out, "{}", meaning(&report.durability))?;
    if !report.tool.is_optimised() {
        writeln!(
            out,
            "NOTE: corelog-perf was built without optimisation; its own cost is not meaningful"
        )?;
    }
    if !report.complete {
        writeln!(out, "PARTIAL: it was ended early")?;
    }
    writeln!(out)?;
    writeln!(
        out,
        "{} commits/s confirmed ({} offsets/s) over {} s",
        number(report.commits_per_s),
        number(report.offsets_per_s),
        number(report.seconds)
    )?;
    if let Some(latency) = &report.latency {
        let kind = match load.kind {
            Loop::Open => "latency from when a commit was due",
            Loop::Closed => "latency of the closed loop",
        };
        writeln!(
            out,
            "{kind}: p50 {} ms, p99 {} ms, p99.9 {} ms, max {} ms",
            number(latency.p50_ms),
            number(latency.p99_ms),
            number(latency.p999_ms),
            number(latency.max_ms)
        )?;
    }
    if let Some(rate) = load
        .rate
        .filter(|rate| report.commits_per_s < KEPT_UP_SHARE * f64::from(*rate))
    {
        writeln!(
            out,
            "The broker did not keep up with {rate} commits/s; latencies are lower bounds."
        )?;
    }
    if let (Some(cores), Some(each)) = (report.broker_cores, report.commits_per_broker_cpu_s) {
        writeln!(
            out,
            "the broker used {} cores: {} commits for each CPU-s; the client used {} CPU-s in all",
            number(cores),
            number(each),
            report
                .client_cpu
                .as_ref()
                .map_or_else(|| "?".to_owned(), |used| number(used.cpu_s))
        )?;
    }
    for (error, count) in &report.errors {
        writeln!(out, "ERROR: {count} commits were refused: {error}")?;
    }
    let audit = &report.audit;
    match audit.wrong {
        0 => writeln!(
            out,
            "Audit: passed. {} groups have the {} offsets that were confirmed last.",
            audit.groups, audit.offsets
        ),
        wrong => {
            writeln!(
                out,
                "AUDIT FAILED: {wrong} of {} offsets are not as confirmed:",
                audit.offsets
            )?;
            audit
                .first_wrong
                .iter()
                .try_for_each(|wrong| writeln!(out, "  {wrong}"))
        }
    }
}

fn meaning(durability: &CommitsDurability) -> String {
    let synced = match durability.synced_before_answer {
        Some(true) => "a confirmed commit is on stable storage (fdatasync before the answer)",
        Some(false) => {
            "a confirmed commit is not necessarily synced (no fdatasync before the answer)"
        }
        None => "the broker does not tell whether it syncs before the answer",
    };
    let told = |value: &Option<String>| value.clone().unwrap_or_else(|| "?".to_owned());
    format!(
        "{} of {} partitions, replication factor {}, flush.messages={}, flush.ms={}: {synced}",
        durability.topic,
        durability
            .partitions
            .map_or_else(|| "?".to_owned(), |it| it.to_string()),
        told(&durability.replication_factor),
        told(&durability.flush_messages),
        told(&durability.flush_ms)
    )
}
