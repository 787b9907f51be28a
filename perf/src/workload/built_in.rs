//! The OpenMessaging Benchmark's well-known workloads, as far as their files fit one machine's minute: where such
//! a file runs for 5 or 15 minutes, `--duration` decides here, and where it names a payload file, the payload is
//! half random. Some of ours are beside them.

use super::Workload;
use crate::keys::KeyDistributor;
use crate::payload::Payload;
use crate::quantity::Rate;

/// The load when none is named.
pub const DEFAULT: &str = "1-topic-1-partition-1kb";

/// What differs between the built-in workloads.
pub struct BuiltIn {
    pub name: &'static str,
    topics: u32,
    partitions_per_topic: u32,
    message_size: u64,
    producers_per_topic: u32,
    subscriptions_per_topic: u32,
    consumer_per_subscription: u32,
    rate: Rate,
}

/// Producers of a topic, its subscriptions, and the consumers of each.
struct Clients(u32, u32, u32);

const ONE: Clients = Clients(1, 1, 1);
const FOUR: Clients = Clients(4, 1, 4);

/// The benchmark's files offer 10,000,000 messages a second, or 0 for a search: more than is ever taken.
const MAX: Rate = Rate::Max;

const fn one_topic(
    name: &'static str,
    partitions: u32,
    message_size: u64,
    clients: Clients,
    rate: Rate,
) -> BuiltIn {
    topics(1, name, partitions, message_size, clients, rate)
}

const fn topics(
    topics: u32,
    name: &'static str,
    partitions_per_topic: u32,
    message_size: u64,
    Clients(producers_per_topic, subscriptions_per_topic, consumer_per_subscription): Clients,
    rate: Rate,
) -> BuiltIn {
    BuiltIn {
        name,
        topics,
        partitions_per_topic,
        message_size,
        producers_per_topic,
        subscriptions_per_topic,
        consumer_per_subscription,
        rate,
    }
}

/// A thousand messages a second.
const fn k(thousands: u64) -> Rate {
    Rate::Records(thousands * 1000)
}

#[rustfmt::skip]
pub const BUILT_IN: &[BuiltIn] = &[
    one_topic("1-topic-1-partition-1kb", 1, 1024, ONE, k(50)),
    one_topic("1-topic-1-partition-100b", 1, 100, ONE, k(50)),
    one_topic("1-topic-3-partition-100b-3producers", 3, 100, Clients(3, 1, 1), MAX),
    one_topic("1-topic-6-partition-100b", 6, 100, ONE, k(50)),
    one_topic("1-topic-16-partition-100b", 16, 100, ONE, k(50)),
    one_topic("1-topic-16-partitions-1kb", 16, 1024, ONE, k(50)),
    one_topic("1-topic-100-partitions-1kb", 100, 1024, ONE, k(50)),
    one_topic("1-topic-100-partitions-1kb-4p-4c-200k", 100, 1024, FOUR, k(200)),
    one_topic("1-topic-100-partitions-1kb-4p-4c-500k", 100, 1024, FOUR, k(500)),
    one_topic("1-topic-100-partitions-1kb-4p-4c-1000k", 100, 1024, FOUR, k(1000)),
    one_topic("1-topic-100-partitions-1kb-4p-4c-2000k", 100, 1024, FOUR, k(2000)),
    one_topic("1-topic-1000-partitions-1kb", 1000, 1024, ONE, k(50)),
    one_topic("1-topic-10000-partitions-1kb", 10_000, 1024, ONE, k(50)),
    one_topic("1-topic-10000-partitions-1kb-4p-4c-200k", 10_000, 1024, FOUR, k(200)),
    one_topic("1-topic-10000-partitions-1kb-4p-4c-500k", 10_000, 1024, FOUR, k(500)),
    one_topic("1-topic-10000-partitions-1kb-4p-4c-1000k", 10_000, 1024, FOUR, k(1000)),
    one_topic("1-topic-10000-partitions-1kb-4p-4c-2000k", 10_000, 1024, FOUR, k(2000)),
    one_topic("max-rate-1-topic-1-partition-1p-1c-100b", 1, 100, ONE, MAX),
    one_topic("max-rate-1-topic-1-partition-1p-1c-1kb", 1, 1024, ONE, MAX),
    one_topic("max-rate-1-topic-1-partition-1p-1c-64kb", 1, 65_536, ONE, MAX),
    one_topic("max-rate-1-topic-1-partition-4p-1c-1kb", 1, 1024, Clients(4, 1, 1), MAX),
    one_topic("max-rate-1-topic-10-partitions-1p-1c-100b", 10, 100, ONE, MAX),
    one_topic("max-rate-1-topic-10-partitions-1p-1c-1kb", 10, 1024, ONE, MAX),
    one_topic("max-rate-1-topic-10-partitions-1p-1c-64kb", 10, 65_536, ONE, MAX),
    one_topic("max-rate-1-topic-10-partitions-10p-10c-100b", 10, 100, Clients(10, 1, 10), MAX),
    one_topic("max-rate-1-topic-10-partitions-10p-10c-1kb", 10, 1024, Clients(10, 1, 10), MAX),
    one_topic("max-rate-1-topic-10-partitions-10p-10c-64kb", 10, 65_536, Clients(10, 1, 10), MAX),
    one_topic("max-rate-1-topic-16-partitions-100b", 16, 100, ONE, MAX),
    one_topic("max-rate-1-topic-16-partitions-1kb", 16, 1024, ONE, MAX),
    one_topic("max-rate-1-topic-100-partitions-100b", 100, 100, ONE, MAX),
    one_topic("max-rate-1-topic-100-partitions-1kb", 100, 1024, ONE, MAX),
    one_topic("max-rate-1-topic-100-partitions-1p-1c-100b", 100, 100, ONE, MAX),
    one_topic("max-rate-1-topic-100-partitions-1p-1c-1kb", 100, 1024, ONE, MAX),
    topics(10, "10-topic-16-partition-1kb", 16, 1024, ONE, k(500)),
    topics(100, "100-topics-1-partitions-1kb", 1, 1024, Clients(1, 3, 1), k(150)),
    topics(10, "1m-10-topics-1-partition-100b", 1, 100, ONE, k(1000)),
    topics(10, "1m-10-topics-3-partitions-100b", 3, 100, ONE, k(1000)),
    topics(10, "1m-10-topics-16-partitions-100b", 16, 100, ONE, k(1000)),
    one_topic("simple-workload", 10, 1024, ONE, k(10)),
];

impl BuiltIn {
    pub fn workload(&self) -> Workload {
        Workload {
            name: self.name.to_owned(),
            topics: self.topics,
            partitions_per_topic: self.partitions_per_topic,
            message_size: self.message_size,
            payload: Payload::default(),
            key_distributor: KeyDistributor::NoKey,
            producers_per_topic: self.producers_per_topic,
            subscriptions_per_topic: self.subscriptions_per_topic,
            consumer_per_subscription: self.consumer_per_subscription,
            in_groups: false,
            producer_rate: Some(self.rate),
            warmup: None,
            test_duration: None,
            backlog: None,
            batch_bytes: Some(usual_batch_bytes(self.topics * self.partitions_per_topic)),
        }
    }
}

/// The more partitions a rate is dealt out to, the smaller are the batches that fill before they linger.
fn usual_batch_bytes(partitions: u32) -> u64 {
    match partitions {
        1 => 1_000_000,
        2..=16 => 131_072,
        _ => 16_384,
    }
}

/// The benchmark's names for loads whose consumers begin behind a backlog.
pub fn is_backlog(name: &str) -> bool {
    name.starts_with("backlog-") || name.ends_with("-backlog")
}

/// The load that the backlog is of.
pub fn without_backlog(name: &str) -> &str {
    let name = name.strip_prefix("backlog-").unwrap_or(name);
    name.strip_suffix("-backlog").unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_name_is_there_twice() {
        let names: BTreeSet<_> = BUILT_IN.iter().map(|known| known.name).collect();
        assert_eq!(names.len(), BUILT_IN.len());
    }
}
