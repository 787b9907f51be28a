//! Produce requests whose frame is right and whose records are not, and names that are no names. Each gets its own error, and the
//! log stays as it was.

use bytes::{Bytes, BytesMut};
use corelog::model::TimestampMs;
use corelog::model::limits::{INFLATED_BATCH_BYTES_MAX, RECORD_BATCH_HEADER_BYTES};
use corelog::record::compression::Codec;
use corelog::record::crc::crc32c;
use corelog::record::encode::BatchBuilder;
use corelog::record::header::{Attributes, CRC_COVERS_FROM};
use kafka_protocol::ResponseError::{self, *};
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::{MetadataRequest, ProduceRequest};

use crate::broker::{Broker, new_directory};
use crate::produce::{
    batch_of, create_topic, fetch, log_end, now, produce, produce_with_version, topic_data,
    topic_name, try_create_topic,
};
use crate::settings::{alter_brokers, alter_topic};

/// Places in a record batch header, and of its first record.
const BASE_OFFSET_AT: usize = 0;
const BATCH_LENGTH_AT: usize = 8;
const LEADER_EPOCH_AT: usize = 12;
const MAGIC_AT: usize = 16;
const CRC_AT: usize = 17;
const LAST_OFFSET_DELTA_AT: usize = 23;
const RECORD_COUNT_AT: usize = 57;
const FIRST_RECORD_AT: usize = RECORD_BATCH_HEADER_BYTES;

/// A good batch of three records with some bytes overwritten. The CRC is made to fit again, so that nothing hides behind it.
fn patched(patches: &[(usize, &[u8])]) -> Bytes {
    let mut batch = BytesMut::from(&batch_of(&[b"one", b"two", b"three"])[..]);
    for (at, bytes) in patches {
        batch[*at..at + bytes.len()].copy_from_slice(bytes);
    }
    with_crc(batch)
}

fn with_crc(mut batch: BytesMut) -> Bytes {
    let crc = crc32c(&batch[CRC_COVERS_FROM..]);
    batch[CRC_AT..CRC_AT + 4].copy_from_slice(&crc.to_be_bytes());
    batch.freeze()
}

fn joined(parts: &[&[u8]]) -> Bytes {
    parts.concat().into()
}

fn with_attributes(attributes: i16) -> Bytes {
    patched(&[(CRC_COVERS_FROM, &attributes.to_be_bytes())])
}

fn at_time(timestamp: TimestampMs) -> Bytes {
    BatchBuilder::new()
        .record(timestamp, Some(b"k"), Some(b"v"))
        .build()
        .into()
}

fn lying_batches() -> Vec<(&'static str, Bytes, ResponseError)> {
    let good = batch_of(&[b"one", b"two", b"three"]);
    let length = |change: i32| ((good.len() as i32 - 12) + change).to_be_bytes();
    let mut wrong_crc = BytesMut::from(&good[..]);
    *wrong_crc.last_mut().unwrap() ^= 1;
    let far_ahead = TimestampMs(now().0 + 2 * 60 * 60 * 1000);
    vec![
        ("a flipped bit", wrong_crc.freeze(), CorruptMessage),
        ("half a header", good.slice(..30), CorruptMessage),
        (
            "a header alone",
            good.slice(..RECORD_BATCH_HEADER_BYTES),
            CorruptMessage,
        ),
        (
            "the last byte missing",
            good.slice(..good.len() - 1),
            CorruptMessage,
        ),
        (
            "a length over the field",
            patched(&[(BATCH_LENGTH_AT, &length(1))]),
            CorruptMessage,
        ),
        (
            "the largest length",
            patched(&[(BATCH_LENGTH_AT, &i32::MAX.to_be_bytes())]),
            CorruptMessage,
        ),
        (
            "a negative length",
            patched(&[(BATCH_LENGTH_AT, &(-1_i32).to_be_bytes())]),
            CorruptMessage,
        ),
        (
            "a length of nothing",
            patched(&[(BATCH_LENGTH_AT, &0_i32.to_be_bytes())]),
            CorruptMessage,
        ),
        (
            "an unknown magic",
            patched(&[(MAGIC_AT, &[3])]),
            CorruptMessage,
        ),
        ("an old magic", patched(&[(MAGIC_AT, &[1])]), InvalidRecord),
        ("no records", Bytes::new(), InvalidRecord),
        (
            "a count too high",
            patched(&[(RECORD_COUNT_AT, &4_i32.to_be_bytes())]),
            InvalidRecord,
        ),
        (
            "the largest count",
            patched(&[(RECORD_COUNT_AT, &i32::MAX.to_be_bytes())]),
            InvalidRecord,
        ),
        (
            "the largest count and a last offset delta to match",
            patched(&[
                (RECORD_COUNT_AT, &i32::MAX.to_be_bytes()),
                (LAST_OFFSET_DELTA_AT, &(i32::MAX - 1).to_be_bytes()),
            ]),
            InvalidRecord,
        ),
        (
            "a negative count",
            patched(&[(RECORD_COUNT_AT, &(-1_i32).to_be_bytes())]),
            InvalidRecord,
        ),
        (
            "fewer records declared than there are",
            patched(&[
                (RECORD_COUNT_AT, &2_i32.to_be_bytes()),
                (LAST_OFFSET_DELTA_AT, &1_i32.to_be_bytes()),
            ]),
            InvalidRecord,
        ),
        (
            "a last offset delta too high",
            patched(&[(LAST_OFFSET_DELTA_AT, &9_i32.to_be_bytes())]),
            InvalidRecord,
        ),
        // Length, attributes and timestamp delta take a byte each, then comes the offset delta, zigzag: 2 is 1.
        (
            "an offset delta of 1 first",
            patched(&[(FIRST_RECORD_AT + 3, &[2])]),
            InvalidRecord,
        ),
        (
            "a record longer than the batch",
            patched(&[(FIRST_RECORD_AT, &[0x7e])]),
            InvalidRecord,
        ),
        (
            "a record of negative length",
            patched(&[(FIRST_RECORD_AT, &[1])]),
            InvalidRecord,
        ),
        ("two batches", joined(&[&good, &good]), InvalidRecord),
        (
            "bytes behind the batch",
            joined(&[&good, &[0; 7]]),
            InvalidRecord,
        ),
        ("codec 5", with_attributes(5), UnsupportedCompressionType),
        ("codec 6", with_attributes(6), UnsupportedCompressionType),
        ("codec 7", with_attributes(7), UnsupportedCompressionType),
        (
            "a control batch",
            with_attributes(Attributes(0).with_control().0),
            InvalidRecord,
        ),
        (
            "a transaction that is not open",
            with_attributes(Attributes(0).with_transactional().0),
            InvalidTxnState,
        ),
        (
            "a timestamp too far ahead",
            at_time(far_ahead),
            InvalidTimestamp,
        ),
        (
            "more than max.message.bytes",
            batch_of(&[&[7; 2_000_000]]),
            MessageTooLarge,
        ),
    ]
}

#[test]
fn every_lying_batch_gets_its_own_error_and_leaves_no_trace() {
    let data = new_directory();
    let broker = Broker::start(data.path(), &[]);
    let mut client = broker.client();
    create_topic(&mut client, "t", 1, &[]);
    for (what, batch, error) in lying_batches() {
        let answer = produce(&mut client, "t", batch).expect_err(what);
        assert_eq!(answer.error_code, error.code(), "{what}: {answer:?}");
        assert_eq!(log_end(&mut client, "t"), 0, "{what}");
    }
    let answer = produce_with_version(&mut client, 9, "t", None);
    assert_eq!(
        answer.error_code,
        InvalidRecord.code(),
        "null records: {answer:?}"
    );
    // The connection and the partition are as good as before.
    assert_eq!(produce(&mut client, "t", batch_of(&[b"good"])).unwrap(), 0);
    assert_eq!(log_end(&mut client, "t"), 1);
}

/// A batch of three records whose records are compressed and then not what they should be.
fn lying_compressed_batches() -> Vec<(String, Bytes, ResponseError)> {
    let plain = batch_of(&[b"one", b"two", b"three"]);
    let records = &plain[FIRST_RECORD_AT..];
    let mut lies = Vec::new();
    for codec in [Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd] {
        let mut lie = |what: &str, head: &[(usize, &[u8])], body: Vec<u8>, error| {
            let mut batch = BytesMut::from(&plain[..FIRST_RECORD_AT]);
            batch.extend_from_slice(&body);
            let length = (batch.len() as i32 - 12).to_be_bytes();
            let attributes = Attributes(0).with_codec(codec).0.to_be_bytes();
            let own: [(usize, &[u8]); 2] =
                [(BATCH_LENGTH_AT, &length), (CRC_COVERS_FROM, &attributes)];
            for (at, bytes) in own.iter().chain(head) {
                batch[*at..at + bytes.len()].copy_from_slice(bytes);
            }
            lies.push((format!("{codec:?}: {what}"), with_crc(batch), error));
        };
        let compress = |bytes: &[u8]| codec.compress(bytes).unwrap();
        let changed = |at: usize, byte: u8| {
            let mut records = records.to_vec();
            records[at] = byte;
            compress(&records)
        };
        let counts = |count: i32| [count.to_be_bytes(), (count - 1).to_be_bytes()];
        let [four, three] = counts(4);
        let more = [(RECORD_COUNT_AT, &four[..]), (LAST_OFFSET_DELTA_AT, &three)];
        lie("a count too high", &more, compress(records), InvalidRecord);
        let [two, one] = counts(2);
        let fewer = [(RECORD_COUNT_AT, &two[..]), (LAST_OFFSET_DELTA_AT, &one)];
        lie("a count too low", &fewer, compress(records), InvalidRecord);
        lie(
            "an offset delta of 1 first",
            &[],
            changed(3, 2),
            InvalidRecord,
        );
        lie(
            "an impossible key length",
            &[],
            changed(4, 0x7e),
            InvalidRecord,
        );
        lie(
            "a record of negative length",
            &[],
            changed(0, 1),
            InvalidRecord,
        );
        lie("no record at all", &[], compress(b""), InvalidRecord);
        let noise = (0..99u8).map(|n| n.wrapping_mul(151) ^ 0xee).collect();
        lie("noise", &[], noise, CorruptMessage);
        let behind = [compress(records), b"bytes behind the stream".to_vec()].concat();
        lie("bytes behind the stream", &[], behind, CorruptMessage);
    }
    lies
}

#[test]
fn every_compressed_batch_that_lies_gets_its_own_error_unless_the_topic_leaves_it_to_producers() {
    let data = new_directory();
    let broker = Broker::start(data.path(), &[]);
    let mut client = broker.client();
    create_topic(&mut client, "t", 1, &[]);
    let lies = lying_compressed_batches();
    for (what, batch, error) in &lies {
        let answer = produce(&mut client, "t", batch.clone()).expect_err(what);
        assert_eq!(answer.error_code, error.code(), "{what}: {answer:?}");
        assert_eq!(log_end(&mut client, "t"), 0, "{what}");
    }
    alter_topic(&mut client, "t", &[("corelog.record.validation", "header")]);
    let (what, lie, error) = &lies[0];
    assert_eq!(produce(&mut client, "t", lie.clone()).expect(what), 0);
    // The topic's own setting goes before the brokers'.
    alter_brokers(&mut client, &[("corelog.record.validation", "header")]);
    alter_topic(&mut client, "t", &[("corelog.record.validation", "full")]);
    let answer = produce(&mut client, "t", lie.clone()).expect_err(what);
    assert_eq!(answer.error_code, error.code(), "{answer:?}");
    create_topic(&mut client, "other", 1, &[]);
    assert_eq!(produce(&mut client, "other", lie.clone()).expect(what), 0);
}

#[test]
fn base_offset_and_leader_epoch_of_the_producer_are_overwritten_and_the_crc_stays() {
    let data = new_directory();
    let broker = Broker::start(data.path(), &[]);
    let mut client = broker.client();
    create_topic(&mut client, "t", 1, &[]);
    let sent = patched(&[
        (BASE_OFFSET_AT, &123_456_i64.to_be_bytes()),
        (LEADER_EPOCH_AT, &99_i32.to_be_bytes()),
    ]);
    produce(&mut client, "t", sent.clone()).unwrap();
    produce(&mut client, "t", sent.clone()).unwrap();
    for base_offset in [0, 3] {
        let stored = fetch(&mut client, "t", base_offset)
            .unwrap()
            .records
            .unwrap();
        let stored = &stored[..sent.len()];
        assert_eq!(
            stored[BASE_OFFSET_AT..BASE_OFFSET_AT + 8],
            i64::to_be_bytes(base_offset)
        );
        assert_eq!(
            stored[LEADER_EPOCH_AT..LEADER_EPOCH_AT + 4],
            0_i32.to_be_bytes()
        );
        assert_eq!(
            stored[MAGIC_AT..],
            sent[MAGIC_AT..],
            "the CRC and all that it covers are the producer's"
        );
    }
}

#[test]
fn null_keys_on_a_compacted_topic_are_refused_by_their_indexes() {
    let data = new_directory();
    let broker = Broker::start(data.path(), &[]);
    let mut client = broker.client();
    create_topic(&mut client, "t", 1, &[("cleanup.policy", "compact")]);
    for codec in [
        Codec::None,
        Codec::Gzip,
        Codec::Snappy,
        Codec::Lz4,
        Codec::Zstd,
    ] {
        let batch = BatchBuilder::new()
            .codec(codec)
            .record(now(), Some(b"a"), Some(b"1"))
            .record(now(), Some(b""), Some(b"an empty key is a key"))
            .record(now(), None, Some(b"3"))
            .record(now(), Some(b"d"), Some(b"4"))
            .record(now(), None, Some(b"5"))
            .build();
        let answer = produce(&mut client, "t", batch.into()).expect_err("null keys");
        assert_eq!(answer.error_code, InvalidRecord.code(), "{codec:?}");
        let indexes: Vec<i32> = answer
            .record_errors
            .iter()
            .map(|error| error.batch_index)
            .collect();
        assert_eq!(indexes, [2, 4], "{codec:?}");
        assert!(
            answer
                .error_message
                .is_some_and(|message| message.contains("key")),
            "{codec:?}"
        );
    }
    assert_eq!(log_end(&mut client, "t"), 0);
    let keyed = BatchBuilder::new()
        .codec(Codec::Zstd)
        .record(now(), Some(b"a"), None)
        .build();
    assert_eq!(produce(&mut client, "t", keyed.into()).unwrap(), 0);
}

#[test]
fn zstd_is_refused_before_the_version_that_knows_it() {
    let data = new_directory();
    let broker = Broker::start(data.path(), &[]);
    let mut client = broker.client();
    create_topic(&mut client, "t", 1, &[]);
    let batch: Bytes = BatchBuilder::new()
        .codec(Codec::Zstd)
        .record(now(), None, Some(b"value"))
        .build()
        .into();
    for (version, error_code) in [(6, UnsupportedCompressionType.code()), (7, 0)] {
        let answer = produce_with_version(&mut client, version, "t", Some(batch.clone()));
        assert_eq!(answer.error_code, error_code, "version {version}");
    }
    assert_eq!(log_end(&mut client, "t"), 1);
}

#[test]
fn a_batch_that_would_inflate_without_end_is_refused_at_the_cap() {
    let data = new_directory();
    let broker = Broker::start(data.path(), &["cores=0"]);
    let mut client = broker.client();
    create_topic(&mut client, "t", 1, &[]);
    let zeros = vec![0; INFLATED_BATCH_BYTES_MAX + 1];
    for codec in [Codec::Gzip, Codec::Zstd] {
        let bomb: Bytes = BatchBuilder::new()
            .codec(codec)
            .record(now(), Some(b"k"), Some(&zeros))
            .build()
            .into();
        assert!(bomb.len() < 1_000_000, "{} bytes", bomb.len());
        let before_bytes = broker.resident_bytes();
        let answer = produce(&mut client, "t", bomb).expect_err("a bomb");
        assert_eq!(
            answer.error_code,
            MessageTooLarge.code(),
            "{codec:?}: {answer:?}"
        );
        let grown_bytes = broker.resident_bytes().saturating_sub(before_bytes);
        assert!(
            grown_bytes < 32 * 1024 * 1024,
            "{codec:?}: it grew by {grown_bytes} bytes"
        );
    }
    assert_eq!(log_end(&mut client, "t"), 0);
}

#[test]
fn names_that_are_no_names_create_nothing() {
    let parent = new_directory();
    let data = parent.path().join("data");
    let broker = Broker::start(&data, &[]);
    let mut client = broker.client();
    let long = "x".repeat(250);
    let names = [
        "", ".", "..", "../evil", "a/b", "/etc", "a b", "a\0b", "ä", "a\nb", "a:b", &long,
    ];
    for name in names {
        let code = try_create_topic(&mut client, name, 1, &[]);
        assert_eq!(code, InvalidTopicException.code(), "{name:?}");
        // Metadata creates topics too, where it may.
        let asked = MetadataRequestTopic::default().with_name(Some(topic_name(name)));
        let request = MetadataRequest::default()
            .with_topics(Some(vec![asked]))
            .with_allow_auto_topic_creation(true);
        let answer = client.ask(4, &request);
        assert_eq!(
            answer.topics[0].error_code,
            InvalidTopicException.code(),
            "{name:?}"
        );
    }
    assert_eq!(try_create_topic(&mut client, &"x".repeat(249), 1, &[]), 0);
    let beside: Vec<_> = std::fs::read_dir(parent.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(beside, ["data"]);
    let topics = std::fs::read_dir(&data).unwrap().filter(|entry| {
        let name = entry.as_ref().unwrap().file_name();
        name.to_string_lossy().ends_with("-0")
    });
    assert_eq!(topics.count(), 1);
}

#[test]
fn acks_that_do_not_exist_are_refused() {
    let data = new_directory();
    let broker = Broker::start(data.path(), &[]);
    let mut client = broker.client();
    create_topic(&mut client, "t", 1, &[]);
    for acks in [2, -2, i16::MAX] {
        let mut request = ProduceRequest::default()
            .with_acks(acks)
            .with_timeout_ms(1_000);
        request
            .topic_data
            .push(topic_data("t", Some(batch_of(&[b"v"]))));
        let answer = client.ask(9, &request);
        let code = answer.responses[0].partition_responses[0].error_code;
        assert_eq!(code, InvalidRequiredAcks.code(), "acks={acks}");
    }
    assert_eq!(log_end(&mut client, "t"), 0);
}
