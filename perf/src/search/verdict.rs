//! Whether a step held what the search asks for.

use std::fmt;
use std::time::Duration;

use crate::offer::{Hold, LatencyBound};
use crate::report::{StepReport, number};

/// How much of what was offered may be missing at the end of the window.
const BEHIND_SHARE: f64 = 0.01;

/// Why a step did not hold.
#[derive(Clone, Debug, PartialEq)]
pub enum Miss {
    /// The bound was missed, and the step does not say by whom.
    GeneratorNotValid {
        reason: String,
    },
    Errors {
        first: String,
    },
    Unsent {
        records: u64,
    },
    Behind {
        offered_mb_per_s: f64,
        acked_mb_per_s: f64,
    },
    ConsumersBehind {
        acked_mb_per_s: f64,
        consumed_mb_per_s: f64,
    },
    NoLatency,
    Latency {
        bound: LatencyBound,
        got_ms: f64,
    },
}

impl fmt::Display for Miss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::GeneratorNotValid { reason } => f.write_str(reason),
            Self::Errors { first } => write!(f, "records failed: {first}"),
            Self::Unsent { records } => write!(f, "{records} records never got their turn"),
            Self::Behind {
                offered_mb_per_s,
                acked_mb_per_s,
            } => write!(
                f,
                "only {} of {} MB/s were confirmed",
                number(*acked_mb_per_s),
                number(*offered_mb_per_s)
            ),
            Self::ConsumersBehind {
                acked_mb_per_s,
                consumed_mb_per_s,
            } => write!(
                f,
                "each subscription read only {} of {} MB/s",
                number(*consumed_mb_per_s),
                number(*acked_mb_per_s)
            ),
            Self::NoLatency => f.write_str("no record was confirmed"),
            Self::Latency { bound, got_ms } => write!(
                f,
                "{} was {} ms, not <= {} ms",
                bound.quantile.name(),
                number(*got_ms),
                bound.max_ms()
            ),
        }
    }
}

/// What a step is measured by.
#[derive(Clone, Copy, Debug)]
pub struct Judge {
    pub hold: Hold,
    /// At a window's edges so much may be waiting for its batch.
    pub linger: Duration,
    /// That have consumers.
    pub subscriptions: u32,
}

impl Judge {
    /// None if an open step held.
    pub fn miss(&self, step: &StepReport) -> Option<Miss> {
        if let Some(first) = step.errors.keys().chain(step.consumer_errors.keys()).next() {
            return Some(Miss::Errors {
                first: first.clone(),
            });
        }
        if step.unsent_records > 0 {
            return Some(Miss::Unsent {
                records: step.unsent_records,
            });
        }
        let least_share = 1.0 - BEHIND_SHARE - self.linger.as_secs_f64() / step.seconds.max(1e-9);
        let acked_mb_per_s = step.acked_mb_per_s;
        if let Some(offered_mb_per_s) = step.offered_mb_per_s
            && acked_mb_per_s < least_share * offered_mb_per_s
        {
            return Some(Miss::Behind {
                offered_mb_per_s,
                acked_mb_per_s,
            });
        }
        if self.subscriptions > 0 {
            let consumed_mb_per_s = step.consumed_mb_per_s / f64::from(self.subscriptions);
            if consumed_mb_per_s < least_share * acked_mb_per_s {
                return Some(Miss::ConsumersBehind {
                    acked_mb_per_s,
                    consumed_mb_per_s,
                });
            }
        }
        let Some(latency) = &step.publish_latency else {
            return Some(Miss::NoLatency);
        };
        let bound = match self.hold {
            Hold::KeepUp => return None,
            Hold::Latency(bound) => bound,
        };
        let got_ms = bound.quantile.of_ms(latency);
        if got_ms <= bound.max_ms() {
            // A late generator only adds to the latency, so without it the bound holds all the more.
            return None;
        }
        if step.generator.valid {
            return Some(Miss::Latency { bound, got_ms });
        }
        let reason = step.generator.reason.clone();
        Some(Miss::GeneratorNotValid {
            reason: reason.unwrap_or_else(|| "the generator was late".to_owned()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    /// 10 MB/s offered and confirmed in 10 s, p99 9.9 ms.
    fn open_step() -> StepReport {
        sample::report().0.steps.swap_remove(1)
    }

    fn judge(hold: &str) -> Judge {
        Judge {
            hold: hold.parse().expect("a bound"),
            linger: Duration::ZERO,
            subscriptions: 0,
        }
    }

    #[test]
    fn a_latency_holds_up_to_its_bound() {
        assert_eq!(judge("p99:10ms").miss(&open_step()), None);
        assert_eq!(judge("keep-up").miss(&open_step()), None);
        let miss = judge("p99:9ms").miss(&open_step()).expect("a miss");
        assert!(miss.to_string().starts_with("p99 was 9.9"), "{miss}");
    }

    #[test]
    fn a_step_that_is_behind_by_more_than_a_hundredth_does_not_hold() {
        let mut step = open_step();
        step.acked_mb_per_s = 9.91;
        assert_eq!(judge("p99:10ms").miss(&step), None);
        step.acked_mb_per_s = 9.89;
        assert!(matches!(
            judge("p99:10ms").miss(&step),
            Some(Miss::Behind { .. })
        ));
        let lingers = Judge {
            linger: Duration::from_millis(100),
            ..judge("p99:10ms")
        };
        assert_eq!(lingers.miss(&step), None);
    }

    #[test]
    fn consumers_that_fall_behind_do_not_hold_and_each_subscription_reads_all() {
        let two = Judge {
            subscriptions: 2,
            ..judge("keep-up")
        };
        let mut step = open_step();
        step.consumed_mb_per_s = 20.0;
        assert_eq!(two.miss(&step), None);
        step.consumed_mb_per_s = 15.0;
        assert!(matches!(
            two.miss(&step),
            Some(Miss::ConsumersBehind { .. })
        ));
    }

    #[test]
    fn a_late_generator_is_to_blame_only_for_a_bound_that_was_missed() {
        let mut step = open_step();
        step.generator.valid = false;
        assert_eq!(judge("keep-up").miss(&step), None);
        assert_eq!(judge("p99:10ms").miss(&step), None);
        assert!(matches!(
            judge("p99:9ms").miss(&step),
            Some(Miss::GeneratorNotValid { .. })
        ));
    }

    #[test]
    fn errors_unsent_records_and_silence_do_not_hold() {
        let miss = |change: fn(&mut StepReport)| {
            let mut step = open_step();
            change(&mut step);
            judge("keep-up").miss(&step).expect("a miss")
        };
        let errors = miss(|step| {
            step.errors.insert("REQUEST_TIMED_OUT".to_owned(), 1);
        });
        assert!(matches!(errors, Miss::Errors { .. }));
        assert_eq!(
            miss(|step| step.unsent_records = 7),
            Miss::Unsent { records: 7 }
        );
        assert_eq!(miss(|step| step.publish_latency = None), Miss::NoLatency);
    }
}
