//! The report for a reader who has never seen one.

use std::fmt::Write;

use super::headline::HeadlineRow;
use super::{AuditOutcome, Loop, Report, StepReport, WorkloadReport};
use super::{backlog, groups, search, settings, workers};
use crate::baseline::DiskOutcome;
use crate::columns::{Column, Columns};

/// From which share of the machine's cores on other work is worth a remark.
const OTHERS_NOTED: f64 = 0.1;

pub fn text(report: &Report, columns: Columns) -> String {
    let mut out = String::new();
    write_all(&mut out, report, columns).expect("writing to a string does not fail");
    columns.fit(&out)
}

fn write_all(out: &mut String, report: &Report, columns: Columns) -> std::fmt::Result {
    let load = &report.workload;
    match load.producers_per_topic {
        0 => write_what_is_read(out, load)?,
        _ => write_load(out, load)?,
    }
    let broker = &report.provenance.broker;
    let pids: Vec<String> = broker
        .processes
        .iter()
        .map(|process| process.pid.0.to_string())
        .collect();
    let process = match &pids[..] {
        [] => "not on this machine".to_owned(),
        [pid] => format!("process {pid}"),
        pids => format!("processes {}", pids.join(", ")),
    };
    writeln!(
        out,
        "broker {} ({process}); {}",
        broker.bootstrap,
        durability(report)
    )?;
    settings::write(out, load)?;
    workers::write(out, report)?;
    if !report.provenance.tool.is_optimised() {
        writeln!(
            out,
            "NOTE: corelog-perf was built without optimisation; its own cost is not meaningful"
        )?;
    }
    if !report.complete {
        writeln!(
            out,
            "PARTIAL: {}",
            report
                .failure
                .as_deref()
                .unwrap_or("the run was ended early")
        )?;
    }
    writeln!(out)?;
    write_figures(out, report, columns)?;
    if let Some(search) = &report.search {
        search::write(out, search, columns)?;
    }
    for step in &report.steps {
        write_remarks(out, step, columns)?;
    }
    for read in &report.reads {
        if let Some(failure) = &read.failure {
            writeln!(out, "READ FAILED: {failure}")?;
        }
    }
    for replay in report.reads.iter().filter_map(|read| read.replay.as_ref()) {
        writeln!(
            out,
            "Read from {}, in MB/s of record batches; passes to the end: {}.",
            replay.from, replay.passes
        )?;
    }
    for (name, drift) in [
        ("disk", report.headline.disk_drift),
        ("loopback", report.headline.network_drift),
    ] {
        if let Some(drift) = drift {
            writeln!(
                out,
                "The {name} baseline moved by {:+.0} % over the run.",
                drift * 100.0
            )?;
        }
    }
    if let Some(DiskOutcome::NotMeasured { reason }) = report
        .baseline_before
        .as_ref()
        .map(|baseline| &baseline.disk)
    {
        writeln!(out, "No disk baseline: {reason}.")?;
    }
    write_audit(out, report)?;
    groups::write_consumption(out, report)
}

fn write_what_is_read(out: &mut String, load: &WorkloadReport) -> std::fmt::Result {
    let (consumers, from) = (load.replay_consumers.unwrap_or(0), load.replay_from);
    let from = from.map_or_else(String::new, |from| from.to_string());
    writeln!(
        out,
        "{}: {} topic{} of {} partition{}, read from {from} by {consumers} consumer{}, nothing produced",
        load.topic,
        load.topics,
        plural(load.topics),
        load.partitions_per_topic,
        plural(load.partitions_per_topic),
        plural(consumers)
    )
}

fn write_load(out: &mut String, load: &WorkloadReport) -> std::fmt::Result {
    writeln!(
        out,
        "{}: {} topic{} of {} partition{}, {}-byte records, batches of at most {} bytes, linger {} ms, acks={}, {} producer{}, {} subscription{} of {} consumer{}",
        load.name,
        load.topics,
        plural(load.topics),
        load.partitions_per_topic,
        plural(load.partitions_per_topic),
        load.message_size,
        configured(load, "batch.size"),
        configured(load, "linger.ms"),
        load.durability.acks,
        load.producers_per_topic,
        plural(load.producers_per_topic),
        load.subscriptions_per_topic,
        plural(load.subscriptions_per_topic),
        load.consumer_per_subscription,
        plural(load.consumer_per_subscription),
    )
}

fn configured<'a>(load: &'a WorkloadReport, setting: &str) -> &'a str {
    load.producer_config
        .get(setting)
        .map_or("?", String::as_str)
}

pub(super) fn plural(count: u32) -> &'static str {
    if count == 1 { "" } else { "s" }
}

fn durability(report: &Report) -> String {
    let durability = &report.workload.durability;
    let synced = match durability.synced_before_ack {
        Some(true) => "a confirmed record is on stable storage (fdatasync before the ack)",
        Some(false) => "a confirmed record is not necessarily synced (no fdatasync before the ack)",
        None => "the broker does not tell whether it syncs before the ack",
    };
    format!(
        "replication factor {}, {synced}",
        durability.replication_factor
    )
}

fn write_figures(out: &mut String, report: &Report, columns: Columns) -> std::fmt::Result {
    let mut rows = Vec::new();
    for HeadlineRow {
        stretch,
        figure,
        ratio,
    } in report.headline.rows()
    {
        if let Some(stretch) = stretch {
            rows.push(vec![stretch.to_owned()]);
        }
        let value = match &figure {
            Some(_) => format!("{} {}", number(ratio.value), ratio.unit),
            None => String::new(),
        };
        let (factor, against) = match ratio.against() {
            Some((factor, against)) => (format!("{} x", number(factor)), against),
            None => Default::default(),
        };
        let figure = figure.map_or_else(String::new, |figure| format!("  {figure}"));
        rows.push(vec![figure, value, factor, against]);
    }
    let laid_out = [Column::Name, Column::Figure, Column::Figure, Column::Prose];
    writeln!(out, "{}", columns.table(&laid_out, rows))
}

/// Three significant digits are what such a measurement has.
pub fn number(value: f64) -> String {
    match value {
        v if v >= 100.0 => format!("{v:.0}"),
        v if v >= 10.0 => format!("{v:.1}"),
        v if v >= 1.0 => format!("{v:.2}"),
        v => format!("{v:.3}"),
    }
}

fn write_remarks(out: &mut String, step: &StepReport, columns: Columns) -> std::fmt::Result {
    let rate = step.rate;
    if step.load == Loop::Closed
        && let Some(latency) = &step.publish_latency
    {
        writeln!(
            out,
            "At max the load waits for the broker, so its latency (p50 {} ms, p99 {} ms) is a closed loop's and not comparable.",
            number(latency.p50_ms),
            number(latency.p99_ms)
        )?;
    }
    if let Some(latency) = &step.end_to_end_latency {
        let open = if step.load == Loop::Closed {
            " (closed loop)"
        } else {
            ""
        };
        writeln!(
            out,
            "At {rate}, producer to consumer{open}: p50 {} ms, p99 {} ms, p99.9 {} ms, max {} ms; consumed {} MB/s{}.",
            number(latency.p50_ms),
            number(latency.p99_ms),
            number(latency.p999_ms),
            number(latency.max_ms),
            number(step.consumed_mb_per_s),
            uncertain(step)
        )?;
    }
    writeln!(
        out,
        "At {rate}, sent: {} MB/s of payload, {} MB/s on the wire.",
        number(step.sent_mb_per_s),
        number(step.wire_mb_per_s)
    )?;
    groups::write_step(out, step)?;
    workers::write_step(out, step)?;
    if let Some(reason) = step
        .generator
        .reason
        .as_ref()
        .filter(|_| !step.generator.valid)
    {
        writeln!(out, "NOT VALID at {rate}: {reason}.")?;
        if let Some(advice) = &step.generator.advice {
            writeln!(out, "  What to do: {advice}.")?;
        }
    }
    if let Some(ramp) = &step.ramp {
        writeln!(out, "RAMP at {rate}: {ramp}.")?;
    }
    if step.unsent_records > 0 {
        writeln!(
            out,
            "At {rate} the broker did not keep up: {} records never got their turn; latencies are lower bounds.",
            step.unsent_records
        )?;
    }
    let machine = &step.cpu.machine;
    if machine.others > OTHERS_NOTED || machine.steal > OTHERS_NOTED {
        writeln!(
            out,
            "At {rate} other programs used {:.0} % of this machine's cores, other guests {:.0} %: compare ratios, not figures.",
            machine.others * 100.0,
            machine.steal * 100.0
        )?;
    }
    if let Some(factor) = step.write_amplification {
        writeln!(
            out,
            "At {rate} the brokers wrote {} bytes to disks for each byte acked.",
            number(factor)
        )?;
    }
    write_brokers(out, step)?;
    for outage in &step.outages {
        writeln!(out, "OUTAGE at {rate}: {outage}.")?;
    }
    if let (Some(replayed), Some(passes)) = (step.replay_mb_per_s, step.replay_passes) {
        writeln!(
            out,
            "At {rate}, replayed beside it: {} MB/s of record batches, {passes} passes to the end.",
            number(replayed)
        )?;
    }
    backlog::write(out, step, columns)?;
    for (error, count) in &step.replay_errors {
        writeln!(
            out,
            "ERROR at {rate}: a replay failed {count} times: {error}"
        )?;
    }
    for (error, records) in &step.errors {
        writeln!(out, "ERROR at {rate}: {records} records: {error}")?;
    }
    for (error, count) in &step.consumer_errors {
        writeln!(
            out,
            "ERROR at {rate}: a consumer failed {count} times: {error}"
        )?;
    }
    for (reason, records) in &step.resent {
        writeln!(
            out,
            "At {rate}: {records} records were sent again: {reason}"
        )?;
    }
    Ok(())
}

/// Where different clocks took the two ends of a latency.
fn uncertain(step: &StepReport) -> String {
    step.end_to_end_uncertainty_ms
        .map_or_else(String::new, |uncertainty_ms| {
            let uncertainty = number(uncertainty_ms);
            format!("; the workers' clocks were compared, so each is right to {uncertainty} ms")
        })
}

/// Where there are several, or one is not measured.
fn write_brokers(out: &mut String, step: &StepReport) -> std::fmt::Result {
    let brokers = &step.cpu.brokers;
    for broker in brokers {
        match (&broker.not_measured, &broker.used) {
            (Some(reason), _) => writeln!(
                out,
                "At {} the broker ({}) is not measured: {reason}.",
                step.rate, broker.source
            )?,
            (None, Some(used)) if brokers.len() > 1 => writeln!(
                out,
                "At {} the broker ({}) used {} CPU-s.",
                step.rate,
                broker.source,
                number(used.cpu_s)
            )?,
            (None, _) => {}
        }
    }
    Ok(())
}

fn write_audit(out: &mut String, report: &Report) -> std::fmt::Result {
    let audit = &report.audit;
    match (audit.outcome, &audit.findings) {
        (AuditOutcome::NotRun, _) if report.workload.producers_per_topic == 0 => {
            writeln!(out, "Audit: not run; nothing was produced.")
        }
        (AuditOutcome::NotRun, _) => writeln!(out, "Audit: not run; nothing is proven about loss."),
        (AuditOutcome::Incomplete, Some(findings)) => writeln!(
            out,
            "Audit: NOT COMPLETE ({}); {} of the {} records read back are of producers about which nothing is proven.",
            audit.failure.as_deref().unwrap_or("ended early"),
            findings.records_of_lost_producers,
            findings.records_read
        ),
        (AuditOutcome::Incomplete, None) => {
            writeln!(
                out,
                "Audit: NOT COMPLETE ({}); nothing is proven about loss.",
                audit.failure.as_deref().unwrap_or("ended early")
            )
        }
        (AuditOutcome::Passed, Some(findings)) => writeln!(
            out,
            "Audit: passed. {} records confirmed, {} read back: none lost, doubled, reordered or changed.",
            findings.records_acked, findings.records_read
        ),
        (AuditOutcome::Passed, None) => {
            writeln!(
                out,
                "Audit: {} records confirmed, and the logs grew by at least as many (they were not read).",
                audit.records_acked
            )
        }
        (AuditOutcome::Failed, None) => {
            writeln!(
                out,
                "AUDIT FAILED: {} records confirmed, but the logs grew by {:?}.",
                audit.records_acked, audit.offsets_advanced
            )
        }
        (AuditOutcome::Failed, Some(findings)) => {
            writeln!(out, "AUDIT FAILED:")?;
            for (anomaly, count) in &findings.anomalies {
                writeln!(out, "  {anomaly:?}: {count} records")?;
            }
            for finding in &findings.first_findings {
                let offset = finding
                    .offset
                    .map_or_else(String::new, |offset| format!(" offset {offset}"));
                writeln!(
                    out,
                    "  topic {} partition {}{offset}: {:?}: {}",
                    finding.topic, finding.partition, finding.anomaly, finding.detail
                )?;
            }
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        for (mut report, _) in [sample::report(), sample::search_report()] {
            report.steps[0].generator.valid = false;
            report.steps[0].generator.reason = Some("a word after another ".repeat(20));
            for line in text(&report, Columns::OF_A_FILE).lines() {
                assert!(line.chars().count() <= 80, "{line}");
            }
        }
    }
}
