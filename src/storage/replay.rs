use std::path::Path;

use crate::model::{FilePosition, Offset};
use crate::record::RecordBatchHeader;

use super::file_error::FileError;
use super::index_builder::{IndexBuilder, IndexLengths};
use super::index_files::IndexTail;
use super::leader_epochs::LeaderEpochs;
use super::partition_files::{PartitionFiles, written_at};
use super::producer_state::{ProducerBatch, ProducerState};
use super::recovery::{RecoveryRules, SealedSegmentInfo};
use super::recovery_start::RecoveryStart;
use super::scan::{ScanEnd, ScanStart, ScanStop, scan_file};
use super::sealed_scan::scan_sealed;
use super::segment_name::{SegmentFileKind, SegmentFileName};

/// The log as reading it forward from a start shows it. Nothing is cut or removed yet: the whole indexes of segments that
/// are complete are all that is written.
#[derive(Debug)]
pub(super) struct Replay {
    /// The segments that were read to their end and continue in the next one.
    pub sealed: Vec<SealedSegmentInfo>,
    /// The segment in which the log ends, and where.
    pub last_segment: Offset,
    pub end: ScanEnd,
    pub indexes: IndexBuilder,
    /// How many entries of `indexes` its files have.
    pub saved: IndexLengths,
    pub epochs: LeaderEpochs,
    pub producers: ProducerState,
    /// The segments behind, which do not continue the log.
    pub unreachable: Vec<Offset>,
    pub bytes_read: u64,
}

impl Replay {
    pub fn run(
        dir: &Path,
        start: RecoveryStart,
        files: &PartitionFiles,
        rules: &RecoveryRules,
    ) -> Result<Self, FileError> {
        let RecoveryStart {
            mut scan,
            mut indexes,
            mut saved,
            mut epochs,
            mut producers,
            producers_known_to,
            ..
        } = start;
        let behind = (
            std::ops::Bound::Excluded(scan.segment),
            std::ops::Bound::Unbounded,
        );
        let mut following = files
            .segments
            .range(behind)
            .map(|(&base_offset, _)| base_offset)
            .peekable();
        let mut sealed = Vec::new();
        let mut bytes_read = 0;
        loop {
            let next_segment = following.peek().copied();
            let size_bytes = files.segments.get(&scan.segment).copied().unwrap_or(0);
            let on_batch = |header: &RecordBatchHeader, position: FilePosition| {
                indexes.on_batch(header.last_offset(), header.newest_record(), position);
                epochs.assign(header.leader_epoch, header.base_offset);
                if let Some(batch) =
                    ProducerBatch::of(header).filter(|_| header.base_offset >= producers_known_to)
                {
                    producers.record(
                        &batch,
                        header.base_offset,
                        header.last_offset(),
                        header.max_timestamp,
                        rules.now_ns,
                    );
                }
            };
            let end = scan_segment(dir, scan, size_bytes, next_segment, on_batch)?;
            bytes_read += end.bytes_read;
            if next_segment != Some(end.next_offset) {
                let unreachable = following.collect();
                let last_segment = scan.segment;
                return Ok(Self {
                    sealed,
                    last_segment,
                    end,
                    indexes,
                    saved,
                    epochs,
                    producers,
                    unreachable,
                    bytes_read,
                });
            }
            following.next();
            indexes.seal();
            let is_stored = IndexTail::of(&indexes, saved).write_if_there_is_space(dir)?;
            sealed.push(SealedSegmentInfo {
                base_offset: scan.segment,
                size_bytes: end.position.0,
                end_offset: end.next_offset,
                latest: indexes.latest(),
                written_at: written_at(dir, scan.segment, indexes.latest())?,
                unstored_indexes: (!is_stored).then_some(indexes),
            });
            scan = ScanStart::of_segment(end.next_offset, end.leader_epoch);
            indexes = IndexBuilder::new(end.next_offset, rules.index_interval_bytes);
            saved = IndexLengths::default();
        }
    }

    /// The first segment that was read.
    pub fn first_segment(&self) -> Offset {
        self.sealed
            .first()
            .map_or(self.last_segment, |sealed| sealed.base_offset)
    }

    /// Nothing of the log is left; it goes on, empty, at `base_offset`.
    pub fn start_over(&mut self, base_offset: Offset, rules: &RecoveryRules) {
        self.last_segment = base_offset;
        self.end = ScanEnd {
            position: FilePosition::ZERO,
            next_offset: base_offset,
            ..self.end
        };
        self.indexes = IndexBuilder::new(base_offset, rules.index_interval_bytes);
        self.saved = IndexLengths::default();
    }
}

/// Does not even open a segment of which there is nothing to read: after a clean stop that is the case everywhere.
fn scan_segment(
    dir: &Path,
    start: ScanStart,
    size_bytes: u64,
    next_segment: Option<Offset>,
    on_batch: impl FnMut(&RecordBatchHeader, FilePosition),
) -> Result<ScanEnd, FileError> {
    if size_bytes == start.position.0 {
        return Ok(ScanEnd {
            position: start.position,
            next_offset: start.next_offset,
            leader_epoch: start.leader_epoch,
            stop: ScanStop::EndOfFile,
            bytes_read: 0,
        });
    }
    let path = dir.join(SegmentFileName::new(start.segment, SegmentFileKind::Log).to_string());
    match next_segment {
        Some(segment_end) => scan_sealed(&path, start, segment_end, on_batch),
        None => scan_file(&path, start, None, on_batch),
    }
}
