//! Batches that are built here against the batches of another implementation, in both directions, and what walking their records finds.

use bytes::{Bytes, BytesMut};
use corelog::model::{Offset, ProducerEpoch, ProducerId, Sequence, TimestampMs};
use corelog::record::encode::{BatchBuilder, restamp, seal};
use corelog::record::inflater::{InflateError, Inflater};
use corelog::record::records::{
    RecordReader, RecordsError, first_at_or_after, first_of_max_timestamp,
};
use corelog::record::{
    Attributes, Codec, InflateBounds, RecordBatchHeader, RecordValidation, TimestampType,
    ValidationRules, validate,
};
use kafka_protocol::protocol::StrBytes;
use kafka_protocol::records::{self as codec, Compression, RecordBatchDecoder, RecordBatchEncoder};
use proptest::prelude::*;

/// The codecs are slow without optimisation.
const CASES: u32 = 48;

const INFLATED_BYTES_MAX: usize = 1 << 20;

const RULES: ValidationRules = ValidationRules {
    batch_bytes_max: 1 << 20,
    timestamp_type: TimestampType::CreateTime,
    timestamp_before_max_ms: i64::MAX,
    timestamp_after_max_ms: i64::MAX,
    is_compacted: false,
    records: RecordValidation::Full,
};

#[derive(Clone, Debug, PartialEq)]
struct Plain {
    offset: i64,
    timestamp: i64,
    key: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
    headers: Vec<(String, Option<Vec<u8>>)>,
}

fn read(batch: &[u8]) -> Result<Vec<Plain>, RecordsError> {
    let mut reader = RecordReader::new(batch, InflateBounds::up_to(INFLATED_BYTES_MAX))?;
    let mut read = Vec::new();
    while let Some(record) = reader.next_record()? {
        let header = |(name, value): (&[u8], Option<&[u8]>)| {
            (
                String::from_utf8_lossy(name).into_owned(),
                value.map(<[u8]>::to_vec),
            )
        };
        read.push(Plain {
            offset: record.offset.0,
            timestamp: record.timestamp.0,
            key: record.key.map(<[u8]>::to_vec),
            value: record.value.map(<[u8]>::to_vec),
            headers: record.headers.iter().map(header).collect(),
        });
    }
    Ok(read)
}

fn built(records: &[Plain], codec: Codec) -> Vec<u8> {
    let mut builder = BatchBuilder::new()
        .codec(codec)
        .base_offset(Offset(records[0].offset));
    for record in records {
        let headers: Vec<(&str, Option<&[u8]>)> = record
            .headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_deref()))
            .collect();
        builder.push(
            TimestampMs(record.timestamp),
            record.key.as_deref(),
            record.value.as_deref(),
            &headers,
        );
    }
    builder.build()
}

fn compression_of(codec: Codec) -> Compression {
    match codec {
        Codec::None => Compression::None,
        Codec::Gzip => Compression::Gzip,
        Codec::Snappy => Compression::Snappy,
        Codec::Lz4 => Compression::Lz4,
        Codec::Zstd => Compression::Zstd,
    }
}

fn built_elsewhere(records: &[Plain], codec: Codec) -> Bytes {
    let theirs = records.iter().enumerate().map(|(i, record)| codec::Record {
        transactional: false,
        control: false,
        delete_horizon: false,
        partition_leader_epoch: -1,
        producer_id: -1,
        producer_epoch: -1,
        timestamp_type: codec::TimestampType::Creation,
        offset: record.offset,
        sequence: i as i32 - 1,
        timestamp: record.timestamp,
        key: record.key.clone().map(Bytes::from),
        value: record.value.clone().map(Bytes::from),
        headers: record
            .headers
            .iter()
            .map(|(name, value)| {
                (
                    StrBytes::from_string(name.clone()),
                    value.clone().map(Bytes::from),
                )
            })
            .collect(),
    });
    let theirs: Vec<codec::Record> = theirs.collect();
    let options = codec::RecordEncodeOptions {
        version: 2,
        compression: compression_of(codec),
    };
    let mut out = BytesMut::new();
    RecordBatchEncoder::encode(&mut out, &theirs, &options).unwrap();
    out.freeze()
}

prop_compose! {
    fn any_records()(
        base_offset in 0i64..1_000_000,
        records in prop::collection::vec(
            (
                0i64..2_000_000_000_000,
                any::<Option<Vec<u8>>>(),
                prop::option::of(prop::collection::vec(any::<u8>(), 0..3000)),
                prop::collection::btree_map("[a-z]{0,9}", any::<Option<Vec<u8>>>(), 0..3),
            ),
            1..12,
        ),
    ) -> Vec<Plain> {
        let plain = |(i, (timestamp, key, value, headers))| {
            Plain { offset: base_offset + i as i64, timestamp, key, value, headers: Vec::from_iter(headers) }
        };
        records.into_iter().enumerate().map(plain).collect()
    }
}

fn any_codec() -> impl Strategy<Value = Codec> {
    proptest::sample::select(Codec::ALL.to_vec())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(CASES))]

    #[test]
    fn what_is_built_here_reads_back_here(records in any_records(), codec in any_codec()) {
        let batch = built(&records, codec);
        prop_assert!(validate(&batch, &RULES, TimestampMs(0)).is_ok());
        prop_assert_eq!(read(&batch).unwrap(), records);
    }

    #[test]
    fn what_is_built_here_another_implementation_reads(records in any_records(), codec in any_codec()) {
        let mut batch = Bytes::from(built(&records, codec));
        let theirs = RecordBatchDecoder::decode(&mut batch).unwrap();
        prop_assert_eq!(theirs.compression, compression_of(codec));
        let read: Vec<Plain> = theirs.records.into_iter().map(|record| Plain {
            offset: record.offset,
            timestamp: record.timestamp,
            key: record.key.map(Vec::from),
            value: record.value.map(Vec::from),
            headers: record.headers.into_iter().map(|(name, value)| (name.to_string(), value.map(Vec::from))).collect(),
        }).collect();
        prop_assert_eq!(read, records);
    }

    #[test]
    fn what_another_implementation_builds_is_read_here(records in any_records(), codec in any_codec()) {
        let batch = built_elsewhere(&records, codec);
        prop_assert!(validate(&batch, &RULES, TimestampMs(0)).is_ok());
        prop_assert_eq!(read(&batch).unwrap(), records);
    }

    #[test]
    fn the_first_record_at_a_time_and_the_latest_are_found(
        records in any_records(),
        codec in any_codec(),
        at in 0i64..2_100_000_000_000,
    ) {
        let batch = built(&records, codec);
        let place = |record: &Plain| (Offset(record.offset), TimestampMs(record.timestamp));
        let at_or_after = records.iter().find(|record| record.timestamp >= at).map(place);
        prop_assert_eq!(first_at_or_after(&batch, TimestampMs(at), InflateBounds::up_to(INFLATED_BYTES_MAX)).unwrap(), at_or_after);
        let max = records.iter().map(|record| record.timestamp).max().unwrap();
        let latest = records.iter().find(|record| record.timestamp == max).map(place);
        prop_assert_eq!(first_of_max_timestamp(&batch, InflateBounds::up_to(INFLATED_BYTES_MAX)).unwrap(), latest);
    }

    #[test]
    fn garbage_never_panics_a_reader(
        records in any_records(),
        codec in any_codec(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut batch = built(&records, codec);
        for (at, byte) in changes {
            let at = at.index(batch.len());
            batch[at] = byte;
        }
        let _ = read(&batch);
        batch.truncate(cut.index(batch.len()));
        let _ = read(&batch);
    }
}

fn one_record(codec: Codec) -> Vec<u8> {
    BatchBuilder::new()
        .codec(codec)
        .record(TimestampMs(5), Some(b"key"), Some(&[1; 5000]))
        .build()
}

#[test]
fn with_log_append_time_every_record_has_the_time_of_the_batch() {
    let attributes = Attributes(0).with_timestamp_type(TimestampType::LogAppendTime);
    let batch = BatchBuilder::new()
        .attributes(attributes)
        .record(TimestampMs(10), None, None)
        .record(TimestampMs(30), None, None)
        .record(TimestampMs(20), None, None)
        .build();
    assert!(
        read(&batch)
            .unwrap()
            .iter()
            .all(|record| record.timestamp == 30)
    );
    let first = Some((Offset(0), TimestampMs(30)));
    assert_eq!(
        first_at_or_after(
            &batch,
            TimestampMs(25),
            InflateBounds::up_to(INFLATED_BYTES_MAX)
        ),
        Ok(first)
    );
    assert_eq!(
        first_of_max_timestamp(&batch, InflateBounds::up_to(INFLATED_BYTES_MAX)),
        Ok(first)
    );
}

#[test]
fn inflating_stops_at_the_cap_and_not_before() {
    for codec in [Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd] {
        let batch = one_record(codec);
        let inflated_bytes = one_record(Codec::None).len() - 61;
        let count = |cap| {
            let mut reader = RecordReader::new(&batch, InflateBounds::up_to(cap))?;
            reader.next_record().map(|record| record.is_some())
        };
        assert_eq!(count(inflated_bytes), Ok(true), "{codec:?}");
        let too_large = InflateError::TooLarge {
            codec,
            inflated_bytes_max: inflated_bytes - 1,
        };
        assert_eq!(
            count(inflated_bytes - 1),
            Err(too_large.into()),
            "{codec:?}"
        );
    }
}

#[test]
fn a_batch_that_is_cut_short_is_told_so() {
    let batch = one_record(Codec::None);
    let cut = RecordReader::new(
        &batch[..batch.len() - 1],
        InflateBounds::up_to(INFLATED_BYTES_MAX),
    )
    .map(|_| ())
    .unwrap_err();
    assert_eq!(
        cut,
        RecordsError::CutShort {
            batch_bytes: batch.len(),
            have_bytes: batch.len() - 1
        }
    );
    for codec in [Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd] {
        let mut batch = one_record(codec);
        // What a codec puts behind its data, a checksum or an end mark, the records do not need.
        batch.truncate(batch.len() - 20);
        let batch_length = (batch.len() - 12) as i32;
        batch[8..12].copy_from_slice(&batch_length.to_be_bytes());
        assert!(
            matches!(read(&batch), Err(RecordsError::Inflate(_))),
            "{codec:?}"
        );
    }
}

#[test]
fn records_beyond_the_declared_count_are_an_error() {
    for codec in Codec::ALL {
        let mut batch = BatchBuilder::new()
            .codec(codec)
            .record(TimestampMs(1), None, None)
            .record(TimestampMs(2), None, None)
            .build();
        batch[57..61].copy_from_slice(&1i32.to_be_bytes());
        assert_eq!(
            read(&batch),
            Err(RecordsError::BytesBehindRecords { declared: 1 }),
            "{codec:?}"
        );
        batch[57..61].copy_from_slice(&3i32.to_be_bytes());
        assert!(read(&batch).is_err(), "{codec:?}");
    }
}

/// librdkafka and sarama send one bare block where Java sends xerial's frames.
#[test]
fn bare_snappy_inflates_too() {
    let text = b"some text, some text, some text".repeat(50);
    let bare = snap::raw::Encoder::new().compress_vec(&text).unwrap();
    for compressed in [&bare, &Codec::Snappy.compress(&text).unwrap()] {
        let mut inflater = Inflater::new(
            Codec::Snappy,
            compressed,
            InflateBounds::up_to(INFLATED_BYTES_MAX),
        )
        .unwrap();
        let mut out = Vec::new();
        inflater
            .append_to(&mut out, text.len(), usize::MAX)
            .unwrap();
        assert_eq!(out, text);
        assert_eq!(inflater.is_at_end(), Ok(true));
    }
}

#[test]
fn a_snappy_block_that_declares_gigabytes_gets_none() {
    // A varint of 2^32 - 1 for the inflated length, then nothing.
    for compressed in [
        &b"\xff\xff\xff\xff\x0f"[..],
        b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01\0\0\0\x05\xff\xff\xff\xff\x0f",
    ] {
        let mut inflater =
            Inflater::new(Codec::Snappy, compressed, InflateBounds::up_to(usize::MAX)).unwrap();
        let refused = inflater.peek(1).unwrap_err();
        assert!(
            matches!(
                refused,
                InflateError::Corrupt {
                    codec: Codec::Snappy,
                    ..
                }
            ),
            "{refused:?}"
        );
    }
}

#[test]
fn several_gzip_members_are_one_stream() {
    let both = [
        Codec::Gzip.compress(b"first ").unwrap(),
        Codec::Gzip.compress(b"second").unwrap(),
    ]
    .concat();
    let mut inflater =
        Inflater::new(Codec::Gzip, &both, InflateBounds::up_to(INFLATED_BYTES_MAX)).unwrap();
    let mut out = Vec::new();
    inflater.append_to(&mut out, 12, usize::MAX).unwrap();
    assert_eq!(out, b"first second");
}

#[test]
fn a_restamped_header_fits_the_same_records() {
    let mut batch = BatchBuilder::new()
        .producer(ProducerId(4), ProducerEpoch(1), Sequence(0))
        .record(TimestampMs(100), Some(b"key"), Some(&[9; 3000]))
        .record(TimestampMs(107), None, None)
        .build();
    let mut header = *batch.first_chunk().unwrap();
    restamp(&mut header, TimestampMs(5000), Sequence(2));
    batch[..61].copy_from_slice(&header);
    let restamped = RecordBatchHeader::parse(&batch).unwrap();
    assert!(restamped.crc_fits(&batch));
    assert_eq!(restamped.base_sequence, Sequence(2));
    assert_eq!(
        (restamped.base_timestamp, restamped.max_timestamp),
        (TimestampMs(5000), TimestampMs(5007))
    );
    let full_pass = {
        let mut batch = batch.clone();
        seal(&mut batch);
        batch
    };
    assert_eq!(batch, full_pass);
}
