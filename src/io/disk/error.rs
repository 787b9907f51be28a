//! What can go wrong with a file, with the path and the position where it did.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use glommio::GlommioError;

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

/// What a caller may decide by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskErrorKind {
    /// No space, or a quota: refuse writes, keep reading, try again when there is space.
    Full,
    /// The device failed (EIO and its kin), or did less than it was asked to: the log directory is not to be trusted
    /// any more.
    Device,
    NotFound,
    AlreadyExists,
    PermissionDenied,
    ReadOnly,
    TooManyOpenFiles,
    /// The file system refuses O_DIRECT or what else was asked for.
    Unsupported,
    Other,
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

    pub fn kind(&self) -> DiskErrorKind {
        match self {
            Self::File { source, .. } | Self::Range { source, .. } => kind_of(source),
            Self::Short { no_space: true, .. } => DiskErrorKind::Full,
            Self::Short {
                no_space: false, ..
            } => DiskErrorKind::Device,
        }
    }

    pub fn is_disk_full(&self) -> bool {
        self.kind() == DiskErrorKind::Full
    }

    pub(super) fn file(operation: DiskOperation, path: &Path, source: impl Into<Cause>) -> Self {
        Self::File {
            operation,
            path: path.to_owned(),
            source: source.into().0,
        }
    }
}

fn kind_of(error: &io::Error) -> DiskErrorKind {
    match error.raw_os_error() {
        Some(libc::ENOSPC | libc::EDQUOT) => DiskErrorKind::Full,
        // glommio reports a cancelled request as timed out; nothing here cancels, so the device or its driver did.
        Some(
            libc::EIO
            | libc::EREMOTEIO
            | libc::EILSEQ
            | libc::ENODATA
            | libc::ETIMEDOUT
            | libc::ENODEV
            | libc::ENXIO,
        ) => DiskErrorKind::Device,
        Some(libc::ENOENT) => DiskErrorKind::NotFound,
        Some(libc::EEXIST) => DiskErrorKind::AlreadyExists,
        Some(libc::EACCES | libc::EPERM) => DiskErrorKind::PermissionDenied,
        Some(libc::EROFS) => DiskErrorKind::ReadOnly,
        Some(libc::EMFILE | libc::ENFILE) => DiskErrorKind::TooManyOpenFiles,
        Some(libc::EINVAL | libc::EOPNOTSUPP) => DiskErrorKind::Unsupported,
        _ => DiskErrorKind::Other,
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

    #[test]
    fn the_kind_follows_the_systems_error_number() {
        let kind = |number| {
            DiskError::file(
                DiskOperation::Write,
                Path::new("/x"),
                io::Error::from_raw_os_error(number),
            )
            .kind()
        };
        assert_eq!(kind(libc::ENOSPC), DiskErrorKind::Full);
        assert_eq!(kind(libc::EDQUOT), DiskErrorKind::Full);
        assert_eq!(kind(libc::EIO), DiskErrorKind::Device);
        assert_eq!(kind(libc::EMFILE), DiskErrorKind::TooManyOpenFiles);
        assert_eq!(kind(libc::EROFS), DiskErrorKind::ReadOnly);
        assert_eq!(kind(libc::ELOOP), DiskErrorKind::Other);
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
        assert_eq!(error.kind(), DiskErrorKind::Device);
    }
}
