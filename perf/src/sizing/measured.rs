//! What reports of runs tell about a broker: what its disk writes, and what producing and reading cost it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::notation;
use super::run_report::{Machine, RunReport};
use super::source::{Reports, Source, Sourced};
use super::unit_cost_report::{self, Costs, Segment, UnitCostReport, segment_of};
use crate::report::{Schema, StoredError, StoredReport};

/// What must be the same in all reports of one kind, or they did not measure the same thing.
const SAME_IN_ALL: [&str; 9] = [
    "/provenance/machine/cpu_model",
    "/provenance/machine/cores",
    "/provenance/storage/device",
    "/provenance/broker/process/executable",
    "/workload/name",
    "/workload/messageSize",
    "/workload/partitionsPerTopic",
    "/workload/producerConfig/batch.size",
    "/workload/durability",
];

/// A read of which less came from the disk tells little of reading cold.
const COLD_FROM_DISK: f64 = 0.9;

/// What must be the same in reports of both kinds.
const SAME_IN_BOTH: [&str; 3] = [SAME_IN_ALL[0], SAME_IN_ALL[1], SAME_IN_ALL[3]];

#[derive(Debug, thiserror::Error)]
pub enum MeasuredError {
    #[error("--from {path}: {source}")]
    Io { path: PathBuf, source: io::Error },
    #[error("--from {path}: there is no report in this directory")]
    NoReport { path: PathBuf },
    #[error("--from {0}")]
    Report(#[from] StoredError),
    #[error(
        "--from: {first} and {second} did not measure the same: {what} is {of_first} in one and {of_second} in the other"
    )]
    Different {
        first: PathBuf,
        second: PathBuf,
        what: &'static str,
        of_first: String,
        of_second: String,
    },
    #[error("--from {path}: nothing for sizing in it: {missing}")]
    Nothing { path: PathBuf, missing: String },
}

/// What was found. Each value is the median of the reports that have it.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    pub disk_bytes_per_s: Option<Sourced<u64>>,
    pub lead_ns_per_gb: Option<Sourced<u64>>,
    pub fetch_ns_per_gb: Option<Sourced<u64>>,
    pub cold_ns_per_gb: Option<Sourced<u64>>,
    pub request_ns: Option<Sourced<u64>>,
    pub fetch_request_ns: Option<Sourced<u64>>,
    pub partition_ns_per_s: Option<Sourced<u64>>,
    pub partition_memory_bytes: Option<Sourced<u64>>,
    /// Of the machine that was measured.
    pub cores: Option<Sourced<u64>>,
    pub memory_bytes: Option<Sourced<u64>>,
    /// What the reports do not tell, and why.
    pub remarks: Vec<String>,
}

/// Reads reports; of a directory all its `*.json` and the `report.json` of each folder in it.
///
/// `request_bytes`: of the Produce requests to size for, on which some costs depend.
pub fn read(paths: &[PathBuf], request_bytes: u64) -> Result<Measured, MeasuredError> {
    let mut files = Vec::new();
    for path in paths {
        files.extend(report_files(path)?);
    }
    let (mut first_run, mut first_units) = (None, None);
    let mut reports = Reported::default();
    for path in &files {
        let report =
            StoredReport::read_valid_one_of(path, &[Schema::RUN, unit_cost_report::SCHEMA])?;
        if report.schema() == Schema::RUN {
            reports.runs.push((path.clone(), report.fields()?));
            let first: &StoredReport = first_run.get_or_insert_with(|| report.clone());
            compare(first, &report, &SAME_IN_ALL)?;
        } else {
            reports.units.push((path.clone(), report.fields()?));
            let first: &StoredReport = first_units.get_or_insert_with(|| report.clone());
            compare(first, &report, &SAME_IN_ALL)?;
        }
    }
    if let (Some(run), Some(units)) = (&first_run, &first_units) {
        compare(run, units, &SAME_IN_BOTH)?;
    }
    figures(paths, &reports, request_bytes)
}

/// The reports that were read, by their kind.
#[derive(Default)]
struct Reported {
    runs: Vec<(PathBuf, RunReport)>,
    units: Vec<(PathBuf, UnitCostReport)>,
}

fn figures(
    paths: &[PathBuf],
    reports: &Reported,
    request_bytes: u64,
) -> Result<Measured, MeasuredError> {
    let Reported { runs, units } = reports;
    let mut measured = unit_costs(units, request_bytes);
    let mut remarks = Vec::new();
    let mut missing = |value: Option<Sourced<u64>>, what: &str| {
        if value.is_none() {
            remarks.push(format!("The reports do not tell {what}."));
        }
        value
    };
    let disk = missing(
        median(
            runs,
            "best O_DIRECT write of the disk alone",
            1e6,
            RunReport::disk_mb_per_s,
        ),
        "what the disk writes (no O_DIRECT disk baseline)",
    );
    let acked = runs
        .iter()
        .filter_map(|(_, report)| report.busiest_step())
        .map(|step| step.acked_mb_per_s)
        .fold(0.0, f64::max);
    let lead = measured.lead_ns_per_gb.clone().or_else(|| {
        median(
            runs,
            &format!("broker CPU of producing at {acked:.0} MB/s"),
            1e9,
            RunReport::lead_s_per_gb,
        )
    });
    let lead = missing(
        lead,
        "c_lead (no broker on the machine, several copies, or consumers whose cost is not known)",
    );
    let fetch = measured.fetch_ns_per_gb.clone().or_else(|| {
        median(
            runs,
            "broker CPU of reading from memory",
            1e9,
            RunReport::fetch_s_per_gb,
        )
    });
    let fetch = missing(fetch, "c_fetch (no read of the newest records)");
    if disk.is_none() && lead.is_none() && fetch.is_none() {
        return Err(MeasuredError::Nothing {
            path: paths.first().cloned().unwrap_or_default(),
            missing: remarks.join(" "),
        });
    }
    measured.disk_bytes_per_s = disk;
    measured.lead_ns_per_gb = lead;
    measured.fetch_ns_per_gb = fetch;
    measured.remarks.extend(remarks);
    let machine = |what, of: fn(&Machine) -> u64| {
        let of_runs = median(
            runs,
            what,
            1.0,
            |it| Some(of(&it.provenance.machine) as f64),
        );
        of_runs.or_else(|| {
            median(units, what, 1.0, |it| {
                Some(of(&it.provenance.machine) as f64)
            })
        })
    };
    measured.cores = machine("cores of the machine", |machine| machine.cores);
    measured.memory_bytes = machine("memory of the machine", |machine| machine.memory_bytes);
    Ok(measured)
}

/// What reports of unit costs tell; it comes before what reports of runs tell, where requests are in the costs of bytes.
fn unit_costs(units: &[(PathBuf, UnitCostReport)], request_bytes: u64) -> Measured {
    let of_segment = |what: &str, segments: fn(&Costs) -> &[Segment], of: fn(&Segment) -> f64| {
        let what = format!(
            "broker CPU of {what}, {} a request",
            notation::bytes(request_bytes as f64)
        );
        median_with_zeros(units, &what, 1e9, |report| {
            segment_of(segments(&report.costs), request_bytes).map(of)
        })
    };
    let produce: fn(&Costs) -> &[Segment] = |costs| &costs.produce;
    let fetch: fn(&Costs) -> &[Segment] = |costs| &costs.fetch;
    let from_disk = units
        .iter()
        .filter_map(|(_, report)| report.disk_share())
        .fold(f64::INFINITY, f64::min);
    let mut measured = Measured {
        lead_ns_per_gb: of_segment("bytes produced", produce, |of| of.cpu_s_per_gb),
        fetch_ns_per_gb: of_segment("bytes read at the log's end", fetch, |of| of.cpu_s_per_gb),
        request_ns: of_segment("a Produce request", produce, |of| of.request_cpu_s),
        fetch_request_ns: of_segment("a request read at the log's end", fetch, |of| {
            of.request_cpu_s
        }),
        partition_ns_per_s: median_with_zeros(
            units,
            "broker CPU of an idle partition",
            1e9,
            |report| Some(report.costs.partition_cores),
        ),
        cold_ns_per_gb: median(
            units,
            &format!(
                "broker CPU of reading from the start, {:.0} % from the disk",
                from_disk * 100.0
            ),
            1e9,
            UnitCostReport::cold_s_per_gb,
        ),
        partition_memory_bytes: median(units, "memory of a partition", 1.0, |report| {
            Some(report.partition_memory_bytes())
        }),
        ..Measured::default()
    };
    if from_disk < COLD_FROM_DISK {
        measured.remarks.push(format!(
            "c_cold may not be of a disk: only {:.0} % of what was read came from it.",
            from_disk * 100.0
        ));
    }
    measured
}

/// The median of the reports that have the figure, in `unit`s; a figure that is not more than 0 was too small to measure.
fn median<R>(
    reports: &[(PathBuf, R)],
    what: &str,
    unit: f64,
    figure: impl Fn(&R) -> Option<f64>,
) -> Option<Sourced<u64>> {
    let measurable = |report: &R| figure(report).filter(|value| *value > 0.0);
    let mut median = median_with_zeros(reports, what, unit, measurable)?;
    median.value = median.value.max(1);
    Some(median)
}

/// The same where nothing is a finding too: what is not seen costs nothing.
fn median_with_zeros<R>(
    reports: &[(PathBuf, R)],
    what: &str,
    unit: f64,
    figure: impl Fn(&R) -> Option<f64>,
) -> Option<Sourced<u64>> {
    let mut found: Vec<(f64, &PathBuf)> = reports
        .iter()
        .filter_map(|(path, report)| Some((figure(report)?, path)))
        .collect();
    let files = found.iter().map(|(_, path)| (*path).clone()).collect();
    found.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    let (least, most) = (found.first()?.0, found.last()?.0);
    let middle = found.len() / 2;
    let value = if found.len().is_multiple_of(2) {
        f64::midpoint(found[middle - 1].0, found[middle].0)
    } else {
        found[middle].0
    };
    let source = Source::Report(Reports {
        what: what.to_owned(),
        files,
        least,
        most,
    });
    Some(Sourced::new((value * unit).round() as u64, source))
}

fn report_files(path: &Path) -> Result<Vec<PathBuf>, MeasuredError> {
    let failed = |source| MeasuredError::Io {
        path: path.to_owned(),
        source,
    };
    if !fs::metadata(path).map_err(failed)?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    for entry in fs::read_dir(path).map_err(failed)? {
        let entry = entry.map_err(failed)?.path();
        let of_folder = entry.join("report.json");
        if entry.is_file()
            && entry
                .extension()
                .is_some_and(|extension| extension == "json")
        {
            files.push(entry);
        } else if of_folder.is_file() {
            files.push(of_folder);
        }
    }
    if files.is_empty() {
        return Err(MeasuredError::NoReport {
            path: path.to_owned(),
        });
    }
    files.sort();
    Ok(files)
}

fn compare(
    first: &StoredReport,
    second: &StoredReport,
    same: &[&'static str],
) -> Result<(), MeasuredError> {
    let different = same
        .iter()
        .copied()
        .find(|pointer| first.at(pointer) != second.at(pointer));
    match different {
        None => Ok(()),
        Some(what) => Err(MeasuredError::Different {
            first: first.path().to_owned(),
            second: second.path().to_owned(),
            what,
            of_first: first.at(what).to_string(),
            of_second: second.at(what).to_string(),
        }),
    }
}
