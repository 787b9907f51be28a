//! Frames and requests that no client should send. Each costs its sender the connection and nobody else anything.

use std::thread;
use std::time::{Duration, Instant};

use bytes::{BufMut, Bytes, BytesMut};
use corelog::protocol::versions::SERVED;
use kafka_protocol::ResponseError;
use kafka_protocol::messages::fetch_request::ReplicaState;
use kafka_protocol::messages::{
    ApiKey, ApiVersionsRequest, ApiVersionsResponse, BrokerId, FetchRequest, MetadataRequest,
    ResponseHeader,
};
use kafka_protocol::protocol::{Decodable, StrBytes};

use crate::broker::{Broker, WAIT_MAX, new_directory};
use crate::produce::{batch_of, create_topic, fetch, fetch_request, log_end, produce};
use crate::wire::{Client, frame_of, raw_frame};

/// Demands that the broker serves a connection that was open before, and a new one.
fn expect_others_are_served(broker: &Broker, bystander: &mut Client) {
    for client in [bystander, &mut broker.client()] {
        let answer = client.ask(2, &ApiVersionsRequest::default());
        assert_eq!(answer.error_code, 0);
    }
}

/// Well-formed up to an array that declares more elements than there are bytes, of every served API that has an array early on.
fn huge_arrays() -> Vec<(ApiKey, Bytes)> {
    let count = i32::MAX.to_be_bytes();
    let compact_count = [0xff, 0xff, 0xff, 0xff, 0x0f];
    let cases: [(ApiKey, i16, &[&[u8]]); 12] = [
        (ApiKey::Metadata, 1, &[&count]),
        (ApiKey::Metadata, 12, &[&compact_count]),
        // Transactional id, acks, time-out.
        (
            ApiKey::Produce,
            3,
            &[&[0xff, 0xff, 0xff, 0xff, 0, 0, 0, 1], &count],
        ),
        (
            ApiKey::Produce,
            11,
            &[&[0, 0xff, 0xff, 0, 0, 0, 1], &compact_count],
        ),
        // Replica id, wait, min and max bytes, isolation level.
        (ApiKey::Fetch, 4, &[&[0xff; 4], &[0; 13], &count]),
        (ApiKey::Fetch, 16, &[&[0; 13], &[0; 8], &compact_count]),
        (ApiKey::ListOffsets, 1, &[&[0xff; 4], &count]),
        (ApiKey::CreateTopics, 2, &[&count]),
        (ApiKey::DeleteTopics, 1, &[&count]),
        (ApiKey::DescribeConfigs, 1, &[&count]),
        (ApiKey::CreatePartitions, 0, &[&count]),
        (ApiKey::DescribeLogDirs, 1, &[&count]),
    ];
    let frames = cases.iter().map(|(key, version, parts)| {
        let frame = raw_frame(*key as i16, *version, 7, &parts.concat());
        (*key, frame)
    });
    frames.collect()
}

#[test]
fn a_tiny_frame_with_a_huge_array_costs_no_memory_and_only_its_own_connection() {
    let data = new_directory();
    let broker = Broker::start(data.path(), &["cores=0"]);
    let mut bystander = broker.client();
    let send_all = |rounds: usize| {
        for _ in 0..rounds {
            for (key, frame) in huge_arrays() {
                let mut client = broker.client();
                client.send(&frame);
                assert_eq!(client.receive(), None, "{key:?} was answered");
            }
        }
    };
    // What the first connections and the first refusals touch for good is not what the frames cost.
    send_all(3);
    let before_bytes = broker.settled_resident_bytes();
    send_all(10);
    let grown_bytes = broker.resident_bytes().saturating_sub(before_bytes);
    assert!(grown_bytes < 1024 * 1024, "it grew by {grown_bytes} bytes");
    expect_others_are_served(&broker, &mut bystander);
}

#[test]
fn a_frame_is_refused_by_its_length_alone() {
    let data = new_directory();
    let broker = Broker::start(data.path(), &["socket.request.max.bytes=1000000"]);
    let mut bystander = broker.client();
    for size in [1_000_001, i32::MAX, -1, i32::MIN, 0, 7] {
        let mut client = broker.client();
        client.send(&size.to_be_bytes());
        if (0..8).contains(&size) {
            client.send(&vec![0; size as usize]);
        }
        client.expect_closed();
    }
    expect_others_are_served(&broker, &mut bystander);
}

#[test]
fn a_declared_length_costs_memory_only_as_its_bytes_arrive() {
    let data = new_directory();
    let broker = Broker::start(data.path(), &["cores=0"]);
    let mut bystander = broker.client();
    let open_all = |count: usize| -> Vec<Client> {
        let open = |_| {
            let mut client = broker.client();
            client.send(&(100 * 1024 * 1024_i32).to_be_bytes());
            client.send(&[0, 3, 0, 1, 0, 0]);
            client
        };
        (0..count).map(open).collect()
    };
    drop(open_all(20));
    let before_bytes = broker.settled_resident_bytes();
    let open = open_all(20);
    expect_others_are_served(&broker, &mut bystander);
    let grown_bytes = broker.resident_bytes().saturating_sub(before_bytes);
    assert!(
        grown_bytes < 20 * 256 * 1024,
        "20 connections took {grown_bytes} bytes"
    );
    drop(open);
}

#[test]
fn a_request_that_trickles_in_is_cut_off_and_an_idle_connection_is_not() {
    let data = new_directory();
    let broker = Broker::start(data.path(), &["socket.request.timeout.ms=500"]);
    let mut idle = broker.client();
    let mut between_requests = broker.client();
    between_requests.ask(2, &ApiVersionsRequest::default());
    let mut slow = broker.client();
    let frame = frame_of(ApiKey::Metadata as i16, 1, 1, &MetadataRequest::default());
    let started = Instant::now();
    // Over and over the first half, so that it never gets there: bytes keep coming, the request does not.
    slow.send(&1000_i32.to_be_bytes());
    slow.send(&frame[4..]);
    while !slow.is_closed() {
        assert!(
            started.elapsed() < WAIT_MAX,
            "half a request is held open for ever"
        );
        slow.send(&[0]);
        thread::sleep(Duration::from_millis(50));
    }
    assert!(
        started.elapsed() >= Duration::from_millis(500),
        "cut off before its time"
    );
    expect_others_are_served(&broker, &mut idle);
    between_requests.ask(2, &ApiVersionsRequest::default());
}

#[test]
fn greetings_of_other_protocols_are_closed_with_few_lines_in_the_log() {
    let data = new_directory();
    let broker = Broker::start(data.path(), &[]);
    let mut bystander = broker.client();
    let greetings: [&[u8]; 4] = [
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"POST /topics HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}",
        // TLS 1.3: a handshake record with a client hello.
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\x20",
        b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n",
    ];
    for _ in 0..100 {
        for greeting in greetings {
            let mut client = broker.client();
            client.send(greeting);
            client.expect_closed();
        }
    }
    expect_others_are_served(&broker, &mut bystander);
    let log = broker.log();
    let lines = log
        .lines()
        .filter(|line| line.contains("connection closed"))
        .count();
    assert!(
        (1..=100).contains(&lines),
        "{lines} lines for 400 greetings:\n{log}"
    );
}

#[test]
fn an_unknown_key_or_version_closes_the_connection() {
    let data = new_directory();
    let broker = Broker::start(data.path(), &[]);
    let mut bystander = broker.client();
    let mut refused: Vec<(i16, i16)> = vec![(-1, 0), (9_999, 0), (i16::MAX, 0), (i16::MIN, 0)];
    // What only brokers may say to each other: LeaderAndIsr, StopReplica, AlterPartition, Vote, BeginQuorumEpoch.
    refused.extend([(4, 0), (5, 0), (56, 0), (52, 0), (53, 0)]);
    let of_served = SERVED
        .iter()
        .filter(|api| api.key != ApiKey::ApiVersions)
        .flat_map(|api| {
            let key = api.key as i16;
            [(key, api.min - 1), (key, api.max + 1), (key, i16::MAX)]
        });
    refused.extend(of_served);
    for (key, version) in refused {
        let mut client = broker.client();
        client.send(&raw_frame(key, version, 1, &[0; 32]));
        assert_eq!(
            client.receive(),
            None,
            "key {key} version {version} was answered"
        );
    }
    expect_others_are_served(&broker, &mut bystander);
}

#[test]
fn an_unknown_version_of_api_versions_is_answered_with_what_is_served() {
    let data = new_directory();
    let broker = Broker::start(data.path(), &[]);
    for version in [5, 99, i16::MAX, -1] {
        let mut client = broker.client();
        client.send(&raw_frame(
            ApiKey::ApiVersions as i16,
            version,
            4711,
            &[0; 10],
        ));
        let mut frame = client.receive().expect("an answer");
        assert_eq!(
            ResponseHeader::decode(&mut frame, 0)
                .unwrap()
                .correlation_id,
            4711
        );
        let answer = ApiVersionsResponse::decode(&mut frame, 0).unwrap();
        assert!(frame.is_empty());
        assert_eq!(answer.error_code, ResponseError::UnsupportedVersion.code());
        let own = answer
            .api_keys
            .iter()
            .find(|api| api.api_key == ApiKey::ApiVersions as i16);
        assert_eq!(
            own.map(|api| (api.min_version, api.max_version)),
            Some((0, 4))
        );
        // It learned what to ask, on the same connection.
        let named = ApiVersionsRequest::default()
            .with_client_software_name(StrBytes::from_static_str("test"))
            .with_client_software_version(StrBytes::from_static_str("1.0"));
        let again = client.ask(4, &named);
        assert_eq!((again.error_code, again.api_keys.len()), (0, SERVED.len()));
        // One that does not say what it is has made a mistake, and may ask again too (KIP-511).
        let nameless = client.ask(4, &ApiVersionsRequest::default());
        assert_eq!(nameless.error_code, ResponseError::InvalidRequest.code());
        assert_eq!(client.ask(4, &named).error_code, 0);
    }
}

#[test]
fn a_fetch_that_claims_to_be_a_replica_is_refused_and_moves_nothing() {
    let data = new_directory();
    let broker = Broker::start(data.path(), &[]);
    let mut client = broker.client();
    create_topic(&mut client, "t", 1, &[]);
    produce(&mut client, "t", batch_of(&[b"a", b"b"])).unwrap();
    for version in [4, 6, 7, 12, 14, 15, 18] {
        // Far ahead: a leader that believed it would move its high watermark there.
        let mut request: FetchRequest = fetch_request(&mut client, version, "t", 1_000_000);
        match version {
            ..15 => request.replica_id = BrokerId(2),
            _ => {
                request.replica_state = ReplicaState::default()
                    .with_replica_id(BrokerId(2))
                    .with_replica_epoch(1)
            }
        }
        let answer = client.ask(version, &request);
        let codes: Vec<i16> = answer
            .responses
            .iter()
            .flat_map(|topic| topic.partitions.iter().map(|it| it.error_code))
            .collect();
        let refused = ResponseError::InvalidRequest.code();
        assert_eq!(codes, [refused], "version {version}: {answer:?}");
        assert_eq!(log_end(&mut client, "t"), 2, "version {version}");
    }
    assert_eq!(fetch(&mut client, "t", 0).unwrap().high_watermark, 2);
}

#[test]
fn pipelined_requests_before_a_bad_one_are_still_answered() {
    let data = new_directory();
    let broker = Broker::start(data.path(), &[]);
    let mut client = broker.client();
    let mut bytes = BytesMut::new();
    for correlation_id in 0..5 {
        let request = MetadataRequest::default().with_topics(Some(Vec::new()));
        bytes.put(frame_of(
            ApiKey::Metadata as i16,
            1,
            correlation_id,
            &request,
        ));
    }
    bytes.put(raw_frame(9_999, 0, 5, &[]));
    client.send(&bytes);
    for correlation_id in 0..5 {
        let mut frame = client.receive().expect("an answer");
        assert_eq!(
            ResponseHeader::decode(&mut frame, 0)
                .unwrap()
                .correlation_id,
            correlation_id
        );
    }
    client.expect_closed();
}

#[test]
fn tagged_fields_out_of_order_or_twice_close_the_connection() {
    let data = new_directory();
    let broker = Broker::start(data.path(), &[]);
    let mut bystander = broker.client();
    let field = |tag: u8| [tag, 1, 7];
    let ordered = [&[2][..], &field(100), &field(101)].concat();
    let twice = [&[2][..], &field(100), &field(100)].concat();
    let descending = [&[2][..], &field(101), &field(100)].concat();
    // Metadata 12 of no topics: the header ends in tagged fields, and so does the body.
    let frame = |in_header: &[u8], in_body: &[u8]| {
        let request = [
            &[0, 3, 0, 12, 0, 0, 0, 7, 0xff, 0xff],
            in_header,
            &[1, 0, 0],
            in_body,
        ]
        .concat();
        [&(request.len() as i32).to_be_bytes(), &request[..]].concat()
    };
    let mut client = broker.client();
    client.send(&frame(&ordered, &ordered));
    assert!(client.receive().is_some(), "what is in order is answered");
    for bad in [&twice, &descending] {
        for bytes in [frame(bad, &[0]), frame(&[0], bad)] {
            let mut client = broker.client();
            client.send(&bytes);
            client.expect_closed();
        }
    }
    expect_others_are_served(&broker, &mut bystander);
}
