//! One O_DIRECT file.

use std::cell::RefCell;
use std::fmt;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::rc::{Rc, Weak};

use glommio::io::{DmaFile, OpenOptions};
use rustix::fs::OFlags;

use super::error::Cause;
use super::polled_io;
use super::{DiskError, DiskOperation, ReadBytes};
use crate::io::chunk::Chunk;
use crate::io::executor;
use crate::model::FilePosition;
use crate::model::limits::PAGE_BYTES;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// For reading and writing; it must exist.
    Existing,
    /// For reading and writing; it must not exist.
    CreateNew,
    /// For reading and writing; made empty where it does not exist, left as it is where it does.
    Create,
    /// For reading; it must exist.
    ReadOnly,
}

/// A file of one executor. A clone is the same open file; the last one dropped closes it in the executor's next turn.
#[derive(Clone)]
pub struct LogFile(Rc<OpenFile>);

/// Sees whether a file is still open.
#[derive(Clone)]
pub struct FileWatch(Weak<OpenFile>);

impl FileWatch {
    pub fn is_open(&self) -> bool {
        self.0.strong_count() > 0
    }
}

struct OpenFile {
    file: DmaFile,
    path: RefCell<PathBuf>,
    is_direct: bool,
}

impl LogFile {
    /// The path must not be removed or renamed while this is under way (glommio looks it up again and panics if it is
    /// gone).
    pub async fn open(path: &Path, mode: OpenMode) -> Result<Self, DiskError> {
        let failed = |cause: Cause| DiskError::file(DiskOperation::Open, path, cause);
        let directory = match path.parent() {
            Some(directory) if !directory.as_os_str().is_empty() => directory,
            _ => Path::new("."),
        };
        polled_io::ask_device_of(directory)
            .await
            .map_err(|error| failed(error.into()))?;
        let mut options = OpenOptions::new();
        options.read(true);
        match mode {
            OpenMode::ReadOnly => {}
            OpenMode::Existing => {
                options.write(true);
            }
            OpenMode::CreateNew => {
                options.write(true).create_new(true);
            }
            OpenMode::Create => {
                options.write(true).create(true);
            }
        }
        let file = options
            .dma_open(path)
            .await
            .map_err(|error| failed(error.into()))?;
        let is_direct = has_o_direct(&file).map_err(|error| failed(error.into()))?;
        Ok(Self(Rc::new(OpenFile {
            file,
            path: RefCell::new(path.to_owned()),
            is_direct,
        })))
    }

    /// Whether O_DIRECT is really on. Memory file systems run without it, in silence.
    pub fn is_direct(&self) -> bool {
        self.0.is_direct
    }

    pub fn path(&self) -> PathBuf {
        self.0.path.borrow().clone()
    }

    /// The file has this path from now on; errors name it.
    pub fn note_renamed(&self, path: &Path) {
        *self.0.path.borrow_mut() = path.to_owned();
    }

    /// Writes the chunk's whole padded length. `Ok` means that the device has answered for all of it. After an error
    /// nothing is known about the range: parts may have been written.
    ///
    /// The future is to be driven to its end. Dropped before that, the write still happens and the chunk's memory is
    /// never reused.
    ///
    /// Panics if `position` is not on a page or the chunk is empty.
    pub async fn write(&self, chunk: &Chunk, position: FilePosition) -> Result<(), DiskError> {
        assert!(
            position.0.is_multiple_of(PAGE_BYTES as u64),
            "a write at {position} is not on a page"
        );
        assert!(!chunk.is_empty(), "an empty chunk has nothing to write");
        let wanted_bytes = chunk.padded_len();
        let loan = chunk.lend_to_kernel();
        let written = self.0.file.write_rc_at(loan.buffer(), position.0).await;
        loan.end();
        match written {
            Ok(got_bytes) if got_bytes == wanted_bytes => Ok(()),
            Ok(got_bytes) => Err(DiskError::Short {
                operation: DiskOperation::Write,
                path: self.path(),
                position,
                wanted_bytes,
                got_bytes,
                no_space: self.has_no_space_for(wanted_bytes - got_bytes),
            }),
            Err(error) => {
                Err(self.range_error(DiskOperation::Write, position, wanted_bytes, error))
            }
        }
    }

    /// The bytes at `position`, which may lie anywhere; fewer than `len_bytes` only where the file ends. One request
    /// of the device, so keep it at a megabyte or less.
    pub async fn read(
        &self,
        position: FilePosition,
        len_bytes: usize,
    ) -> Result<ReadBytes, DiskError> {
        let page_bytes = PAGE_BYTES as u64;
        let start = position.0 - position.0 % page_bytes;
        let lead_bytes = usize::try_from(position.0 - start).expect("less than a page");
        let wanted_bytes = (lead_bytes + len_bytes).next_multiple_of(PAGE_BYTES);
        // An end of file or a range behind it: the kernel answers an empty read with nothing to wrap.
        let result = self.0.file.read_at_aligned(start, wanted_bytes).await;
        let result = result
            .map_err(|error| self.range_error(DiskOperation::Read, position, len_bytes, error))?;
        let got_bytes = result.len();
        if got_bytes < wanted_bytes && start + (got_bytes as u64) < self.size_now()? {
            return Err(DiskError::Short {
                operation: DiskOperation::Read,
                path: self.path(),
                position: FilePosition(start),
                wanted_bytes,
                got_bytes,
                no_space: false,
            });
        }
        let end = got_bytes.min(lead_bytes + len_bytes);
        Ok(ReadBytes::new(result, lead_bytes.min(end)..end))
    }

    /// Makes the file `size_bytes` long at least, with space behind all of it; new space reads as zeros. A failure
    /// may leave the file longer than it was.
    pub async fn allocate(&self, size_bytes: u64) -> Result<(), DiskError> {
        let allocated = self.0.file.pre_allocate(size_bytes, false).await;
        allocated.map_err(|error| DiskError::file(DiskOperation::Allocate, &self.path(), error))
    }

    /// Cuts the file to `size_bytes`, or extends it with a hole.
    pub async fn truncate(&self, size_bytes: u64) -> Result<(), DiskError> {
        // glommio has a blocking thread do it.
        let open = Rc::clone(&self.0);
        let call = async move { open.file.truncate(size_bytes).await };
        let truncated = executor::on_blocking_thread(call).await;
        truncated.map_err(|error| DiskError::file(DiskOperation::Truncate, &self.path(), error))
    }

    /// Everything whose write had completed before this call survives a power cut once it returns. Never call it
    /// again after an error: the second call reports success for data that is gone.
    pub async fn fdatasync(&self) -> Result<(), DiskError> {
        let synced = self.0.file.fdatasync().await;
        synced.map_err(|error| DiskError::file(DiskOperation::Sync, &self.path(), error))
    }

    pub async fn size_bytes(&self) -> Result<u64, DiskError> {
        self.size_now()
    }

    /// Closes the file and waits for it, if this is its only handle; otherwise the last handle closes it.
    pub async fn close(self) -> Result<(), DiskError> {
        let Ok(open) = Rc::try_unwrap(self.0) else {
            return Ok(());
        };
        let closed = open.file.close().await;
        closed.map_err(|error| DiskError::file(DiskOperation::Close, &open.path.borrow(), error))
    }

    /// Whether there is another handle of the open file, so that it would stay open without this one.
    pub fn is_shared(&self) -> bool {
        Rc::strong_count(&self.0) > 1
    }

    /// Tells whether the file is still open, without keeping it so.
    pub fn watch(&self) -> FileWatch {
        FileWatch(Rc::downgrade(&self.0))
    }

    /// By descriptor, and not by path as glommio asks: the file may have been renamed.
    fn size_now(&self) -> Result<u64, DiskError> {
        let stat = rustix::fs::fstat(self.descriptor());
        let stat = stat.map_err(|error| {
            DiskError::file(DiskOperation::Stat, &self.path(), io::Error::from(error))
        })?;
        Ok(u64::try_from(stat.st_size).expect("a file's size is not negative"))
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        // SAFETY: the descriptor is open as long as `self`.
        unsafe { BorrowedFd::borrow_raw(self.0.file.as_raw_fd()) }
    }

    fn has_no_space_for(&self, len_bytes: usize) -> bool {
        let stat = rustix::fs::fstatvfs(self.descriptor());
        stat.is_ok_and(|stat| stat.f_bavail.saturating_mul(stat.f_frsize) < len_bytes as u64)
    }

    fn range_error(
        &self,
        operation: DiskOperation,
        position: FilePosition,
        len_bytes: usize,
        cause: impl Into<Cause>,
    ) -> DiskError {
        let source = cause.into().into_io();
        DiskError::Range {
            operation,
            path: self.path(),
            position,
            len_bytes,
            source,
        }
    }
}

impl fmt::Debug for LogFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LogFile({})", self.path().display())
    }
}

fn has_o_direct(file: &DmaFile) -> io::Result<bool> {
    // SAFETY: the descriptor is open as long as `file`.
    let descriptor = unsafe { BorrowedFd::borrow_raw(file.as_raw_fd()) };
    let flags = rustix::fs::fcntl_getfl(descriptor)?;
    Ok(flags.contains(OFlags::DIRECT))
}
