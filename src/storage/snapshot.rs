//! A checkpoint in the making: what recovery needs to start at an offset, taken in one turn, written once the log is synced up to there.

use std::path::Path;

use crate::model::{Offset, TimestampMs, TopicPartition};
use crate::storage::checkpoint::{PartitionCheckpoint, RecoveryPoint};
use crate::storage::file_error::FileError;
use crate::storage::index_file::IndexTail;
use crate::storage::leader_epochs::LeaderEpochs;
use crate::storage::log::Log;
use crate::storage::producer_snapshot;
use crate::storage::producer_state::ProducerState;

pub struct Snapshot {
    checkpoint: PartitionCheckpoint,
    index_tail: IndexTail,
    epochs: LeaderEpochs,
    producers: Option<Vec<u8>>,
}
