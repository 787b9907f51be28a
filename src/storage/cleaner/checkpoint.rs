//! How far a partition's log has been cleaned.

use std::path::Path;

use crate::model::Offset;
use crate::storage::atomic_file;
use crate::storage::checksum_frame::{ChecksumFrame, FrameDamage};
use crate::storage::file_error::FileError;

/// The file's name in the partition's directory.
pub const CLEANER_CHECKPOINT_FILE: &str = "cleaner.checkpoint";

const FRAME: ChecksumFrame = ChecksumFrame {
    magic: *b"CLCC",
    version: 1,
};

const FILE_BYTES_MAX: u64 = 4096;

/// The first dirty offset: below it each key has only its latest record, as far as that lies below too. In its file:
///
/// ```text
/// | checksum frame "CLCC", 16 bytes | first dirty offset i64, big-endian |
/// ```
///
/// It is written behind the segments that it speaks of. Lost or damaged, it costs another cleaning from the log's start.
pub fn write(dir: &Path, first_dirty: Offset) -> Result<(), FileError> {
    atomic_file::replace(
        &dir.join(CLEANER_CHECKPOINT_FILE),
        &FRAME.wrap(&first_dirty.0.to_be_bytes()),
    )
}

/// `None` if the log was never cleaned.
pub fn read(dir: &Path) -> Result<Option<Result<Offset, FrameDamage>>, FileError> {
    let file = atomic_file::read(&dir.join(CLEANER_CHECKPOINT_FILE), FILE_BYTES_MAX)?;
    Ok(file.map(|file| decode(&file)))
}

fn decode(file: &[u8]) -> Result<Offset, FrameDamage> {
    let body = FRAME.unwrap(file)?;
    let body = body.as_slice().try_into().map_err(|_| FrameDamage::Body)?;
    Ok(Offset(i64::from_be_bytes(body)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_offset_comes_back_and_damage_is_seen() {
        let dir = tempfile::tempdir().unwrap();
        assert!(read(dir.path()).unwrap().is_none());
        write(dir.path(), Offset(77)).unwrap();
        assert_eq!(read(dir.path()).unwrap(), Some(Ok(Offset(77))));
        let path = dir.path().join(CLEANER_CHECKPOINT_FILE);
        let mut file = std::fs::read(&path).unwrap();
        file[20] ^= 1;
        std::fs::write(&path, file).unwrap();
        assert!(matches!(read(dir.path()).unwrap(), Some(Err(_))));
    }
}
