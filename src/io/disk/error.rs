//! What can go wrong with a file, with the path and the position where it did.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use glommio::GlommioError;

use crate::io::os_error::{OsErrorKind, Shortage};
use crate::model::FilePosition;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskOperation {
    Open,
    Write,
    Read,
    Allocate,
    Truncate,
    Sync,
    Rename,
    Stat,
    Close,
}

impl fmt::Display for DiskOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Open => "open",
            Self::Write => "write",
            Self::Read => "read",
            Self::Allocate => "allocate space for",
            Self::Truncate => "truncate",
            Self::Sync => "fdatasync",
            Self::Rename => "rename",
            Self::Stat => "stat",
            Self::Close => "close",
        })
    }
}

#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    #[error("cannot {operation} '{}': {source}", path.display())]
    File {
        operation: DiskOperation,
        path: PathBuf,
        source: io::Error,
    },
    #[error("cannot {operation} '{}' at {position} ({len_bytes} bytes): {source}", path.display())]
    Range {
        operation: DiskOperation,
        path: PathBuf,
        position: FilePosition,
        len_bytes: usize,
        source: io::Error,
    },
    /// The rest was not tried again: what became of it is unknown. The kernel gives no reason; for a write `no_space`
    /// says whether the file system had too little left for the rest.
    #[error("{operation} of '{}' at {position} stopped after {got_bytes} of {wanted_bytes} bytes", path.display())]
    Short {
        operation: DiskOperation,
        path: PathBuf,
        position: FilePosition,
        wanted_bytes: usize,
        got_bytes: usize,
        no_space: bool,
    },
}

impl DiskError {
    pub fn operation(&self) -> DiskOperation {
        match self {
            Self::File { operation, .. }
            | Self::Range { operation, .. }
            | Self::Short { operation, .. } => *operation,
        }
    }

    pub fn path(&self) -> &Path {
        match self {
            Self::File { path, .. } | Self::Range { path, .. } | Self::Short { path, .. } => path,
        }
    }

    pub fn kind(&self) -> OsErrorKind {
        match self {
            Self::File { source, .. } | Self::Range { source, .. } => OsErrorKind::of(source),
            Self::Short { no_space: true, .. } => OsErrorKind::Shortage(Shortage::Space),
            Self::Short {
                no_space: false, ..
            } => OsErrorKind::Device,
        }
    }

    pub fn is_disk_full(&self) -> bool {
        self.kind() == OsErrorKind::Shortage(Shortage::Space)
    }

    /// What is short, if the operation may be tried again once there is more of it. A failed fdatasync may not, whatever it failed for:
    /// a second one reports success for data that is gone.
    pub fn shortage(&self) -> Option<Shortage> {
        match (self.operation(), self.kind()) {
            (DiskOperation::Sync, _) => None,
            (_, OsErrorKind::Shortage(shortage)) => Some(shortage),
            _ => None,
        }
    }

    /// What opening a file answers where there is no descriptor for it.
    pub fn no_descriptor(path: &Path) -> Self {
        let source = io::Error::from_raw_os_error(libc::EMFILE);
        Self::file(DiskOperation::Open, path, source)
    }

    pub(super) fn file(operation: DiskOperation, path: &Path, source: impl Into<Cause>) -> Self {
        Self::File {
            operation,
            path: path.to_owned(),
            source: source.into().0,
        }
    }
}

/// The system's error inside whatever glommio wrapped it in.
pub(super) struct Cause(io::Error);

impl From<io::Error> for Cause {
    fn from(error: io::Error) -> Self {
        Self(error)
    }
}

impl From<GlommioError<()>> for Cause {
    fn from(error: GlommioError<()>) -> Self {
        Self(match error {
            GlommioError::IoError(source) | GlommioError::EnhancedIoError { source, .. } => source,
            other => io::Error::other(other.to_string()),
        })
    }
}

impl Cause {
    pub(super) fn into_io(self) -> io::Error {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(operation: DiskOperation, number: i32) -> DiskError {
        let source = io::Error::from_raw_os_error(number);
        DiskError::file(operation, Path::new("/x"), source)
    }

    #[test]
    fn every_operation_but_a_sync_may_be_tried_again_after_a_shortage() {
        use DiskOperation::{Allocate, Close, Open, Read, Stat, Sync, Truncate, Write};
        for (number, shortage) in [
            (libc::ENOSPC, Shortage::Space),
            (libc::EDQUOT, Shortage::Space),
            (libc::EMFILE, Shortage::Descriptors),
            (libc::ENFILE, Shortage::Descriptors),
            (libc::ENOMEM, Shortage::Memory),
            (libc::EAGAIN, Shortage::Busy),
        ] {
            for operation in [Open, Write, Read, Allocate, Truncate, Stat, Close] {
                assert_eq!(failed(operation, number).shortage(), Some(shortage));
            }
            assert_eq!(failed(Sync, number).shortage(), None, "{number}");
        }
        for operation in [Open, Write, Read, Allocate, Truncate, Sync, Stat, Close] {
            assert_eq!(failed(operation, libc::EIO).shortage(), None);
            assert_eq!(failed(operation, libc::EIO).kind(), OsErrorKind::Device);
        }
    }

    #[test]
    fn the_error_number_survives_what_glommio_wraps_it_in() {
        let wrapped: GlommioError<()> = GlommioError::EnhancedIoError {
            source: io::Error::from_raw_os_error(libc::ENOSPC),
            op: "Writing",
            path: None,
            fd: None,
        };
        assert!(DiskError::file(DiskOperation::Write, Path::new("/x"), wrapped).is_disk_full());
    }

    #[test]
    fn a_message_names_operation_path_and_position() {
        let error = DiskError::Short {
            operation: DiskOperation::Write,
            path: "/data/t-0/00000000000000000000.log".into(),
            position: FilePosition(8192),
            wanted_bytes: 16384,
            got_bytes: 4096,
            no_space: false,
        };
        assert_eq!(
            error.to_string(),
            "write of '/data/t-0/00000000000000000000.log' at 8192 stopped after 4096 of 16384 bytes"
        );
        assert_eq!(error.kind(), OsErrorKind::Device);
    }
}
