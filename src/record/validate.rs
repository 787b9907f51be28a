//! The checks that a producer's batch must pass before it is appended.

use crate::model::limits::{
    INFLATED_BATCH_BYTES_MAX, RECORD_BATCH_HEADER_BYTES, RECORD_ERRORS_MAX,
};
use crate::model::{LeaderEpoch, Offset, ProducerEpoch, ProducerId, Sequence, TimestampMs};

use super::compression::{Codec, InflateError, UnknownCodec};
use super::crc::crc32c;
use super::header::{self, CRC_COVERS_FROM, HeaderError, MAGIC, RecordBatchHeader, TimestampType};
use super::records::{RecordBody, RecordProblem, RecordReader, RecordsError, split_record};

/// What a topic asks of the batches that it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValidationRules {
    /// `max.message.bytes`: the largest batch, header included.
    pub batch_bytes_max: usize,
    /// `message.timestamp.type`
    pub timestamp_type: TimestampType,
    /// `message.timestamp.before.max.ms`
    pub timestamp_before_max_ms: i64,
    /// `message.timestamp.after.max.ms`
    pub timestamp_after_max_ms: i64,
    /// `cleanup.policy` has `compact`: a record without a key could never be compacted.
    pub is_compacted: bool,
}

/// Why a batch is refused. The Kafka error that answers it stands at each.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidBatch {
    /// INVALID_RECORD
    #[error("there is no record batch")]
    Empty,
    /// CORRUPT_MESSAGE
    #[error("{field_bytes} bytes are too few for a record batch")]
    TooShort { field_bytes: usize },
    /// INVALID_RECORD
    #[error(
        "messages of the old magic {magic} are not taken, only record batches of magic {MAGIC}"
    )]
    OldMagic { magic: i8 },
    /// CORRUPT_MESSAGE
    #[error("magic {magic} does not exist")]
    UnknownMagic { magic: i8 },
    /// CORRUPT_MESSAGE
    #[error("the batch declares a length of {batch_length} in a field of {field_bytes} bytes")]
    Length {
        batch_length: i32,
        field_bytes: usize,
    },
    /// MESSAGE_TOO_LARGE
    #[error("the batch has {batch_bytes} bytes; max.message.bytes is {batch_bytes_max}")]
    TooLarge {
        batch_bytes: usize,
        batch_bytes_max: usize,
    },
    /// CORRUPT_MESSAGE
    #[error("the batch's CRC is {computed:#010x}, but it declares {declared:#010x}")]
    Crc { declared: u32, computed: u32 },
    /// INVALID_RECORD
    #[error(
        "{behind_bytes} bytes stand behind the one batch of {batch_bytes} bytes that is allowed"
    )]
    BytesBehindBatch {
        batch_bytes: usize,
        behind_bytes: usize,
    },
    /// UNSUPPORTED_COMPRESSION_TYPE
    #[error(transparent)]
    Codec(#[from] UnknownCodec),
    /// INVALID_RECORD
    #[error("clients may not write control batches")]
    Control,
    /// INVALID_TXN_STATE
    #[error("the batch is part of a transaction, and no transaction is open here")]
    Transactional,
    /// INVALID_RECORD
    #[error("clients may not set a delete horizon")]
    DeleteHorizon,
    /// INVALID_TIMESTAMP
    #[error("clients may not set the timestamp type to LogAppendTime")]
    LogAppendTimeFromClient,
    /// INVALID_RECORD
    #[error(
        "the batch declares {record_count} records and a last offset delta of {last_offset_delta}"
    )]
    Count {
        record_count: i32,
        last_offset_delta: i32,
    },
    /// INVALID_RECORD
    #[error("producer id {id} with epoch {epoch} and base sequence {base_sequence}")]
    Producer {
        id: ProducerId,
        epoch: ProducerEpoch,
        base_sequence: Sequence,
    },
    /// INVALID_RECORD
    #[error("record {index} of the batch: {problem}")]
    Record { index: i32, problem: RecordProblem },
    /// INVALID_RECORD
    #[error("{behind_bytes} bytes stand behind the {record_count} records that the batch declares")]
    BytesBehindRecords {
        record_count: i32,
        behind_bytes: usize,
    },
    /// INVALID_RECORD, with the indexes as record errors: a client gives up these, and may send the others again.
    #[error("a record has no key, but the topic is compacted")]
    NullKeys { indexes: Vec<i32> },
    /// INVALID_TIMESTAMP, with the index, if it is known, among the record errors
    #[error(
        "timestamp {timestamp} is out of range: the clock says {now}, message.timestamp.before.max.ms is {before_max_ms} \
         and message.timestamp.after.max.ms {after_max_ms}"
    )]
    Timestamp {
        index: Option<i32>,
        timestamp: TimestampMs,
        now: TimestampMs,
        before_max_ms: i64,
        after_max_ms: i64,
    },
    /// CORRUPT_MESSAGE
    #[error(transparent)]
    Inflate(InflateError),
    /// MESSAGE_TOO_LARGE
    #[error("the batch inflates to more than {inflated_bytes_max} bytes")]
    InflatesTooLarge { inflated_bytes_max: usize },
    /// INVALID_RECORD
    #[error("more records stand in the compressed batch than the {record_count} that it declares")]
    RecordsBehindLast { record_count: i32 },
}

/// Who sent a batch, where it came from an idempotent producer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchProducer {
    pub id: ProducerId,
    pub epoch: ProducerEpoch,
    pub base_sequence: Sequence,
}

/// A batch that passed. The bytes themselves stay where they are; the header here is the one to store in front of the records, once
/// [`ValidBatch::stamped_header`] has put in what the broker decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValidBatch {
    /// As it will be stored, but for base offset and leader epoch, which are still the producer's.
    pub header: RecordBatchHeader,
    pub codec: Codec,
    pub producer: Option<BatchProducer>,
    bytes: [u8; RECORD_BATCH_HEADER_BYTES],
}

impl ValidBatch {
    pub fn size_bytes(&self) -> usize {
        self.header.size_bytes()
    }

    pub fn record_count(&self) -> i32 {
        self.header.record_count
    }

    pub fn max_timestamp(&self) -> TimestampMs {
        self.header.max_timestamp
    }

    /// The time that the broker stamped, if the topic stamps: what a produce response calls its log append time.
    pub fn log_append_time(&self) -> Option<TimestampMs> {
        (self.header.attributes.timestamp_type() == TimestampType::LogAppendTime)
            .then_some(self.header.max_timestamp)
    }

    /// The header to store: it replaces the first 61 bytes of the batch.
    pub fn stamped_header(
        &self,
        base_offset: Offset,
        leader_epoch: LeaderEpoch,
    ) -> [u8; RECORD_BATCH_HEADER_BYTES] {
        let mut bytes = self.bytes;
        header::stamp(&mut bytes, base_offset, leader_epoch);
        bytes
    }
}

/// Checks `field`, the whole `records` field of one partition in a produce request: it must be one batch that `rules` allow.
///
/// Costs one pass of the CRC and, if the records are not compressed, a hop over them. Compressed records are inflated only on a
/// compacted topic, whose records must have keys.
pub fn validate(
    field: &[u8],
    rules: &ValidationRules,
    now: TimestampMs,
) -> Result<ValidBatch, InvalidBatch> {
    let mut batch = check_header(field, rules)?;
    let header = &batch.header;
    let records = &field[RECORD_BATCH_HEADER_BYTES..];
    let max_timestamp = match batch.codec {
        Codec::None => hop_over_records(records, header, rules, now)?,
        _ => {
            if rules.timestamp_type == TimestampType::CreateTime {
                check_timestamp(header.max_timestamp, None, rules, now)?;
            }
            if rules.is_compacted {
                check_compressed_keys(field)?;
            }
            header.max_timestamp
        }
    };
    let stored_max = match rules.timestamp_type {
        TimestampType::CreateTime => max_timestamp,
        TimestampType::LogAppendTime => now,
    };
    // A wrong max timestamp is put right, as Kafka does: the time index is built on it.
    if stored_max != header.max_timestamp || rules.timestamp_type == TimestampType::LogAppendTime {
        header::stamp_timestamps(&mut batch.bytes, rules.timestamp_type, stored_max);
        batch.header = RecordBatchHeader::from_array(&batch.bytes)
            .expect("a stamp leaves the shape of a header");
    }
    Ok(batch)
}

/// Everything that needs no look at the single records.
fn check_header(field: &[u8], rules: &ValidationRules) -> Result<ValidBatch, InvalidBatch> {
    if field.is_empty() {
        return Err(InvalidBatch::Empty);
    }
    let header = RecordBatchHeader::parse(field).map_err(|error| match error {
        HeaderError::TooShort { .. } => InvalidBatch::TooShort {
            field_bytes: field.len(),
        },
        HeaderError::Length { batch_length } => InvalidBatch::Length {
            batch_length,
            field_bytes: field.len(),
        },
        HeaderError::Magic {
            magic: magic @ (0 | 1),
        } => InvalidBatch::OldMagic { magic },
        HeaderError::Magic { magic } => InvalidBatch::UnknownMagic { magic },
    })?;
    let batch_bytes = header.size_bytes();
    if batch_bytes > field.len() {
        return Err(InvalidBatch::Length {
            batch_length: header.batch_length,
            field_bytes: field.len(),
        });
    }
    if batch_bytes > rules.batch_bytes_max {
        return Err(InvalidBatch::TooLarge {
            batch_bytes,
            batch_bytes_max: rules.batch_bytes_max,
        });
    }
    // The CRC before everything that believes the bytes: a length that lies comes out here, not as a second batch.
    let computed = crc32c(&field[CRC_COVERS_FROM..batch_bytes]);
    if computed != header.crc {
        return Err(InvalidBatch::Crc {
            declared: header.crc,
            computed,
        });
    }
    if field.len() > batch_bytes {
        return Err(InvalidBatch::BytesBehindBatch {
            batch_bytes,
            behind_bytes: field.len() - batch_bytes,
        });
    }
    let codec = header.attributes.codec()?;
    if header.attributes.is_control() {
        return Err(InvalidBatch::Control);
    }
    if header.attributes.is_transactional() {
        return Err(InvalidBatch::Transactional);
    }
    if header.attributes.has_delete_horizon() {
        return Err(InvalidBatch::DeleteHorizon);
    }
    if header.attributes.timestamp_type() == TimestampType::LogAppendTime {
        return Err(InvalidBatch::LogAppendTimeFromClient);
    }
    let RecordBatchHeader {
        record_count,
        last_offset_delta,
        ..
    } = header;
    if record_count < 1 || record_count - 1 != last_offset_delta {
        return Err(InvalidBatch::Count {
            record_count,
            last_offset_delta,
        });
    }
    let producer = check_producer(&header)?;
    let bytes = *field
        .first_chunk()
        .expect("a header was parsed from these bytes");
    Ok(ValidBatch {
        header,
        codec,
        producer,
        bytes,
    })
}

/// Without a producer id, epoch and sequence mean nothing: KafkaJS sends 0 for both, librdkafka and Java -1.
fn check_producer(header: &RecordBatchHeader) -> Result<Option<BatchProducer>, InvalidBatch> {
    let RecordBatchHeader {
        producer_id: id,
        producer_epoch: epoch,
        base_sequence,
        ..
    } = *header;
    if id == ProducerId::NONE {
        return Ok(None);
    }
    if id.0 < 0 || epoch.0 < 0 || base_sequence.0 < 0 {
        return Err(InvalidBatch::Producer {
            id,
            epoch,
            base_sequence,
        });
    }
    Ok(Some(BatchProducer {
        id,
        epoch,
        base_sequence,
    }))
}

/// Checks each record of an uncompressed batch; gives the largest timestamp.
fn hop_over_records(
    mut rest: &[u8],
    header: &RecordBatchHeader,
    rules: &ValidationRules,
    now: TimestampMs,
) -> Result<TimestampMs, InvalidBatch> {
    let mut max_timestamp = TimestampMs(i64::MIN);
    let mut null_keys = NullKeys::default();
    for index in 0..header.record_count {
        let problem = |problem| InvalidBatch::Record { index, problem };
        let body = split_record(&mut rest).map_err(problem)?;
        let record = RecordBody::parse(body).map_err(problem)?;
        if record.offset_delta != index {
            return Err(problem(RecordProblem::OffsetDelta {
                offset_delta: record.offset_delta,
            }));
        }
        if rules.is_compacted && record.key.is_none() {
            null_keys.note(index);
        }
        let timestamp = header
            .base_timestamp
            .0
            .checked_add(record.timestamp_delta)
            .map(TimestampMs);
        let timestamp = timestamp.ok_or(problem(RecordProblem::Timestamp))?;
        if rules.timestamp_type == TimestampType::CreateTime {
            check_timestamp(timestamp, Some(index), rules, now)?;
        }
        max_timestamp = max_timestamp.max(timestamp);
    }
    if !rest.is_empty() {
        return Err(InvalidBatch::BytesBehindRecords {
            record_count: header.record_count,
            behind_bytes: rest.len(),
        });
    }
    null_keys.refused()?;
    Ok(max_timestamp)
}

fn check_timestamp(
    timestamp: TimestampMs,
    index: Option<i32>,
    rules: &ValidationRules,
    now: TimestampMs,
) -> Result<(), InvalidBatch> {
    let ahead_ms = timestamp.0.saturating_sub(now.0);
    let behind_ms = now.0.saturating_sub(timestamp.0);
    let is_in_range =
        ahead_ms <= rules.timestamp_after_max_ms && behind_ms <= rules.timestamp_before_max_ms;
    if timestamp == TimestampMs::NONE || is_in_range {
        return Ok(());
    }
    Err(InvalidBatch::Timestamp {
        index,
        timestamp,
        now,
        before_max_ms: rules.timestamp_before_max_ms,
        after_max_ms: rules.timestamp_after_max_ms,
    })
}

fn check_compressed_keys(batch: &[u8]) -> Result<(), InvalidBatch> {
    let refused = |error| match error {
        RecordsError::Inflate(InflateError::TooLarge {
            inflated_bytes_max, ..
        }) => InvalidBatch::InflatesTooLarge { inflated_bytes_max },
        RecordsError::Inflate(error) => InvalidBatch::Inflate(error),
        RecordsError::Record { index, problem } => InvalidBatch::Record { index, problem },
        RecordsError::BytesBehindRecords { declared } => InvalidBatch::RecordsBehindLast {
            record_count: declared,
        },
        RecordsError::Codec(codec) => InvalidBatch::Codec(codec),
        RecordsError::Header(_) | RecordsError::CutShort { .. } => InvalidBatch::TooShort {
            field_bytes: batch.len(),
        },
    };
    let mut reader = RecordReader::new(batch, INFLATED_BATCH_BYTES_MAX).map_err(refused)?;
    let mut null_keys = NullKeys::default();
    for index in 0.. {
        let Some(record) = reader.next_body().map_err(refused)? else {
            break;
        };
        if record.offset_delta != index {
            let problem = RecordProblem::OffsetDelta {
                offset_delta: record.offset_delta,
            };
            return Err(InvalidBatch::Record { index, problem });
        }
        if record.key.is_none() {
            null_keys.note(index);
        }
    }
    null_keys.refused()
}

/// The records without a key that were met so far. The walk goes on behind one, since the answer names them all.
#[derive(Default)]
struct NullKeys {
    indexes: Vec<i32>,
}

impl NullKeys {
    fn note(&mut self, index: i32) {
        if self.indexes.len() < RECORD_ERRORS_MAX {
            self.indexes.push(index);
        }
    }

    fn refused(self) -> Result<(), InvalidBatch> {
        match self.indexes {
            indexes if indexes.is_empty() => Ok(()),
            indexes => Err(InvalidBatch::NullKeys { indexes }),
        }
    }
}
