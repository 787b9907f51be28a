//! A run from its report: the command line that it was made with.

use std::path::PathBuf;

use crate::cli::{ArgvError, RerunArgs, RunArgs};
use crate::report::{StoredError, StoredReport};

#[derive(Debug, thiserror::Error)]
pub enum RerunError {
    #[error(transparent)]
    Report(#[from] StoredError),
    #[error("{path}: it does not say how the run was started", path = path.display())]
    NoCommandLine { path: PathBuf },
    #[error("{path}: its command line is not one of a run by this version: {source}", path = path.display())]
    CommandLine { path: PathBuf, source: ArgvError },
}

/// Flags of the old run that say where it wrote. What names a cluster goes only with another cluster.
/// One run of a series is repeated alone.
const WHERE_IT_WROTE: [&str; 3] = ["--out", "--json", "--runs"];
const WHICH_CLUSTER: [&str; 3] = ["--bootstrap", "--broker-pid", "--broker-metrics"];

/// `-b`, with its value behind it or in the next argument.
pub const SHORT_BOOTSTRAP: &str = "-b";

/// The run that `arguments.report` tells of. It writes where it is told now, and nowhere if it is not.
pub fn run_again(arguments: &RerunArgs) -> Result<RunArgs, RerunError> {
    let report = StoredReport::read(&arguments.report)?;
    let path = report.path().to_owned();
    let Some(argv) = argv_of(&report) else {
        return Err(RerunError::NoCommandLine { path });
    };
    let mut argv = without(argv, &WHERE_IT_WROTE);
    if let Some(bootstrap) = &arguments.bootstrap {
        argv = without(argv, &WHICH_CLUSTER);
        argv.extend(["--bootstrap".to_owned(), bootstrap.clone()]);
    }
    if let Some(out) = &arguments.out {
        argv.extend(["--out".to_owned(), out.display().to_string()]);
    }
    RunArgs::from_argv(argv).map_err(|source| RerunError::CommandLine { path, source })
}

/// `argv` without these flags and their values, in either of the forms that a flag has.
pub fn without(argv: Vec<String>, flags: &[&str]) -> Vec<String> {
    let mut kept = Vec::with_capacity(argv.len());
    let mut argv = argv.into_iter();
    while let Some(argument) = argv.next() {
        let is_short = argument.starts_with(SHORT_BOOTSTRAP);
        let (name, has_value) = match argument.split_once('=') {
            _ if is_short => ("--bootstrap", argument != SHORT_BOOTSTRAP),
            Some((name, _)) => (name, true),
            None => (argument.as_str(), false),
        };
        if !flags.contains(&name) {
            kept.push(argument);
        } else if !has_value {
            let _value = argv.next();
        }
    }
    kept
}

fn argv_of(report: &StoredReport) -> Option<Vec<String>> {
    let argv = report.at("/provenance/argv").as_array()?.iter();
    argv.map(|it| it.as_str().map(str::to_owned)).collect()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Command};
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
    fn a_short_flag_is_left_out_with_its_value() {
        for short in [
            &["-b", "a:1"][..],
            &["-ba:1"],
            &["-b=a:1"],
            &["--bootstrap=a:1"],
        ] {
            let argv = short.iter().chain(&["--rate", "max"]);
            let left = without(argv.map(ToString::to_string).collect(), &["--bootstrap"]);
            assert_eq!(left, ["--rate", "max"], "{short:?}");
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
            "--json=old.json",
        ];
        let again = rerun(&argv, &["--out", "new"]).expect("a run");
        assert_eq!(again.workload, "1-topic-16-partitions-1kb");
        assert_eq!(
            (again.rate.len(), again.bootstrap.as_deref()),
            (2, Some("a:1"))
        );
        assert_eq!(again.out, Some(PathBuf::from("new")));
        assert_eq!(again.json, None);
        let repeated = argv[..7].iter().chain(["--out", "new"].iter());
        assert!(again.argv.iter().eq(repeated), "{:?}", again.argv);
        let elsewhere = rerun(&argv, &["--bootstrap", "b:2"]).expect("a run");
        assert_eq!(
            (elsewhere.bootstrap.as_deref(), elsewhere.out),
            (Some("b:2"), None)
        );
    }

    #[test]
    fn a_search_and_a_ramp_are_repeated_with_their_bounds() {
        let search = [
            "corelog-perf",
            "run",
            "--rate",
            "search",
            "--hold",
            "p99:10ms",
        ];
        let again = rerun(&search, &[]).expect("a run").plan().expect("a plan");
        let hold = again.offer.search().expect("a search").hold;
        assert_eq!(hold.to_string(), "p99 <= 10 ms");
        let ramp = ["corelog-perf", "run", "--rate=ramp:1MB/s..3MB/s:3"];
        let again = rerun(&ramp, &[]).expect("a run").plan().expect("a plan");
        assert_eq!(again.offer.rates().len(), 3);
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
