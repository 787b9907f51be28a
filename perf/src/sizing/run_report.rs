//! A run's report as sizing reads it: the figures in it.

use serde::Deserialize;
use serde::de::IgnoredAny;

/// A report of schema version 1, as far as sizing reads it.
#[derive(Deserialize)]
pub struct RunReport {
    pub provenance: Provenance,
    workload: Workload,
    baseline_before: Option<Baseline>,
    baseline_after: Option<Baseline>,
    steps: Vec<Step>,
    reads: Vec<Read>,
}

#[derive(Deserialize)]
pub struct Provenance {
    pub machine: Machine,
}

#[derive(Deserialize)]
pub struct Machine {
    pub cores: u64,
    pub memory_bytes: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Workload {
    replication_factor: u64,
}

#[derive(Deserialize)]
struct Baseline {
    disk: Disk,
}

#[derive(Deserialize)]
struct Disk {
    measured: Option<MeasuredDisk>,
}

#[derive(Deserialize)]
struct MeasuredDisk {
    o_direct: bool,
    writes: Vec<Write>,
}

#[derive(Deserialize)]
struct Write {
    mb_per_s: f64,
}

#[derive(Deserialize)]
pub struct Step {
    pub acked_mb_per_s: f64,
    consumed_mb_per_s: f64,
    /// What these cost the broker is in its CPU and is not known apart.
    replay_mb_per_s: Option<f64>,
    backlog: Option<IgnoredAny>,
    cpu: Cpu,
}

#[derive(Deserialize)]
struct Read {
    kind: String,
    failure: Option<String>,
    cpu: Cpu,
}

#[derive(Deserialize)]
struct Cpu {
    broker_cpu_s_per_gb: Option<f64>,
}

impl RunReport {
    /// The best write of the disk alone, the mean of before and after; None without O_DIRECT, which measures memory.
    pub fn disk_mb_per_s(&self) -> Option<f64> {
        let rates: Vec<f64> = [&self.baseline_before, &self.baseline_after]
            .into_iter()
            .flatten()
            .filter_map(|baseline| baseline.disk.measured.as_ref())
            .filter(|disk| disk.o_direct)
            .filter_map(|disk| {
                let rates = disk.writes.iter().map(|write| write.mb_per_s);
                rates.max_by(f64::total_cmp)
            })
            .collect();
        mean(&rates)
    }

    /// CPU-s/GB of reading what is still in memory.
    pub fn fetch_s_per_gb(&self) -> Option<f64> {
        self.reads
            .iter()
            .find(|read| read.kind == "recent" && read.failure.is_none())
            .and_then(|read| read.cpu.broker_cpu_s_per_gb)
    }

    pub fn busiest_step(&self) -> Option<&Step> {
        self.steps
            .iter()
            .max_by(|a, b| a.acked_mb_per_s.total_cmp(&b.acked_mb_per_s))
    }

    /// CPU-s/GB of producing, at the highest rate of the run: a broker with little to do spends more on each GB.
    /// What consumers beside the producers cost is taken off, if the run tells it.
    pub fn lead_s_per_gb(&self) -> Option<f64> {
        if self.workload.replication_factor != 1 {
            return None;
        }
        let step = self.busiest_step()?;
        if step.replay_mb_per_s.is_some() || step.backlog.is_some() {
            return None;
        }
        let whole = step.cpu.broker_cpu_s_per_gb?;
        if step.consumed_mb_per_s <= 0.0 {
            return Some(whole);
        }
        Some(whole - step.consumed_mb_per_s / step.acked_mb_per_s * self.fetch_s_per_gb()?)
    }
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}
