//! A sizing on the terminal.

use std::fmt::{self, Write};

use super::estimate::Estimate;
use super::notation::{bytes, bytes_per_s, cost, count, cpu_us, number, seconds, share};
use super::source::Source;
use super::walkthrough::{Line, Part, Walkthrough};
use crate::columns::{Column, Columns};

/// Name, value and where it comes from.
pub type Row = (&'static str, String, String);

pub fn estimate(estimate: &Estimate, columns: Columns) -> String {
    let mut out = String::new();
    write_estimate(&mut out, estimate, columns).expect("writing to a string does not fail");
    columns.fit(&out)
}

pub fn walkthrough(walkthrough: &Walkthrough, columns: Columns) -> String {
    let mut out = String::new();
    write_walkthrough(&mut out, walkthrough, columns).expect("writing to a string does not fail");
    columns.fit(&out)
}

/// What is asked.
pub fn demand_rows(estimate: &Estimate) -> Vec<Row> {
    let demand = &estimate.demand;
    let row = |name, value: String, source: &Source| (name, value, source.to_string());
    let rate = |value: u64| bytes_per_s(value as f64);
    vec![
        row(
            "ingest, on average",
            rate(demand.ingest_bytes_per_s.value),
            &demand.ingest_bytes_per_s.source,
        ),
        row(
            "peak factor",
            number(demand.peak_factor.value),
            &demand.peak_factor.source,
        ),
        row(
            "compression ratio",
            number(demand.compression_ratio.value),
            &demand.compression_ratio.source,
        ),
        row(
            "message",
            bytes(demand.message_bytes.value as f64),
            &demand.message_bytes.source,
        ),
        row("copies", count(demand.copies.value), &demand.copies.source),
        row(
            "retention",
            seconds(demand.retention_s.value as f64),
            &demand.retention_s.source,
        ),
        row(
            "reader groups",
            count(demand.reader_groups.value),
            &demand.reader_groups.source,
        ),
        row(
            "of them reading from disk",
            count(demand.cold_reader_groups.value),
            &demand.cold_reader_groups.source,
        ),
        row(
            "Produce request",
            bytes(demand.request_bytes.value as f64),
            &demand.request_bytes.source,
        ),
        row(
            "busiest topic",
            rate(demand.topic_ingest_bytes_per_s.value),
            &demand.topic_ingest_bytes_per_s.source,
        ),
        row(
            "one consumer server",
            rate(demand.consumer_bytes_per_s.value),
            &demand.consumer_bytes_per_s.source,
        ),
        row(
            "partitions",
            count(demand.partitions.value),
            &demand.partitions.source,
        ),
        row(
            "segment",
            bytes(demand.segment_bytes.value as f64),
            &demand.segment_bytes.source,
        ),
        row(
            "newest kept in memory",
            seconds(demand.cached_s.value as f64),
            &demand.cached_s.source,
        ),
    ]
}

/// What one broker gives.
pub fn broker_rows(estimate: &Estimate) -> Vec<Row> {
    let broker = &estimate.broker;
    let costs = &broker.cost;
    let row = |name, value: String, source: &Source| (name, value, source.to_string());
    vec![
        row(
            "disk",
            bytes_per_s(broker.disk_bytes_per_s.value as f64),
            &broker.disk_bytes_per_s.source,
        ),
        row(
            "disk space",
            bytes(broker.disk_bytes.value as f64),
            &broker.disk_bytes.source,
        ),
        row(
            "network, each way",
            bytes_per_s(broker.nic_bytes_per_s.value as f64),
            &broker.nic_bytes_per_s.source,
        ),
        row("cores", count(broker.cores.value), &broker.cores.source),
        row(
            "memory",
            bytes(broker.memory_bytes.value as f64),
            &broker.memory_bytes.source,
        ),
        row(
            "copies of partitions",
            count(broker.partitions_max.value),
            &broker.partitions_max.source,
        ),
        row(
            "memory of such a copy",
            bytes(broker.partition_memory_bytes.value as f64),
            &broker.partition_memory_bytes.source,
        ),
        row(
            "c_lead",
            cost(costs.lead_ns_per_gb.value),
            &costs.lead_ns_per_gb.source,
        ),
        row(
            "c_fetch",
            cost(costs.fetch_ns_per_gb.value),
            &costs.fetch_ns_per_gb.source,
        ),
        row(
            "c_send",
            cost(costs.send_ns_per_gb.value),
            &costs.send_ns_per_gb.source,
        ),
        row(
            "c_follow",
            cost(costs.follow_ns_per_gb.value),
            &costs.follow_ns_per_gb.source,
        ),
        row(
            "c_cold",
            cost(costs.cold_ns_per_gb.value),
            &costs.cold_ns_per_gb.source,
        ),
        row(
            "c_request",
            cpu_us(costs.request_ns.value),
            &costs.request_ns.source,
        ),
        row(
            "c_fetch_request",
            cpu_us(costs.fetch_request_ns.value),
            &costs.fetch_request_ns.source,
        ),
        row(
            "c_partition, each second",
            cpu_us(costs.partition_ns_per_s.value),
            &costs.partition_ns_per_s.source,
        ),
    ]
}

/// The counts, by how careful one is.
pub fn count_rows(estimate: &Estimate) -> Vec<(String, u64)> {
    let brokers = &estimate.brokers;
    let headroom = estimate.headroom_percent;
    vec![
        ("at 100 %".to_owned(), brokers.at_full),
        ("with one broker lost".to_owned(), brokers.one_lost),
        (format!("at {headroom}"), brokers.at_headroom),
        (
            format!("at {headroom} with one broker lost"),
            brokers.at_headroom_one_lost,
        ),
    ]
}

/// What follows from the chosen number of brokers: what, the figure and what to know about it.
pub fn consequence_rows(estimate: &Estimate) -> Vec<Row> {
    let refill = &estimate.refill;
    let group = &estimate.consumer_group;
    let database = &estimate.database_model;
    let brokers = count(estimate.chosen_brokers.value);
    let retention = seconds(estimate.demand.retention_s.value as f64);
    let than_kept = if refill.longer_than_retention {
        format!("LONGER than the {retention} kept")
    } else {
        format!("not longer than the {retention} kept")
    };
    let beside = match refill.seconds_beside_new_writes {
        Some(time) => format!("{} beside its share of the new writes", seconds(time)),
        None => "never beside its share of the new writes".to_owned(),
    };
    vec![
        (
            "to refill a broker",
            seconds(refill.seconds),
            format!(
                "{} at {}, {than_kept}; {beside}",
                bytes(refill.broker_bytes),
                bytes_per_s(refill.bytes_per_s as f64)
            ),
        ),
        (
            "partitions of the busiest topic",
            count(group.partitions),
            format!(
                "a consumer group needs {} servers, one for each partition; each of {brokers} brokers leads {}",
                count(group.partitions_needed),
                group.leaders_per_broker()
            ),
        ),
        (
            "a segment fills in",
            seconds(group.segment_seconds),
            format!(
                "at {} a partition",
                bytes_per_s(group.partition_bytes_per_s)
            ),
        ),
        (
            "moving a partition copies",
            bytes(group.partition_bytes),
            "all that is kept of it".to_owned(),
        ),
        (
            "counted as a database",
            format!("{} servers", count(database.servers)),
            format!(
                "{} copies/s / {} writes/s: {}",
                number(database.writes_per_s),
                count(database.server_writes_per_s),
                database.verdict
            ),
        ),
    ]
}

fn write_estimate(out: &mut String, estimate: &Estimate, columns: Columns) -> fmt::Result {
    writeln!(out, "Load")?;
    write_rows(out, &demand_rows(estimate), columns)?;
    writeln!(out, "\nOne broker")?;
    write_rows(out, &broker_rows(estimate), columns)?;
    let chosen = &estimate.chosen_brokers;
    let n = count(chosen.value);
    writeln!(
        out,
        "\nConstraints: what the cluster needs, brokers that takes, and how much of {n} is used"
    )?;
    write_constraints(out, estimate, columns)?;
    writeln!(out, "  {} binds.", estimate.binding.name())?;
    writeln!(
        out,
        "  I ingest at its peak after compression, R copies, F reader groups, Q Produce requests, T retention, P partitions."
    )?;
    writeln!(out, "\nBrokers, never fewer than copies")?;
    let counts = count_rows(estimate).into_iter();
    let counts = counts.map(|(what, brokers)| vec![format!("  {what}"), count(brokers)]);
    write!(
        out,
        "{}",
        columns.table(&[Column::Name, Column::Figure], counts)
    )?;
    writeln!(out, "\nWith {n} brokers ({})", chosen.source)?;
    write_rows(out, &consequence_rows(estimate), columns)?;
    write_remarks(out, &estimate.remarks)
}

/// What each asks for, and below that how it is reckoned.
fn write_constraints(out: &mut String, estimate: &Estimate, columns: Columns) -> fmt::Result {
    let figures = estimate.constraints.iter().map(|constraint| {
        vec![
            format!("  {}", constraint.resource.name()),
            constraint.shown.cluster_needs.clone(),
            constraint.shown.broker_has.clone(),
            count(constraint.brokers_at_full),
            count(constraint.brokers_at_headroom),
            share(constraint.utilisation),
            constraint
                .utilisation_one_lost
                .map_or_else(|| "-".to_owned(), share),
        ]
    });
    let head = vec![
        String::new(),
        "needs".to_owned(),
        "broker has".to_owned(),
        "at 100 %".to_owned(),
        format!("at {}", estimate.headroom_percent),
        "used".to_owned(),
        "one lost".to_owned(),
    ];
    let laid_out: Vec<Column> = std::iter::once(Column::Name)
        .chain([Column::Range; 6])
        .collect();
    let figures = std::iter::once(head).chain(figures);
    writeln!(out, "{}", columns.table(&laid_out, figures))?;
    let formulas = estimate.constraints.iter().map(|constraint| {
        let binds = match constraint.resource == estimate.binding {
            true => "  <- binds",
            false => "",
        };
        vec![
            format!("  {}", constraint.resource.name()),
            format!("{}{binds}", constraint.formula),
        ]
    });
    write!(
        out,
        "{}",
        columns.table(&[Column::Name, Column::Prose], formulas)
    )
}

fn write_rows(out: &mut String, rows: &[Row], columns: Columns) -> fmt::Result {
    let rows = rows.iter().map(|(name, value, source)| {
        let (value, source) = (value.clone(), source.clone());
        vec![format!("  {name}"), value, source]
    });
    let laid_out = [Column::Name, Column::Figure, Column::Prose];
    write!(out, "{}", columns.table(&laid_out, rows))
}

fn write_remarks(out: &mut String, remarks: &[String]) -> fmt::Result {
    if !remarks.is_empty() {
        writeln!(out)?;
    }
    remarks
        .iter()
        .try_for_each(|remark| writeln!(out, "{remark}"))
}

fn write_walkthrough(out: &mut String, walkthrough: &Walkthrough, columns: Columns) -> fmt::Result {
    writeln!(out, "The walkthrough's estimate")?;
    write_lines(out, &walkthrough.text.in_the_text, columns)?;
    writeln!(out, "\nWhat it leaves out")?;
    write_lines(out, &walkthrough.text.left_out, columns)?;
    match &walkthrough.measured {
        Some(part) => write_measured(out, part, columns),
        None => Ok(()),
    }
}

fn write_measured(out: &mut String, part: &Part, columns: Columns) -> fmt::Result {
    writeln!(out, "\nThe same with measured figures")?;
    writeln!(
        out,
        "  a broker writes {} ({})",
        bytes_per_s(part.disk_bytes_per_s.value as f64),
        part.disk_bytes_per_s.source
    )?;
    for remark in &part.remarks {
        writeln!(out, "  {remark}")?;
    }
    write_lines(out, &part.in_the_text, columns)?;
    writeln!(out, "\nWhat the text leaves out, with measured figures")?;
    write_lines(out, &part.left_out, columns)?;
    write_lines(out, &part.cpu, columns)
}

fn write_lines(out: &mut String, lines: &[Line], columns: Columns) -> fmt::Result {
    let rows = lines.iter().map(|line| {
        let formula = match &line.remark {
            Some(remark) => format!("= {}\n({remark})", line.formula),
            None => format!("= {}", line.formula),
        };
        vec![format!("  {}", line.what), line.shown.clone(), formula]
    });
    let laid_out = [Column::Name, Column::Figure, Column::Prose];
    write!(out, "{}", columns.table(&laid_out, rows))
}
