//! How a load step went: second by second, and over each stage of its backlog.

use super::backlog::BacklogWatch;
use crate::crew::Sample;
use crate::histogram::LatencyHistogram;
use crate::live::Totals;
use crate::load_stage::LoadStage;
use crate::report::{BacklogReport, StretchReport};
use crate::timeline::Timeline;

/// What the main thread notes while crews work.
pub struct Course {
    pub timeline: Timeline,
    pub backlog: Option<BacklogWatch>,
    message_bytes: u64,
    stretches: Vec<Stretch>,
    last_ns: u64,
    last: Totals,
}

/// All samples of one stage.
struct Stretch {
    stage: LoadStage,
    begin_ns: u64,
    end_ns: u64,
    acked_bytes: u64,
    consumed_bytes: u64,
    replayed_bytes: u64,
    latency: LatencyHistogram,
}

impl Course {
    pub fn new(timeline: Timeline, backlog: Option<BacklogWatch>, message_bytes: u64) -> Self {
        Self {
            timeline,
            backlog,
            message_bytes,
            stretches: Vec::new(),
            last_ns: 0,
            last: Totals::default(),
        }
    }

    pub fn add(&mut self, sample: &Sample) {
        self.timeline.add(sample);
        if self.backlog.is_some() {
            self.add_to_stretch(sample);
        }
        (self.last_ns, self.last) = (sample.elapsed_ns, sample.totals);
    }

    fn add_to_stretch(&mut self, sample: &Sample) {
        let stage = sample.stage;
        if self.stretches.last().is_none_or(|last| last.stage != stage) {
            self.stretches.push(Stretch {
                stage,
                begin_ns: self.last_ns,
                end_ns: self.last_ns,
                acked_bytes: 0,
                consumed_bytes: 0,
                replayed_bytes: 0,
                latency: LatencyHistogram::new(),
            });
        }
        let stretch = self.stretches.last_mut().expect("one was just begun");
        let (now, last) = (&sample.totals, &self.last);
        stretch.end_ns = sample.elapsed_ns;
        stretch.acked_bytes += now.acked_bytes - last.acked_bytes;
        stretch.consumed_bytes += now.consumed_bytes - last.consumed_bytes;
        stretch.replayed_bytes += now.replayed_bytes - last.replayed_bytes;
        stretch.latency.merge(&sample.latency);
    }

    /// What is unread, for who watches it grow and shrink.
    pub fn unread(&self) -> Option<String> {
        let backlog = self.backlog.as_ref()?;
        match backlog.stage() {
            stage @ (LoadStage::Building | LoadStage::Draining) => {
                let gb = |records: u64| (records * self.message_bytes) as f64 / 1e9;
                let unread_gb = gb(backlog.unread_records(&self.last));
                let (name, asked_gb) = (stage.name(), gb(backlog.size_records()));
                Some(format!(", {name} {unread_gb:.2} of {asked_gb:.2} GB"))
            }
            _ => None,
        }
    }

    /// None: the step has no backlog.
    pub fn backlog_report(&self) -> Option<BacklogReport> {
        let backlog = self.backlog.as_ref()?;
        let outcome = backlog.outcome;
        let gb = |records: u64| (records * self.message_bytes) as f64 / 1e9;
        let seconds = |ns: u64| ns as f64 / 1e9;
        let stretches: Vec<_> = self.measured().map(Stretch::report).collect();
        let draining = stretches.iter().find(|it| it.stage == LoadStage::Draining);
        Some(BacklogReport {
            asked_gb: gb(backlog.size_records()),
            built_gb: outcome.built_records.map(gb),
            build_s: outcome.build_ns.map(seconds),
            drain_s: outcome.drain_ns.map(seconds),
            drain_mb_per_s: draining.map(|it| it.consumed_mb_per_s),
            given_up_gb: outcome.given_up_records.map(gb),
            stretches,
        })
    }

    /// Of each stage of the backlog.
    pub fn stage_latencies(&self) -> Vec<(&'static str, f64, LatencyHistogram)> {
        self.measured()
            .map(|it| (it.stage.name(), it.seconds(), it.latency.clone()))
            .collect()
    }

    fn measured(&self) -> impl Iterator<Item = &Stretch> {
        let of_backlog = |stage| {
            matches!(
                stage,
                LoadStage::Building | LoadStage::Draining | LoadStage::Drained
            )
        };
        self.stretches
            .iter()
            .filter(move |stretch| of_backlog(stretch.stage))
    }
}

impl Stretch {
    fn seconds(&self) -> f64 {
        self.end_ns.saturating_sub(self.begin_ns) as f64 / 1e9
    }

    fn report(&self) -> StretchReport {
        let mb_per_s = |bytes: u64| bytes as f64 / 1e6 / self.seconds().max(1e-9);
        StretchReport {
            stage: self.stage,
            at_s: self.begin_ns as f64 / 1e9,
            seconds: self.seconds(),
            acked_mb_per_s: mb_per_s(self.acked_bytes),
            consumed_mb_per_s: mb_per_s(self.consumed_bytes),
            replay_mb_per_s: (self.replayed_bytes > 0).then(|| mb_per_s(self.replayed_bytes)),
            publish_latency: self.latency.summary(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::live::Live;
    use crate::workload::Backlog;

    #[test]
    fn each_stage_has_its_own_rate_and_latency() {
        let backlog = Backlog {
            bytes: 1_000_000,
            drain_ratio: 1.0,
        };
        let watch = BacklogWatch::new(backlog, 100, 1, Duration::ZERO, Duration::ZERO);
        let mut course = Course::new(Timeline::new(Vec::new(), 100), Some(watch), 100);
        let live = Live::default();
        let seconds = [
            (1, LoadStage::Steady, 1),
            (2, LoadStage::Building, 10),
            (4, LoadStage::Building, 20),
            (5, LoadStage::Draining, 300),
            (6, LoadStage::Ending, 4000),
        ];
        for (at_s, stage, latency_ms) in seconds {
            Live::add(&live.acked_bytes, 1_000_000);
            let mut latency = LatencyHistogram::new();
            latency.record_ns(latency_ms * 1_000_000);
            live.publish(&mut latency);
            live.enter(stage);
            course.add(&Sample::take(0, at_s * 1_000_000_000, &live));
        }
        let report = course.backlog_report().expect("there is a backlog");
        let stretches: Vec<_> = report
            .stretches
            .iter()
            .map(|it| {
                let latency = it.publish_latency.expect("it was measured");
                (it.stage, it.seconds, it.acked_mb_per_s, latency.count)
            })
            .collect();
        let expected = [
            (LoadStage::Building, 3.0, 2.0 / 3.0, 2),
            (LoadStage::Draining, 1.0, 1.0, 1),
        ];
        assert_eq!(stretches, expected);
    }
}
