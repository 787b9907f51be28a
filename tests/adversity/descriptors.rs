//! A broker with few file descriptors: connections beyond their share are refused, segment files take turns, and whoever is connected
//! notices nothing. A shortage is never taken for a broken disk.

use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use kafka_protocol::ResponseError::KafkaStorageError;
use kafka_protocol::messages::ProduceRequest;
use kafka_protocol::messages::produce_request::PartitionProduceData;
use kafka_protocol::messages::produce_response::PartitionProduceResponse;

use crate::broker::{Broker, WAIT_MAX, new_directory};
use crate::produce::{batch_of, create_topic, fetch, log_end, produce, topic_data};
use crate::wire::Client;

/// Two shards, so that what they keep for themselves does not depend on the machine.
const CORES: &str = "cores=0,1";

/// The least that a topic may have.
const SMALL_SEGMENT: &str = "1048576";

/// One record to each partition in one request; the answers.
fn produce_to_all(
    client: &mut Client,
    topic: &str,
    partitions: i32,
) -> Vec<PartitionProduceResponse> {
    let data = (0..partitions).map(|index| {
        PartitionProduceData::default()
            .with_index(index)
            .with_records(Some(batch_of(&[b"value"])))
    });
    let mut topic = topic_data(topic, None);
    topic.partition_data = data.collect();
    let request = ProduceRequest::default()
        .with_acks(-1)
        .with_timeout_ms(30_000)
        .with_topic_data(vec![topic]);
    client
        .ask(9, &request)
        .responses
        .remove(0)
        .partition_responses
}

/// Each partition takes one record, some perhaps only when asked again as a client does; then it does so once more.
fn expect_every_partition_works(broker: &Broker, client: &mut Client, partitions: i32) {
    create_topic(client, "many", partitions, &[]);
    for round in 0..2 {
        let deadline = Instant::now() + WAIT_MAX;
        loop {
            let answers = produce_to_all(client, "many", partitions);
            let refused = answers.iter().filter(|it| it.error_code != 0);
            let codes: Vec<i16> = refused.map(|it| it.error_code).collect();
            if codes.is_empty() {
                break;
            }
            let is_retriable = codes.iter().all(|code| *code == KafkaStorageError.code());
            assert!(is_retriable, "{codes:?}\n{}", broker.log());
            assert!(Instant::now() < deadline, "round {round}: {}", broker.log());
        }
    }
    assert!(log_end(client, "many") >= 2);
    assert!(fetch(client, "many", 0).unwrap().records.is_some());
}

fn expect_sound(broker: &Broker) {
    assert!(!broker.log().contains("offline"), "{}", broker.log());
    assert_eq!(broker.metric("corelog_log_directories_offline"), 0);
    assert!(broker.page("/readyz").starts_with("HTTP/1.1 200 "));
}

#[test]
fn connections_beyond_their_share_are_refused_and_those_that_are_there_notice_nothing() {
    let directory = new_directory();
    let broker = Broker::try_start_limited("ulimit -n 256", directory.path(), &[CORES]).unwrap();
    let mut client = broker.client();
    create_topic(&mut client, "t", 1, &[]);
    let share = broker.figure("corelog_descriptor_budget", "part=\"connections\"") as usize;
    assert!((8..256).contains(&share), "{share}");

    let idle: Vec<_> = (0..300)
        .map(|_| TcpStream::connect(broker.address()).unwrap())
        .collect();
    let deadline = Instant::now() + WAIT_MAX;
    while broker.metric("corelog_connections_refused_total") < (301 - share) as u64 {
        assert!(Instant::now() < deadline, "{}", broker.log());
        thread::sleep(Duration::from_millis(20));
    }
    for offset in 0..20 {
        assert_eq!(
            produce(&mut client, "t", batch_of(&[b"v"])).unwrap(),
            offset
        );
    }
    // New segments need descriptors of their own.
    create_topic(&mut client, "small", 1, &[("segment.bytes", SMALL_SEGMENT)]);
    for _ in 0..4 {
        produce(&mut client, "small", batch_of(&[&[b'v'; 600_000]])).unwrap();
    }
    assert!(
        broker.log().contains("connection refused"),
        "{}",
        broker.log()
    );
    expect_sound(&broker);
    let figure = broker.figure("process_open_fds", "") as usize;
    let really = broker.open_descriptors();
    // Besides these two the page's own connection comes and goes.
    assert!(figure.abs_diff(really) <= 4, "{figure} and {really}");
    assert!(figure > share && figure < 256, "{figure}");
    assert_eq!(broker.figure("process_max_fds", ""), 256.0);

    drop(idle);
    let deadline = Instant::now() + WAIT_MAX;
    loop {
        let mut next = broker.client();
        next.send(&[0]);
        if !next.is_closed() {
            break;
        }
        assert!(Instant::now() < deadline, "{}", broker.log());
        thread::sleep(Duration::from_millis(20));
    }
    broker.stop();
}

#[test]
fn one_producer_over_more_partitions_than_there_are_descriptors() {
    let directory = new_directory();
    let broker = Broker::try_start_limited("ulimit -n 160", directory.path(), &[CORES]).unwrap();
    let mut client = broker.client();
    expect_every_partition_works(&broker, &mut client, 300);
    expect_sound(&broker);
    broker.stop();
}

#[test]
fn connections_and_partitions_that_together_exceed_the_limit() {
    let directory = new_directory();
    let broker = Broker::try_start_limited("ulimit -n 256", directory.path(), &[CORES]).unwrap();
    let mut client = broker.client();
    // Its connection is taken before all others.
    create_topic(&mut client, "first", 1, &[]);
    let _idle: Vec<_> = (0..200)
        .map(|_| TcpStream::connect(broker.address()).unwrap())
        .collect();
    expect_every_partition_works(&broker, &mut client, 250);
    expect_sound(&broker);
    broker.stop();
}

#[test]
fn a_process_without_descriptors_asks_its_clients_to_try_again_and_goes_on_once_it_has_some() {
    let directory = new_directory();
    let limits = "ulimit -n 20000";
    let broker = Broker::try_start_limited(limits, directory.path(), &[CORES]).unwrap();
    let mut client = broker.client();
    for topic in ["open", "other"] {
        create_topic(&mut client, topic, 1, &[("segment.bytes", SMALL_SEGMENT)]);
        produce(&mut client, topic, batch_of(&[b"v"])).unwrap();
    }
    create_topic(&mut client, "new", 1, &[]);
    // Fewer than are open, whatever it closes.
    broker.limit_descriptors(8);
    let refusal = produce(&mut client, "new", batch_of(&[b"v"])).unwrap_err();
    assert_eq!(refusal.error_code, KafkaStorageError.code(), "{refusal:?}");
    broker.limit_descriptors(20_000);

    assert_eq!(produce(&mut client, "new", batch_of(&[b"v"])).unwrap(), 0);
    // Rolls, and so seals and checkpoints.
    for _ in 0..4 {
        produce(&mut client, "open", batch_of(&[&[b'v'; 600_000]])).unwrap();
    }
    // A shard counts its refusals when it next looks after its partitions.
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while broker.metric("corelog_descriptor_refusals_total") == 0 {
        assert!(std::time::Instant::now() < deadline, "nothing is counted");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    expect_sound(&broker);
    broker.stop();
}

#[test]
fn the_soft_limit_is_raised_to_the_hard_one() {
    let directory = new_directory();
    let limits = "ulimit -Sn 64 && ulimit -Hn 512";
    let broker = Broker::try_start_limited(limits, directory.path(), &[CORES]).unwrap();
    assert_eq!(broker.figure("process_max_fds", ""), 512.0);
    assert!(broker.figure("corelog_descriptor_budget", "") <= 512.0);
    broker.stop();
}

#[test]
fn a_limit_that_is_too_low_for_a_broker_is_refused_with_what_is_needed() {
    let directory = new_directory();
    let refused = Broker::try_start_limited("ulimit -n 80", directory.path(), &[CORES]);
    let refused = refused.err().expect("80 descriptors are too few");
    assert_eq!(refused.code, Some(1), "{}", refused.log);
    assert!(refused.log.contains("at least"), "{}", refused.log);
}
