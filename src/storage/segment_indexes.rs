//! Both indexes of a sealed segment, as a reader uses them.

use std::path::{Path, PathBuf};

use crate::model::{FilePosition, Offset, TimestampMs};

use super::file_error::FileError;
use super::index_builder::{IndexBuilder, IndexLengths};
use super::index_files::{self, IndexTail};
use super::offset_index::{OffsetIndex, SegmentEnd};
use super::time_index::TimeIndex;

#[derive(Clone, Debug)]
pub struct SegmentIndexes {
    offsets: OffsetIndex,
    times: TimeIndex,
}

impl SegmentIndexes {
    /// Reads them from their files; makes them anew from the segment where they are missing or damaged. Also whether the files have them
    /// now. Blocks.
    pub fn load(
        directory: &Path,
        base_offset: Offset,
        end: SegmentEnd,
        interval_bytes: u64,
    ) -> Result<(Self, bool), FileError> {
        match index_files::load_sealed(directory, base_offset, end, interval_bytes)? {
            Ok((offsets, times)) => Ok((Self { offsets, times }, true)),
            Err(damage) => {
                let path: PathBuf = directory.join(format!("{:020}.index", base_offset.0));
                tracing::warn!(path = %path.display(), reason = %damage, "an index is made anew");
                let rebuilt =
                    index_files::rebuild_sealed(directory, base_offset, end, interval_bytes)?;
                Ok((Self::from(rebuilt.indexes), rebuilt.is_stored))
            }
        }
    }

    /// All of them, as their files are to hold them.
    pub fn to_files(&self) -> IndexTail {
        IndexTail::of_both(&self.offsets, &self.times, IndexLengths::default())
    }

    /// Where to read forward from to find `offset`.
    pub fn floor(&self, offset: Offset) -> FilePosition {
        self.offsets.lookup(offset).position
    }

    /// The offset from which to read forward to find the first record at or after `timestamp`.
    pub fn floor_by_time(&self, timestamp: TimestampMs) -> Offset {
        floor_by_time(&self.times, timestamp)
    }
}

impl From<IndexBuilder> for SegmentIndexes {
    fn from(builder: IndexBuilder) -> Self {
        let (offsets, times) = builder.into_indexes();
        Self { offsets, times }
    }
}

/// See [`SegmentIndexes::floor_by_time`].
pub fn floor_by_time(times: &TimeIndex, timestamp: TimestampMs) -> Offset {
    // An entry says that no record up to its offset is later than its timestamp; records equal to it may lie before.
    let before = TimestampMs(timestamp.0.saturating_sub(1));
    times
        .lookup(before)
        .map_or(times.base_offset(), |entry| entry.offset)
}
