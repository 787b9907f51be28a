//! Batches whose compressed records are made by hand.

use corelog::model::TimestampMs;
use corelog::record::encode::{BatchBuilder, seal};
use corelog::record::{
    Attributes, Codec, InflateBounds, InvalidBatch, RecordValidation, TimestampType, ValidBatch,
    Validation, ValidationRules, validate,
};

pub const NOW: TimestampMs = TimestampMs(1_000_000);

pub const RULES: ValidationRules = ValidationRules {
    batch_bytes_max: 100 << 20,
    timestamp_type: TimestampType::CreateTime,
    timestamp_before_max_ms: i64::MAX,
    timestamp_after_max_ms: 3_600_000,
    is_compacted: false,
    records: RecordValidation::Full,
};

pub const CODECS: [Codec; 4] = [Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd];

const BATCH_LENGTH: usize = 8;
const ATTRIBUTES: usize = 21;
const LAST_OFFSET_DELTA: usize = 23;
const RECORD_COUNT: usize = 57;
/// Where the records begin.
pub const RECORDS: usize = 61;

/// A batch that declares `record_count` records and has these bytes for them, compressed already where it says so.
pub fn batch_of(codec: Codec, record_count: i32, records: &[u8]) -> Vec<u8> {
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

pub fn refused(batch: &[u8]) -> InvalidBatch {
    validate(batch, &RULES, NOW).expect_err("the batch breaks a rule")
}

/// The check in steps, and how many there were.
pub fn in_steps(
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
pub const RECORD: [u8; 7] = [12, 0, 0, 0, 1, 0, 0];

pub fn varint(value: usize) -> Vec<u8> {
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
pub fn record(fields: &[&[u8]]) -> Vec<u8> {
    let body = fields.concat();
    [varint(body.len()), body].concat()
}

pub fn compressed(codec: Codec, record_count: i32, records: &[u8]) -> Vec<u8> {
    batch_of(codec, record_count, &codec.compress(records).unwrap())
}
