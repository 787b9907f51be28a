//! What reports of runs tell about a broker: what its disk writes, and what producing and reading cost it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::run_report::RunReport;
use super::source::{Reports, Source, Sourced};
use crate::report::{StoredError, StoredReport};

/// What must be the same in all reports, or they did not measure the same thing.
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
    /// Of the machine that was measured.
    pub cores: Option<Sourced<u64>>,
    pub memory_bytes: Option<Sourced<u64>>,
    /// What the reports do not tell, and why.
    pub remarks: Vec<String>,
}

/// Reads reports; of a directory all its `*.json` and the `report.json` of each folder in it.
pub fn read(paths: &[PathBuf]) -> Result<Measured, MeasuredError> {
    let mut files = Vec::new();
    for path in paths {
        files.extend(report_files(path)?);
    }
    let mut first: Option<StoredReport> = None;
    let mut reports = Vec::new();
    for path in &files {
        let report = StoredReport::read_valid(path)?;
        let run: RunReport = report.fields()?;
        compare(first.get_or_insert_with(|| report.clone()), &report)?;
        reports.push((path.clone(), run));
    }
    figures(paths, &reports)
}

fn figures(paths: &[PathBuf], reports: &[(PathBuf, RunReport)]) -> Result<Measured, MeasuredError> {
    let mut measured = Measured::default();
    let mut missing = |value: Option<Sourced<u64>>, what: &str| {
        if value.is_none() {
            measured
                .remarks
                .push(format!("The reports do not tell {what}."));
        }
        value
    };
    let disk = missing(
        median(
            reports,
            "best O_DIRECT write of the disk alone",
            1e6,
            RunReport::disk_mb_per_s,
        ),
        "what the disk writes (no O_DIRECT disk baseline)",
    );
    let acked = reports
        .iter()
        .filter_map(|(_, report)| report.busiest_step())
        .map(|step| step.acked_mb_per_s)
        .fold(0.0, f64::max);
    let lead = missing(
        median(
            reports,
            &format!("broker CPU of producing at {acked:.0} MB/s"),
            1e9,
            RunReport::lead_s_per_gb,
        ),
        "c_lead (no broker on the machine, several copies, or consumers whose cost is not known)",
    );
    let fetch = missing(
        median(
            reports,
            "broker CPU of reading from memory",
            1e9,
            RunReport::fetch_s_per_gb,
        ),
        "c_fetch (no read of the newest records)",
    );
    if disk.is_none() && lead.is_none() && fetch.is_none() {
        return Err(MeasuredError::Nothing {
            path: paths.first().cloned().unwrap_or_default(),
            missing: measured.remarks.join(" "),
        });
    }
    measured.disk_bytes_per_s = disk;
    measured.lead_ns_per_gb = lead;
    measured.fetch_ns_per_gb = fetch;
    measured.cores = median(reports, "cores of the machine", 1.0, |report| {
        Some(report.provenance.machine.cores as f64)
    });
    measured.memory_bytes = median(reports, "memory of the machine", 1.0, |report| {
        Some(report.provenance.machine.memory_bytes as f64)
    });
    Ok(measured)
}

/// The median of the reports that have the figure, in `unit`s; a figure that is not more than 0 was too small to measure.
fn median(
    reports: &[(PathBuf, RunReport)],
    what: &str,
    unit: f64,
    figure: impl Fn(&RunReport) -> Option<f64>,
) -> Option<Sourced<u64>> {
    let mut found: Vec<(f64, &PathBuf)> = reports
        .iter()
        .filter_map(|(path, report)| Some((figure(report)?, path)))
        .filter(|(value, _)| *value > 0.0)
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
    let value = ((value * unit).round() as u64).max(1);
    Some(Sourced::new(value, source))
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

fn compare(first: &StoredReport, second: &StoredReport) -> Result<(), MeasuredError> {
    let different = SAME_IN_ALL
        .into_iter()
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
