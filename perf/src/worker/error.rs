use std::io;
use std::net::SocketAddr;

use super::ledger_part::DamagedLedger;
use super::message::ToolVersion;
use super::wire::WireError;

/// What goes wrong with a worker, as the coordinator sees it.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    #[error("no worker answers at {address}: {source}")]
    Connect { address: String, source: io::Error },
    #[error("what listens at {address} does not answer as a worker: {source}")]
    NoWorker { address: String, source: WireError },
    #[error("the worker {address} is {theirs}, and this is {ours}: both must be the same")]
    OtherVersion {
        address: String,
        theirs: Box<ToolVersion>,
        ours: Box<ToolVersion>,
    },
    #[error("the worker {address} refused: {reason}")]
    Refused { address: String, reason: String },
    #[error("the worker {address} cannot put the load on: {reason}")]
    CannotPrepare { address: String, reason: String },
    #[error("the worker {address} was lost: {source}")]
    Lost { address: String, source: WireError },
    #[error("the worker {address} said what was not asked for")]
    OutOfTurn { address: String },
    #[error("the worker {address}: {source}")]
    Ledger {
        address: String,
        source: DamagedLedger,
    },
}

/// What keeps a worker from serving.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("cannot listen on {address}: {source}")]
    Listen {
        address: SocketAddr,
        source: io::Error,
    },
}
