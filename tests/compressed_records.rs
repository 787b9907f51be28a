//! What is asked of the records of compressed batches: the same as of all others, and that their bytes end where the records do.

use corelog::model::TimestampMs;
use corelog::model::limits::INFLATE_BUFFER_BYTES;
use corelog::record::encode::{BatchBuilder, seal};
use corelog::record::inflater::InflateError;
use corelog::record::records::RecordProblem;
use corelog::record::{Codec, InvalidBatch, RecordValidation, ValidationRules, validate};
use proptest::prelude::*;

use compressed_batches::{
    CODECS, NOW, RECORD, RECORDS, RULES, batch_of, compressed, in_steps, record, refused, varint,
};

#[path = "support/compressed_batches.rs"]
mod compressed_batches;

const BY_HEADER: ValidationRules = ValidationRules {
    records: RecordValidation::Header,
    ..RULES
};
const COMPACTED: ValidationRules = ValidationRules {
    is_compacted: true,
    ..BY_HEADER
};

const MAX_TIMESTAMP: usize = 35;
const RECORD_COUNT: usize = 57;

#[test]
fn the_records_of_a_compressed_batch_must_be_records() {
    use RecordProblem::*;
    let broken: [(&[u8], RecordProblem); 11] = [
        (&[], Length),
        (&[0x80], Length),
        (&[0xff, 0xff, 0xff, 0xff, 0xff, 0], Length),
        (&[1], Length),
        (&[14, 0, 0, 0, 1, 0, 0], Length),
        (&[0], Prefix),
        (&[12, 0, 0, 0, 3, 0, 0], Key),
        (&[12, 0, 0, 0, 8, 0, 0], Key),
        (&[12, 0, 0, 0, 1, 4, 0], Value),
        (&[12, 0, 0, 0, 1, 0, 2], Headers),
        (&[14, 0, 0, 0, 1, 0, 0, 9], BytesLeft { left_bytes: 1 }),
    ];
    for codec in CODECS {
        assert!(validate(&compressed(codec, 1, &RECORD), &RULES, NOW).is_ok());
        for (bytes, problem) in broken {
            assert_eq!(
                refused(&compressed(codec, 1, bytes)),
                InvalidBatch::Record { index: 0, problem },
                "{codec:?} {bytes:?}"
            );
        }
    }
}

/// Records that are larger than the buffer they are inflated into, whose fields come one by one.
#[test]
fn a_large_record_of_a_compressed_batch_must_be_one() {
    use RecordProblem::*;
    let large = vec![7; 3 * INFLATE_BUFFER_BYTES];
    let length = &varint(large.len())[..];
    let too_long = &varint(2 * large.len())[..];
    let prefix = &[0, 0, 0][..];
    let (null, none) = (&[1][..], &[0][..]);
    let good = [
        record(&[prefix, length, &large, null, none]),
        record(&[prefix, null, length, &large, none]),
        record(&[
            prefix,
            none,
            none,
            &varint(2),
            none,
            length,
            &large,
            &varint(1),
            b"k",
            null,
        ]),
    ];
    for (index, good) in good.iter().enumerate() {
        for codec in CODECS {
            let valid = validate(&compressed(codec, 1, good), &RULES, NOW);
            assert!(valid.is_ok(), "{index} {codec:?}: {valid:?}");
        }
    }
    let broken = [
        (record(&[prefix, too_long, &large, null, none]), Key),
        (record(&[prefix, &[3], &large, null, none]), Key),
        (record(&[prefix, null, too_long, &large, none]), Value),
        (record(&[prefix, null, &[3], &large, none]), Value),
        (record(&[prefix, null, length, &large, &varint(1)]), Headers),
        (record(&[prefix, null, length, &large, null]), Headers),
        (
            record(&[prefix, null, none, &varint(1), null, length, &large]),
            Headers,
        ),
        (
            record(&[prefix, null, none, &varint(1), none, too_long, &large]),
            Headers,
        ),
        (
            record(&[prefix, null, length, &large, none, b"more"]),
            BytesLeft { left_bytes: 4 },
        ),
        (
            record(&[prefix, null, length, &large, none])[..large.len()].to_vec(),
            Length,
        ),
    ];
    for (bytes, problem) in broken {
        for codec in CODECS {
            assert_eq!(
                refused(&compressed(codec, 1, &bytes)),
                InvalidBatch::Record { index: 0, problem },
                "{codec:?}"
            );
        }
    }
}

#[test]
fn offset_deltas_of_a_compressed_batch_count_from_0_by_1() {
    let record = |offset_delta: u8| [12, 0, 0, offset_delta * 2, 1, 0, 0];
    for codec in CODECS {
        for (deltas, index, offset_delta) in
            [([0, 2, 1], 1, 2), ([1, 2, 3], 0, 1), ([0, 1, 1], 2, 1)]
        {
            let records: Vec<u8> = deltas.iter().flat_map(|&delta| record(delta)).collect();
            let problem = RecordProblem::OffsetDelta { offset_delta };
            assert_eq!(
                refused(&compressed(codec, 3, &records)),
                InvalidBatch::Record { index, problem }
            );
        }
    }
}

#[test]
fn a_compressed_batch_has_as_many_records_as_it_declares() {
    for codec in CODECS {
        let two = [RECORD, [12, 0, 0, 2, 1, 0, 0]].concat();
        assert!(validate(&compressed(codec, 2, &two), &RULES, NOW).is_ok());
        assert_eq!(
            refused(&compressed(codec, 1, &two)),
            InvalidBatch::RecordsBehindLast { record_count: 1 }
        );
        let problem = RecordProblem::Length;
        assert_eq!(
            refused(&compressed(codec, 3, &two)),
            InvalidBatch::Record { index: 2, problem }
        );
        assert_eq!(
            refused(&compressed(codec, i32::MAX, &two)),
            InvalidBatch::Record { index: 2, problem }
        );
    }
}

#[test]
fn noise_and_what_follows_the_compressed_bytes_are_corrupt() {
    for codec in CODECS {
        let noise: Vec<u8> = (0..200u8).map(|n| n.wrapping_mul(151) ^ 0xee).collect();
        let inflate = refused(&batch_of(codec, 1, &noise));
        assert!(matches!(inflate, InvalidBatch::Inflate(_)), "{inflate:?}");
        let good = codec.compress(&RECORD).unwrap();
        for more in [
            &[0][..],
            &[0xee; 9],
            b"a lot of other bytes that mean nothing",
        ] {
            let refused = refused(&batch_of(codec, 1, &[&good[..], more].concat()));
            assert!(
                matches!(
                    refused,
                    InvalidBatch::Inflate(InflateError::Corrupt { .. })
                        | InvalidBatch::BytesBehindStream { .. }
                ),
                "{codec:?} {more:?}: {refused:?}"
            );
        }
        for cut in 0..good.len() {
            assert!(
                validate(&batch_of(codec, 1, &good[..cut]), &RULES, NOW).is_err(),
                "{codec:?} cut to {cut} of {} bytes",
                good.len()
            );
        }
    }
}

/// What clients send beside what `Codec::compress` makes.
#[test]
fn every_clients_way_to_compress_passes() {
    let mut builder = BatchBuilder::new();
    for n in 0..5_000i64 {
        builder.push(TimestampMs(n), Some(b"key"), Some(&n.to_be_bytes()), &[]);
    }
    let plain = builder.build();
    let records = &plain[RECORDS..];
    let bare_snappy = snap::raw::Encoder::new().compress_vec(records).unwrap();
    let linked_lz4 = {
        let mut encoder = lz4::EncoderBuilder::new()
            .block_mode(lz4::BlockMode::Linked)
            .checksum(lz4::ContentChecksum::ChecksumEnabled)
            .content_size(records.len() as u64)
            .build(Vec::new())
            .unwrap();
        std::io::Write::write_all(&mut encoder, records).unwrap();
        encoder.finish().0
    };
    let gzip_members = [
        Codec::Gzip.compress(&records[..30_000]).unwrap(),
        Codec::Gzip.compress(&records[30_000..]).unwrap(),
    ]
    .concat();
    let zstd_with_size = zstd::bulk::compress(records, 1).unwrap();
    let zstd_frames = [
        zstd::encode_all(&records[..30_000], 19).unwrap(),
        zstd::encode_all(&records[30_000..], 1).unwrap(),
    ]
    .concat();
    for (name, codec, bytes) in [
        ("bare snappy", Codec::Snappy, bare_snappy),
        ("linked lz4 blocks with a checksum", Codec::Lz4, linked_lz4),
        ("several gzip members", Codec::Gzip, gzip_members),
        ("zstd with its size", Codec::Zstd, zstd_with_size),
        ("several zstd frames", Codec::Zstd, zstd_frames),
    ] {
        let valid = validate(&batch_of(codec, 5_000, &bytes), &RULES, NOW);
        assert!(valid.is_ok(), "{name}: {valid:?}");
    }
}

#[test]
fn by_the_header_only_batches_of_compacted_topics_are_looked_into() {
    for codec in CODECS {
        let lying = compressed(codec, 2, &RECORD);
        assert!(validate(&lying, &BY_HEADER, NOW).is_ok());
        let problem = RecordProblem::Length;
        let lies = InvalidBatch::Record { index: 1, problem };
        assert_eq!(validate(&lying, &COMPACTED, NOW), Err(lies));
        let indexes = vec![0];
        assert_eq!(
            validate(&compressed(codec, 1, &RECORD), &COMPACTED, NOW),
            Err(InvalidBatch::NullKeys { indexes })
        );
    }
    // Without the records only the header's time can be held against the clock.
    let mut late = compressed(Codec::Lz4, 1, &RECORD);
    late[MAX_TIMESTAMP..MAX_TIMESTAMP + 8].copy_from_slice(&i64::MAX.to_be_bytes());
    seal(&mut late);
    let refused = validate(&late, &BY_HEADER, NOW).unwrap_err();
    assert!(matches!(
        refused,
        InvalidBatch::Timestamp { index: None, .. }
    ));
}

#[test]
fn timestamps_of_a_compressed_batch_are_its_records() {
    for codec in CODECS {
        let batch = |timestamps: [i64; 3]| {
            let mut builder = BatchBuilder::new().codec(codec);
            for timestamp in timestamps {
                builder.push(TimestampMs(timestamp), None, None, &[]);
            }
            builder.build()
        };
        let mut wrong_max = batch([1_000, 7_000, 3_000]);
        wrong_max[MAX_TIMESTAMP..MAX_TIMESTAMP + 8].copy_from_slice(&5i64.to_be_bytes());
        seal(&mut wrong_max);
        let valid = validate(&wrong_max, &RULES, NOW).unwrap();
        assert_eq!(valid.max_timestamp(), TimestampMs(7_000));
        let refused = refused(&batch([1_000, NOW.0 + 3_600_001, 3_000]));
        assert!(
            matches!(refused, InvalidBatch::Timestamp { index: Some(1), .. }),
            "{refused:?}"
        );
    }
}

fn any_codec() -> impl Strategy<Value = Codec> {
    proptest::sample::select(CODECS.to_vec())
}

prop_compose! {
    fn any_records()(
        records in prop::collection::vec(
            (
                0i64..2_000_000,
                any::<Option<Vec<u8>>>(),
                prop::option::of(0usize..40_000),
                prop::collection::vec(("[a-z]{0,5}", prop::option::of(0usize..20_000)), 0..3),
            ),
            1..8,
        ),
    ) -> Vec<u8> {
        let mut builder = BatchBuilder::new();
        for (timestamp, key, value_bytes, headers) in &records {
            let value = value_bytes.map(|bytes| vec![5; bytes]);
            let headers: Vec<(&str, Option<Vec<u8>>)> = headers
                .iter()
                .map(|(name, bytes)| (name.as_str(), bytes.map(|bytes| vec![6; bytes])))
                .collect();
            let headers: Vec<(&str, Option<&[u8]>)> =
                headers.iter().map(|(name, value)| (*name, value.as_deref())).collect();
            builder.push(TimestampMs(*timestamp), key.as_deref(), value.as_deref(), &headers);
        }
        builder.build()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Bytes of the records are changed before they are compressed: the walk then judges as the one over uncompressed records does, in one go
    /// or in steps.
    #[test]
    fn a_compressed_batch_is_judged_as_the_same_batch_uncompressed(
        mut plain in any_records(),
        codec in any_codec(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3),
        step_bytes in 1usize..20_000,
    ) {
        let record_count = i32::from_be_bytes(plain[RECORD_COUNT..RECORDS].try_into().unwrap());
        for (at, byte) in changes {
            // The front of a record is where its fields are.
            let at = RECORDS + at.index((plain.len() - RECORDS).min(60));
            plain[at] = byte;
        }
        seal(&mut plain);
        let as_plain = validate(&plain, &RULES, NOW);
        let batch = compressed(codec, record_count, &plain[RECORDS..]);
        let batch = {
            // The header has the same times.
            let mut batch = batch;
            batch[27..43].copy_from_slice(&plain[27..43]);
            seal(&mut batch);
            batch
        };
        let as_compressed = validate(&batch, &RULES, NOW);
        prop_assert_eq!(&in_steps(&batch, RULES, step_bytes).0, &as_compressed);
        prop_assert_eq!(&in_steps(&plain, RULES, step_bytes).0, &as_plain);
        match (as_plain, as_compressed) {
            (Ok(plain), Ok(compressed)) => {
                prop_assert_eq!(plain.max_timestamp(), compressed.max_timestamp());
            }
            (
                Err(InvalidBatch::Record { index: plain, .. }),
                Err(InvalidBatch::Record { index: compressed, .. }),
            ) => prop_assert_eq!(plain, compressed),
            (
                Err(InvalidBatch::BytesBehindRecords { .. }),
                Err(InvalidBatch::RecordsBehindLast { .. }),
            ) => {}
            (plain, compressed) => prop_assert_eq!(plain.err(), compressed.err()),
        }
    }
}
