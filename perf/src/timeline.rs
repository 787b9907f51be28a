//! The run second by second, and the totals at the edges of the measured window.

use serde::Serialize;

use crate::crew::Sample;
use crate::live::{Failures, Totals};
use crate::schedule::Schedule;

/// One second, or what was left of it.
#[derive(Clone, Debug, Serialize)]
pub struct Second {
    /// Since the step's start, warm-up included.
    pub at_s: f64,
    pub seconds: f64,
    /// None in a closed loop.
    pub offered_mb_per_s: Option<f64>,
    pub sent_mb_per_s: f64,
    pub acked_mb_per_s: f64,
    pub consumed_mb_per_s: f64,
    /// None where nobody has replayed anything yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replay_mb_per_s: Option<f64>,
    pub failed_records: u64,
    #[serde(flatten)]
    pub failures: Failures,
    /// Since the step's start, as `at_s`; None if no ack came.
    pub first_ack_s: Option<f64>,
    pub last_ack_s: Option<f64>,
    pub requests_in_flight: u64,
    pub p50_ms: Option<f64>,
    pub p99_ms: Option<f64>,
    pub p999_ms: Option<f64>,
    pub max_ms: Option<f64>,
}

pub struct Timeline {
    last_ns: u64,
    last: Totals,
    /// All producers' schedules, from the load's start.
    schedules: Vec<Schedule>,
    message_bytes: u64,
    pub seconds: Vec<Second>,
}

impl Timeline {
    pub fn new(schedules: Vec<Schedule>, message_bytes: u64) -> Self {
        Self {
            last_ns: 0,
            last: Totals::default(),
            schedules,
            message_bytes,
            seconds: Vec::new(),
        }
    }

    /// Nothing is offered from `end_ns` on.
    pub fn end_at(&mut self, end_ns: u64) {
        for schedule in &mut self.schedules {
            *schedule = schedule.ending_at(end_ns);
        }
    }

    fn offered_mb(&self, from_ns: u64, to_ns: u64) -> Option<f64> {
        let before = |at_ns| {
            self.schedules
                .iter()
                .map(|schedule| schedule.record_count_before(at_ns))
                .sum::<Option<u64>>()
        };
        Some((before(to_ns)? - before(from_ns)?) as f64 * self.message_bytes as f64 / 1e6)
    }

    /// Closes the interval that began with the last call.
    pub fn add(&mut self, sample: &Sample) {
        let now_ns = sample.elapsed_ns;
        let seconds = now_ns.saturating_sub(self.last_ns) as f64 / 1e9;
        if seconds <= 0.0 {
            return;
        }
        let now = sample.totals;
        let latency = sample.latency.summary();
        let seconds_of = |ns: u64| ns as f64 / 1e9;
        let mb_per_s =
            |now_bytes: u64, last_bytes: u64| (now_bytes - last_bytes) as f64 / 1e6 / seconds;
        self.seconds.push(Second {
            at_s: seconds_of(self.last_ns),
            seconds,
            offered_mb_per_s: self.offered_mb(self.last_ns, now_ns).map(|mb| mb / seconds),
            sent_mb_per_s: mb_per_s(now.sent_bytes, self.last.sent_bytes),
            acked_mb_per_s: mb_per_s(now.acked_bytes, self.last.acked_bytes),
            consumed_mb_per_s: mb_per_s(now.consumed_bytes, self.last.consumed_bytes),
            replay_mb_per_s: (now.replayed_bytes > 0)
                .then(|| mb_per_s(now.replayed_bytes, self.last.replayed_bytes)),
            failed_records: now.failed_records - self.last.failed_records,
            failures: sample.failures.clone(),
            first_ack_s: sample.first_ack_ns.map(seconds_of),
            last_ack_s: sample.last_ack_ns.map(seconds_of),
            requests_in_flight: now.requests_in_flight,
            p50_ms: latency.map(|latency| latency.p50_ms),
            p99_ms: latency.map(|latency| latency.p99_ms),
            p999_ms: latency.map(|latency| latency.p999_ms),
            max_ms: latency.map(|latency| latency.max_ms),
        });
        (self.last_ns, self.last) = (now_ns, now);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::client::error::ErrorCode;
    use crate::client::failure::Failure;
    use crate::live::Live;

    #[test]
    fn rates_are_bytes_over_the_seconds_that_really_passed() {
        let schedule = Schedule::Paced {
            start_ns: 0,
            end_ns: u64::MAX,
            records_per_second: 1000.0,
        };
        let live = Live::default();
        let mut timeline = Timeline::new(vec![schedule, schedule], 1000);
        Live::add(&live.acked_bytes, 3_000_000);
        timeline.add(&Sample::take(0, 2_000_000_000, &live));
        Live::add(&live.acked_bytes, 500_000);
        timeline.add(&Sample::take(0, 2_500_000_000, &live));
        let acked: Vec<_> = timeline
            .seconds
            .iter()
            .map(|second| second.acked_mb_per_s)
            .collect();
        assert_eq!(acked, [1.5, 1.0]);
        assert_eq!(timeline.seconds[0].offered_mb_per_s, Some(2.0));
        assert_eq!(timeline.seconds[1].at_s, 2.0);
    }

    #[test]
    fn a_second_holds_its_own_failures_by_name_and_its_own_acks() {
        let live = Live::default();
        let mut timeline = Timeline::new(Vec::new(), 1);
        live.failed(Failure::ConnectionLost, 7);
        live.failed(Failure::Code(ErrorCode(6)), 1);
        live.consumer_failed(Failure::NoConnection);
        live.acked_at(5_300_000_000);
        live.acked_at(5_900_000_000);
        timeline.add(&Sample::take(5_000_000_000, 1_000_000_000, &live));
        live.will_be_resent(Failure::ConnectionLost, 3);
        timeline.add(&Sample::take(5_000_000_000, 2_000_000_000, &live));
        let [first, second] = &timeline.seconds[..] else {
            panic!("two samples are two seconds");
        };
        let count = |name: &str, count| BTreeMap::from([(name.to_owned(), count)]);
        let mut errors = count("CONNECTION_LOST", 7);
        errors.append(&mut count("NOT_LEADER_OR_FOLLOWER", 1));
        assert_eq!((&first.failures.errors, first.failed_records), (&errors, 8));
        assert_eq!(first.failures.consumer_errors, count("NO_CONNECTION", 1));
        assert_eq!(
            (first.first_ack_s, first.last_ack_s),
            (Some(0.3), Some(0.9))
        );
        assert!(second.failures.errors.is_empty() && second.failures.consumer_errors.is_empty());
        assert_eq!(second.failures.resent, count("CONNECTION_LOST", 3));
        assert_eq!((second.first_ack_s, second.last_ack_s), (None, None));
    }
}
