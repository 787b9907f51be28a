//! One offered rate: what the load is, who puts it on the broker, and what comes of it.

use std::time::Duration;

use super::Run;
use super::backlog::{BacklogWatch, LOAD_MAX};
use super::conduct::Conducted;
use super::course::Course;
use super::crews::{Brought, Crews};
use super::error::RunError;
use super::generator::{advised, judge};
use super::groups;
use crate::client::error::ClientError;
use crate::consumer::{ReadPlan, plans};
use crate::crew::{LoadOrder, LoadYield, ProducerOrder};
use crate::histogram::LatencyHistogram;
use crate::outage::outages;
use crate::producer::Window;
use crate::producer::batch::ProducerIdentity;
use crate::producer::ledger::Ledger;
use crate::progress::Extent;
use crate::quantity::Rate;
use crate::ramp::ramp;
use crate::record::ProducerNumber;
use crate::report::{
    CpuReport, GeneratorReport, Loop, NetworkReport, RawHistogram, StepReport, WorkerStepReport,
};
use crate::schedule::Schedule;
use crate::timeline::Timeline;
use crate::worker::WorkerError;

/// From the last connection to the first record.
const START_DELAY: Duration = Duration::from_millis(50);

/// The same where workers must hear of the start before.
const START_DELAY_OF_WORKERS: Duration = Duration::from_millis(300);

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
    /// A worker that was lost ended the step: the report holds what the others measured.
    pub lost: Option<WorkerError>,
    /// Whatever these producers were told went with their workers.
    pub lost_producers: Vec<ProducerNumber>,
}

/// By what they measured. Only who knows the step's place in the report can tag them.
pub struct StepHistograms {
    seconds: f64,
    by_name: Vec<(&'static str, LatencyHistogram)>,
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
    pub(super) fn step(&mut self, plan: StepPlan) -> Result<StepOutcome, RunError> {
        let starts = self.end_offsets()?;
        let order = self.load_order(plan, &starts)?;
        self.groups
            .extend(order.members.iter().map(|member| member.group.clone()));
        let schedules = order.producers.iter().map(|it| it.schedule).collect();
        let readings = u64::from(self.plan.subscriptions) * u64::from(self.plan.consumers > 0);
        let mut crews = std::mem::take(&mut self.crews);
        let conducted = self.put_load_on(order, plan, &mut crews, schedules, readings);
        self.crews = crews;
        let (mut conducted, course) = conducted?;
        for (worker, brought) in conducted.brought.iter().enumerate() {
            if let Some(brought) = brought.as_ref().filter(|it| it.away.is_some()) {
                self.crews.took(worker, brought);
            }
        }
        if conducted.lost.is_none() {
            conducted.lost = self.crews.compare_clocks().err();
        }
        self.outcome(plan, conducted, course, &starts)
    }

    fn put_load_on(
        &mut self,
        order: LoadOrder,
        plan: StepPlan,
        crews: &mut Crews,
        schedules: Vec<Schedule>,
        readings: u64,
    ) -> Result<(Conducted, Course), RunError> {
        let delay = match crews.are_away() {
            true => START_DELAY_OF_WORKERS,
            false => START_DELAY,
        };
        let crews = crews.prepare(order, self.clock)?;
        // Connections take time: the schedule begins when all are there.
        let start_ns = self.clock.now_ns() + delay.as_nanos() as u64;

        self.progress.phase(
            &format!("load {}", plan.rate),
            Some(Extent::Time(plan.warmup + plan.duration)),
        );
        let message_bytes = self.plan.message_bytes as u64;
        let timeline = Timeline::new(schedules, message_bytes);
        let backlog = self.plan.backlog.map(|backlog| {
            BacklogWatch::new(backlog, message_bytes, readings, plan.warmup, plan.duration)
        });
        let mut course = Course::new(timeline, backlog, message_bytes);
        let conducted = self.conduct(crews, start_ns, readings, &mut course);
        Ok((conducted, course))
    }

    /// The whole load of one step.
    fn load_order(&self, plan: StepPlan, starts: &[Vec<i64>]) -> Result<LoadOrder, ClientError> {
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
            consumers: match self.plan.groups {
                None => self.tails(starts),
                Some(_) => Vec::new(),
            },
            members: self.plan.groups.map_or_else(Vec::new, |settings| {
                self.members(settings, plan.number, starts)
            }),
            has_backlog: self.plan.backlog.is_some(),
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
            payloads: self
                .payloads
                .clone()
                .cut_to(self.plan.batch_bytes_max, self.plan.message_bytes),
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

    fn outcome(
        &mut self,
        plan: StepPlan,
        conducted: Conducted,
        course: Course,
        starts: &[Vec<i64>],
    ) -> Result<StepOutcome, RunError> {
        let rate = plan.rate;
        let Conducted {
            brought,
            lost,
            meter_before,
            meter_after,
        } = conducted;
        let load = if rate == Rate::Max {
            Loop::Closed
        } else {
            Loop::Open
        };
        let workers = self.worker_steps(load, &brought);
        let is_lost = |(worker, brought): (usize, &Option<Brought>)| {
            brought.is_none().then(|| self.crews.producers(worker))
        };
        let lost_producers = brought.iter().enumerate().filter_map(is_lost);
        let lost_producers = lost_producers.flatten().copied().collect();
        let mut yields = brought.into_iter().flatten().map(|it| it.load);
        let all = match (yields.next(), lost) {
            (Some(first), lost) => Ok((yields.fold(first, LoadYield::merged_with), lost)),
            (None, Some(lost)) => Err(lost),
            (None, None) => unreachable!("a crew that is not lost has a yield"),
        };
        let (harvest, lost) = all?;
        let LoadYield {
            measured,
            latency,
            lag,
            send_delay,
            end_to_end,
            errors,
            consumer_errors,
            groups,
            replay_passes,
            replay_errors,
            resent,
            unsent_records,
            ledgers,
        } = harvest;
        let of_groups = self.plan.groups.map(|_| {
            // What a lost worker's members were handed is not known.
            let consumption = match lost {
                None => self.consumption(&groups, starts),
                Some(_) => None,
            };
            if let Some(more) = &consumption {
                let all = self.consumption.get_or_insert_default();
                all.merge(more.clone());
            }
            groups::report(&groups, consumption)
        });
        let (before, after, seconds) = (measured.before, measured.after, measured.seconds());
        let acked_bytes = measured.acked_bytes();
        let per_s = |after: u64, before: u64| (after - before) as f64 / seconds.max(1e-9);
        let offered_mb_per_s = match rate {
            Rate::Bytes(bytes) => Some(bytes as f64 / 1e6),
            Rate::Records(count) => Some(count as f64 * self.plan.message_bytes as f64 / 1e6),
            Rate::Max | Rate::PercentOfMax(_) => None,
        };
        let mut cpu = meter_after.since(&meter_before, acked_bytes);
        if self.crews.are_away() {
            let used = workers.iter().filter_map(|worker| worker.cpu.as_ref());
            let used_s: f64 = used.map(|used| used.cpu_s).sum();
            cpu.client = None;
            cpu.client_cpu_s_per_gb = (acked_bytes > 0).then(|| used_s / cpu.payload_gb);
        }
        let generator = judge(load, lag.summary(), send_delay.summary(), latency.summary());
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
            end_to_end_uncertainty_ms: end_to_end
                .summary()
                .and_then(|_| self.crews.end_to_end_uncertainty_ms()),
            groups: of_groups.as_ref().map(|(report, _)| report.clone()),
            generator: advised(with_workers(generator, &workers), &cpu.machine),
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
            write_amplification: write_amplification(&cpu, acked_bytes),
            cpu,
            network: NetworkReport {
                client_sent_bytes: after.network_sent_bytes - before.network_sent_bytes,
                client_received_bytes: after.network_received_bytes - before.network_received_bytes,
                interface: meter_after.interface_since(&meter_before),
            },
            workers,
            outages: outages(&course.timeline.seconds),
            // The stages of a backlog differ by themselves.
            ramp: match self.plan.backlog {
                None => ramp(
                    &course.timeline.seconds,
                    plan.warmup.as_secs_f64(),
                    (plan.warmup + plan.duration).as_secs_f64(),
                ),
                Some(_) => None,
            },
            timeline: course.timeline.seconds.clone(),
        };
        let mut by_name = vec![
            ("publish", latency),
            ("end-to-end", end_to_end),
            ("generator-lag", lag),
            ("send-delay", send_delay),
        ];
        if let Some((_, [pause, commit])) = of_groups {
            by_name.extend([("rebalance-pause", pause), ("commit", commit)]);
        }
        let histograms = StepHistograms {
            seconds,
            by_name,
            by_stage: course.stage_latencies(),
        };
        let mut by_topic: Vec<Vec<Ledger>> = self.topics.iter().map(|_| Vec::new()).collect();
        for of in ledgers {
            by_topic[of.topic].push(of.ledger);
        }
        Ok(StepOutcome {
            report,
            ledgers: by_topic,
            histograms,
            lost,
            lost_producers,
        })
    }

    /// None where this process put the load on.
    fn worker_steps(&self, load: Loop, brought: &[Option<Brought>]) -> Vec<WorkerStepReport> {
        let report = |(worker, brought): (usize, &Option<Brought>)| {
            let Brought { load: of, away } = brought.as_ref()?;
            let away = away.as_ref()?;
            let (before, after) = (of.measured.before, of.measured.after);
            let seconds = of.measured.seconds().max(1e-9);
            let mb_per_s = |after: u64, before: u64| (after - before) as f64 / 1e6 / seconds;
            let acked_gb = of.measured.acked_bytes() as f64 / 1e9;
            let used_s = away.process.as_ref().map(|used| used.cpu_s);
            Some(WorkerStepReport {
                address: self.crews.address(worker).to_owned(),
                sent_mb_per_s: mb_per_s(after.sent_bytes, before.sent_bytes),
                acked_mb_per_s: mb_per_s(after.acked_bytes, before.acked_bytes),
                consumed_mb_per_s: mb_per_s(after.consumed_bytes, before.consumed_bytes),
                generator: judge(
                    load,
                    of.lag.summary(),
                    of.send_delay.summary(),
                    of.latency.summary(),
                ),
                cpu_s_per_gb: used_s
                    .filter(|_| acked_gb > 0.0)
                    .map(|used| used / acked_gb),
                cpu: away.process.clone(),
                machine: away.machine,
            })
        };
        brought.iter().enumerate().filter_map(report).collect()
    }
}

/// One bad generator among several spoils the step, even where the others hide it.
fn with_workers(merged: GeneratorReport, workers: &[WorkerStepReport]) -> GeneratorReport {
    let bad = workers.iter().find(|worker| !worker.generator.valid);
    match bad {
        Some(worker) if merged.valid => GeneratorReport {
            valid: false,
            reason: worker
                .generator
                .reason
                .as_ref()
                .map(|reason| format!("worker {}: {reason}", worker.address)),
            ..merged
        },
        _ => merged,
    }
}

fn write_amplification(cpu: &CpuReport, acked_bytes: u64) -> Option<f64> {
    let written_bytes = cpu.broker.as_ref()?.disk_written_bytes?;
    (acked_bytes > 0).then(|| written_bytes as f64 / acked_bytes as f64)
}
