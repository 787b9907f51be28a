//! One side of a comparison: a run, or several runs of the same load whose medians stand for it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Map, Value};

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
    /// What the side's own runs are unlike each other in.
    pub unlike: Vec<Unlike>,
    /// What must be the same for figures to compare, from the first run.
    conditions: BTreeMap<&'static str, Value>,
    /// Where the first run was read from.
    first: PathBuf,
}

/// A run that was made under other conditions than the first run of its side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unlike {
    pub first: String,
    pub other: String,
    pub disparity: Disparity,
}

/// What is compared with nothing else than itself: the name that a reader knows, and where it stands in a report.
const CONDITIONS: [(&str, &str); 24] = [
    ("processor", "/provenance/machine/cpu_model"),
    ("cores", "/provenance/machine/cores"),
    ("memory", "/provenance/machine/memory_bytes"),
    ("disk", "/provenance/storage/device"),
    ("file system", "/provenance/storage/file_system"),
    ("durability", "/workload/durability"),
    ("rates", "/workload/producerRates"),
    ("record size", "/workload/messageSize"),
    ("payload", "/workload/payload"),
    ("keys", "/workload/keyDistributor"),
    ("number of keys", "/workload/keyCount"),
    ("zipf exponent", "/workload/zipfExponent"),
    ("topics", "/workload/topics"),
    ("partitions", "/workload/partitionsPerTopic"),
    ("producers", "/workload/producersPerTopic"),
    ("subscriptions", "/workload/subscriptionsPerTopic"),
    ("consumers", "/workload/consumerPerSubscription"),
    ("producer", "/workload/producerConfig"),
    ("consumer", "/workload/consumerConfig"),
    ("backlog", "/workload/consumerBacklogSizeGB"),
    ("drain ratio", "/workload/backlogDrainRatio"),
    ("replay consumers", "/workload/replayConsumers"),
    ("replay from", "/workload/replayFrom"),
    ("replay once", "/workload/replayOnce"),
];

impl Side {
    /// `reports` are files, or directories with a `report.json`, parted by commas; a run that is not valid is refused.
    pub fn read(reports: &str) -> Result<Self, StoredError> {
        let mut side = Self::empty(reports);
        for path in reports.split(',') {
            let path = Path::new(path);
            side.push(path, &StoredReport::read_valid(path)?)?;
        }
        Ok(side)
    }

    /// The same of runs that were made together: one that failed is left out, and so are the latencies of a step whose
    /// generator was late. The side says which.
    pub fn of_runs(name: &str, reports: &[impl AsRef<Path>]) -> Self {
        let mut side = Self::empty(name);
        for path in reports {
            let path = path.as_ref();
            let pushed = StoredReport::read_whole(path).and_then(|report| side.push(path, &report));
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
            unlike: Vec::new(),
            conditions: BTreeMap::new(),
            first: PathBuf::new(),
        }
    }

    fn push(&mut self, path: &Path, report: &StoredReport) -> Result<(), StoredError> {
        let figures: Figures = report.fields()?;
        self.run_count += 1;
        let conditions = conditions_of(report);
        if self.run_count == 1 {
            self.conditions = conditions;
            self.first = path.to_owned();
        } else {
            let found = all_disparities(&self.conditions, &conditions);
            self.unlike.extend(found.map(|disparity| Unlike {
                first: self.first.display().to_string(),
                other: path.display().to_string(),
                disparity,
            }));
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
        all_disparities(&self.conditions, &other.conditions).collect()
    }
}

fn conditions_of(report: &StoredReport) -> BTreeMap<&'static str, Value> {
    CONDITIONS
        .into_iter()
        .map(|(name, pointer)| (name, report.at(pointer).clone()))
        .collect()
}

fn all_disparities(
    one: &BTreeMap<&'static str, Value>,
    other: &BTreeMap<&'static str, Value>,
) -> impl Iterator<Item = Disparity> {
    one.iter()
        .filter_map(|(name, value)| Some((*name, value, other.get(name)?)))
        .flat_map(|(name, one, other)| disparities(name, one, other))
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
        let names: BTreeSet<&String> = parts.keys().chain(others.keys()).collect();
        let part = |part: &String| {
            let of = |parts: &Map<String, Value>| parts.get(part).cloned().unwrap_or_default();
            disparities(&format!("{name}: {part}"), &of(parts), &of(others))
        };
        return names.into_iter().flat_map(part).collect();
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
        let more = json!({"a": 1, "b": "x", "c": 2});
        let told = disparities("durability", &one, &more);
        assert_eq!(told[0].what, "durability: c");
        assert!(disparities("cores", &json!(2), &json!(2)).is_empty());
    }
}
