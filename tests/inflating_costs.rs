//! What it costs to inflate a batch, in memory and in time at a stretch, is bounded, whatever the batch is.

use std::collections::HashMap;
use std::io::Write;

use corelog::model::TimestampMs;
use corelog::model::limits::{
    CHECK_STEP_BYTES, INFLATE_BUFFER_BYTES, INFLATE_READ_WORK_BYTES, INFLATED_BATCH_BYTES_MAX,
};
use corelog::record::encode::BatchBuilder;
use corelog::record::inflater::InflateError;
use corelog::record::{
    Codec, InflateBounds, InvalidBatch, RecordValidation, Validation, ValidationRules, validate,
};

use compressed_batches::{
    CODECS, NOW, RECORD, RECORDS, RULES, batch_of, compressed, in_steps, record, refused, varint,
};

#[path = "support/compressed_batches.rs"]
mod compressed_batches;

const BY_HEADER: ValidationRules = ValidationRules {
    records: RecordValidation::Header,
    ..RULES
};

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

/// One gzip member, or one frame of zstd, of stored blocks: before each of these pieces `empty_count` that hold nothing.
fn with_empty_blocks(codec: Codec, pieces: &[&[u8]], empty_count: usize) -> Vec<u8> {
    let (head, empty): (&[u8], &[u8]) = match codec {
        Codec::Gzip => (
            &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff],
            &[0, 0, 0, 0xff, 0xff],
        ),
        // A window of 8 KiB.
        _ => (&[0x28, 0xb5, 0x2f, 0xfd, 0, 3 << 3], &[0, 0, 0]),
    };
    let mut stream = head.to_vec();
    let mut crc = flate2::Crc::new();
    for piece in pieces {
        stream.extend(empty.repeat(empty_count));
        let size = piece.len() as u16;
        match codec {
            // RFC 1951, 3.2.4: final and type; the length, and its complement.
            Codec::Gzip => {
                stream.push(0);
                stream.extend(size.to_le_bytes());
                stream.extend((!size).to_le_bytes());
            }
            // RFC 8878, 3.1.1.2: final, type and size in 3 bytes.
            _ => stream.extend(&(u32::from(size) << 3).to_le_bytes()[..3]),
        }
        stream.extend(*piece);
        crc.update(piece);
    }
    match codec {
        Codec::Gzip => {
            stream.extend([1, 0, 0, 0xff, 0xff]);
            stream.extend(crc.sum().to_le_bytes());
            stream.extend(crc.amount().to_le_bytes());
        }
        _ => stream.extend([1, 0, 0]),
    }
    stream
}

fn assert_corrupt(codec: Codec, record_count: i32, stream: &[u8]) {
    let refused = refused(&batch_of(codec, record_count, stream));
    assert!(
        matches!(refused, InvalidBatch::Inflate(InflateError::Corrupt { .. })),
        "{codec:?}: {refused:?}"
    );
}

/// `count` records with a value of so many bytes each.
fn records_of(count: usize, value_bytes: usize) -> Vec<Vec<u8>> {
    let value = vec![7; value_bytes];
    let of = |n| {
        record(&[
            &[0, 0],
            &varint(n),
            &[1],
            &varint(value.len()),
            &value,
            &[0],
        ])
    };
    (0..count).map(of).collect()
}

#[test]
fn many_blocks_that_hold_nothing_are_corrupt_or_checked_in_many_steps() {
    for codec in [Codec::Gzip, Codec::Zstd] {
        let few = with_empty_blocks(codec, &[&RECORD], 3);
        let few = validate(&batch_of(codec, 1, &few), &RULES, NOW);
        assert!(few.is_ok(), "{codec:?}: {few:?}");
        assert_corrupt(codec, 1, &with_empty_blocks(codec, &[&RECORD], 200_000));
        let records = records_of(100, 5_000);
        let records: Vec<&[u8]> = records.iter().map(Vec::as_slice).collect();
        let spread = with_empty_blocks(codec, &records, 2_000);
        let (valid, step_count) = in_steps(&batch_of(codec, 100, &spread), RULES, CHECK_STEP_BYTES);
        assert!(valid.is_ok(), "{codec:?}: {valid:?}");
        let least_count = spread.len() / CHECK_STEP_BYTES;
        assert!(step_count >= least_count, "{codec:?}: {step_count} steps");
    }
}

/// A block of gzip that holds nothing may take no more than 10 bits.
#[test]
fn empty_blocks_of_gzips_fixed_code_are_corrupt() {
    let (mut bits, mut bit_count) = (0u64, 0);
    let mut stream = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
    for _ in 0..800_000 {
        bits |= 0b010 << bit_count;
        bit_count += 10;
        while bit_count >= 8 {
            stream.push(bits as u8);
            bits >>= 8;
            bit_count -= 8;
        }
    }
    assert_corrupt(Codec::Gzip, 1, &stream);
}

#[test]
fn a_gzip_member_may_have_a_name() {
    for name_bytes in [1, 14, 3_000] {
        let named = flate2::GzBuilder::new().filename("x".repeat(name_bytes));
        let mut encoder = named.write(Vec::new(), flate2::Compression::default());
        encoder.write_all(&RECORD).unwrap();
        let batch = batch_of(Codec::Gzip, 1, &encoder.finish().unwrap());
        let valid = validate(&batch, &RULES, NOW);
        assert!(valid.is_ok(), "{name_bytes}: {valid:?}");
    }
}

#[test]
fn a_batch_in_many_small_parts_is_corrupt() {
    for codec in [Codec::Gzip, Codec::Zstd] {
        let in_parts = |plain: &[u8], part_bytes| {
            let mut made = HashMap::new();
            let parts = plain.chunks(part_bytes).map(|part| {
                let made = made.entry(part).or_insert_with(|| codec.compress(part));
                made.as_ref().unwrap().clone()
            });
            parts.collect::<Vec<_>>().concat()
        };
        // Many records, or one that fits into a buffer, or one that does not.
        for (count, value_bytes) in [(2_000, 1), (1, 16_300), (1, 100_000)] {
            let plain = records_of(count, value_bytes).concat();
            assert_corrupt(codec, count as i32, &in_parts(&plain, 1));
            let larger = batch_of(
                codec,
                count as i32,
                &in_parts(&plain, INFLATE_READ_WORK_BYTES),
            );
            let valid = validate(&larger, &RULES, NOW);
            assert!(valid.is_ok(), "{codec:?}: {valid:?}");
        }
    }
}
