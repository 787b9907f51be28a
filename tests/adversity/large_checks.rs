//! Batches whose check takes long: others are served meanwhile, and the batches that came after them wait for them.

use bytes::{Bytes, BytesMut};
use corelog::model::{ProducerEpoch, ProducerId, Sequence};
use corelog::record::compression::Codec;
use corelog::record::encode::{BatchBuilder, restamp};
use kafka_protocol::messages::produce_response::PartitionProduceResponse;
use kafka_protocol::messages::{
    ApiKey, DeleteTopicsRequest, ProduceRequest, ProduceResponse, ResponseHeader,
};
use kafka_protocol::protocol::{Decodable, HeaderVersion};

use crate::broker::{Broker, new_directory};
use crate::produce::{
    batch_of, create_topic, log_end, now, produce, topic_data, topic_name, try_create_topic,
};
use crate::settings::alter_topic;
use crate::wire::{Client, frame_of};

const PRODUCE_VERSION: i16 = 9;

/// One record that inflates to this much.
const LARGE_BYTES: usize = 24 * 1024 * 1024;

const PRODUCER: ProducerId = ProducerId(77);

/// A small batch that takes long to check.
fn slow_batch() -> Bytes {
    let value = vec![0; LARGE_BYTES];
    let batch = BatchBuilder::new()
        .codec(Codec::Gzip)
        .producer(PRODUCER, ProducerEpoch(0), Sequence(0))
        .record(now(), Some(b"key"), Some(&value));
    batch.build().into()
}

fn with_sequence(batch: &Bytes, sequence: i32) -> Bytes {
    let mut batch = BytesMut::from(&batch[..]);
    let mut header = *batch.first_chunk().unwrap();
    restamp(&mut header, now(), Sequence(sequence));
    batch[..header.len()].copy_from_slice(&header);
    batch.freeze()
}

fn quick_batch(sequence: i32) -> Bytes {
    let batch = BatchBuilder::new()
        .producer(PRODUCER, ProducerEpoch(0), Sequence(sequence))
        .record(now(), Some(b"key"), Some(b"value"));
    batch.build().into()
}

/// Sends a produce request without waiting for its answer.
fn send(client: &mut Client, correlation_id: i32, topic: &str, records: Bytes) {
    let request = ProduceRequest::default()
        .with_acks(-1)
        .with_timeout_ms(30_000)
        .with_topic_data(vec![topic_data(topic, Some(records))]);
    let key = ApiKey::Produce as i16;
    client.send(&frame_of(key, PRODUCE_VERSION, correlation_id, &request));
}

fn receive(client: &mut Client, correlation_id: i32) -> PartitionProduceResponse {
    let mut frame = client.receive().expect("an answer");
    let header_version = ProduceResponse::header_version(PRODUCE_VERSION);
    let header = ResponseHeader::decode(&mut frame, header_version).unwrap();
    assert_eq!(header.correlation_id, correlation_id, "answers in order");
    let mut answer = ProduceResponse::decode(&mut frame, PRODUCE_VERSION).unwrap();
    answer.responses.remove(0).partition_responses.remove(0)
}

#[test]
fn an_idempotent_producers_batches_keep_their_order_while_a_slow_one_is_checked() {
    let data = new_directory();
    let broker = Broker::start(data.path(), &["cores=0"]);
    let mut client = broker.client();
    create_topic(&mut client, "t", 1, &[]);
    let slow = slow_batch();
    let mut pipeline = broker.client();
    // Five in flight, as such producers have them; one sequence number is one record here.
    for sequence in 0..5 {
        let batch = match sequence {
            0 | 3 => with_sequence(&slow, sequence),
            _ => quick_batch(sequence),
        };
        send(&mut pipeline, sequence, "t", batch);
    }
    for sequence in 0..5 {
        let answer = receive(&mut pipeline, sequence);
        assert_eq!(
            (answer.error_code, answer.base_offset),
            (0, sequence.into()),
            "{answer:?}"
        );
    }
    // A repeat of one that was checked slowly is known.
    send(&mut pipeline, 9, "t", with_sequence(&slow, 3));
    assert_eq!(receive(&mut pipeline, 9).base_offset, 3);
    assert_eq!(log_end(&mut client, "t"), 5);
}

#[test]
fn others_are_served_while_slow_batches_are_checked() {
    let data = new_directory();
    let broker = Broker::start(data.path(), &["cores=0"]);
    let mut client = broker.client();
    // More partitions than checks that a shard has under way at a time.
    for topic in ["a", "b", "c", "d", "other"] {
        create_topic(&mut client, topic, 1, &[]);
    }
    let slow = with_sequence(&slow_batch(), 0);
    let mut pipeline = broker.client();
    let topics = ["a", "b", "c", "d", "a", "b", "c", "d"];
    for (topic, id) in topics.iter().zip(0..) {
        send(&mut pipeline, id, topic, with_sequence(&slow, id / 4));
    }
    assert_eq!(
        produce(&mut client, "other", batch_of(&[b"quick"])).unwrap(),
        0
    );
    assert_eq!(log_end(&mut client, "other"), 1);
    let still_checked = topics.iter().zip(0..).filter(|(topic, id)| {
        let end: i64 = log_end(&mut client, topic);
        end <= id / 4
    });
    assert!(
        still_checked.count() > 0,
        "the quick batch waited for every slow one"
    );
    for id in 0..8 {
        let answer = receive(&mut pipeline, id);
        assert_eq!(
            (answer.error_code, answer.base_offset),
            (0, (id / 4).into()),
            "{answer:?}"
        );
    }
}

#[test]
fn a_topic_may_be_deleted_or_changed_while_its_batches_are_checked() {
    let data = new_directory();
    let broker = Broker::start(data.path(), &["cores=0"]);
    let mut client = broker.client();
    create_topic(&mut client, "t", 1, &[]);
    let slow = slow_batch();
    let mut pipeline = broker.client();
    for id in 0..5 {
        send(&mut pipeline, id, "t", with_sequence(&slow, id));
    }
    alter_topic(
        &mut client,
        "t",
        &[
            ("corelog.record.validation", "header"),
            ("max.message.bytes", "100"),
        ],
    );
    let request = DeleteTopicsRequest::default()
        .with_topic_names(vec![topic_name("t")])
        .with_timeout_ms(30_000);
    assert_eq!(client.ask(4, &request).responses[0].error_code, 0);
    // Answered in order: some may be in the log, what comes after is too large by now, or its topic is gone.
    let codes: Vec<i16> = (0..5)
        .map(|id| receive(&mut pipeline, id).error_code)
        .collect();
    const UNKNOWN_TOPIC_OR_PARTITION: i16 = 3;
    const MESSAGE_TOO_LARGE: i16 = 10;
    let rank = |code: &i16| {
        [0, MESSAGE_TOO_LARGE, UNKNOWN_TOPIC_OR_PARTITION]
            .iter()
            .position(|it| it == code)
    };
    assert!(codes.iter().all(|code| rank(code).is_some()), "{codes:?}");
    assert!(codes.is_sorted_by_key(rank), "{codes:?}");
    assert_eq!(try_create_topic(&mut client, "t", 1, &[]), 0);
    assert_eq!(produce(&mut client, "t", batch_of(&[b"new"])).unwrap(), 0);
    assert_eq!(log_end(&mut client, "t"), 1);
}

#[test]
fn a_broker_stops_while_batches_are_checked_and_keeps_what_it_confirmed() {
    let data = new_directory();
    let broker = Broker::start(data.path(), &["cores=0"]);
    let mut client = broker.client();
    create_topic(&mut client, "t", 1, &[]);
    let slow = slow_batch();
    let mut pipeline = broker.client();
    for id in 0..5 {
        send(&mut pipeline, id, "t", with_sequence(&slow, id));
    }
    broker.stop();
    let mut confirmed_count = 0;
    while let Some(frame) = pipeline.receive() {
        let mut frame = frame;
        let header_version = ProduceResponse::header_version(PRODUCE_VERSION);
        ResponseHeader::decode(&mut frame, header_version).unwrap();
        let answer = ProduceResponse::decode(&mut frame, PRODUCE_VERSION).unwrap();
        let answer = &answer.responses[0].partition_responses[0];
        if answer.error_code == 0 {
            assert_eq!(answer.base_offset, confirmed_count);
            confirmed_count += 1;
        }
    }
    let broker = Broker::start(data.path(), &["cores=0"]);
    let end = log_end(&mut broker.client(), "t");
    assert!(
        end >= confirmed_count,
        "{confirmed_count} confirmed, {end} there"
    );
}
