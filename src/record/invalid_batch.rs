//! Why a producer's batch is refused.

use crate::model::{ProducerEpoch, ProducerId, Sequence, TimestampMs};

use super::compression::UnknownCodec;
use super::header::MAGIC;
use super::inflater::InflateError;
use super::records::RecordProblem;

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
    /// MESSAGE_TOO_LARGE: in smaller batches the same records may do.
    #[error(
        "inflating the batch takes more than the {window_bytes_max} bytes of memory that are left for it; smaller batches take less, \
         and so does a lower compression level"
    )]
    InflatingTakesTooMuch { window_bytes_max: usize },
    /// CORRUPT_MESSAGE
    #[error("{behind_bytes} bytes stand behind the end of the compressed records")]
    BytesBehindStream { behind_bytes: usize },
    /// INVALID_RECORD
    #[error("more records stand in the compressed batch than the {record_count} that it declares")]
    RecordsBehindLast { record_count: i32 },
}
