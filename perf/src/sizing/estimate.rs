//! The size of a cluster: how many brokers, what binds, and what follows for refilling, partitions and segments.

use serde::Serialize;

use super::broker_capacity::BrokerCapacity;
use super::constraint::{BrokerCounts, Constraint, ConstraintReport, Resource, binding};
use super::demand::Demand;
use super::notation;
use super::source::{Source, Sourced};
use crate::quantity::Percent;

pub const SCHEMA: &str = "corelog-perf-sizing";
pub const SCHEMA_VERSION: u32 = 1;

/// What a database on one server is often assumed to write, row by row.
pub const DATABASE_WRITES_PER_S: u64 = 5_000;

/// How far the fullest broker may be above the mean before it is worth a remark.
const UNEVEN: f64 = 0.1;

/// Why counting copies as database writes gives a wrong number.
pub const DATABASE_MODEL_WRONG: &str = "wrong: a log never seeks; one sequential write carries many records, so bytes count, not records";

/// Everything that the text, the JSON and the page show.
#[derive(Clone, Debug, Serialize)]
pub struct Estimate {
    pub schema: &'static str,
    pub schema_version: u32,
    pub demand: Demand,
    pub broker: BrokerCapacity,
    pub headroom_percent: Percent,
    pub constraints: Vec<ConstraintReport>,
    pub binding: Resource,
    pub brokers: BrokerCounts,
    /// The number that all figures for each broker are for.
    pub chosen_brokers: Sourced<u64>,
    pub refill: Refill,
    pub consumer_group: ConsumerGroup,
    pub database_model: DatabaseModel,
    pub remarks: Vec<String>,
}

/// Copying everything that a lost broker held to an empty one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Refill {
    pub broker_bytes: f64,
    /// The slower of its disk and its network.
    pub bytes_per_s: u64,
    pub seconds: f64,
    /// If it takes its share of the new writes meanwhile; None if those leave nothing.
    pub seconds_beside_new_writes: Option<f64>,
    /// What is copied last would already have to be deleted.
    pub longer_than_retention: bool,
}

impl Refill {
    pub fn of(
        broker_bytes: f64,
        bytes_per_s: u64,
        new_writes_bytes_per_s: f64,
        retention_s: u64,
    ) -> Self {
        let seconds = broker_bytes / bytes_per_s as f64;
        let left = bytes_per_s as f64 - new_writes_bytes_per_s;
        Self {
            broker_bytes,
            bytes_per_s,
            seconds,
            seconds_beside_new_writes: (left > 0.0).then_some(broker_bytes / left),
            longer_than_retention: seconds > retention_s as f64,
        }
    }
}

/// The busiest topic, read by a group of consumer servers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ConsumerGroup {
    /// One for each server that the group needs to keep up.
    pub partitions_needed: u64,
    pub partitions: u64,
    pub leaders_per_broker_least: u64,
    pub leaders_per_broker_most: u64,
    pub partition_bytes_per_s: f64,
    pub segment_seconds: f64,
    /// What moving one partition to another broker copies.
    pub partition_bytes: f64,
}

impl ConsumerGroup {
    pub fn of(demand: &Demand, brokers: u64) -> Self {
        let partitions = demand.topic_partitions();
        let partition_bytes_per_s = demand.partition_bytes_per_s();
        Self {
            partitions_needed: demand.consumer_group_partitions(),
            partitions,
            leaders_per_broker_least: partitions / brokers,
            leaders_per_broker_most: partitions.div_ceil(brokers),
            partition_bytes_per_s,
            segment_seconds: demand.segment_bytes.value as f64 / partition_bytes_per_s,
            partition_bytes: partition_bytes_per_s * demand.retention_s.value as f64,
        }
    }

    /// As people say it: `1 or 2`.
    pub fn leaders_per_broker(&self) -> String {
        let (least, most) = (self.leaders_per_broker_least, self.leaders_per_broker_most);
        if least == most {
            notation::count(least)
        } else {
            format!("{} or {}", notation::count(least), notation::count(most))
        }
    }
}

/// The estimate that takes a broker for a database.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DatabaseModel {
    pub writes_per_s: f64,
    pub server_writes_per_s: u64,
    pub servers: u64,
    pub verdict: &'static str,
}

impl DatabaseModel {
    pub fn of(demand: &Demand) -> Self {
        let writes_per_s = demand.messages_per_s() * demand.copies.value as f64;
        Self {
            writes_per_s,
            server_writes_per_s: DATABASE_WRITES_PER_S,
            servers: (writes_per_s / DATABASE_WRITES_PER_S as f64).ceil() as u64,
            verdict: DATABASE_MODEL_WRONG,
        }
    }
}

impl Estimate {
    /// `brokers` is the number that somebody has in mind; without one it is what headroom and a lost broker ask for.
    pub fn of(
        demand: Demand,
        broker: BrokerCapacity,
        headroom: Percent,
        brokers: Option<u64>,
        mut remarks: Vec<String>,
    ) -> Self {
        let copies = demand.copies.value;
        let constraints = Constraint::all(&demand, &broker);
        let counts = BrokerCounts::of(&constraints, copies, headroom);
        let chosen = match brokers {
            Some(brokers) => Sourced::new(brokers, Source::Flag),
            None => Sourced::new(counts.at_headroom_one_lost, Source::Derived),
        };
        let new_writes = demand.average_bytes_per_s() as f64 * copies as f64 / chosen.value as f64;
        let refill = Refill::of(
            demand.kept_bytes() as f64 / chosen.value as f64,
            broker
                .disk_bytes_per_s
                .value
                .min(broker.nic_bytes_per_s.value),
            new_writes,
            demand.retention_s.value,
        );
        remarks.extend(own_remarks(&demand, &counts, chosen.value));
        Self {
            schema: SCHEMA,
            schema_version: SCHEMA_VERSION,
            headroom_percent: headroom,
            binding: binding(&constraints, copies),
            brokers: counts,
            refill,
            consumer_group: ConsumerGroup::of(&demand, chosen.value),
            database_model: DatabaseModel::of(&demand),
            constraints: constraints
                .iter()
                .map(|constraint| ConstraintReport::at(constraint, chosen.value, headroom))
                .collect(),
            chosen_brokers: chosen,
            remarks,
            demand,
            broker,
        }
    }
}

/// From so many on, even the fullest broker is within `UNEVEN` of the mean: one copy more than its share is at most that.
fn partitions_to_spread(brokers: u64, copies: u64) -> u64 {
    let copies_each = (1.0 / UNEVEN).round() as u64;
    brokers.saturating_mul(copies_each).div_ceil(copies)
}

fn own_remarks(demand: &Demand, counts: &BrokerCounts, chosen: u64) -> Vec<String> {
    let mut remarks = Vec::new();
    if demand.copies.value == 1 {
        remarks.push(
            "With 1 copy a lost broker takes its records with it, however many brokers are left."
                .to_owned(),
        );
    }
    let copies = demand.partitions.value * demand.copies.value;
    let (mean, most) = (copies as f64 / chosen as f64, copies.div_ceil(chosen));
    let above_mean = most as f64 / mean - 1.0;
    if above_mean > UNEVEN {
        remarks.push(format!(
            "{} copies of partitions do not spread evenly over {} brokers: some hold {}, {} above the mean that is counted \
             with; with {} partitions none is more than {} above it.",
            notation::count(copies),
            notation::count(chosen),
            notation::count(most),
            notation::share(above_mean),
            notation::count(partitions_to_spread(chosen, demand.copies.value)),
            notation::share(UNEVEN),
        ));
    }
    if chosen < counts.at_full {
        remarks.push(format!(
            "{} brokers are too few: the load needs {}.",
            notation::count(chosen),
            notation::count(counts.at_full)
        ));
    } else if chosen < counts.one_lost {
        remarks.push(format!(
            "{} brokers do not carry the load when one is lost.",
            notation::count(chosen)
        ));
    }
    remarks
}
