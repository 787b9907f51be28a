//! What the text says.

use super::super::constraint::{BrokerCounts, Constraint};
use super::super::demand::Demand;
use super::super::estimate::{ConsumerGroup, DATABASE_WRITES_PER_S, DatabaseModel};
use super::super::flags::NIC_BYTES_PER_S;
use super::super::notation::{bytes, bytes_per_s, count, number, share};
use super::line::Line;
use super::{
    CONSUMER_BYTES_PER_S, COPIES, DAY_S, MESSAGE_BYTES, MESSAGES_PER_S, RETENTION_DAYS,
    ROUNDED_DAY_S, SEGMENT_BYTES, TOPIC_BYTES_PER_S, limit,
};
use crate::quantity::Percent;

pub fn lines(
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
