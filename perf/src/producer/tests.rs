//! The producer against a fake broker on a real socket.

use std::sync::Arc;
use std::time::Duration;

use super::batch::ProducerIdentity;
use super::frame::Acks;
use super::{Producer, ProducerPlan, ProducerResult, Window};
use crate::audit::{AuditFindings, PartitionAudit};
use crate::client::batches::whole_batches;
use crate::client::cluster::{BrokerAddress, Topic};
use crate::client::fake_broker::{FakeBroker, Reaction};
use crate::clock::Clock;
use crate::compression::Compression;
use crate::keys::{KeyDistributor, Keys};
use crate::live::Live;
use crate::load_stage::LoadStage;
use crate::payload::PayloadPool;
use crate::record::{ProducerNumber, RunId};
use crate::schedule::Schedule;

const RUN: RunId = RunId(5);
const RECORDS_PER_SECOND: f64 = 1000.0;
const SECONDS: u64 = 1;
const RECORDS: u64 = SECONDS * RECORDS_PER_SECOND as u64;

/// One second at 1,000 records a second, in batches of what is due.
fn produce(broker: &FakeBroker, change: impl FnOnce(&mut ProducerPlan)) -> ProducerResult {
    produce_with(broker, &Arc::new(Live::default()), change)
}

fn produce_with(
    broker: &FakeBroker,
    live: &Arc<Live>,
    change: impl FnOnce(&mut ProducerPlan),
) -> ProducerResult {
    let clock = Clock::start();
    let end_ns = SECONDS * 1_000_000_000;
    let mut plan = ProducerPlan {
        run: RUN,
        number: ProducerNumber(0),
        identity: ProducerIdentity::NONE,
        topic: Arc::new(Topic {
            name: "t".to_owned(),
            leaders: vec![BrokerAddress(broker.address.clone()); 2],
        }),
        schedule: Schedule::Paced {
            start_ns: 0,
            end_ns,
            records_per_second: RECORDS_PER_SECOND,
        },
        window: Window {
            start_ns: 0,
            end_ns,
        },
        drain_until_ns: end_ns + 20_000_000_000,
        acks: Acks::All,
        linger: Duration::from_millis(10),
        in_flight_max: 1,
        message_bytes: 100,
        batch_bytes_max: 100_000,
        request_bytes_max: 1_000_000,
        keys: None,
        payloads: PayloadPool::Random {
            random_bytes_ratio: 0.5,
            pool_size: 3,
        },
        compression: Compression::None,
    };
    change(&mut plan);
    Producer::connect(plan, clock, Arc::clone(live))
        .expect("the fake broker is there")
        .run()
}

fn audit(broker: &FakeBroker, result: &ProducerResult) -> AuditFindings {
    let ledgers = [result.ledger.clone()];
    let mut audits = [
        PartitionAudit::new(RUN, "t", 0, &ledgers, 0),
        PartitionAudit::new(RUN, "t", 1, &ledgers, 0),
    ];
    for appended in broker.appended.try_iter() {
        let mut records = appended.records.to_vec();
        records[..8].copy_from_slice(&appended.base_offset.to_be_bytes());
        whole_batches(&records).for_each(|batch| audits[appended.partition as usize].batch(&batch));
    }
    let mut findings = AuditFindings::default();
    audits
        .into_iter()
        .for_each(|audit| findings.merge(audit.finish()));
    findings
}

#[test]
fn every_record_of_the_schedule_is_sent_acked_and_found() {
    let broker = FakeBroker::start(|_| Reaction::Append);
    let result = produce(&broker, |_| ());
    let findings = audit(&broker, &result);
    assert_eq!(result.latency.summary().unwrap().count, RECORDS);
    assert_eq!(
        (findings.records_acked, findings.records_read),
        (RECORDS, RECORDS)
    );
    assert!(findings.anomalies.is_empty() && result.errors.is_empty() && result.resent.is_empty());
}

#[test]
fn every_leader_gets_its_partitions_records_and_each_is_acked() {
    let brokers = [(); 2].map(|()| FakeBroker::start(|_| Reaction::Append));
    let leaders = [0, 1, 0].map(|broker: usize| BrokerAddress(brokers[broker].address.clone()));
    let result = produce(&brokers[0], |plan| {
        plan.topic = Arc::new(Topic {
            name: "t".to_owned(),
            leaders: leaders.to_vec(),
        });
    });
    let streams = &result.ledger.streams;
    let acked: u64 = streams.iter().map(|stream| stream.acked_count()).sum();
    assert_eq!(acked, RECORDS);
    assert_eq!(result.latency.summary().unwrap().count, RECORDS);
    for (broker, partitions) in brokers.iter().zip([&[0, 2][..], &[1]]) {
        let mut appended = broker.appended.try_iter().peekable();
        assert!(appended.peek().is_some());
        assert!(appended.all(|batch| partitions.contains(&batch.partition)));
    }
}

/// A generator that waits for the answer before it takes the next time sees one slow request. Counted from the
/// intended times, every record that was due during the stall has waited. The second request stalls, so that a
/// slow machine only adds to the waiting.
#[test]
fn a_stalled_broker_shows_in_every_record_that_was_due_meanwhile() {
    let stall = Duration::from_millis(500);
    let broker = FakeBroker::start(move |number| {
        if number == 1 {
            Reaction::AppendAfter(stall)
        } else {
            Reaction::Append
        }
    });
    let result = produce(&broker, |_| ());
    let waited_long = result
        .latency
        .inner()
        .iter_recorded()
        .filter(|step| step.value_iterated_to() >= 200_000_000);
    let count: u64 = waited_long.map(|step| step.count_at_value()).sum();
    assert_eq!(result.latency.summary().unwrap().count, RECORDS);
    assert!(
        count >= 290,
        "only {count} of the 300 records that were due in the stall's first 300 ms waited for 200 ms"
    );
}

#[test]
fn records_that_never_got_their_turn_count_with_the_time_they_waited() {
    let broker = FakeBroker::start(|number| match number {
        0 => Reaction::Append,
        _ => Reaction::AppendAfter(Duration::from_secs(60)),
    });
    let result = produce(&broker, |plan| {
        plan.drain_until_ns = plan.window.end_ns + 200_000_000
    });
    assert_eq!(result.latency.summary().unwrap().count, RECORDS);
    assert!(result.unsent_records > 0);
    assert!(
        result.errors.contains_key("NEVER_ANSWERED"),
        "{:?}",
        result.errors
    );
}

#[test]
fn a_refused_batch_is_an_error_and_not_a_loss() {
    let broker = FakeBroker::start(|number| {
        if number == 5 {
            Reaction::Refuse(10)
        } else {
            Reaction::Append
        }
    });
    let result = produce(&broker, |_| ());
    let findings = audit(&broker, &result);
    let refused = result.errors["MESSAGE_TOO_LARGE"];
    assert_eq!(findings.records_acked + refused, RECORDS);
    assert!(findings.anomalies.is_empty(), "{findings:?}");
}

#[test]
fn a_lost_connection_is_opened_again_and_what_was_under_way_stays_unknown() {
    for append in [false, true] {
        let broker = FakeBroker::start(move |number| {
            if number == 5 {
                Reaction::HangUp { append }
            } else {
                Reaction::Append
            }
        });
        let result = produce(&broker, |_| ());
        let findings = audit(&broker, &result);
        let lost: u64 = result.errors.values().sum();
        assert!(
            lost > 0
                && result
                    .errors
                    .keys()
                    .all(|error| error.starts_with("CONNECTION_LOST")),
            "{:?}",
            result.errors
        );
        assert_eq!(findings.records_acked + lost, RECORDS);
        assert_eq!(
            findings.records_unacked_but_present,
            if append { lost } else { 0 }
        );
        assert!(findings.anomalies.is_empty(), "{findings:?}");
    }
}

#[test]
fn an_idempotent_producer_sends_again_in_order_what_a_broker_could_not_take() {
    const NOT_LEADER_OR_FOLLOWER: i16 = 6;
    let broker = FakeBroker::start(|number| match number {
        5 => Reaction::Refuse(NOT_LEADER_OR_FOLLOWER),
        9 => Reaction::HangUp { append: false },
        _ => Reaction::Append,
    });
    let result = produce(&broker, |plan| {
        plan.identity = ProducerIdentity { id: 1, epoch: 0 }
    });
    let findings = audit(&broker, &result);
    assert_eq!(findings.records_acked, RECORDS);
    assert!(
        findings.anomalies.is_empty() && result.errors.is_empty(),
        "{findings:?} {:?}",
        result.errors
    );
    assert_eq!(
        result.resent.keys().collect::<Vec<_>>(),
        ["CONNECTION_LOST", "NOT_LEADER_OR_FOLLOWER"]
    );
}

#[test]
fn every_keyed_record_is_sent_to_its_keys_partition_acked_and_found() {
    let broker = FakeBroker::start(|_| Reaction::Append);
    let keys = Keys::new(KeyDistributor::Zipf, 50, 1.2).unwrap();
    let result = produce(&broker, |plan| plan.keys = Some(Arc::new(keys)));
    assert_eq!(result.latency.summary().unwrap().count, RECORDS);
    let findings = audit(&broker, &result);
    assert_eq!(
        (findings.records_acked, findings.records_read),
        (RECORDS, RECORDS)
    );
    assert!(findings.anomalies.is_empty(), "{findings:?}");
    assert_eq!(result.unsent_records, 0);
}

#[test]
fn compressed_batches_are_audited_as_others_are() {
    for name in ["gzip", "snappy", "lz4", "zstd"] {
        let broker = FakeBroker::start(|_| Reaction::Append);
        let result = produce(&broker, |plan| {
            plan.compression = Compression::named(name).unwrap()
        });
        let findings = audit(&broker, &result);
        assert_eq!(
            (findings.records_acked, findings.records_read),
            (RECORDS, RECORDS)
        );
        assert!(findings.anomalies.is_empty(), "{name}: {findings:?}");
    }
}

#[test]
fn keyed_records_that_never_got_their_turn_count_with_the_time_they_waited() {
    let broker = FakeBroker::start(|_| Reaction::AppendAfter(Duration::from_secs(60)));
    let keys = Keys::new(KeyDistributor::Uniform, 50, 1.0).unwrap();
    let result = produce(&broker, |plan| {
        plan.keys = Some(Arc::new(keys));
        plan.drain_until_ns = plan.window.end_ns + 200_000_000;
    });
    assert_eq!(result.latency.summary().unwrap().count, RECORDS);
}

#[test]
fn without_acks_the_socket_is_the_only_witness() {
    let broker = FakeBroker::start(|_| Reaction::Append);
    let result = produce(&broker, |plan| plan.acks = Acks::None);
    assert_eq!(result.latency.summary().unwrap().count, RECORDS);
    assert_eq!(
        result
            .ledger
            .streams
            .iter()
            .map(|stream| stream.acked_count())
            .sum::<u64>(),
        0
    );
}

#[test]
fn a_closed_loop_ends_with_its_window() {
    let broker = FakeBroker::start(|_| Reaction::Append);
    let result = produce(&broker, |plan| {
        plan.window.end_ns = 200_000_000;
        plan.schedule = Schedule::Closed {
            end_ns: 200_000_000,
        };
    });
    assert!(audit(&broker, &result).anomalies.is_empty());
    assert_eq!(result.unsent_records, 0);
}

#[test]
fn a_load_that_is_told_to_end_sends_what_came_due_before_and_nothing_after() {
    const REQUESTS: usize = 3;
    let live = Arc::new(Live::default());
    let told = Arc::clone(&live);
    let broker = FakeBroker::start(move |request| {
        if request == REQUESTS {
            told.enter(LoadStage::Ending);
        }
        Reaction::Append
    });
    let an_hour_ns = 3_600_000_000_000;
    let result = produce_with(&broker, &live, |plan| {
        plan.schedule = Schedule::Paced {
            start_ns: 0,
            end_ns: an_hour_ns,
            records_per_second: RECORDS_PER_SECOND,
        };
        plan.window.end_ns = an_hour_ns;
        plan.drain_until_ns = an_hour_ns + 20_000_000_000;
    });
    let streams = || result.ledger.streams.iter();
    let sent: u64 = streams().map(|stream| stream.sent_count).sum();
    let acked: u64 = streams().map(|stream| stream.acked_count()).sum();
    assert!(sent > 0 && acked == sent, "{acked} of {sent}");
    assert_eq!(result.unsent_records, 0);
    assert!(audit(&broker, &result).anomalies.is_empty());
}
