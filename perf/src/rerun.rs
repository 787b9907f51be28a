//! A run from its report: the command line that it was made with.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::Parser;
use serde_json::Value;

use crate::cli::{Cli, Command, RerunArgs, RunArgs};
use crate::report::{SCHEMA, SCHEMA_VERSION};

#[derive(Debug, thiserror::Error)]
pub enum RerunError {
    #[error("{path}: {source}", path = path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{path}: not the JSON of a report: {source}", path = path.display())]
    Json {
        path: PathBuf,
        source: serde_json::Error,
    },
    #[error("{path}: its schema is {found}, not {SCHEMA} version {SCHEMA_VERSION}", path = path.display())]
    Schema { path: PathBuf, found: String },
    #[error("{path}: it does not say how the run was started", path = path.display())]
    NoCommandLine { path: PathBuf },
    #[error("{path}: its command line is not one of a run by this version: {reason}", path = path.display())]
    CommandLine { path: PathBuf, reason: String },
}

/// The run that `arguments.report` tells of. It writes where it is told now, and nowhere if it is not.
pub fn run_again(arguments: &RerunArgs) -> Result<RunArgs, RerunError> {
    let mut run = read(&arguments.report)?;
    run.out.clone_from(&arguments.out);
    run.json = None;
    if let Some(bootstrap) = &arguments.bootstrap {
        run.bootstrap.clone_from(bootstrap);
        // The old cluster's process is none of the new one.
        run.broker_pid = None;
    }
    Ok(run)
}

fn read(path: &Path) -> Result<RunArgs, RerunError> {
    let path = path.to_owned();
    let text = match fs::read(&path) {
        Ok(text) => text,
        Err(source) => return Err(RerunError::Io { path, source }),
    };
    let report: Value = match serde_json::from_slice(&text) {
        Ok(report) => report,
        Err(source) => return Err(RerunError::Json { path, source }),
    };
    if report["schema"] != SCHEMA || report["schema_version"] != SCHEMA_VERSION {
        let found = format!("{} version {}", report["schema"], report["schema_version"]);
        return Err(RerunError::Schema { path, found });
    }
    let argv: Option<Vec<&str>> = report
        .pointer("/provenance/argv")
        .and_then(Value::as_array)
        .map(|argv| argv.iter().filter_map(Value::as_str).collect());
    let Some(argv) = argv else {
        return Err(RerunError::NoCommandLine { path });
    };
    match Cli::try_parse_from(argv) {
        Ok(Cli {
            command: Command::Run(run),
        }) => Ok(*run),
        Ok(_) => Err(RerunError::CommandLine {
            path,
            reason: "it is another command".to_owned(),
        }),
        Err(error) => Err(RerunError::CommandLine {
            path,
            reason: error.to_string(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    fn rerun(argv: &[&str], more: &[&str]) -> Result<RunArgs, RerunError> {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("report.json");
        let (mut report, _) = sample::report();
        report.provenance.argv = argv.iter().map(ToString::to_string).collect();
        crate::report::write_json(&report, &path).expect("it is written");
        let rerun = ["corelog-perf", "rerun"]
            .map(ToString::to_string)
            .into_iter();
        let rerun = rerun.chain([path.display().to_string()]);
        let cli = Cli::try_parse_from(rerun.chain(more.iter().map(ToString::to_string)));
        match cli.expect("clap accepts it").command {
            Command::Rerun(arguments) => run_again(&arguments),
            _ => panic!("another command"),
        }
    }

    #[test]
    fn a_run_is_repeated_as_it_was_but_writes_elsewhere() {
        let argv = [
            "corelog-perf",
            "run",
            "1-topic-16-partitions-1kb",
            "--rate",
            "max,20%",
            "--bootstrap",
            "a:1",
            "--out",
            "old",
        ];
        let again = rerun(&argv, &["--out", "new"]).expect("a run");
        assert_eq!(again.workload, "1-topic-16-partitions-1kb");
        assert_eq!((again.rate.len(), again.bootstrap.as_str()), (2, "a:1"));
        assert_eq!(again.out, Some(PathBuf::from("new")));
        let elsewhere = rerun(&argv, &["--bootstrap", "b:2"]).expect("a run");
        assert_eq!((elsewhere.bootstrap.as_str(), elsewhere.out), ("b:2", None));
    }

    #[test]
    fn a_report_of_another_command_is_refused() {
        for argv in [
            &["corelog-perf", "baseline"][..],
            &["corelog-perf", "run", "--no-such"],
        ] {
            assert!(matches!(
                rerun(argv, &[]),
                Err(RerunError::CommandLine { .. })
            ));
        }
    }
}
