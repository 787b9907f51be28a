use std::io;
use std::path::{Path, PathBuf};

/// An operation of the file system that failed, with what it was and on which path.
#[derive(Debug, thiserror::Error)]
#[error("cannot {operation} {}: {source}", path.display())]
pub struct FileError {
    pub operation: &'static str,
    pub path: PathBuf,
    pub source: io::Error,
}

impl FileError {
    pub fn is_disk_full(&self) -> bool {
        matches!(
            self.source.kind(),
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
        )
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
