//! What held a step back, as far as the report's own figures tell.

use std::fmt;

use super::StepReport;
use crate::baseline::Baseline;

/// From which share of what there is something counts as used up.
const USED_UP: f64 = 0.9;

/// A load that reaches this share of what was offered has what it asked for.
const OFFER_MET: f64 = 0.99;

#[derive(Clone, Debug, PartialEq)]
pub enum Limit {
    /// The broker took all that was offered.
    Offer,
    /// A thread of the generator had no time left.
    Generator {
        thread: String,
        busy: f64,
    },
    Processor {
        busy: f64,
    },
    Disk {
        share: f64,
    },
    /// None of the above: the broker or the wait for its answers.
    Waiting {
        processor_busy: f64,
    },
}

impl Limit {
    pub fn of(step: &StepReport, baselines: &[&Baseline]) -> Self {
        let generators = step.workers.iter().filter_map(|worker| worker.cpu.as_ref());
        let busiest_thread = step
            .cpu
            .client
            .iter()
            .chain(generators)
            .filter_map(|cpu| cpu.threads.first())
            .max_by(|one, other| one.total_s().total_cmp(&other.total_s()));
        let disk_mb_per_s: Vec<f64> = baselines
            .iter()
            .filter_map(|baseline| baseline.disk.measured())
            .map(|disk| disk.write_mb_per_s())
            .collect();
        let disk_mb_per_s = disk_mb_per_s.iter().sum::<f64>() / disk_mb_per_s.len() as f64;
        let disk_share = step.acked_mb_per_s / disk_mb_per_s;
        let processor_busy = step.cpu.machine.busy;
        match busiest_thread.map(|thread| (thread, thread.total_s() / step.seconds)) {
            _ if step
                .offered_mb_per_s
                .is_some_and(|offered| step.acked_mb_per_s >= OFFER_MET * offered) =>
            {
                Self::Offer
            }
            Some((thread, busy)) if busy >= USED_UP => Self::Generator {
                thread: thread.name.clone(),
                busy,
            },
            _ if processor_busy >= USED_UP => Self::Processor {
                busy: processor_busy,
            },
            // Not a number, and so false, without a disk baseline.
            _ if disk_share >= USED_UP => Self::Disk { share: disk_share },
            _ => Self::Waiting { processor_busy },
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |share: &f64| share * 100.0;
        match self {
            Self::Offer => f.write_str("the broker took all that was offered"),
            Self::Generator { thread, busy } => write!(
                f,
                "the load generator was the limit: its thread {thread} was busy for {:.0} % of the time",
                percent(busy)
            ),
            Self::Processor { busy } => write!(
                f,
                "the processor was the limit: the machine's cores were busy for {:.0} % of the time",
                percent(busy)
            ),
            Self::Disk { share } => write!(
                f,
                "the disk was the limit: {:.0} % of what it writes without a broker",
                percent(share)
            ),
            Self::Waiting { processor_busy } => write!(
                f,
                "neither processor ({:.0} % busy) nor disk nor generator was used up: the load waited for answers",
                percent(processor_busy)
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::{CpuUse, ThreadUse};
    use crate::report::sample;

    fn closed_step() -> StepReport {
        sample::report().0.steps.swap_remove(0)
    }

    fn client(busy_s: f64) -> CpuUse {
        let thread = ThreadUse {
            tid: 1,
            name: "producer-0".to_owned(),
            user_s: busy_s,
            system_s: 0.0,
            voluntary_switches: 0,
            involuntary_switches: 0,
        };
        CpuUse {
            cpu_s: busy_s,
            threads: vec![thread],
            ..CpuUse::default()
        }
    }

    #[test]
    fn a_rate_that_was_met_had_no_limit_even_on_a_busy_machine() {
        let mut step = sample::report().0.steps.swap_remove(1);
        step.cpu.machine.busy = 1.0;
        assert_eq!(Limit::of(&step, &[]), Limit::Offer);
    }

    #[test]
    fn a_generator_without_time_is_named_before_the_processor() {
        let mut step = closed_step();
        step.cpu.client = Some(client(step.seconds * 0.95));
        step.cpu.machine.busy = 0.99;
        assert!(matches!(Limit::of(&step, &[]), Limit::Generator { .. }));
        step.cpu.client = Some(client(step.seconds * 0.5));
        assert_eq!(Limit::of(&step, &[]), Limit::Processor { busy: 0.99 });
    }

    #[test]
    fn without_a_disk_baseline_the_disk_is_not_blamed() {
        assert_eq!(
            Limit::of(&closed_step(), &[]),
            Limit::Waiting {
                processor_busy: 0.0
            }
        );
    }
}
