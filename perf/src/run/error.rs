//! Why there is no report of a run.

use super::brokers::BrokersError;
use crate::client::error::ClientError;
use crate::payload::PayloadError;
use crate::plan::PlanError;
use crate::report::{OccupiedError, WriteError};
use crate::worker::WorkerError;

#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error(transparent)]
    Plan(#[from] PlanError),
    #[error(transparent)]
    Occupied(#[from] OccupiedError),
    #[error(transparent)]
    Brokers(#[from] BrokersError),
    #[error(transparent)]
    Payload(#[from] PayloadError),
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error(transparent)]
    Worker(#[from] WorkerError),
    #[error(transparent)]
    Write(#[from] WriteError),
}

impl RunError {
    /// Whether nobody could run what was asked for.
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::Plan(_) | Self::Occupied(_) | Self::Brokers(_) | Self::Payload(_)
        )
    }
}
