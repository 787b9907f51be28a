//! Whose timestamps a batch is stored with, and which ones are refused.

use corelog::model::{LeaderEpoch, Offset, ProducerEpoch, ProducerId, Sequence, TimestampMs};
use corelog::record::encode::{BatchBuilder, seal};
use corelog::record::records::{RecordProblem, RecordReader};
use corelog::record::{
    Codec, InflateBounds, InvalidBatch, RecordBatchHeader, RecordValidation, TimestampType,
    ValidationRules, validate,
};

const NOW: TimestampMs = TimestampMs(1_000_000);

const RULES: ValidationRules = ValidationRules {
    batch_bytes_max: 1_048_588,
    timestamp_type: TimestampType::CreateTime,
    timestamp_before_max_ms: i64::MAX,
    timestamp_after_max_ms: 3_600_000,
    is_compacted: false,
    records: RecordValidation::Full,
};
const STAMPED: ValidationRules = ValidationRules {
    timestamp_type: TimestampType::LogAppendTime,
    ..RULES
};

/// Where the max timestamp is in the header, and where the header ends.
const MAX_TIMESTAMP: usize = 35;
const RECORDS: usize = 61;

fn three_records() -> BatchBuilder {
    BatchBuilder::new()
        .record(TimestampMs(1000), Some(b"key"), Some(b"value"))
        .record(TimestampMs(1002), Some(b""), None)
        .record(TimestampMs(1001), Some(b"k"), Some(&[7; 300]))
}

fn store(batch: &mut [u8], header: &[u8; RECORDS]) {
    batch[..RECORDS].copy_from_slice(header);
}

#[test]
fn create_time_is_held_against_the_clock() {
    let at = |timestamp: i64, codec| {
        let batch = BatchBuilder::new()
            .record(TimestampMs(timestamp), None, None)
            .codec(codec)
            .build();
        let rules = ValidationRules {
            timestamp_before_max_ms: 2_000,
            timestamp_after_max_ms: 1_000,
            ..RULES
        };
        validate(&batch, &rules, NOW)
    };
    for codec in [Codec::None, Codec::Zstd] {
        for good in [NOW.0, NOW.0 + 1_000, NOW.0 - 2_000, -1] {
            assert!(at(good, codec).is_ok(), "{good}");
        }
        for bad in [NOW.0 + 1_001, NOW.0 - 2_001, i64::MAX, i64::MIN, 0, -2] {
            let refused = at(bad, codec).unwrap_err();
            let expected = InvalidBatch::Timestamp {
                index: Some(0),
                timestamp: TimestampMs(bad),
                now: NOW,
                before_max_ms: 2_000,
                after_max_ms: 1_000,
            };
            assert_eq!(refused, expected);
        }
    }
}

#[test]
fn a_timestamp_that_overflows_is_refused() {
    let batch = BatchBuilder::new()
        .record(TimestampMs(i64::MAX), None, None)
        .record(TimestampMs(i64::MIN), None, None)
        .build();
    let rules = ValidationRules {
        timestamp_after_max_ms: i64::MAX,
        ..RULES
    };
    // The delta wraps to 1, and MAX + 1 is no timestamp.
    let problem = RecordProblem::Timestamp;
    assert_eq!(
        validate(&batch, &rules, NOW),
        Err(InvalidBatch::Record { index: 1, problem })
    );
}

#[test]
fn log_append_time_replaces_the_producers_and_the_crc_fits_again() {
    for codec in Codec::ALL {
        let mut batch = three_records().codec(codec).build();
        let valid = validate(&batch, &STAMPED, NOW).unwrap();
        assert_eq!(
            (valid.max_timestamp(), valid.log_append_time()),
            (NOW, Some(NOW))
        );
        store(
            &mut batch,
            &valid.stamped_header(Offset(500), LeaderEpoch(7)),
        );
        let stored = RecordBatchHeader::parse(&batch).unwrap();
        assert!(stored.crc_fits(&batch));
        assert_eq!(
            (stored.base_offset, stored.leader_epoch),
            (Offset(500), LeaderEpoch(7))
        );
        assert_eq!(
            (stored.last_offset(), stored.next_offset()),
            (Offset(502), Offset(503))
        );
        assert_eq!(
            stored.attributes.timestamp_type(),
            TimestampType::LogAppendTime
        );
        assert_eq!(stored.attributes.codec(), Ok(codec));
        let mut reader = RecordReader::new(&batch, InflateBounds::up_to(1 << 20)).unwrap();
        assert_eq!(reader.next_record().unwrap().unwrap().timestamp, NOW);
    }
}

#[test]
fn log_append_time_does_not_look_at_the_producers_clock() {
    let batch = BatchBuilder::new()
        .record(TimestampMs(i64::MAX / 2), None, None)
        .build();
    assert!(matches!(
        validate(&batch, &RULES, NOW),
        Err(InvalidBatch::Timestamp { .. })
    ));
    assert!(validate(&batch, &STAMPED, NOW).is_ok());
}

#[test]
fn create_time_is_stored_as_it_was_sent() {
    let mut batch = three_records()
        .producer(ProducerId(1), ProducerEpoch(0), Sequence(9))
        .build();
    let sent = batch.clone();
    let valid = validate(&batch, &RULES, NOW).unwrap();
    store(&mut batch, &valid.stamped_header(Offset(8), LeaderEpoch(1)));
    assert_eq!(batch[..8], 8i64.to_be_bytes());
    assert_eq!(batch[8..12], sent[8..12]);
    assert_eq!(batch[12..16], 1i32.to_be_bytes());
    assert_eq!(batch[16..], sent[16..]);
}

#[test]
fn a_wrong_max_timestamp_is_put_right() {
    let mut batch = three_records().build();
    batch[MAX_TIMESTAMP..MAX_TIMESTAMP + 8].copy_from_slice(&1i64.to_be_bytes());
    seal(&mut batch);
    let valid = validate(&batch, &RULES, NOW).unwrap();
    assert_eq!(valid.max_timestamp(), TimestampMs(1002));
    store(&mut batch, &valid.stamped_header(Offset(0), LeaderEpoch(0)));
    let stored = RecordBatchHeader::parse(&batch).unwrap();
    assert_eq!(stored.max_timestamp, TimestampMs(1002));
    assert_eq!(
        stored,
        RecordBatchHeader {
            base_offset: Offset(0),
            leader_epoch: LeaderEpoch(0),
            ..valid.header
        }
    );
    assert!(stored.crc_fits(&batch));
}
