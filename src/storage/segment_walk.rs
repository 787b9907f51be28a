use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use crate::io::fs::File;
use crate::model::FilePosition;
use crate::model::limits::{RECORD_BATCH_HEADER_BYTES, SCAN_BUFFER_BYTES};
use crate::record::RecordBatchHeader;
use crate::record::header::CRC_COVERS_FROM;

use super::file_error::FileError;
use super::scan::BadBatch;

/// Reads a segment file for whoever looks into it: batch by batch, also past those that a scan would stop at, as long as their
/// lengths still tell where the next one starts.
#[derive(Debug)]
pub struct SegmentWalk {
    path: PathBuf,
    source: BufReader<File>,
    size_bytes: u64,
    position: FilePosition,
    batch: Vec<u8>,
}

/// What lies at a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// A batch of whole length; `crc` is `None` if it fits, else what it should be.
    Batch {
        header: RecordBatchHeader,
        crc: Option<u32>,
    },
    /// Zeros up to the end of the file.
    ReservedSpace,
    /// No batch; nothing behind can be told apart.
    NoBatch(BadBatch),
}

impl SegmentWalk {
    pub fn open(path: &Path) -> Result<Self, FileError> {
        let file = File::open(path).map_err(FileError::of("open", path))?;
        let size_bytes = file
            .metadata()
            .map_err(FileError::of("look up", path))?
            .size_bytes();
        Ok(Self {
            path: path.to_owned(),
            source: BufReader::with_capacity(SCAN_BUFFER_BYTES, file),
            size_bytes,
            position: FilePosition::ZERO,
            batch: Vec::new(),
        })
    }

    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// The bytes of the batch that was found last.
    pub fn batch(&self) -> &[u8] {
        &self.batch
    }

    /// What lies behind what was found last, and where; `None` at the end of the file or behind what is no batch.
    pub fn read_next(&mut self) -> Result<Option<(FilePosition, Found)>, FileError> {
        let position = self.position;
        let left_bytes = self.size_bytes - position.0;
        if left_bytes == 0 {
            return Ok(None);
        }
        self.batch.clear();
        self.read(left_bytes.min(RECORD_BATCH_HEADER_BYTES as u64))?;
        let found = self.judge(left_bytes)?;
        self.position = match &found {
            Found::Batch { header, .. } => position.plus(header.size_bytes() as u64),
            Found::ReservedSpace | Found::NoBatch(_) => FilePosition(self.size_bytes),
        };
        Ok(Some((position, found)))
    }

    fn judge(&mut self, left_bytes: u64) -> Result<Found, FileError> {
        if self.batch.iter().all(|&byte| byte == 0) && self.is_zero_to_the_end()? {
            return Ok(Found::ReservedSpace);
        }
        let header = match RecordBatchHeader::parse(&self.batch) {
            Ok(header) => header,
            Err(error) => return Ok(Found::NoBatch(error.into())),
        };
        let size_bytes = header.size_bytes() as u64;
        if size_bytes > left_bytes {
            return Ok(Found::NoBatch(BadBatch::Torn {
                size_bytes,
                have_bytes: left_bytes,
            }));
        }
        self.read(size_bytes - RECORD_BATCH_HEADER_BYTES as u64)?;
        let computed = crc32c::crc32c(&self.batch[CRC_COVERS_FROM..]);
        Ok(Found::Batch {
            header,
            crc: (computed != header.crc).then_some(computed),
        })
    }

    /// Adds `len_bytes` of the file, which has them, to the batch.
    fn read(&mut self, len_bytes: u64) -> Result<(), FileError> {
        (&mut self.source)
            .take(len_bytes)
            .read_to_end(&mut self.batch)
            .map(|_| ())
            .map_err(FileError::of("read", &self.path))
    }

    fn is_zero_to_the_end(&mut self) -> Result<bool, FileError> {
        let mut block = [0; 4096];
        loop {
            let read = self
                .source
                .read(&mut block)
                .map_err(FileError::of("read", &self.path))?;
            if read == 0 {
                return Ok(true);
            }
            if block[..read].iter().any(|&byte| byte != 0) {
                return Ok(false);
            }
        }
    }
}
