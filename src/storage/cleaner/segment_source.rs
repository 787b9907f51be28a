//! Reads a sealed segment from its start to its end, batch by batch, for the cleaner: past the readers' cache.

use std::path::PathBuf;

use crate::io::disk::OpenMode;
use crate::model::limits::{READ_BLOCK_BYTES, RECORD_BATCH_HEADER_BYTES};
use crate::model::{FilePosition, Offset};
use crate::record::RecordBatchHeader;
use crate::storage::cleaner::cleaning::CleaningError;
use crate::storage::log::LogId;
use crate::storage::open_files::{OpenFiles, SegmentFile};
use crate::storage::sealed_segment::SealedSegment;

pub struct SegmentSource {
    file: SegmentFile,
    path: PathBuf,
    size: FilePosition,
    /// The next batch begins here or above: compaction leaves gaps.
    next_offset: Offset,
    /// Behind the segment's last batch.
    end_offset: Offset,
    /// Where the bytes in `buffer` lie.
    position: FilePosition,
    buffer: Vec<u8>,
    /// What of the buffer was handed out.
    taken_bytes: usize,
    read_bytes: u64,
}

impl SegmentSource {
    pub async fn open(
        segment: &SealedSegment,
        log: LogId,
        files: &OpenFiles,
    ) -> Result<Self, CleaningError> {
        let path = segment.path().to_owned();
        let file = files
            .get(segment.key(log), &path, OpenMode::Existing)
            .await?;
        Ok(Self {
            file,
            path,
            size: segment.size(),
            next_offset: segment.base_offset(),
            end_offset: segment.next_offset(),
            position: FilePosition::ZERO,
            buffer: Vec::new(),
            taken_bytes: 0,
            read_bytes: 0,
        })
    }

    /// The next batch, whole and with a CRC that fits; `None` at the segment's end. No CRC covers its base offset, which must lie
    /// behind the batch in front and in the segment.
    pub async fn next_batch(
        &mut self,
    ) -> Result<Option<(RecordBatchHeader, &[u8])>, CleaningError> {
        if self.is_at_end() {
            return Ok(None);
        }
        if self.held_bytes() < RECORD_BATCH_HEADER_BYTES {
            self.read_until(RECORD_BATCH_HEADER_BYTES).await?;
        }
        let at = self.position.plus(self.taken_bytes as u64);
        let header = RecordBatchHeader::parse(&self.buffer[self.taken_bytes..])
            .ok()
            .filter(|header| at.plus(header.size_bytes() as u64) <= self.size)
            .filter(|header| header.counts_fit() && header.base_offset >= self.next_offset)
            .filter(|header| header.next_offset() <= self.end_offset)
            .ok_or_else(|| self.corrupt(at))?;
        if self.held_bytes() < header.size_bytes() {
            self.read_until(header.size_bytes()).await?;
        }
        let from = self.taken_bytes;
        self.taken_bytes += header.size_bytes();
        let batch = &self.buffer[from..self.taken_bytes];
        if !header.crc_fits(batch) {
            return Err(self.corrupt(at));
        }
        self.next_offset = header.next_offset();
        Ok(Some((header, batch)))
    }

    /// Whether the batch that was handed out was the last one.
    pub fn is_at_end(&self) -> bool {
        self.position.plus(self.taken_bytes as u64) >= self.size
    }

    /// What was read from the disk since the last call.
    pub fn take_read_bytes(&mut self) -> u64 {
        std::mem::take(&mut self.read_bytes)
    }

    fn corrupt(&self, position: FilePosition) -> CleaningError {
        CleaningError::Corrupt {
            path: self.path.clone(),
            position,
        }
    }

    fn held_bytes(&self) -> usize {
        self.buffer.len() - self.taken_bytes
    }

    /// Reads until `needed_bytes` are held, or the segment ends.
    async fn read_until(&mut self, needed_bytes: usize) -> Result<(), CleaningError> {
        self.buffer.drain(..self.taken_bytes);
        self.position = self.position.plus(self.taken_bytes as u64);
        self.taken_bytes = 0;
        while self.buffer.len() < needed_bytes {
            let from = self.position.plus(self.buffer.len() as u64);
            let wanted_bytes = (self.size.0 - from.0).min(READ_BLOCK_BYTES as u64) as usize;
            let bytes = self.file.read(from, wanted_bytes).await?;
            if wanted_bytes == 0 || bytes.len() < wanted_bytes {
                return Err(self.corrupt(from));
            }
            self.read_bytes += bytes.len() as u64;
            self.buffer.extend_from_slice(&bytes);
        }
        Ok(())
    }
}
