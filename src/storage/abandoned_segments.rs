//! Segment files that hold nothing and lie within the log: a roll made them and came to nothing, and the log continued in the segment
//! before. Older versions left such files on a full disk.
//!
//! ```text
//! 30.log   30 ......... 79 | 80 ......... 95      the log continued here
//! 80.log                     (empty, or zeros)    abandoned
//! 96.log                                     96 ...
//! ```
//!
//! Taken for a segment, an abandoned one would end the one before at 80, and what follows there would be cut.

use std::io;
use std::path::{Path, PathBuf};

use crate::io::fs::{self, File};
use crate::model::limits::RECORD_BATCH_HEADER_BYTES;
use crate::model::{FilePosition, LeaderEpoch, Offset};

use super::checkpoint::RecoveryPoint;
use super::file_error::FileError;
use super::partition_files::PartitionFiles;
use super::scan::{ScanStart, scan_cleaned_file};
use super::segment_name::{SegmentFileKind, SegmentFileName};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AbandonedSegment {
    pub base_offset: Offset,
    /// The segment in which the log continued.
    pub within: Offset,
}

impl AbandonedSegment {
    /// Reads little where there are none: of a segment with index entries only their file's length is looked up.
    pub fn find(
        dir: &Path,
        files: &PartitionFiles,
        point: Option<&RecoveryPoint>,
    ) -> Result<Vec<Self>, FileError> {
        let mut found = Vec::new();
        let mut before: Option<Before> = None;
        for (&base_offset, &size_bytes) in &files.segments {
            // A recovery point is only ever taken in a segment that the log has reached.
            let is_reached = point.is_some_and(|point| point.segment == base_offset);
            if let Some(before) = &mut before
                && !is_reached
                && !has_index(dir, base_offset)?
                && holds_nothing(dir, base_offset, size_bytes)?
                && before.log_passes(dir, base_offset, point)?
            {
                let within = before.segment;
                found.push(Self {
                    base_offset,
                    within,
                });
                continue;
            }
            before = Some(Before {
                segment: base_offset,
                size_bytes,
                end: None,
            });
        }
        Ok(found)
    }
}

/// The segment that lies before those looked at.
struct Before {
    segment: Offset,
    size_bytes: u64,
    /// Where its batches end, once that was needed.
    end: Option<Offset>,
}

impl Before {
    /// Whether its batches reach beyond `offset`.
    fn log_passes(
        &mut self,
        dir: &Path,
        offset: Offset,
        point: Option<&RecoveryPoint>,
    ) -> Result<bool, FileError> {
        let end = match self.end {
            Some(end) => end,
            None => {
                let from = point.filter(|point| {
                    point.segment == self.segment && point.position.0 <= self.size_bytes
                });
                let start = match from {
                    Some(point) => ScanStart {
                        segment: self.segment,
                        position: point.position,
                        next_offset: point.offset,
                        leader_epoch: point.leader_epoch,
                    },
                    None => ScanStart::of_segment(self.segment, LeaderEpoch::UNKNOWN),
                };
                let path = path(dir, self.segment, SegmentFileKind::Log);
                scan_cleaned_file(&path, start, None, |_, _| {})?.next_offset
            }
        };
        self.end = Some(end);
        Ok(end > offset)
    }
}

/// Whether a segment's file has no batch at its start: it is empty, or space that was allocated and never written.
pub(super) fn holds_nothing(
    dir: &Path,
    base_offset: Offset,
    size_bytes: u64,
) -> Result<bool, FileError> {
    if size_bytes == 0 {
        return Ok(true);
    }
    let path = path(dir, base_offset, SegmentFileKind::Log);
    let file = File::open(&path).map_err(FileError::of("open", &path))?;
    let mut start = [0; RECORD_BATCH_HEADER_BYTES];
    let length = start
        .len()
        .min(usize::try_from(size_bytes).unwrap_or(usize::MAX));
    file.read_exact_at(&mut start[..length], FilePosition::ZERO.0)
        .map_err(FileError::of("read", &path))?;
    Ok(start.iter().all(|&byte| byte == 0))
}

/// A segment that was sealed with records in it has an entry at least, unless none of them has a timestamp.
fn has_index(dir: &Path, base_offset: Offset) -> Result<bool, FileError> {
    let path = path(dir, base_offset, SegmentFileKind::TimeIndex);
    match fs::metadata(&path) {
        Ok(metadata) => Ok(metadata.size_bytes() > 0),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(FileError::of("look up", &path)(error)),
    }
}

fn path(dir: &Path, base_offset: Offset, kind: SegmentFileKind) -> PathBuf {
    dir.join(SegmentFileName::new(base_offset, kind).to_string())
}
