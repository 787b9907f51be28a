//! A series as a whole, against a broker that keeps nothing.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

use clap::Parser;

use super::{Series, SeriesReport};
use crate::cli::{Cli, Command, RunArgs};
use crate::interrupt::Interrupt;
use crate::null_broker::NullBroker;

const QUICK: &str = "1-topic-1-partition-1kb --rate 1MB/s --duration 200ms --warmup 0s --consumers 0 --read-duration 0s --audit off \
    --baseline-seconds 0s";

/// Runs `body` with the address of a broker.
fn with_broker<T>(body: impl FnOnce(&str) -> T) -> T {
    let broker = NullBroker::start(([127, 0, 0, 1], 0).into(), 1).expect("a port is free");
    let address = broker.address().to_string();
    let (interrupt, asked) = Interrupt::for_tests();
    let thread = thread::spawn(move || broker.run(&interrupt));
    let result = body(&address);
    asked.store(true, Relaxed);
    thread.join().expect("the broker does not panic");
    result
}

fn never() -> (Interrupt, Arc<AtomicBool>) {
    Interrupt::for_tests()
}

fn versus(flags: &[&str]) -> Series {
    let argv = ["corelog-perf", "versus"].iter().chain(flags);
    match Cli::try_parse_from(argv).expect("clap accepts it").command {
        Command::Versus(arguments) => Series::versus(arguments).expect("a series"),
        _ => unreachable!("it is versus"),
    }
}

fn reports_of(report: &SeriesReport) -> Vec<Vec<String>> {
    let contenders = report.cases.iter().flat_map(|case| &case.contenders);
    contenders
        .map(|it| {
            it.reports
                .iter()
                .map(|path| path.display().to_string())
                .collect()
        })
        .collect()
}

fn script(path: &Path, text: &str) -> String {
    fs::write(path, format!("#!/bin/sh\n{text}\n")).expect("it is written");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("it is executable");
    path.display().to_string()
}

#[test]
fn clusters_take_turns_and_every_run_leaves_its_report() {
    let folder = tempfile::tempdir().expect("a directory");
    let turns = folder.path().join("turns");
    let switch = script(
        &folder.path().join("switch"),
        &format!("echo $1 >> {}", turns.display()),
    );
    let out = folder.path().join("out");
    let report = with_broker(|address| {
        let (a, b) = (format!("one={address}"), format!("two={address}"));
        let out = out.display().to_string();
        let mut flags = vec!["--a", &a, "--b", &b, "--runs", "2", "--switch", &switch];
        flags.extend(["--out", &out, "--"]);
        flags.extend(QUICK.split_whitespace());
        versus(&flags).run(&never().0).expect("it is written")
    });
    assert!(report.complete && report.failure_count() == 0);
    assert_eq!(
        fs::read_to_string(turns).expect("turns"),
        "one\ntwo\none\ntwo\n"
    );
    assert_eq!(
        reports_of(&report),
        [["one-1", "one-2"], ["two-1", "two-2"]]
    );
    for path in [
        "one-1/report.json",
        "two-2/report.html",
        "report.json",
        "report.txt",
        "report.html",
    ] {
        assert!(out.join(path).is_file(), "{path}");
    }
    let throughput = &report.cases[0].comparison.rows[0];
    let values = throughput
        .cells
        .iter()
        .flatten()
        .map(|cell| cell.values.len());
    assert_eq!(values.collect::<Vec<_>>(), [2, 2]);
}

#[test]
fn every_cluster_answers_and_is_warmed_before_the_first_turn() {
    let folder = tempfile::tempdir().expect("a directory");
    let out = folder.path().join("out").display().to_string();
    let turns = folder.path().join("turns");
    let switch = script(
        &folder.path().join("switch"),
        &format!("echo $1 >> {}", turns.display()),
    );
    with_broker(|address| {
        let series = |b: &str, warm: &str| {
            let (a, b) = (format!("one={address}"), format!("two={b}"));
            let mut flags = vec!["--a", &a, "--b", &b, "--warm", warm, "--out", &out, "--"];
            flags.extend(QUICK.split_whitespace());
            flags.splice(0..0, ["--switch", switch.as_str()]);
            versus(&flags)
        };
        let refused = series("127.0.0.1:1", "0s").make_ready(&never().0);
        let refused = refused.expect_err("nobody listens there");
        assert!(!refused.is_usage() && refused.to_string().contains("127.0.0.1:1"));
        fs::remove_file(&turns).expect("the command was run");
        series(address, "100ms")
            .make_ready(&never().0)
            .expect("both answer");
    });
    // Whether each answers, then each warmed.
    assert_eq!(
        fs::read_to_string(turns).expect("turns"),
        "one\ntwo\none\ntwo\n"
    );
    assert!(
        !Path::new(&out).exists(),
        "what only warms leaves no report"
    );
}

#[test]
fn a_turn_that_fails_is_told_and_the_others_go_on() {
    let folder = tempfile::tempdir().expect("a directory");
    let switch = script(&folder.path().join("switch"), "[ $1 = two ]");
    let out = folder.path().join("out").display().to_string();
    let report = with_broker(|address| {
        let (a, b) = (format!("one={address}"), format!("two={address}"));
        let mut flags = vec!["--a", &a, "--b", &b, "--runs", "1", "--switch", &switch];
        flags.extend(["--out", &out, "--"]);
        flags.extend(QUICK.split_whitespace());
        versus(&flags).run(&never().0).expect("it is written")
    });
    assert_eq!(report.failure_count(), 1);
    assert!(report.cases[0].failures[0].starts_with("one-1: "));
    assert_eq!(reports_of(&report), [vec![], vec!["two-1".to_owned()]]);
}

#[test]
fn a_run_repeated_keeps_its_flags_and_gets_directories_of_its_own() {
    let folder = tempfile::tempdir().expect("a directory");
    let out = folder.path().display().to_string();
    let report = with_broker(|address| {
        let argv = format!("corelog-perf run {QUICK} --runs 2 --bootstrap {address} --out {out}");
        let argv = argv.split_whitespace().map(str::to_owned).collect();
        let arguments = RunArgs::from_argv(argv).expect("a run");
        let series = Series::of_runs(&arguments).expect("a series");
        series.run(&never().0).expect("it is written")
    });
    assert_eq!(reports_of(&report), [["run-1", "run-2"]]);
    let again = report.cases[0].run.join(" ");
    assert_eq!(
        again,
        QUICK.split_whitespace().collect::<Vec<_>>().join(" ")
    );
    let first = fs::read_to_string(folder.path().join("run-1/report.json")).expect("a report");
    assert!(
        !first.contains("--runs"),
        "a run's own command line is that of one run"
    );
}
