//! What is asked of the records of compressed batches: the same as of all others, and that their bytes end where the records do.

use std::io::Write;

use corelog::model::TimestampMs;
use corelog::model::limits::{
    CHECK_STEP_BYTES, INFLATE_BUFFER_BYTES, INFLATE_READ_WORK_BYTES, INFLATED_BATCH_BYTES_MAX,
};
use corelog::record::encode::{BatchBuilder, seal};
use corelog::record::inflater::InflateError;
use corelog::record::records::RecordProblem;
use corelog::record::{
    Attributes, Codec, InflateBounds, InvalidBatch, RecordValidation, TimestampType, ValidBatch,
    Validation, ValidationRules, validate,
};
use proptest::prelude::*;

const NOW: TimestampMs = TimestampMs(1_000_000);

const RULES: ValidationRules = ValidationRules {
    batch_bytes_max: 100 << 20,
    timestamp_type: TimestampType::CreateTime,
    timestamp_before_max_ms: i64::MAX,
    timestamp_after_max_ms: 3_600_000,
    is_compacted: false,
    records: RecordValidation::Full,
};
const BY_HEADER: ValidationRules = ValidationRules {
    records: RecordValidation::Header,
    ..RULES
};
const COMPACTED: ValidationRules = ValidationRules {
    is_compacted: true,
    ..BY_HEADER
};

const CODECS: [Codec; 4] = [Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd];

const BATCH_LENGTH: usize = 8;
const ATTRIBUTES: usize = 21;
const LAST_OFFSET_DELTA: usize = 23;
const MAX_TIMESTAMP: usize = 35;
const RECORD_COUNT: usize = 57;
const RECORDS: usize = 61;

/// A batch that declares `record_count` records and has these bytes for them, compressed already where it says so.
fn batch_of(codec: Codec, record_count: i32, records: &[u8]) -> Vec<u8> {
    let mut batch = BatchBuilder::new()
        .record(TimestampMs(1_000), None, None)
        .build();
    batch.truncate(RECORDS);
    batch.extend(records);
    let mut put = |at: usize, bytes: &[u8]| batch[at..at + bytes.len()].copy_from_slice(bytes);
    let batch_length = (RECORDS + records.len()) as i32 - 12;
    put(BATCH_LENGTH, &batch_length.to_be_bytes());
    put(ATTRIBUTES, &Attributes(0).with_codec(codec).0.to_be_bytes());
    put(LAST_OFFSET_DELTA, &(record_count - 1).to_be_bytes());
    put(RECORD_COUNT, &record_count.to_be_bytes());
    seal(&mut batch);
    batch
}

fn compressed(codec: Codec, record_count: i32, records: &[u8]) -> Vec<u8> {
    batch_of(codec, record_count, &codec.compress(records).unwrap())
}

fn refused(batch: &[u8]) -> InvalidBatch {
    validate(batch, &RULES, NOW).expect_err("the batch breaks a rule")
}

/// The check in steps, and how many there were.
fn in_steps(
    batch: &[u8],
    rules: ValidationRules,
    step_bytes: usize,
) -> (Result<ValidBatch, InvalidBatch>, usize) {
    let mut step_count = 1;
    let mut validation = match Validation::begin(batch, rules, InflateBounds::WIDEST, NOW) {
        Ok(validation) => validation,
        Err(refused) => return (Err(refused), step_count),
    };
    loop {
        match validation.step(step_bytes) {
            Ok(None) => step_count += 1,
            Ok(Some(valid)) => return (Ok(valid), step_count),
            Err(refused) => return (Err(refused), step_count),
        }
    }
}

/// One record by hand: length 6, attributes, timestamp delta, offset delta, null key, value of 0 bytes, no headers.
const RECORD: [u8; 7] = [12, 0, 0, 0, 1, 0, 0];

fn varint(value: usize) -> Vec<u8> {
    let mut rest = value << 1;
    let mut bytes = Vec::new();
    while rest >= 0x80 {
        bytes.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    bytes.push(rest as u8);
    bytes
}

/// A record of these fields behind its length, which is the right one.
fn record(fields: &[&[u8]]) -> Vec<u8> {
    let body = fields.concat();
    [varint(body.len()), body].concat()
}

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

#[test]
fn what_inflates_beyond_the_cap_is_too_large() {
    // One record that is larger than everything may be.
    let value = vec![0; INFLATED_BATCH_BYTES_MAX];
    let plain = record(&[&[0, 0, 0, 1], &varint(value.len()), &value, &[0]]);
    let too_large = InvalidBatch::InflatesTooLarge {
        inflated_bytes_max: INFLATED_BATCH_BYTES_MAX,
    };
    let bare_snappy = snap::raw::Encoder::new().compress_vec(&plain).unwrap();
    for (codec, bytes) in [
        (Codec::Snappy, bare_snappy),
        (Codec::Snappy, Codec::Snappy.compress(&plain).unwrap()),
        (Codec::Lz4, Codec::Lz4.compress(&plain).unwrap()),
        (Codec::Zstd, Codec::Zstd.compress(&plain).unwrap()),
    ] {
        let batch = batch_of(codec, 1, &bytes);
        assert_eq!(refused(&batch), too_large, "{codec:?}");
        assert!(validate(&batch, &BY_HEADER, NOW).is_ok());
    }
}

/// Of a window only what was inflated is held: a batch of a high level that inflates to little takes little.
#[test]
fn what_takes_too_much_memory_to_inflate_is_too_large_and_smaller_batches_do() {
    let bounds = InflateBounds::holding(1 << 20);
    let check = |batch: &[u8]| {
        let mut validation = Validation::begin(batch, RULES, bounds, NOW)?;
        loop {
            if let Some(valid) = validation.step(usize::MAX)? {
                return Ok(valid);
            }
        }
    };
    let with_window = |plain: &[u8], log| {
        let mut encoder = zstd::Encoder::new(Vec::new(), 3).unwrap();
        encoder.window_log(log).unwrap();
        encoder.write_all(plain).unwrap();
        encoder.finish().unwrap()
    };
    let bare_snappy = |plain: &[u8]| snap::raw::Encoder::new().compress_vec(plain).unwrap();
    let plain = |value_bytes: usize| {
        let value = vec![0; value_bytes];
        record(&[&[0, 0, 0, 1], &varint(value.len()), &value, &[0]])
    };
    let (small, large) = (plain(900_000), plain(1_200_000));
    let too_much = Err(InvalidBatch::InflatingTakesTooMuch {
        window_bytes_max: 1 << 20,
    });
    for (codec, bytes) in [
        (Codec::Zstd, with_window(&large, 21)),
        (Codec::Zstd, zstd::bulk::compress(&large, 3).unwrap()),
        (Codec::Snappy, bare_snappy(&large)),
    ] {
        assert_eq!(check(&batch_of(codec, 1, &bytes)), too_much, "{codec:?}");
    }
    for (codec, bytes) in [
        (Codec::Zstd, with_window(&small, 27)),
        (Codec::Zstd, with_window(&large, 20)),
        (Codec::Snappy, bare_snappy(&small)),
        (Codec::Snappy, Codec::Snappy.compress(&large).unwrap()),
        (Codec::Lz4, Codec::Lz4.compress(&large).unwrap()),
        (Codec::Gzip, Codec::Gzip.compress(&large).unwrap()),
    ] {
        let valid = check(&batch_of(codec, 1, &bytes));
        assert!(valid.is_ok(), "{codec:?}: {valid:?}");
    }
}

/// The window is what a decoder must keep: one of 2 GiB is refused before it is there.
#[test]
fn a_zstd_frame_that_asks_for_a_huge_window_is_corrupt() {
    let magic = [0x28, 0xb5, 0x2f, 0xfd];
    // No single segment, no content size, no checksum; then 1 << (10 + 21) for the window; an empty last block.
    let frame = [&magic[..], &[0, 21 << 3], &[1, 0, 0]].concat();
    let refused = refused(&batch_of(Codec::Zstd, 1, &frame));
    assert!(matches!(refused, InvalidBatch::Inflate(_)), "{refused:?}");
}

#[test]
fn a_check_in_steps_does_its_share_in_each() {
    let mut builder = BatchBuilder::new();
    for n in 0..2_000u32 {
        let value: Vec<u8> = (0..250).flat_map(|at| (n ^ at).to_be_bytes()).collect();
        builder.push(TimestampMs(1_000), Some(b"key"), Some(&value), &[]);
    }
    let plain = builder.build();
    let inflated_bytes = plain.len() - RECORDS;
    for codec in CODECS {
        let batch = compressed(codec, 2_000, &plain[RECORDS..]);
        let step_bytes = 50_000;
        let (valid, step_count) = in_steps(&batch, RULES, step_bytes);
        assert_eq!(valid, validate(&batch, &RULES, NOW));
        // A step ends at the first full buffer after its share.
        let least_count = inflated_bytes / (step_bytes + INFLATE_BUFFER_BYTES);
        assert!(step_count >= least_count, "{codec:?}: {step_count} steps");
    }
    let (valid, step_count) = in_steps(&plain, RULES, 50_000);
    assert_eq!(valid, validate(&plain, &RULES, NOW));
    assert!(step_count >= plain.len() / 50_000, "{step_count} steps");
}

/// A part of a compressed stream with nothing in it.
fn empty_part(codec: Codec) -> Vec<u8> {
    match codec {
        Codec::Gzip | Codec::Zstd => codec.compress(&[]).unwrap(),
        // Behind its length: snappy's block of 0 bytes, and lz4's of a literal of 0 bytes.
        Codec::Snappy => vec![0, 0, 0, 1, 0],
        Codec::Lz4 => vec![1, 0, 0, 0, 0],
        Codec::None => unreachable!("it has no parts"),
    }
}

#[test]
fn a_batch_of_many_empty_parts_is_corrupt() {
    for codec in CODECS {
        let records = match codec {
            // Without a checksum of each block.
            Codec::Lz4 => {
                let encoder = lz4::EncoderBuilder::new()
                    .block_checksum(lz4::liblz4::BlockChecksum::NoBlockChecksum)
                    .build(Vec::new());
                let mut encoder = encoder.unwrap();
                std::io::Write::write_all(&mut encoder, &RECORD).unwrap();
                encoder.finish().0
            }
            codec => codec.compress(&RECORD).unwrap(),
        };
        // Where the first part begins.
        let head_bytes = match codec {
            Codec::Snappy => 16,
            Codec::Lz4 => 7,
            _ => 0,
        };
        let (head, body) = records.split_at(head_bytes);
        let with_empty = |count| {
            let parts = empty_part(codec).repeat(count);
            batch_of(codec, 1, &[head, &parts, body].concat())
        };
        let few = validate(&with_empty(3), &RULES, NOW);
        assert!(few.is_ok(), "{codec:?}: {few:?}");
        let many = refused(&with_empty(50_000));
        assert!(
            matches!(many, InvalidBatch::Inflate(InflateError::Corrupt { .. })),
            "{codec:?}: {many:?}"
        );
    }
}

/// One gzip member, or one frame of zstd, of stored blocks: before each byte `empty_count` that hold nothing.
fn with_empty_blocks(codec: Codec, bytes: &[u8], empty_count: usize) -> Vec<u8> {
    let (empty, of_one, head): (&[u8], fn(u8) -> Vec<u8>, &[u8]) = match codec {
        // RFC 1951, 3.2.4: final and type; the length, and its complement.
        Codec::Gzip => (
            &[0, 0, 0, 0xff, 0xff],
            |byte| vec![0, 1, 0, 0xfe, 0xff, byte],
            &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff],
        ),
        // RFC 8878, 3.1.1.2: final, type and size in 3 bytes. A window of 1 KiB.
        _ => (
            &[0, 0, 0],
            |byte| vec![1 << 3, 0, 0, byte],
            &[0x28, 0xb5, 0x2f, 0xfd, 0, 0],
        ),
    };
    let blocks = bytes
        .iter()
        .flat_map(|byte| [empty.repeat(empty_count), of_one(*byte)].concat());
    let mut stream = [head, &blocks.collect::<Vec<_>>()].concat();
    match codec {
        Codec::Gzip => {
            let mut crc = flate2::Crc::new();
            crc.update(bytes);
            stream.extend([1, 0, 0, 0xff, 0xff]);
            stream.extend(crc.sum().to_le_bytes());
            stream.extend((bytes.len() as u32).to_le_bytes());
        }
        _ => stream.extend([1, 0, 0]),
    }
    stream
}

#[test]
fn many_blocks_that_hold_nothing_are_corrupt_or_checked_in_many_steps() {
    for codec in [Codec::Gzip, Codec::Zstd] {
        let few = with_empty_blocks(codec, &RECORD, 3);
        let few = validate(&batch_of(codec, 1, &few), &RULES, NOW);
        assert!(few.is_ok(), "{codec:?}: {few:?}");
        let many = with_empty_blocks(codec, &RECORD, 200_000);
        let many = refused(&batch_of(codec, 1, &many));
        assert!(
            matches!(many, InvalidBatch::Inflate(InflateError::Corrupt { .. })),
            "{codec:?}: {many:?}"
        );
        let records: Vec<u8> = (0..100u32)
            .flat_map(|n| record(&[&[0, 0], &varint(n as usize), &[1, 0, 0]]))
            .collect();
        let spread = with_empty_blocks(codec, &records, 2_000);
        let (valid, step_count) = in_steps(&batch_of(codec, 100, &spread), RULES, CHECK_STEP_BYTES);
        assert!(valid.is_ok(), "{codec:?}: {valid:?}");
        let least_count = spread.len() / CHECK_STEP_BYTES;
        assert!(step_count >= least_count, "{codec:?}: {step_count} steps");
    }
}

#[test]
fn many_small_parts_are_checked_in_many_steps() {
    let records: Vec<u8> = (0..2_000u32)
        .flat_map(|n| record(&[&[0, 0], &varint(n as usize), &[1, 0, 0]]))
        .collect();
    for codec in [Codec::Gzip, Codec::Zstd] {
        let parts = records.iter().map(|byte| codec.compress(&[*byte]).unwrap());
        let batch = batch_of(codec, 2_000, &parts.collect::<Vec<_>>().concat());
        let (valid, step_count) = in_steps(&batch, RULES, CHECK_STEP_BYTES);
        assert!(valid.is_ok(), "{codec:?}: {valid:?}");
        let least_count = records.len() * INFLATE_READ_WORK_BYTES / (2 * CHECK_STEP_BYTES);
        assert!(step_count >= least_count, "{codec:?}: {step_count} steps");
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
