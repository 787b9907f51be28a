//! Named loads, under the names and with the words of the OpenMessaging Benchmark.

use serde::Serialize;

use crate::quantity::Rate;

/// A load without the cluster that it is put on.
#[derive(Clone, Debug)]
pub struct Workload {
    pub name: &'static str,
    pub partitions_per_topic: u32,
    pub message_size: u64,
    pub producers_per_topic: u32,
    pub consumer_per_subscription: u32,
    pub producer_rate: Rate,
    /// Not the workload's but the driver's in OpenMessaging; what this load is usually sent in.
    pub batch_bytes: u64,
}

const fn workload(
    name: &'static str,
    partitions: u32,
    message_size: u64,
    clients: u32,
    rate: u64,
    batch_bytes: u64,
) -> Workload {
    Workload {
        name,
        partitions_per_topic: partitions,
        message_size,
        producers_per_topic: clients,
        consumer_per_subscription: clients,
        producer_rate: Rate::Records(rate),
        batch_bytes,
    }
}

/// The load when none is named.
pub const DEFAULT: &str = "1-topic-1-partition-1kb";

pub const BUILT_IN: [Workload; 8] = [
    workload("1-topic-1-partition-1kb", 1, 1024, 1, 50_000, 1_000_000),
    workload("1-topic-1-partition-100b", 1, 100, 1, 500_000, 1_000_000),
    workload("1-topic-16-partitions-1kb", 16, 1024, 1, 50_000, 131_072),
    workload("1-topic-16-partitions-100b", 16, 100, 1, 500_000, 131_072),
    workload("1-topic-100-partitions-1kb", 100, 1024, 1, 50_000, 16_384),
    workload(
        "1-topic-100-partitions-1kb-4p-4c-200k",
        100,
        1024,
        4,
        200_000,
        16_384,
    ),
    workload("1-topic-1000-partitions-1kb", 1000, 1024, 1, 50_000, 16_384),
    workload(
        "1-topic-10000-partitions-1kb",
        10_000,
        1024,
        1,
        50_000,
        16_384,
    ),
];

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no workload '{name}'{}; `corelog-perf workloads` lists them", suggestion.map(|near| format!(", did you mean '{near}'?")).unwrap_or_default())]
pub struct UnknownWorkload {
    name: String,
    suggestion: Option<&'static str>,
}

pub fn find(name: &str) -> Result<Workload, UnknownWorkload> {
    let by_name = BUILT_IN.iter().find(|workload| workload.name == name);
    by_name.cloned().ok_or_else(|| UnknownWorkload {
        name: name.to_owned(),
        suggestion: nearest(name),
    })
}

/// The name that shares the most letters from the start and the end, if that is most of it.
fn nearest(name: &str) -> Option<&'static str> {
    let common = |a: &mut dyn Iterator<Item = (char, char)>| a.take_while(|(x, y)| x == y).count();
    let likeness = |candidate: &str| {
        common(&mut candidate.chars().zip(name.chars()))
            + common(&mut candidate.chars().rev().zip(name.chars().rev()))
    };
    let best = BUILT_IN
        .iter()
        .map(|workload| workload.name)
        .max_by_key(|candidate| likeness(candidate))?;
    (likeness(best) * 2 > name.len()).then_some(best)
}

impl Serialize for Rate {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_workload_is_built_in() {
        assert_eq!(find(DEFAULT).unwrap().partitions_per_topic, 1);
    }

    #[test]
    fn a_misspelt_name_gets_a_suggestion() {
        let suggestion = |name| find(name).unwrap_err().suggestion;
        assert_eq!(
            suggestion("1-topic-16-partition-1kb"),
            Some("1-topic-16-partitions-1kb")
        );
        assert_eq!(suggestion("nonsense"), None);
    }
}
