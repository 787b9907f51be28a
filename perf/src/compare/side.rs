//! One side of a comparison: a run, or several runs of the same load whose medians stand for it.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use super::metric::Metric;
use crate::report::{StoredError, StoredReport};

/// Where a metric was measured: the steps and reads of a run in their order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stretch {
    number: usize,
    pub name: String,
}

pub type Key = (Stretch, Metric);

/// The values of one metric, one for each run of the side.
#[derive(Clone, Debug, Default)]
pub struct Sample(Vec<f64>);

impl Sample {
    pub fn median(&self) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        match sorted.len() % 2 {
            1 => sorted[middle],
            _ => (sorted[middle - 1] + sorted[middle]) / 2.0,
        }
    }

    /// How far the runs lie apart, as a share of the median; None for a single run, which says nothing about that.
    pub fn spread(&self) -> Option<f64> {
        let max = self.0.iter().copied().fold(f64::MIN, f64::max);
        let min = self.0.iter().copied().fold(f64::MAX, f64::min);
        (self.0.len() > 1).then(|| (max - min) / self.median())
    }
}

pub struct Side {
    pub name: String,
    pub run_count: usize,
    pub samples: BTreeMap<Key, Sample>,
    /// What must be the same for figures to compare, from the first run.
    conditions: BTreeMap<&'static str, Value>,
}

/// What is compared with nothing else than itself: the name that a reader knows, and where it stands in a report.
const CONDITIONS: [(&str, &str); 11] = [
    ("processor", "/provenance/machine/cpu_model"),
    ("cores", "/provenance/machine/cores"),
    ("memory", "/provenance/machine/memory_bytes"),
    ("disk", "/provenance/storage/device"),
    ("file system", "/provenance/storage/file_system"),
    ("durability", "/workload/durability"),
    ("record size", "/workload/messageSize"),
    ("partitions", "/workload/partitionsPerTopic"),
    ("producers", "/workload/producersPerTopic"),
    ("batch.size", "/workload/producerConfig/batch.size"),
    ("compression", "/workload/producerConfig/compression.type"),
];

impl Side {
    /// `reports` are files, or directories with a `report.json`, parted by commas.
    pub fn read(reports: &str) -> Result<Self, StoredError> {
        let mut side = Self {
            name: reports.to_owned(),
            run_count: 0,
            samples: BTreeMap::new(),
            conditions: BTreeMap::new(),
        };
        for path in reports.split(',') {
            let report = StoredReport::read_valid(Path::new(path))?;
            side.run_count += 1;
            side.add(&report.fields()?);
            for (name, pointer) in CONDITIONS {
                let found = report.at(pointer).clone();
                side.conditions.entry(name).or_insert(found);
            }
        }
        Ok(side)
    }

    /// The first condition that differs, with both values.
    pub fn differs(&self, other: &Self) -> Option<(&'static str, String, String)> {
        self.conditions.iter().find_map(|(name, value)| {
            let of_other = &other.conditions[name];
            (value != of_other).then(|| (*name, value.to_string(), of_other.to_string()))
        })
    }

    fn add(&mut self, figures: &Figures) {
        for (number, step) in figures.steps.iter().enumerate() {
            let stretch = Stretch {
                number,
                name: format!("produce {}", number + 1),
            };
            let mut add = |metric, value: Option<f64>| self.push(&stretch, metric, value);
            add(Metric::Throughput, Some(step.acked_mb_per_s));
            // A closed loop hides the waiting, so its latency is compared with nothing.
            if let (Some(latency), Some(_open)) = (&step.publish_latency, step.offered_mb_per_s) {
                add(Metric::P50, Some(latency.p50_ms));
                add(Metric::P90, Some(latency.p90_ms));
                add(Metric::P99, Some(latency.p99_ms));
                add(Metric::P999, Some(latency.p999_ms));
                add(Metric::Max, Some(latency.max_ms));
                let end_to_end = step.end_to_end_latency.as_ref();
                add(Metric::EndToEndP50, end_to_end.map(|it| it.p50_ms));
                add(Metric::EndToEndP99, end_to_end.map(|it| it.p99_ms));
            }
            add(Metric::BrokerCpu, step.cpu.broker_cpu_s_per_gb);
            add(Metric::ClientCpu, step.cpu.client_cpu_s_per_gb);
        }
        for (number, read) in figures.reads.iter().enumerate() {
            let stretch = Stretch {
                number: figures.steps.len() + number,
                name: format!("fetch, {}", read.kind),
            };
            self.push(&stretch, Metric::Fetch, Some(read.mb_per_s));
            self.push(&stretch, Metric::BrokerCpu, read.cpu.broker_cpu_s_per_gb);
        }
    }

    fn push(&mut self, stretch: &Stretch, metric: Metric, value: Option<f64>) {
        // Zero is what was not measured; nothing is a share of it.
        if let Some(value) = value.filter(|value| *value > 0.0) {
            let sample = self.samples.entry((stretch.clone(), metric)).or_default();
            sample.0.push(value);
        }
    }
}

#[derive(Deserialize)]
struct Figures {
    steps: Vec<StoredStep>,
    reads: Vec<StoredRead>,
}

#[derive(Deserialize)]
struct StoredStep {
    acked_mb_per_s: f64,
    offered_mb_per_s: Option<f64>,
    publish_latency: Option<StoredLatency>,
    end_to_end_latency: Option<StoredLatency>,
    cpu: StoredCpu,
}

#[derive(Deserialize)]
struct StoredLatency {
    p50_ms: f64,
    p90_ms: f64,
    p99_ms: f64,
    p999_ms: f64,
    max_ms: f64,
}

#[derive(Deserialize)]
struct StoredCpu {
    broker_cpu_s_per_gb: Option<f64>,
    client_cpu_s_per_gb: Option<f64>,
}

#[derive(Deserialize)]
struct StoredRead {
    kind: String,
    mb_per_s: f64,
    cpu: StoredCpu,
}
