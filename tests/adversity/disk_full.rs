//! A disk without room: producers are told, readers notice nothing, and what was confirmed is there before, during and after.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use bytes::{Buf, Bytes};
use corelog::record::header::RecordBatchHeader;
use kafka_protocol::ResponseError::{KafkaStorageError, NotLeaderOrFollower};
use kafka_protocol::messages::DeleteTopicsRequest;

use crate::broker::{Broker, WAIT_MAX};
use crate::produce::{
    batch_of, create_topic, fetch, list_offset, log_end, produce, produce_with_version, topic_name,
    try_create_topic,
};
use crate::small_disk::SmallDisk;
use crate::wire::Client;

const DISK_BYTES: u64 = 64 * 1024 * 1024;
const BALLAST_BYTES: usize = 16 * 1024 * 1024;
const VALUE_BYTES: usize = 200_000;

/// The nth batch's value: told apart from every other's.
fn value(number: i64) -> Vec<u8> {
    let mut value = vec![number as u8; VALUE_BYTES];
    value[..8].copy_from_slice(&number.to_be_bytes());
    value
}

/// Produces one record after the other until one is refused; the number of the first that was.
fn fill(client: &mut Client, topic: &str, mut next: i64) -> i64 {
    loop {
        match produce(client, topic, batch_of(&[&value(next)])) {
            Ok(offset) => assert_eq!(offset, next),
            Err(refusal) => {
                assert_eq!(refusal.error_code, KafkaStorageError.code(), "{refusal:?}");
                return next;
            }
        }
        next += 1;
        assert!(
            next * VALUE_BYTES as i64 <= DISK_BYTES as i64,
            "more is confirmed than the disk can hold"
        );
    }
}

/// Reads the whole partition and demands exactly the records 0 to `count`.
fn expect_records(client: &mut Client, topic: &str, count: i64) {
    assert_eq!(log_end(client, topic), count);
    let mut next = 0;
    while next < count {
        let mut records: Bytes = fetch(client, topic, next).unwrap().records.unwrap();
        assert!(!records.is_empty(), "nothing at offset {next}");
        while !records.is_empty() {
            let header = RecordBatchHeader::parse(&records).unwrap();
            let Some(batch) = records.get(..header.size_bytes()) else {
                break;
            };
            let sent = value(next);
            assert_eq!(header.base_offset.0, next);
            assert!(
                batch.windows(sent.len()).any(|window| window == sent),
                "record {next} is another one"
            );
            records.advance(header.size_bytes());
            next += 1;
        }
    }
}

fn write_ballast(path: &Path) {
    let mut file = File::create(path).unwrap();
    file.write_all(&vec![0x5a; BALLAST_BYTES]).unwrap();
    file.sync_all().unwrap();
}

#[test]
fn a_full_disk_refuses_producers_serves_readers_and_recovers_when_space_returns() {
    let disk = SmallDisk::new(DISK_BYTES);
    let (data, ballast) = (disk.path().join("data"), disk.path().join("ballast"));
    write_ballast(&ballast);
    let broker = Broker::start(&data, &["log.segment.bytes=8388608"]);
    let mut client = broker.client();
    create_topic(&mut client, "t", 1, &[]);
    create_topic(&mut client, "other", 1, &[]);
    produce(&mut client, "other", batch_of(&[&value(0)])).unwrap();

    let confirmed = fill(&mut client, "t", 0);
    assert!(confirmed > 100, "only {confirmed} records fit");
    expect_records(&mut client, "t", confirmed);
    expect_records(&mut client, "other", 1);
    // Version 3 does not know the error, and reads it as fatal; this one it tries again.
    let old = produce_with_version(&mut client, 3, "t", Some(batch_of(&[&value(confirmed)])));
    assert_eq!(old.error_code, NotLeaderOrFollower.code());

    fs::remove_file(&ballast).unwrap();
    let deadline = Instant::now() + WAIT_MAX;
    while let Err(refusal) = produce(&mut client, "t", batch_of(&[&value(confirmed)])) {
        assert!(
            Instant::now() < deadline,
            "still refused: {refusal:?}\n{}",
            broker.log()
        );
        thread::sleep(Duration::from_millis(50));
    }
    let confirmed = fill(&mut client, "t", confirmed + 1);
    expect_records(&mut client, "t", confirmed);

    broker.kill();
    let broker = Broker::start(&data, &["log.segment.bytes=8388608"]);
    let mut client = broker.client();
    expect_records(&mut client, "t", confirmed);
    expect_records(&mut client, "other", 1);
    broker.stop();
}

#[test]
fn topics_can_be_deleted_on_a_full_disk_and_their_space_is_used_again() {
    let disk = SmallDisk::new(DISK_BYTES);
    let data = disk.path().join("data");
    let broker = Broker::start(&data, &["log.segment.bytes=8388608"]);
    let mut client = broker.client();
    create_topic(&mut client, "large", 1, &[]);
    create_topic(&mut client, "small", 1, &[]);
    for number in 0..100 {
        produce(&mut client, "large", batch_of(&[&value(number)])).unwrap();
    }
    let confirmed = fill(&mut client, "small", 0);
    let request = DeleteTopicsRequest::default()
        .with_topic_names(vec![topic_name("large")])
        .with_timeout_ms(30_000);
    assert_eq!(
        client.ask(5, &request).responses[0].error_code,
        0,
        "{}",
        broker.log()
    );
    let deadline = Instant::now() + WAIT_MAX;
    while let Err(refusal) = produce(&mut client, "small", batch_of(&[&value(confirmed)])) {
        assert!(
            Instant::now() < deadline,
            "still refused: {refusal:?}\n{}",
            broker.log()
        );
        thread::sleep(Duration::from_millis(50));
    }
    let confirmed = fill(&mut client, "small", confirmed + 1);
    expect_records(&mut client, "small", confirmed);
    assert_eq!(
        try_create_topic(&mut client, "large", 1, &[]),
        0,
        "the name is free again\n{}",
        broker.log()
    );
}

#[test]
fn a_broker_starts_on_a_full_disk_and_serves_what_is_there() {
    let disk = SmallDisk::new(DISK_BYTES);
    let data = disk.path().join("data");
    let broker = Broker::start(&data, &[]);
    let mut client = broker.client();
    create_topic(&mut client, "t", 1, &[]);
    let confirmed = fill(&mut client, "t", 0);
    broker.kill();
    // What the killed broker had prepared ahead is free again; take that too.
    let ballast = disk.path().join("ballast");
    let mut file = File::create(&ballast).unwrap();
    while file.write_all(&[0x5a; 4096]).is_ok() {}
    let broker = Broker::start(&data, &[]);
    expect_records(&mut broker.client(), "t", confirmed);
    broker.stop();
}

#[test]
fn a_broker_starts_on_a_full_disk_with_indexes_and_checkpoints_missing() {
    const SETTINGS: [&str; 1] = ["log.segment.bytes=1048576"];
    const TOPICS: [&str; 2] = ["indexes", "checkpoint"];
    const COUNT: i64 = 40;
    let disk = SmallDisk::new(DISK_BYTES);
    let (data, ballast) = (disk.path().join("data"), disk.path().join("ballast"));
    let broker = Broker::start(&data, &SETTINGS);
    let mut client = broker.client();
    for topic in TOPICS {
        create_topic(&mut client, topic, 1, &[]);
        for number in 0..COUNT {
            produce(&mut client, topic, batch_of(&[&value(number)])).unwrap();
        }
    }
    broker.stop();

    let mut damaged = 0;
    for entry in fs::read_dir(data.join("indexes-0")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if name.ends_with(".index") {
            fs::remove_file(&path).unwrap();
        } else if name.ends_with(".timeindex") && damaged % 2 == 0 {
            fs::write(&path, b"odd").unwrap();
        } else {
            continue;
        }
        damaged += 1;
    }
    assert!(damaged > 5, "there are several segments");
    fs::remove_file(data.join("checkpoint-0/partition.checkpoint")).unwrap();
    let fill = || {
        let mut file = File::options()
            .create(true)
            .append(true)
            .open(&ballast)
            .unwrap();
        while file.write_all(&[0x5a; 4096]).is_ok() {}
        file.sync_all().unwrap();
    };
    fill();
    for _ in 0..2 {
        let broker = Broker::start(&data, &SETTINGS);
        let mut client = broker.client();
        for topic in TOPICS {
            expect_records(&mut client, topic, COUNT);
            assert_eq!(list_offset(&mut client, topic, 1), 0, "a look-up by time");
        }
        broker.stop();
        fill();
    }
    fs::remove_file(&ballast).unwrap();
    let broker = Broker::start(&data, &SETTINGS);
    let mut client = broker.client();
    for topic in TOPICS {
        produce(&mut client, topic, batch_of(&[&value(COUNT)])).unwrap();
        expect_records(&mut client, topic, COUNT + 1);
    }
    broker.stop();
}
