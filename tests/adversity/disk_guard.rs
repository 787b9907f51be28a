//! A disk that fills up: produce is refused before it is full, everything that frees space goes on, and it recovers by itself.

use std::fs::{self, File};
use std::io::Write;
use std::thread;
use std::time::{Duration, Instant};

use kafka_protocol::ResponseError::KafkaStorageError;
use kafka_protocol::messages::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use kafka_protocol::messages::produce_response::PartitionProduceResponse;
use kafka_protocol::messages::{FindCoordinatorRequest, GroupId, OffsetCommitRequest};
use kafka_protocol::protocol::StrBytes;

use crate::broker::{Broker, WAIT_MAX, new_directory};
use crate::produce::{batch_of, create_topic, expect_value, log_end, produce, topic_name};
use crate::retention::{LOOK_OFTEN, await_log_start};
use crate::settings::{alter_brokers, alter_topic};
use crate::small_disk::SmallDisk;
use crate::wire::Client;

const DISK_BYTES: u64 = 96 * 1024 * 1024;
const VALUE_BYTES: usize = 200_000;
const SMALLEST_SEGMENT: (&str, &str) = ("segment.bytes", "1048576");
const EVERYTHING: (&str, &str) = ("retention.ms", "-1");

fn value(number: i64) -> Vec<u8> {
    let mut value = vec![number as u8; VALUE_BYTES];
    value[..8].copy_from_slice(&number.to_be_bytes());
    value
}

/// Produces until it is refused; the refusal. The pace leaves the guard the time to look.
fn produce_until_refused(client: &mut Client, topic: &str) -> PartitionProduceResponse {
    loop {
        let number = log_end(client, topic);
        match produce(client, topic, batch_of(&[&value(number)])) {
            Ok(offset) => assert_eq!(offset, number),
            Err(refusal) => {
                assert_eq!(refusal.error_code, KafkaStorageError.code(), "{refusal:?}");
                return *refusal;
            }
        }
        thread::sleep(Duration::from_millis(10));
    }
}

fn await_produce(broker: &Broker, client: &mut Client, topic: &str) {
    let deadline = Instant::now() + WAIT_MAX;
    loop {
        let number = log_end(client, topic);
        let Err(refusal) = produce(client, topic, batch_of(&[&value(number)])) else {
            return;
        };
        assert!(
            Instant::now() < deadline,
            "still refused: {refusal:?}\n{}",
            broker.log()
        );
        thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn produce_is_refused_at_the_mark_and_retention_makes_room_for_it_again() {
    let disk = SmallDisk::new(DISK_BYTES);
    let data = disk.path().join("data");
    let marks = [
        "log.dirs.high.watermark=0.6",
        "log.dirs.reserve.watermark=0.9",
    ];
    // Rare looks: while the guard refuses, it looks more often by itself.
    let rarely = "log.retention.check.interval.ms=3600000";
    let broker = Broker::start(&data, &[marks[0], marks[1], rarely]);
    let mut client = broker.client();
    create_topic(&mut client, "t", 1, &[SMALLEST_SEGMENT, EVERYTHING]);
    assert_eq!(broker.figure("corelog_disk_guard_level", ""), 0.0);
    assert!(broker.page("/").contains("full at this rate"));

    let refusal = produce_until_refused(&mut client, "t");
    let message = refusal.error_message.expect("a reason").to_string();
    assert!(message.contains("log.dirs.high.watermark"), "{message}");
    let used = broker.figure("corelog_log_directory_used_ratio", "");
    assert!((0.6..0.9).contains(&used), "{used} of the disk is used");
    assert_eq!(broker.figure("corelog_disk_guard_level", ""), 1.0);
    assert_eq!(broker.figure("corelog_seconds_until_full", ""), 0.0);
    assert!(broker.page("/").contains("produce is refused"));
    let end = log_end(&mut client, "t");
    for offset in [0, end / 2, end - 1] {
        expect_value(&mut client, "t", offset, &value(offset));
    }

    // The files go without the delay of a minute, since their space is needed.
    alter_topic(&mut client, "t", &[("retention.bytes", "10000000")]);
    await_produce(&broker, &mut client, "t");
    assert!(
        broker.log().contains("there is room again"),
        "{}",
        broker.log()
    );

    // And a mark that is moved counts at once.
    alter_brokers(&mut client, &[("log.dirs.high.watermark", "0.001")]);
    produce_until_refused(&mut client, "t");
    alter_brokers(&mut client, &[("log.dirs.high.watermark", "0.95")]);
    await_produce(&broker, &mut client, "t");
}

/// Commits an offset of topic `t` for a group without members; the error code.
fn commit(client: &mut Client, offset: i64) -> i16 {
    let group = StrBytes::from_static_str("g");
    // It makes the topic of committed offsets, where that is not there yet.
    client.ask(
        3,
        &FindCoordinatorRequest::default().with_key(group.clone()),
    );
    let partition = OffsetCommitRequestPartition::default()
        .with_partition_index(0)
        .with_committed_offset(offset);
    let topic = OffsetCommitRequestTopic::default()
        .with_name(topic_name("t"))
        .with_partitions(vec![partition]);
    let request = OffsetCommitRequest::default()
        .with_group_id(GroupId(group))
        .with_generation_id_or_member_epoch(-1)
        .with_topics(vec![topic]);
    client.ask(7, &request).topics[0].partitions[0].error_code
}

fn await_commit(broker: &Broker, client: &mut Client, offset: i64) {
    let deadline = Instant::now() + WAIT_MAX;
    loop {
        let code = commit(client, offset);
        if code == 0 {
            return;
        }
        assert!(Instant::now() < deadline, "error {code}\n{}", broker.log());
        thread::sleep(Duration::from_millis(50));
    }
}

fn await_guard_level(broker: &Broker, level: f64) {
    let deadline = Instant::now() + WAIT_MAX;
    while broker.figure("corelog_disk_guard_level", "") != level {
        assert!(Instant::now() < deadline, "{}", broker.log());
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn offsets_are_committed_up_to_the_second_mark() {
    let data = new_directory();
    let broker = Broker::start(data.path(), &[]);
    let mut client = broker.client();
    create_topic(&mut client, "t", 1, &[]);
    await_commit(&broker, &mut client, 1);

    // The disk that the tests are on is not empty, so that these marks are passed.
    let [high, reserve] = ["log.dirs.high.watermark", "log.dirs.reserve.watermark"];
    alter_brokers(&mut client, &[(high, "0.00001"), (reserve, "1")]);
    await_guard_level(&broker, 1.0);
    produce_until_refused(&mut client, "t");
    assert_eq!(commit(&mut client, 2), 0);

    alter_brokers(&mut client, &[(reserve, "0.00001")]);
    await_guard_level(&broker, 2.0);
    assert_ne!(commit(&mut client, 3), 0);

    alter_brokers(&mut client, &[(high, "1"), (reserve, "1")]);
    await_guard_level(&broker, 0.0);
    await_commit(&broker, &mut client, 3);
    await_produce(&broker, &mut client, "t");
}

#[test]
fn retention_frees_a_disk_on_which_not_a_page_is_left() {
    let disk = SmallDisk::new(DISK_BYTES);
    let data = disk.path().join("data");
    let broker = Broker::start(&data, &["log.dirs.high.watermark=1", LOOK_OFTEN]);
    let mut client = broker.client();
    create_topic(&mut client, "t", 1, &[SMALLEST_SEGMENT, EVERYTHING]);
    for number in 0..40 {
        produce(&mut client, "t", batch_of(&[&value(number)])).unwrap();
    }
    // Somebody else takes all that is left.
    let mut ballast = File::create(disk.path().join("ballast")).unwrap();
    for block_bytes in [1 << 20, 4096, 1] {
        while ballast.write_all(&vec![0x5a; block_bytes]).is_ok() {}
    }
    produce_until_refused(&mut client, "t");
    let end = log_end(&mut client, "t");
    alter_topic(&mut client, "t", &[("retention.bytes", "2000000")]);
    await_produce(&broker, &mut client, "t");
    expect_value(&mut client, "t", end - 1, &value(end - 1));
    broker.kill();

    fs::remove_file(disk.path().join("ballast")).unwrap();
    let broker = Broker::start(&data, &["log.dirs.high.watermark=1", LOOK_OFTEN]);
    let mut client = broker.client();
    expect_value(&mut client, "t", end, &value(end));
    alter_topic(&mut client, "t", &[("retention.bytes", "0")]);
    let end = log_end(&mut client, "t");
    await_log_start(&broker, &mut client, "t", end);
}
