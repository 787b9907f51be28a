//! Unit costs for a reader at a terminal.

use std::fmt::Write;

use super::report::{ReadFrom, UnitCostsReport};
use crate::columns::{Column, Columns};
use crate::quantity::Bytes;
use crate::report::number;

/// Name, value and where it comes from.
pub type Row = (&'static str, String, String);

pub fn text(report: &UnitCostsReport, columns: Columns) -> String {
    let mut out = String::new();
    write_all(&mut out, report, columns).expect("writing to a string does not fail");
    columns.fit(&out)
}

/// The costs, each with the raw numbers that it came from.
pub fn cost_rows(report: &UnitCostsReport) -> Vec<Row> {
    let costs = &report.costs;
    let per_gb = |cpu_s: f64| format!("{} CPU-s/GB", number(cpu_s));
    let per_request = |cpu_s: f64| format!("{} us", number(cpu_s * 1e6));
    let partitions = &report.partitions;
    let of_partitions = |what: &str| format!("{} partitions {what}", partitions.count);
    let mut rows = Vec::new();
    for (per_byte, each, segments, fit, large) in [
        (
            "c_lead",
            "c_request",
            &costs.produce,
            &report.fits.produce,
            report.at_large_batches.lead_cpu_s_per_gb,
        ),
        (
            "c_fetch",
            "c_fetch_request",
            &costs.fetch,
            &report.fits.fetch,
            report.at_large_batches.fetch_cpu_s_per_gb,
        ),
    ] {
        rows.push((
            per_byte,
            per_gb(large),
            format!(
                "as measured in requests of {}, their cost included",
                Bytes(report.at_large_batches.batch_bytes)
            ),
        ));
        for segment in segments {
            let from = Bytes(segment.request_bytes_min);
            let note = format!(
                "beside {}, requests from {from} on",
                per_request(segment.request_cpu_s)
            );
            rows.push((per_byte, per_gb(segment.cpu_s_per_gb), note));
        }
        let [of_gb, of_request] = fit.unit_costs;
        let note = format!(
            "beside {}: one line for all sizes, {:.0} % off at most",
            per_gb(of_gb),
            fit.residual_max * 100.0
        );
        rows.push((each, per_request(of_request), note));
    }
    for read in &report.reads {
        rows.push((
            match read.what {
                ReadFrom::Memory => "read from memory",
                ReadFrom::Start => "c_cold",
            },
            per_gb(read.broker_cpu_s_per_gb),
            format!(
                "at {} MB/s, the broker read {:.0} % as much from its disk",
                number(read.mb_per_s),
                read.from_disk * 100.0
            ),
        ));
    }
    rows.extend([
        (
            "idle broker",
            format!("{} cores", number(costs.idle_cores)),
            format!(
                "{} CPU-s in {} s",
                number(partitions.before.broker_cpu_s),
                number(partitions.before.seconds)
            ),
        ),
        (
            "idle partition, CPU",
            format!("{} us/s", number(costs.partition_cores * 1e6)),
            format!(
                "{}: {} CPU-s in {} s",
                of_partitions("idle"),
                number(partitions.idle.broker_cpu_s),
                number(partitions.idle.seconds)
            ),
        ),
        (
            "idle partition, memory",
            format!("{} KB", number(partitions.idle_memory_bytes as f64 / 1e3)),
            of_partitions("created"),
        ),
        (
            "partition, memory",
            format!(
                "{} KB",
                number(partitions.written_memory_bytes as f64 / 1e3)
            ),
            of_partitions("written to"),
        ),
    ]);
    rows.extend(report.absent.iter().map(|absent| {
        (
            absent.cost,
            "not measured".to_owned(),
            absent.reason.clone(),
        )
    }));
    rows
}

/// Measured against predicted, in one sentence.
pub fn verdict(report: &UnitCostsReport) -> String {
    let check = &report.check;
    format!(
        "predicted {} cores, measured {}: {:+.1} %, {} the {:.0} % allowed",
        number(check.predicted_cores),
        number(check.measured_cores),
        check.difference * 100.0,
        if check.holds { "within" } else { "NOT within" },
        check.difference_allowed * 100.0
    )
}

fn write_all(out: &mut String, report: &UnitCostsReport, columns: Columns) -> std::fmt::Result {
    writeln!(out, "Unit costs of {}", report.provenance.broker.bootstrap)?;
    let costs = cost_rows(report)
        .into_iter()
        .map(|(name, value, source)| vec![format!("  {name}"), value, source]);
    let laid_out = [Column::Name, Column::Figure, Column::Prose];
    writeln!(out, "{}", columns.table(&laid_out, costs))?;
    writeln!(out, "Runs")?;
    let head = ["", "MB/s", "req/s", "read MB/s", "fetches/s", "cores"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(report.stretches.iter().map(|stretch| {
        let figures = [
            stretch.produced_mb_per_s,
            stretch.produce_requests_per_s,
            stretch.consumed_mb_per_s,
            stretch.fetches_per_s,
            stretch.broker_cores,
        ];
        let name = std::iter::once(stretch.name.clone());
        name.chain(figures.map(number)).collect()
    }));
    let laid_out: Vec<Column> = std::iter::once(Column::Prose)
        .chain([Column::Figure; 5])
        .collect();
    write!(out, "{}", columns.table(&laid_out, rows))?;
    writeln!(out, "\nCheck: {}", verdict(report))?;
    for part in &report.check.parts {
        writeln!(out, "  {:<26} {:>8} cores", part.what, number(part.cores))?;
    }
    for remark in &report.remarks {
        writeln!(out, "{remark}")?;
    }
    if let Some(reason) = &report.reason {
        writeln!(out, "NOT VALID: {reason}.")?;
        writeln!(
            out,
            "  What to do: repeat it when nothing else runs on the machine, with a longer --duration, on a broker that was just started."
        )?;
    }
    Ok(())
}
