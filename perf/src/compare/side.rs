//! One side of a comparison: a run, or several runs of the same load whose medians stand for it.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use super::metric::Metric;
use super::sample::Sample;
use crate::report::{StoredError, StoredReport};

/// Where a metric was measured: the steps of a run by their place, and its reads by their kind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stretch {
    Step(usize),
    Read(String),
}

pub type Key = (Stretch, Metric);

pub struct Side {
    pub name: String,
    pub run_count: usize,
    pub samples: BTreeMap<Key, Sample>,
    /// What was offered in each step, as the report says it.
    pub rates: Vec<String>,
    /// Runs and steps that are not in the samples, and why.
    pub left_out: Vec<String>,
    /// What must be the same for figures to compare, from the first run.
    conditions: BTreeMap<&'static str, Value>,
}

/// What is compared with nothing else than itself: the name that a reader knows, and where it stands in a report.
const CONDITIONS: [(&str, &str); 13] = [
    ("processor", "/provenance/machine/cpu_model"),
    ("cores", "/provenance/machine/cores"),
    ("memory", "/provenance/machine/memory_bytes"),
    ("disk", "/provenance/storage/device"),
    ("file system", "/provenance/storage/file_system"),
    ("durability", "/workload/durability"),
    ("rates", "/workload/producerRates"),
    ("record size", "/workload/messageSize"),
    ("partitions", "/workload/partitionsPerTopic"),
    ("producers", "/workload/producersPerTopic"),
    ("batch.size", "/workload/producerConfig/batch.size"),
    ("backlog", "/workload/consumerBacklogSizeGB"),
    ("compression", "/workload/producerConfig/compression.type"),
];

impl Side {
    /// `reports` are files, or directories with a `report.json`, parted by commas; a run that is not valid is refused.
    pub fn read(reports: &str) -> Result<Self, StoredError> {
        let mut side = Self::empty(reports);
        for path in reports.split(',') {
            side.push(&StoredReport::read_valid(Path::new(path))?)?;
        }
        Ok(side)
    }

    /// The same of runs that were made together: one that failed is left out, and so are the latencies of a step whose
    /// generator was late. The side says which.
    pub fn of_runs(name: &str, reports: &[impl AsRef<Path>]) -> Self {
        let mut side = Self::empty(name);
        for path in reports {
            let pushed =
                StoredReport::read_whole(path.as_ref()).and_then(|report| side.push(&report));
            if let Err(error) = pushed {
                side.left_out.push(error.to_string());
            }
        }
        side
    }

    fn empty(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            run_count: 0,
            samples: BTreeMap::new(),
            rates: Vec::new(),
            left_out: Vec::new(),
            conditions: BTreeMap::new(),
        }
    }

    fn push(&mut self, report: &StoredReport) -> Result<(), StoredError> {
        let figures: Figures = report.fields()?;
        self.run_count += 1;
        for (name, pointer) in CONDITIONS {
            let found = report.at(pointer).clone();
            self.conditions.entry(name).or_insert(found);
        }
        if self.rates.len() < figures.steps.len() {
            // A search has more steps than it was asked for; they are called by what they really offered.
            let asked = figures.workload.producer_rates;
            self.rates = match asked.len() == figures.steps.len() {
                true => asked,
                false => figures.steps.iter().map(|step| step.rate.clone()).collect(),
            };
        }
        for (number, step) in figures.steps.iter().enumerate() {
            self.add_step(number, step);
        }
        for read in &figures.reads {
            let stretch = Stretch::Read(read.kind.clone());
            self.add(&stretch, Metric::Fetch, Some(read.mb_per_s));
            self.add(&stretch, Metric::BrokerCpu, read.cpu.broker_cpu_s_per_gb);
        }
        Ok(())
    }

    fn add_step(&mut self, number: usize, step: &StoredStep) {
        let stretch = Stretch::Step(number);
        self.add(&stretch, Metric::Throughput, Some(step.acked_mb_per_s));
        self.add(&stretch, Metric::BrokerCpu, step.cpu.broker_cpu_s_per_gb);
        self.add(&stretch, Metric::ClientCpu, step.cpu.client_cpu_s_per_gb);
        // A closed loop hides the waiting, so its latency is compared with nothing.
        let (Some(latency), Some(_open)) = (&step.publish_latency, step.offered_mb_per_s) else {
            return;
        };
        if !step.generator.valid {
            let reason = step.generator.reason.as_deref().unwrap_or("it was late");
            self.left_out.push(format!(
                "{}: latencies of run {} at {}: {reason}",
                self.name, self.run_count, self.rates[number]
            ));
            return;
        }
        self.add(&stretch, Metric::P50, Some(latency.p50_ms));
        self.add(&stretch, Metric::P90, Some(latency.p90_ms));
        self.add(&stretch, Metric::P99, Some(latency.p99_ms));
        self.add(&stretch, Metric::P999, Some(latency.p999_ms));
        self.add(&stretch, Metric::Max, Some(latency.max_ms));
        let end_to_end = step.end_to_end_latency.as_ref();
        self.add(
            &stretch,
            Metric::EndToEndP50,
            end_to_end.map(|it| it.p50_ms),
        );
        self.add(
            &stretch,
            Metric::EndToEndP99,
            end_to_end.map(|it| it.p99_ms),
        );
    }

    fn add(&mut self, stretch: &Stretch, metric: Metric, value: Option<f64>) {
        // Zero is what was not measured; nothing is a share of it.
        if let Some(value) = value.filter(|value| *value > 0.0) {
            let key = (stretch.clone(), metric);
            self.samples.entry(key).or_default().push(value);
        }
    }

    /// How the side's reports call a stretch.
    pub fn name_of(&self, stretch: &Stretch) -> String {
        match stretch {
            Stretch::Step(number) => match self.rates.get(*number) {
                Some(rate) => format!("produce, {rate}"),
                None => format!("produce {}", number + 1),
            },
            Stretch::Read(kind) => format!("fetch, {kind}"),
        }
    }

    /// The conditions that differ, with both values.
    pub fn differs(&self, other: &Self) -> Vec<Disparity> {
        self.conditions
            .iter()
            .filter_map(|(name, value)| Some((*name, value, other.conditions.get(name)?)))
            .flat_map(|(name, one, other)| disparities(name, one, other))
            .collect()
    }
}

/// A condition in which two sides differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disparity {
    pub what: String,
    pub values: [String; 2],
}

/// Of a condition that has several parts, only the parts that differ.
fn disparities(name: &str, one: &Value, other: &Value) -> Vec<Disparity> {
    if one == other {
        return Vec::new();
    }
    if let (Value::Object(parts), Value::Object(others)) = (one, other) {
        let part = |(part, value)| {
            let of_other = others.get(part).unwrap_or(&Value::Null);
            disparities(&format!("{name}: {part}"), value, of_other)
        };
        return parts.iter().flat_map(part).collect();
    }
    let shown = |value: &Value| match value {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    };
    vec![Disparity {
        what: name.to_owned(),
        values: [shown(one), shown(other)],
    }]
}

#[derive(Deserialize)]
struct Figures {
    workload: StoredWorkload,
    steps: Vec<StoredStep>,
    reads: Vec<StoredRead>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct StoredWorkload {
    producer_rates: Vec<String>,
}

#[derive(Deserialize)]
struct StoredStep {
    rate: String,
    acked_mb_per_s: f64,
    offered_mb_per_s: Option<f64>,
    publish_latency: Option<StoredLatency>,
    end_to_end_latency: Option<StoredLatency>,
    generator: StoredGenerator,
    cpu: StoredCpu,
}

#[derive(Deserialize)]
struct StoredGenerator {
    valid: bool,
    reason: Option<String>,
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn of_a_condition_with_parts_only_those_that_differ_are_told() {
        let (one, other) = (json!({"a": 1, "b": "x"}), json!({"a": 1, "b": "y"}));
        let told = disparities("durability", &one, &other);
        let expected = Disparity {
            what: "durability: b".to_owned(),
            values: ["x".to_owned(), "y".to_owned()],
        };
        assert_eq!(told, [expected]);
        assert!(disparities("cores", &json!(2), &json!(2)).is_empty());
    }
}
