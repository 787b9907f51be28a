//! Consumers alone: what a topic that is there gives to readers from a place in it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use super::Run;
use super::meter::Meter;
use crate::consumer::{PassesPlan, PassesResult, passes};
use crate::live::{Live, Totals};
use crate::plan::ReplayPlan;
use crate::progress::Extent;
use crate::report::{NetworkReport, ReadKind, ReadReport, ReplayReport, ReplaySecond};

const TICK: Duration = Duration::from_millis(20);
const SECOND_NS: u64 = 1_000_000_000;

/// What was counted at an instant.
struct Mark {
    at_ns: u64,
    totals: Totals,
    meter: Meter,
}

/// What the main thread saw while the readers read.
struct Watched {
    begin: Mark,
    end: Mark,
    timeline: Vec<ReplaySecond>,
}

impl Run<'_> {
    /// Every consumer reads all of its topic, with a thread for each leader.
    pub(super) fn replay_plans(&self, replay: ReplayPlan) -> Vec<PassesPlan> {
        let mut plans = Vec::new();
        for topic in &self.topics {
            for _consumer in 0..replay.consumers {
                let ReplayPlan { from, once, .. } = replay;
                plans.extend(PassesPlan::of(topic, from, once, self.plan.fetch));
            }
        }
        plans
    }

    /// Over the plan's duration, after its warm-up; a single pass is measured whole.
    pub(super) fn replay_alone(&mut self, replay: ReplayPlan) -> ReadReport {
        let warmup = match replay.once {
            true => Duration::ZERO,
            false => self.plan.warmup,
        };
        let name = format!("read from {}", replay.from);
        let whole = warmup + self.plan.duration;
        self.progress.phase(&name, Some(Extent::Time(whole)));
        let (live, done) = (Live::default(), AtomicBool::new(false));
        let clock = self.clock;
        let plans = self.replay_plans(replay);
        let (watched, results) = thread::scope(|scope| {
            let readers: Vec<_> = plans
                .iter()
                .enumerate()
                .map(|(number, plan)| {
                    let (live, done) = (&live, &done);
                    thread::Builder::new()
                        .name(format!("reader-{number}"))
                        .spawn_scoped(scope, move || passes(plan, clock, live, done))
                        .expect("the system has room for a thread")
                })
                .collect();
            let is_done = || readers.iter().all(|reader| reader.is_finished());
            let watched = self.watch_replay(&live, warmup, whole, is_done);
            done.store(true, Relaxed);
            let results: Vec<PassesResult> = readers
                .into_iter()
                .map(|reader| reader.join().expect("a reader does not panic"))
                .collect();
            (watched, results)
        });
        report(replay, &watched, &results)
    }

    /// Until the readers are done or their time is over.
    fn watch_replay(
        &mut self,
        live: &Live,
        warmup: Duration,
        whole: Duration,
        is_done: impl Fn() -> bool,
    ) -> Watched {
        let (clock, brokers) = (self.clock, &self.brokers);
        let mark = || Mark {
            at_ns: clock.now_ns(),
            totals: live.totals(),
            meter: Meter::read(brokers),
        };
        let start_ns = clock.now_ns();
        let (mut begin, mut timeline) = (None, Vec::new());
        let (mut last_ns, mut last_bytes) = (start_ns, 0);
        loop {
            let now_ns = clock.now_ns();
            let elapsed = Duration::from_nanos(now_ns - start_ns);
            if begin.is_none() && elapsed >= warmup {
                begin = Some(mark());
            }
            if self.interrupt.is_asked() {
                live.stop();
            }
            let is_over = is_done() || elapsed >= whole || live.is_stopped();
            if is_over || now_ns >= last_ns + SECOND_NS {
                let bytes = live.totals().replayed_bytes;
                let seconds = (now_ns - last_ns) as f64 / 1e9;
                let second = ReplaySecond {
                    at_s: (last_ns - start_ns) as f64 / 1e9,
                    seconds,
                    mb_per_s: (bytes - last_bytes) as f64 / 1e6 / seconds.max(1e-9),
                };
                let message = format!("{:.0} MB/s", second.mb_per_s);
                self.progress.at(Extent::Time(elapsed), &message);
                timeline.push(second);
                (last_ns, last_bytes) = (now_ns, bytes);
            }
            if is_over {
                let end = mark();
                return Watched {
                    begin: begin.unwrap_or_else(mark),
                    end,
                    timeline,
                };
            }
            thread::sleep(TICK);
        }
    }
}

fn report(replay: ReplayPlan, watched: &Watched, results: &[PassesResult]) -> ReadReport {
    let Watched {
        begin,
        end,
        timeline,
    } = watched;
    let seconds = end.at_ns.saturating_sub(begin.at_ns) as f64 / 1e9;
    let bytes = end.totals.replayed_bytes - begin.totals.replayed_bytes;
    let mut errors = BTreeMap::new();
    for (error, count) in results.iter().flat_map(|result| &result.errors) {
        *errors.entry(error.clone()).or_default() += count;
    }
    let failure = match errors.keys().next() {
        Some(error) => Some(error.clone()),
        None if end.totals.replayed_records == 0 => {
            Some(format!("there is nothing to read from {}", replay.from))
        }
        None => None,
    };
    ReadReport {
        kind: ReadKind::Replay,
        seconds,
        records: end.totals.replayed_records - begin.totals.replayed_records,
        mb_per_s: bytes as f64 / 1e6 / seconds.max(1e-9),
        fetches: results.iter().map(|result| result.fetches).sum(),
        reached_end: results.iter().all(|result| result.passes > 0),
        failure,
        replay: Some(ReplayReport {
            from: replay.from,
            passes: results.iter().map(|result| result.passes).sum(),
            errors,
            timeline: timeline.clone(),
        }),
        cpu: end.meter.since(&begin.meter, bytes),
        network: NetworkReport {
            client_sent_bytes: end.totals.network_sent_bytes - begin.totals.network_sent_bytes,
            client_received_bytes: end.totals.network_received_bytes
                - begin.totals.network_received_bytes,
            interface: end.meter.interface_since(&begin.meter),
        },
    }
}
