//! What an error of the operating system means, decided in one place for disks, directories and sockets: a shortage, which passes, or
//! something broken, which does not.

use std::fmt;
use std::io;

/// Something that there is too little of at present. What failed may succeed later, and nothing is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shortage {
    /// No space left in the file system, or a quota of it used up: ENOSPC, EDQUOT.
    Space,
    /// No file descriptor left, of this process or of the system: EMFILE, ENFILE.
    Descriptors,
    /// The kernel has no memory, or no buffers for a socket: ENOMEM, ENOBUFS.
    Memory,
    /// Asked for again at once it may succeed: EAGAIN, EINTR, EBUSY.
    Busy,
}

impl Shortage {
    #[cfg(test)]
    pub const ALL: [Self; 4] = [Self::Space, Self::Descriptors, Self::Memory, Self::Busy];

    /// What is short, if the error says that something is.
    pub fn of(error: &io::Error) -> Option<Self> {
        match OsErrorKind::of(error) {
            OsErrorKind::Shortage(shortage) => Some(shortage),
            OsErrorKind::Device
            | OsErrorKind::NotFound
            | OsErrorKind::AlreadyExists
            | OsErrorKind::PermissionDenied
            | OsErrorKind::ReadOnly
            | OsErrorKind::Unsupported
            | OsErrorKind::Other => None,
        }
    }
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Space => "space",
            Self::Descriptors => "file descriptors",
            Self::Memory => "memory of the kernel",
            Self::Busy => "a moment",
        })
    }
}

/// What a caller may decide by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OsErrorKind {
    Shortage(Shortage),
    /// The device failed (EIO and its kin), or did less than it was asked to: the log directory is not to be trusted
    /// any more.
    Device,
    NotFound,
    AlreadyExists,
    PermissionDenied,
    ReadOnly,
    /// The file system refuses O_DIRECT or what else was asked for.
    Unsupported,
    Other,
}

impl OsErrorKind {
    pub fn of(error: &io::Error) -> Self {
        match error.raw_os_error() {
            Some(number) => Self::of_number(number),
            None => Self::of_std_kind(error.kind()),
        }
    }

    fn of_number(number: i32) -> Self {
        match number {
            libc::ENOSPC | libc::EDQUOT => Self::Shortage(Shortage::Space),
            libc::EMFILE | libc::ENFILE => Self::Shortage(Shortage::Descriptors),
            libc::ENOMEM | libc::ENOBUFS => Self::Shortage(Shortage::Memory),
            libc::EAGAIN | libc::EINTR | libc::EBUSY => Self::Shortage(Shortage::Busy),
            // glommio reports a cancelled request as timed out; nothing here cancels, so the device or its driver did.
            libc::EIO
            | libc::EREMOTEIO
            | libc::EILSEQ
            | libc::ENODATA
            | libc::ETIMEDOUT
            | libc::ENODEV
            | libc::ENXIO => Self::Device,
            libc::ENOENT => Self::NotFound,
            libc::EEXIST => Self::AlreadyExists,
            libc::EACCES | libc::EPERM => Self::PermissionDenied,
            libc::EROFS => Self::ReadOnly,
            libc::EINVAL | libc::EOPNOTSUPP => Self::Unsupported,
            _ => Self::Other,
        }
    }

    /// Of an error that the standard library made itself.
    fn of_std_kind(kind: io::ErrorKind) -> Self {
        match kind {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Self::Shortage(Shortage::Space)
            }
            io::ErrorKind::OutOfMemory => Self::Shortage(Shortage::Memory),
            io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => {
                Self::Shortage(Shortage::Busy)
            }
            io::ErrorKind::NotFound => Self::NotFound,
            io::ErrorKind::AlreadyExists => Self::AlreadyExists,
            io::ErrorKind::PermissionDenied => Self::PermissionDenied,
            io::ErrorKind::ReadOnlyFilesystem => Self::ReadOnly,
            io::ErrorKind::Unsupported | io::ErrorKind::InvalidInput => Self::Unsupported,
            _ => Self::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(number: i32) -> OsErrorKind {
        OsErrorKind::of(&io::Error::from_raw_os_error(number))
    }

    #[test]
    fn a_shortage_is_never_a_broken_device() {
        for (number, shortage) in [
            (libc::ENOSPC, Shortage::Space),
            (libc::EDQUOT, Shortage::Space),
            (libc::EMFILE, Shortage::Descriptors),
            (libc::ENFILE, Shortage::Descriptors),
            (libc::ENOMEM, Shortage::Memory),
            (libc::ENOBUFS, Shortage::Memory),
            (libc::EAGAIN, Shortage::Busy),
            (libc::EINTR, Shortage::Busy),
            (libc::EBUSY, Shortage::Busy),
        ] {
            assert_eq!(kind(number), OsErrorKind::Shortage(shortage), "{number}");
            let error = io::Error::from_raw_os_error(number);
            assert_eq!(Shortage::of(&error), Some(shortage));
        }
    }

    #[test]
    fn a_broken_device_and_a_refusal_are_no_shortage() {
        for (number, expected) in [
            (libc::EIO, OsErrorKind::Device),
            (libc::EREMOTEIO, OsErrorKind::Device),
            (libc::ENODEV, OsErrorKind::Device),
            (libc::ETIMEDOUT, OsErrorKind::Device),
            (libc::ENOENT, OsErrorKind::NotFound),
            (libc::EEXIST, OsErrorKind::AlreadyExists),
            (libc::EPERM, OsErrorKind::PermissionDenied),
            (libc::EROFS, OsErrorKind::ReadOnly),
            (libc::EINVAL, OsErrorKind::Unsupported),
            (libc::ELOOP, OsErrorKind::Other),
        ] {
            assert_eq!(kind(number), expected);
            assert_eq!(Shortage::of(&io::Error::from_raw_os_error(number)), None);
        }
    }

    #[test]
    fn an_error_without_a_number_is_judged_by_what_the_standard_library_calls_it() {
        for (std_kind, expected) in [
            (io::ErrorKind::NotFound, OsErrorKind::NotFound),
            (
                io::ErrorKind::StorageFull,
                OsErrorKind::Shortage(Shortage::Space),
            ),
            (
                io::ErrorKind::OutOfMemory,
                OsErrorKind::Shortage(Shortage::Memory),
            ),
            (io::ErrorKind::Other, OsErrorKind::Other),
        ] {
            assert_eq!(OsErrorKind::of(&std_kind.into()), expected);
        }
    }
}
