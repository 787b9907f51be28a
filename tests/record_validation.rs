//! Every rule for a producer's batch, by batches that break exactly one.

use corelog::model::limits::{INFLATED_BATCH_BYTES_MAX, RECORD_HEADERS_MAX};
use corelog::model::{LeaderEpoch, Offset, ProducerEpoch, ProducerId, Sequence, TimestampMs};
use corelog::record::compression::UnknownCodec;
use corelog::record::encode::{BatchBuilder, seal};
use corelog::record::header::Attributes;
use corelog::record::records::{RecordProblem, RecordReader};
use corelog::record::validate::{BatchProducer, validate_within};
use corelog::record::{
    Codec, InflateBounds, InvalidBatch, RecordBatchHeader, RecordValidation, TimestampType,
    Validation, ValidationRules, validate,
};
use proptest::prelude::*;

const CASES: u32 = 256;

const NOW: TimestampMs = TimestampMs(1_000_000);

const RULES: ValidationRules = ValidationRules {
    batch_bytes_max: 1_048_588,
    timestamp_type: TimestampType::CreateTime,
    timestamp_before_max_ms: i64::MAX,
    timestamp_after_max_ms: 3_600_000,
    is_compacted: false,
    records: RecordValidation::Full,
};
const COMPACTED: ValidationRules = ValidationRules {
    is_compacted: true,
    ..RULES
};
const STAMPED: ValidationRules = ValidationRules {
    timestamp_type: TimestampType::LogAppendTime,
    ..RULES
};

/// Where the fields of the header are.
const BATCH_LENGTH: usize = 8;
const MAGIC: usize = 16;
const CRC: usize = 17;
const ATTRIBUTES: usize = 21;
const LAST_OFFSET_DELTA: usize = 23;
const PRODUCER_ID: usize = 43;
const PRODUCER_EPOCH: usize = 51;
const BASE_SEQUENCE: usize = 53;
const RECORD_COUNT: usize = 57;
const RECORDS: usize = 61;

fn three_records() -> BatchBuilder {
    BatchBuilder::new()
        .record(TimestampMs(1000), Some(b"key"), Some(b"value"))
        .record_with_headers(
            TimestampMs(1002),
            Some(b""),
            None,
            &[("name", Some(b"v")), ("", None)],
        )
        .record(TimestampMs(1001), Some(b"k"), Some(&[7; 300]))
}

/// Overwrites bytes at `at` and makes the CRC right again.
fn patched(mut batch: Vec<u8>, at: usize, bytes: &[u8]) -> Vec<u8> {
    batch[at..at + bytes.len()].copy_from_slice(bytes);
    seal(&mut batch);
    batch
}

fn refused(batch: &[u8]) -> InvalidBatch {
    validate(batch, &RULES, NOW).expect_err("the batch breaks a rule")
}

#[test]
fn a_good_batch_passes_with_every_codec() {
    for codec in Codec::ALL {
        let batch = three_records().codec(codec).build();
        for rules in [RULES, COMPACTED] {
            let valid = validate(&batch, &rules, NOW).unwrap();
            assert_eq!(valid.codec, codec);
            assert_eq!(valid.size_bytes(), batch.len());
            assert_eq!(
                (valid.record_count(), valid.max_timestamp()),
                (3, TimestampMs(1002))
            );
            assert_eq!((valid.producer, valid.log_append_time()), (None, None));
        }
    }
}

#[test]
fn the_field_holds_exactly_one_batch() {
    assert_eq!(refused(b""), InvalidBatch::Empty);
    let batch = three_records().build();
    let two = [&batch[..], &batch[..]].concat();
    let (batch_bytes, behind_bytes) = (batch.len(), batch.len());
    assert_eq!(
        refused(&two),
        InvalidBatch::BytesBehindBatch {
            batch_bytes,
            behind_bytes
        }
    );
    let with_a_byte = [&batch[..], &[0]].concat();
    assert_eq!(
        refused(&with_a_byte),
        InvalidBatch::BytesBehindBatch {
            batch_bytes,
            behind_bytes: 1
        }
    );
}

#[test]
fn a_length_that_lies_is_corrupt() {
    let batch = three_records().build();
    assert_eq!(
        refused(&batch[..60]),
        InvalidBatch::TooShort { field_bytes: 60 }
    );
    assert_eq!(
        refused(&batch[..5]),
        InvalidBatch::TooShort { field_bytes: 5 }
    );
    let batch_length = batch.len() as i32 - 12;
    for (declared, field_bytes) in [
        (batch_length + 1, batch.len()),
        (48, batch.len()),
        (-1, batch.len()),
    ] {
        let lying = patched(batch.clone(), BATCH_LENGTH, &declared.to_be_bytes());
        assert_eq!(
            refused(&lying),
            InvalidBatch::Length {
                batch_length: declared,
                field_bytes
            }
        );
    }
    // Shorter than it is: the CRC tells, before the rest could pass for a second batch.
    let shorter = patched(
        batch.clone(),
        BATCH_LENGTH,
        &(batch_length - 1).to_be_bytes(),
    );
    assert!(matches!(refused(&shorter), InvalidBatch::Crc { .. }));
}

#[test]
fn only_magic_2_is_taken() {
    for magic in [0, 1] {
        let old = patched(three_records().build(), MAGIC, &[magic as u8]);
        assert_eq!(refused(&old), InvalidBatch::OldMagic { magic });
        assert_eq!(
            refused(&old[..34]),
            InvalidBatch::OldMagic { magic },
            "a message set may be short"
        );
    }
    for magic in [3, -1] {
        let unknown = patched(three_records().build(), MAGIC, &[magic as u8]);
        assert_eq!(refused(&unknown), InvalidBatch::UnknownMagic { magic });
    }
}

#[test]
fn a_wrong_crc_is_told_with_both_values() {
    let mut batch = three_records().build();
    let computed = RecordBatchHeader::parse(&batch).unwrap().crc;
    batch[CRC..CRC + 4].copy_from_slice(&[1, 2, 3, 4]);
    assert_eq!(
        refused(&batch),
        InvalidBatch::Crc {
            declared: 0x0102_0304,
            computed
        }
    );
}

#[test]
fn a_flipped_bit_behind_the_crc_is_noticed() {
    let batch = three_records().build();
    for at in ATTRIBUTES..batch.len() {
        for bit in 0..8 {
            let mut flipped = batch.clone();
            flipped[at] ^= 1 << bit;
            assert!(
                matches!(refused(&flipped), InvalidBatch::Crc { .. }),
                "byte {at}, bit {bit}"
            );
        }
    }
}

#[test]
fn base_offset_and_leader_epoch_of_the_producer_do_not_matter() {
    let mut batch = three_records().build();
    batch[..8].copy_from_slice(&i64::MIN.to_be_bytes());
    batch[12..16].copy_from_slice(&[0xff; 4]);
    assert!(validate(&batch, &RULES, NOW).is_ok());
}

#[test]
fn a_batch_over_max_message_bytes_is_too_large() {
    let batch = three_records().build();
    let batch_bytes = batch.len();
    let rules = |batch_bytes_max| ValidationRules {
        batch_bytes_max,
        ..RULES
    };
    assert!(validate(&batch, &rules(batch_bytes), NOW).is_ok());
    let refused = validate(&batch, &rules(batch_bytes - 1), NOW);
    assert_eq!(
        refused,
        Err(InvalidBatch::TooLarge {
            batch_bytes,
            batch_bytes_max: batch_bytes - 1
        })
    );
}

#[test]
fn codecs_5_to_7_do_not_exist() {
    for codec in 5..=7 {
        let batch = patched(three_records().build(), ATTRIBUTES, &[0, codec]);
        assert_eq!(refused(&batch), InvalidBatch::Codec(UnknownCodec(codec)));
    }
}

#[test]
fn clients_may_not_set_what_only_a_broker_sets() {
    let with = |bits: u8| refused(&patched(three_records().build(), ATTRIBUTES, &[0, bits]));
    assert_eq!(with(1 << 5), InvalidBatch::Control);
    assert_eq!(with(1 << 4), InvalidBatch::Transactional);
    assert_eq!(with(1 << 6), InvalidBatch::DeleteHorizon);
    assert_eq!(with(1 << 3), InvalidBatch::LogAppendTimeFromClient);
}

#[test]
fn counts_that_disagree_are_refused() {
    let count = |record_count: i32, last_offset_delta: i32| {
        let batch = patched(
            three_records().build(),
            RECORD_COUNT,
            &record_count.to_be_bytes(),
        );
        (
            refused(&patched(
                batch,
                LAST_OFFSET_DELTA,
                &last_offset_delta.to_be_bytes(),
            )),
            InvalidBatch::Count {
                record_count,
                last_offset_delta,
            },
        )
    };
    for (record_count, last_offset_delta) in [
        (3, 3),
        (4, 2),
        (0, -1),
        (-1, -2),
        (i32::MIN, i32::MAX),
        (i32::MAX, 2),
    ] {
        let (refused, expected) = count(record_count, last_offset_delta);
        assert_eq!(refused, expected);
    }
    let (refused, _) = count(4, 3);
    assert_eq!(
        refused,
        InvalidBatch::Record {
            index: 3,
            problem: RecordProblem::Length
        }
    );
    let (refused, _) = count(2, 1);
    assert!(
        matches!(
            refused,
            InvalidBatch::BytesBehindRecords {
                record_count: 2,
                ..
            }
        ),
        "{refused:?}"
    );
}

#[test]
fn a_producer_id_needs_an_epoch_and_a_sequence() {
    let producer = |id: i64, epoch: i16, base_sequence: i32| {
        let batch = patched(three_records().build(), PRODUCER_ID, &id.to_be_bytes());
        let batch = patched(batch, PRODUCER_EPOCH, &epoch.to_be_bytes());
        validate(
            &patched(batch, BASE_SEQUENCE, &base_sequence.to_be_bytes()),
            &RULES,
            NOW,
        )
    };
    for (id, epoch, base_sequence) in [(5, -1, 0), (5, 0, -1), (-2, 0, 0)] {
        let (id, epoch) = (ProducerId(id), ProducerEpoch(epoch));
        let base_sequence = Sequence(base_sequence);
        let refused = producer(id.0, epoch.0, base_sequence.0).unwrap_err();
        assert_eq!(
            refused,
            InvalidBatch::Producer {
                id,
                epoch,
                base_sequence
            }
        );
    }
    let idempotent = BatchProducer {
        id: ProducerId(5),
        epoch: ProducerEpoch(2),
        base_sequence: Sequence(i32::MAX),
    };
    assert_eq!(producer(5, 2, i32::MAX).unwrap().producer, Some(idempotent));
}

#[test]
fn kafkajs_sends_epoch_and_sequence_0_without_a_producer_id() {
    let batch = three_records()
        .producer(ProducerId::NONE, ProducerEpoch(0), Sequence(0))
        .build();
    assert_eq!(validate(&batch, &RULES, NOW).unwrap().producer, None);
}

/// One record by hand: length 6, attributes, timestamp delta, offset delta, null key, value of 0 bytes, no headers.
const RECORD: [u8; 7] = [12, 0, 0, 0, 1, 0, 0];

/// A batch with these bytes for its `record_count` records.
fn with_records(record_count: i32, records: &[u8]) -> Vec<u8> {
    let mut batch = BatchBuilder::new()
        .record(TimestampMs(1000), None, None)
        .build();
    batch.truncate(RECORDS);
    batch.extend(records);
    let batch_length = batch.len() as i32 - 12;
    batch[BATCH_LENGTH..BATCH_LENGTH + 4].copy_from_slice(&batch_length.to_be_bytes());
    batch[LAST_OFFSET_DELTA..LAST_OFFSET_DELTA + 4]
        .copy_from_slice(&(record_count - 1).to_be_bytes());
    batch[RECORD_COUNT..RECORD_COUNT + 4].copy_from_slice(&record_count.to_be_bytes());
    seal(&mut batch);
    batch
}

#[test]
fn the_records_of_an_uncompressed_batch_must_be_records() {
    use RecordProblem::*;
    assert!(validate(&with_records(1, &RECORD), &RULES, NOW).is_ok());
    let broken: [(&[u8], RecordProblem); 15] = [
        (&[], Length),
        (&[0x80], Length),
        (&[0xff, 0xff, 0xff, 0xff, 0xff, 0], Length),
        (&[1], Length),
        (&[14, 0, 0, 0, 1, 0, 0], Length),
        (&[0], Prefix),
        (&[4, 0, 0x80], Prefix),
        (&[4, 0, 0], Prefix),
        (&[12, 0, 0, 0, 3, 0, 0], Key),
        (&[12, 0, 0, 0, 8, 0, 0], Key),
        (&[12, 0, 0, 0, 1, 3, 0], Value),
        (&[12, 0, 0, 0, 1, 4, 0], Value),
        (&[12, 0, 0, 0, 1, 0, 1], Headers),
        (&[12, 0, 0, 0, 1, 0, 2], Headers),
        (&[16, 0, 0, 0, 1, 0, 2, 1, 1], Headers),
    ];
    for (bytes, problem) in broken {
        assert_eq!(
            refused(&with_records(1, bytes)),
            InvalidBatch::Record { index: 0, problem },
            "{bytes:?}"
        );
    }
    let longer = [14, 0, 0, 0, 1, 0, 0, 9];
    let problem = BytesLeft { left_bytes: 1 };
    assert_eq!(
        refused(&with_records(1, &longer)),
        InvalidBatch::Record { index: 0, problem }
    );
}

/// A batch of records that have so many empty headers each.
fn with_headers(record_count: usize, header_count: usize, codec: Codec) -> Vec<u8> {
    let headers: Vec<(&str, Option<&[u8]>)> = vec![("", None); header_count];
    let mut builder = BatchBuilder::new().codec(codec);
    for _ in 0..record_count {
        builder.push(TimestampMs(1000), Some(b"key"), None, &headers);
    }
    builder.build()
}

#[test]
fn a_record_has_at_most_so_many_headers() {
    for codec in Codec::ALL {
        let most = with_headers(1, RECORD_HEADERS_MAX, codec);
        assert!(validate(&most, &RULES, NOW).is_ok(), "{codec:?}");
        let header_count = RECORD_HEADERS_MAX + 1;
        let too_many = InvalidBatch::Record {
            index: 0,
            problem: RecordProblem::TooManyHeaders { header_count },
        };
        let batch = with_headers(1, header_count, codec);
        assert_eq!(refused(&batch), too_many, "{codec:?}");
    }
}

#[test]
fn headers_are_work_that_is_done_in_steps() {
    let batch = with_headers(20, 1_000, Codec::None);
    let bytes_and_records = batch.len() + 20 * 64;
    let mut work_bytes = bytes_and_records;
    let at_once = validate_within(&batch, RULES, NOW, &mut work_bytes);
    assert_eq!(at_once, Ok(None));
    let mut work_bytes = 1 << 20;
    let at_once = validate_within(&batch, RULES, NOW, &mut work_bytes);
    assert_eq!(at_once, validate(&batch, &RULES, NOW).map(Some));
    let done_bytes = (1 << 20) - work_bytes;
    assert!(done_bytes > 3 * bytes_and_records, "{done_bytes}");
    let again = validate_within(&batch, RULES, NOW, &mut 10_000);
    assert_eq!(again, Ok(None), "it needs more than that");

    let mut validation = Validation::begin(&batch, RULES, InflateBounds::WIDEST, NOW).unwrap();
    let mut step_count = 1;
    while validation.step(20_000).unwrap().is_none() {
        step_count += 1;
    }
    assert!(step_count >= done_bytes / 40_000, "{step_count} steps");
}

#[test]
fn offset_deltas_count_from_0_by_1() {
    let record = |offset_delta: u8| [12, 0, 0, offset_delta * 2, 1, 0, 0];
    let batch = |deltas: &[u8]| {
        let records: Vec<u8> = deltas.iter().flat_map(|&delta| record(delta)).collect();
        with_records(deltas.len() as i32, &records)
    };
    assert!(validate(&batch(&[0, 1, 2]), &RULES, NOW).is_ok());
    for (deltas, index, offset_delta) in
        [(&[0, 2, 1], 1, 2), (&[1, 2, 3], 0, 1), (&[0, 1, 1], 2, 1)]
    {
        let problem = RecordProblem::OffsetDelta { offset_delta };
        assert_eq!(
            refused(&batch(deltas)),
            InvalidBatch::Record { index, problem }
        );
    }
}

#[test]
fn null_keys_on_a_compacted_topic_are_refused_with_all_their_indexes() {
    for codec in Codec::ALL {
        let batch = three_records()
            .record(TimestampMs(1003), None, Some(b"value"))
            .record(TimestampMs(1004), Some(b"key"), Some(b"value"))
            .record(TimestampMs(1005), None, Some(b"value"))
            .codec(codec)
            .build();
        assert!(validate(&batch, &RULES, NOW).is_ok(), "{codec:?}");
        assert_eq!(
            validate(&batch, &COMPACTED, NOW),
            Err(InvalidBatch::NullKeys {
                indexes: vec![3, 5]
            }),
            "{codec:?}"
        );
    }
}

#[test]
fn compressed_garbage_is_refused_where_it_is_inflated() {
    for codec in [Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd] {
        let batch = three_records().codec(codec).build();
        for at in RECORDS..batch.len() {
            let garbled = patched(batch.clone(), at, &[batch[at] ^ 0x55]);
            // A checksum of the codec may be the only thing that changed, so nothing is said about the result, but that it is there.
            let _ = validate(&garbled, &COMPACTED, NOW);
        }
        let garbage = patched(batch.clone(), RECORDS, &[0xee; 12]);
        let refused = validate(&garbage, &COMPACTED, NOW).unwrap_err();
        assert!(
            matches!(refused, InvalidBatch::Inflate(_)),
            "{codec:?}: {refused:?}"
        );
    }
}

#[test]
fn a_batch_that_inflates_beyond_the_cap_is_too_large() {
    let value = vec![0; INFLATED_BATCH_BYTES_MAX];
    let batch = BatchBuilder::new()
        .codec(Codec::Zstd)
        .record(TimestampMs(1000), Some(b"k"), Some(&value))
        .build();
    let too_large = InvalidBatch::InflatesTooLarge {
        inflated_bytes_max: INFLATED_BATCH_BYTES_MAX,
    };
    assert_eq!(validate(&batch, &RULES, NOW), Err(too_large));
}

fn store(batch: &mut [u8], header: &[u8; RECORDS]) {
    batch[..RECORDS].copy_from_slice(header);
}

#[test]
fn attributes_keep_their_other_bits() {
    let attributes = Attributes(0b0000_0001_0111_1010);
    assert_eq!(attributes.codec(), Ok(Codec::Snappy));
    let changed = attributes
        .with_codec(Codec::Zstd)
        .with_timestamp_type(TimestampType::CreateTime);
    assert_eq!(changed, Attributes(0b0000_0001_0111_0100));
}

fn any_codec() -> impl Strategy<Value = Codec> {
    proptest::sample::select(Codec::ALL.to_vec())
}

fn any_rules() -> impl Strategy<Value = ValidationRules> {
    proptest::sample::select(vec![RULES, COMPACTED, STAMPED])
}

prop_compose! {
    fn any_batch()(
        codec in any_codec(),
        records in prop::collection::vec((0i64..2_000_000, any::<Option<Vec<u8>>>(), any::<Option<Vec<u8>>>()), 1..20),
    ) -> Vec<u8> {
        let mut builder = BatchBuilder::new().codec(codec);
        for (timestamp, key, value) in &records {
            builder.push(TimestampMs(*timestamp), key.as_deref(), value.as_deref(), &[]);
        }
        builder.build()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(CASES))]

    #[test]
    fn what_is_built_passes(batch in any_batch()) {
        prop_assert!(validate(&batch, &RULES, NOW).is_ok());
    }

    #[test]
    fn any_bytes_get_an_answer(bytes in prop::collection::vec(any::<u8>(), 0..200), rules in any_rules()) {
        prop_assert!(validate(&bytes, &rules, NOW).is_err());
    }

    /// Bytes are changed and the CRC made right again, so that the checks behind it are reached. What passes can be read to its end.
    #[test]
    fn a_changed_batch_gets_an_answer_and_what_passes_can_be_read(
        mut batch in any_batch(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        rules in any_rules(),
    ) {
        for (at, byte) in changes {
            let at = at.index(batch.len());
            batch[at] = byte;
        }
        seal(&mut batch);
        if let Ok(valid) = validate(&batch, &rules, NOW) {
            let stamped = valid.stamped_header(Offset(1), LeaderEpoch(1));
            store(&mut batch, &stamped);
            prop_assert!(valid.header.crc_fits(&batch));
            let mut reader = RecordReader::new(&batch, InflateBounds::WIDEST).unwrap();
            let mut read_count = 0;
            while reader.next_record().unwrap().is_some() {
                read_count += 1;
            }
            prop_assert_eq!(read_count, valid.record_count());
        }
    }
}
