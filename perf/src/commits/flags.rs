//! The flags of `commits`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, value_parser};

use super::error::CommitsError;
use crate::bootstrap;
use crate::quantity;

#[derive(Args)]
pub struct CommitsArgs {
    /// The whole command line, for the report
    #[arg(skip)]
    pub argv: Vec<String>,
    /// Address of any broker
    #[arg(long, short, default_value_t = bootstrap::unnamed(), value_parser = bootstrap::parse)]
    pub bootstrap: String,
    /// Groups that offsets are committed for; they have no members, so the broker checks no generation
    #[arg(long, default_value_t = 1000, value_parser = value_parser!(u32).range(1..=100_000))]
    pub groups: u32,
    /// Connections to each broker that coordinates some of the groups, each with a thread
    #[arg(long, default_value_t = 8, value_parser = value_parser!(u32).range(1..=1_000))]
    pub connections: u32,
    /// Commits under way on each connection, of different groups. Apache Kafka takes the next when it has answered the one before
    #[arg(long, default_value_t = 16, value_parser = value_parser!(u32).range(1..=1_000))]
    pub in_flight: u32,
    /// Partitions whose offsets each commit has
    #[arg(long, default_value_t = 1, value_parser = value_parser!(u32).range(1..=1_000))]
    pub partitions: u32,
    /// Commits a second that are offered over all connections, each with its time; without it the next waits for an answer
    #[arg(long, value_parser = value_parser!(u32).range(1..=10_000_000))]
    pub rate: Option<u32>,
    /// How long is measured
    #[arg(long, default_value = "10s", value_parser = quantity::duration)]
    pub duration: Duration,
    /// Load before that which does not count
    #[arg(long, default_value = "2s", value_parser = quantity::duration)]
    pub warmup: Duration,
    /// Processes of the brokers on this machine, separated by commas [default: who listens at the cluster's addresses]
    #[arg(long, value_delimiter = ',', value_name = "PID")]
    pub broker_pid: Vec<u32>,
    /// Write the report to this file
    #[arg(long)]
    pub json: Option<PathBuf>,
}

impl CommitsArgs {
    pub fn check(&self) -> Result<(), CommitsError> {
        if self.duration.is_zero() {
            return Err(CommitsError::Zero { flag: "duration" });
        }
        let under_way = u64::from(self.connections) * u64::from(self.in_flight);
        if under_way > u64::from(self.groups) {
            return Err(CommitsError::TooFewGroups {
                groups: self.groups,
                connections: self.connections,
                in_flight: self.in_flight,
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Command};

    fn refused(flags: &[&str]) -> Option<CommitsError> {
        let cli = Cli::try_parse_from(["corelog-perf", "commits"].iter().chain(flags));
        match cli.expect("clap accepts it").command {
            Command::Commits(arguments) => arguments.check().err(),
            _ => panic!("another command"),
        }
    }

    #[test]
    fn what_cannot_be_measured_is_refused_and_the_defaults_can() {
        assert!(refused(&[]).is_none());
        let none = refused(&["--duration", "0s"]);
        assert!(matches!(
            none,
            Some(CommitsError::Zero { flag: "duration" })
        ));
        let few = refused(&["--groups", "9", "--connections", "2", "--in-flight", "5"]);
        assert!(matches!(few, Some(CommitsError::TooFewGroups { .. })));
    }
}
