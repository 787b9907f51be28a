//! Reading back what was written, from memory and from the start.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use super::Run;
use super::meter::Meter;
use super::topics::Stretch;
use crate::client::error::ClientError;
use crate::consumer::{ReplayResult, plans, replay};
use crate::live::Live;
use crate::progress::Extent;
use crate::report::{NetworkReport, ReadKind, ReadReport};

const TICK: Duration = Duration::from_millis(20);

impl Run<'_> {
    pub(super) fn reads(&mut self, stretches: &[Stretch]) -> Vec<ReadReport> {
        let recent_records = self.arguments.recent_bytes.0
            / self.plan.message_bytes as u64
            / u64::from(self.plan.partitions)
            / u64::from(self.plan.topics);
        let newest = |(start, end): (i64, i64)| {
            let recent_start = end - recent_records.max(1) as i64;
            (start.max(recent_start), end)
        };
        let whole: Vec<_> = stretches.iter().map(Stretch::ranges).collect();
        let recent: Vec<Vec<_>> = whole
            .iter()
            .map(|ranges| ranges.iter().copied().map(newest).collect())
            .collect();
        let mut reports = Vec::new();
        for (kind, ranges) in [(ReadKind::Recent, recent), (ReadKind::Backlog, whole)] {
            if self.interrupt.is_asked() || ranges.iter().flatten().all(|(start, end)| start >= end)
            {
                break;
            }
            reports.push(self.read(kind, &ranges));
        }
        reports
    }

    /// `ranges`: of each partition of each topic.
    fn read(&mut self, kind: ReadKind, ranges: &[Vec<(i64, i64)>]) -> ReadReport {
        let name = match kind {
            ReadKind::Recent => "read newest",
            ReadKind::Backlog | ReadKind::Replay => "read from start",
        };
        self.progress
            .phase(name, Some(Extent::Time(self.arguments.read_duration)));
        let live = Arc::new(Live::default());
        let message_bytes = self.plan.message_bytes as u64;
        let (begin, begin_ns) = (Meter::read(&self.brokers), self.clock.now_ns());
        let until_ns = begin_ns + self.arguments.read_duration.as_nanos() as u64;
        let results: Vec<Result<ReplayResult, ClientError>> = thread::scope(|scope| {
            let mut readers = Vec::new();
            let plans =
                self.topics.iter().zip(ranges).flat_map(|(topic, ranges)| {
                    plans(topic, self.readers(), ranges, self.plan.fetch)
                });
            for (number, plan) in plans.enumerate() {
                let (live, clock) = (Arc::clone(&live), self.clock);
                let body = move || {
                    replay(
                        plan,
                        message_bytes,
                        kind == ReadKind::Recent,
                        until_ns,
                        clock,
                        &live,
                    )
                };
                let thread = thread::Builder::new()
                    .name(format!("reader-{number}"))
                    .spawn_scoped(scope, body);
                readers.push(thread.expect("the system has room for a thread"));
            }
            while !readers.iter().all(|reader| reader.is_finished()) {
                thread::sleep(TICK);
                if self.interrupt.is_asked() {
                    live.stop();
                }
                let elapsed = Duration::from_nanos(self.clock.now_ns() - begin_ns);
                let mb_per_s = live.totals().consumed_bytes as f64 / 1e6 / elapsed.as_secs_f64();
                self.progress
                    .at(Extent::Time(elapsed), &format!("{mb_per_s:.0} MB/s"));
            }
            readers
                .into_iter()
                .map(|reader| reader.join().expect("a reader does not panic"))
                .collect()
        });
        let (end, end_ns) = (Meter::read(&self.brokers), self.clock.now_ns());
        let seconds = (end_ns - begin_ns) as f64 / 1e9;
        let failure = results
            .iter()
            .find_map(|result| result.as_ref().err().map(|error| error.to_string()));
        let reached_end = results
            .iter()
            .all(|result| result.as_ref().is_ok_and(|result| result.passes > 0));
        let totals = live.totals();
        ReadReport {
            kind,
            seconds,
            records: totals.consumed_records,
            mb_per_s: totals.consumed_bytes as f64 / 1e6 / seconds,
            fetches: results.iter().flatten().map(|result| result.fetches).sum(),
            reached_end,
            failure,
            replay: None,
            cpu: end.since(&begin, totals.consumed_bytes),
            network: NetworkReport {
                client_sent_bytes: totals.network_sent_bytes,
                client_received_bytes: totals.network_received_bytes,
                interface: end.interface_since(&begin),
            },
        }
    }
}
