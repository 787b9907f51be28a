//! Groups that are treated badly: damaged records of theirs, blobs of megabytes, topics that are deleted under them, members that wait when
//! the broker goes.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use corelog::model::internal_topic::{OFFSETS_TOPIC, offsets_partition_of};
use corelog::model::limits::GROUP_BYTES_PER_PARTITION_MAX;
use corelog::record::header::RecordBatchHeader;
use kafka_protocol::ResponseError::{
    CoordinatorLoadInProgress, GroupMaxSizeReached, InvalidTopicException, NotCoordinator,
    UnknownTopicOrPartition,
};
use kafka_protocol::messages::delete_topics_request::DeleteTopicState;
use kafka_protocol::messages::join_group_request::JoinGroupRequestProtocol;
use kafka_protocol::messages::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use kafka_protocol::messages::offset_fetch_request::OffsetFetchRequestTopic;
use kafka_protocol::messages::{
    ApiKey, DeleteTopicsRequest, DescribeGroupsRequest, FindCoordinatorRequest, GroupId,
    JoinGroupRequest, JoinGroupResponse, OffsetCommitRequest, OffsetFetchRequest,
};
use kafka_protocol::protocol::{Decodable, StrBytes};

use crate::broker::{Broker, new_directory};
use crate::produce::{batch_of, create_topic, produce, topic_name, try_create_topic};
use crate::wire::{Client, frame_of};

/// The only versions in which a commit says how long it is to be kept.
const COMMIT_VERSION_WITH_RETENTION: i16 = 4;

/// The last version without tagged fields, so that a response is decoded behind its correlation id.
const JOIN_VERSION: i16 = 5;
const COMMIT_VERSION: i16 = 7;
const FETCH_VERSION: i16 = 5;

fn string(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

pub fn find_coordinator(client: &mut Client, group: &str) {
    let request = FindCoordinatorRequest::default().with_key(string(group));
    assert_eq!(client.ask(2, &request).error_code, 0);
}

/// The error code.
pub fn commit(client: &mut Client, group: &str, topic: &str, partition: i32, offset: i64) -> i16 {
    let request = commit_request(group, topic, partition, offset);
    client.ask(COMMIT_VERSION, &request).topics[0].partitions[0].error_code
}

/// Commits an offset for partition 0 that is due after `retention_ms`.
pub fn commit_for(client: &mut Client, group: &str, topic: &str, retention_ms: i64) {
    let request = commit_request(group, topic, 0, 1).with_retention_time_ms(retention_ms);
    let answer = client.ask(COMMIT_VERSION_WITH_RETENTION, &request);
    assert_eq!(answer.topics[0].partitions[0].error_code, 0);
}

fn commit_request(group: &str, topic: &str, partition: i32, offset: i64) -> OffsetCommitRequest {
    let partition = OffsetCommitRequestPartition::default()
        .with_partition_index(partition)
        .with_committed_offset(offset)
        .with_committed_metadata(Some(string("note")));
    let topic = OffsetCommitRequestTopic::default()
        .with_name(topic_name(topic))
        .with_partitions(vec![partition]);
    OffsetCommitRequest::default()
        .with_group_id(GroupId(string(group)))
        .with_topics(vec![topic])
}

/// The committed offset of partition 0, once the group is loaded.
pub fn committed(client: &mut Client, group: &str, topic: &str) -> i64 {
    let topic = OffsetFetchRequestTopic::default()
        .with_name(topic_name(topic))
        .with_partition_indexes(vec![0]);
    let request = OffsetFetchRequest::default()
        .with_group_id(GroupId(string(group)))
        .with_topics(Some(vec![topic]));
    loop {
        let answer = client.ask(FETCH_VERSION, &request);
        if answer.error_code != CoordinatorLoadInProgress.code() {
            assert_eq!(answer.error_code, 0);
            return answer.topics[0].partitions[0].committed_offset;
        }
    }
}

/// A new member, which is given its id when the group has gathered.
fn join_request(group: &str, metadata_bytes: usize) -> JoinGroupRequest {
    let protocol = JoinGroupRequestProtocol::default()
        .with_name(string("range"))
        .with_metadata(Bytes::from(vec![7; metadata_bytes]));
    JoinGroupRequest::default()
        .with_group_id(GroupId(string(group)))
        .with_session_timeout_ms(30_000)
        .with_rebalance_timeout_ms(60_000)
        .with_group_instance_id(Some(string("instance")))
        .with_protocol_type(string("consumer"))
        .with_protocols(vec![protocol])
}

fn send_join(client: &mut Client, request: &JoinGroupRequest) {
    client.send(&frame_of(
        ApiKey::JoinGroup as i16,
        JOIN_VERSION,
        1,
        request,
    ));
}

fn receive_join(client: &mut Client) -> JoinGroupResponse {
    let frame = client.receive().expect("an answer");
    JoinGroupResponse::decode(&mut frame.slice(4..), JOIN_VERSION).unwrap()
}

fn state_of(client: &mut Client, group: &str) -> String {
    let request = DescribeGroupsRequest::default().with_groups(vec![GroupId(string(group))]);
    client.ask(4, &request).groups[0].group_state.to_string()
}

fn offsets_segment(data: &Path, group: &str, partition_count: i32) -> PathBuf {
    let index = offsets_partition_of(group, partition_count);
    data.join(format!("{OFFSETS_TOPIC}-{index}/00000000000000000000.log"))
}

/// Where each batch of a segment begins.
fn batch_positions(segment: &Path) -> Vec<usize> {
    let bytes = fs::read(segment).unwrap();
    let mut positions = Vec::new();
    let mut position = 0;
    while let Ok(header) = RecordBatchHeader::parse(&bytes[position..]) {
        positions.push(position);
        position += header.size_bytes();
    }
    positions
}

#[test]
fn a_confirmed_commit_is_there_after_kill_9() {
    let directory = new_directory();
    let data = directory.path().join("data");
    let mut offset = 0;
    for _ in 0..3 {
        let broker = Broker::start(&data, &[]);
        let mut client = broker.client();
        let _created_or_there = try_create_topic(&mut client, "t", 1, &[]);
        find_coordinator(&mut client, "g");
        if offset > 0 {
            assert_eq!(committed(&mut client, "g", "t"), offset);
        }
        for _ in 0..20 {
            offset += 1;
            assert_eq!(commit(&mut client, "g", "t", 0, offset), 0);
        }
        broker.kill();
    }
}

#[test]
fn damaged_offset_records_are_skipped_and_named_and_the_rest_loads() {
    const GROUPS: [&str; 40] = {
        let mut names = [""; 40];
        let letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMN";
        let mut at = 0;
        while at < names.len() {
            names[at] = letters.split_at(at).1.split_at(1).0;
            at += 1;
        }
        names
    };
    const DAMAGED: usize = 20;
    let one_partition = &["offsets.topic.num.partitions=1"];
    let directory = new_directory();
    let data = directory.path().join("data");
    let broker = Broker::start(&data, one_partition);
    let mut client = broker.client();
    create_topic(&mut client, "t", 1, &[]);
    find_coordinator(&mut client, "any");
    for (group, offset) in GROUPS.iter().zip(1..) {
        assert_eq!(commit(&mut client, group, "t", 0, offset), 0);
    }
    broker.stop();

    // One batch for each commit; in one of them a byte of the record changes, which its checksum sees.
    let segment = offsets_segment(&data, "any", 1);
    let positions = batch_positions(&segment);
    assert_eq!(positions.len(), GROUPS.len());
    let file = OpenOptions::new().write(true).open(&segment).unwrap();
    file.write_all_at(b"\xff", positions[DAMAGED] as u64 + 70)
        .unwrap();

    let broker = Broker::start(&data, one_partition);
    let mut client = broker.client();
    for (index, (group, offset)) in GROUPS.iter().zip(1..).enumerate() {
        let expected = if index == DAMAGED { -1 } else { offset };
        assert_eq!(committed(&mut client, group, "t"), expected, "{group}");
    }
    let log = broker.log();
    assert!(
        log.contains("damaged") && log.contains(&format!("offset={DAMAGED}")),
        "{log}"
    );
    // What was lost is committed anew.
    assert_eq!(commit(&mut client, GROUPS[DAMAGED], "t", 0, 99), 0);
    assert_eq!(committed(&mut client, GROUPS[DAMAGED], "t"), 99);
    broker.stop();
}

#[test]
fn offsets_of_a_deleted_topic_are_gone_for_the_next_one_of_its_name() {
    let directory = new_directory();
    let broker = Broker::start(&directory.path().join("data"), &[]);
    let mut client = broker.client();
    create_topic(&mut client, "t", 1, &[]);
    find_coordinator(&mut client, "g");
    assert_eq!(commit(&mut client, "g", "t", 0, 7), 0);
    let unknown = UnknownTopicOrPartition.code();
    assert_eq!(commit(&mut client, "g", "t", 1, 7), unknown);
    assert_eq!(commit(&mut client, "g", "no-topic", 0, 7), unknown);

    let delete = DeleteTopicState::default().with_name(Some(topic_name("t")));
    let request = DeleteTopicsRequest::default()
        .with_topics(vec![delete])
        .with_timeout_ms(30_000);
    assert_eq!(client.ask(6, &request).responses[0].error_code, 0);
    assert_eq!(commit(&mut client, "g", "t", 0, 8), unknown);
    create_topic(&mut client, "t", 1, &[]);
    assert_eq!(committed(&mut client, "g", "t"), -1);
    broker.stop();
}

#[test]
fn clients_write_nothing_into_the_topic_of_offsets() {
    let directory = new_directory();
    let broker = Broker::start(&directory.path().join("data"), &[]);
    let mut client = broker.client();
    find_coordinator(&mut client, "g");
    let refusal = produce(&mut client, OFFSETS_TOPIC, batch_of(&[b"value"])).unwrap_err();
    assert_eq!(refusal.error_code, InvalidTopicException.code());
    broker.stop();
}

#[test]
fn a_member_that_waits_is_told_when_the_broker_stops() {
    let directory = new_directory();
    let settings = &["group.initial.rebalance.delay.ms=600000"];
    let broker = Broker::start(&directory.path().join("data"), settings);
    let (mut waiting, mut gone) = (broker.client(), broker.client());
    find_coordinator(&mut waiting, "g");
    send_join(&mut waiting, &join_request("g", 100));
    send_join(&mut gone, &join_request("other", 100));
    drop(gone);
    while state_of(&mut broker.client(), "g") != "PreparingRebalance" {
        std::thread::yield_now();
    }
    broker.stop();
    assert_eq!(receive_join(&mut waiting).error_code, NotCoordinator.code());
}

#[test]
fn members_with_megabytes_of_metadata_keep_nobody_else_from_being_served() {
    const MEMBERS: usize = 300;
    const METADATA_BYTES: usize = 1000 * 1000;
    const MEMBERS_WITH_ROOM_MAX: usize = GROUP_BYTES_PER_PARTITION_MAX / METADATA_BYTES;
    const MEMORY_BYTES_MAX: u64 = 700 * 1024 * 1024;
    let directory = new_directory();
    let settings = &["group.initial.rebalance.delay.ms=600000"];
    let broker = Broker::start(&directory.path().join("data"), settings);
    let mut client = broker.client();
    create_topic(&mut client, "t", 1, &[]);
    find_coordinator(&mut client, "greedy");
    // More than a shard lets requests in flight have, and than a partition of groups has room for.
    let mut members: Vec<Client> = (0..MEMBERS).map(|_| broker.client()).collect();
    for (number, member) in members.iter_mut().enumerate() {
        let request = join_request("greedy", METADATA_BYTES)
            .with_group_instance_id(Some(string(&format!("instance-{number}"))));
        send_join(member, &request);
    }
    let mut refused_count = 0;
    while refused_count < MEMBERS - MEMBERS_WITH_ROOM_MAX {
        let answered = |member: &mut Client| member.has_answer();
        for mut member in members.extract_if(.., answered) {
            assert_eq!(
                receive_join(&mut member).error_code,
                GroupMaxSizeReached.code()
            );
            refused_count += 1;
        }
        std::thread::yield_now();
    }
    for offset in 1..=10 {
        assert_eq!(commit(&mut client, "modest", "t", 0, offset), 0);
        produce(&mut client, "t", batch_of(&[b"value"])).unwrap();
    }
    assert_eq!(committed(&mut client, "modest", "t"), 10);
    assert!(
        broker.resident_bytes() < MEMORY_BYTES_MAX,
        "{} bytes are resident",
        broker.resident_bytes()
    );
    broker.stop();
}
