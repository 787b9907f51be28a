//! Who puts the load on: this process, or workers on other machines.

use super::error::RunError;
use crate::clock::Clock;
use crate::cpu::{CpuUse, MachineShare};
use crate::crew::{Crew, CrewControl, CrewNews, LoadOrder, LoadYield};
use crate::histogram::LatencyHistogram;
use crate::load_stage::LoadStage;
use crate::record::ProducerNumber;
use crate::report::{ClockReport, WorkerReport};
use crate::worker::{ClockOffset, Ended, Link, LinkControl, WorkerError};

/// One crew that is ready to begin.
pub enum Hand<'a> {
    Here(Box<Crew>),
    There {
        link: &'a mut Link,
        offset: ClockOffset,
    },
}

/// What a crew brings back, and, if it is not of this process, what its own process used.
pub struct Brought {
    pub load: LoadYield,
    pub away: Option<AwayCpu>,
}

pub struct AwayCpu {
    /// None where the process could not be read.
    pub process: Option<CpuUse>,
    pub machine: MachineShare,
}

pub enum HandControl {
    Here(CrewControl),
    There(LinkControl),
}

impl Hand<'_> {
    pub fn control(&self) -> HandControl {
        match self {
            Self::Here(crew) => HandControl::Here(crew.control()),
            Self::There { link, .. } => HandControl::There(link.control()),
        }
    }

    /// Returns when all threads of the crew have ended, which needs a release.
    pub fn work(self, start_ns: u64, tell: impl FnMut(CrewNews)) -> Result<Brought, WorkerError> {
        match self {
            Self::Here(crew) => Ok(Brought {
                load: crew.work(start_ns, tell),
                away: None,
            }),
            Self::There { link, offset } => {
                let Ended { load, cpu, machine } = link.work(start_ns, offset, tell)?;
                let away = AwayCpu {
                    process: cpu,
                    machine,
                };
                Ok(Brought {
                    load,
                    away: Some(away),
                })
            }
        }
    }
}

impl HandControl {
    pub fn stop(&self) {
        match self {
            Self::Here(crew) => crew.stop(),
            Self::There(link) => link.stop(),
        }
    }

    pub fn enter(&self, stage: LoadStage) {
        match self {
            Self::Here(crew) => crew.enter(stage),
            Self::There(link) => link.enter(stage),
        }
    }

    pub fn release(&self) {
        match self {
            Self::Here(crew) => crew.release(),
            Self::There(link) => link.release(),
        }
    }
}

/// A worker, and what is known of it over all steps.
struct Helper {
    link: Link,
    /// Of the last step.
    clock: Option<WorkerClock>,
    /// Of the last step: those that it puts on.
    producers: Vec<ProducerNumber>,
    cpu_s: f64,
    payload_bytes: u64,
    lag: LatencyHistogram,
}

/// How far a worker's clock was off in a step.
#[derive(Clone, Copy)]
struct WorkerClock {
    offset: ClockOffset,
    /// By how much it may have been off from that offset at any time of the step.
    error_ns: u64,
    /// How much it moved against ours over the step.
    drift_ns: i64,
}

/// No helper: this process does it.
#[derive(Default)]
pub struct Crews(Vec<Helper>);

impl Crews {
    /// Takes every worker for this run.
    pub fn open(workers: &[String], clock: Clock) -> Result<Self, WorkerError> {
        let open = |address: &String| {
            Ok(Helper {
                link: Link::open(address, clock)?,
                clock: None,
                producers: Vec::new(),
                cpu_s: 0.0,
                payload_bytes: 0,
                lag: LatencyHistogram::new(),
            })
        };
        workers.iter().map(open).collect::<Result<_, _>>().map(Self)
    }

    pub fn are_away(&self) -> bool {
        !self.0.is_empty()
    }

    pub fn address(&self, worker: usize) -> &str {
        self.0[worker].link.address()
    }

    /// The producers that a worker had in the last step.
    pub fn producers(&self, worker: usize) -> &[ProducerNumber] {
        &self.0[worker].producers
    }

    /// Connects all producers of the load, wherever they are.
    pub fn prepare(&mut self, order: LoadOrder, clock: Clock) -> Result<Vec<Hand<'_>>, RunError> {
        if !self.are_away() {
            return Ok(vec![Hand::Here(Box::new(Crew::gather(order, clock)?))]);
        }
        let orders = order.deal(self.0.len());
        for (helper, order) in self.0.iter_mut().zip(orders) {
            let offset = helper.link.measure_clock()?;
            helper.clock = Some(WorkerClock {
                offset,
                error_ns: offset.uncertainty_ns,
                drift_ns: 0,
            });
            helper.producers = order.producers.iter().map(|it| it.number).collect();
            helper.link.prepare(order, offset)?;
        }
        let mut hands = Vec::new();
        for helper in &mut self.0 {
            helper.link.await_ready()?;
            let clock = helper.clock.expect("it was just measured");
            hands.push(Hand::There {
                link: &mut helper.link,
                offset: clock.offset,
            });
        }
        Ok(hands)
    }

    /// After a step: what a worker brought back counts for it over all steps.
    pub fn took(&mut self, worker: usize, brought: &Brought) {
        let helper = &mut self.0[worker];
        let used = brought.away.as_ref().and_then(|away| away.process.as_ref());
        helper.cpu_s += used.map_or(0.0, |used| used.cpu_s);
        helper.payload_bytes += brought.load.measured.acked_bytes();
        helper.lag.merge(&brought.load.lag);
    }

    /// After a step: how far the clocks have moved meanwhile.
    pub fn compare_clocks(&mut self) -> Result<(), WorkerError> {
        for helper in &mut self.0 {
            let now = helper.link.measure_clock()?;
            let Some(clock) = &mut helper.clock else {
                continue;
            };
            clock.drift_ns = now.offset_ns - clock.offset.offset_ns;
            let error_at_end_ns = clock.drift_ns.unsigned_abs() + now.uncertainty_ns;
            clock.error_ns = error_at_end_ns.max(clock.offset.uncertainty_ns);
        }
        Ok(())
    }

    /// By how much the time from one worker's producer to another's consumer may be wrong. None: one clock took
    /// all times.
    pub fn end_to_end_uncertainty_ms(&self) -> Option<f64> {
        let clocks = self.0.iter().filter_map(|helper| helper.clock);
        let mut errors_ns: Vec<u64> = clocks.map(|clock| clock.error_ns).collect();
        if errors_ns.len() < 2 {
            return None;
        }
        errors_ns.sort_unstable();
        Some(errors_ns.iter().rev().take(2).sum::<u64>() as f64 / 1e6)
    }

    pub fn reports(&self, clock: Clock) -> Vec<WorkerReport> {
        let report = |helper: &Helper| {
            let host = helper.link.host();
            let payload_gb = helper.payload_bytes as f64 / 1e9;
            let of_clock = |it: WorkerClock| ClockReport {
                // At the zero of its clock, both wall clocks.
                wall_clock_ahead_ms: (host.origin_unix_ns
                    - (clock.origin_unix_ns() - it.offset.offset_ns))
                    as f64
                    / 1e6,
                uncertainty_ms: it.error_ns as f64 / 1e6,
                drift_ms: it.drift_ns as f64 / 1e6,
            };
            WorkerReport {
                address: helper.link.address().to_owned(),
                hostname: host.hostname.clone(),
                machine: host.machine.clone(),
                clock: helper.clock.map(of_clock),
                cpu_s_per_gb: (payload_gb > 0.0).then(|| helper.cpu_s / payload_gb),
                lag: helper.lag.summary(),
            }
        };
        self.0.iter().map(report).collect()
    }
}
