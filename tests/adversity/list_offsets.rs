//! Which offset belongs to a time, where records were deleted or do not read.

use bytes::{Bytes, BytesMut};
use corelog::model::TimestampMs;
use corelog::record::compression::Codec;
use corelog::record::encode::{BatchBuilder, seal};

use crate::broker::{Broker, new_directory};
use crate::produce::{create_topic, list_offset, produce};
use crate::retention::delete_records;

/// The special time of the newest record (KIP-734).
const NEWEST: i64 = -3;

const NONE: i64 = -1;

/// Nothing but DeleteRecords deletes here.
const SETTINGS: &[(&str, &str)] = &[("retention.ms", "-1"), ("segment.bytes", "1048576")];

fn batch_at(timestamps: &[i64], value_bytes: usize) -> Bytes {
    let mut batch = BatchBuilder::new();
    let value = vec![5; value_bytes];
    for timestamp in timestamps {
        batch.push(TimestampMs(*timestamp), Some(b"key"), Some(&value), &[]);
    }
    batch.build().into()
}

/// A batch of one record whose compressed bytes are noise.
fn noise_at(timestamp: i64) -> Bytes {
    let batch = BatchBuilder::new()
        .codec(Codec::Zstd)
        .record(TimestampMs(timestamp), None, Some(&[7; 500]))
        .build();
    let mut batch = BytesMut::from(&batch[..]);
    batch[61..].fill(0xee);
    seal(&mut batch);
    batch.freeze()
}

/// A batch whose header has a later time than its only record.
fn exaggerating_at(timestamp: i64, promised: i64) -> Bytes {
    const MAX_TIMESTAMP_AT: usize = 35;
    let batch = BatchBuilder::new()
        .codec(Codec::Lz4)
        .record(TimestampMs(timestamp), None, Some(b"value"))
        .build();
    let mut batch = BytesMut::from(&batch[..]);
    batch[MAX_TIMESTAMP_AT..MAX_TIMESTAMP_AT + 8].copy_from_slice(&promised.to_be_bytes());
    seal(&mut batch);
    batch.freeze()
}

#[test]
fn the_newest_record_is_the_newest_of_those_that_were_not_deleted() {
    let data = new_directory();
    let broker = Broker::start(data.path(), &[]);
    let mut client = broker.client();
    create_topic(&mut client, "t", 1, SETTINGS);
    // Offsets 0 to 2 in one batch, then one each.
    produce(&mut client, "t", batch_at(&[9_000, 8_000, 100], 10)).unwrap();
    for timestamp in [5_000, 7_000, 6_000, 7_000] {
        produce(&mut client, "t", batch_at(&[timestamp], 10)).unwrap();
    }
    let expected = [(0, 0), (1, 1), (2, 4), (3, 4), (5, 6), (7, NONE)];
    for (start, newest) in expected {
        delete_records(&mut client, "t", start);
        let found = list_offset(&mut client, "t", NEWEST);
        assert_eq!(found, newest, "the log starts at {start}");
    }
    produce(&mut client, "t", batch_at(&[1_000], 10)).unwrap();
    assert_eq!(list_offset(&mut client, "t", NEWEST), 7);
}

#[test]
fn the_newest_record_is_found_over_segments_of_which_the_first_is_deleted_in_part() {
    let data = new_directory();
    let broker = Broker::start(data.path(), &[]);
    let mut client = broker.client();
    create_topic(&mut client, "t", 1, SETTINGS);
    // Three batches of 400,000 bytes fill a segment: the times of the second lie between those of the first.
    let timestamps = [9_000, 4_000, 7_000, 5_000, 6_500, 5_500, 100, 200];
    for timestamp in timestamps {
        produce(&mut client, "t", batch_at(&[timestamp], 400_000)).unwrap();
    }
    for start in 0..timestamps.len() {
        delete_records(&mut client, "t", start as i64);
        let left = timestamps.iter().zip(0i64..).skip(start);
        let newest = left.max_by_key(|(timestamp, _)| **timestamp).unwrap().1;
        let found = list_offset(&mut client, "t", NEWEST);
        assert_eq!(found, newest, "the log starts at {start}");
    }
}

#[test]
fn a_lookup_by_time_passes_over_a_batch_that_does_not_read() {
    let data = new_directory();
    let broker = Broker::start(data.path(), &[]);
    let mut client = broker.client();
    // Where the records are not looked at, as older versions did not.
    let settings = [
        ("retention.ms", "-1"),
        ("corelog.record.validation", "header"),
    ];
    create_topic(&mut client, "t", 1, &settings);
    for batch in [
        batch_at(&[1_000], 10),
        noise_at(2_000),
        exaggerating_at(1_500, 2_500),
        batch_at(&[3_000], 10),
        noise_at(9_000),
        exaggerating_at(3_500, 8_000),
    ] {
        produce(&mut client, "t", batch).unwrap();
    }
    let expected = [
        (1_000, 0),
        (1_001, 2),
        (1_501, 3),
        (3_001, 5),
        (3_501, NONE),
        (9_000, NONE),
        (9_001, NONE),
        (NEWEST, 5),
    ];
    for (timestamp, offset) in expected {
        assert_eq!(
            list_offset(&mut client, "t", timestamp),
            offset,
            "{timestamp}"
        );
    }
}
