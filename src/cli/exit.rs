use std::io;
use std::process::ExitCode;

use crate::broker::{StartError, StopError};
use crate::client::error::ClientError;
use crate::config::LoadError;

use super::log_dump::DumpError;
use super::log_files::LogFilesError;

/// How a command ended that did what it was asked. The codes are documented in `corelog --help`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Done,
    /// It did its work, and what it looked at has a fault.
    FoundFault,
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Done => Self::SUCCESS,
            Outcome::FoundFault => Self::from(3),
        }
    }
}

/// Why a command could not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub(super) enum CliError {
    #[error(transparent)]
    Config(#[from] LoadError),
    #[error("a broker cannot run here:\n{0}\nsee all checks with: corelog preflight --data {1}")]
    Preflight(String, String),
    #[error("signals cannot be received: {0}")]
    Signals(#[source] io::Error),
    #[error(transparent)]
    Start(#[from] StartError),
    #[error(transparent)]
    Stop(#[from] StopError),
    #[error(transparent)]
    LogFiles(#[from] LogFilesError),
    #[error(transparent)]
    Dump(#[from] DumpError),
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error("{}", _0.iter().map(ClientError::to_string).collect::<Vec<_>>().join("\ncorelog: "))]
    Refused(Vec<ClientError>),
    #[error("{0}")]
    Usage(String),
    #[error("{0}")]
    Input(String),
    #[error("the result cannot be written to stdout: {0}")]
    Output(#[source] io::Error),
}

impl CliError {
    pub(super) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Config(_) | Self::Usage(_) => ExitCode::from(2),
            Self::Preflight(..)
            | Self::Signals(_)
            | Self::Start(_)
            | Self::Stop(_)
            | Self::LogFiles(_)
            | Self::Dump(_)
            | Self::Client(_)
            | Self::Refused(_)
            | Self::Input(_)
            | Self::Output(_) => ExitCode::FAILURE,
        }
    }
}
