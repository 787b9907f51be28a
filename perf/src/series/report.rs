//! The series as JSON: schema `corelog-perf-series`, which `perf/REPORT.md` documents.

use std::path::PathBuf;

use serde::Serialize;

use crate::compare::Comparison;
use crate::provenance::{Machine, Tool};

pub const SERIES_SCHEMA: &str = "corelog-perf-series";
pub const SERIES_SCHEMA_VERSION: u32 = 1;

#[derive(Clone, Debug, Serialize)]
pub struct SeriesReport {
    pub schema: &'static str,
    pub schema_version: u32,
    /// False if it was ended before its last turn.
    pub complete: bool,
    pub started_unix_ms: u64,
    pub argv: Vec<String>,
    pub tool: Tool,
    pub machine: Machine,
    /// Of each case on each cluster.
    pub runs: u32,
    pub cases: Vec<CaseReport>,
}

#[derive(Clone, Debug, Serialize)]
pub struct CaseReport {
    pub name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub what: String,
    /// What followed `corelog-perf run`.
    pub run: Vec<String>,
    pub contenders: Vec<ContenderReport>,
    /// Turns that did not come to their end, and why.
    pub failures: Vec<String>,
    pub audit_failed: bool,
    pub comparison: Comparison,
}

#[derive(Clone, Debug, Serialize)]
pub struct ContenderReport {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bootstrap: Option<String>,
    /// Directories of the runs that came to their end, from the series' own.
    pub reports: Vec<PathBuf>,
}

impl SeriesReport {
    pub fn failure_count(&self) -> usize {
        self.cases.iter().map(|case| case.failures.len()).sum()
    }

    pub fn audit_failed(&self) -> bool {
        self.cases.iter().any(|case| case.audit_failed)
    }
}
