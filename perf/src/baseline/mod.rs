//! What this machine can do without a broker, measured in the same minute as the broker: disk, loopback
//! network, memory, and the run's own requests against a broker that keeps nothing.
//!
//! Owns: its files and its sockets, all gone afterwards. Must never know: what it is compared with.

pub mod appends;
pub mod disk;
pub mod memory;
pub mod network;
pub mod null_load;
#[allow(unsafe_code)]
mod ring;
mod scratch_file;

use std::path::Path;
use std::time::Duration;

use serde::Serialize;

use self::disk::{DiskBaseline, DiskError};
use self::memory::MemoryBaseline;
use self::network::NetworkBaseline;
use self::null_load::{NullLoad, NullLoadBaseline};
use crate::quantity::Bytes;

#[derive(Clone, Copy)]
pub struct BaselinePlan<'a> {
    /// Where the disk is measured; None leaves it out.
    pub directory: Option<&'a Path>,
    pub file_bytes: Bytes,
    /// How long each single measurement takes.
    pub each: Duration,
    /// What is sent to the null broker; None leaves it out.
    pub load: Option<NullLoad<'a>>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Baseline {
    pub seconds_each: f64,
    pub disk: DiskOutcome,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkBaseline>,
    pub memory: MemoryBaseline,
    /// None where there is no load.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub null_broker: Option<NullLoadOutcome>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NullLoadOutcome {
    Measured(NullLoadBaseline),
    NotMeasured { reason: String },
}

impl Baseline {
    pub fn null_load(&self) -> Option<&NullLoadBaseline> {
        match self.null_broker.as_ref()? {
            NullLoadOutcome::Measured(measured) => Some(measured),
            NullLoadOutcome::NotMeasured { .. } => None,
        }
    }
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DiskOutcome {
    Measured(Box<DiskBaseline>),
    NotMeasured { reason: String },
}

impl DiskOutcome {
    pub fn measured(&self) -> Option<&DiskBaseline> {
        match self {
            Self::Measured(disk) => Some(disk),
            Self::NotMeasured { .. } => None,
        }
    }
}

/// Takes all baselines, telling which one is under way. A disk that cannot be measured is said, not hidden.
pub fn measure(plan: &BaselinePlan, mut now_measuring: impl FnMut(&str)) -> Baseline {
    let disk = match plan.directory {
        None => DiskOutcome::NotMeasured {
            reason: "no directory was given and the broker's is not on this machine".to_owned(),
        },
        Some(directory) => {
            match disk::measure(directory, plan.file_bytes, plan.each, &mut now_measuring) {
                Ok(disk) => DiskOutcome::Measured(Box::new(disk)),
                Err(
                    error @ (DiskError::File { .. }
                    | DiskError::Io { .. }
                    | DiskError::Ring(_)
                    | DiskError::Short { .. }),
                ) => DiskOutcome::NotMeasured {
                    reason: error.to_string(),
                },
            }
        }
    };
    now_measuring("loopback network");
    let network = network::measure(plan.each).ok();
    now_measuring("memory and CRC");
    let memory = memory::measure(plan.each);
    let null_broker = plan.load.map(|load| {
        now_measuring("null broker");
        match null_load::measure(load, plan.each) {
            Ok(measured) => NullLoadOutcome::Measured(measured),
            Err(error) => NullLoadOutcome::NotMeasured {
                reason: error.to_string(),
            },
        }
    });
    Baseline {
        seconds_each: plan.each.as_secs_f64(),
        disk,
        network,
        memory,
        null_broker,
    }
}
