//! The estimate of the message queue walkthrough, line by line from what its interviewer gives, then what follows
//! from the same numbers and is not in the text.
//!
//! Owns: what the text is given. Must never know: a result; each is computed.

mod in_the_text;
mod left_out;
mod line;

use serde::Serialize;

pub use self::line::Line;

use super::broker_capacity::UnitCosts;
use super::constraint::{BrokerCounts, Constraint, Resource};
use super::demand::Demand;
use super::flags::{DISK_BYTES_PER_S, NIC_BYTES_PER_S, REQUEST_BYTES};
use super::measured::Measured;
use super::notation::bytes_per_s;
use super::source::{Source, Sourced};
use crate::quantity::Percent;

pub const SCHEMA: &str = "corelog-perf-walkthrough";
pub const SCHEMA_VERSION: u32 = 1;

/// What the text is given.
const MESSAGES_PER_S: u64 = 1_000_000;
const MESSAGE_BYTES: u64 = 1_000;
const RETENTION_DAYS: u64 = 7;
const COPIES: u64 = 3;
const SEGMENT_BYTES: u64 = 1_000_000_000;
/// Its busiest topic, and what one consumer server processes.
const TOPIC_BYTES_PER_S: u64 = 500_000_000;
const CONSUMER_BYTES_PER_S: u64 = 50_000_000;
/// A day for a quick estimate, and a day.
const ROUNDED_DAY_S: u64 = 100_000;
const DAY_S: u64 = 86_400;

#[derive(Clone, Debug, Serialize)]
pub struct Walkthrough {
    pub schema: &'static str,
    pub schema_version: u32,
    pub headroom_percent: Percent,
    /// With the text's own figures.
    pub text: Part,
    /// The same with what reports measured.
    pub measured: Option<Part>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Part {
    pub disk_bytes_per_s: Sourced<u64>,
    pub brokers: BrokerCounts,
    pub in_the_text: Vec<Line>,
    pub left_out: Vec<Line>,
    /// Only of measured costs: the text does not count CPU.
    pub cpu: Vec<Line>,
    pub remarks: Vec<String>,
}

impl Walkthrough {
    pub fn of(headroom: Percent, measured: Option<(&Measured, &UnitCosts)>) -> Self {
        let assumed = Sourced::text(DISK_BYTES_PER_S);
        Self {
            schema: SCHEMA,
            schema_version: SCHEMA_VERSION,
            headroom_percent: headroom,
            measured: measured.map(|(measured, costs)| {
                let disk = measured.disk_bytes_per_s.as_ref().unwrap_or(&assumed);
                let mut part = Part::of(disk.clone(), headroom);
                part.cpu = left_out::cpu(costs, part.brokers.at_full, measured.cores.as_ref());
                part.remarks.clone_from(&measured.remarks);
                part
            }),
            text: Part::of(assumed, headroom),
        }
    }
}

/// The text's load, with days of this length.
pub fn demand(day_s: u64) -> Demand {
    Demand {
        ingest_bytes_per_s: Sourced::text(MESSAGES_PER_S * MESSAGE_BYTES),
        message_bytes: Sourced::text(MESSAGE_BYTES),
        peak_factor: Sourced::text(1.0),
        compression_ratio: Sourced::text(1.0),
        copies: Sourced::text(COPIES),
        retention_s: Sourced::text(RETENTION_DAYS * day_s),
        reader_groups: Sourced::text(1),
        cold_reader_groups: Sourced::text(0),
        request_bytes: Sourced::new(REQUEST_BYTES, Source::Default),
        topic_ingest_bytes_per_s: Sourced::text(TOPIC_BYTES_PER_S),
        consumer_bytes_per_s: Sourced::text(CONSUMER_BYTES_PER_S),
        partitions: Sourced::text(TOPIC_BYTES_PER_S.div_ceil(CONSUMER_BYTES_PER_S)),
        segment_bytes: Sourced::text(SEGMENT_BYTES),
        cached_s: Sourced::text(1),
    }
}

impl Part {
    fn of(disk_bytes_per_s: Sourced<u64>, headroom: Percent) -> Self {
        let rounded = demand(ROUNDED_DAY_S);
        let exact = demand(DAY_S);
        let writes = writes(&rounded, disk_bytes_per_s.value);
        let brokers = BrokerCounts::of(&[writes], COPIES, headroom);
        Self {
            in_the_text: in_the_text::lines(&rounded, &exact, &writes, &brokers),
            left_out: left_out::lines(&rounded, &exact, &writes, &brokers, headroom),
            cpu: Vec::new(),
            remarks: Vec::new(),
            disk_bytes_per_s,
            brokers,
        }
    }
}

/// What a broker writes comes in over its network first: the slower of the two limits it.
pub fn writes(demand: &Demand, disk_bytes_per_s: u64) -> Constraint {
    if disk_bytes_per_s <= NIC_BYTES_PER_S {
        Constraint::disk_bandwidth(demand, disk_bytes_per_s)
    } else {
        Constraint::network_in(demand, NIC_BYTES_PER_S)
    }
}

/// How much of it one broker takes in.
fn limit(writes: &Constraint) -> String {
    let rate = bytes_per_s(writes.broker_has as f64);
    match writes.resource {
        Resource::NetworkIn => format!("{rate} (its network, slower than its disk)"),
        _ => rate,
    }
}
