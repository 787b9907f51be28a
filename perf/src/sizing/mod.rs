//! Sizing: how many brokers a load needs, from what the load asks and what one broker gives.
//!
//! Owns: the arithmetic of the estimate, the reading of run reports for it, and its text, JSON and page. Must never
//! know: how a run measures, or a broker; whatever it says is computed from inputs that carry their source.

mod broker_capacity;
mod chart;
mod constraint;
mod demand;
mod estimate;
mod flags;
mod measured;
mod notation;
mod page;
mod print;
mod run_report;
mod source;
#[cfg(test)]
mod tests;
mod unit_cost_report;
mod walkthrough;

use serde::Serialize;

pub use self::flags::{SizeArgs, SizeError};

use self::estimate::Estimate;
use self::flags::{BrokerArgs, check_copies};
use self::walkthrough::Walkthrough;
use crate::columns::Columns;

/// What `size` answers.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Sizing {
    Estimate(Box<Estimate>),
    Walkthrough(Box<Walkthrough>),
}

impl Sizing {
    pub fn text(&self, columns: Columns) -> String {
        match self {
            Self::Estimate(estimate) => print::estimate(estimate, columns),
            Self::Walkthrough(walkthrough) => print::walkthrough(walkthrough, columns),
        }
    }

    /// A page that needs nothing else.
    pub fn html(&self) -> String {
        match self {
            Self::Estimate(estimate) => page::estimate(estimate),
            Self::Walkthrough(walkthrough) => page::walkthrough(walkthrough),
        }
    }
}

/// Sizes what the flags describe.
pub fn size(arguments: &SizeArgs) -> Result<Sizing, SizeError> {
    if arguments.walkthrough {
        let measured = match arguments.from.as_slice() {
            [] => None,
            paths => Some(measured::read(
                paths,
                walkthrough::demand(1).sized_request_bytes(),
            )?),
        };
        let with_costs = measured.map(|measured| {
            let costs = BrokerArgs::default().unit_costs(&measured);
            (measured, costs)
        });
        let walkthrough = Walkthrough::of(
            arguments.headroom,
            with_costs
                .as_ref()
                .map(|(measured, costs)| (measured, costs)),
        );
        return Ok(Sizing::Walkthrough(Box::new(walkthrough)));
    }
    let demand = arguments.demand.demand()?;
    check_copies(&demand, arguments.broker.brokers)?;
    let measured = match arguments.from.as_slice() {
        [] => measured::Measured::default(),
        paths => measured::read(paths, demand.sized_request_bytes())?,
    };
    let capacity = arguments.broker.capacity(&measured)?;
    Ok(Sizing::Estimate(Box::new(Estimate::of(
        demand,
        capacity,
        arguments.headroom,
        arguments.broker.brokers,
        measured.remarks,
    ))))
}
