//! A producer: one thread that sends on a schedule and never lets the broker move it.
//!
//! Owns: its sockets, its batches, its ledger. Must never know: what is done with the results. Runs on: a
//! thread of its own. It waits in one place only, `poll`, for the next due batch, an answer or room in a
//! socket.

mod accumulator;
pub mod batch;
mod encoder;
pub mod frame;
mod keyed;
mod latencies;
pub mod ledger;
mod link;
mod outcome;
mod path;
mod plan;
mod record_sums;
pub mod span;
#[cfg(test)]
mod tests;
mod unkeyed;

pub use plan::{ProducerPlan, ProducerResult, Window};

use std::num::NonZeroU64;
use std::sync::Arc;

use rustix::event::{Timespec, poll};

use self::accumulator::Accumulator;
use self::batch::BatchTemplate;
use self::encoder::BatchEncoder;
use self::frame::{
    Acks, PARTITIONS_PER_REQUEST_MAX, PRODUCE_VERSION_MAX, PRODUCE_VERSION_MIN, ProduceFrame,
};
use self::link::Link;
use self::outcome::Outcomes;
use self::path::Path;
use self::span::BatchSpan;
use crate::client::cluster::BrokerAddress;
use crate::client::error::ClientError;
use crate::clock::Clock;
use crate::histogram::LatencyHistogram;
use crate::live::Live;
use crate::load_stage::LoadStage;

/// How long to leave a broker alone that closed its connection or did not take one.
const RECONNECT_DELAY_NS: u64 = 100_000_000;

/// How long to wait before records are sent again that a broker could not take.
const RESEND_DELAY_NS: u64 = 50_000_000;

/// How often latencies are handed to the progress bar, and how long a wait may last, so that a stop is noticed.
const PUBLISH_INTERVAL_NS: u64 = 100_000_000;

pub struct Producer {
    plan: ProducerPlan,
    clock: Clock,
    live: Arc<Live>,
    encoder: BatchEncoder,
    brokers: Vec<BrokerAddress>,
    paths: Vec<Path>,
    /// The broker of each partition, by its place in `brokers`.
    path_of: Vec<usize>,
    next_partition: usize,
    /// Where records have keys.
    accumulator: Option<Accumulator>,
    next_record: u64,
    outcomes: Outcomes,
    lag: LatencyHistogram,
    send_delay: LatencyHistogram,
    next_publish_ns: u64,
}

/// When the producer can go on by itself, and whether there is anything left to send.
enum Next {
    /// At this instant, or earlier if a socket stirs.
    At(u64),
    /// Only a socket can help.
    WhenSocketStirs,
    NothingToSend,
}

impl Producer {
    /// Connects to every leader; a broker that is not there is an error now, later it is part of the measurement.
    pub fn connect(plan: ProducerPlan, clock: Clock, live: Arc<Live>) -> Result<Self, ClientError> {
        let brokers: Vec<_> = plan
            .topic
            .partitions_by_leader()
            .into_keys()
            .cloned()
            .collect();
        let path_of = plan
            .topic
            .leaders
            .iter()
            .map(|leader| {
                brokers
                    .iter()
                    .position(|broker| broker == leader)
                    .expect("it is a leader")
            })
            .collect();
        let template = BatchTemplate::new(
            plan.run,
            plan.number,
            plan.identity,
            plan.message_bytes,
            plan.batch_bytes_max,
            plan.keys.clone(),
            &plan.payloads,
        );
        let encoder = BatchEncoder::new(template, plan.compression);
        let accumulator = plan.keys.as_ref().map(|keys| {
            let seed = u64::from(plan.run.0) << 32 | u64::from(plan.number.0);
            Accumulator::new(
                keys,
                seed,
                plan.topic.leaders.len(),
                encoder.record_count_max(),
                plan.linger,
            )
        });
        let mut producer = Self {
            next_partition: plan.number.0 as usize % plan.topic.leaders.len(),
            outcomes: Outcomes::new(&plan, clock),
            accumulator,
            encoder,
            paths: Vec::new(),
            path_of,
            next_record: 0,
            lag: LatencyHistogram::new(),
            send_delay: LatencyHistogram::new(),
            next_publish_ns: 0,
            brokers,
            plan,
            clock,
            live,
        };
        for broker in 0..producer.brokers.len() {
            let link = producer.open_link(broker)?;
            producer.paths.push(Path::Up {
                link,
                free_since_ns: 0,
            });
        }
        Ok(producer)
    }

    fn open_link(&self, broker: usize) -> Result<Box<Link>, ClientError> {
        Link::open(
            &self.brokers[broker].0,
            PRODUCE_VERSION_MIN,
            PRODUCE_VERSION_MAX,
            |version| {
                let slot_count = (self.plan.request_bytes_max / self.encoder.batch_bytes_max())
                    .clamp(1, PARTITIONS_PER_REQUEST_MAX)
                    .min(self.plan.topic.leaders.len());
                let slots = (0..slot_count).map(|_| self.encoder.slot()).collect();
                ProduceFrame::new(version, self.plan.acks, &self.plan.topic.name, slots)
            },
        )
        .map(Box::new)
    }

    /// The load starts at this instant of the producer's clock. Needed once, before `run`, where the plan's
    /// instants count from another.
    pub fn begin_at(&mut self, start_ns: u64) {
        self.plan.schedule = self.plan.schedule.later_by(start_ns);
        self.plan.window = self.plan.window.later_by(start_ns);
        self.plan.drain_until_ns += start_ns;
        self.outcomes = Outcomes::new(&self.plan, self.clock);
    }

    pub fn run(mut self) -> ProducerResult {
        // The default of 50 us would be most of the generator's lag. Where it is refused, the lag shows it.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        loop {
            self.heed_end();
            let now_ns = self.clock.now_ns();
            self.reconnect(now_ns);
            let next = if self.outcomes.has_resends() {
                self.resend(now_ns)
            } else if self.accumulator.is_some() {
                self.send_keyed(now_ns)
            } else {
                self.send_due(now_ns)
            };
            if now_ns >= self.next_publish_ns {
                self.outcomes.publish(&self.live);
                self.next_publish_ns = now_ns + PUBLISH_INTERVAL_NS;
            }
            let drained =
                matches!(next, Next::NothingToSend) && self.paths.iter().all(Path::is_idle);
            if drained || now_ns >= self.plan.drain_until_ns {
                break;
            }
            self.exchange(next, now_ns);
        }
        self.finish()
    }

    /// The load may be told to end before the schedule does; unanswered requests are waited for as long as ever.
    fn heed_end(&mut self) {
        if self.live.stage() != LoadStage::Ending {
            return;
        }
        // Once the end is now, it is not moved again.
        let end_ns = self.clock.now_ns();
        let early_ns = self.plan.window.end_ns.saturating_sub(end_ns);
        if early_ns > 0 {
            self.plan.schedule = self.plan.schedule.ending_at(end_ns);
            self.plan.window.end_ns = end_ns;
            self.plan.drain_until_ns -= early_ns;
            self.outcomes.end_at(end_ns);
        }
    }

    /// Starts one request with batches of new records, whose sending could have begun at `due_ns`.
    fn start_request(&mut self, broker: usize, spans: Vec<BatchSpan>, due_ns: u64, now_ns: u64) {
        if let Path::Up { free_since_ns, .. } = &self.paths[broker] {
            let lag_ns = now_ns.saturating_sub(due_ns.max(*free_since_ns));
            self.lag.record_ns(lag_ns);
        }
        let mut sent_records = 0;
        for span in &spans {
            sent_records += u64::from(span.record_count);
            span.each_intended(&self.plan.schedule, |intended_ns, record_count| {
                self.send_delay
                    .record_many_ns(now_ns.saturating_sub(intended_ns), record_count);
            });
        }
        Live::add(&self.live.sent_records, sent_records);
        Live::add(
            &self.live.sent_bytes,
            sent_records * self.plan.message_bytes as u64,
        );
        self.write_request(broker, spans);
    }

    /// Makes a request's bytes and writes what the socket takes of them. The path must be ready.
    fn write_request(&mut self, broker: usize, spans: Vec<BatchSpan>) {
        let Path::Up { link, .. } = &mut self.paths[broker] else {
            unreachable!("a ready path is up")
        };
        let (schedule, encoder, clock) = (&self.plan.schedule, &mut self.encoder, &self.clock);
        let wire_bytes = link.start(spans, |slot, span| {
            encoder.encode(slot, span, schedule, clock)
        });
        Live::add(&self.live.wire_bytes, wire_bytes as u64);
        Live::add(&self.live.produce_requests, 1);
        Live::add(&self.live.requests_in_flight, 1);
        self.write(broker);
    }

    /// Sends again what could not be written, in order, one request at a time, before anything new.
    fn resend(&mut self, now_ns: u64) -> Next {
        if !self.paths.iter().all(Path::is_idle) {
            return Next::WhenSocketStirs;
        }
        if now_ns < self.outcomes.resend_from_ns() {
            return Next::At(self.outcomes.resend_from_ns());
        }
        for broker in 0..self.paths.len() {
            let Path::Up { link, .. } = &self.paths[broker] else {
                continue;
            };
            let batches_max = link.batches_per_request_max();
            let path_of = &self.path_of;
            let spans = self
                .outcomes
                .take_resends(batches_max, |partition| path_of[partition] == broker);
            if !spans.is_empty() {
                self.write_request(broker, spans);
            }
        }
        Next::At(now_ns + RESEND_DELAY_NS)
    }

    fn reconnect(&mut self, now_ns: u64) {
        for broker in 0..self.paths.len() {
            if matches!(self.paths[broker], Path::Down { retry_ns } if retry_ns <= now_ns) {
                self.paths[broker] = match self.open_link(broker) {
                    Ok(link) => Path::Up {
                        link,
                        free_since_ns: self.clock.now_ns(),
                    },
                    Err(_) => Path::Down {
                        retry_ns: self.clock.now_ns() + RECONNECT_DELAY_NS,
                    },
                };
            }
        }
    }

    /// Waits until a socket can be read or written or until the next batch is due; writes and reads what the sockets
    /// allow.
    fn exchange(&mut self, next: Next, now_ns: u64) {
        let latest_ns = (now_ns + PUBLISH_INTERVAL_NS).min(self.plan.drain_until_ns);
        let until_ns = match next {
            Next::At(at_ns) => at_ns.min(latest_ns),
            Next::WhenSocketStirs | Next::NothingToSend => latest_ns,
        };
        let until_ns = self
            .paths
            .iter()
            .fold(until_ns, |until_ns, path| match path {
                Path::Down { retry_ns } => until_ns.min(*retry_ns),
                Path::Up { .. } => until_ns,
            });
        let wait_ns = until_ns.saturating_sub(self.clock.now_ns());
        let timeout = Timespec {
            tv_sec: (wait_ns / 1_000_000_000) as i64,
            tv_nsec: (wait_ns % 1_000_000_000) as i64,
        };
        // With one connection, looking whether it can be read costs as much as reading.
        if let ([Path::Up { link, .. }], 0) = (&self.paths[..], wait_ns)
            && !link.is_writing()
        {
            return self.read(0);
        }
        let mut fds: Vec<_> = self.paths.iter().filter_map(Path::poll_fd).collect();
        // An interrupted wait is a short one.
        let _ = poll(&mut fds, Some(&timeout));
        let stirred: Vec<_> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        let mut stirred = stirred.into_iter();
        for broker in 0..self.paths.len() {
            let is_up = self.paths[broker].poll_fd().is_some();
            if is_up && stirred.next() == Some(true) {
                self.write(broker);
                self.read(broker);
            }
        }
    }

    fn write(&mut self, broker: usize) {
        let Path::Up {
            link,
            free_since_ns,
        } = &mut self.paths[broker]
        else {
            return;
        };
        if !link.is_writing() {
            return;
        }
        let answered = self.plan.acks != Acks::None;
        match link.write(answered) {
            Ok(unanswered) => {
                if !link.is_writing() {
                    *free_since_ns = self.clock.now_ns();
                    self.live.moved(link.take_traffic());
                }
                if let Some(spans) = unanswered {
                    self.outcomes.written_without_ack(&spans, &self.live);
                }
            }
            Err(error) => self.broke(broker, &error.to_string()),
        }
    }

    fn read(&mut self, broker: usize) {
        let Path::Up {
            link,
            free_since_ns,
        } = &mut self.paths[broker]
        else {
            return;
        };
        let (outcomes, live, clock) = (&mut self.outcomes, &self.live, self.clock);
        let was_full = link.requests_under_way() >= self.plan.in_flight_max;
        let mut answered = false;
        let result = link.read(|answer| {
            answered = true;
            outcomes.answered(answer, live);
        });
        if answered && was_full {
            *free_since_ns = clock.now_ns();
        }
        live.moved(link.take_traffic());
        if let Err(error) = result {
            self.broke(broker, &error.to_string());
        }
    }

    fn broke(&mut self, broker: usize, reason: &str) {
        let now_ns = self.clock.now_ns();
        if let Path::Up { link, .. } = std::mem::replace(
            &mut self.paths[broker],
            Path::Down {
                retry_ns: now_ns + RECONNECT_DELAY_NS,
            },
        ) {
            let requests = link.requests_under_way() as u64;
            Live::subtract(&self.live.requests_in_flight, requests);
            self.outcomes
                .unanswered(link.abandon(), reason, now_ns, &self.live);
        }
    }

    fn finish(mut self) -> ProducerResult {
        for path in std::mem::take(&mut self.paths) {
            if let Path::Up { link, .. } = path {
                Live::subtract(
                    &self.live.requests_in_flight,
                    link.requests_under_way() as u64,
                );
                self.outcomes.never_answered(link.abandon(), &self.live);
            }
        }
        if !self.live.is_stopped() {
            self.outcomes.never_sent(self.next_record);
            for left in self.accumulator.iter().flat_map(Accumulator::left) {
                self.outcomes.never_taken(left.record);
            }
        }
        self.outcomes.publish(&self.live);
        self.outcomes.into_result(self.lag, self.send_delay)
    }
}
