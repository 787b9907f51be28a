//! Writes a cleaned segment: its batches into `<base offset>.log.cleaned`, and its indexes as they follow from them.

use std::path::Path;

use crate::io::chunk::{ChunkPool, OpenChunk};
use crate::io::disk::OpenMode;
use crate::model::limits::{CHUNK_BYTES_MAX, CLEANED_SPACE_STEP_BYTES};
use crate::model::{FilePosition, Offset};
use crate::record::RecordBatchHeader;
use crate::storage::cleaner::cleaning::CleaningError;
use crate::storage::cleaner::swap::cleaned_log_path;
use crate::storage::index_builder::{IndexBuilder, IndexLengths};
use crate::storage::index_files::IndexTail;
use crate::storage::log::SegmentKey;
use crate::storage::open_files::{OpenFiles, SegmentFile};

/// A segment in the making. It is no part of the log before its swap.
pub struct CleanedFile {
    file: SegmentFile,
    pool: ChunkPool,
    /// Filled to its end before it is written, so that every write but the last is whole pages.
    open: OpenChunk,
    /// The bytes in front of `open`, all written.
    written: FilePosition,
    /// Where the file's space ends. It grows in steps, since whatever is left of it at the end goes back to the file system.
    space: FilePosition,
    indexes: IndexBuilder,
    end: Offset,
    written_bytes: u64,
}

/// A cleaned segment whose batches are on disk, synced and of exact length. Its indexes are in memory yet.
pub struct CleanedSegment {
    pub size: FilePosition,
    pub indexes: IndexBuilder,
}

impl CleanedFile {
    pub async fn create(
        key: SegmentKey,
        dir: &Path,
        index_interval_bytes: u64,
        files: &OpenFiles,
        pool: &ChunkPool,
    ) -> Result<Self, CleaningError> {
        let path = cleaned_log_path(dir, key.segment);
        let file = files.get(key, &path, OpenMode::Create).await?;
        file.truncate(0).await?;
        Ok(Self {
            file,
            pool: pool.clone(),
            open: pool.take(CHUNK_BYTES_MAX),
            written: FilePosition::ZERO,
            space: FilePosition::ZERO,
            indexes: IndexBuilder::new(key.segment, index_interval_bytes),
            end: key.segment,
            written_bytes: 0,
        })
    }

    /// Adds a batch behind the others.
    pub async fn push(
        &mut self,
        header: &RecordBatchHeader,
        batch: &[u8],
    ) -> Result<(), CleaningError> {
        let position = self.size();
        let last_offset = header.last_offset();
        let span = last_offset.since(self.base_offset());
        if position.0 + batch.len() as u64 > i32::MAX as u64 || span > i64::from(i32::MAX) {
            return Err(CleaningError::TooLarge {
                path: self.file.path().to_owned(),
                last_offset,
            });
        }
        self.indexes
            .on_batch(last_offset, header.newest_record(), position);
        self.end = header.next_offset();
        let mut rest = batch;
        while !rest.is_empty() {
            let (now, behind) = rest.split_at(rest.len().min(self.open.remaining()));
            self.open.append(now);
            rest = behind;
            if self.open.remaining() == 0 {
                self.write_open().await?;
            }
        }
        Ok(())
    }

    /// What was written to the disk since the last call.
    pub fn take_written_bytes(&mut self) -> u64 {
        std::mem::take(&mut self.written_bytes)
    }

    pub fn base_offset(&self) -> Offset {
        self.indexes.base_offset()
    }

    /// The offset behind the last batch.
    pub fn end(&self) -> Offset {
        self.end
    }

    fn size(&self) -> FilePosition {
        self.written.plus(self.open.len() as u64)
    }

    /// Completes when the batches survive a power cut, as far as their file's name does.
    pub async fn finish(mut self) -> Result<CleanedSegment, CleaningError> {
        let size = self.size();
        if !self.open.is_empty() {
            self.write_open().await?;
        }
        self.file.truncate(size.0).await?;
        self.file.fdatasync().await?;
        self.indexes.seal();
        Ok(CleanedSegment {
            size,
            indexes: self.indexes,
        })
    }

    async fn write_open(&mut self) -> Result<(), CleaningError> {
        let full = std::mem::replace(&mut self.open, self.pool.take(CHUNK_BYTES_MAX)).freeze();
        let end = self.written.plus(full.padded_len() as u64);
        if end > self.space {
            self.space = self.written.plus(CLEANED_SPACE_STEP_BYTES);
            self.file.allocate(self.space.0).await?;
        }
        self.file.write(&full, self.written).await?;
        self.written = self.written.plus(full.len() as u64);
        self.written_bytes += full.padded_len() as u64;
        Ok(())
    }
}

impl CleanedSegment {
    /// What goes into its index files.
    pub fn index_tail(&self) -> IndexTail {
        IndexTail::of(&self.indexes, IndexLengths::default())
    }
}
