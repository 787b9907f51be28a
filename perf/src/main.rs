//! `corelog-perf`: puts load on a Kafka-protocol broker and measures it against what the machine can do.

#![deny(unsafe_code)]

mod audit; // proof that no record was lost
mod baseline; // disk, loopback and memory without a broker
mod checksum; // CRC-32C of bytes that mostly stay
mod cli; // flags
mod client; // the Kafka protocol, as far as a load needs it
mod clock; // one time for all threads
mod compression; // gzip, snappy, lz4, zstd
mod consumer; // tail, replay, reading back
mod cpu; // /proc: who used how much
mod driver; // which cluster, and how its clients are set
mod histogram; // latencies
mod interrupt; // Ctrl-C
mod keys; // record keys, and their partitions
mod live; // counters while it runs
mod payload; // what records are filled with
mod plan; // flags, driver and workload together
mod producer; // paced sending
mod progress; // what the terminal shows
mod provenance; // where a report comes from
mod quantity; // 1MB, 200MB/s, 20s
mod record; // what each record carries
mod report; // JSON, text, raw histograms
mod run; // the order of a run
mod schedule; // when each record is due
mod settings_file; // YAML whose keys are all known
mod spelling; // what a misspelt name meant
mod timeline; // second by second
mod workload; // built-in loads, and those from files

use std::process::ExitCode;

use clap::Parser;

use crate::baseline::BaselinePlan;
use crate::cli::{BaselineArgs, Cli, Command, RunArgs};
use crate::interrupt::Interrupt;
use crate::payload::PayloadPool;
use crate::progress::Progress;
use crate::report::AuditOutcome;

/// The run was measured, and records are lost, doubled, reordered or changed.
const EXIT_AUDIT_FAILED: u8 = 1;
/// What was asked for cannot be run.
const EXIT_USAGE: u8 = 2;
/// It could not be measured, or not to the end.
const EXIT_FAILED: u8 = 3;

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Run(arguments) => run(&arguments),
        Command::Baseline(arguments) => baseline(&arguments),
        Command::Workloads => workloads(),
    }
}

fn run(arguments: &RunArgs) -> ExitCode {
    let plan = match arguments.plan() {
        Ok(plan) => plan,
        Err(error) => return fail(EXIT_USAGE, &error),
    };
    let payloads = match PayloadPool::open(&plan.payload, plan.message_bytes) {
        Ok(payloads) => payloads,
        Err(error) => return fail(EXIT_USAGE, &error),
    };
    let interrupt = match Interrupt::install() {
        Ok(interrupt) => interrupt,
        Err(error) => return fail(EXIT_FAILED, &error),
    };
    let finished = match run::run(arguments, plan, payloads, interrupt) {
        Ok(finished) => finished,
        Err(error) => return fail(EXIT_FAILED, &error),
    };
    print!("{}", report::text(&finished.report));
    if let Some(path) = &arguments.json
        && let Err(error) = report::write_json(&finished.report, path)
    {
        return fail(EXIT_FAILED, &error);
    }
    if let Some(directory) = &arguments.out {
        if let Err(error) =
            report::write_directory(&finished.report, &finished.histograms, directory)
        {
            return fail(EXIT_FAILED, &error);
        }
        println!("Report: {}", directory.join("report.json").display());
    }
    match finished.report.audit.outcome {
        AuditOutcome::Failed => ExitCode::from(EXIT_AUDIT_FAILED),
        _ if finished.report.failure.is_some() => ExitCode::from(EXIT_FAILED),
        _ => ExitCode::SUCCESS,
    }
}

fn baseline(arguments: &BaselineArgs) -> ExitCode {
    let plan = BaselinePlan {
        directory: Some(&arguments.dir),
        file_bytes: arguments.baseline_bytes,
        each: arguments.baseline_seconds,
    };
    let mut progress = Progress::new();
    progress.phase("baseline", None);
    let baseline = baseline::measure(&plan, |what| progress.doing(what));
    progress.finish();
    print!("{}", report::baseline_text(&baseline));
    match &arguments.json {
        Some(path) => report::write_json(&baseline, path)
            .map_or_else(|error| fail(EXIT_FAILED, &error), |()| ExitCode::SUCCESS),
        None => ExitCode::SUCCESS,
    }
}

fn workloads() -> ExitCode {
    print!("{}", report::workloads_text());
    ExitCode::SUCCESS
}

fn fail(code: u8, error: &dyn std::error::Error) -> ExitCode {
    eprintln!("corelog-perf: {error}");
    ExitCode::from(code)
}
