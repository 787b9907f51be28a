//! A report with made-up figures, for tests of how reports are shown.

use std::collections::BTreeMap;

use super::{
    AuditOutcome, AuditReport, ClockReport, CpuReport, Durability, GeneratorReport, Headline, Loop,
    NetworkReport, RawHistogram, Report, SCHEMA, SCHEMA_VERSION, SearchReport, StepReport, TryKind,
    TryReport, WorkerReport, WorkloadReport,
};
use crate::cpu::MachineShare;
use crate::histogram::LatencyHistogram;
use crate::keys::KeyDistributor;
use crate::live::Failures;
use crate::provenance::{Broker, Machine, Provenance, Tool};
use crate::quantity::Rate;
use crate::timeline::Second;

/// A closed step, then open ones of 10 and 20 MB/s, without baselines.
pub fn report() -> (Report, Vec<RawHistogram>) {
    let mut latency = LatencyHistogram::new();
    for us in 1..=10_000 {
        latency.record_ns(us * 1_000);
    }
    let rates = [Rate::Max, Rate::Bytes(10_000_000), Rate::Bytes(20_000_000)];
    let steps: Vec<StepReport> = rates.iter().map(|rate| step(*rate, &latency)).collect();
    let histograms = (0..steps.len()).map(|index| RawHistogram {
        tag: RawHistogram::tag_of(index, "publish"),
        seconds: 10.0,
        histogram: latency.clone(),
    });
    let report = Report {
        schema: SCHEMA,
        schema_version: SCHEMA_VERSION,
        complete: true,
        failure: None,
        provenance: Provenance {
            started_unix_ms: 0,
            argv: vec!["corelog-perf".to_owned(), "run".to_owned()],
            tool: Tool::this(),
            machine: Machine::this(),
            workers: Vec::new(),
            storage: None,
            broker: Broker::new("127.0.0.1:9092", &[], &[]),
        },
        workload: workload(&rates),
        baseline_before: None,
        baseline_after: None,
        headline: Headline::of(None, None, &steps, None, &[]),
        steps,
        search: None,
        reads: Vec::new(),
        audit: AuditReport {
            mode: "full",
            outcome: AuditOutcome::Passed,
            records_acked: 30_000,
            offsets_advanced: Some(30_000),
            failure: None,
            findings: None,
            consumption: None,
        },
    };
    (report, histograms.collect())
}

/// The same as a search: the closed step, 20 MB/s that did not hold, 10 MB/s that did and is the only step left.
pub fn search_report() -> (Report, Vec<RawHistogram>) {
    let (mut report, mut histograms) = report();
    let tried = |kind, step: usize, held: Option<bool>| {
        let reason = (held == Some(false)).then(|| "p99 was 9.9 ms, not <= 5 ms".to_owned());
        TryReport::of(kind, &report.steps[step], held, reason)
    };
    let search = SearchReport {
        hold: "p99:5ms".parse().expect("a bound"),
        within_percent: 5.0,
        try_warmup_seconds: 1.0,
        try_duration_seconds: 5.0,
        found: Some(report.steps[1].rate),
        found_mb_per_s: Some(10.0),
        reason: None,
        not_held: Some(report.steps[2].rate),
        tries: vec![
            tried(TryKind::ClosedLoop, 0, None),
            tried(TryKind::Try, 2, Some(false)),
            tried(TryKind::Confirmation, 1, Some(true)),
        ],
    };
    report.steps = vec![report.steps.swap_remove(1)];
    histograms.truncate(1);
    report.headline = Headline::of(None, None, &report.steps, Some(&search), &[]);
    report.search = Some(search);
    (report, histograms)
}

/// A worker whose clock is 1.5 ms ahead.
pub fn worker(address: &str) -> WorkerReport {
    WorkerReport {
        address: address.to_owned(),
        hostname: "w".to_owned(),
        machine: Machine::this(),
        clock: Some(ClockReport {
            wall_clock_ahead_ms: 1.5,
            uncertainty_ms: 0.25,
            drift_ms: 0.0,
        }),
        cpu_s_per_gb: Some(1.0),
        lag: None,
    }
}

fn step(rate: Rate, latency: &LatencyHistogram) -> StepReport {
    let offered_mb_per_s = match rate {
        Rate::Bytes(bytes) => Some(bytes as f64 / 1e6),
        _ => None,
    };
    let acked_mb_per_s = offered_mb_per_s.unwrap_or(100.0);
    let second = |at_s| Second {
        at_s,
        seconds: 1.0,
        offered_mb_per_s,
        sent_mb_per_s: acked_mb_per_s,
        acked_mb_per_s,
        consumed_mb_per_s: 0.0,
        replay_mb_per_s: None,
        failed_records: 0,
        failures: Failures::default(),
        first_ack_s: Some(at_s),
        last_ack_s: Some(at_s + 1.0),
        requests_in_flight: 1,
        p50_ms: None,
        p99_ms: None,
        p999_ms: None,
        max_ms: None,
    };
    StepReport {
        rate,
        load: match offered_mb_per_s {
            Some(_) => Loop::Open,
            None => Loop::Closed,
        },
        seconds: 10.0,
        offered_mb_per_s,
        sent_mb_per_s: acked_mb_per_s,
        acked_mb_per_s,
        wire_mb_per_s: acked_mb_per_s,
        produce_requests_per_s: 1.0,
        sent_records_per_s: 1.0,
        acked_records_per_s: 1.0,
        consumed_mb_per_s: 0.0,
        fetches_per_s: 0.0,
        publish_latency: latency.summary(),
        end_to_end_latency: None,
        end_to_end_uncertainty_ms: None,
        groups: None,
        generator: GeneratorReport {
            lag: None,
            send_delay: None,
            valid: true,
            reason: None,
            advice: None,
        },
        errors: BTreeMap::new(),
        consumer_errors: BTreeMap::new(),
        resent: BTreeMap::new(),
        unsent_records: 0,
        replay_mb_per_s: None,
        replay_passes: None,
        replay_errors: BTreeMap::new(),
        backlog: None,
        cpu: CpuReport {
            payload_gb: 1.0,
            broker_cpu_s_per_gb: None,
            client_cpu_s_per_gb: None,
            broker: None,
            brokers: Vec::new(),
            client: None,
            machine: MachineShare::default(),
        },
        write_amplification: None,
        network: NetworkReport::default(),
        outages: Vec::new(),
        ramp: None,
        workers: Vec::new(),
        timeline: (0..10).map(|at| second(f64::from(at))).collect(),
    }
}

fn workload(rates: &[Rate]) -> WorkloadReport {
    WorkloadReport {
        name: "1-topic-1-partition-1kb".to_owned(),
        topic: "t".to_owned(),
        topics: 1,
        partitions_per_topic: 1,
        replication_factor: 1,
        message_size: 1024,
        payload: "half random, half zero".to_owned(),
        key_distributor: KeyDistributor::NoKey,
        key_count: None,
        zipf_exponent: None,
        producers_per_topic: 1,
        subscriptions_per_topic: 0,
        consumer_per_subscription: 0,
        consumer_assignment: "fixed",
        warmup_seconds: 1.0,
        test_duration_seconds: 10.0,
        producer_rates: rates.iter().map(ToString::to_string).collect(),
        consumer_backlog_size_gb: None,
        backlog_drain_ratio: None,
        replay_consumers: None,
        replay_from: None,
        replay_once: None,
        driver: None,
        producer_config: BTreeMap::from([("linger.ms".to_owned(), "5".to_owned())]),
        consumer_config: BTreeMap::new(),
        topic_config: BTreeMap::new(),
        durability: Durability {
            acks: 1,
            replication_factor: 1,
            min_insync_replicas: None,
            flush_messages: None,
            flush_ms: None,
            synced_before_ack: None,
        },
    }
}
