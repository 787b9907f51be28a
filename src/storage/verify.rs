use std::path::{Path, PathBuf};

use crate::model::{FilePosition, LeaderEpoch, Offset, TimestampMs};
use crate::record::records::{RecordReader, RecordsError};
use crate::record::{InflateBounds, RecordBatchHeader, TimestampType};

use super::checkpoint::{CheckpointDamage, PartitionCheckpoint, RecoveryPoint};
use super::file_error::FileError;
use super::index_check::IndexCheck;
use super::leader_epochs::{LEADER_EPOCHS_FILE, LeaderEpochs, LeaderEpochsDamage};
use super::offset_index::IndexDamage;
use super::partition_files::PartitionFiles;
use super::producer_snapshot::{self, SnapshotDamage};
use super::scan::{BadBatch, ScanStart};
use super::sealed_scan::scan_sealed;
use super::segment_name::{SegmentFileKind, SegmentFileName};
use super::segment_walk::{Found, SegmentWalk};

/// What was looked at, and everything in it that is not as it should be.
#[derive(Debug, Default)]
pub struct Verification {
    pub segment_count: u64,
    pub batch_count: u64,
    pub record_count: u64,
    pub bytes: u64,
    pub problems: Vec<Problem>,
}

/// A fault, and where it is. `position` is a place in the file at `path`, `offset` the record's that is concerned.
#[derive(Debug)]
pub struct Problem {
    pub path: PathBuf,
    pub position: FilePosition,
    pub offset: Offset,
    pub fault: Fault,
}

#[derive(Debug, thiserror::Error)]
pub enum Fault {
    #[error("not the log's next batch: {0}")]
    Batch(#[from] BadBatch),
    #[error("the records do not read: {0}")]
    Records(#[from] RecordsError),
    #[error("the header's largest timestamp is {header}, the records' is {records}")]
    MaxTimestamp {
        header: TimestampMs,
        records: TimestampMs,
    },
    #[error("its leader epoch is {found}, but leader-epoch-checkpoint says {}", known_epoch(.known))]
    LeaderEpoch {
        found: LeaderEpoch,
        known: Option<LeaderEpoch>,
    },
    #[error("{bytes} bytes of reserved space stand at the end of a sealed segment")]
    ReservedInSealed { bytes: u64 },
    #[error("the log ends here, but the next segment starts at offset {next_segment}")]
    Gap { next_segment: Offset },
    #[error("the log ends here, below the recovery point at offset {recovery_point}")]
    BelowRecoveryPoint { recovery_point: Offset },
    #[error("the index is damaged: {0}")]
    Index(#[from] IndexDamage),
    #[error("the entry names no batch that ends at its offset")]
    EntryWithoutBatch,
    #[error("the entry's timestamp is {entry}, but the largest up to there is {latest}")]
    EntryTimestamp {
        entry: TimestampMs,
        latest: TimestampMs,
    },
    #[error("the last entry's timestamp is {last}, but the segment's largest is {latest}")]
    LatestNotIndexed {
        last: TimestampMs,
        latest: TimestampMs,
    },
    #[error("the checkpoint is damaged: {0}")]
    Checkpoint(#[from] CheckpointDamage),
    #[error("the leader epochs are damaged: {0}")]
    LeaderEpochs(#[from] LeaderEpochsDamage),
    #[error("the producers are damaged: {0}")]
    Producers(#[from] SnapshotDamage),
}

fn known_epoch(known: &Option<LeaderEpoch>) -> String {
    known.map_or("nothing of that offset".into(), |epoch| epoch.to_string())
}

/// Reads a whole partition that no broker has open: every batch and its CRC, their order over all segments, leader epochs, both indexes
/// of each segment, and the state files. With `records`, every record too.
pub fn verify_partition(dir: &Path, records: bool) -> Result<Verification, FileError> {
    let mut verifier = Verifier::new(dir, records)?;
    let bases: Vec<Offset> = verifier.files.segments.keys().copied().collect();
    let mut log_end = None;
    for &base_offset in &bases {
        log_end = Some(verifier.segment(base_offset)?);
    }
    if let (Some((position, offset)), Some(point)) = (log_end, verifier.point)
        && offset < point.offset
    {
        let recovery_point = point.offset;
        let fault = Fault::BelowRecoveryPoint { recovery_point };
        let path = verifier.path(point.segment, SegmentFileKind::Log);
        verifier.report(path, position, offset, fault);
    }
    Ok(verifier.found)
}

/// Reads one segment of a partition, with its indexes, and what the state files say of it.
pub fn verify_segment(
    dir: &Path,
    base_offset: Offset,
    records: bool,
) -> Result<Verification, FileError> {
    let mut verifier = Verifier::new(dir, records)?;
    verifier.segment(base_offset)?;
    Ok(verifier.found)
}

struct Verifier<'a> {
    dir: &'a Path,
    records: bool,
    files: PartitionFiles,
    point: Option<RecoveryPoint>,
    epochs: Option<LeaderEpochs>,
    /// Of the batch in front, over all segments.
    leader_epoch: LeaderEpoch,
    /// Whether the gaps of the segment that is read are compaction's, once that was asked.
    is_cleaned: Option<bool>,
    found: Verification,
}

impl<'a> Verifier<'a> {
    fn new(dir: &'a Path, records: bool) -> Result<Self, FileError> {
        let mut verifier = Self {
            dir,
            records,
            files: PartitionFiles::list(dir)?,
            point: None,
            epochs: None,
            leader_epoch: LeaderEpoch::UNKNOWN,
            is_cleaned: None,
            found: Verification::default(),
        };
        verifier.read_state()?;
        Ok(verifier)
    }

    /// A new partition has none of the state files; a damaged one is a problem.
    fn read_state(&mut self) -> Result<(), FileError> {
        match PartitionCheckpoint::read(self.dir)? {
            Ok(checkpoint) => self.point = Some(checkpoint.recovery_point),
            Err(CheckpointDamage::Missing) => {}
            Err(damage) => self.report_state(super::checkpoint::CHECKPOINT_FILE, damage.into()),
        }
        match LeaderEpochs::read(self.dir)? {
            Some(Ok(epochs)) => self.epochs = Some(epochs),
            None => {}
            Some(Err(damage)) => self.report_state(LEADER_EPOCHS_FILE, damage.into()),
        }
        let snapshot = self.point.filter(|point| point.producer_count > 0);
        if let Some(point) = snapshot
            && let Err(damage) = producer_snapshot::read(self.dir, point.offset, 0)?
        {
            let name = SegmentFileName::new(point.offset, SegmentFileKind::Producers);
            self.report_state(&name.to_string(), damage.into());
        }
        Ok(())
    }

    /// Returns where the segment's batches end.
    fn segment(&mut self, base_offset: Offset) -> Result<(FilePosition, Offset), FileError> {
        let path = self.path(base_offset, SegmentFileKind::Log);
        let behind = (
            std::ops::Bound::Excluded(base_offset),
            std::ops::Bound::Unbounded,
        );
        let next_segment = self
            .files
            .segments
            .range(behind)
            .next()
            .map(|(&base, _)| base);
        let saved = self.point.filter(|point| point.segment == base_offset);
        let saved = saved.filter(|_| next_segment.is_none());
        let mut indexes = IndexCheck::load(
            self.dir,
            base_offset,
            next_segment,
            saved.map(|point| point.index_lengths),
        )?;
        let mut walk = SegmentWalk::open(&path)?;
        self.is_cleaned = None;
        let mut end = (FilePosition::ZERO, base_offset);
        while let Some((position, found)) = walk.read_next()? {
            let fault: Fault = match found {
                Found::Batch { header, crc } => {
                    self.batch(&path, position, &header, crc);
                    self.order(
                        &path,
                        (position, end.1),
                        &header,
                        (base_offset, next_segment),
                    )?;
                    if self.records {
                        self.records(&path, position, &header, walk.batch());
                    }
                    indexes.on_batch(&header, position);
                    let size_bytes = header.size_bytes() as u64;
                    end = (position.plus(size_bytes), header.next_offset());
                    self.found.batch_count += 1;
                    self.found.record_count += u64::try_from(header.record_count).unwrap_or(0);
                    continue;
                }
                Found::ReservedSpace if next_segment.is_none() => continue,
                Found::ReservedSpace => Fault::ReservedInSealed {
                    bytes: walk.size_bytes() - position.0,
                },
                Found::NoBatch(bad_batch) => bad_batch.into(),
            };
            self.report(path.clone(), position, end.1, fault);
        }
        if let Some(next_segment) = next_segment.filter(|&next| next != end.1) {
            self.report(path.clone(), end.0, end.1, Fault::Gap { next_segment });
        }
        self.found.problems.extend(indexes.finish());
        self.found.segment_count += 1;
        self.found.bytes += walk.size_bytes();
        Ok(end)
    }

    fn batch(
        &mut self,
        path: &Path,
        position: FilePosition,
        header: &RecordBatchHeader,
        crc: Option<u32>,
    ) {
        let mut faults: Vec<Fault> = Vec::new();
        if let Some(computed) = crc {
            let declared = header.crc;
            faults.push(BadBatch::Crc { declared, computed }.into());
        }
        let (last, found) = (self.leader_epoch, header.leader_epoch);
        let known = self
            .epochs
            .as_ref()
            .map(|epochs| epochs.epoch_of(header.base_offset));
        if found < last {
            faults.push(BadBatch::LeaderEpoch { last, found }.into());
        } else if let Some(known) = known.filter(|&known| known != Some(found)) {
            faults.push(Fault::LeaderEpoch { found, known });
        }
        self.leader_epoch = found;
        for fault in faults {
            self.report(path.to_owned(), position, header.base_offset, fault);
        }
    }

    /// Whether the batch is the log's next one. Missing offsets and records are no fault where compaction took them.
    fn order(
        &mut self,
        path: &Path,
        (position, expected): (FilePosition, Offset),
        header: &RecordBatchHeader,
        (segment, next_segment): (Offset, Option<Offset>),
    ) -> Result<(), FileError> {
        let RecordBatchHeader {
            base_offset: found,
            record_count,
            last_offset_delta,
            ..
        } = *header;
        let is_next = found == expected;
        let is_whole =
            record_count > 0 && i64::from(record_count) == i64::from(last_offset_delta) + 1;
        if is_next && is_whole {
            return Ok(());
        }
        let is_cleaned = match (self.is_cleaned, next_segment) {
            (Some(is_cleaned), _) => is_cleaned,
            (None, None) => false,
            (None, Some(segment_end)) => {
                let start = ScanStart::of_segment(segment, LeaderEpoch::UNKNOWN);
                scan_sealed(path, start, segment_end, |_, _| {})?.next_offset == segment_end
            }
        };
        self.is_cleaned = Some(is_cleaned);
        if !is_cleaned && !is_next {
            let fault = BadBatch::BaseOffset { expected, found };
            self.report(path.to_owned(), position, found, fault.into());
        }
        if !is_cleaned && !is_whole {
            let fault = BadBatch::Counts {
                record_count,
                last_offset_delta,
            };
            self.report(path.to_owned(), position, found, fault.into());
        }
        Ok(())
    }

    fn records(
        &mut self,
        path: &Path,
        position: FilePosition,
        header: &RecordBatchHeader,
        batch: &[u8],
    ) {
        let fault = match max_timestamp(batch) {
            Err(error) => error.into(),
            // Compaction has taken all of them; the time is kept as it was.
            Ok(_) if header.record_count == 0 => return,
            Ok(records)
                if header.attributes.timestamp_type() == TimestampType::CreateTime
                    && records != header.max_timestamp =>
            {
                Fault::MaxTimestamp {
                    header: header.max_timestamp,
                    records,
                }
            }
            Ok(_) => return,
        };
        self.report(path.to_owned(), position, header.base_offset, fault);
    }

    fn report_state(&mut self, name: &str, fault: Fault) {
        self.report(
            self.dir.join(name),
            FilePosition::ZERO,
            Offset::UNKNOWN,
            fault,
        );
    }

    fn report(&mut self, path: PathBuf, position: FilePosition, offset: Offset, fault: Fault) {
        self.found.problems.push(Problem {
            path,
            position,
            offset,
            fault,
        });
    }

    fn path(&self, base_offset: Offset, kind: SegmentFileKind) -> PathBuf {
        self.dir
            .join(SegmentFileName::new(base_offset, kind).to_string())
    }
}

/// Reads every record of a batch.
fn max_timestamp(batch: &[u8]) -> Result<TimestampMs, RecordsError> {
    let mut reader = RecordReader::new(batch, InflateBounds::WIDEST)?;
    let mut latest = TimestampMs::NONE;
    while let Some(record) = reader.next_record()? {
        latest = latest.max(record.timestamp);
    }
    Ok(latest)
}
