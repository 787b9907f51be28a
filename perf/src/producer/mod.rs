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
pub mod ledger;
mod link;
mod outcome;
mod path;
mod plan;
mod record_sums;
#[cfg(test)]
mod tests;

pub use plan::{ProducerPlan, ProducerResult, Window};

use std::num::NonZeroU64;
use std::sync::Arc;

use rustix::event::{Timespec, poll};

use self::accumulator::Accumulator;
use self::batch::{BatchSpan, BatchTemplate};
use self::encoder::BatchEncoder;
use self::frame::{
    Acks, PARTITIONS_PER_REQUEST_MAX, PRODUCE_VERSION_MAX, PRODUCE_VERSION_MIN, ProduceFrame,
};
use self::link::Link;
use self::outcome::Outcomes;
use self::path::Path;
use crate::client::cluster::BrokerAddress;
use crate::client::error::ClientError;
use crate::clock::Clock;
use crate::histogram::LatencyHistogram;
use crate::live::Live;
use crate::schedule::Due;

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
            self.wait(next, now_ns);
            self.exchange();
        }
        self.finish()
    }

    /// Starts one request, if a batch is due and finds room. Answers are looked at between any two.
    fn send_due(&mut self, now_ns: u64) -> Next {
        if self.live.is_stopped() {
            return Next::NothingToSend;
        }
        let record_count_max = self.encoder.record_count_max();
        match self
            .plan
            .schedule
            .due(self.next_record, record_count_max, self.plan.linger, now_ns)
        {
            Due::Never => Next::NothingToSend,
            Due::At(at_ns) => Next::At(at_ns),
            Due::Now { since_ns, .. } => match self.next_ready_partition() {
                Some(partition) => {
                    self.start_request(partition, since_ns, now_ns);
                    Next::At(now_ns)
                }
                None => Next::WhenSocketStirs,
            },
        }
    }

    /// The next partition in turn whose broker can take a request.
    fn next_ready_partition(&self) -> Option<usize> {
        let is_ready = |broker: usize| self.paths[broker].is_ready(self.plan.in_flight_max);
        if !(0..self.paths.len()).any(is_ready) {
            return None;
        }
        let count = self.path_of.len();
        (0..count)
            .map(|step| (self.next_partition + step) % count)
            .find(|&partition| is_ready(self.path_of[partition]))
    }

    /// One request with a batch for `first_partition` and for those that follow it in turn, as long as they are
    /// due, led by the same broker, and there is room.
    fn start_request(&mut self, first_partition: usize, due_ns: u64, now_ns: u64) {
        let broker = self.path_of[first_partition];
        let partition_count = self.path_of.len();
        let Path::Up {
            link,
            free_since_ns,
        } = &mut self.paths[broker]
        else {
            unreachable!("a ready path is up")
        };
        self.lag
            .record_ns(now_ns.saturating_sub(due_ns.max(*free_since_ns)));
        let mut partition = first_partition;
        let (plan, encoder, clock) = (&self.plan, &mut self.encoder, &self.clock);
        let (next_record, path_of, outcomes, send_delay) = (
            &mut self.next_record,
            &self.path_of,
            &mut self.outcomes,
            &mut self.send_delay,
        );
        let mut sent_records = 0;
        let wire_bytes = link.start(|frame| {
            let mut spans = Vec::new();
            while !frame.is_full() && path_of[partition] == broker {
                let due = plan.schedule.due(
                    *next_record,
                    encoder.record_count_max(),
                    plan.linger,
                    now_ns,
                );
                let Due::Now { record_count, .. } = due else {
                    break;
                };
                let span = BatchSpan {
                    partition,
                    first_sequence: outcomes.ledger.send(partition, record_count),
                    record_count,
                    first_record: *next_record,
                    built_ns: now_ns,
                    keyed: None,
                };
                frame.push(partition as i32, |slot| {
                    encoder.encode(slot, &span, &plan.schedule, clock)
                });
                send_delay.record_many_ns(
                    now_ns.saturating_sub(span.intended_ns(&plan.schedule, 0)),
                    u64::from(span.record_count),
                );
                *next_record += u64::from(span.record_count);
                sent_records += u64::from(span.record_count);
                spans.push(span);
                partition = (partition + 1) % partition_count;
            }
            spans
        });
        self.next_partition = partition;
        self.count_sent(sent_records, wire_bytes);
        Live::add(&self.live.requests_in_flight, 1);
        self.write(broker);
    }

    fn count_sent(&self, sent_records: u64, wire_bytes: usize) {
        self.count_request(wire_bytes);
        Live::add(&self.live.sent_records, sent_records);
        Live::add(
            &self.live.sent_bytes,
            sent_records * self.plan.message_bytes as u64,
        );
    }

    fn count_request(&self, wire_bytes: usize) {
        Live::add(&self.live.wire_bytes, wire_bytes as u64);
        Live::add(&self.live.produce_requests, 1);
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
            let Path::Up { link, .. } = &mut self.paths[broker] else {
                continue;
            };
            let (plan, encoder, clock) = (&self.plan, &mut self.encoder, &self.clock);
            let (path_of, outcomes) = (&self.path_of, &mut self.outcomes);
            let spans = outcomes.take_resends(link.batches_per_request_max(), |partition| {
                path_of[partition] == broker
            });
            if spans.is_empty() {
                continue;
            }
            let wire_bytes = link.start(|frame| {
                for span in &spans {
                    frame.push(span.partition as i32, |slot| {
                        encoder.encode(slot, span, &plan.schedule, clock)
                    });
                }
                spans
            });
            self.count_request(wire_bytes);
            Live::add(&self.live.requests_in_flight, 1);
            self.write(broker);
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

    /// Waits until a socket can be read or written or until the next batch is due.
    fn wait(&self, next: Next, now_ns: u64) {
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
        let mut fds: Vec<_> = self.paths.iter().filter_map(Path::poll_fd).collect();
        // An interrupted wait is a short one.
        let _ = poll(&mut fds, Some(&timeout));
    }

    /// Writes and reads whatever the sockets allow.
    fn exchange(&mut self) {
        for broker in 0..self.paths.len() {
            self.write(broker);
            self.read(broker);
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
