//! Clients that ask for much and read nothing of it: what they are to be sent is bounded, and they lose their connection in the end.

use std::thread;
use std::time::{Duration, Instant};

use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::messages::{
    ApiKey, DescribeGroupsRequest, FetchResponse, GroupId, ListGroupsRequest, MetadataRequest,
    ResponseHeader,
};
use kafka_protocol::protocol::{Decodable, StrBytes};

use corelog::model::limits::REPLY_BYTES_PER_CONNECTION_MAX;

use crate::broker::{Broker, WAIT_MAX, new_directory};
use crate::produce::{batch_of, create_topic, fetch, fetch_request, log_end, produce};
use crate::wire::{Client, frame_of};

const FETCH_VERSION: i16 = 11;
const BATCH_BYTES: usize = 900_000;

/// What the sockets of both sides may hold.
const SOCKET_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Fetches of all that is in the topic, one after the other, none of whose answers is read.
fn send_fetches(client: &mut Client, topic: &str, count: i32) {
    let mut request = fetch_request(client, FETCH_VERSION, topic, 0);
    request.max_bytes = 50 * 1024 * 1024;
    request.topics[0].partitions[0].partition_max_bytes = 50 * 1024 * 1024;
    let mut bytes = BytesMut::new();
    for correlation_id in 0..count {
        bytes.put(frame_of(
            ApiKey::Fetch as i16,
            FETCH_VERSION,
            correlation_id,
            &request,
        ));
    }
    client.send(&bytes);
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + WAIT_MAX;
    while !is_so() {
        assert!(Instant::now() < deadline, "not so: {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

fn correlation_id(answer: &mut Bytes, header_version: i16) -> i32 {
    ResponseHeader::decode(answer, header_version)
        .unwrap()
        .correlation_id
}

#[test]
fn pipelined_fetches_read_no_more_than_the_bound_until_their_answers_are_taken() {
    const FETCHES: i32 = 100;
    const BATCHES: usize = 4;
    let data = new_directory();
    let broker = Broker::start(data.path(), &[]);
    let mut bystander = broker.client();
    create_topic(&mut bystander, "t", 1, &[]);
    let value = vec![b'x'; BATCH_BYTES];
    for _ in 0..BATCHES {
        produce(&mut bystander, "t", batch_of(&[&value])).unwrap();
    }
    let mut greedy = broker.client();
    send_fetches(&mut greedy, "t", FETCHES);
    let held_bytes = || broker.metric("corelog_reply_bytes_in_flight");
    wait_until("replies are held", || {
        held_bytes() > REPLY_BYTES_PER_CONNECTION_MAX as u64 / 2
    });
    for _ in 0..3 {
        produce(&mut bystander, "t", batch_of(&[b"small"])).unwrap();
        assert_eq!(fetch(&mut bystander, "t", 0).unwrap().error_code, 0);
    }
    assert_eq!(log_end(&mut bystander, "t"), BATCHES as i64 + 3);
    let read_bytes = broker.figure("corelog_tail_read_bytes_total", "") as usize;
    let bound_bytes = REPLY_BYTES_PER_CONNECTION_MAX + SOCKET_BYTES_MAX;
    assert!(read_bytes <= bound_bytes, "{read_bytes} bytes were read");
    let held_bytes = held_bytes() as usize;
    assert!(
        held_bytes <= REPLY_BYTES_PER_CONNECTION_MAX + BATCHES * BATCH_BYTES,
        "{held_bytes} are held"
    );
    for expected in 0..FETCHES {
        let mut answer = greedy.receive().expect("an answer");
        assert_eq!(correlation_id(&mut answer, 0), expected);
        let mut response = FetchResponse::decode(&mut answer, FETCH_VERSION).unwrap();
        let partition = response.responses.remove(0).partitions.remove(0);
        assert_eq!(partition.error_code, 0);
        assert!(
            partition.records.unwrap().len() >= BATCH_BYTES,
            "answer {expected} has no whole batch"
        );
    }
    wait_until("all is given back", || {
        broker.metric("corelog_reply_bytes_in_flight") == 0
    });
}

#[test]
fn a_client_that_takes_nothing_for_the_idle_time_is_closed_and_its_replies_are_freed() {
    let data = new_directory();
    let broker = Broker::start(data.path(), &["connections.max.idle.ms=2000"]);
    let mut producer = broker.client();
    create_topic(&mut producer, "t", 1, &[]);
    let value = vec![b'x'; BATCH_BYTES];
    for _ in 0..4 {
        produce(&mut producer, "t", batch_of(&[&value])).unwrap();
    }
    let mut greedy = broker.client();
    send_fetches(&mut greedy, "t", 100);
    wait_until("replies are held", || {
        broker.metric("corelog_reply_bytes_in_flight") > 0
    });
    wait_until("it is closed", || {
        broker.metric("corelog_reply_bytes_in_flight") == 0
    });
    // What the sockets held still arrives; then the connection ends, inside an answer.
    assert_eq!(broker.metric("corelog_requests_in_flight"), 0);
    let mut other = broker.client();
    assert_eq!(fetch(&mut other, "t", 0).unwrap().error_code, 0);
}

#[test]
fn pipelined_requests_for_what_the_broker_holds_are_answered_in_their_order() {
    const ROUNDS: i32 = 50;
    let data = new_directory();
    let broker = Broker::start(data.path(), &[]);
    let mut client = broker.client();
    for topic in ["a", "b", "c"] {
        create_topic(&mut client, topic, 3, &[]);
    }
    let groups = vec![GroupId(StrBytes::from_static_str("g"))];
    let mut bytes = BytesMut::new();
    for round in 0..ROUNDS {
        let id = round * 3;
        let metadata = MetadataRequest::default().with_topics(None);
        bytes.put(frame_of(ApiKey::Metadata as i16, 1, id, &metadata));
        let list = ListGroupsRequest::default();
        bytes.put(frame_of(ApiKey::ListGroups as i16, 0, id + 1, &list));
        let describe = DescribeGroupsRequest::default().with_groups(groups.clone());
        bytes.put(frame_of(
            ApiKey::DescribeGroups as i16,
            0,
            id + 2,
            &describe,
        ));
    }
    client.send(&bytes);
    for expected in 0..ROUNDS * 3 {
        let mut answer = client.receive().expect("an answer");
        assert_eq!(correlation_id(&mut answer, 0), expected);
    }
    wait_until("all is given back", || {
        broker.metric("corelog_reply_bytes_in_flight") == 0
    });
}
