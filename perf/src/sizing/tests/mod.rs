//! The numbers that sizing must give, and the input that it must refuse.

mod bad_input;
mod load;
mod pages;
mod reports;
mod unit_costs;
mod walkthrough;

use clap::Parser;

use super::estimate::Estimate;
use super::walkthrough::Walkthrough;
use super::{SizeArgs, SizeError, Sizing, size};
use crate::cli::{Cli, Command};

fn parse(arguments: &[&str]) -> Result<SizeArgs, clap::Error> {
    let cli = Cli::try_parse_from(["corelog-perf", "size"].iter().chain(arguments))?;
    match cli.command {
        Command::Size(arguments) => Ok(*arguments),
        _ => panic!("another command"),
    }
}

fn sized(arguments: &[&str]) -> Result<Sizing, SizeError> {
    size(&parse(arguments).expect("clap accepts it"))
}

fn estimate(arguments: &[&str]) -> Estimate {
    match sized(arguments).expect("it can be sized") {
        Sizing::Estimate(estimate) => *estimate,
        Sizing::Walkthrough(_) => panic!("not an estimate"),
    }
}

fn walkthrough(arguments: &[&str]) -> Walkthrough {
    match sized(&[&["--walkthrough"], arguments].concat()).expect("it can be sized") {
        Sizing::Walkthrough(walkthrough) => *walkthrough,
        Sizing::Estimate(_) => panic!("not the walkthrough"),
    }
}
