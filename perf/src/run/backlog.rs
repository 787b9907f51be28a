//! A backlog while a load runs: when it is large enough, when it is drained, and when nobody should wait any longer.

use std::time::Duration;

use crate::live::Totals;
use crate::load_stage::LoadStage;
use crate::workload::Backlog;

/// What is always unread while consumers follow the producers, in records: below it a backlog counts as drained, as in the
/// OpenMessaging Benchmark.
const DRAINED_RECORDS: u64 = 1_000;

/// A backlog that at its pace would take longer is given up.
const PATIENCE: Duration = Duration::from_secs(24 * 3600);

/// Longer than a load with a backlog that is not given up.
pub const LOAD_MAX: Duration = Duration::from_secs(30 * 24 * 3600);

/// Between two looks at the pace, at least.
const PACE_INTERVAL: Duration = Duration::from_secs(10);

/// The stages of one load step with a backlog. Instants count from the load's start.
pub struct BacklogWatch {
    size_records: u64,
    drained_records: u64,
    /// By how many subscriptions each record is read.
    readings: u64,
    /// When the warm-up is over.
    window_start_ns: u64,
    /// How long the load goes on when the backlog is drained.
    duration_ns: u64,
    stage: LoadStage,
    entered_ns: u64,
    pace: Pace,
    pub outcome: BacklogOutcome,
}

/// What a backlog came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BacklogOutcome {
    /// When consumers went on.
    pub built_records: Option<u64>,
    pub build_ns: Option<u64>,
    /// From there until it was drained.
    pub drain_ns: Option<u64>,
    /// What is left of it, or its size while it is built, was given up.
    pub given_up_records: Option<u64>,
}

/// How fast a backlog changes.
#[derive(Clone, Copy)]
struct Pace {
    since_ns: u64,
    unread_records: u64,
}

impl BacklogWatch {
    pub fn new(
        backlog: Backlog,
        message_bytes: u64,
        readings: u64,
        window_start: Duration,
        duration: Duration,
    ) -> Self {
        let size_records = backlog.bytes.div_ceil(message_bytes).max(1);
        let left_records = ((1.0 - backlog.drain_ratio) * size_records as f64) as u64;
        Self {
            size_records,
            drained_records: left_records.max(DRAINED_RECORDS),
            readings,
            window_start_ns: window_start.as_nanos() as u64,
            duration_ns: duration.as_nanos() as u64,
            stage: LoadStage::Steady,
            entered_ns: 0,
            pace: Pace {
                since_ns: 0,
                unread_records: 0,
            },
            outcome: BacklogOutcome::default(),
        }
    }

    pub fn size_records(&self) -> u64 {
        self.size_records
    }

    pub fn stage(&self) -> LoadStage {
        self.stage
    }

    /// What is not read yet, over all subscriptions.
    pub fn unread_records(&self, totals: &Totals) -> u64 {
        (totals.acked_records * self.readings).saturating_sub(totals.consumed_records)
    }

    /// The stage to enter, if it is time for another.
    pub fn next(&mut self, elapsed_ns: u64, totals: &Totals) -> Option<LoadStage> {
        let unread_records = self.unread_records(totals);
        let in_stage_ns = elapsed_ns.saturating_sub(self.entered_ns);
        let stage = self.stage;
        let next = match stage {
            LoadStage::Steady if elapsed_ns >= self.window_start_ns => LoadStage::Building,
            LoadStage::Building if unread_records >= self.size_records => {
                self.outcome.built_records = Some(unread_records);
                self.outcome.build_ns = Some(in_stage_ns);
                LoadStage::Draining
            }
            LoadStage::Draining if unread_records <= self.drained_records => {
                self.outcome.drain_ns = Some(in_stage_ns);
                LoadStage::Drained
            }
            LoadStage::Building | LoadStage::Draining
                if self.is_hopeless(elapsed_ns, unread_records) =>
            {
                self.outcome.given_up_records = Some(unread_records);
                LoadStage::Ending
            }
            LoadStage::Drained if in_stage_ns >= self.duration_ns => LoadStage::Ending,
            _ => return None,
        };
        self.stage = next;
        self.entered_ns = elapsed_ns;
        self.pace = Pace {
            since_ns: elapsed_ns,
            unread_records,
        };
        Some(next)
    }

    /// Whether the pace since the last look leaves no hope.
    fn is_hopeless(&mut self, elapsed_ns: u64, unread_records: u64) -> bool {
        let looked_for_ns = elapsed_ns.saturating_sub(self.pace.since_ns);
        let interval_ns = self.duration_ns.max(PACE_INTERVAL.as_nanos() as u64);
        if looked_for_ns < interval_ns {
            return false;
        }
        let (before, now) = (self.pace.unread_records as f64, unread_records as f64);
        let (done, rest) = match self.stage {
            LoadStage::Building => (now - before, self.size_records as f64 - now),
            _ => (before - now, now - self.drained_records as f64),
        };
        self.pace = Pace {
            since_ns: elapsed_ns,
            unread_records,
        };
        // Not a number of seconds where nothing was done: no hope either.
        let rest_s = rest / done.max(0.0) * (looked_for_ns as f64 / 1e9);
        rest_s.is_nan() || rest_s > PATIENCE.as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    /// A megabyte of 100-byte records for two subscriptions, after a warm-up of 2 s, with 20 s after it.
    fn watch(drain_ratio: f64) -> BacklogWatch {
        let backlog = Backlog {
            bytes: 1_000_000,
            drain_ratio,
        };
        let [warmup, duration] = [2, 20].map(Duration::from_secs);
        BacklogWatch::new(backlog, 100, 2, warmup, duration)
    }

    fn totals(acked_records: u64, consumed_records: u64) -> Totals {
        Totals {
            acked_records,
            consumed_records,
            ..Totals::default()
        }
    }

    #[test]
    fn a_backlog_grows_over_all_subscriptions_is_drained_and_the_load_goes_on_for_its_duration() {
        let mut watch = watch(1.0);
        assert_eq!(watch.next(S, &totals(500, 1000)), None);
        let stages = [
            (2 * S, totals(1000, 2000), Some(LoadStage::Building)),
            (3 * S, totals(5999, 2000), None),
            (4 * S, totals(6000, 2000), Some(LoadStage::Draining)),
            (5 * S, totals(7000, 12_999), None),
            (6 * S, totals(8000, 15_000), Some(LoadStage::Drained)),
            (25 * S, totals(9000, 18_000), None),
            (26 * S, totals(9000, 18_000), Some(LoadStage::Ending)),
            (27 * S, totals(9000, 18_000), None),
        ];
        for (elapsed_ns, totals, expected) in stages {
            assert_eq!(watch.next(elapsed_ns, &totals), expected, "{elapsed_ns}");
        }
        let expected = BacklogOutcome {
            built_records: Some(10_000),
            build_ns: Some(2 * S),
            drain_ns: Some(2 * S),
            given_up_records: None,
        };
        assert_eq!(watch.outcome, expected);
    }

    #[test]
    fn a_share_of_the_backlog_may_be_left() {
        let mut watch = watch(0.5);
        watch.next(2 * S, &totals(0, 0));
        watch.next(3 * S, &totals(5000, 0));
        assert_eq!(watch.next(4 * S, &totals(5000, 4999)), None);
        assert_eq!(
            watch.next(5 * S, &totals(5000, 5000)),
            Some(LoadStage::Drained)
        );
    }

    #[test]
    fn a_backlog_that_does_not_shrink_is_given_up_and_one_that_shrinks_is_not() {
        let mut watch = watch(1.0);
        watch.next(2 * S, &totals(0, 0));
        watch.next(3 * S, &totals(5000, 0));
        assert_eq!(watch.next(23 * S, &totals(6000, 3000)), None);
        assert_eq!(watch.next(43 * S, &totals(9000, 9500)), None);
        assert_eq!(
            watch.next(63 * S, &totals(12_000, 15_000)),
            Some(LoadStage::Ending)
        );
        assert_eq!(watch.outcome.given_up_records, Some(9000));
    }

    #[test]
    fn a_broker_that_takes_nothing_is_not_waited_for() {
        let mut watch = watch(1.0);
        watch.next(2 * S, &totals(100, 200));
        assert_eq!(watch.next(21 * S, &totals(100, 200)), None);
        assert_eq!(
            watch.next(22 * S, &totals(100, 200)),
            Some(LoadStage::Ending)
        );
    }
}
