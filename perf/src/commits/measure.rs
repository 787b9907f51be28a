//! Commits from their connections to the report.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::{self, JoinHandle, sleep};
use std::time::{Duration, Instant};

use super::committer::{CommitsAudit, Committer, CommitterPlan, CommitterResult, Phase, Watch};
use super::error::CommitsError;
use super::flags::CommitsArgs;
use super::report::{
    CommitsDurability, CommitsLoad, CommitsReport, CommitsSecond, SCHEMA, SCHEMA_VERSION,
};
use crate::cli::RunArgs;
use crate::client::cluster::{Cluster, Settings};
use crate::client::coordinator::delete_groups;
use crate::client::error::ClientError;
use crate::clock::Clock;
use crate::histogram::LatencyHistogram;
use crate::interrupt::Interrupt;
use crate::progress::{Extent, Progress};
use crate::provenance::{Broker, Machine, Tool, unix_ms_now};
use crate::report::Loop;
use crate::run;

const OFFSETS_TOPIC: &str = "__consumer_offsets";

/// From the last connection to the first commit.
const START_DELAY: Duration = Duration::from_millis(50);

const SECOND: Duration = Duration::from_secs(1);

/// A topic of its own, whose partitions hold nothing; it and the groups are deleted afterwards.
struct Target<'a> {
    cluster: &'a Cluster,
    topic: String,
    groups: Vec<String>,
}

impl Drop for Target<'_> {
    fn drop(&mut self) {
        if let Err(error) = delete_groups(self.cluster.bootstrap(), &self.groups) {
            eprintln!("corelog-perf: groups of {} stay: {error}", self.topic);
        }
        if let Err(error) = self.cluster.delete_topic(&self.topic) {
            eprintln!("corelog-perf: the topic {} stays: {error}", self.topic);
        }
    }
}

pub fn measure(
    arguments: &CommitsArgs,
    interrupt: &Interrupt,
) -> Result<CommitsReport, CommitsError> {
    arguments.check()?;
    let started_unix_ms = unix_ms_now();
    let mut progress = Progress::new();
    progress.phase("connecting", None);
    let cluster = Cluster::connect(&arguments.bootstrap)?;
    let run: u32 = rand::random();
    let mut target = Target {
        groups: Vec::new(),
        topic: format!("corelog-perf-commits-{run:08x}"),
        cluster: &cluster,
    };
    cluster.create_topic(&target.topic, arguments.partitions, 1, &[])?;
    cluster.await_topic(&target.topic, arguments.partitions)?;
    progress.phase("finding coordinators", None);
    let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (group, address) in coordinators(&cluster, run, arguments.groups)? {
        target.groups.push(group.clone());
        groups.entry(address).or_default().push(group);
    }
    let coordinators = groups.len();
    let clock = Clock::start();
    let committers = connect(arguments, &target.topic, groups, clock)?;
    let watch = Arc::new(Watch::default());
    let threads: Vec<JoinHandle<_>> = committers
        .into_iter()
        .enumerate()
        .map(|(number, committer)| {
            let watch = Arc::clone(&watch);
            let named = thread::Builder::new().name(format!("committer-{number}"));
            let spawned = named.spawn(move || committer.run(&watch));
            spawned.expect("the system has room for a thread")
        })
        .collect();
    let begin = Instant::now();
    let length = arguments.warmup + arguments.duration;
    progress.phase("commits", Some(Extent::Time(length)));
    let seconds = count_seconds(Arc::clone(&watch), begin, length);
    pause(arguments.warmup, interrupt);
    watch.enter(Phase::Measured);
    let opened = Instant::now();
    let watched = run::idle(
        &run_arguments(arguments)?,
        cluster.bootstrap(),
        arguments.duration,
        interrupt,
    );
    let measured_s = opened.elapsed().as_secs_f64();
    watch.enter(Phase::Over);
    progress.phase("reading back", None);
    let mut merged = Merged::default();
    let mut failure = None;
    for thread in threads {
        match thread.join().expect("no committer panics") {
            Ok(result) => merged.add(result),
            Err(error) => failure = Some(error),
        }
    }
    let timeline = seconds.join().expect("counting does not panic");
    progress.finish();
    if let Some(error) = failure {
        return Err(error.into());
    }
    let (watched_s, cpu) = watched?;
    let broker_cores = cpu.broker.as_ref().map(|used| used.cpu_s / watched_s);
    let commits_per_s = merged.commits as f64 / measured_s;
    Ok(CommitsReport {
        schema: SCHEMA,
        schema_version: SCHEMA_VERSION,
        complete: !interrupt.is_asked(),
        started_unix_ms,
        argv: arguments.argv.clone(),
        tool: Tool::this(),
        machine: Machine::this(),
        durability: durability(&cluster),
        broker: broker(&cluster)?,
        load: CommitsLoad {
            kind: match arguments.rate {
                Some(_) => Loop::Open,
                None => Loop::Closed,
            },
            rate: arguments.rate,
            groups: arguments.groups,
            coordinators,
            connections: arguments.connections,
            in_flight: arguments.in_flight,
            partitions: arguments.partitions,
        },
        seconds: measured_s,
        commits: merged.commits,
        commits_per_s,
        offsets_per_s: commits_per_s * f64::from(arguments.partitions),
        latency: merged.latency.summary(),
        errors: merged.errors,
        broker_cores,
        commits_per_broker_cpu_s: broker_cores
            .filter(|cores| *cores > 0.0)
            .map(|cores| commits_per_s / cores),
        broker_cpu: cpu.broker,
        client_cpu: cpu.client,
        machine_share: cpu.machine,
        timeline,
        audit: merged.audit,
    })
}

/// Of all connections.
struct Merged {
    commits: u64,
    latency: LatencyHistogram,
    errors: BTreeMap<String, u64>,
    audit: CommitsAudit,
}

impl Default for Merged {
    fn default() -> Self {
        Self {
            commits: 0,
            latency: LatencyHistogram::new(),
            errors: BTreeMap::new(),
            audit: CommitsAudit::default(),
        }
    }
}

impl Merged {
    fn add(&mut self, result: CommitterResult) {
        self.commits += result.commits;
        self.latency.merge(&result.latency);
        for (error, count) in result.errors {
            *self.errors.entry(error).or_default() += count;
        }
        self.audit.merge(result.audit);
    }
}

/// Each group with the address of its coordinator.
fn coordinators(
    cluster: &Cluster,
    run: u32,
    groups: u32,
) -> Result<Vec<(String, String)>, ClientError> {
    let names: Vec<_> = (0..groups)
        .map(|group| format!("corelog-perf-{run:08x}-{group}"))
        .collect();
    let found = cluster.coordinators(&names)?;
    Ok(names
        .into_iter()
        .zip(found)
        .map(|(group, address)| (group, address.0))
        .collect())
}

fn connect(
    arguments: &CommitsArgs,
    topic: &str,
    groups: BTreeMap<String, Vec<String>>,
    clock: Clock,
) -> Result<Vec<Committer>, ClientError> {
    let connections = arguments.connections as usize;
    let parts: Vec<(String, Vec<String>)> = groups
        .into_iter()
        .flat_map(|(coordinator, groups)| {
            (0..connections).map(move |connection| {
                let mine = groups.iter().skip(connection).step_by(connections);
                (coordinator.clone(), mine.cloned().collect())
            })
        })
        // With several coordinators one may have fewer groups than connections.
        .filter(|(_, groups): &(String, Vec<String>)| !groups.is_empty())
        .collect();
    let count = parts.len() as u64;
    let start_ns = clock.now_ns() + START_DELAY.as_nanos() as u64;
    let interval_ns = |rate: u32| count * 1_000_000_000 / u64::from(rate);
    let turn_ns = |place: u64| {
        arguments
            .rate
            .map_or(0, |rate| place * 1_000_000_000 / u64::from(rate))
    };
    let committer = |(place, (coordinator, groups)): (u64, (String, Vec<String>))| {
        let plan = CommitterPlan {
            coordinator,
            topic: topic.to_owned(),
            partitions: (0..arguments.partitions as usize).collect(),
            in_flight_max: (arguments.in_flight as usize).min(groups.len()),
            groups,
            interval_ns: arguments.rate.map(interval_ns),
            start_ns: start_ns + turn_ns(place),
        };
        Committer::connect(plan, clock)
    };
    (0..).zip(parts).map(committer).collect()
}

/// What came in every whole second.
fn count_seconds(
    watch: Arc<Watch>,
    begin: Instant,
    length: Duration,
) -> JoinHandle<Vec<CommitsSecond>> {
    thread::spawn(move || {
        let mut seconds = Vec::new();
        let (mut last_s, mut last) = (0.0, 0);
        while begin.elapsed() + SECOND <= length {
            sleep(SECOND);
            let (at_s, confirmed) = (begin.elapsed().as_secs_f64(), watch.confirmed.load(Relaxed));
            seconds.push(CommitsSecond {
                at_s: last_s,
                commits_per_s: (confirmed - last) as f64 / (at_s - last_s),
            });
            (last_s, last) = (at_s, confirmed);
        }
        seconds
    })
}

fn pause(length: Duration, interrupt: &Interrupt) {
    let until = Instant::now() + length;
    while Instant::now() < until && !interrupt.is_asked() {
        sleep((until - Instant::now()).min(Duration::from_millis(50)));
    }
}

/// As a run has them that measures the same brokers.
fn run_arguments(arguments: &CommitsArgs) -> Result<RunArgs, CommitsError> {
    let mut argv = vec!["corelog-perf".to_owned(), "run".to_owned()];
    for pid in &arguments.broker_pid {
        argv.extend(["--broker-pid".to_owned(), pid.to_string()]);
    }
    Ok(RunArgs::from_argv(argv)?)
}

fn broker(cluster: &Cluster) -> Result<Broker, ClientError> {
    let brokers = cluster.brokers()?;
    let mut broker = Broker::new(cluster.bootstrap(), &brokers, &[]);
    broker.settings = brokers
        .first()
        .and_then(|(id, _)| cluster.broker_settings(*id).ok());
    broker.topic_settings = cluster.topic_settings(OFFSETS_TOPIC).ok();
    Ok(broker)
}

fn durability(cluster: &Cluster) -> CommitsDurability {
    let of_topic = cluster.topic_settings(OFFSETS_TOPIC).ok();
    let of_broker = cluster
        .brokers()
        .ok()
        .and_then(|brokers| cluster.broker_settings(brokers.first()?.0).ok());
    let setting =
        |settings: &Option<Settings>, name: &str| settings.as_ref()?.get(name).cloned().flatten();
    let flush_messages = setting(&of_topic, "flush.messages");
    CommitsDurability {
        topic: OFFSETS_TOPIC,
        partitions: cluster
            .existing_topic(OFFSETS_TOPIC)
            .ok()
            .map(|topic| topic.leaders.len()),
        replication_factor: setting(&of_broker, "offsets.topic.replication.factor"),
        min_insync_replicas: setting(&of_topic, "min.insync.replicas"),
        synced_before_answer: flush_messages.as_ref().map(|value| value == "1"),
        flush_messages,
        flush_ms: setting(&of_topic, "flush.ms"),
    }
}
