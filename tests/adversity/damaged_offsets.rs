//! Damage in the topic of committed offsets: what cannot be read is skipped, counted and named by its offset, and all the rest is there.

use std::fs::{self, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Instant;

use corelog::model::Offset;
use corelog::record::encode::BatchBuilder;
use corelog::record::header::RecordBatchHeader;
use kafka_protocol::messages::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use kafka_protocol::messages::{
    FindCoordinatorRequest, GroupId, OffsetCommitRequest, OffsetFetchRequest,
};
use kafka_protocol::protocol::StrBytes;

use crate::broker::{Broker, WAIT_MAX, new_directory};
use crate::produce::{create_topic, now, topic_name};
use crate::wire::Client;

const PARTITIONS: i32 = 20;

/// All groups are in one partition, so that the damage and what is whole stand in one log.
const ONE_PARTITION: &str = "offsets.topic.num.partitions=1";

const COORDINATOR_LOAD_IN_PROGRESS: i16 = 14;
const COORDINATOR_NOT_AVAILABLE: i16 = 15;

type KeyAndValue<'a> = (Option<&'a [u8]>, Option<&'a [u8]>);

/// What group `g` committed for each partition of topic `t`, one batch of the log for each.
fn start_with_commits(data: &Path) -> Broker {
    let broker = Broker::start(data, &[ONE_PARTITION]);
    let mut client = broker.client();
    create_topic(&mut client, "t", PARTITIONS, &[]);
    wait_for_coordinator(&mut client);
    for partition in 0..PARTITIONS {
        commit(&mut client, partition);
    }
    broker
}

fn offset_of(partition: i32) -> i64 {
    1_000 + i64::from(partition)
}

fn metadata_of(partition: i32) -> String {
    format!("metadata of {partition}")
}

fn group() -> GroupId {
    GroupId(StrBytes::from_static_str("g"))
}

fn wait_for_coordinator(client: &mut Client) {
    let request = FindCoordinatorRequest::default().with_key(group().0);
    let deadline = Instant::now() + WAIT_MAX;
    while client.ask(2, &request).error_code == COORDINATOR_NOT_AVAILABLE {
        assert!(Instant::now() < deadline, "no coordinator");
        thread::yield_now();
    }
    let _ = committed(client);
}

fn commit(client: &mut Client, partition: i32) {
    let place = OffsetCommitRequestPartition::default()
        .with_partition_index(partition)
        .with_committed_offset(offset_of(partition))
        .with_committed_metadata(Some(StrBytes::from_string(metadata_of(partition))));
    let topic = OffsetCommitRequestTopic::default()
        .with_name(topic_name("t"))
        .with_partitions(vec![place]);
    let request = OffsetCommitRequest::default()
        .with_group_id(group())
        .with_topics(vec![topic]);
    let answer = client.ask(7, &request);
    assert_eq!(answer.topics[0].partitions[0].error_code, 0);
}

/// The partitions that have the offset and the metadata that were committed for them, once the coordinator is loaded.
fn committed(client: &mut Client) -> Vec<i32> {
    let request = OffsetFetchRequest::default()
        .with_group_id(group())
        .with_topics(None);
    let deadline = Instant::now() + WAIT_MAX;
    let answer = loop {
        let answer = client.ask(5, &request);
        if answer.error_code != COORDINATOR_LOAD_IN_PROGRESS {
            break answer;
        }
        assert!(Instant::now() < deadline, "the coordinator is not loaded");
        thread::yield_now();
    };
    assert_eq!(answer.error_code, 0);
    let mut partitions: Vec<i32> = answer
        .topics
        .iter()
        .flat_map(|it| &it.partitions)
        .map(|it| {
            let partition = it.partition_index;
            let metadata = it.metadata.as_ref().map(StrBytes::as_str);
            assert_eq!(it.committed_offset, offset_of(partition));
            assert_eq!(metadata, Some(&*metadata_of(partition)));
            partition
        })
        .collect();
    partitions.sort_unstable();
    partitions
}

/// The only segment of the only partition, and its bytes.
fn segment(data: &Path) -> (PathBuf, Vec<u8>) {
    let path = data.join("__consumer_offsets-0/00000000000000000000.log");
    let bytes = fs::read(&path).unwrap();
    (path, bytes)
}

/// Where each batch stands. Behind the last one there may be room that is kept ready.
fn batches(segment: &[u8]) -> Vec<(usize, RecordBatchHeader)> {
    let mut found = Vec::new();
    let mut position = 0;
    while let Ok(header) = RecordBatchHeader::parse(&segment[position..]) {
        found.push((position, header));
        position += header.size_bytes();
    }
    found
}

fn write_at(path: &Path, position: usize, bytes: &[u8]) {
    let mut file = OpenOptions::new().write(true).open(path).unwrap();
    file.seek(SeekFrom::Start(position as u64)).unwrap();
    file.write_all(bytes).unwrap();
}

fn expect_skipped(broker: &Broker, offsets: &[i64]) {
    assert_eq!(
        broker.metric("corelog_group_records_skipped_total"),
        offsets.len() as u64
    );
    let log = broker.log();
    for offset in offsets {
        let is_named = |line: &str| {
            line.contains("__consumer_offsets") && line.contains(&format!("offset={offset} "))
        };
        assert!(log.lines().any(is_named), "{offset} is not named in {log}");
    }
}

/// The fields of a string in Kafka's records: its length and its bytes.
fn string(text: &str) -> Vec<u8> {
    let mut bytes = (text.len() as i16).to_be_bytes().to_vec();
    bytes.extend_from_slice(text.as_bytes());
    bytes
}

/// The key of a commit of group `g` for a partition of topic `t`.
fn commit_key(partition: i32) -> Vec<u8> {
    let version = 1_i16.to_be_bytes();
    [
        &version[..],
        &string("g"),
        &string("t"),
        &partition.to_be_bytes(),
    ]
    .concat()
}

/// The key of group `g` itself.
fn group_key() -> Vec<u8> {
    [&2_i16.to_be_bytes()[..], &string("g")].concat()
}

#[test]
fn nonsense_in_valid_batches_of_commits_is_skipped_and_the_rest_loads() {
    let data = new_directory();
    start_with_commits(data.path()).kill();
    let (path, bytes) = segment(data.path());
    let (last, header) = *batches(&bytes).last().unwrap();
    let first_bad = header.next_offset();
    // A group whose value says that it has 2^31 - 1 members.
    let mut many_members = 3_i16.to_be_bytes().to_vec();
    many_members.extend(string("consumer"));
    many_members.extend(7_i32.to_be_bytes());
    many_members.extend(string("range"));
    many_members.extend(string("leader"));
    many_members.extend(0_i64.to_be_bytes());
    many_members.extend(i32::MAX.to_be_bytes());
    let commit_of_future_version = [0x7f, 0xff, 1, 2, 3];
    let commit_cut_short = [0, 3, 0, 0, 0];
    let string_past_the_end = [0, 3, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0x7f, 0xff, b'x'];
    let key_cut_short = [0, 1, 0, 9, b'g'];
    let (key, group_key) = (commit_key(0), group_key());
    let records: [KeyAndValue; 8] = [
        (Some(&key), Some(&commit_of_future_version)),
        (Some(&key), Some(&commit_cut_short)),
        (Some(&key), Some(&string_past_the_end)),
        (Some(&group_key), Some(&many_members)),
        (Some(&key_cut_short), Some(b"x")),
        (Some(b""), Some(b"x")),
        (Some(b"\0"), None),
        (None, Some(b"no key")),
    ];
    let mut batch = BatchBuilder::new()
        .base_offset(first_bad)
        .leader_epoch(header.leader_epoch);
    for (key, value) in records {
        batch.push(now(), key, value, &[]);
    }
    let end = last + header.size_bytes();
    let mut written = batch.build();
    // And a good one behind it, which is the newest for its partition.
    let newest = BatchBuilder::new()
        .base_offset(Offset(first_bad.0 + records.len() as i64))
        .leader_epoch(header.leader_epoch)
        .record(now(), Some(&commit_key(1)), None);
    written.extend(newest.build());
    write_at(&path, end, &written);

    let broker = Broker::start(data.path(), &[ONE_PARTITION]);
    let mut client = broker.client();
    let kept: Vec<i32> = (0..PARTITIONS)
        .filter(|partition| *partition != 1)
        .collect();
    assert_eq!(committed(&mut client), kept);
    let offsets: Vec<i64> = (0..records.len() as i64).map(|n| first_bad.0 + n).collect();
    expect_skipped(&broker, &offsets);
    commit(&mut client, 1);
    broker.stop();
    let broker = Broker::start(data.path(), &[ONE_PARTITION]);
    assert_eq!(
        committed(&mut broker.client()),
        Vec::from_iter(0..PARTITIONS)
    );
    broker.stop();
}

#[test]
fn a_damaged_batch_of_commits_is_skipped_and_those_around_it_load() {
    let data = new_directory();
    start_with_commits(data.path()).stop();
    let (path, bytes) = segment(data.path());
    let found = batches(&bytes);
    let (position, header) = found[found.len() / 2];
    let damaged = position + header.size_bytes() - 3;
    write_at(&path, damaged, &[bytes[damaged] ^ 0x10]);
    // The newest of its partition is gone, whichever that is; each batch holds one.
    let broker = Broker::start(data.path(), &[ONE_PARTITION]);
    let left = committed(&mut broker.client());
    assert_eq!(left.len(), PARTITIONS as usize - 1, "{left:?}");
    expect_skipped(&broker, &[header.base_offset.0]);
    broker.stop();
}
