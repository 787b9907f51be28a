//! The mapping of our errors to Kafka's codes: exhaustive, in one place.

use kafka_protocol::ResponseError;

use crate::partition::leader::ProducerRefusal;
use crate::record::validate::InvalidBatch;
use crate::shard::command::PartitionError;

/// Before this version of Produce a client reads KAFKA_STORAGE_ERROR as fatal.
const STORAGE_ERROR_FROM_PRODUCE: i16 = 4;

/// What a producer is told.
pub fn of_append(error: &PartitionError, version: i16) -> ResponseError {
    match of_partition(error) {
        ResponseError::KafkaStorageError if version < STORAGE_ERROR_FROM_PRODUCE => {
            ResponseError::NotLeaderOrFollower
        }
        code => code,
    }
}

pub fn of_partition(error: &PartitionError) -> ResponseError {
    match error {
        PartitionError::Unknown(_) => ResponseError::UnknownTopicOrPartition,
        PartitionError::FencedLeaderEpoch { .. } => ResponseError::FencedLeaderEpoch,
        PartitionError::UnknownLeaderEpoch { .. } => ResponseError::UnknownLeaderEpoch,
        PartitionError::OffsetOutOfRange { .. } => ResponseError::OffsetOutOfRange,
        PartitionError::InvalidBatch(invalid) => of_batch(invalid),
        PartitionError::Producer(refusal) => of_producer(refusal),
        PartitionError::DiskFull(_)
        | PartitionError::LogDirOffline(_)
        | PartitionError::Read(_)
        | PartitionError::Checkpoint(_) => ResponseError::KafkaStorageError,
        // The client looks for another leader, and finds this broker again once it is back.
        PartitionError::Stopping => ResponseError::NotLeaderOrFollower,
    }
}

/// The record of the batch that a refusal is about, if it is about one.
pub fn record_index(error: &PartitionError) -> Option<i32> {
    match error {
        PartitionError::InvalidBatch(InvalidBatch::Record { index, .. } | InvalidBatch::NullKey { index }) => {
            Some(*index)
        }
        PartitionError::InvalidBatch(InvalidBatch::Timestamp { index, .. }) => *index,
        _ => None,
    }
}

fn of_batch(invalid: &InvalidBatch) -> ResponseError {
    match invalid {
        InvalidBatch::TooShort { .. }
        | InvalidBatch::UnknownMagic { .. }
        | InvalidBatch::Length { .. }
        | InvalidBatch::Crc { .. }
        | InvalidBatch::Inflate(_) => ResponseError::CorruptMessage,
        InvalidBatch::TooLarge { .. } | InvalidBatch::InflatesTooLarge { .. } => ResponseError::MessageTooLarge,
        InvalidBatch::Codec(_) => ResponseError::UnsupportedCompressionType,
        InvalidBatch::Transactional => ResponseError::InvalidTxnState,
        InvalidBatch::Timestamp { .. } | InvalidBatch::LogAppendTimeFromClient => ResponseError::InvalidTimestamp,
        InvalidBatch::Empty
        | InvalidBatch::OldMagic { .. }
        | InvalidBatch::BytesBehindBatch { .. }
        | InvalidBatch::Control
        | InvalidBatch::DeleteHorizon
        | InvalidBatch::Count { .. }
        | InvalidBatch::Producer { .. }
        | InvalidBatch::Record { .. }
        | InvalidBatch::BytesBehindRecords { .. }
        | InvalidBatch::NullKey { .. }
        | InvalidBatch::RecordsBehindLast { .. } => ResponseError::InvalidRecord,
    }
}

fn of_producer(refusal: &ProducerRefusal) -> ResponseError {
    match refusal {
        ProducerRefusal::DuplicateForgotten(_) => ResponseError::DuplicateSequenceNumber,
        ProducerRefusal::OutOfOrder { .. } => ResponseError::OutOfOrderSequenceNumber,
        ProducerRefusal::Fenced { .. } => ResponseError::InvalidProducerEpoch,
    }
}
