//! Why there are no unit costs.

use crate::client::error::ClientError;
use crate::quantity::Bytes;
use crate::report::OccupiedError;
use crate::run::RunError;

#[derive(Debug, thiserror::Error)]
pub enum UnitCostsError {
    #[error("--{flag} must be more than 0")]
    Zero { flag: &'static str },
    #[error(transparent)]
    Occupied(#[from] OccupiedError),
    #[error("the run '{name}' cannot be made: {reason}")]
    CommandLine { name: String, reason: String },
    #[error("the run '{name}': {source}")]
    Run { name: String, source: RunError },
    #[error(
        "this broker took {takes_mb_per_s:.1} MB/s as fast as it went, which is too little to tell a byte's cost from a request's: it, or its machine, is busy \
         with something else"
    )]
    TakesTooLittle { takes_mb_per_s: f64 },
    #[error(
        "--rate {asked_mb_per_s:.1}MB/s is too much: this broker takes {takes_mb_per_s:.1} MB/s in batches of {batch} beside a consumer, and \
         paced runs need room; at most --rate {most_mb_per_s:.0}MB/s, or leave --rate out"
    )]
    RateTooHigh {
        asked_mb_per_s: f64,
        takes_mb_per_s: f64,
        most_mb_per_s: f64,
        batch: Bytes,
    },
    #[error(
        "the run '{name}' is of no use, nor was it when it was repeated: the broker took {took_mb_per_s:.1} of {offered_mb_per_s:.1} MB/s; --rate sets a \
         lower rate"
    )]
    RateMissed {
        name: String,
        took_mb_per_s: f64,
        offered_mb_per_s: f64,
    },
    #[error("the run '{name}' is of no use: {reason}")]
    NotValid { name: String, reason: String },
    #[error(
        "the broker's CPU time and memory are not known: it is not a process of this machine that may be read; --broker-pid names one"
    )]
    NoCpu,
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error("ended early")]
    Interrupted,
}

impl UnitCostsError {
    /// Whether nobody could run what was asked for.
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Zero { .. }
            | Self::Occupied(_)
            | Self::RateTooHigh { .. }
            | Self::CommandLine { .. } => true,
            Self::Run { source, .. } => source.is_usage(),
            _ => false,
        }
    }
}
