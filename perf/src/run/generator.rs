//! Whether the generator was good enough for its figures to be the broker's.

use crate::histogram::LatencySummary;
use crate::report::{GeneratorReport, Loop};

/// A generator lag below this does not distort what a network round trip takes.
const LAG_ALLOWED_MS: f64 = 0.1;

/// The share of the measured latency that the generator's own lag may have, at the same quantile.
const LAG_ALLOWED_SHARE: f64 = 0.1;

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
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram::LatencyHistogram;

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
    fn a_closed_loop_has_no_schedule_to_be_late_for() {
        assert!(judge(Loop::Closed, summary(1.0), None, summary(2.0)).valid);
    }
}
