use std::cell::Cell;
use std::path::{Path, PathBuf};

use tracing::{debug, error, info, warn};

use crate::io::fs::File;
use crate::model::{FilePosition, LeaderEpoch, Offset, TopicPartition};

use super::abandoned_segments::{AbandonedSegment, holds_nothing};
use super::atomic_file;
use super::checkpoint::{CheckpointDamage, PartitionCheckpoint, RecoveryPoint};
use super::cleaner::swap;
use super::fault_point;
use super::file_error::FileError;
use super::index_builder::IndexLengths;
use super::index_files::{self, IndexTail};
use super::leader_epochs::{LeaderEpochs, LeaderEpochsDamage};
use super::offset_index::SegmentEnd;
use super::partition_files::{self, PartitionFiles, remove_segment, written_at};
use super::producer_snapshot;
pub use super::recovered::{
    ActiveSegmentInfo, Cut, CutReason, DamagedSegment, FoundLog, Recovered, SealedSegmentInfo,
};
use super::recovery_start::{Distrust, RecoveryStart};
use super::replay::Replay;
use super::scan::{ScanEnd, ScanStop};
use super::segment_name::{SegmentFileKind, SegmentFileName};

#[derive(Clone, Copy, Debug)]
pub struct RecoveryRules {
    /// `index.interval.bytes`
    pub index_interval_bytes: u64,
    /// The monotonic clock: every producer that is found counts as seen now.
    pub now_ns: u64,
}

#[derive(Debug, thiserror::Error)]
pub enum RecoveryError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error("{} belongs to partition {found} and not to {expected}", path.display())]
    OtherPartition {
        path: PathBuf,
        found: TopicPartition,
        expected: TopicPartition,
    },
}

/// Brings one partition's directory into the state that `Recovered` describes. Nothing else may have it open.
///
/// Below the recovery point the segments are taken as they are; if the files do not bear that out, the whole log is read instead. From
/// there on every batch is checked. The log ends in front of the first bad one: that file is cut, and later segments are removed, so
/// that what lay behind never comes back. After a clean stop nothing lies behind the recovery point, and nothing is read.
///
/// A second crash during recovery is harmless: until the new checkpoint is written, the old one leads to the same result.
pub fn recover(
    dir: &Path,
    partition: TopicPartition,
    rules: &RecoveryRules,
) -> Result<Recovered, RecoveryError> {
    let checkpoint = PartitionCheckpoint::read(dir)?;
    if let Ok(PartitionCheckpoint {
        partition: found, ..
    }) = checkpoint
        && found != partition
    {
        return Err(RecoveryError::OtherPartition {
            path: dir.to_owned(),
            found,
            expected: partition,
        });
    }
    swap::finish_interrupted(dir)?;
    let mut files = PartitionFiles::list(dir)?;
    files.remove_leftovers(dir)?;
    let mut recovery = Recovery {
        dir,
        partition,
        rules,
        files,
        cuts: Vec::new(),
        indexes_rebuilt: Cell::new(0),
    };
    // Before anything is judged by where the next segment starts.
    recovery.remove_abandoned(checkpoint.as_ref().ok())?;
    Ok(recovery.run(checkpoint)?)
}

struct Recovery<'a> {
    dir: &'a Path,
    partition: TopicPartition,
    rules: &'a RecoveryRules,
    files: PartitionFiles,
    cuts: Vec<Cut>,
    indexes_rebuilt: Cell<usize>,
}

/// What the segments in front of the recovery point are.
#[derive(Default)]
struct Below {
    sealed: Vec<SealedSegmentInfo>,
    damaged: Vec<DamagedSegment>,
    bytes_read: u64,
}

impl Recovery<'_> {
    fn run(
        mut self,
        checkpoint: Result<PartitionCheckpoint, CheckpointDamage>,
    ) -> Result<Recovered, FileError> {
        let is_new = checkpoint == Err(CheckpointDamage::Missing) && self.files.segments.is_empty();
        let epochs_before = LeaderEpochs::read(self.dir)?;
        if let Ok(checkpoint) = &checkpoint {
            self.remove_below(checkpoint.log_start_offset)?;
        }
        let (mut replay, mut point, distrust) =
            self.read_log(&checkpoint, epochs_before.clone())?;
        if let Some(distrust) = distrust.as_ref().filter(|_| !is_new) {
            debug!(path = %self.dir.display(), reason = %distrust, "the whole log was read");
        }
        let first_read = replay.first_segment();
        let Below {
            mut sealed,
            damaged,
            bytes_read,
        } = self.check_below(first_read)?;
        self.cut_behind(&replay)?;
        sealed.append(&mut replay.sealed);
        let log_start_offset =
            self.settle_log_start(checkpoint.as_ref().ok(), &mut sealed, &mut replay)?;
        if !self.cuts.is_empty() {
            self.report_cuts(point.as_ref());
            point = None;
        }
        self.settle_epochs(epochs_before, log_start_offset, &mut replay)?;
        let recovery_point = match point {
            Some(point) => point,
            None if is_new => {
                RecoveryPoint::segment_start(replay.last_segment, LeaderEpoch::UNKNOWN)
            }
            None => self.settle_point(&checkpoint, first_read, log_start_offset, &mut replay)?,
        };
        self.files.remove_strays(self.dir, recovery_point.offset)?;
        Ok(Recovered {
            log_start_offset,
            log_end_offset: replay.end.next_offset,
            sealed,
            active: ActiveSegmentInfo {
                base_offset: replay.last_segment,
                size_bytes: replay.end.position.0,
                indexes: replay.indexes,
                saved: replay.saved,
            },
            producers: replay.producers,
            leader_epochs: replay.epochs,
            recovery_point,
            bytes_scanned: replay.bytes_read + bytes_read,
            cuts: self.cuts,
            indexes_rebuilt: self.indexes_rebuilt.get(),
            damaged,
            distrust: distrust.filter(|_| !is_new),
        })
    }

    /// Removes the segment files that a roll left which came to nothing.
    fn remove_abandoned(
        &mut self,
        checkpoint: Option<&PartitionCheckpoint>,
    ) -> Result<(), FileError> {
        let point = checkpoint.map(|checkpoint| &checkpoint.recovery_point);
        for abandoned in AbandonedSegment::find(self.dir, &self.files, point)? {
            let AbandonedSegment {
                base_offset,
                within,
            } = abandoned;
            info!(path = %self.path_of(base_offset).display(), "an empty segment that no roll led to is removed");
            // A start that took it for a segment has made the indexes of the one before without what follows there.
            if point.is_some_and(|point| within < point.segment) {
                partition_files::remove_indexes(self.dir, within)?;
            }
            self.remove_segment(base_offset)?;
        }
        Ok(())
    }

    /// Finishes what a crash may have interrupted: the removal of segments that lie wholly below the log's start.
    fn remove_below(&mut self, log_start_offset: Offset) -> Result<(), FileError> {
        let bases: Vec<Offset> = self.files.segments.keys().copied().collect();
        for pair in bases
            .windows(2)
            .take_while(|pair| pair[1] <= log_start_offset)
        {
            self.remove_segment(pair[0])?;
        }
        Ok(())
    }

    /// Reads from the recovery point if that can be trusted, else everything. The point comes back if it still holds.
    fn read_log(
        &self,
        checkpoint: &Result<PartitionCheckpoint, CheckpointDamage>,
        epochs: Option<Result<LeaderEpochs, LeaderEpochsDamage>>,
    ) -> Result<(Replay, Option<RecoveryPoint>, Option<Distrust>), FileError> {
        let point = checkpoint
            .as_ref()
            .map(|checkpoint| &checkpoint.recovery_point);
        let distrust = match point {
            Err(&damage) => damage.into(),
            Ok(point) => {
                match RecoveryStart::at_point(self.dir, point, &self.files, epochs, self.rules)? {
                    Err(distrust) => distrust,
                    Ok(start) => {
                        let index_damage = start.index_damage;
                        let replay = Replay::run(self.dir, start, &self.files, self.rules)?;
                        let log_end_offset = replay.end.next_offset;
                        if log_end_offset >= point.offset {
                            if let Some(damage) = index_damage {
                                let segment = point.segment.0;
                                debug!(path = %self.dir.display(), segment, %damage, "the active segment's indexes were rebuilt");
                                self.indexes_rebuilt.update(|count| count + 1);
                            }
                            return Ok((replay, index_damage.is_none().then_some(*point), None));
                        }
                        Distrust::CutBelowPoint {
                            log_end_offset,
                            recovery_point: point.offset,
                        }
                    }
                }
            }
        };
        // With no segment left the log goes on behind what it had, so that no offset is given twice.
        let lost_end = checkpoint.as_ref().map_or(Offset::ZERO, |lost| {
            lost.log_start_offset.max(lost.recovery_point.offset)
        });
        let first_segment = self
            .files
            .segments
            .keys()
            .next()
            .copied()
            .unwrap_or(lost_end);
        let start = RecoveryStart::at_segment(first_segment, self.rules);
        Ok((
            Replay::run(self.dir, start, &self.files, self.rules)?,
            None,
            Some(distrust),
        ))
    }

    /// What the segments in front of the first one that was read are; their index files are looked at only at their ends.
    fn check_below(&self, first_read: Offset) -> Result<Below, FileError> {
        let mut below = Below::default();
        let ends = self
            .files
            .segments
            .keys()
            .copied()
            .skip(1)
            .filter(|&base_offset| base_offset < first_read);
        for ((&base_offset, &size_bytes), end_offset) in self
            .files
            .segments
            .range(..first_read)
            .zip(ends.chain([first_read]))
        {
            let end = SegmentEnd {
                position: FilePosition(size_bytes),
                offset: end_offset,
            };
            let mut unstored_indexes = None;
            let latest = match index_files::check_ends(self.dir, base_offset, end)? {
                Ok(latest) => latest,
                Err(damage) => {
                    let path = self.path_of(base_offset);
                    debug!(path = %path.display(), %damage, "the indexes of a sealed segment are rebuilt");
                    self.indexes_rebuilt.update(|count| count + 1);
                    let index_files::Rebuilt {
                        indexes,
                        scanned,
                        is_stored,
                    } = index_files::rebuild_sealed(
                        self.dir,
                        base_offset,
                        end,
                        self.rules.index_interval_bytes,
                    )?;
                    below.bytes_read += scanned.bytes_read;
                    if scanned.next_offset < end_offset {
                        let (position, offset) = (scanned.position, scanned.next_offset);
                        error!(path = %path.display(), %position, %offset, stop = ?scanned.stop, "a sealed segment is damaged");
                        below.damaged.push(DamagedSegment {
                            path,
                            position,
                            offset,
                            stop: scanned.stop,
                        });
                    }
                    let latest = indexes.latest();
                    unstored_indexes = (!is_stored).then_some(indexes);
                    latest
                }
            };
            below.sealed.push(SealedSegmentInfo {
                base_offset,
                size_bytes,
                end_offset,
                latest,
                written_at: written_at(self.dir, base_offset, latest)?,
                unstored_indexes,
            });
        }
        Ok(below)
    }

    /// Makes the files end where the log does. What is cut is gone for good before anything is appended in its place: else a power
    /// cut could bring back an old batch that happens to continue a new one.
    fn cut_behind(&mut self, replay: &Replay) -> Result<(), FileError> {
        let ScanEnd {
            position,
            next_offset: log_end_offset,
            stop,
            ..
        } = replay.end;
        let size_bytes = self
            .files
            .segments
            .get(&replay.last_segment)
            .copied()
            .unwrap_or(0);
        let bad_batch = match stop {
            ScanStop::BadBatch(bad_batch) => Some(bad_batch),
            ScanStop::EndOfFile | ScanStop::SegmentEnd | ScanStop::ZeroTail => None,
        };
        self.cuts.extend(bad_batch.map(|bad_batch| Cut {
            path: self.path_of(replay.last_segment),
            position,
            offset: log_end_offset,
            dropped_bytes: size_bytes - position.0,
            reason: bad_batch.into(),
        }));
        // From the end, so that a crash in between leaves no segment that would continue the log.
        for &base_offset in replay.unreachable.iter().rev() {
            let size_bytes = self.files.segments[&base_offset];
            // With nothing in it nothing is cut: the roll to it was done, and what was to come before it never got to the disk.
            if !holds_nothing(self.dir, base_offset, size_bytes)? {
                self.cuts.push(Cut {
                    path: self.path_of(base_offset),
                    position: FilePosition::ZERO,
                    offset: log_end_offset,
                    dropped_bytes: size_bytes,
                    reason: CutReason::NotContinuous { log_end_offset },
                });
            }
            self.remove_segment(base_offset)?;
        }
        if !replay.unreachable.is_empty() {
            atomic_file::sync_dir(self.dir)?;
        }
        self.truncate(replay.last_segment, position.0, bad_batch.is_some())?;
        for sealed in &replay.sealed {
            // Whoever reads this segment later takes its length for its end.
            self.truncate(sealed.base_offset, sealed.size_bytes, true)?;
        }
        Ok(())
    }

    /// The log's start never goes back, unless the checkpoint is lost: then it is the first segment's. Where the log is shorter than
    /// that, it goes on empty from its start.
    fn settle_log_start(
        &mut self,
        checkpoint: Option<&PartitionCheckpoint>,
        sealed: &mut Vec<SealedSegmentInfo>,
        replay: &mut Replay,
    ) -> Result<Offset, FileError> {
        let first_segment = sealed
            .first()
            .map_or(replay.last_segment, |sealed| sealed.base_offset);
        let Some(checkpoint) = checkpoint else {
            return Ok(first_segment);
        };
        let log_start_offset = checkpoint.log_start_offset;
        if first_segment > log_start_offset {
            self.cuts.push(Cut {
                path: self.dir.to_owned(),
                position: FilePosition::ZERO,
                offset: first_segment,
                dropped_bytes: 0,
                reason: CutReason::Missing {
                    expected: log_start_offset,
                },
            });
            return Ok(first_segment);
        }
        if replay.end.next_offset < log_start_offset {
            self.cuts.push(Cut {
                path: self.path_of(replay.last_segment),
                position: replay.end.position,
                offset: replay.end.next_offset,
                dropped_bytes: 0,
                reason: CutReason::BelowLogStart { log_start_offset },
            });
            self.remove_segment(replay.last_segment)?;
            for sealed in sealed.drain(..).rev() {
                self.remove_segment(sealed.base_offset)?;
            }
            atomic_file::sync_dir(self.dir)?;
            replay.start_over(log_start_offset, self.rules);
        }
        Ok(log_start_offset)
    }

    /// An epoch that starts at the log's end has no batch yet. It stays, unless its batches were cut.
    fn settle_epochs(
        &self,
        before: Option<Result<LeaderEpochs, LeaderEpochsDamage>>,
        log_start_offset: Offset,
        replay: &mut Replay,
    ) -> Result<(), FileError> {
        let log_end_offset = replay.end.next_offset;
        let first_gone = if self.cuts.is_empty() {
            log_end_offset.plus(1)
        } else {
            log_end_offset
        };
        replay.epochs.truncate_from_end(first_gone);
        replay.epochs.truncate_from_start(log_start_offset);
        let as_before = match before {
            Some(Ok(before)) => before == replay.epochs,
            Some(Err(_)) => false,
            None => replay.epochs.entries().is_empty(),
        };
        if as_before {
            return Ok(());
        }
        match replay.epochs.write(self.dir) {
            // The next checkpoint writes them. Until then a start finds the batches of the newer epochs, as this one did.
            Err(error) if error.is_disk_full() => Ok(()),
            written => written,
        }
    }

    /// Makes the log's end the recovery point, or leaves what stands where the disk is full and that will do.
    fn settle_point(
        &self,
        checkpoint: &Result<PartitionCheckpoint, CheckpointDamage>,
        first_read: Offset,
        log_start_offset: Offset,
        replay: &mut Replay,
    ) -> Result<RecoveryPoint, FileError> {
        self.sync_read(first_read)?;
        let at_end = self.checkpoint_at_end(log_start_offset, replay);
        let error = match self.write_point(&at_end, replay) {
            Err(error) if error.is_disk_full() => error,
            written => return written.map(|()| at_end.recovery_point),
        };
        // Half an index would pass for one that is whole.
        partition_files::remove_indexes(self.dir, replay.last_segment)?;
        replay.saved = IndexLengths::default();
        let shown = self.dir.display();
        match checkpoint {
            Ok(before) if before.recovery_point.offset <= at_end.recovery_point.offset => {
                warn!(path = %shown, %error, "the disk has no room for a checkpoint: the one before stays");
                Ok(before.recovery_point)
            }
            // It points at what is no more, and would be believed once as much is appended again.
            Ok(_) => {
                at_end.overwrite(self.dir)?;
                Ok(at_end.recovery_point)
            }
            Err(_) => {
                warn!(path = %shown, %error, "the disk has no room for a checkpoint: the next start reads the whole log again");
                Ok(at_end.recovery_point)
            }
        }
    }

    /// What was read survives a power cut from here on.
    fn sync_read(&self, first_read: Offset) -> Result<(), FileError> {
        for &base_offset in self
            .files
            .segments
            .range(first_read..)
            .map(|(base, _)| base)
        {
            let path = self.path_of(base_offset);
            fault_point::change(|| File::open(&path)?.sync_all())
                .map_err(FileError::of("sync", &path))?;
        }
        Ok(())
    }

    fn checkpoint_at_end(&self, log_start_offset: Offset, replay: &Replay) -> PartitionCheckpoint {
        PartitionCheckpoint {
            partition: self.partition,
            log_start_offset,
            recovery_point: RecoveryPoint {
                offset: replay.end.next_offset,
                segment: replay.last_segment,
                position: replay.end.position,
                leader_epoch: replay.end.leader_epoch,
                index_lengths: replay.indexes.lengths(),
                latest: replay.indexes.latest(),
                producer_count: replay.producers.len() as u32,
            },
        }
    }

    /// Everything that the checkpoint vouches for, and the checkpoint last.
    fn write_point(
        &self,
        checkpoint: &PartitionCheckpoint,
        replay: &mut Replay,
    ) -> Result<(), FileError> {
        IndexTail::of(&replay.indexes, replay.saved).write(self.dir)?;
        replay.saved = replay.indexes.lengths();
        if !replay.producers.is_empty() {
            let offset = checkpoint.recovery_point.offset;
            let snapshot = producer_snapshot::encode(&replay.producers, offset);
            producer_snapshot::write(self.dir, offset, &snapshot)?;
        }
        checkpoint.write(self.dir)
    }

    fn report_cuts(&self, point: Option<&RecoveryPoint>) {
        // Behind the recovery point an unfinished write is what a crash leaves; everything else was whole on disk once.
        let unfinished = point.is_some()
            && self
                .cuts
                .iter()
                .all(|cut| matches!(cut.reason, CutReason::BadBatch(_)));
        for Cut {
            path,
            position,
            offset,
            dropped_bytes,
            reason,
        } in &self.cuts
        {
            let path = path.display();
            match unfinished {
                true => {
                    debug!(%path, %position, %offset, dropped_bytes, %reason, "the log was cut after its last whole batch")
                }
                false => {
                    error!(%path, %position, %offset, dropped_bytes, %reason, "the log was cut and records are lost")
                }
            }
        }
    }

    fn truncate(
        &mut self,
        base_offset: Offset,
        size_bytes: u64,
        sync: bool,
    ) -> Result<(), FileError> {
        let Some(before) = self
            .files
            .segments
            .get_mut(&base_offset)
            .filter(|before| **before > size_bytes)
        else {
            return Ok(());
        };
        *before = size_bytes;
        let path = self.path_of(base_offset);
        let file = File::options()
            .write(true)
            .open(&path)
            .map_err(FileError::of("open", &path))?;
        fault_point::change(|| file.set_len(size_bytes))
            .map_err(FileError::of("truncate", &path))?;
        if sync {
            fault_point::change(|| file.sync_all()).map_err(FileError::of("sync", &path))
        } else {
            Ok(())
        }
    }

    fn remove_segment(&mut self, base_offset: Offset) -> Result<(), FileError> {
        self.files.segments.remove(&base_offset);
        remove_segment(self.dir, base_offset)
    }

    fn path_of(&self, base_offset: Offset) -> PathBuf {
        self.dir
            .join(SegmentFileName::new(base_offset, SegmentFileKind::Log).to_string())
    }
}
