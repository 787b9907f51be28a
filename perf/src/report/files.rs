//! A report on disk: JSON for programs, text for people, raw histograms for whoever doubts the percentiles.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use hdrhistogram::serialization::V2Serializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};

use super::{Report, page, text};
use crate::columns::Columns;
use crate::histogram::LatencyHistogram;

const TEXT_FILE: &str = "report.txt";

/// HdrHistogram's log shows maxima in this unit: milliseconds.
const NS_PER_MS: f64 = 1e6;

#[derive(Debug, thiserror::Error)]
#[error("the report could not be written to {path}: {source}")]
pub struct WriteError {
    path: PathBuf,
    source: io::Error,
}

/// One histogram of the run under a name without spaces.
pub struct RawHistogram {
    pub tag: String,
    pub seconds: f64,
    pub histogram: LatencyHistogram,
}

impl RawHistogram {
    /// The tag of what step `step` measured under `name`; steps count from 0.
    pub fn tag_of(step: usize, name: &str) -> String {
        format!("step{step}-{name}")
    }

    /// The same of a search's try.
    pub fn tag_of_try(number: usize, name: &str) -> String {
        format!("try{number}-{name}")
    }
}

pub fn write_json(report: &impl serde::Serialize, path: &Path) -> Result<(), WriteError> {
    let write = || -> io::Result<()> {
        let mut file = BufWriter::new(File::create(path)?);
        serde_json::to_writer_pretty(&mut file, report)?;
        writeln!(file)?;
        file.flush()
    };
    write().map_err(|source| WriteError {
        path: path.to_owned(),
        source,
    })
}

pub fn write_text(text: &str, path: &Path) -> Result<(), WriteError> {
    fs::write(path, text).map_err(|source| WriteError {
        path: path.to_owned(),
        source,
    })
}

#[derive(Debug, thiserror::Error)]
#[error("there is no report of a run in {directory}: {source}")]
pub struct NoReport {
    directory: PathBuf,
    source: io::Error,
}

/// The text of the report that `write_directory` left.
pub fn read_text(directory: &Path) -> Result<String, NoReport> {
    fs::read_to_string(directory.join(TEXT_FILE)).map_err(|source| NoReport {
        directory: directory.to_owned(),
        source,
    })
}

#[derive(Debug, thiserror::Error)]
pub enum OccupiedError {
    #[error("--out {}: there is something in it already, and no report is written over another: name a new directory", .0.display())]
    Occupied(PathBuf),
    #[error("--out {}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
}

/// Whether a report can go there without writing over anything: the directory is not there, or empty.
pub fn check_free(directory: &Path) -> Result<(), OccupiedError> {
    match fs::read_dir(directory).map(|mut entries| entries.next().is_some()) {
        Ok(false) => Ok(()),
        Ok(true) => Err(OccupiedError::Occupied(directory.to_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(source) => Err(OccupiedError::Io {
            path: directory.to_owned(),
            source,
        }),
    }
}

/// `results/<date>-<name>` from where the tool was started, or with a number behind it if that is there already; the date is UTC's.
pub fn default_directory(name: &str) -> PathBuf {
    let date = jiff::Timestamp::now().strftime("%Y-%m-%d");
    let first = format!("results/{date}-{name}");
    let numbered = (2..).map(|number| PathBuf::from(format!("{first}-{number}")));
    std::iter::once(PathBuf::from(&first))
        .chain(numbered)
        .find(|directory| !directory.exists())
        .expect("one of so many is free")
}

/// Writes `report.json`, `report.txt`, `report.html` and `latency.hlog`.
pub fn write_directory(
    report: &Report,
    histograms: &[RawHistogram],
    directory: &Path,
) -> Result<(), WriteError> {
    let page = page::html(report, histograms);
    let text = text(report, Columns::OF_A_FILE);
    write_files(report, &text, &page, directory)?;
    let path = directory.join("latency.hlog");
    write_histograms(report, histograms, &path).map_err(|source| WriteError { path, source })
}

pub fn make_directory(directory: &Path) -> Result<(), WriteError> {
    fs::create_dir_all(directory).map_err(|source| WriteError {
        path: directory.to_owned(),
        source,
    })
}

/// Writes `report.json`, `report.txt` and `report.html`, whatever they are about.
pub fn write_files(
    report: &impl serde::Serialize,
    text: &str,
    page: &str,
    directory: &Path,
) -> Result<(), WriteError> {
    make_directory(directory)?;
    write_json(report, &directory.join("report.json"))?;
    write_text(text, &directory.join(TEXT_FILE))?;
    write_text(page, &directory.join("report.html"))
}

fn write_histograms(report: &Report, histograms: &[RawHistogram], path: &Path) -> io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    let mut serializer = V2Serializer::new();
    let start = UNIX_EPOCH + Duration::from_millis(report.provenance.started_unix_ms);
    let mut log = IntervalLogWriterBuilder::new()
        .add_comment("latencies in nanoseconds, maxima in milliseconds")
        .with_start_time(start)
        .with_base_time(start)
        .with_max_value_divisor(NS_PER_MS)
        .begin_log_with(&mut file, &mut serializer)?;
    for RawHistogram {
        tag,
        seconds,
        histogram,
    } in histograms
    {
        let length = Duration::from_secs_f64(*seconds);
        log.write_histogram(histogram.inner(), Duration::ZERO, length, Tag::new(tag))
            .map_err(|error| io::Error::other(format!("{error:?}")))?;
    }
    file.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_goes_only_where_nothing_is() {
        let folder = tempfile::tempdir().expect("a directory");
        assert!(check_free(folder.path()).is_ok());
        assert!(check_free(&folder.path().join("new")).is_ok());
        let file = folder.path().join("report.json");
        fs::write(&file, "old").expect("it is written");
        let refused = check_free(folder.path()).expect_err("occupied");
        assert!(refused.to_string().contains("written over"), "{refused}");
        assert!(check_free(&file).is_err());
    }
}
