//! A checkpoint in the making: what recovery needs to start at an offset, taken in one turn, written once the log is synced up to there.

use std::path::Path;

use crate::model::{Offset, TopicPartition};
use crate::storage::checkpoint::{PartitionCheckpoint, RecoveryPoint};
use crate::storage::file_error::FileError;
use crate::storage::index_builder::IndexLengths;
use crate::storage::index_files::IndexTail;
use crate::storage::leader_epochs::LeaderEpochs;
use crate::storage::log::Log;
use crate::storage::partition_files;
use crate::storage::producer_snapshot;
use crate::storage::producer_state::ProducerState;

pub struct Snapshot {
    checkpoint: PartitionCheckpoint,
    index_tail: IndexTail,
    epochs: LeaderEpochs,
    producers: Option<Vec<u8>>,
    /// The snapshot of producers that this one replaces.
    before: Offset,
}

impl Snapshot {
    /// Everything at the log's end. Every segment but the active one must be sealed; `before` is the offset of the checkpoint that this one
    /// replaces.
    pub fn take(
        partition: TopicPartition,
        log: &Log,
        producers: &ProducerState,
        before: Offset,
    ) -> Self {
        assert!(
            log.is_sealed_up(),
            "a checkpoint vouches for the length of every sealed segment"
        );
        let end = log.end();
        let active = log.active();
        let producer_count = u32::try_from(producers.len()).expect("producers are bounded");
        let recovery_point = RecoveryPoint {
            offset: end.offset,
            segment: end.segment,
            position: end.position,
            leader_epoch: log
                .epochs()
                .latest()
                .map_or(crate::model::LeaderEpoch::UNKNOWN, |latest| latest.epoch),
            index_lengths: active.indexes().lengths(),
            latest: active.indexes().latest(),
            producer_count,
        };
        Self {
            checkpoint: PartitionCheckpoint {
                partition,
                log_start_offset: log.planned_start(),
                recovery_point,
            },
            index_tail: IndexTail::of(active.indexes(), active.saved()),
            epochs: log.epochs().clone(),
            producers: (producer_count > 0)
                .then(|| producer_snapshot::encode(producers, end.offset)),
            before,
        }
    }

    #[cfg(test)]
    pub(super) fn of_parts(
        checkpoint: PartitionCheckpoint,
        index_tail: IndexTail,
        epochs: LeaderEpochs,
        producers: Option<Vec<u8>>,
        before: Offset,
    ) -> Self {
        Self {
            checkpoint,
            index_tail,
            epochs,
            producers,
            before,
        }
    }

    /// The log must be synced up to here before it is written.
    pub fn offset(&self) -> Offset {
        self.checkpoint.recovery_point.offset
    }

    /// The segment whose index files it completes, and how far.
    pub fn saves(&self) -> (Offset, IndexLengths) {
        (
            self.checkpoint.recovery_point.segment,
            self.checkpoint.recovery_point.index_lengths,
        )
    }

    /// Writes everything that the checkpoint vouches for, and the checkpoint last. It survives a power cut when this returns. Blocks.
    pub fn write(&self, directory: &Path) -> Result<(), FileError> {
        // Until the last of these the checkpoint before still holds: it names the first entries of the index files, which stay, epochs
        // that later ones only follow, and a snapshot of producers of its own.
        self.index_tail.write(directory)?;
        self.epochs.write(directory)?;
        if let Some(producers) = &self.producers {
            producer_snapshot::write(directory, self.offset(), producers)?;
        }
        self.checkpoint.write(directory)?;
        if self.before != self.offset() {
            partition_files::remove_producers(directory, self.before)?;
        }
        Ok(())
    }
}
