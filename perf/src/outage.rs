//! Outages: when acks stopped although the load went on, and when errors came beside them.

use std::fmt;

use serde::Serialize;

use crate::live::Failures;
use crate::timeline::Second;

/// So long without an ack that was due is an outage; less is latency.
pub const OUTAGE_MIN_S: f64 = 1.0;

/// A stretch of a step. Its errors are those of all seconds that it touches.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outage {
    /// Since the step's start, warm-up included.
    pub start_s: f64,
    pub seconds: f64,
    /// False: there were errors, and acks came all the same.
    pub acks_stopped: bool,
    /// False: the step ended before acks came again.
    pub ended: bool,
    #[serde(flatten)]
    pub failures: Failures,
}

impl Outage {
    fn new(start_s: f64, end_s: f64, acks_stopped: bool, ended: bool) -> Self {
        Self {
            start_s,
            seconds: end_s - start_s,
            acks_stopped,
            ended,
            failures: Failures::default(),
        }
    }

    pub fn end_s(&self) -> f64 {
        self.start_s + self.seconds
    }

    fn touches(&self, second: &Second) -> bool {
        self.start_s < end_s(second) && second.at_s < self.end_s()
    }
}

impl fmt::Display for Outage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, start_s) = (self.seconds, self.start_s);
        match (self.acks_stopped, self.ended) {
            (true, true) => write!(f, "acks stopped for {seconds:.1} s at {start_s:.1} s")?,
            (true, false) => write!(
                f,
                "acks stopped at {start_s:.1} s and had not come again {seconds:.1} s later"
            )?,
            (false, _) => write!(
                f,
                "errors for {seconds:.1} s at {start_s:.1} s, while acks came"
            )?,
        }
        let mut before = ": ";
        for (counts, what) in [
            (&self.failures.errors, "records failed"),
            (&self.failures.resent, "records to be sent again"),
            (&self.failures.consumer_errors, "failures of consumers"),
        ] {
            for (name, count) in counts {
                write!(f, "{before}{count} {what} ({name})")?;
                before = ", ";
            }
        }
        Ok(())
    }
}

/// The outages of a step, in order.
pub fn outages(seconds: &[Second]) -> Vec<Outage> {
    let mut outages = ack_gaps(seconds);
    let gap_count = outages.len();
    let mut goes_on = false;
    for second in seconds {
        if second.failures.is_empty() {
            goes_on = false;
            continue;
        }
        let of_gap = outages[..gap_count]
            .iter_mut()
            .find(|gap| gap.touches(second));
        match of_gap {
            Some(gap) => gap.failures.add(&second.failures),
            None if goes_on => {
                let last = outages.last_mut().expect("it was begun");
                last.seconds = end_s(second) - last.start_s;
                last.failures.add(&second.failures);
                continue;
            }
            None => {
                let mut begun = Outage::new(second.at_s, end_s(second), false, true);
                begun.failures.add(&second.failures);
                outages.push(begun);
                goes_on = true;
                continue;
            }
        }
        goes_on = false;
    }
    outages.sort_by(|one, other| one.start_s.total_cmp(&other.start_s));
    outages
}

/// Stretches without an ack, as far as one was due: a slow load has pauses that are nobody's fault.
fn ack_gaps(seconds: &[Second]) -> Vec<Outage> {
    let mut gaps = Vec::new();
    let mut last_ack_s = 0.0;
    for (index, second) in seconds.iter().enumerate() {
        let (Some(first_s), Some(last_s)) = (second.first_ack_s, second.last_ack_s) else {
            continue;
        };
        let waited_s = match second.offered_mb_per_s {
            // A closed loop always has something to send.
            None => first_s - last_ack_s,
            // Latencies are told a little after their acks.
            Some(_) => {
                let latencies_ms = seconds[index..].iter().take(2).filter_map(|it| it.max_ms);
                let longest_s = latencies_ms.fold(0.0, f64::max) / 1e3;
                longest_s.min(first_s - last_ack_s)
            }
        };
        if waited_s >= OUTAGE_MIN_S {
            gaps.push(Outage::new(first_s - waited_s, first_s, true, true));
        }
        last_ack_s = last_s.max(last_ack_s);
    }
    let is_owed = |second: &&Second| {
        second.at_s >= last_ack_s
            && (second.requests_in_flight > 0
                || second.offered_mb_per_s.is_none_or(|offered| offered > 0.0))
    };
    if let (Some(owed), Some(last)) = (seconds.iter().find(is_owed), seconds.last()) {
        // If a record was due in the very next second, there was one soon after the last ack too.
        let start_s = match owed.at_s - last_ack_s {
            pause_s if pause_s < OUTAGE_MIN_S => last_ack_s,
            _ => owed.at_s,
        };
        if end_s(last) - start_s >= OUTAGE_MIN_S {
            gaps.push(Outage::new(start_s, end_s(last), true, false));
        }
    }
    gaps
}

fn end_s(second: &Second) -> f64 {
    second.at_s + second.seconds
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// A second in which acks came from its begin to its end, none of them late.
    fn good(at: u32, offered_mb_per_s: Option<f64>) -> Second {
        let at_s = f64::from(at);
        Second {
            at_s,
            seconds: 1.0,
            offered_mb_per_s,
            sent_mb_per_s: 1.0,
            acked_mb_per_s: 1.0,
            consumed_mb_per_s: 0.0,
            replay_mb_per_s: None,
            failed_records: 0,
            failures: Failures::default(),
            first_ack_s: Some(at_s + 0.01),
            last_ack_s: Some(at_s + 0.99),
            requests_in_flight: 1,
            p50_ms: Some(1.0),
            p99_ms: Some(1.0),
            p999_ms: Some(1.0),
            max_ms: Some(2.0),
        }
    }

    fn silent(at: u32, offered_mb_per_s: Option<f64>) -> Second {
        Second {
            first_ack_s: None,
            last_ack_s: None,
            max_ms: None,
            ..good(at, offered_mb_per_s)
        }
    }

    /// Acks stop at 2.3 s and come again at 5.5 s.
    fn broken(offered_mb_per_s: Option<f64>) -> Vec<Second> {
        let mut seconds: Vec<_> = (0..8).map(|at| good(at, offered_mb_per_s)).collect();
        seconds[2].last_ack_s = Some(2.3);
        seconds[2].failures.errors = BTreeMap::from([("CONNECTION_LOST".to_owned(), 9)]);
        seconds[3] = silent(3, offered_mb_per_s);
        seconds[4] = silent(4, offered_mb_per_s);
        seconds[5].first_ack_s = Some(5.5);
        seconds[6].max_ms = Some(3_200.0);
        seconds
    }

    #[test]
    fn acks_that_stop_and_come_again_are_one_outage_with_its_errors() {
        for offered in [None, Some(1.0)] {
            let found = outages(&broken(offered));
            let [outage] = &found[..] else {
                panic!("{found:?}");
            };
            assert!((outage.start_s - 2.3).abs() < 1e-9, "{outage:?}");
            assert!((outage.seconds - 3.2).abs() < 1e-9, "{outage:?}");
            assert!(outage.acks_stopped && outage.ended);
            assert_eq!(
                outage.to_string(),
                "acks stopped for 3.2 s at 2.3 s: 9 records failed (CONNECTION_LOST)"
            );
        }
    }

    #[test]
    fn acks_that_do_not_come_again_are_an_outage_until_the_end() {
        for offered in [None, Some(1.0)] {
            let mut seconds = broken(offered);
            seconds.truncate(5);
            let found = outages(&seconds);
            assert_eq!(found.len(), 1, "{found:?}");
            assert!(!found[0].ended);
            assert!((found[0].end_s() - 5.0).abs() < 1e-9, "{found:?}");
        }
    }

    #[test]
    fn a_slow_load_that_pauses_between_its_records_has_no_outage() {
        let mut seconds: Vec<_> = (0..12).map(|at| silent(at, Some(0.0))).collect();
        for at in [0, 5, 10] {
            seconds[at] = good(at as u32, Some(1.0));
            seconds[at].last_ack_s = seconds[at].first_ack_s;
        }
        for second in &mut seconds {
            second.requests_in_flight = 0;
        }
        assert_eq!(outages(&seconds), []);
    }

    #[test]
    fn errors_beside_acks_are_one_stretch_as_long_as_they_come_every_second() {
        let mut seconds: Vec<_> = (0..8).map(|at| good(at, Some(1.0))).collect();
        for at in [1, 2, 6] {
            seconds[at].failures.consumer_errors =
                BTreeMap::from([("NO_CONNECTION".to_owned(), 2)]);
        }
        let found: Vec<_> = outages(&seconds)
            .iter()
            .map(|it| {
                (
                    it.start_s,
                    it.seconds,
                    it.acks_stopped,
                    it.failures.consumer_errors["NO_CONNECTION"],
                )
            })
            .collect();
        assert_eq!(found, [(1.0, 2.0, false, 4), (6.0, 1.0, false, 2)]);
    }
}
