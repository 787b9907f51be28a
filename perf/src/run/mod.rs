//! One run from the first connection to the report: baselines, topic, each offered rate, reading back, audit,
//! baselines again.
//!
//! Owns: the order of things and the topic that it made. Must never know: bytes on a wire. Runs on: the main
//! thread; the load has its own. Whatever ends it early, what was measured until then becomes the report.

mod backlog;
mod brokers;
mod conduct;
mod course;
mod crews;
mod error;
mod generator;
mod groups;
mod idle;
mod meter;
mod proof;
mod reads;
mod replay;
mod search;
mod seconds;
mod step;
mod topics;

pub use self::idle::idle;

pub use self::error::RunError;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use self::brokers::Brokers;
use self::crews::Crews;
use self::proof::Loss;
use self::step::StepPlan;
use self::topics::Stretch;
use crate::baseline::null_load::NullLoad;
use crate::baseline::{self, Baseline, BaselinePlan};
use crate::cli::RunArgs;
use crate::client::cluster::{Cluster, Settings, Topic};
use crate::clock::Clock;
use crate::consumer::group::Consumption;
use crate::interrupt::Interrupt;
use crate::keys::KeyDistributor;
use crate::payload::PayloadPool;
use crate::plan::LoadPlan;
use crate::progress::Progress;
use crate::provenance::{Broker, Machine, Provenance, Storage, Tool, unix_ms_now};
use crate::quantity::Rate;
use crate::record::RunId;
use crate::report::{
    AuditOutcome, AuditReport, Durability, Headline, RawHistogram, ReadReport, Report, SCHEMA,
    SCHEMA_VERSION, SearchReport, StepReport, WorkloadReport, check_free, default_directory,
    write_directory, write_json,
};

/// Everything that the phases share.
struct Run<'a> {
    arguments: &'a RunArgs,
    plan: LoadPlan,
    id: RunId,
    clock: Clock,
    cluster: Cluster,
    /// What the topics are called, without their numbers.
    name: String,
    topics: Vec<Arc<Topic>>,
    payloads: PayloadPool,
    crews: Crews,
    /// What the groups of all steps so far are called.
    groups: BTreeSet<String>,
    /// Of the groups of all steps so far.
    consumption: Option<Consumption>,
    brokers: Brokers,
    progress: Progress,
    interrupt: Interrupt,
}

impl Run<'_> {
    /// Reading needs at least one reader, also where no consumer follows the producers.
    fn readers(&self) -> u32 {
        self.plan.consumers.max(1)
    }
}

/// What the load phases leave behind, however far they got.
#[derive(Default)]
struct Measured {
    steps: Vec<StepReport>,
    search: Option<SearchReport>,
    reads: Vec<ReadReport>,
    histograms: Vec<RawHistogram>,
    audit: Option<AuditReport>,
    failure: Option<String>,
}

/// A finished run.
pub struct Finished {
    pub report: Report,
    pub histograms: Vec<RawHistogram>,
    /// Where its files are; None if only the JSON was asked for.
    pub directory: Option<PathBuf>,
}

/// What the command line asks for, with its report on disk.
pub fn run_and_write(arguments: &RunArgs, interrupt: &Interrupt) -> Result<Finished, RunError> {
    if let Some(directory) = &arguments.out {
        check_free(directory)?;
    }
    let mut finished = run_unwritten(arguments, interrupt)?;
    let directory = match (&arguments.out, &arguments.json) {
        (Some(directory), _) => Some(directory.clone()),
        (None, Some(_)) => None,
        (None, None) => Some(default_directory(&finished.report.workload.name)),
    };
    if let Some(path) = &arguments.json {
        write_json(&finished.report, path)?;
    }
    if let Some(directory) = &directory {
        write_directory(&finished.report, &finished.histograms, directory)?;
    }
    finished.directory = directory;
    Ok(finished)
}

/// What the command line asks for, without any file.
pub fn run_unwritten(arguments: &RunArgs, interrupt: &Interrupt) -> Result<Finished, RunError> {
    let plan = arguments.plan()?;
    brokers::check(arguments)?;
    let payloads = PayloadPool::open(&plan.payload, plan.message_bytes)?;
    run(arguments, plan, payloads, interrupt.clone())
}

/// An error is only what kept the run from measuring anything.
fn run(
    arguments: &RunArgs,
    plan: LoadPlan,
    payloads: PayloadPool,
    interrupt: Interrupt,
) -> Result<Finished, RunError> {
    let started_unix_ms = unix_ms_now();
    let clock = Clock::start();
    let mut progress = Progress::new();
    progress.phase("connecting", None);
    let crews = Crews::open(&plan.workers, clock)?;
    let cluster = Cluster::connect(&plan.bootstrap)?;
    let brokers = cluster.brokers()?;
    let measured_brokers = Brokers::find(arguments, cluster.bootstrap(), &brokers);
    let mut broker = Broker::new(cluster.bootstrap(), &brokers, &measured_brokers.pids());
    // A broker that does not describe its settings can still be measured.
    broker.settings = brokers
        .first()
        .and_then(|(id, _)| cluster.broker_settings(*id).ok());
    let directory = baseline_directory(arguments, &broker);

    let baseline_before = take_baseline(
        arguments,
        directory.as_deref(),
        NullLoad {
            plan: &plan,
            payloads: &payloads,
        },
        &mut progress,
        "baseline before",
    );

    let id = RunId(rand::random());
    let name = arguments
        .topic
        .clone()
        .unwrap_or_else(|| format!("corelog-perf-{:08x}", id.0));
    let names = topics::names(&name, plan.topics);
    let (topics, created) = match plan.only_reads() {
        true => (topics::existing(&cluster, &names)?, Vec::new()),
        false => topics::create(&cluster, &names, &plan)?,
    };
    broker.topic_settings = cluster.topic_settings(&names[0]).ok();

    let mut run = Run {
        arguments,
        plan,
        id,
        clock,
        cluster,
        name,
        topics,
        payloads,
        crews,
        groups: BTreeSet::new(),
        consumption: None,
        brokers: measured_brokers,
        progress,
        interrupt,
    };
    let measured = run.measure();
    if !arguments.keep_topic {
        run.delete_groups();
        if arguments.topic.is_none() {
            run.delete_topics(&created);
        }
    }
    let complete = measured.failure.is_none() && !run.interrupt.is_asked();
    let baseline_after = if complete {
        take_baseline(
            arguments,
            directory.as_deref(),
            NullLoad {
                plan: &run.plan,
                payloads: &run.payloads,
            },
            &mut run.progress,
            "baseline after",
        )
    } else {
        None
    };
    run.progress.finish();

    let report = Report {
        schema: SCHEMA,
        schema_version: SCHEMA_VERSION,
        complete,
        failure: measured.failure,
        workload: workload_report(&run, &broker),
        provenance: Provenance {
            started_unix_ms,
            argv: arguments.argv.clone(),
            tool: Tool::this(),
            machine: Machine::this(),
            workers: run.crews.reports(run.clock),
            storage: directory.as_deref().and_then(Storage::of),
            broker,
        },
        headline: Headline::of(
            baseline_before.as_ref(),
            baseline_after.as_ref(),
            &measured.steps,
            measured.search.as_ref(),
            &measured.reads,
        ),
        baseline_before,
        baseline_after,
        steps: measured.steps,
        search: measured.search,
        reads: measured.reads,
        audit: measured
            .audit
            .unwrap_or_else(|| proof::not_run(arguments.audit)),
    };
    Ok(Finished {
        report,
        histograms: measured.histograms,
        directory: None,
    })
}

impl Run<'_> {
    /// All phases that put load on the broker. An error ends them, not the report.
    fn measure(&mut self) -> Measured {
        let mut measured = Measured::default();
        if let Err(error) = self.measure_into(&mut measured) {
            measured.failure = Some(error.to_string());
        }
        measured
    }

    fn measure_into(&mut self, measured: &mut Measured) -> Result<(), RunError> {
        if let (true, Some(replay)) = (self.plan.only_reads(), self.plan.replay) {
            let read = self.replay_alone(replay);
            measured.failure = read.failure.clone();
            measured.reads.push(read);
            return Ok(());
        }
        let starts = self.end_offsets()?;
        let mut ledgers = vec![Vec::new(); self.topics.len()];
        let mut loss = None;
        let mut max_bytes_per_s = 0.0;
        for (number, rate) in self.plan.offer.rates().to_vec().into_iter().enumerate() {
            if self.interrupt.is_asked() {
                return Ok(());
            }
            let rate = match rate {
                Rate::PercentOfMax(percent) => {
                    Rate::Bytes((max_bytes_per_s * percent / 100.0).max(1.0) as u64)
                }
                rate => rate,
            };
            let outcome = self.step(StepPlan {
                number,
                rate,
                warmup: self.plan.warmup,
                duration: self.plan.duration,
            })?;
            if rate == Rate::Max {
                max_bytes_per_s = outcome.report.acked_mb_per_s * 1e6;
            }
            let given_up = outcome
                .report
                .backlog
                .as_ref()
                .and_then(|it| it.given_up_gb);
            measured.steps.push(outcome.report);
            for (of_topic, more) in ledgers.iter_mut().zip(outcome.ledgers) {
                of_topic.extend(more);
            }
            let tag_of = |name: &str| RawHistogram::tag_of(number, name);
            measured
                .histograms
                .extend(outcome.histograms.tagged(tag_of));
            if let Some(lost) = outcome.lost {
                loss = Some(Loss::of(lost, outcome.lost_producers));
                break;
            }
            if let Some(unread_gb) = given_up {
                measured.failure = Some(format!(
                    "the backlog at {rate} was given up with {unread_gb:.2} GB unread: at its pace it would have taken more than a day"
                ));
                break;
            }
        }
        if let Some(search) = self.plan.offer.search() {
            loss = self.search(search, measured, &mut ledgers)?;
        }
        let ends = match self.await_end_offsets() {
            Ok(ends) => ends,
            Err(error) => {
                let reason = format!("the log's end cannot be asked for: {error}");
                measured.audit = Some(proof::unprovable(self.arguments.audit, reason));
                return Err(loss.map_or(error.into(), |loss: Loss| loss.worker.into()));
            }
        };
        let stretches: Vec<_> = self
            .topics
            .iter()
            .zip(starts.into_iter().zip(ends))
            .zip(ledgers)
            .map(|((topic, (starts, ends)), ledgers)| Stretch {
                topic: Arc::clone(topic),
                starts,
                ends,
                ledgers,
            })
            .collect();
        if !self.arguments.read_duration.is_zero() && loss.is_none() {
            measured.reads = self.reads(&stretches);
        }
        let audit = self.prove(&stretches, loss.as_ref());
        if audit.outcome == AuditOutcome::Incomplete {
            measured.failure = audit.failure.clone();
        }
        measured.audit = Some(audit);
        match loss {
            Some(loss) => Err(loss.worker.into()),
            None => Ok(()),
        }
    }
}

/// Beside the broker's log directory, so that the broker never finds a strange file among its own; inside if
/// that is another disk.
fn baseline_directory(arguments: &RunArgs, broker: &Broker) -> Option<PathBuf> {
    if arguments.baseline_dir.is_some() {
        return arguments.baseline_dir.clone();
    }
    broker.process.as_ref()?;
    let logs = broker
        .log_directories()
        .into_iter()
        .find(|directory| directory.is_dir())?
        .canonicalize()
        .ok()?;
    let beside = logs.parent().map(Path::to_owned);
    let storage = Storage::of(&logs)?;
    let same_disk = |directory: &PathBuf| {
        Storage::of(directory).is_some_and(|other| other.mount_point == storage.mount_point)
    };
    Some(beside.filter(same_disk).unwrap_or(logs))
}

fn take_baseline(
    arguments: &RunArgs,
    directory: Option<&Path>,
    load: NullLoad<'_>,
    progress: &mut Progress,
    name: &str,
) -> Option<Baseline> {
    if arguments.baseline_seconds == Duration::ZERO {
        return None;
    }
    progress.phase(name, None);
    let plan = BaselinePlan {
        directory,
        file_bytes: arguments.baseline_bytes,
        each: arguments.baseline_seconds,
        load: Some(load),
    };
    Some(baseline::measure(&plan, |what| progress.doing(what)))
}

fn workload_report(run: &Run, broker: &Broker) -> WorkloadReport {
    let plan = &run.plan;
    let setting = |name: &str| {
        let of = |settings: &Option<Settings>| settings.as_ref()?.get(name).cloned().flatten();
        of(&broker.topic_settings).or_else(|| of(&broker.settings))
    };
    let flush_messages = setting("flush.messages");
    WorkloadReport {
        name: plan.workload.clone(),
        topic: run.name.clone(),
        topics: plan.topics,
        partitions_per_topic: run.topics[0].leaders.len() as u32,
        replication_factor: plan.replication,
        message_size: plan.message_bytes,
        payload: plan.payload.to_string(),
        key_distributor: plan.keys.distributor,
        key_count: (plan.keys.distributor != KeyDistributor::NoKey).then_some(plan.keys.count),
        zipf_exponent: (plan.keys.distributor == KeyDistributor::Zipf)
            .then_some(plan.keys.zipf_exponent),
        producers_per_topic: plan.producers,
        subscriptions_per_topic: plan.subscriptions,
        consumer_per_subscription: plan.consumers,
        consumer_assignment: plan.groups.map_or("fixed", |group| group.assignor.name()),
        warmup_seconds: plan.warmup.as_secs_f64(),
        test_duration_seconds: plan.duration.as_secs_f64(),
        producer_rates: plan.offer.names(),
        consumer_backlog_size_gb: plan
            .backlog
            .map(|backlog| backlog.bytes as f64 / f64::from(1 << 30)),
        backlog_drain_ratio: plan.backlog.map(|backlog| backlog.drain_ratio),
        replay_consumers: plan.replay.map(|replay| replay.consumers),
        replay_from: plan.replay.map(|replay| replay.from),
        replay_once: plan.replay.map(|replay| replay.once),
        driver: plan.driver.clone(),
        producer_config: plan.producer_config(),
        consumer_config: plan.consumer_config(),
        topic_config: plan.topic_settings.iter().cloned().collect(),
        durability: Durability {
            acks: plan.acks.on_wire(),
            replication_factor: plan.replication,
            min_insync_replicas: setting("min.insync.replicas"),
            synced_before_ack: flush_messages.as_ref().map(|value| value == "1"),
            flush_messages,
            flush_ms: setting("flush.ms"),
        },
    }
}
