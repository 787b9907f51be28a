//! Why there are no unit costs.

use crate::client::error::ClientError;
use crate::run::RunError;

#[derive(Debug, thiserror::Error)]
pub enum UnitCostsError {
    #[error("--{flag} must be more than 0")]
    Zero { flag: &'static str },
    #[error("the run '{name}' cannot be made: {reason}")]
    CommandLine { name: String, reason: String },
    #[error("the run '{name}': {source}")]
    Run { name: String, source: RunError },
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
            Self::Zero { .. } | Self::CommandLine { .. } => true,
            Self::Run { source, .. } => source.is_usage(),
            _ => false,
        }
    }
}
