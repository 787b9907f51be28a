//! The command line: one file per subcommand, and how each ends.
//!
//! Owns: arguments, what is printed where, exit codes, signals, where logs go, and the checks of the machine.
//! Must never know: how a broker works inside; it starts one, waits for it and asks it to stop, or talks to one over Kafka's protocol.
//! Runs on: the main thread and the one that waits for signals; neither is pinned to a core.
//! After a crash: nothing here survives, and nothing needs to.

mod args;
mod assignment;
mod changes;
mod cluster_arguments;
mod completions;
mod config;
mod consume;
mod exit;
mod group;
mod list_settings;
mod log_dump;
mod log_files;
mod log_verify;
mod logging;
pub mod preflight;
mod produce;
mod recovery_bar;
mod run_broker;
mod signals;
mod table;
mod time;
mod topic;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;

use args::{Arguments, Command, LogCommand};
use exit::{CliError, Outcome};
use log_dump::{DumpError, DumpOptions};

use crate::config::BrokerConfig;

/// The whole program: reads the arguments, does what they say, and tells errors on stderr.
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(arguments.command) {
        Ok(outcome) => outcome.into(),
        Err(error) => {
            // There is nobody left to tell if stderr is closed.
            let _ = writeln!(io::stderr(), "corelog: {error}");
            error.exit_code()
        }
    }
}

fn run(command: Command) -> Result<Outcome, CliError> {
    match command {
        Command::Broker(broker) => run_broker::run(broker),
        Command::Preflight { data, json } => {
            let report = preflight::run(&data, &BrokerConfig::default());
            print(&if json {
                to_json(&report)
            } else {
                report.to_string()
            })?;
            Ok(match report.status() {
                preflight::Status::Fail => Outcome::FoundFault,
                preflight::Status::Ok | preflight::Status::Warn => Outcome::Done,
            })
        }
        Command::Log { command } => run_log(command),
        Command::Topic { command } => topic::run(command),
        Command::Group { command } => group::run(command),
        Command::Config(arguments) => config::run(arguments),
        Command::Produce(arguments) => produce::run(&arguments),
        Command::Consume(arguments) => consume::run(&arguments),
        Command::Completions { shell } => completions::run(shell),
    }
}

fn run_log(command: LogCommand) -> Result<Outcome, CliError> {
    let is_good = match command {
        LogCommand::Dump {
            path,
            json,
            records,
        } => {
            let mut out = io::BufWriter::new(io::stdout().lock());
            let dumped = log_dump::dump(&path, DumpOptions { json, records }, &mut out);
            let flushed = out.flush().map_err(DumpError::Output);
            match dumped.and_then(|is_good| flushed.map(|()| is_good)) {
                Err(DumpError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => true,
                dumped => dumped?,
            }
        }
        LogCommand::Verify {
            path,
            json,
            records,
        } => {
            let report = log_verify::verify(&path, records)?;
            print(&if json {
                to_json(&report)
            } else {
                report.text()
            })?;
            report.is_good()
        }
    };
    Ok(if is_good {
        Outcome::Done
    } else {
        Outcome::FoundFault
    })
}

/// Writes a result to stdout. A reader that has seen enough (`| head`) is no error.
fn print(text: &str) -> Result<(), CliError> {
    match writeln!(io::stdout(), "{text}") {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(CliError::Output(error)),
        _ => Ok(()),
    }
}

/// Says on stderr what happens while a command goes on.
fn tell(what: &str) {
    // There is nobody left to tell if stderr is closed.
    let _ = writeln!(io::stderr(), "corelog: {what}");
}

/// Prints what was asked about, one after the other for people, as one document for scripts.
fn print_described<T: serde::Serialize + std::fmt::Display>(
    described: &[T],
    as_json: bool,
) -> Result<(), CliError> {
    let texts = || described.iter().map(T::to_string).collect::<Vec<_>>();
    match as_json {
        true => print(&to_json(&described)),
        false => print(&texts().join("\n\n")),
    }
}

fn to_json(value: &impl serde::Serialize) -> String {
    serde_json::to_string_pretty(value)
        .expect("what commands print has string keys and no failing parts")
}
