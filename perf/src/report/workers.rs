//! The workers that put a load on, over all of a run and in each step.

use std::fmt::Write;

use serde::Serialize;

use super::{GeneratorReport, Report, StepReport, number};
use crate::cpu::{CpuUse, MachineShare};
use crate::histogram::LatencySummary;
use crate::provenance::Machine;

/// One worker, over all steps.
#[derive(Clone, Debug, Serialize)]
pub struct WorkerReport {
    pub address: String,
    pub hostname: String,
    #[serde(flatten)]
    pub machine: Machine,
    /// None if no load was begun.
    pub clock: Option<ClockReport>,
    /// Of its own process, for the payload that was acked to it.
    pub cpu_s_per_gb: Option<f64>,
    pub lag: Option<LatencySummary>,
}

/// A worker's clock against the coordinator's, around the last step.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct ClockReport {
    /// How far its wall clock was ahead. Records are stamped as if it had been right.
    pub wall_clock_ahead_ms: f64,
    /// By how much that may be wrong at any time of the step.
    pub uncertainty_ms: f64,
    /// How much it moved over the step.
    pub drift_ms: f64,
}

/// What one worker did in one step.
#[derive(Clone, Debug, Serialize)]
pub struct WorkerStepReport {
    pub address: String,
    pub sent_mb_per_s: f64,
    pub acked_mb_per_s: f64,
    pub consumed_mb_per_s: f64,
    pub generator: GeneratorReport,
    pub cpu_s_per_gb: Option<f64>,
    /// Of its own process.
    pub cpu: Option<CpuUse>,
    /// Of the worker's machine; a broker on it is among the others.
    pub machine: MachineShare,
}

/// Where the load came from.
pub fn write(out: &mut String, report: &Report) -> std::fmt::Result {
    for worker in &report.provenance.workers {
        write!(
            out,
            "worker {} ({}, {} cores, kernel {})",
            worker.address, worker.hostname, worker.machine.cores, worker.machine.kernel
        )?;
        if let Some(clock) = &worker.clock {
            write!(
                out,
                ": its wall clock {:+.3} ms, known to {} ms",
                clock.wall_clock_ahead_ms,
                number(clock.uncertainty_ms)
            )?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// What each did at one rate.
pub fn write_step(out: &mut String, step: &StepReport) -> std::fmt::Result {
    for worker in &step.workers {
        write!(
            out,
            "At {}, worker {}: confirmed {} MB/s",
            step.rate,
            worker.address,
            number(worker.acked_mb_per_s)
        )?;
        if worker.consumed_mb_per_s > 0.0 {
            write!(out, ", consumed {} MB/s", number(worker.consumed_mb_per_s))?;
        }
        if let Some(cost) = worker.cpu_s_per_gb {
            write!(out, ", {} CPU-s/GB", number(cost))?;
        }
        if let Some(lag) = &worker.generator.lag {
            write!(
                out,
                ", generator lag p50 {} ms, p99 {} ms",
                number(lag.p50_ms),
                number(lag.p99_ms)
            )?;
        }
        writeln!(out)?;
    }
    Ok(())
}
