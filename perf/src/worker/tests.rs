//! Two workers on loopback against brokers in this process.

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

use super::message::{
    FromWorker, Greeting, GreetingAnswer, PROTOCOL_VERSION, ToWorker, ToolVersion, WorkerHost,
};
use super::wire::{FRAME_BYTES_MAX, FrameReader, FrameWriter, GREETING_BYTES_MAX, split};
use super::{Ended, Link, Worker, WorkerError};
use crate::audit::{Anomaly, AuditFindings, PartitionAudit};
use crate::client::batches::whole_batches;
use crate::client::cluster::{BrokerAddress, Topic};
use crate::client::fake_broker::{Appended, FakeBroker, Reaction};
use crate::clock::Clock;
use crate::compression::Compression;
use crate::crew::{CrewNews, LoadOrder, LoadYield, ProducerOrder};
use crate::keys::KeyDistributor;
use crate::null_broker::NullBroker;
use crate::payload::PayloadPool;
use crate::plan::KeyPlan;
use crate::producer::Window;
use crate::producer::batch::ProducerIdentity;
use crate::producer::frame::Acks;
use crate::producer::ledger::Ledger;
use crate::record::{ProducerNumber, RunId};
use crate::schedule::Schedule;

const RUN: RunId = RunId(11);
const RECORDS_PER_SECOND: f64 = 1000.0;
const END_NS: u64 = 1_000_000_000;

/// One second of a producer for each topic, which each has one leader.
fn order(leaders: &[&str]) -> LoadOrder {
    let producer = |topic| ProducerOrder {
        number: ProducerNumber(topic as u32),
        identity: ProducerIdentity::NONE,
        topic,
        schedule: Schedule::Paced {
            start_ns: 0,
            end_ns: END_NS,
            records_per_second: RECORDS_PER_SECOND,
        },
    };
    let topic = |(number, leader): (usize, &&str)| Topic {
        name: format!("t{number}"),
        leaders: vec![BrokerAddress((*leader).to_owned()); 2],
    };
    LoadOrder {
        run: RUN,
        topics: leaders.iter().enumerate().map(topic).collect(),
        producers: (0..leaders.len()).map(producer).collect(),
        consumers: Vec::new(),
        members: Vec::new(),
        has_backlog: false,
        replays: Vec::new(),
        window: Window {
            start_ns: 0,
            end_ns: END_NS,
        },
        drain_until_ns: 20 * END_NS,
        acks: Acks::All,
        linger: Duration::from_millis(10),
        in_flight_max: 1,
        message_bytes: 100,
        batch_bytes_max: 100_000,
        request_bytes_max: 1_000_000,
        keys: KeyPlan {
            distributor: KeyDistributor::NoKey,
            count: 1,
            zipf_exponent: 1.0,
        },
        payloads: PayloadPool::Random {
            random_bytes_ratio: 0.5,
            pool_size: 3,
        },
        compression: Compression::None,
    }
}

fn worker() -> String {
    let any_port = "127.0.0.1:0".parse().expect("an address");
    let worker = Worker::start(any_port).expect("it listens");
    worker.address().to_string()
}

/// It takes connections until it is dropped.
fn null_broker() -> (NullBroker, String) {
    let any_port = "127.0.0.1:0".parse().expect("an address");
    let broker = NullBroker::start(any_port, 2).expect("it listens");
    let address = broker.address().to_string();
    (broker, address)
}

/// What each of the workers brings back from its part of the order.
fn work(workers: &[String], order: LoadOrder) -> Vec<Result<Ended, WorkerError>> {
    let clock = Clock::start();
    let mut links = Vec::new();
    for (address, order) in workers.iter().zip(order.deal(workers.len())) {
        let mut link = Link::open(address, clock).expect("it serves");
        let offset = link.measure_clock().expect("it answers");
        link.prepare(order, offset).expect("it listens");
        link.await_ready().expect("the broker is there");
        links.push((link, offset));
    }
    let start_ns = clock.now_ns() + 100_000_000;
    let threads: Vec<_> = links
        .into_iter()
        .map(|(mut link, offset)| {
            thread::spawn(move || {
                let control = link.control();
                link.work(start_ns, offset, |news| {
                    if matches!(news, CrewNews::CatchingUp(_)) {
                        control.release();
                    }
                })
            })
        })
        .collect();
    threads
        .into_iter()
        .map(|thread| thread.join().expect("no panic"))
        .collect()
}

fn merged(ended: Vec<Result<Ended, WorkerError>>) -> LoadYield {
    ended
        .into_iter()
        .map(|ended| ended.expect("it worked to the end").load)
        .reduce(LoadYield::merged_with)
        .expect("there are workers")
}

#[test]
fn rates_of_two_workers_add_up_and_the_merged_histogram_holds_every_record() {
    let (_open, broker) = null_broker();
    let all = merged(work(&[worker(), worker()], order(&[&broker, &broker])));
    let records = 2 * RECORDS_PER_SECOND as u64;
    assert_eq!(all.latency.summary().expect("latencies").count, records);
    assert_eq!(all.send_delay.summary().expect("delays").count, records);
    let sent = |ledger: &Ledger| -> u64 { ledger.streams.iter().map(|it| it.sent_count).sum() };
    let mut by_topic: Vec<_> = all
        .ledgers
        .iter()
        .map(|of| (of.topic, of.ledger.producer, sent(&of.ledger)))
        .collect();
    by_topic.sort_unstable();
    let each = RECORDS_PER_SECOND as u64;
    assert_eq!(
        by_topic,
        [(0, ProducerNumber(0), each), (1, ProducerNumber(1), each)]
    );
    assert!(all.errors.is_empty() && all.unsent_records == 0, "{all:?}");
    let acked = all.measured.after.acked_records - all.measured.before.acked_records;
    assert!(acked > 0 && acked <= records, "{acked}");
}

/// The log of each topic, audited with the ledgers that came from the workers.
fn audit(load: &LoadYield, logs: &[Vec<Appended>]) -> AuditFindings {
    let mut findings = AuditFindings::default();
    for (topic, log) in logs.iter().enumerate() {
        let ledgers: Vec<Ledger> = load
            .ledgers
            .iter()
            .filter(|of| of.topic == topic)
            .map(|of| of.ledger.clone())
            .collect();
        for partition in 0..2 {
            let name = format!("t{topic}");
            let mut audit = PartitionAudit::new(RUN, &name, partition, &ledgers, 0);
            for appended in log.iter().filter(|it| it.partition as usize == partition) {
                let mut records = appended.records.to_vec();
                records[..8].copy_from_slice(&appended.base_offset.to_be_bytes());
                whole_batches(&records).for_each(|batch| audit.batch(&batch));
            }
            findings.merge(audit.finish());
        }
    }
    findings
}

#[test]
fn the_audit_covers_every_record_of_all_workers_and_finds_a_loss_at_one_of_them() {
    let brokers = [0, 1].map(|_| FakeBroker::start(|_| Reaction::Append));
    let leaders = [&*brokers[0].address, &*brokers[1].address];
    let all = merged(work(&[worker(), worker()], order(&leaders)));
    let mut logs = brokers.map(|broker| broker.appended.try_iter().collect::<Vec<_>>());
    let findings = audit(&all, &logs);
    assert!(findings.anomalies.is_empty(), "{findings:?}");
    let records = 2 * RECORDS_PER_SECOND as u64;
    assert_eq!(
        (findings.records_acked, findings.records_read),
        (records, records)
    );

    // Its last batch: no hole in the offsets tells of it, only the worker's ledger.
    let lost = logs[1].pop().expect("the second worker's records");
    let lost_records = i32::from_be_bytes(lost.records[57..61].try_into().expect("four bytes"));
    let findings = audit(&all, &logs);
    assert_eq!(
        findings.anomalies.into_iter().collect::<Vec<_>>(),
        [(Anomaly::Lost, lost_records as u64)]
    );
}

#[test]
fn a_worker_that_cannot_reach_the_broker_says_so() {
    let unbound = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let gone = unbound.local_addr().expect("it is bound").to_string();
    drop(unbound);
    let mut link = Link::open(&worker(), Clock::start()).expect("it serves");
    let offset = link.measure_clock().expect("it answers");
    link.prepare(order(&[&gone]), offset).expect("it listens");
    let refused = link.await_ready().expect_err("no broker is there");
    assert!(
        matches!(&refused, WorkerError::CannotPrepare { reason, .. } if reason.contains(&gone))
    );
}

#[test]
fn another_version_is_refused_by_either_side_and_both_versions_are_named() {
    let other = ToolVersion {
        version: "0.0.9".to_owned(),
        commit: "abc".to_owned(),
        protocol: PROTOCOL_VERSION + 1,
    };
    let (mut reader, writer) =
        split(TcpStream::connect(worker()).expect("it listens")).expect("a stream");
    writer
        .write(&Greeting {
            coordinator: other.clone(),
        })
        .expect("it is written");
    let answer: GreetingAnswer = reader.read(GREETING_BYTES_MAX).expect("an answer");
    let reason = answer.refused.expect("it refuses");
    for version in [&other, &ToolVersion::this()] {
        assert!(reason.contains(&version.to_string()), "{reason}");
    }

    let address = scripted_worker(other.clone(), |_, _| {});
    let error = Link::open(&address, Clock::start())
        .err()
        .expect("it is refused");
    assert!(matches!(error, WorkerError::OtherVersion { .. }));
    for version in [&other, &ToolVersion::this()] {
        assert!(error.to_string().contains(&version.to_string()), "{error}");
    }
}

#[test]
fn a_second_coordinator_is_refused_and_served_when_the_first_is_gone() {
    let address = worker();
    let first = Link::open(&address, Clock::start()).expect("it is free");
    let refused = Link::open(&address, Clock::start())
        .err()
        .expect("it is busy");
    assert!(
        matches!(&refused, WorkerError::Refused { reason, .. } if reason.contains("busy with a run of 127.0.0.1:"))
    );
    drop(first);
    assert!(Link::open(&address, Clock::start()).is_ok());
}

#[test]
fn what_is_no_worker_is_told_from_one() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = listener.local_addr().expect("it is bound").to_string();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("it connects");
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
    });
    assert!(matches!(
        Link::open(&address, Clock::start()),
        Err(WorkerError::NoWorker { .. })
    ));
}

/// Answers as a worker of this version would, then does what the test says.
fn scripted_worker(
    version: ToolVersion,
    script: impl FnOnce(FrameReader, FrameWriter) + Send + 'static,
) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = listener.local_addr().expect("it is bound").to_string();
    thread::spawn(move || {
        let (stream, _) = listener.accept().expect("it connects");
        let (mut reader, writer) = split(stream).expect("a stream");
        let _: Greeting = reader.read(GREETING_BYTES_MAX).expect("a greeting");
        let answer = GreetingAnswer {
            worker: version,
            refused: None,
        };
        writer.write(&answer).expect("it is written");
        let host = WorkerHost {
            hostname: "scripted".to_owned(),
            machine: crate::provenance::Machine::this(),
            origin_unix_ns: 0,
        };
        writer.write(&host).expect("it is written");
        script(reader, writer);
    });
    address
}

/// Takes an order, begins, and dies.
fn dying_worker() -> String {
    scripted_worker(ToolVersion::this(), |mut reader, writer| {
        loop {
            let answer = match reader
                .read(FRAME_BYTES_MAX)
                .expect("the coordinator is there")
            {
                ToWorker::Clock => FromWorker::Clock { at_ns: 1 },
                ToWorker::Prepare { .. } => FromWorker::Ready,
                ToWorker::Begin { .. } => return,
                _ => continue,
            };
            writer.write(&answer).expect("it is written");
        }
    })
}

#[test]
fn a_worker_that_dies_is_named_and_does_not_keep_the_other_from_ending() {
    let (_open, broker) = null_broker();
    let dying = dying_worker();
    let mut ended = work(&[worker(), dying.clone()], order(&[&broker, &broker]));
    let lost = ended.pop().expect("two").expect_err("it died");
    assert!(matches!(lost, WorkerError::Lost { .. }));
    assert!(lost.to_string().contains(&dying), "{lost}");
    let survivor = ended.pop().expect("one").expect("it lives");
    assert_eq!(
        survivor.load.latency.summary().expect("latencies").count,
        RECORDS_PER_SECOND as u64
    );
}

#[test]
fn a_load_whose_coordinator_is_gone_is_stopped() {
    let (seen, requests) = channel();
    let broker = counting_broker(seen);
    let address = worker();
    let clock = Clock::start();
    let mut link = Link::open(&address, clock).expect("it serves");
    let offset = link.measure_clock().expect("it answers");
    let mut endless = order(&[&broker.address]);
    let hour_ns = 3600 * END_NS;
    endless.window.end_ns = hour_ns;
    endless.drain_until_ns = hour_ns;
    endless.producers[0].schedule = Schedule::Closed { end_ns: hour_ns };
    link.prepare(endless, offset).expect("it listens");
    link.await_ready().expect("the broker is there");
    let control = link.control();
    thread::spawn(move || link.work(clock.now_ns(), offset, |_| {}));
    requests.recv().expect("the load has begun");
    control.hang_up();
    // The worker is free again only after its crew has ended, an hour before it would have by itself.
    assert!(wait_until_free(&address));
}

fn counting_broker(seen: Sender<usize>) -> FakeBroker {
    FakeBroker::start(move |number| {
        let _ = seen.send(number);
        Reaction::Append
    })
}

fn wait_until_free(address: &str) -> bool {
    (0..30).any(|_| Link::open(address, Clock::start()).is_ok())
}

#[test]
fn every_producer_is_dealt_to_one_crew() {
    let dealt = order(&["a:1"; 5]).deal(2);
    let numbers: Vec<Vec<u32>> = dealt
        .iter()
        .map(|order| order.producers.iter().map(|it| it.number.0).collect())
        .collect();
    assert_eq!(numbers, [vec![0, 2, 4], vec![1, 3]]);
    assert!(dealt.iter().all(|order| order.topics.len() == 5));
}
