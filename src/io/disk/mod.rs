//! O_DIRECT files: whole chunks out, any range in, every completion's result and length checked.
//!
//! A `Result` of [`LogFile::write`] means: all bytes have left for the device and it has answered. Whether they survive a power
//! cut is what [`LogFile::fdatasync`] decides.

mod error;
mod log_file;
mod polled_io;
mod read_bytes;

pub use error::{DiskError, DiskErrorKind, DiskOperation};
pub use log_file::{LogFile, OpenMode};
pub use read_bytes::ReadBytes;

pub(super) use read_bytes::collect_returned_reads;
