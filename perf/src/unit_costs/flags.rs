//! The flags of `unit-costs`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, value_parser};

use super::error::UnitCostsError;
use crate::bootstrap;
use crate::quantity;
use crate::report::check_free;

#[derive(Args)]
pub struct UnitCostsArgs {
    /// The whole command line, for the report
    #[arg(skip)]
    pub argv: Vec<String>,
    /// Address of the broker; it should have nothing else to do
    #[arg(long, short, default_value_t = bootstrap::unnamed(), value_parser = bootstrap::parse)]
    pub bootstrap: String,
    /// Process of the broker on this machine [default: who listens on the bootstrap port]
    #[arg(long)]
    pub broker_pid: Option<u32>,
    /// What producers send in all paced runs. CPU for each byte and request falls as a broker gets busier, so that costs
    /// hold near the rate that they were measured at. A short run before all others shows what the broker takes in the smallest
    /// batches, beside a consumer; a rate that leaves it no room is refused [default: 50MB/s, or half of that if it is less]
    #[arg(long, value_parser = quantity::bytes_per_s)]
    pub rate: Option<u64>,
    /// How long each of the runs and idle windows is measured
    #[arg(long, default_value = "5s", value_parser = quantity::duration)]
    pub duration: Duration,
    /// How long the log that is read cold is written, as fast as it goes; it should grow beyond what the broker and its
    /// machine hold in memory [default: twice the duration]
    #[arg(long, value_parser = quantity::duration)]
    pub fill_duration: Option<Duration>,
    /// Load before that which does not count
    #[arg(long, default_value = "1s", value_parser = quantity::duration)]
    pub warmup: Duration,
    /// Partitions of the loaded topic
    #[arg(long, default_value_t = 16, value_parser = value_parser!(u32).range(1..=10_000))]
    pub partitions: u32,
    /// Partitions that are created to see what idle ones cost, and deleted afterwards. What memory they hold shows on a
    /// broker that was just started: one that did this before has memory at hand
    #[arg(long, default_value_t = 1000, value_parser = value_parser!(u32).range(1..=100_000))]
    pub idle_partitions: u32,
    /// Write the report to this file
    #[arg(long)]
    pub json: Option<PathBuf>,
    /// Write report.json, report.html and report.txt into this directory, which is new, or empty
    #[arg(long)]
    pub out: Option<PathBuf>,
}

impl UnitCostsArgs {
    pub fn check(&self) -> Result<(), UnitCostsError> {
        if self.duration.is_zero() {
            return Err(UnitCostsError::Zero { flag: "duration" });
        }
        if let Some(directory) = &self.out {
            check_free(directory)?;
        }
        match self.fill_duration {
            Some(Duration::ZERO) => Err(UnitCostsError::Zero {
                flag: "fill-duration",
            }),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use crate::cli::{Cli, Command};

    #[test]
    fn a_time_of_zero_is_refused_with_its_flag() {
        for flag in ["--duration", "--fill-duration"] {
            let cli = Cli::try_parse_from(["corelog-perf", "unit-costs", flag, "0s"]).unwrap();
            let Command::UnitCosts(flags) = cli.command else {
                panic!("another command");
            };
            let error = flags.check().unwrap_err();
            assert!(
                error.is_usage() && error.to_string().starts_with(flag),
                "{error}"
            );
        }
    }
}
