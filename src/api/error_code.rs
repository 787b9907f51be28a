//! Our errors as Kafka's codes. Every match is exhaustive, so that a new error must say what a client is told.

use std::slice;

use kafka_protocol::ResponseError;

use crate::config::ConfigError;
use crate::controller::{
    AlterConfigError, CreatePartitionsError, CreateTopicError, DeleteTopicError, LayoutError,
    NotFollowed, NotStored, ProducerIdError,
};
use crate::group::GroupError;
use crate::partition::leader::ProducerRefusal;
use crate::record::InvalidBatch;
use crate::shard::command::PartitionError;

/// The controller is stopping with this broker; a client looks for another controller and tries again.
pub const CONTROLLER_GONE: ResponseError = ResponseError::NotController;

pub fn of_create_topic(error: &CreateTopicError) -> ResponseError {
    match error {
        CreateTopicError::Name(_) | CreateTopicError::Collides { .. } => {
            ResponseError::InvalidTopicException
        }
        // Kafka's answer, whoever asks.
        CreateTopicError::ClusterMetadata => ResponseError::TopicAuthorizationFailed,
        CreateTopicError::Exists(_) => ResponseError::TopicAlreadyExists,
        CreateTopicError::Twice(_) => ResponseError::InvalidRequest,
        CreateTopicError::Layout(error) => of_layout(error),
        // A change of settings answers this one with INVALID_REQUEST.
        CreateTopicError::Config(ConfigError::NoValue(_)) => ResponseError::InvalidConfig,
        CreateTopicError::Config(error) => of_config(error),
        CreateTopicError::NotStored(error) => of_not_stored(error),
        CreateTopicError::NotFollowed(error) => of_not_followed(error),
    }
}

/// TOPIC_DELETION_DISABLED is known from version 3 on.
pub fn of_delete_topic(error: &DeleteTopicError, version: i16) -> ResponseError {
    match error {
        DeleteTopicError::UnknownName(_) => ResponseError::UnknownTopicOrPartition,
        DeleteTopicError::UnknownId(_) => ResponseError::UnknownTopicId,
        DeleteTopicError::Internal(_) => ResponseError::InvalidTopicException,
        DeleteTopicError::Twice => ResponseError::InvalidRequest,
        DeleteTopicError::Disabled if version >= 3 => ResponseError::TopicDeletionDisabled,
        DeleteTopicError::Disabled => ResponseError::InvalidRequest,
        DeleteTopicError::NotStored(error) => of_not_stored(error),
        DeleteTopicError::NotFollowed(error) => of_not_followed(error),
    }
}

pub fn of_create_partitions(error: &CreatePartitionsError) -> ResponseError {
    match error {
        CreatePartitionsError::UnknownTopic(_) => ResponseError::UnknownTopicOrPartition,
        CreatePartitionsError::Internal(_) => ResponseError::InvalidTopicException,
        CreatePartitionsError::Twice(_) => ResponseError::InvalidRequest,
        CreatePartitionsError::NoIncrease { .. } => ResponseError::InvalidPartitions,
        CreatePartitionsError::Layout(error) => of_layout(error),
        CreatePartitionsError::NotStored(error) => of_not_stored(error),
        CreatePartitionsError::NotFollowed(error) => of_not_followed(error),
    }
}

pub fn of_alter_config(error: &AlterConfigError) -> ResponseError {
    match error {
        AlterConfigError::UnknownTopic(_) => ResponseError::UnknownTopicOrPartition,
        AlterConfigError::UnknownBroker(_) | AlterConfigError::Twice => {
            ResponseError::InvalidRequest
        }
        AlterConfigError::Config(error) => of_config(error),
        AlterConfigError::NotStored(error) => of_not_stored(error),
    }
}

/// Producers take this code, and hardly another one, for a reason to ask again; Kafka too gives it when it has no ids.
pub fn of_producer_id(error: &ProducerIdError) -> ResponseError {
    match error {
        ProducerIdError::NotStored(_) | ProducerIdError::Exhausted => {
            ResponseError::CoordinatorLoadInProgress
        }
    }
}

fn of_layout(error: &LayoutError) -> ResponseError {
    match error {
        LayoutError::PartitionCount | LayoutError::TooManyPartitions => {
            ResponseError::InvalidPartitions
        }
        LayoutError::ReplicationFactor | LayoutError::TooFewBrokers { .. } => {
            ResponseError::InvalidReplicationFactor
        }
        LayoutError::AssignmentGap(_)
        | LayoutError::AssignmentIndex(_)
        | LayoutError::UnknownBroker(_)
        | LayoutError::BrokerTwice(_)
        | LayoutError::NoBroker
        | LayoutError::AssignmentCount { .. } => ResponseError::InvalidReplicaAssignment,
    }
}

fn of_config(error: &ConfigError) -> ResponseError {
    match error {
        ConfigError::Twice(_) | ConfigError::NoValue(_) => ResponseError::InvalidRequest,
        ConfigError::Unknown { .. }
        | ConfigError::Invalid { .. }
        | ConfigError::ReadOnly(_)
        | ConfigError::NotAList(_)
        | ConfigError::Syntax(_)
        | ConfigError::Unreadable(_)
        | ConfigError::NotAnAssignment(_) => ResponseError::InvalidConfig,
    }
}

fn of_not_stored(NotStored(_): &NotStored) -> ResponseError {
    ResponseError::KafkaStorageError
}

/// Both are stored all the same: who asks again is told that the topic exists, or is gone.
fn of_not_followed(error: &NotFollowed) -> ResponseError {
    match error {
        NotFollowed::Unopened { .. } => ResponseError::KafkaStorageError,
        NotFollowed::Late => ResponseError::RequestTimedOut,
    }
}

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
        PartitionError::NotEnoughReplicas { .. } => ResponseError::NotEnoughReplicas,
        PartitionError::OnlyCompacted => ResponseError::PolicyViolation,
        PartitionError::NotOpened(_)
        | PartitionError::NoRoom(_)
        | PartitionError::DiskFull(_)
        | PartitionError::Shortage(_)
        | PartitionError::LogDirOffline(_)
        | PartitionError::Read(_)
        | PartitionError::Checkpoint(_) => ResponseError::KafkaStorageError,
        // The client looks for another leader, and finds this broker again once it is back.
        PartitionError::Stopping => ResponseError::NotLeaderOrFollower,
    }
}

pub fn of_group(error: GroupError) -> ResponseError {
    match error {
        GroupError::InvalidGroupId => ResponseError::InvalidGroupId,
        GroupError::UnknownMember => ResponseError::UnknownMemberId,
        GroupError::MemberIdRequired => ResponseError::MemberIdRequired,
        GroupError::FencedInstance => ResponseError::FencedInstanceId,
        GroupError::IllegalGeneration => ResponseError::IllegalGeneration,
        GroupError::RebalanceInProgress => ResponseError::RebalanceInProgress,
        GroupError::InconsistentProtocol => ResponseError::InconsistentGroupProtocol,
        GroupError::InvalidSessionTimeout => ResponseError::InvalidSessionTimeout,
        GroupError::GroupFull => ResponseError::GroupMaxSizeReached,
        GroupError::TooLong => ResponseError::InvalidRequest,
        GroupError::OffsetMetadataTooLarge => ResponseError::OffsetMetadataTooLarge,
        GroupError::CommitTooLarge => ResponseError::InvalidCommitOffsetSize,
        GroupError::GroupNotFound => ResponseError::GroupIdNotFound,
        GroupError::NonEmptyGroup => ResponseError::NonEmptyGroup,
        GroupError::SubscribedToTopic => ResponseError::GroupSubscribedToTopic,
        GroupError::CoordinatorLoading => ResponseError::CoordinatorLoadInProgress,
        GroupError::CoordinatorNotAvailable => ResponseError::CoordinatorNotAvailable,
        GroupError::NotCoordinator => ResponseError::NotCoordinator,
        GroupError::GroupTooLarge => ResponseError::UnknownServerError,
    }
}

/// The records of the batch that a refusal is about; none where it is about the whole.
pub fn record_indexes(error: &PartitionError) -> &[i32] {
    match error {
        PartitionError::InvalidBatch(InvalidBatch::NullKeys { indexes }) => indexes,
        PartitionError::InvalidBatch(InvalidBatch::Record { index, .. }) => slice::from_ref(index),
        PartitionError::InvalidBatch(InvalidBatch::Timestamp { index, .. }) => index.as_slice(),
        _ => &[],
    }
}

fn of_batch(invalid: &InvalidBatch) -> ResponseError {
    match invalid {
        InvalidBatch::TooShort { .. }
        | InvalidBatch::UnknownMagic { .. }
        | InvalidBatch::Length { .. }
        | InvalidBatch::Crc { .. }
        | InvalidBatch::Inflate(_)
        | InvalidBatch::BytesBehindStream { .. } => ResponseError::CorruptMessage,
        InvalidBatch::TooLarge { .. }
        | InvalidBatch::InflatesTooLarge { .. }
        | InvalidBatch::InflatingTakesTooMuch { .. } => ResponseError::MessageTooLarge,
        InvalidBatch::Codec(_) => ResponseError::UnsupportedCompressionType,
        InvalidBatch::Transactional => ResponseError::InvalidTxnState,
        InvalidBatch::Timestamp { .. } | InvalidBatch::LogAppendTimeFromClient => {
            ResponseError::InvalidTimestamp
        }
        InvalidBatch::Empty
        | InvalidBatch::OldMagic { .. }
        | InvalidBatch::BytesBehindBatch { .. }
        | InvalidBatch::Control
        | InvalidBatch::DeleteHorizon
        | InvalidBatch::Count { .. }
        | InvalidBatch::Producer { .. }
        | InvalidBatch::Record { .. }
        | InvalidBatch::BytesBehindRecords { .. }
        | InvalidBatch::NullKeys { .. }
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
