use std::path::{Path, PathBuf};

use crate::model::limits::INDEX_FILE_BYTES_MAX;
use crate::model::{FilePosition, Offset, TimestampMs};
use crate::record::RecordBatchHeader;

use super::atomic_file;
use super::file_error::FileError;
use super::index_builder::IndexLengths;
use super::offset_index::{
    IndexDamage, OFFSET_INDEX_ENTRY_BYTES, OffsetIndex, OffsetIndexEntry, SegmentEnd,
};
use super::segment_name::{SegmentFileKind, SegmentFileName};
use super::time_index::{TIME_INDEX_ENTRY_BYTES, TimeIndex, TimeIndexEntry};
use super::verify::{Fault, Problem};

/// Compares the indexes of a segment with its batches, as they are read in order. It is no rebuild: any entry is right that names a batch
/// truly, whatever interval the index was made with.
#[derive(Debug)]
pub(super) struct IndexCheck {
    offsets: Checked<OffsetIndexEntry>,
    times: Checked<TimeIndexEntry>,
    is_sealed: bool,
    latest: TimestampMs,
    end_offset: Offset,
    problems: Vec<Problem>,
}

/// The entries of one file, and how far they are checked.
#[derive(Debug)]
struct Checked<Entry> {
    path: PathBuf,
    entry_bytes: usize,
    entries: Vec<Entry>,
    next: usize,
    is_damaged: bool,
}

impl IndexCheck {
    /// `next_segment` is there if the segment is sealed. Of an active one's files only what a checkpoint vouches for is looked at.
    pub fn load(
        dir: &Path,
        base_offset: Offset,
        next_segment: Option<Offset>,
        saved: Option<IndexLengths>,
    ) -> Result<Self, FileError> {
        let is_sealed = next_segment.is_some();
        let saved = saved.unwrap_or_default();
        let end = SegmentEnd {
            position: FilePosition(u64::MAX),
            offset: next_segment.unwrap_or(Offset(i64::MAX)),
        };
        let mut problems = Vec::new();
        let read = |kind, entry_bytes: usize, saved_entries: u32| {
            let path = dir.join(SegmentFileName::new(base_offset, kind).to_string());
            let bytes = match saved_entries as usize * entry_bytes {
                0 if !is_sealed => Ok(Vec::new()),
                saved_bytes => match atomic_file::read(&path, INDEX_FILE_BYTES_MAX)? {
                    None => Err(IndexDamage::Missing),
                    Some(bytes) if is_sealed => Ok(bytes),
                    Some(bytes) if bytes.len() >= saved_bytes => Ok(bytes[..saved_bytes].to_vec()),
                    Some(bytes) => Err(IndexDamage::TooShort {
                        size_bytes: bytes.len(),
                        expected_bytes: saved_bytes,
                    }),
                },
            };
            Ok::<_, FileError>((path, bytes))
        };
        let (offsets_path, offsets) = read(
            SegmentFileKind::OffsetIndex,
            OFFSET_INDEX_ENTRY_BYTES,
            saved.offset_entries,
        )?;
        let (times_path, times) = read(
            SegmentFileKind::TimeIndex,
            TIME_INDEX_ENTRY_BYTES,
            saved.time_entries,
        )?;
        let offsets = offsets
            .and_then(|bytes| OffsetIndex::decode(base_offset, &bytes, end))
            .map(|index| index.iter().collect());
        let times = times
            .and_then(|bytes| TimeIndex::decode(base_offset, &bytes, end))
            .map(|index| index.iter().collect());
        Ok(Self {
            offsets: Checked::new(
                offsets_path,
                OFFSET_INDEX_ENTRY_BYTES,
                offsets,
                base_offset,
                &mut problems,
            ),
            times: Checked::new(
                times_path,
                TIME_INDEX_ENTRY_BYTES,
                times,
                base_offset,
                &mut problems,
            ),
            is_sealed,
            latest: TimestampMs::NONE,
            end_offset: base_offset,
            problems,
        })
    }

    /// Takes the segment's next batch.
    pub fn on_batch(&mut self, header: &RecordBatchHeader, position: FilePosition) {
        let last_offset = header.last_offset();
        self.latest = self.latest.max(header.newest_record());
        self.end_offset = header.next_offset();
        while let Some(&entry) = self.offsets.peek()
            && entry.position <= position
        {
            if entry
                != (OffsetIndexEntry {
                    offset: last_offset,
                    position,
                })
            {
                let problem = self.offsets.problem(entry.offset, Fault::EntryWithoutBatch);
                self.problems.push(problem);
            }
            self.offsets.next += 1;
        }
        while let Some(&entry) = self.times.peek()
            && entry.offset <= last_offset
        {
            let (timestamp, latest) = (entry.timestamp, self.latest);
            let fault = if entry.offset != last_offset {
                Some(Fault::EntryWithoutBatch)
            } else {
                (timestamp != latest).then_some(Fault::EntryTimestamp {
                    entry: timestamp,
                    latest,
                })
            };
            let problem = fault.map(|fault| self.times.problem(entry.offset, fault));
            self.problems.extend(problem);
            self.times.next += 1;
        }
    }

    /// After the last batch.
    pub fn finish(mut self) -> Vec<Problem> {
        while let Some(&entry) = self.offsets.peek() {
            let problem = self.offsets.problem(entry.offset, Fault::EntryWithoutBatch);
            self.problems.push(problem);
            self.offsets.next += 1;
        }
        while let Some(&entry) = self.times.peek() {
            let problem = self.times.problem(entry.offset, Fault::EntryWithoutBatch);
            self.problems.push(problem);
            self.times.next += 1;
        }
        let last = self.times.entries.last();
        let (last, latest) = (
            last.map_or(TimestampMs::NONE, |entry| entry.timestamp),
            self.latest,
        );
        if self.is_sealed && last < latest && !self.times.is_damaged {
            let fault = Fault::LatestNotIndexed { last, latest };
            let problem = self.times.problem(self.end_offset, fault);
            self.problems.push(problem);
        }
        self.problems
    }
}

impl<Entry> Checked<Entry> {
    fn new(
        path: PathBuf,
        entry_bytes: usize,
        entries: Result<Vec<Entry>, IndexDamage>,
        base_offset: Offset,
        problems: &mut Vec<Problem>,
    ) -> Self {
        let is_damaged = entries.is_err();
        let (entries, damage) = match entries {
            Ok(entries) => (entries, None),
            Err(damage) => (Vec::new(), Some(damage)),
        };
        let checked = Self {
            path,
            entry_bytes,
            entries,
            next: 0,
            is_damaged,
        };
        problems.extend(damage.map(|damage| checked.problem(base_offset, damage.into())));
        checked
    }

    fn peek(&self) -> Option<&Entry> {
        self.entries.get(self.next)
    }

    /// At the entry that is checked next.
    fn problem(&self, offset: Offset, fault: Fault) -> Problem {
        Problem {
            path: self.path.clone(),
            position: FilePosition(self.next as u64 * self.entry_bytes as u64),
            offset,
            fault,
        }
    }
}
