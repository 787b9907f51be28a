//! Data leaves by age and by size, whole segments, oldest first; the log start offset says what is left, before, during and after.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use corelog::model::TimestampMs;
use corelog::record::encode::BatchBuilder;
use kafka_protocol::ResponseError::{OffsetOutOfRange, PolicyViolation};
use kafka_protocol::messages::DeleteRecordsRequest;
use kafka_protocol::messages::delete_records_request::{
    DeleteRecordsPartition, DeleteRecordsTopic,
};

use crate::broker::{Broker, WAIT_MAX, new_directory};
use crate::produce::{
    create_topic, expect_value, fetch, list_offset, log_end, now, produce, topic_name,
};
use crate::settings::{alter_brokers, alter_topic};
use crate::wire::Client;

const EARLIEST: i64 = -2;
const HOUR_MS: i64 = 3_600_000;
const DAY_MS: i64 = 24 * HOUR_MS;

/// Two of these fill the smallest segment.
const VALUE_BYTES: usize = 600_000;
const SMALLEST_SEGMENT: (&str, &str) = ("segment.bytes", "1048576");
const EVERYTHING: (&str, &str) = ("retention.ms", "-1");

pub const LOOK_OFTEN: &str = "log.retention.check.interval.ms=100";

/// With one shard a look of the broker is one over all partitions.
const ONE_SHARD: &str = "cores=0";

fn value(number: i64) -> Vec<u8> {
    let mut value = vec![number as u8; VALUE_BYTES];
    value[..8].copy_from_slice(&number.to_be_bytes());
    value
}

/// A batch of one record of this age.
fn aged(age_ms: i64, value: &[u8]) -> Bytes {
    let timestamp = TimestampMs(now().0 - age_ms);
    BatchBuilder::new()
        .record(timestamp, Some(b"key"), Some(value))
        .build()
        .into()
}

/// Produces a record of each age, each in a segment of its own; the last is in the active one.
pub fn produce_aged(client: &mut Client, topic: &str, ages_ms: &[i64]) {
    for age_ms in ages_ms {
        let number = log_end(client, topic);
        let offset = produce(client, topic, aged(*age_ms, &value(number))).unwrap();
        assert_eq!(offset, number);
    }
}

pub fn log_start(client: &mut Client, topic: &str) -> i64 {
    list_offset(client, topic, EARLIEST)
}

/// Waits until the log starts there; it may never start behind it.
pub fn await_log_start(broker: &Broker, client: &mut Client, topic: &str, offset: i64) {
    let deadline = Instant::now() + WAIT_MAX;
    loop {
        let start = log_start(client, topic);
        assert!(
            start <= offset,
            "{topic} starts at {start}\n{}",
            broker.log()
        );
        if start == offset {
            return;
        }
        assert!(
            Instant::now() < deadline,
            "{topic} starts at {start} and not at {offset}\n{}",
            broker.log()
        );
        thread::sleep(Duration::from_millis(10));
    }
}

/// Waits until a broker of one shard has looked for what is due, twice over all its partitions: what is left then may stay.
pub fn await_two_looks(broker: &Broker, client: &mut Client) {
    for number in 0..2 {
        let probe = format!("probe-{}-{number}", now().0);
        create_topic(
            client,
            &probe,
            1,
            &[SMALLEST_SEGMENT, ("retention.ms", "1000")],
        );
        produce_aged(client, &probe, &[DAY_MS]);
        await_log_start(broker, client, &probe, 1);
    }
}

/// Deletes what lies below `before`; where the log starts then.
pub fn delete_records(client: &mut Client, topic: &str, before: i64) -> i64 {
    try_delete_records(client, topic, before).unwrap()
}

/// Where the log starts then, or the error code.
fn try_delete_records(client: &mut Client, topic: &str, before: i64) -> Result<i64, i16> {
    let partition = DeleteRecordsPartition::default().with_offset(before);
    let topic = DeleteRecordsTopic::default()
        .with_name(topic_name(topic))
        .with_partitions(vec![partition]);
    let request = DeleteRecordsRequest::default()
        .with_topics(vec![topic])
        .with_timeout_ms(30_000);
    let answer = client.ask(2, &request);
    let partition = &answer.topics[0].partitions[0];
    match partition.error_code {
        0 => Ok(partition.low_watermark),
        code => Err(code),
    }
}

/// The files of partition 0 with this ending.
fn files_with(data: &Path, topic: &str, ending: &str) -> Vec<String> {
    let entries = fs::read_dir(data.join(format!("{topic}-0"))).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| name.ends_with(ending)).collect();
    names.sort();
    names
}

#[test]
fn segments_leave_when_their_newest_record_is_too_old_and_the_limit_is_changed_online() {
    let data = new_directory();
    let broker = Broker::start(data.path(), &[LOOK_OFTEN, ONE_SHARD]);
    let mut client = broker.client();
    create_topic(&mut client, "t", 1, &[SMALLEST_SEGMENT, EVERYTHING]);
    produce_aged(
        &mut client,
        "t",
        &[9 * DAY_MS, 5 * DAY_MS, 2 * DAY_MS, HOUR_MS, 0],
    );
    await_two_looks(&broker, &mut client);
    assert_eq!(log_start(&mut client, "t"), 0);

    for (limit_ms, start) in [
        (6 * DAY_MS, 1),
        (3 * DAY_MS, 2),
        (2 * HOUR_MS, 3),
        (HOUR_MS / 2, 4),
    ] {
        alter_topic(&mut client, "t", &[("retention.ms", &limit_ms.to_string())]);
        await_log_start(&broker, &mut client, "t", start);
        assert_eq!(log_end(&mut client, "t"), 5);
        assert_eq!(
            fetch(&mut client, "t", start - 1).unwrap_err(),
            OffsetOutOfRange.code()
        );
        expect_value(&mut client, "t", start, &value(start));
    }
    assert_eq!(
        broker.figure("corelog_segments_deleted_total", "retention_ms") as i64,
        4 + 2
    );
    assert!(
        broker.figure("corelog_deleted_bytes_total", "retention_ms") >= 6.0 * VALUE_BYTES as f64
    );
}

#[test]
fn a_log_that_is_old_to_its_end_goes_on_empty_where_it_ended() {
    let data = new_directory();
    let broker = Broker::start(data.path(), &[LOOK_OFTEN]);
    let mut client = broker.client();
    create_topic(&mut client, "t", 1, &[SMALLEST_SEGMENT]);
    produce_aged(&mut client, "t", &[20 * DAY_MS, 10 * DAY_MS, 8 * DAY_MS]);
    await_log_start(&broker, &mut client, "t", 3);
    assert_eq!(log_end(&mut client, "t"), 3);
    assert!(
        fetch(&mut client, "t", 3)
            .unwrap()
            .records
            .unwrap()
            .is_empty()
    );
    broker.kill();

    let broker = Broker::start(data.path(), &[LOOK_OFTEN]);
    let mut client = broker.client();
    assert_eq!(
        (log_start(&mut client, "t"), log_end(&mut client, "t")),
        (3, 3)
    );
    produce_aged(&mut client, "t", &[0]);
    expect_value(&mut client, "t", 3, &value(3));
    broker.stop();
    let broker = Broker::start(data.path(), &[LOOK_OFTEN]);
    let mut client = broker.client();
    assert_eq!(
        (log_start(&mut client, "t"), log_end(&mut client, "t")),
        (3, 4)
    );
    expect_value(&mut client, "t", 3, &value(3));
}

#[test]
fn a_timestamp_in_the_future_keeps_its_segment_and_all_behind_it_unless_they_go_by_size() {
    let data = new_directory();
    let broker = Broker::start(data.path(), &[LOOK_OFTEN, ONE_SHARD]);
    let mut client = broker.client();
    let after_max = ("message.timestamp.after.max.ms", "9223372036854775807");
    create_topic(
        &mut client,
        "t",
        1,
        &[SMALLEST_SEGMENT, ("retention.ms", "1000"), after_max],
    );
    produce_aged(&mut client, "t", &[-DAY_MS, 9 * DAY_MS, 8 * DAY_MS]);
    await_two_looks(&broker, &mut client);
    assert_eq!(log_start(&mut client, "t"), 0);
    assert!(
        broker.log().contains("timestamp in the future"),
        "{}",
        broker.log()
    );
    alter_topic(&mut client, "t", &[("retention.bytes", "1200000")]);
    // What is behind it is old, so that it follows at once.
    await_log_start(&broker, &mut client, "t", 3);
    let by_size = broker.figure("corelog_segments_deleted_total", "retention_bytes");
    assert_eq!(by_size, 1.0);
}

#[test]
fn segments_leave_by_size_while_the_rest_is_still_as_large_as_the_limit() {
    let data = new_directory();
    let broker = Broker::start(data.path(), &[LOOK_OFTEN]);
    let mut client = broker.client();
    create_topic(&mut client, "t", 1, &[SMALLEST_SEGMENT, EVERYTHING]);
    produce_aged(&mut client, "t", &[0; 6]);
    for (segments, start) in [(3, 3), (1, 5)] {
        let limit_bytes = (segments * VALUE_BYTES).to_string();
        alter_topic(&mut client, "t", &[("retention.bytes", &limit_bytes)]);
        await_log_start(&broker, &mut client, "t", start);
    }
    // The active segment is never too much, but with nothing at all to be kept.
    alter_topic(&mut client, "t", &[("retention.bytes", "0")]);
    await_log_start(&broker, &mut client, "t", 6);
}

#[test]
fn only_the_policy_delete_deletes_by_age_or_size_and_compaction_alone_lets_no_records_be_deleted() {
    let data = new_directory();
    let broker = Broker::start(data.path(), &[LOOK_OFTEN, ONE_SHARD]);
    let mut client = broker.client();
    let limits = [
        SMALLEST_SEGMENT,
        ("retention.ms", "1000"),
        ("retention.bytes", "1"),
    ];
    for policy in ["", "compact", "compact,delete", "delete"] {
        let name = format!("t{}", policy.replace(',', "-"));
        let cleanup = ("cleanup.policy", policy);
        // No compaction meanwhile: it would remove records too.
        let dirty = ("min.compaction.lag.ms", "9223372036854775807");
        let settings: Vec<_> = limits.iter().copied().chain([cleanup, dirty]).collect();
        create_topic(&mut client, &name, 1, &settings);
        produce_aged(&mut client, &name, &[9 * DAY_MS, 8 * DAY_MS, 7 * DAY_MS]);
        if policy.contains("delete") {
            await_log_start(&broker, &mut client, &name, 3);
            continue;
        }
        await_two_looks(&broker, &mut client);
        assert_eq!(log_start(&mut client, &name), 0, "{policy}");
        if policy == "compact" {
            let refused = try_delete_records(&mut client, &name, 2);
            assert_eq!(refused, Err(PolicyViolation.code()));
            assert_eq!(log_start(&mut client, &name), 0);
        } else {
            assert_eq!(delete_records(&mut client, &name, 2), 2, "{policy}");
            await_log_start(&broker, &mut client, &name, 2);
        }
        // Switched on, it takes what is left.
        alter_topic(&mut client, &name, &[("cleanup.policy", "delete")]);
        await_log_start(&broker, &mut client, &name, 3);
    }
}

#[test]
fn records_of_long_ago_do_not_share_a_segment_with_todays() {
    let data = new_directory();
    let broker = Broker::start(data.path(), &[LOOK_OFTEN]);
    let mut client = broker.client();
    create_topic(
        &mut client,
        "t",
        1,
        &[EVERYTHING, ("segment.ms", "3600000")],
    );
    // Far from full: what rolls the segment is the time between its records, also over a restart.
    for age_ms in [9 * DAY_MS, 9 * DAY_MS - 1_000, 8 * DAY_MS] {
        produce(&mut client, "t", aged(age_ms, b"value")).unwrap();
    }
    broker.kill();
    let broker = Broker::start(data.path(), &[LOOK_OFTEN]);
    let mut client = broker.client();
    for age_ms in [8 * DAY_MS - 1_000, 0] {
        produce(&mut client, "t", aged(age_ms, b"value")).unwrap();
    }
    let logs = files_with(data.path(), "t", ".log");
    let bases: Vec<i64> = logs
        .iter()
        .map(|name| name[..20].parse().unwrap())
        .collect();
    assert_eq!(bases, [0, 2, 4]);
    alter_topic(&mut client, "t", &[("retention.ms", "86400000")]);
    await_log_start(&broker, &mut client, "t", 4);
}

#[test]
fn the_log_start_survives_a_kill_before_the_files_are_gone() {
    let data = new_directory();
    let delay = "log.segment.delete.delay.ms=3600000";
    let broker = Broker::start(data.path(), &[LOOK_OFTEN, delay]);
    let mut client = broker.client();
    create_topic(&mut client, "t", 1, &[SMALLEST_SEGMENT]);
    produce_aged(&mut client, "t", &[9 * DAY_MS, 8 * DAY_MS, 0]);
    await_log_start(&broker, &mut client, "t", 2);
    let deadline = Instant::now() + WAIT_MAX;
    while files_with(data.path(), "t", ".log.deleted").len() < 2 {
        assert!(Instant::now() < deadline, "{}", broker.log());
        thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(
        files_with(data.path(), "t", ".log"),
        ["00000000000000000002.log"]
    );
    broker.kill();

    // As if the kill had come between the checkpoint and the renaming of the second segment.
    let directory = data.path().join("t-0");
    let renamed = directory.join("00000000000000000001.log.deleted");
    fs::rename(renamed, directory.join("00000000000000000001.log")).unwrap();
    let broker = Broker::start(data.path(), &[LOOK_OFTEN, delay]);
    let mut client = broker.client();
    assert_eq!(
        (log_start(&mut client, "t"), log_end(&mut client, "t")),
        (2, 3)
    );
    expect_value(&mut client, "t", 2, &value(2));
    assert_eq!(files_with(data.path(), "t", ".deleted"), [""; 0]);
    assert_eq!(
        files_with(data.path(), "t", ".log"),
        ["00000000000000000002.log"]
    );
}

#[test]
fn without_a_delay_the_files_go_at_once() {
    let data = new_directory();
    let broker = Broker::start(data.path(), &[LOOK_OFTEN]);
    let mut client = broker.client();
    create_topic(
        &mut client,
        "t",
        1,
        &[SMALLEST_SEGMENT, ("file.delete.delay.ms", "0")],
    );
    produce_aged(&mut client, "t", &[9 * DAY_MS, 8 * DAY_MS, 0]);
    await_log_start(&broker, &mut client, "t", 2);
    let deadline = Instant::now() + WAIT_MAX;
    loop {
        let logs = files_with(data.path(), "t", ".log");
        if logs.len() + files_with(data.path(), "t", ".deleted").len() == 1 {
            return;
        }
        assert!(Instant::now() < deadline, "{logs:?}\n{}", broker.log());
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn who_reads_what_is_being_deleted_gets_data_or_out_of_range_and_keeps_the_connection() {
    let data = new_directory();
    let cache = "log.tail.cache.bytes=16777216";
    let no_delay = "log.segment.delete.delay.ms=0";
    let broker = Broker::start(data.path(), &[LOOK_OFTEN, cache, no_delay]);
    let mut client = broker.client();
    create_topic(&mut client, "t", 1, &[SMALLEST_SEGMENT, EVERYTHING]);
    const RECORDS: i64 = 80;
    produce_aged(&mut client, "t", &[0; RECORDS as usize]);
    // Far more than memory holds, so that the readers are on disk.
    let readers: Vec<_> = (0..3)
        .map(|reader| {
            let mut client = broker.client();
            thread::spawn(move || {
                let (mut next, mut skipped) = (0, 0);
                while next < RECORDS {
                    match fetch(&mut client, "t", next) {
                        Ok(data) if data.records.as_ref().is_some_and(|it| !it.is_empty()) => {
                            expect_value(&mut client, "t", next, &value(next));
                            next += 1;
                        }
                        Ok(data) => panic!("nothing at {next}: {data:?}"),
                        Err(code) => {
                            assert_eq!(code, OffsetOutOfRange.code(), "reader {reader} at {next}");
                            let start = log_start(&mut client, "t");
                            assert!(start > next, "{start} lies not behind {next}");
                            skipped += start - next;
                            next = start;
                        }
                    }
                }
                skipped
            })
        })
        .collect();
    for kept in (1..RECORDS).rev().step_by(3) {
        let limit_bytes = (kept * VALUE_BYTES as i64).to_string();
        alter_topic(&mut client, "t", &[("retention.bytes", &limit_bytes)]);
        await_log_start(&broker, &mut client, "t", RECORDS - kept);
    }
    for reader in readers {
        reader.join().unwrap();
    }
    let log = broker.log();
    assert!(!log.contains("read failed"), "{log}");
    assert!(!log.contains("offline"), "{log}");
}

#[test]
fn the_brokers_limit_in_minutes_goes_before_the_one_in_hours_and_the_one_in_ms_before_both() {
    let data = new_directory();
    let [hours, minutes] = ["log.retention.hours=24", "log.retention.minutes=2880"];
    let broker = Broker::start(data.path(), &[LOOK_OFTEN, ONE_SHARD, hours, minutes]);
    let mut client = broker.client();
    create_topic(&mut client, "t", 1, &[SMALLEST_SEGMENT]);
    create_topic(&mut client, "own", 1, &[SMALLEST_SEGMENT, EVERYTHING]);
    for topic in ["t", "own"] {
        produce_aged(&mut client, topic, &[3 * DAY_MS, 36 * HOUR_MS, HOUR_MS, 0]);
    }
    await_log_start(&broker, &mut client, "t", 1);
    await_two_looks(&broker, &mut client);
    assert_eq!(
        log_start(&mut client, "t"),
        1,
        "36 hours are less than 2880 minutes"
    );
    alter_brokers(&mut client, &[("log.retention.ms", "7200000")]);
    await_log_start(&broker, &mut client, "t", 2);
    await_two_looks(&broker, &mut client);
    assert_eq!(
        log_start(&mut client, "own"),
        0,
        "what a topic says itself goes before all"
    );
}
