//! `corelog-perf`: puts load on a Kafka-protocol broker and measures it against what the machine can do.

#![deny(unsafe_code)]

mod audit; // proof that no record was lost
mod baseline; // disk, loopback and memory without a broker
mod bootstrap; // where the cluster is
mod broker_metrics; // what a broker tells of itself
mod checksum; // CRC-32C of bytes that mostly stay
mod cli; // flags
mod client; // the Kafka protocol, as far as a load needs it
mod clock; // one time for all threads
mod columns; // text as wide as the terminal
mod commits; // offsets that groups commit
mod compare; // runs side by side
mod compression; // gzip, snappy, lz4, zstd
mod compressor; // one producer's codec
mod consumer; // tail, replay, reading back
mod cpu; // /proc: who used how much
mod crew; // the threads of a load step
mod driver; // which cluster, and how its clients are set
mod histogram; // latencies
mod interrupt; // Ctrl-C
mod keys; // record keys, and their partitions
mod live; // counters while it runs
mod load_stage; // steady, building a backlog, draining it
mod null_broker; // a broker that keeps nothing
mod offer; // rates, ramps, and what a search must hold
mod outage; // when acks stopped
mod page; // the frame of HTML pages
mod payload; // what records are filled with
mod plan; // flags, driver and workload together
mod producer; // paced sending
mod progress; // what the terminal shows
mod provenance; // where a report comes from
mod quantity; // 1MB, 200MB/s, 20s
mod ramp; // rates that still rise
mod record; // what each record carries
mod replay_from; // earliest, an offset, a time
mod report; // JSON, text, raw histograms
mod rerun; // a run from its report
mod run; // the order of a run
mod schedule; // when each record is due
mod search; // the highest rate that holds
mod series; // several runs in turn
mod settings_file; // YAML whose keys are all known
mod sizing; // how many brokers a load needs
mod spelling; // what a misspelt name meant
mod timeline; // second by second
mod unit_costs; // what a byte, a request, a partition cost
mod worker; // load from other machines
mod workload; // built-in loads, and those from files

use std::io::{ErrorKind, Write};
use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use clap_complete::Shell;

use crate::baseline::BaselinePlan;
use crate::cli::{
    BaselineArgs, Cli, Command, CompareArgs, NullBrokerArgs, RerunArgs, RunArgs, ShowArgs,
    VersusArgs, WorkerArgs,
};
use crate::columns::Columns;
use crate::commits::CommitsArgs;
use crate::compare::Comparison;
use crate::interrupt::Interrupt;
use crate::null_broker::NullBroker;
use crate::progress::Progress;
use crate::report::{AuditOutcome, BaselineLines};
use crate::series::Series;
use crate::sizing::SizeArgs;
use crate::unit_costs::UnitCostsArgs;
use crate::worker::Worker;

/// It was measured, and is not as it must be: records are lost, doubled, reordered or changed, or a bound was exceeded.
const EXIT_NOT_GOOD: u8 = 3;
/// What was asked for cannot be run.
const EXIT_USAGE: u8 = 2;
/// It could not be measured, or not to the end; no broker answers.
const EXIT_FAILED: u8 = 1;

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Run(mut arguments) => {
            arguments.argv = std::env::args().collect();
            run(&arguments)
        }
        Command::Baseline(arguments) => baseline(&arguments),
        Command::Size(arguments) => size(&arguments),
        Command::UnitCosts(mut arguments) => {
            arguments.argv = std::env::args().collect();
            unit_costs(&arguments)
        }
        Command::Commits(mut arguments) => {
            arguments.argv = std::env::args().collect();
            commits(&arguments)
        }
        Command::Workloads => workloads(),
        Command::Show(arguments) => show(&arguments),
        Command::Rerun(arguments) => rerun(&arguments),
        Command::Compare(arguments) => compare(&arguments),
        Command::Versus(mut arguments) => {
            arguments.argv = std::env::args().collect();
            versus(arguments)
        }
        Command::NullBroker(arguments) => null_broker(&arguments),
        Command::Worker(arguments) => worker(&arguments),
        Command::Completions { shell } => completions(shell),
    }
}

/// Made from the same definitions as the flags. A reader that has seen enough is no error.
fn completions(shell: Shell) -> ExitCode {
    let mut command = Cli::command();
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, name, &mut script);
    match std::io::stdout().write_all(&script) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => fail(EXIT_FAILED, &error),
        _ => ExitCode::SUCCESS,
    }
}

fn run(arguments: &RunArgs) -> ExitCode {
    let interrupt = match Interrupt::install() {
        Ok(interrupt) => interrupt,
        Err(error) => return fail(EXIT_FAILED, &error),
    };
    if arguments.runs != 1 {
        return match Series::of_runs(arguments) {
            Ok(series) => take_turns(&series, &interrupt),
            Err(error) => fail(EXIT_USAGE, &error),
        };
    }
    let finished = match run::run_and_write(arguments, &interrupt) {
        Ok(finished) => finished,
        Err(error) if error.is_usage() => return fail(EXIT_USAGE, &error),
        Err(error) => return fail(EXIT_FAILED, &error),
    };
    print!("{}", report::text(&finished.report, Columns::of_stdout()));
    if let Some(directory) = &finished.directory {
        println!("Report: {}", directory.join("report.html").display());
    }
    match finished.report.audit.outcome {
        AuditOutcome::Failed => ExitCode::from(EXIT_NOT_GOOD),
        _ if finished.report.failure.is_some() => ExitCode::from(EXIT_FAILED),
        _ => ExitCode::SUCCESS,
    }
}

fn versus(arguments: VersusArgs) -> ExitCode {
    let interrupt = match Interrupt::install() {
        Ok(interrupt) => interrupt,
        Err(error) => return fail(EXIT_FAILED, &error),
    };
    match Series::versus(arguments) {
        Ok(series) => take_turns(&series, &interrupt),
        Err(error) => fail(EXIT_USAGE, &error),
    }
}

fn take_turns(series: &Series, interrupt: &Interrupt) -> ExitCode {
    match series.make_ready(interrupt) {
        Ok(()) => {}
        Err(error) if error.is_usage() => return fail(EXIT_USAGE, &error),
        Err(error) => return fail(EXIT_FAILED, &error),
    }
    let report = match series.run(interrupt) {
        Ok(report) => report,
        Err(error) => return fail(EXIT_FAILED, &error),
    };
    print!("{}", series::text(&report, Columns::of_stdout()));
    println!(
        "\nReport: {}",
        series.directory.join("report.html").display()
    );
    match report.failure_count() {
        _ if report.audit_failed() => ExitCode::from(EXIT_NOT_GOOD),
        0 => ExitCode::SUCCESS,
        _ => ExitCode::from(EXIT_FAILED),
    }
}

fn baseline(arguments: &BaselineArgs) -> ExitCode {
    let plan = BaselinePlan {
        directory: Some(&arguments.dir),
        file_bytes: arguments.baseline_bytes,
        each: arguments.baseline_seconds,
        load: None,
    };
    let mut progress = Progress::new();
    progress.phase("baseline", None);
    let baseline = baseline::measure(&plan, |what| progress.doing(what));
    progress.finish();
    let text = BaselineLines::of(&baseline).to_string();
    print!("{}", Columns::of_stdout().fit(&text));
    match &arguments.json {
        Some(path) => report::write_json(&baseline, path)
            .map_or_else(|error| fail(EXIT_FAILED, &error), |()| ExitCode::SUCCESS),
        None => ExitCode::SUCCESS,
    }
}

fn size(arguments: &SizeArgs) -> ExitCode {
    let sizing = match sizing::size(arguments) {
        Ok(sizing) => sizing,
        Err(error) => return fail(EXIT_USAGE, &error),
    };
    if let Some(path) = &arguments.html
        && let Err(error) = report::write_text(&sizing.html(), path)
    {
        return fail(EXIT_FAILED, &error);
    }
    if arguments.json {
        println!(
            "{}",
            serde_json::to_string_pretty(&sizing).expect("a sizing is plain data")
        );
        return ExitCode::SUCCESS;
    }
    print!("{}", sizing.text(Columns::of_stdout()));
    if let Some(path) = &arguments.html {
        println!("\nPage: {}", path.display());
    }
    ExitCode::SUCCESS
}

fn unit_costs(arguments: &UnitCostsArgs) -> ExitCode {
    let interrupt = match Interrupt::install() {
        Ok(interrupt) => interrupt,
        Err(error) => return fail(EXIT_FAILED, &error),
    };
    let report = match unit_costs::measure(arguments, &interrupt) {
        Ok(report) => report,
        Err(error) if error.is_usage() => return fail(EXIT_USAGE, &error),
        Err(error) => return fail(EXIT_FAILED, &error),
    };
    print!("{}", unit_costs::text(&report, Columns::of_stdout()));
    if let Some(path) = &arguments.json
        && let Err(error) = report::write_json(&report, path)
    {
        return fail(EXIT_FAILED, &error);
    }
    if let Some(directory) = &arguments.out {
        let page = unit_costs::page(&report);
        let text = unit_costs::text(&report, Columns::OF_A_FILE);
        if let Err(error) = report::write_files(&report, &text, &page, directory) {
            return fail(EXIT_FAILED, &error);
        }
        println!("Report: {}", directory.join("report.html").display());
    }
    match report.valid {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(EXIT_NOT_GOOD),
    }
}

fn commits(arguments: &CommitsArgs) -> ExitCode {
    let interrupt = match Interrupt::install() {
        Ok(interrupt) => interrupt,
        Err(error) => return fail(EXIT_FAILED, &error),
    };
    let report = match commits::measure(arguments, &interrupt) {
        Ok(report) => report,
        Err(error) if error.is_usage() => return fail(EXIT_USAGE, &error),
        Err(error) => return fail(EXIT_FAILED, &error),
    };
    print!("{}", commits::text(&report, Columns::of_stdout()));
    if let Some(path) = &arguments.json
        && let Err(error) = report::write_json(&report, path)
    {
        return fail(EXIT_FAILED, &error);
    }
    match report.audit.wrong {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::from(EXIT_NOT_GOOD),
    }
}

fn workloads() -> ExitCode {
    print!("{}", report::workloads_text());
    ExitCode::SUCCESS
}

/// The text stands beside the report, as the terminal showed it.
fn show(arguments: &ShowArgs) -> ExitCode {
    match report::read_text(&arguments.directory) {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => fail(EXIT_USAGE, &error),
    }
}

fn rerun(arguments: &RerunArgs) -> ExitCode {
    match rerun::run_again(arguments) {
        Ok(again) => run(&again),
        Err(error) => fail(EXIT_USAGE, &error),
    }
}

fn compare(arguments: &CompareArgs) -> ExitCode {
    let comparison = match Comparison::read(&arguments.reports, arguments.anyway) {
        Ok(comparison) => comparison,
        Err(error) => return fail(EXIT_USAGE, &error),
    };
    print!("{}", compare::text(&comparison, Columns::of_stdout()));
    let pages = [
        arguments
            .html
            .as_ref()
            .map(|path| report::write_text(&compare::page(&comparison), path)),
        arguments
            .json
            .as_ref()
            .map(|path| report::write_json(&comparison, path)),
    ];
    if let Some(Err(error)) = pages.into_iter().flatten().find(Result::is_err) {
        return fail(EXIT_FAILED, &error);
    }
    let mut exit = ExitCode::SUCCESS;
    for failure in comparison.failures(&arguments.fail_on) {
        eprintln!(
            "corelog-perf: {}: {} of {} is {:.1} % worse",
            failure.side,
            failure.row.metric,
            failure.row.stretch,
            failure.worse_by * 100.0
        );
        exit = ExitCode::from(EXIT_NOT_GOOD);
    }
    match comparison.check_bounds(&arguments.fail_on) {
        Err(error) if exit == ExitCode::SUCCESS => fail(EXIT_USAGE, &error),
        Err(error) => {
            eprintln!("corelog-perf: {error}");
            exit
        }
        Ok(()) => exit,
    }
}

fn null_broker(arguments: &NullBrokerArgs) -> ExitCode {
    let interrupt = match Interrupt::install() {
        Ok(interrupt) => interrupt,
        Err(error) => return fail(EXIT_FAILED, &error),
    };
    let broker = match NullBroker::start(arguments.listen, arguments.partitions) {
        Ok(broker) => broker,
        Err(error) => return fail(EXIT_FAILED, &error),
    };
    println!(
        "null broker on {}: keeps nothing, answers at once; Ctrl-C ends it",
        broker.address()
    );
    broker.run(&interrupt);
    println!("{}", broker.totals());
    ExitCode::SUCCESS
}

fn worker(arguments: &WorkerArgs) -> ExitCode {
    let interrupt = match Interrupt::install() {
        Ok(interrupt) => interrupt,
        Err(error) => return fail(EXIT_FAILED, &error),
    };
    let worker = match Worker::start(arguments.listen) {
        Ok(worker) => worker,
        Err(error) => return fail(EXIT_FAILED, &error),
    };
    println!(
        "worker on {}, {}; Ctrl-C ends it",
        worker.address(),
        worker.version()
    );
    worker.run(&interrupt);
    println!("ended");
    ExitCode::SUCCESS
}

fn fail(code: u8, error: &dyn std::error::Error) -> ExitCode {
    eprintln!("corelog-perf: {error}");
    ExitCode::from(code)
}
