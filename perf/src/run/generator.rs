//! Whether the generator was good enough for its figures to be the broker's.

use crate::cpu::MachineShare;
use crate::histogram::LatencySummary;
use crate::offer::LatencyBound;
use crate::report::{GeneratorReport, Loop};

/// A generator lag below this does not distort what a network round trip takes.
const LAG_ALLOWED_MS: f64 = 0.1;

/// The share of the measured latency that the generator's own lag may have, at the same quantile.
const LAG_ALLOWED_SHARE: f64 = 0.1;

/// Below that the generator's lateness has another cause.
const TAKEN_NOTED_PERCENT: f64 = 10.0;

/// Share of all cores.
const BUSY: f64 = 0.9;

/// Whether the generator's own lag leaves the latencies as they are.
pub fn judge(
    load: Loop,
    lag: Option<LatencySummary>,
    send_delay: Option<LatencySummary>,
    latency: Option<LatencySummary>,
) -> GeneratorReport {
    let distorted = lag.zip(latency).filter(|_| load == Loop::Open).and_then(|(lag, latency)| {
        let pairs = [("p50", lag.p50_ms, latency.p50_ms), ("p99", lag.p99_ms, latency.p99_ms)];
        pairs.into_iter().find_map(|(name, lag_ms, latency_ms)| {
            let too_much = lag_ms > LAG_ALLOWED_MS && lag_ms > latency_ms * LAG_ALLOWED_SHARE;
            too_much.then(|| {
                format!("the generator itself was {lag_ms:.3} ms late at {name}, of a latency of {latency_ms:.3} ms")
            })
        })
    });
    GeneratorReport {
        lag,
        send_delay,
        valid: distorted.is_none(),
        reason: distorted,
        advice: None,
    }
}

/// Where a latency bound was asked for and held, a lag that is little beside the bound changes nothing about that, however small
/// the latency itself was.
pub fn judged_by(bound: LatencyBound, generator: GeneratorReport) -> GeneratorReport {
    let is_little =
        |lag: &LatencySummary| bound.quantile.of_ms(lag) <= bound.max_ms() * LAG_ALLOWED_SHARE;
    match generator.lag.as_ref().is_some_and(is_little) {
        true => GeneratorReport {
            valid: true,
            advice: None,
            ..generator
        },
        false => generator,
    }
}

/// What is not valid says what to do about it.
pub fn advised(generator: GeneratorReport, machine: &MachineShare) -> GeneratorReport {
    let taken = (machine.others + machine.steal) * 100.0;
    let what = match generator.valid {
        true => return generator,
        false if taken >= TAKEN_NOTED_PERCENT => format!(
            "other programs and guests took {taken:.0} % of this machine's cores: repeat the run when it is quiet"
        ),
        false if machine.busy >= BUSY => "all cores were busy: offer a lower --rate, let fewer --producers send larger \
             --batch-bytes, or put the load on from other machines with --workers"
            .to_owned(),
        false => "repeat the run; if it stays so, offer a lower --rate, let fewer --producers send larger --batch-bytes, or \
             put the load on from other machines with --workers"
            .to_owned(),
    };
    GeneratorReport {
        advice: Some(format!(
            "{what}. Rates, CPU and the audit hold all the same"
        )),
        ..generator
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram::LatencyHistogram;
    use crate::offer::Hold;

    fn summary(latency_ms: f64) -> Option<LatencySummary> {
        let mut histogram = LatencyHistogram::new();
        histogram.record_many_ns((latency_ms * 1e6) as u64, 100);
        histogram.summary()
    }

    #[test]
    fn a_generator_that_is_late_by_much_of_the_latency_makes_the_step_invalid() {
        assert!(!judge(Loop::Open, summary(1.0), None, summary(2.0)).valid);
        assert!(judge(Loop::Open, summary(1.0), None, summary(20.0)).valid);
        assert!(judge(Loop::Open, summary(0.05), None, summary(0.1)).valid);
    }

    #[test]
    fn a_latency_far_under_its_bound_is_valid_though_the_generator_was_late_beside_it() {
        let Ok(Hold::Latency(bound)) = "p99:10ms".parse() else {
            panic!("a latency bound");
        };
        let late = judge(Loop::Open, summary(0.25), None, summary(0.5));
        assert!(!late.valid);
        assert!(judged_by(bound, late).valid);
        let very_late = judge(Loop::Open, summary(2.0), None, summary(5.0));
        assert!(!judged_by(bound, very_late).valid);
    }

    #[test]
    fn what_is_not_valid_says_what_to_do_about_it() {
        let late = || judge(Loop::Open, summary(1.0), None, summary(2.0));
        let share = |busy, others| MachineShare {
            busy,
            others,
            steal: 0.0,
        };
        let advice = |share| advised(late(), &share).advice.expect("advice");
        assert!(advice(share(1.0, 0.5)).contains("50 %"));
        assert!(advice(share(1.0, 0.0)).contains("--workers"));
        assert!(advice(share(0.3, 0.0)).contains("repeat the run"));
        let good = judge(Loop::Open, summary(0.01), None, summary(2.0));
        assert_eq!(advised(good, &share(1.0, 0.5)).advice, None);
    }

    #[test]
    fn a_closed_loop_has_no_schedule_to_be_late_for() {
        assert!(judge(Loop::Closed, summary(1.0), None, summary(2.0)).valid);
    }
}
