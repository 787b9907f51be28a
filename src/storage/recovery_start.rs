use std::path::Path;

use crate::model::{FilePosition, LeaderEpoch, Offset};

use super::checkpoint::{CheckpointDamage, RecoveryPoint};
use super::file_error::FileError;
use super::index_builder::{IndexBuilder, IndexLengths};
use super::index_files;
use super::leader_epochs::{LeaderEpochs, LeaderEpochsDamage};
use super::offset_index::{IndexDamage, SegmentEnd};
use super::partition_files::PartitionFiles;
use super::producer_snapshot::{self, SnapshotDamage};
use super::producer_state::ProducerState;
use super::recovery::RecoveryRules;
use super::scan::ScanStart;

/// From where recovery reads forward, and the state up to there.
#[derive(Debug)]
pub(super) struct RecoveryStart {
    pub scan: ScanStart,
    pub indexes: IndexBuilder,
    pub epochs: LeaderEpochs,
    pub producers: ProducerState,
    /// How many entries of `indexes` their files have.
    pub saved: IndexLengths,
    /// Below this offset the producers are known already.
    pub producers_known_to: Offset,
    /// Why the segment's indexes are made anew, so that it is read from its own start; nothing else is distrusted.
    pub index_damage: Option<IndexDamage>,
}

/// Why the checkpoint, or what it says of the other files, is of no use, so that the whole log is read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Distrust {
    #[error("partition.checkpoint: {0}")]
    Checkpoint(#[from] CheckpointDamage),
    #[error("the recovery point lies at {position} in segment {segment}, which is missing")]
    SegmentMissing {
        segment: Offset,
        position: FilePosition,
    },
    #[error(
        "the recovery point lies at {position} in segment {segment}, which has {segment_bytes} bytes"
    )]
    SegmentShort {
        segment: Offset,
        position: FilePosition,
        segment_bytes: u64,
    },
    #[error(
        "a segment starts at {found}, within what lies below the recovery point {recovery_point}"
    )]
    SegmentOverlaps {
        found: Offset,
        recovery_point: Offset,
    },
    #[error("leader-epoch-checkpoint: {0}")]
    LeaderEpochs(#[from] LeaderEpochsDamage),
    #[error(
        "leader-epoch-checkpoint does not know epoch {0}, in which a batch below the recovery point was appended"
    )]
    LeaderEpochUnknown(LeaderEpoch),
    #[error("the producers at the recovery point: {0}")]
    Producers(#[from] SnapshotDamage),
    #[error(
        "the log is good only up to {log_end_offset}, below the recovery point {recovery_point}"
    )]
    CutBelowPoint {
        log_end_offset: Offset,
        recovery_point: Offset,
    },
}

impl RecoveryStart {
    /// The state at the recovery point, if every file that it names is as it says.
    pub fn at_point(
        dir: &Path,
        point: &RecoveryPoint,
        files: &PartitionFiles,
        epochs: Option<Result<LeaderEpochs, LeaderEpochsDamage>>,
        rules: &RecoveryRules,
    ) -> Result<Result<Self, Distrust>, FileError> {
        if let Err(distrust) = check_segments(point, files) {
            return Ok(Err(distrust));
        }
        let epochs = match (epochs, point.leader_epoch.is_known()) {
            (Some(Ok(epochs)), _) => epochs,
            (Some(Err(damage)), true) => return Ok(Err(damage.into())),
            _ => LeaderEpochs::default(),
        };
        if epochs
            .latest()
            .map_or(LeaderEpoch::UNKNOWN, |latest| latest.epoch)
            < point.leader_epoch
        {
            return Ok(Err(Distrust::LeaderEpochUnknown(point.leader_epoch)));
        }
        let producers = match point.producer_count {
            0 => ProducerState::default(),
            _ => match producer_snapshot::read(dir, point.offset, rules.now_ns)? {
                Ok(producers) => producers,
                Err(damage) => return Ok(Err(damage.into())),
            },
        };
        let end = SegmentEnd {
            position: point.position,
            offset: point.offset,
        };
        let (scan, indexes, saved, index_damage) =
            match index_files::load_saved(dir, point.segment, point.index_lengths, end)? {
                Ok((offsets, times)) => (
                    ScanStart {
                        segment: point.segment,
                        position: point.position,
                        next_offset: point.offset,
                        leader_epoch: point.leader_epoch,
                    },
                    IndexBuilder::resume(offsets, times, point.latest, rules.index_interval_bytes),
                    point.index_lengths,
                    None,
                ),
                Err(damage) => (
                    ScanStart::of_segment(point.segment, LeaderEpoch::UNKNOWN),
                    IndexBuilder::new(point.segment, rules.index_interval_bytes),
                    IndexLengths::default(),
                    Some(damage),
                ),
            };
        Ok(Ok(Self {
            scan,
            indexes,
            saved,
            epochs,
            producers,
            producers_known_to: point.offset,
            index_damage,
        }))
    }

    /// The start of the first segment, with nothing known.
    pub fn at_segment(base_offset: Offset, rules: &RecoveryRules) -> Self {
        Self {
            scan: ScanStart::of_segment(base_offset, LeaderEpoch::UNKNOWN),
            indexes: IndexBuilder::new(base_offset, rules.index_interval_bytes),
            epochs: LeaderEpochs::default(),
            producers: ProducerState::default(),
            saved: IndexLengths::default(),
            producers_known_to: base_offset,
            index_damage: None,
        }
    }
}

fn check_segments(point: &RecoveryPoint, files: &PartitionFiles) -> Result<(), Distrust> {
    let RecoveryPoint {
        offset,
        segment,
        position,
        ..
    } = *point;
    match files.segments.get(&segment) {
        // Nothing was appended to it yet, so its file may not be there yet.
        None if position == FilePosition::ZERO => {}
        None => return Err(Distrust::SegmentMissing { segment, position }),
        Some(&segment_bytes) if segment_bytes < position.0 => {
            return Err(Distrust::SegmentShort {
                segment,
                position,
                segment_bytes,
            });
        }
        Some(_) => {}
    }
    let behind = (
        std::ops::Bound::Excluded(segment),
        std::ops::Bound::Unbounded,
    );
    match files.segments.range(behind).next() {
        Some((&found, _)) if found < offset => Err(Distrust::SegmentOverlaps {
            found,
            recovery_point: offset,
        }),
        _ => Ok(()),
    }
}
