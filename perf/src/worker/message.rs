//! What a coordinator and a worker say to each other.
//!
//! The coordinator greets, the worker answers. Then, for every load step: `Clock` back and forth, `Prepare` and
//! `Ready`, `Begin`, news until `Ended`. A change of any message raises [`PROTOCOL_VERSION`].

use std::fmt;

use serde::{Deserialize, Serialize};

use super::ledger_part::LedgerPart;
use crate::cpu::{CpuUse, MachineShare};
use crate::crew::{CrewNews, LoadOrder, LoadYield};
use crate::load_stage::LoadStage;
use crate::provenance::{Machine, Tool};

pub const PROTOCOL_VERSION: u32 = 2;

/// Which build this is. Only the same builds work together, for records and figures mean the same only to them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolVersion {
    pub version: String,
    pub commit: String,
    pub protocol: u32,
}

impl ToolVersion {
    pub fn this() -> Self {
        let tool = Tool::this();
        Self {
            version: tool.version.to_owned(),
            commit: tool.commit.to_owned(),
            protocol: PROTOCOL_VERSION,
        }
    }
}

impl fmt::Display for ToolVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            version,
            commit,
            protocol,
        } = self;
        write!(f, "corelog-perf {version} ({commit}, protocol {protocol})")
    }
}

/// The first frame, from the coordinator. Its form stays the same in all versions, as does the answer's.
#[derive(Debug, Serialize, Deserialize)]
pub struct Greeting {
    pub coordinator: ToolVersion,
}

/// The second frame, from the worker.
#[derive(Debug, Serialize, Deserialize)]
pub struct GreetingAnswer {
    pub worker: ToolVersion,
    /// What keeps it from taking the coordinator's orders.
    pub refused: Option<String>,
}

/// Where the worker runs; its third frame, once it has accepted.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WorkerHost {
    pub hostname: String,
    pub machine: Machine,
    /// What its wall clock showed at the zero of its clock.
    pub origin_unix_ns: i64,
}

#[derive(Debug, Serialize, Deserialize)]
pub enum ToWorker {
    Alive,
    /// Asks for the time.
    Clock,
    /// Connects the producers of this load. Records are stamped as if the wall clock had shown `origin_unix_ns`
    /// at the zero of the worker's clock, so that all workers stamp by the coordinator's.
    Prepare {
        order: Box<LoadOrder>,
        origin_unix_ns: i64,
    },
    /// The load starts at this instant of the worker's clock.
    Begin {
        start_ns: u64,
    },
    /// The load goes on in another way.
    Enter {
        stage: LoadStage,
    },
    Stop,
    Release,
}

#[derive(Debug, Serialize, Deserialize)]
pub enum FromWorker {
    Alive,
    /// The instant on the worker's clock at which it answered.
    Clock {
        at_ns: u64,
    },
    Ready,
    /// The order cannot be carried out.
    CannotPrepare {
        reason: String,
    },
    News(CrewNews),
    Ledger(LedgerPart),
    /// All threads have ended, and all ledgers were sent.
    Ended(Box<Ended>),
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Ended {
    /// Without its ledgers.
    pub load: LoadYield,
    /// None where the process could not be read.
    pub cpu: Option<CpuUse>,
    pub machine: MachineShare,
}
