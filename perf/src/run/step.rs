//! One offered rate: what the load is, who puts it on the broker, and what comes of it.

use std::time::Duration;

use super::Run;
use super::backlog::{BacklogWatch, LOAD_MAX};
use super::conduct::Conducted;
use super::course::Course;
use super::generator::judge;
use crate::client::error::ClientError;
use crate::consumer::{ReadPlan, plans};
use crate::crew::{Crew, LoadOrder, LoadYield, ProducerOrder};
use crate::histogram::LatencyHistogram;
use crate::outage::outages;
use crate::producer::Window;
use crate::producer::batch::ProducerIdentity;
use crate::producer::ledger::Ledger;
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

/// What one step offers, and for how long.
#[derive(Clone, Copy, Debug)]
pub struct StepPlan {
    /// Of all steps of the run, so that no producer's number is used twice.
    pub number: usize,
    pub rate: Rate,
    pub warmup: Duration,
    pub duration: Duration,
}

pub struct StepOutcome {
    pub report: StepReport,
    /// By topic.
    pub ledgers: Vec<Vec<Ledger>>,
    pub histograms: StepHistograms,
}

/// By what they measured. Only who knows the step's place in the report can tag them.
pub struct StepHistograms {
    seconds: f64,
    by_name: [(&'static str, LatencyHistogram); 4],
    /// Publish latencies of a backlog's stages, each with its seconds.
    by_stage: Vec<(&'static str, f64, LatencyHistogram)>,
}

impl StepHistograms {
    pub fn tagged(self, tag_of: impl Fn(&str) -> String) -> impl Iterator<Item = RawHistogram> {
        let seconds = self.seconds;
        let by_name = self.by_name.into_iter();
        let by_name = by_name.map(move |(name, histogram)| (name.to_owned(), seconds, histogram));
        let by_stage = self.by_stage.into_iter();
        let by_stage = by_stage
            .map(|(stage, seconds, histogram)| (format!("publish-{stage}"), seconds, histogram));
        by_name
            .chain(by_stage)
            .map(move |(name, seconds, histogram)| RawHistogram {
                tag: tag_of(&name),
                seconds,
                histogram,
            })
    }
}

impl Run<'_> {
    pub(super) fn step(&mut self, plan: StepPlan) -> Result<StepOutcome, ClientError> {
        let order = self.load_order(plan)?;
        let schedules = order.producers.iter().map(|it| it.schedule).collect();
        let (window, has_consumers) = (order.window, !order.consumers.is_empty());
        let crews = vec![Crew::gather(order, self.clock)?];
        // Connections take time: the schedule begins when all are there.
        let start_ns = self.clock.now_ns() + START_DELAY.as_nanos() as u64;

        self.progress.phase(
            &format!("load {}", plan.rate),
            Some(Extent::Time(plan.warmup + plan.duration)),
        );
        let message_bytes = self.plan.message_bytes as u64;
        let timeline = Timeline::new(schedules, message_bytes);
        let readings = u64::from(self.plan.subscriptions) * u64::from(has_consumers);
        let StepPlan {
            rate,
            warmup,
            duration,
            ..
        } = plan;
        let backlog = self
            .plan
            .backlog
            .map(|backlog| BacklogWatch::new(backlog, message_bytes, readings, warmup, duration));
        let mut course = Course::new(timeline, backlog, message_bytes);
        let conducted = self.conduct(crews, start_ns, window, readings, &mut course);
        Ok(self.outcome(rate, conducted, course))
    }

    /// The whole load of one step.
    fn load_order(&self, plan: StepPlan) -> Result<LoadOrder, ClientError> {
        let starts_at = self.end_offsets()?;
        let window = Window {
            start_ns: plan.warmup.as_nanos() as u64,
            end_ns: match self.plan.backlog {
                // It ends when the backlog is drained.
                Some(_) => LOAD_MAX,
                None => plan.warmup + plan.duration,
            }
            .as_nanos() as u64,
        };
        let producer = |(producer, identity)| ProducerOrder {
            // Every step has producers of its own, so that no sequence is used twice.
            number: ProducerNumber(plan.number as u32 * self.producer_count() + producer),
            identity,
            topic: (producer / self.plan.producers) as usize,
            schedule: self.schedule(plan.rate, producer, window.end_ns),
        };
        Ok(LoadOrder {
            run: self.id,
            topics: self.topics.iter().map(|topic| (**topic).clone()).collect(),
            producers: (0..).zip(self.identities()?).map(producer).collect(),
            consumers: self.tails(&starts_at),
            replays: self
                .plan
                .replay
                .map_or_else(Vec::new, |replay| self.replay_plans(replay)),
            window,
            drain_until_ns: window.end_ns + DRAIN.as_nanos() as u64,
            acks: self.plan.acks,
            linger: self.plan.linger,
            in_flight_max: self.plan.in_flight_max,
            message_bytes: self.plan.message_bytes,
            batch_bytes_max: self.plan.batch_bytes_max,
            request_bytes_max: self.plan.request_bytes_max,
            keys: self.plan.keys,
            payloads: self.payloads.clone(),
            compression: self.plan.compression,
        })
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

    /// Each producer has its share of the rate, and they take turns.
    fn schedule(&self, rate: Rate, producer: u32, end_ns: u64) -> Schedule {
        let producers = f64::from(self.producer_count());
        let records_per_second = match rate {
            Rate::Max => return Schedule::Closed { end_ns },
            Rate::Records(count) => count as f64,
            Rate::Bytes(bytes) => bytes as f64 / self.plan.message_bytes as f64,
            Rate::PercentOfMax(_) => unreachable!("a share of the max has become a rate"),
        } / producers;
        let turn_ns = (f64::from(producer) / producers * 1e9 / records_per_second) as u64;
        Schedule::Paced {
            start_ns: turn_ns,
            end_ns,
            records_per_second,
        }
    }

    fn outcome(&self, rate: Rate, conducted: Conducted, course: Course) -> StepOutcome {
        let Conducted {
            harvest,
            meter_before,
            meter_after,
        } = conducted;
        let LoadYield {
            measured,
            latency,
            lag,
            send_delay,
            end_to_end,
            errors,
            consumer_errors,
            replay_passes,
            replay_errors,
            resent,
            unsent_records,
            ledgers,
        } = harvest;
        let load = if rate == Rate::Max {
            Loop::Closed
        } else {
            Loop::Open
        };
        let (before, after, seconds) = (measured.before, measured.after, measured.seconds());
        let acked_bytes = after.acked_bytes - before.acked_bytes;
        let per_s = |after: u64, before: u64| (after - before) as f64 / seconds.max(1e-9);
        let offered_mb_per_s = match rate {
            Rate::Bytes(bytes) => Some(bytes as f64 / 1e6),
            Rate::Records(count) => Some(count as f64 * self.plan.message_bytes as f64 / 1e6),
            Rate::Max | Rate::PercentOfMax(_) => None,
        };
        let report = StepReport {
            rate,
            load,
            seconds,
            offered_mb_per_s,
            sent_mb_per_s: per_s(after.sent_bytes, before.sent_bytes) / 1e6,
            wire_mb_per_s: per_s(after.wire_bytes, before.wire_bytes) / 1e6,
            produce_requests_per_s: per_s(after.produce_requests, before.produce_requests),
            acked_mb_per_s: acked_bytes as f64 / 1e6 / seconds.max(1e-9),
            sent_records_per_s: per_s(after.sent_records, before.sent_records),
            acked_records_per_s: per_s(after.acked_records, before.acked_records),
            consumed_mb_per_s: per_s(after.consumed_bytes, before.consumed_bytes) / 1e6,
            fetches_per_s: per_s(after.fetches, before.fetches),
            publish_latency: latency.summary(),
            end_to_end_latency: end_to_end.summary(),
            generator: judge(load, lag.summary(), send_delay.summary(), latency.summary()),
            errors,
            consumer_errors,
            resent,
            unsent_records,
            replay_mb_per_s: self
                .plan
                .replay
                .map(|_| per_s(after.replayed_bytes, before.replayed_bytes) / 1e6),
            replay_passes: self.plan.replay.map(|_| replay_passes),
            replay_errors,
            backlog: course.backlog_report(),
            cpu: meter_after.since(&meter_before, acked_bytes),
            outages: outages(&course.timeline.seconds),
            timeline: course.timeline.seconds.clone(),
        };
        let histograms = StepHistograms {
            seconds,
            by_name: [
                ("publish", latency),
                ("end-to-end", end_to_end),
                ("generator-lag", lag),
                ("send-delay", send_delay),
            ],
            by_stage: course.stage_latencies(),
        };
        let mut by_topic: Vec<Vec<Ledger>> = self.topics.iter().map(|_| Vec::new()).collect();
        for of in ledgers {
            by_topic[of.topic].push(of.ledger);
        }
        StepOutcome {
            report,
            ledgers: by_topic,
            histograms,
        }
    }
}
