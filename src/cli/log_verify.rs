use std::fmt::Write;
use std::path::Path;

use serde::Serialize;

use crate::storage::verify::{Problem, Verification, verify_partition, verify_segment};

use super::log_files::{LogFiles, LogFilesError};

/// What `corelog log verify` found, over everything that it was pointed at.
#[derive(Debug, Default, Serialize)]
pub(super) struct VerifyReport {
    partitions: u64,
    segments: u64,
    batches: u64,
    records: u64,
    bytes: u64,
    problems: Vec<ReportedProblem>,
}

#[derive(Debug, Serialize)]
struct ReportedProblem {
    path: String,
    /// In bytes from the file's start.
    position: u64,
    /// `None` where the problem concerns no record.
    offset: Option<i64>,
    problem: String,
}

/// Verifies the partitions or the segment at `path`.
pub(super) fn verify(path: &Path, records: bool) -> Result<VerifyReport, LogFilesError> {
    let mut report = VerifyReport::default();
    match LogFiles::at(path)? {
        LogFiles::Partitions(dirs) => {
            for dir in dirs {
                report.add(verify_partition(&dir, records)?);
            }
        }
        LogFiles::Segment { dir, name } => {
            report.add(verify_segment(&dir, name.base_offset, records)?);
        }
    }
    Ok(report)
}

impl VerifyReport {
    pub(super) fn is_good(&self) -> bool {
        self.problems.is_empty()
    }

    /// The problems, a line each, and what was read.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        for ReportedProblem {
            path,
            position,
            offset,
            problem,
        } in &self.problems
        {
            let offset = offset.map_or(String::new(), |offset| format!(", offset {offset}"));
            writeln!(text, "{path}: position {position}{offset}: {problem}")
                .expect("a String takes every write");
        }
        let Self {
            partitions,
            segments,
            batches,
            records,
            bytes,
            problems,
        } = self;
        let found = problems.len();
        write!(
            text,
            "{found} problems in {partitions} partitions, {segments} segments, {batches} batches, {records} records, {bytes} bytes"
        )
        .expect("a String takes every write");
        text
    }

    fn add(&mut self, found: Verification) {
        self.partitions += 1;
        self.segments += found.segment_count;
        self.batches += found.batch_count;
        self.records += found.record_count;
        self.bytes += found.bytes;
        self.problems
            .extend(found.problems.iter().map(ReportedProblem::of));
    }
}

impl ReportedProblem {
    fn of(problem: &Problem) -> Self {
        Self {
            path: problem.path.display().to_string(),
            position: problem.position.0,
            offset: (problem.offset.0 >= 0).then_some(problem.offset.0),
            problem: problem.fault.to_string(),
        }
    }
}
