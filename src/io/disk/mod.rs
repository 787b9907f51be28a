//! O_DIRECT files: whole chunks out, any range in, every completion's result and length checked.
//!
//! A `Result` of [`LogFile::write`] means: all bytes have left for the device and it has answered. Whether they
//! survive a power cut is what [`LogFile::fdatasync`] decides.

mod error;
mod file_system;
mod log_file;
mod polled_io;
mod read_bytes;
#[cfg(test)]
mod tests;

pub use error::{DiskError, DiskOperation};
pub use file_system::FileSystemSpace;
pub use log_file::{FileWatch, LogFile, OpenMode};
pub use read_bytes::ReadBytes;

pub(super) use read_bytes::collect_returned_reads;

/// A directory for tests on the disk that the build is on, where O_DIRECT works although /tmp may be memory.
#[cfg(test)]
pub(crate) fn test_directory() -> tempfile::TempDir {
    let target = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("target");
    std::fs::create_dir_all(&target).expect("the build's directory");
    tempfile::tempdir_in(target).expect("a directory on the disk")
}
