//! Whose turn it is: every cluster runs a case once before any runs it again, so that a slow minute of the machine hits all.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::str::FromStr;
use std::time::Duration;

use super::case::{Case, is_directory_name, read_set};
use super::report::{CaseReport, ContenderReport, SERIES_SCHEMA, SERIES_SCHEMA_VERSION};
use super::{SeriesError, SeriesReport, write_directory};
use crate::bootstrap::with_ports;
use crate::cli::{RunArgs, VersusArgs};
use crate::client::cluster::Cluster;
use crate::compare::{Comparison, Side};
use crate::interrupt::Interrupt;
use crate::provenance::{Machine, Tool, unix_ms_now};
use crate::report::{
    AuditOutcome, Loop, Report, StepReport, WriteError, check_free, default_directory, number,
};
use crate::rerun::without;
use crate::run::{self, RunError};

/// More runs than anybody waits for.
const RUNS_MAX: u32 = 1_000;

/// A cluster that takes its turns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contender {
    name: String,
    /// None: whatever the case's own flags or driver name.
    bootstrap: Option<String>,
}

impl FromStr for Contender {
    type Err = String;

    /// `NAME=HOST:PORT`; the name is also that of its directories.
    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((name, bootstrap)) if is_directory_name(name) && !bootstrap.is_empty() => {
                Ok(Self {
                    name: name.to_owned(),
                    bootstrap: Some(with_ports(bootstrap)),
                })
            }
            _ => Err(format!("'{text}' is not NAME=HOST:PORT")),
        }
    }
}

pub struct Series {
    argv: Vec<String>,
    cases: Vec<Case>,
    contenders: Vec<Contender>,
    /// Of each case on each cluster.
    runs: u32,
    /// Load on each cluster before the first turn.
    warm: Duration,
    /// Run before each turn with the cluster's name behind it; the turn begins when it has ended well.
    switch: Option<PathBuf>,
    pub directory: PathBuf,
}

/// Why a turn did not come to its end.
enum Failure {
    Switch(PathBuf, io::Error),
    SwitchEnded(PathBuf, std::process::ExitStatus),
    Series(SeriesError),
    Run(run::RunError),
    Ended(String),
    Audit,
}

/// Why the first turn cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum NotReady {
    #[error("{0}")]
    Switch(String),
    #[error(transparent)]
    Run(#[from] RunError),
}

impl NotReady {
    /// Whether nobody could run what was asked for.
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::Run(error) if error.is_usage())
    }
}

impl Series {
    /// The run of `arguments`, as often as they say.
    pub fn of_runs(arguments: &RunArgs) -> Result<Self, SeriesError> {
        // The program and its command stand before the flags.
        let flags = arguments.argv.iter().skip(2).cloned().collect();
        let flags = without(flags, &["--runs", "--out", "--json", "--bootstrap"]);
        let name = Path::new(&arguments.workload)
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy();
        let series = Self {
            argv: arguments.argv.clone(),
            cases: vec![Case::new(&name, "", flags)?],
            contenders: vec![Contender {
                name: "run".to_owned(),
                bootstrap: arguments.bootstrap.clone(),
            }],
            runs: arguments.runs,
            switch: None,
            warm: Duration::ZERO,
            directory: arguments
                .out
                .clone()
                .unwrap_or_else(|| default_directory(&name)),
        };
        series.checked()
    }

    pub fn versus(arguments: VersusArgs) -> Result<Self, SeriesError> {
        let cases = match &arguments.set {
            Some(set) => read_set(set, &arguments.cases, &arguments.run)?,
            None => vec![Case::for_clusters("versus", "", arguments.run)?],
        };
        let series = Self {
            argv: arguments.argv,
            cases,
            contenders: vec![arguments.a, arguments.b],
            runs: arguments.runs,
            warm: arguments.warm,
            switch: arguments.switch,
            directory: arguments.out.unwrap_or_else(|| default_directory("versus")),
        };
        series.checked()
    }

    fn checked(self) -> Result<Self, SeriesError> {
        if !(1..=RUNS_MAX).contains(&self.runs) {
            return Err(SeriesError::Runs {
                got: self.runs,
                max: RUNS_MAX,
            });
        }
        check_free(&self.directory)?;
        match &self.contenders[..] {
            [one, other] if one.name == other.name => Err(SeriesError::SameContender {
                name: one.name.clone(),
            }),
            _ => Ok(self),
        }
    }

    /// What must be before the first turn: every cluster answers, and none is measured cold.
    pub fn make_ready(&self, interrupt: &Interrupt) -> Result<(), NotReady> {
        let Some(case) = self.cases.first() else {
            return Ok(());
        };
        let is_warmed = !self.warm.is_zero() && !case.only_reads().map_err(RunError::from)?;
        for contender in &self.contenders {
            self.answers(case, contender)?;
        }
        for contender in self.contenders.iter().filter(|_| is_warmed) {
            if interrupt.is_asked() {
                break;
            }
            self.switch_to(contender)
                .map_err(|failure| NotReady::Switch(failure.to_string()))?;
            eprintln!("== {}, warming ==", contender.name);
            let warming = case.warming(contender.bootstrap.as_deref(), self.warm);
            run::run_unwritten(&warming.map_err(RunError::from)?, interrupt)?;
        }
        Ok(())
    }

    /// Where a command switches between the clusters, after it has.
    fn answers(&self, case: &Case, contender: &Contender) -> Result<(), NotReady> {
        self.switch_to(contender)
            .map_err(|failure| NotReady::Switch(failure.to_string()))?;
        let bootstrap = match &contender.bootstrap {
            Some(bootstrap) => bootstrap.clone(),
            None => case.bootstrap().map_err(RunError::from)?,
        };
        Cluster::connect(&bootstrap).map_err(RunError::from)?;
        Ok(())
    }

    fn switch_to(&self, contender: &Contender) -> Result<(), Failure> {
        let Some(switch) = &self.switch else {
            return Ok(());
        };
        let ended = Command::new(switch)
            .arg(&contender.name)
            .stdin(Stdio::null())
            .status();
        let status = ended.map_err(|error| Failure::Switch(switch.clone(), error))?;
        match status.success() {
            true => Ok(()),
            false => Err(Failure::SwitchEnded(switch.clone(), status)),
        }
    }

    /// All turns. The summary is on disk after each case, so that what was measured is there whatever ends the series.
    pub fn run(&self, interrupt: &Interrupt) -> Result<SeriesReport, WriteError> {
        let mut report = SeriesReport {
            schema: SERIES_SCHEMA,
            schema_version: SERIES_SCHEMA_VERSION,
            complete: false,
            started_unix_ms: unix_ms_now(),
            argv: self.argv.clone(),
            tool: Tool::this(),
            machine: Machine::this(),
            runs: self.runs,
            cases: Vec::new(),
        };
        for (number, case) in self.cases.iter().enumerate() {
            if interrupt.is_asked() {
                break;
            }
            report.cases.push(self.case(number, case, interrupt));
            write_directory(&report, &self.directory)?;
        }
        report.complete = !interrupt.is_asked();
        write_directory(&report, &self.directory)?;
        Ok(report)
    }

    fn case(&self, number: usize, case: &Case, interrupt: &Interrupt) -> CaseReport {
        let mut reports = vec![Vec::new(); self.contenders.len()];
        let mut failures = Vec::new();
        let mut audit_failed = false;
        for run in 1..=self.runs {
            for (contender, reports) in self.contenders.iter().zip(&mut reports) {
                if interrupt.is_asked() {
                    break;
                }
                let name = format!("{}-{run}", contender.name);
                eprintln!(
                    "== case {} of {}: {}, {name} of {} ==",
                    number + 1,
                    self.cases.len(),
                    case.name(),
                    self.runs
                );
                let path = self.path_of(case).join(&name);
                match self.turn(case, contender, &self.directory.join(&path), interrupt) {
                    Ok(result) => {
                        eprintln!("{name}: {result}");
                        reports.push(path);
                    }
                    Err(failure) => {
                        audit_failed |= matches!(failure, Failure::Audit);
                        eprintln!("{name}: {failure}");
                        failures.push(format!("{name}: {failure}"));
                    }
                }
            }
        }
        let sides: Vec<Side> = self
            .contenders
            .iter()
            .zip(&reports)
            .map(|(contender, reports)| {
                let full: Vec<_> = reports.iter().map(|it| self.directory.join(it)).collect();
                Side::of_runs(&contender.name, &full)
            })
            .collect();
        CaseReport {
            name: case.name().to_owned(),
            what: case.what().to_owned(),
            run: case.flags().to_vec(),
            failures,
            audit_failed,
            contenders: self
                .contenders
                .iter()
                .zip(reports)
                .map(|(contender, reports)| ContenderReport {
                    name: contender.name.clone(),
                    bootstrap: contender.bootstrap.clone(),
                    reports,
                })
                .collect(),
            comparison: Comparison::of(&sides),
        }
    }

    /// The directory of a case in the series' own; where there is but one case it needs none.
    fn path_of(&self, case: &Case) -> PathBuf {
        match self.cases.len() {
            1 => PathBuf::new(),
            _ => PathBuf::from(case.name()),
        }
    }

    fn turn(
        &self,
        case: &Case,
        contender: &Contender,
        directory: &Path,
        interrupt: &Interrupt,
    ) -> Result<String, Failure> {
        self.switch_to(contender)?;
        let mut flags = vec!["--out".to_owned(), directory.display().to_string()];
        if let Some(bootstrap) = &contender.bootstrap {
            flags.extend(["--bootstrap".to_owned(), bootstrap.clone()]);
        }
        let arguments = case.arguments(&flags).map_err(Failure::Series)?;
        let finished = run::run_and_write(&arguments, interrupt).map_err(Failure::Run)?;
        match finished.report.failure {
            _ if finished.report.audit.outcome == AuditOutcome::Failed => Err(Failure::Audit),
            Some(reason) => Err(Failure::Ended(reason)),
            None if !finished.report.complete => Err(Failure::Ended("it was ended early".into())),
            None => Ok(in_short(&finished.report)),
        }
    }
}

/// One line of what a run came to.
fn in_short(report: &Report) -> String {
    let step = |step: &StepReport| {
        let p99 = step.publish_latency.filter(|_| step.load == Loop::Open);
        let p99 = p99.map_or_else(String::new, |it| format!(", p99 {} ms", number(it.p99_ms)));
        format!("{}: {} MB/s{p99}", step.rate, number(step.acked_mb_per_s))
    };
    let steps = report.steps.iter().map(step);
    let reads = report
        .reads
        .iter()
        .map(|read| format!("fetched {} MB/s", number(read.mb_per_s)));
    steps.chain(reads).collect::<Vec<_>>().join("; ")
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Switch(command, error) => {
                write!(f, "{} could not be started: {error}", command.display())
            }
            Self::SwitchEnded(command, status) => {
                write!(f, "{} ended with {status}", command.display())
            }
            Self::Series(error) => error.fmt(f),
            Self::Run(error) => error.fmt(f),
            Self::Ended(reason) => f.write_str(reason),
            Self::Audit => {
                f.write_str("its audit failed: records are lost, doubled, reordered or changed")
            }
        }
    }
}
