//! One offered rate: producers and consumers run, the main thread watches the clock, the counters and the CPU.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle, sleep};
use std::time::Duration;

use super::Run;
use super::generator::judge;
use super::meter::Meter;
use crate::client::error::ClientError;
use crate::consumer::{ReadPlan, TailResult, plans, tail};
use crate::histogram::LatencyHistogram;
use crate::live::{Live, Totals};
use crate::producer::batch::ProducerIdentity;
use crate::producer::ledger::Ledger;
use crate::producer::{Producer, ProducerPlan, ProducerResult, Window};
use crate::progress::Extent;
use crate::quantity::Rate;
use crate::record::ProducerNumber;
use crate::report::{Loop, RawHistogram, StepReport};
use crate::schedule::Schedule;
use crate::timeline::Timeline;

/// From the last connection to the first record.
const START_DELAY: Duration = Duration::from_millis(50);

/// How long unanswered requests are waited for after the last record was due.
const DRAIN: Duration = Duration::from_secs(10);

/// How long consumers may take to reach the last record.
const CATCH_UP: Duration = Duration::from_secs(10);

const TICK: Duration = Duration::from_millis(100);
const SECOND_NS: u64 = 1_000_000_000;

pub struct StepOutcome {
    pub report: StepReport,
    /// By topic.
    pub ledgers: Vec<Vec<Ledger>>,
    pub histograms: Vec<RawHistogram>,
}

/// What the watch over the load saw at the window's edges.
struct Edges {
    window_s: f64,
    before: Totals,
    after: Totals,
    meter_before: Meter,
    meter_after: Meter,
}

impl Run<'_> {
    pub(super) fn step(&mut self, number: usize, rate: Rate) -> Result<StepOutcome, ClientError> {
        let live = Arc::new(Live::default());
        let producers_done = Arc::new(AtomicBool::new(false));
        let starts_at = self.end_offsets()?;
        let identities = self.identities()?;
        // Connections take time: the schedule begins when all are there.
        let start_ns =
            self.clock.now_ns() + START_DELAY.as_nanos() as u64 + self.connect_allowance_ns();
        let window = Window {
            start_ns: start_ns + self.plan.warmup.as_nanos() as u64,
            end_ns: start_ns + (self.plan.warmup + self.plan.duration).as_nanos() as u64,
        };
        let schedules: Vec<_> = (0..self.producer_count())
            .map(|producer| self.schedule(rate, producer, start_ns, window.end_ns))
            .collect();
        let producers = identities
            .into_iter()
            .enumerate()
            .map(|(producer, identity)| {
                self.producer(
                    number,
                    producer,
                    identity,
                    schedules[producer],
                    window,
                    &live,
                )
            })
            .collect::<Result<Vec<_>, _>>()?;
        let consumers: Vec<JoinHandle<TailResult>> = self
            .tails(&starts_at)
            .into_iter()
            .enumerate()
            .map(|(consumer, plan)| {
                let (id, message_bytes, clock) =
                    (self.id, self.plan.message_bytes as u64, self.clock);
                let (live, done) = (Arc::clone(&live), Arc::clone(&producers_done));
                spawn(format!("consumer-{consumer}"), move || {
                    tail(plan, id, message_bytes, window, clock, &live, &done)
                })
            })
            .collect();
        let producers: Vec<JoinHandle<ProducerResult>> = producers
            .into_iter()
            .enumerate()
            .map(|(number, producer)| {
                spawn(format!("producer-{number}"), move || {
                    sleep_until(&producer, start_ns);
                    producer.run()
                })
            })
            .collect();

        self.progress.phase(
            &format!("load {rate}"),
            Some(Extent::Time(self.plan.warmup + self.plan.duration)),
        );
        let mut timeline = Timeline::new(start_ns, schedules, self.plan.message_bytes as u64);
        let edges = self.watch(start_ns, window, &live, &mut timeline, &producers);
        let produced: Vec<_> = producers
            .into_iter()
            .map(|thread| thread.join().expect("a producer does not panic"))
            .collect();
        timeline.sample(self.clock.now_ns(), &live);
        let readings = u64::from(self.plan.subscriptions) * u64::from(!consumers.is_empty());
        await_consumers(&live, readings);
        producers_done.store(true, Relaxed);
        let consumed: Vec<_> = consumers
            .into_iter()
            .map(|thread| thread.join().expect("a consumer does not panic"))
            .collect();
        Ok(self.outcome(number, rate, edges, timeline, produced, consumed))
    }

    /// Of all topics.
    fn producer_count(&self) -> u32 {
        self.plan.topics * self.plan.producers
    }

    /// Every subscription reads every record of its topic, dealt out to its consumers.
    fn tails(&self, starts_at: &[Vec<i64>]) -> Vec<ReadPlan> {
        if self.plan.consumers == 0 {
            return Vec::new();
        }
        let mut tails = Vec::new();
        for (topic, starts) in self.topics.iter().zip(starts_at) {
            let ranges: Vec<_> = starts.iter().map(|offset| (*offset, i64::MAX)).collect();
            for _subscription in 0..self.plan.subscriptions {
                tails.extend(plans(topic, self.plan.consumers, &ranges, self.plan.fetch));
            }
        }
        tails
    }

    fn identities(&self) -> Result<Vec<ProducerIdentity>, ClientError> {
        let identity = |_| match self.plan.idempotence {
            true => self
                .cluster
                .init_producer_id()
                .map(|(id, epoch)| ProducerIdentity { id, epoch }),
            false => Ok(ProducerIdentity::NONE),
        };
        (0..self.producer_count()).map(identity).collect()
    }

    /// A connection and the first encoding of its batches, for every producer and broker.
    fn connect_allowance_ns(&self) -> u64 {
        let links = self
            .topics
            .iter()
            .map(|topic| topic.partitions_by_leader().len() as u64);
        let links = links.sum::<u64>() * u64::from(self.plan.producers);
        links * Duration::from_millis(5).as_nanos() as u64
    }

    /// Each producer has its share of the rate, and they take turns.
    fn schedule(&self, rate: Rate, producer: u32, start_ns: u64, end_ns: u64) -> Schedule {
        let producers = f64::from(self.producer_count());
        let records_per_second = match rate {
            Rate::Max => return Schedule::Closed { end_ns },
            Rate::Records(count) => count as f64,
            Rate::Bytes(bytes) => bytes as f64 / self.plan.message_bytes as f64,
            Rate::PercentOfMax(_) => unreachable!("a share of the max has become a rate"),
        } / producers;
        let turn_ns = (f64::from(producer) / producers * 1e9 / records_per_second) as u64;
        Schedule::Paced {
            start_ns: start_ns + turn_ns,
            end_ns,
            records_per_second,
        }
    }

    fn producer(
        &self,
        step: usize,
        producer: usize,
        identity: ProducerIdentity,
        schedule: Schedule,
        window: Window,
        live: &Arc<Live>,
    ) -> Result<Producer, ClientError> {
        let plan = ProducerPlan {
            run: self.id,
            // Every step has producers of its own, so that no sequence is used twice.
            number: ProducerNumber(step as u32 * self.producer_count() + producer as u32),
            identity,
            topic: Arc::clone(&self.topics[producer / self.plan.producers as usize]),
            schedule,
            window,
            drain_until_ns: window.end_ns + DRAIN.as_nanos() as u64,
            acks: self.plan.acks,
            linger: self.plan.linger,
            in_flight_max: self.plan.in_flight_max,
            message_bytes: self.plan.message_bytes,
            batch_bytes_max: self.plan.batch_bytes_max,
            request_bytes_max: self.plan.request_bytes_max,
            keys: self.keys.clone(),
            payloads: self.payloads.clone(),
            compression: self.plan.compression,
        };
        Producer::connect(plan, self.clock, Arc::clone(live))
    }

    /// Until the producers are done: samples, shows, and notes the totals when the window opens and closes.
    fn watch(
        &mut self,
        start_ns: u64,
        window: Window,
        live: &Live,
        timeline: &mut Timeline,
        producers: &[JoinHandle<ProducerResult>],
    ) -> Edges {
        let (mut opened, mut closed) = (None, None);
        let mut next_second_ns = start_ns + SECOND_NS;
        let read = |pid| (Meter::read(pid), live.totals());
        while !producers.iter().all(JoinHandle::is_finished) {
            let now_ns = self.clock.now_ns();
            if self.interrupt.is_asked() {
                live.stop();
            }
            if opened.is_none() && now_ns >= window.start_ns {
                opened = Some((now_ns, read(self.broker_pid)));
            }
            if opened.is_some()
                && closed.is_none()
                && (now_ns >= window.end_ns || live.is_stopped())
            {
                closed = Some((now_ns, read(self.broker_pid)));
            }
            if now_ns >= next_second_ns {
                timeline.sample(now_ns, live);
                next_second_ns += SECOND_NS;
                self.show(start_ns, now_ns, timeline);
            }
            let edges = [window.start_ns, window.end_ns, next_second_ns]
                .into_iter()
                .filter(|edge| *edge > now_ns);
            let wait_ns = edges
                .map(|edge| edge - now_ns)
                .min()
                .unwrap_or(u64::MAX)
                .min(TICK.as_nanos() as u64);
            sleep(Duration::from_nanos(wait_ns));
        }
        let end = || (self.clock.now_ns(), read(self.broker_pid));
        let (opened_ns, (meter_before, before)) = opened.unwrap_or_else(end);
        let (closed_ns, (meter_after, after)) = closed.unwrap_or_else(end);
        Edges {
            window_s: (closed_ns - opened_ns) as f64 / 1e9,
            before,
            after,
            meter_before,
            meter_after,
        }
    }

    fn show(&mut self, start_ns: u64, now_ns: u64, timeline: &Timeline) {
        let Some(second) = timeline.seconds.last() else {
            return;
        };
        let p99 = second
            .p99_ms
            .map_or_else(String::new, |p99| format!(", p99 {p99:.2} ms"));
        let consumed = if second.consumed_mb_per_s > 0.0 {
            format!(", consumed {:.0} MB/s", second.consumed_mb_per_s)
        } else {
            String::new()
        };
        let failed: u64 = timeline
            .seconds
            .iter()
            .map(|second| second.failed_records)
            .sum();
        let message = format!(
            "{:.0} MB/s{p99}{consumed}, {} in flight, {failed} failed",
            second.acked_mb_per_s, second.requests_in_flight
        );
        self.progress.at(
            Extent::Time(Duration::from_nanos(now_ns.saturating_sub(start_ns))),
            &message,
        );
    }

    fn outcome(
        &self,
        number: usize,
        rate: Rate,
        edges: Edges,
        timeline: Timeline,
        produced: Vec<ProducerResult>,
        consumed: Vec<TailResult>,
    ) -> StepOutcome {
        let merged = |histograms: &mut dyn Iterator<Item = &LatencyHistogram>| {
            let mut all = LatencyHistogram::new();
            histograms.for_each(|histogram| all.merge(histogram));
            all
        };
        let latency = merged(&mut produced.iter().map(|producer| &producer.latency));
        let lag = merged(&mut produced.iter().map(|producer| &producer.lag));
        let send_delay = merged(&mut produced.iter().map(|producer| &producer.send_delay));
        let end_to_end = merged(&mut consumed.iter().map(|consumer| &consumer.end_to_end));
        let load = if rate == Rate::Max {
            Loop::Closed
        } else {
            Loop::Open
        };
        let acked_bytes = edges.after.acked_bytes - edges.before.acked_bytes;
        let per_s = |after: u64, before: u64| (after - before) as f64 / edges.window_s.max(1e-9);
        let offered_mb_per_s = match rate {
            Rate::Bytes(bytes) => Some(bytes as f64 / 1e6),
            Rate::Records(count) => Some(count as f64 * self.plan.message_bytes as f64 / 1e6),
            Rate::Max | Rate::PercentOfMax(_) => None,
        };
        let report = StepReport {
            rate,
            load,
            seconds: edges.window_s,
            offered_mb_per_s,
            sent_mb_per_s: per_s(edges.after.sent_bytes, edges.before.sent_bytes) / 1e6,
            wire_mb_per_s: per_s(edges.after.wire_bytes, edges.before.wire_bytes) / 1e6,
            acked_mb_per_s: acked_bytes as f64 / 1e6 / edges.window_s.max(1e-9),
            sent_records_per_s: per_s(edges.after.sent_records, edges.before.sent_records),
            acked_records_per_s: per_s(edges.after.acked_records, edges.before.acked_records),
            consumed_mb_per_s: per_s(edges.after.consumed_bytes, edges.before.consumed_bytes) / 1e6,
            publish_latency: latency.summary(),
            end_to_end_latency: end_to_end.summary(),
            generator: judge(load, lag.summary(), send_delay.summary(), latency.summary()),
            errors: sum(produced.iter().map(|producer| &producer.errors)),
            consumer_errors: sum(consumed.iter().map(|consumer| &consumer.errors)),
            resent: sum(produced.iter().map(|producer| &producer.resent)),
            unsent_records: produced
                .iter()
                .map(|producer| producer.unsent_records)
                .sum(),
            cpu: edges.meter_after.since(&edges.meter_before, acked_bytes),
            timeline: timeline.seconds,
        };
        let raw = |name: &str, histogram| RawHistogram {
            tag: RawHistogram::tag_of(number, name),
            seconds: edges.window_s,
            histogram,
        };
        let histograms = vec![
            raw("publish", latency),
            raw("end-to-end", end_to_end),
            raw("generator-lag", lag),
            raw("send-delay", send_delay),
        ];
        StepOutcome {
            report,
            ledgers: ledgers_by_topic(produced, self.plan.producers as usize),
            histograms,
        }
    }
}

/// The producers of a topic stand together.
fn ledgers_by_topic(produced: Vec<ProducerResult>, producers_per_topic: usize) -> Vec<Vec<Ledger>> {
    let mut by_topic = Vec::new();
    for (number, result) in produced.into_iter().enumerate() {
        if number % producers_per_topic == 0 {
            by_topic.push(Vec::with_capacity(producers_per_topic));
        }
        by_topic
            .last_mut()
            .expect("one was begun")
            .push(result.ledger);
    }
    by_topic
}

fn spawn<T: Send + 'static>(
    name: String,
    body: impl FnOnce() -> T + Send + 'static,
) -> JoinHandle<T> {
    thread::Builder::new()
        .name(name)
        .spawn(body)
        .expect("the system has room for a thread")
}

fn sleep_until(producer: &Producer, at_ns: u64) {
    sleep(Duration::from_nanos(
        at_ns.saturating_sub(producer.clock().now_ns()),
    ));
}

/// Consumers lag behind the acks; what they have not read in time is left out of their figures.
/// `readings`: by how many subscriptions each record is read.
fn await_consumers(live: &Live, readings: u64) {
    let polls = CATCH_UP.as_millis() / TICK.as_millis();
    for _ in 0..polls {
        let totals = live.totals();
        if live.is_stopped() || totals.consumed_records >= totals.acked_records * readings {
            return;
        }
        sleep(TICK);
    }
}

fn sum<'a>(maps: impl Iterator<Item = &'a BTreeMap<String, u64>>) -> BTreeMap<String, u64> {
    let mut all = BTreeMap::new();
    for (name, count) in maps.flatten() {
        *all.entry(name.clone()).or_default() += count;
    }
    all
}
