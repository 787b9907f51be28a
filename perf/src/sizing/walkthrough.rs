//! The estimate of the message queue walkthrough, line by line from what its interviewer gives, then what follows
//! from the same numbers and is not in the text.

use std::cmp::Ordering;

use serde::Serialize;

use super::broker_capacity::UnitCosts;
use super::constraint::{BrokerCounts, Constraint, Resource};
use super::demand::Demand;
use super::estimate::{ConsumerGroup, DATABASE_WRITES_PER_S, DatabaseModel, Refill};
use super::flags::{DISK_BYTES_PER_S, NIC_BYTES_PER_S};
use super::measured::Measured;
use super::notation::{bytes, bytes_per_s, cost, count, number, seconds, share};
use super::source::Sourced;
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

/// One number, how it comes about, and what it means.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Line {
    pub what: &'static str,
    pub formula: String,
    pub value: f64,
    pub unit: &'static str,
    /// The value as people write it.
    pub shown: String,
    /// With days of 86,400 s, where the text rounds them.
    pub exact: Option<f64>,
    pub remark: Option<String>,
}

impl Line {
    fn new(what: &'static str, formula: String, value: f64, unit: &'static str) -> Self {
        let shown = match unit {
            "bytes" => bytes(value),
            "bytes_per_s" => bytes_per_s(value),
            "s" => seconds(value),
            _ => format!("{} {unit}", number(value)),
        };
        Self {
            what,
            formula,
            value,
            unit,
            shown,
            exact: None,
            remark: None,
        }
    }

    fn exactly(mut self, value: f64) -> Self {
        self.exact = Some(value);
        self
    }

    fn remark(mut self, remark: impl Into<String>) -> Self {
        self.remark = Some(remark.into());
        self
    }
}

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
                part.cpu = cpu(costs, part.brokers.at_full);
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
            in_the_text: in_the_text(&rounded, &exact, &writes, &brokers),
            left_out: left_out(&rounded, &exact, &writes, &brokers, headroom),
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

fn in_the_text(
    rounded: &Demand,
    exact: &Demand,
    writes: &Constraint,
    brokers: &BrokerCounts,
) -> Vec<Line> {
    let n = brokers.at_full;
    let ingest = rounded.average_bytes_per_s();
    let day_bytes = |day_s: u64| (ingest * day_s) as f64;
    let days = RETENTION_DAYS as f64;
    let copies = COPIES as f64;
    let each = writes.per_broker(n);
    let limit = limit(writes);
    let floor = if writes.brokers(Percent::ALL) < COPIES {
        format!(", at least {COPIES} for the copies")
    } else {
        String::new()
    };
    let writes = writes.cluster_needs as f64;
    let kept = rounded.kept_bytes() as f64;
    let database = DatabaseModel::of(rounded);
    let group = ConsumerGroup::of(rounded, n);
    let nic = NIC_BYTES_PER_S as f64;
    let day = bytes(day_bytes(ROUNDED_DAY_S));
    let segment_messages = SEGMENT_BYTES / MESSAGE_BYTES;
    vec![
        Line::new(
            "messages in a segment",
            format!(
                "{} / {}",
                bytes(SEGMENT_BYTES as f64),
                bytes(MESSAGE_BYTES as f64)
            ),
            segment_messages as f64,
            "messages",
        ),
        Line::new(
            "in",
            format!(
                "{} msg/s x {}",
                count(MESSAGES_PER_S),
                bytes(MESSAGE_BYTES as f64)
            ),
            ingest as f64,
            "bytes_per_s",
        ),
        Line::new(
            "storage a day",
            format!(
                "{} x {} s",
                bytes_per_s(ingest as f64),
                count(ROUNDED_DAY_S)
            ),
            day_bytes(ROUNDED_DAY_S),
            "bytes",
        )
        .exactly(day_bytes(DAY_S))
        .remark(format!(
            "{} exactly, with {} s",
            bytes(day_bytes(DAY_S)),
            count(DAY_S)
        )),
        Line::new(
            "kept, one copy",
            format!("{day} x {RETENTION_DAYS} days"),
            day_bytes(ROUNDED_DAY_S) * days,
            "bytes",
        ),
        Line::new(
            "kept, all copies",
            format!(
                "{} x {COPIES} copies",
                bytes(day_bytes(ROUNDED_DAY_S) * days)
            ),
            kept,
            "bytes",
        )
        .exactly(exact.kept_bytes() as f64)
        .remark(format!(
            "{} PB exactly, with {} s",
            number((exact.kept_bytes() as f64 / 1e14).round() / 10.0),
            count(DAY_S)
        )),
        Line::new(
            "without the copies",
            format!("{} / {COPIES} copies", bytes(kept)),
            kept / copies,
            "bytes",
        )
        .remark("what one gets who forgets them"),
        Line::new(
            "for one day only",
            format!("{} / {RETENTION_DAYS} days", bytes(kept)),
            kept / days,
            "bytes",
        )
        .remark("what one gets who keeps one day"),
        Line::new(
            "disk writes",
            format!("{} x {COPIES} copies", bytes_per_s(ingest as f64)),
            writes,
            "bytes_per_s",
        ),
        Line::new(
            "brokers",
            format!("{} / {limit}, rounded up{floor}", bytes_per_s(writes)),
            n as f64,
            "brokers",
        ),
        Line::new(
            "counted as a database",
            format!(
                "{} writes/s / {} writes/s",
                number(database.writes_per_s),
                count(DATABASE_WRITES_PER_S)
            ),
            database.servers as f64,
            "servers",
        )
        .remark(database.verdict),
        Line::new(
            "network in, each broker",
            format!("{} / {n} brokers", bytes_per_s(writes)),
            each,
            "bytes_per_s",
        )
        .remark(format!("{} of {}", share(each / nic), bytes_per_s(nic))),
        Line::new(
            "disk space, each broker",
            format!("{} / {n} brokers", bytes(kept)),
            kept / n as f64,
            "bytes",
        )
        .remark("disk space, not speed, often sets the number of brokers"),
        Line::new(
            "partitions of the busiest topic",
            format!(
                "{} / {} a consumer server",
                bytes_per_s(TOPIC_BYTES_PER_S as f64),
                bytes_per_s(CONSUMER_BYTES_PER_S as f64)
            ),
            group.partitions as f64,
            "partitions",
        )
        .remark(format!(
            "each of {n} brokers leads {}",
            group.leaders_per_broker()
        )),
        Line::new(
            "into each partition",
            format!(
                "{} / {}",
                bytes_per_s(TOPIC_BYTES_PER_S as f64),
                group.partitions
            ),
            group.partition_bytes_per_s,
            "bytes_per_s",
        ),
        Line::new(
            "a segment fills in",
            format!(
                "{} / {}",
                bytes(SEGMENT_BYTES as f64),
                bytes_per_s(group.partition_bytes_per_s)
            ),
            group.segment_seconds,
            "s",
        ),
        Line::new(
            "kept in each partition",
            format!(
                "{} x {} s",
                bytes_per_s(group.partition_bytes_per_s),
                count(rounded.retention_s.value)
            ),
            group.partition_bytes,
            "bytes",
        )
        .remark("what moving one partition to another broker copies"),
        Line::new(
            "messages written, each broker",
            format!("{} msg/s / {n} brokers", number(database.writes_per_s)),
            database.writes_per_s / n as f64,
            "messages/s",
        ),
    ]
}

fn left_out(
    rounded: &Demand,
    exact: &Demand,
    writes: &Constraint,
    brokers: &BrokerCounts,
    headroom: Percent,
) -> Vec<Line> {
    let n = brokers.at_full;
    let (limit, has) = (limit(writes), writes.broker_has as f64);
    let of_days = |demand: &Demand| {
        Refill::of(
            demand.kept_bytes() as f64 / n as f64,
            writes.broker_has as u64,
            writes.per_broker(n),
            exact.retention_s.value,
        )
    };
    let (refill, refill_exact) = (of_days(rounded), of_days(exact));
    let left = n - 1;
    let after_loss = writes.per_broker(left);
    let enough = if after_loss > has {
        "more than"
    } else {
        "within"
    };
    let out = rounded.peak_bytes_per_s() * (COPIES - 1 + rounded.reader_groups.value);
    let against_kept = |refill: &Refill| {
        let kept_s = exact.retention_s.value as f64;
        match refill.seconds.total_cmp(&kept_s) {
            Ordering::Less => format!("shorter than the {RETENTION_DAYS} days kept"),
            Ordering::Equal => format!("as long as the {RETENTION_DAYS} days kept"),
            Ordering::Greater => format!("longer than the {RETENTION_DAYS} days kept"),
        }
    };
    let writes = bytes_per_s(writes.cluster_needs as f64);
    vec![
        Line::new(
            "with one broker lost",
            format!("{writes} / {left} brokers left"),
            after_loss,
            "bytes_per_s",
        )
        .remark(format!("each, {enough} the {limit} that a broker takes")),
        Line::new(
            "brokers to survive that",
            format!("{writes} / {limit}, rounded up, + 1"),
            brokers.one_lost as f64,
            "brokers",
        ),
        Line::new(
            "brokers at the headroom",
            format!("{writes} / ({limit} x {headroom}), rounded up"),
            brokers.at_headroom as f64,
            "brokers",
        ),
        Line::new(
            "brokers for both",
            format!("{writes} / ({limit} x {headroom}), rounded up, + 1"),
            brokers.at_headroom_one_lost as f64,
            "brokers",
        ),
        Line::new(
            "refilling a lost broker",
            format!("{} / {limit}", bytes(refill.broker_bytes)),
            refill.seconds,
            "s",
        )
        .exactly(refill_exact.seconds)
        .remark(format!(
            "{}; exactly, {} take {}, {}",
            against_kept(&refill),
            bytes(refill_exact.broker_bytes),
            seconds(refill_exact.seconds),
            against_kept(&refill_exact)
        )),
        Line::new(
            "network out, each broker",
            format!(
                "{} x ({COPIES} - 1 followers + {} reader group) / {n} brokers",
                bytes_per_s(rounded.peak_bytes_per_s() as f64),
                rounded.reader_groups.value
            ),
            out as f64 / n as f64,
            "bytes_per_s",
        )
        .remark(format!(
            "each further group that reads everything adds {}",
            bytes_per_s(rounded.peak_bytes_per_s() as f64 / n as f64)
        )),
    ]
}

fn cpu(costs: &UnitCosts, brokers: u64) -> Vec<Line> {
    let load = demand(DAY_S);
    let gb_per_s = load.peak_bytes_per_s() as f64 / 1e9;
    let ns_per_gb = costs.cluster_ns_per_gb(COPIES, load.reader_groups.value);
    let cores = gb_per_s * ns_per_gb as f64 / 1e9;
    let parts = [
        ("c_lead", &costs.lead_ns_per_gb),
        ("c_fetch", &costs.fetch_ns_per_gb),
        ("c_send", &costs.send_ns_per_gb),
        ("c_follow", &costs.follow_ns_per_gb),
    ];
    let sources: Vec<String> = parts
        .iter()
        .map(|(name, value)| format!("{name} {}: {}", cost(value.value), value.source))
        .collect();
    vec![
        Line::new(
            "cores of all brokers",
            Resource::Cpu.formula().to_owned(),
            cores,
            "cores",
        )
        .remark(sources.join("; ")),
        Line::new(
            "cores of each broker",
            format!("{} cores / {brokers} brokers", number(cores)),
            cores / brokers as f64,
            "cores",
        ),
    ]
}
