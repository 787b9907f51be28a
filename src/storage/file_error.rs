use std::io;
use std::path::{Path, PathBuf};

use crate::io::os_error::Shortage;

/// An operation of the file system that failed, with what it was and on which path.
#[derive(Debug, thiserror::Error)]
#[error("cannot {operation} {}: {source}", path.display())]
pub struct FileError {
    pub operation: &'static str,
    pub path: PathBuf,
    pub source: io::Error,
}

/// The operation of an fsync of a directory.
pub const SYNC_DIRECTORY: &str = "sync directory";

impl FileError {
    pub fn is_disk_full(&self) -> bool {
        self.shortage() == Some(Shortage::Space)
    }

    /// What is short, if something is. Small files are written anew as a whole and then renamed, so that even one whose sync failed may be
    /// tried again. Not a directory: a second fsync may report success for names that are gone.
    pub fn shortage(&self) -> Option<Shortage> {
        match self.operation {
            SYNC_DIRECTORY => None,
            _ => Shortage::of(&self.source),
        }
    }

    /// Whether the disk can no longer be trusted: it failed to read or write, or nobody knows what a failed fsync left.
    pub fn is_of_a_broken_disk(&self) -> bool {
        let number = self.source.raw_os_error();
        let is_broken = number.is_some_and(|number| [libc::EIO, libc::EROFS].contains(&number));
        self.shortage().is_none() && (is_broken || self.operation.starts_with("sync"))
    }

    /// For `map_err`: names the operation and its path.
    pub fn of(operation: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self {
            operation,
            path: path.to_owned(),
            source,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shortage_is_told_from_a_failure() {
        let failed = |number| {
            let source = io::Error::from_raw_os_error(number);
            FileError::of("write", Path::new("/x"))(source)
        };
        assert_eq!(failed(libc::EMFILE).shortage(), Some(Shortage::Descriptors));
        assert!(failed(libc::ENOSPC).is_disk_full());
        assert!(!failed(libc::EMFILE).is_disk_full());
        assert_eq!(failed(libc::EIO).shortage(), None);
        let source = io::Error::from_raw_os_error(libc::ENOMEM);
        let unsynced = FileError::of(SYNC_DIRECTORY, Path::new("/x"))(source);
        assert_eq!(unsynced.shortage(), None);
        assert!(unsynced.is_of_a_broken_disk());
    }
}
