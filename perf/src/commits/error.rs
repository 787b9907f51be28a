use crate::cli::ArgvError;
use crate::client::error::ClientError;

#[derive(Debug, thiserror::Error)]
pub enum CommitsError {
    #[error("--{flag} must be more than 0")]
    Zero { flag: &'static str },
    #[error(
        "--groups {groups} are too few for {connections} connections with {in_flight} commits under way each: a group has one under way"
    )]
    TooFewGroups {
        groups: u32,
        connections: u32,
        in_flight: u32,
    },
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error(transparent)]
    Arguments(#[from] ArgvError),
}

impl CommitsError {
    /// Whether what was asked for cannot be run at all.
    pub fn is_usage(&self) -> bool {
        !matches!(self, Self::Client(_))
    }
}
