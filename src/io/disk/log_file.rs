//! One O_DIRECT file.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use glommio::io::{DmaFile, OpenOptions};

use super::error::Cause;
use super::polled_io;
use super::{DiskError, DiskOperation, ReadBytes};
use crate::io::chunk::Chunk;
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
#[derive(Clone, Debug)]
pub struct LogFile(Rc<OpenFile>);

#[derive(Debug)]
struct OpenFile {
    file: DmaFile,
    path: PathBuf,
    is_direct: bool,
}

impl LogFile {
    /// The path must not be removed or renamed while this is under way (glommio looks it up again and panics if it is gone).
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
            path: path.to_owned(),
            is_direct,
        })))
    }

    /// Whether O_DIRECT is really on. Memory file systems run without it, in silence.
    pub fn is_direct(&self) -> bool {
        self.0.is_direct
    }

    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// Writes the chunk's whole padded length. `Ok` means that the device has answered for all of it. After an error nothing is known about the
    /// range: parts may have been written.
    ///
    /// The future is to be driven to its end. Dropped before that, the write still happens and the chunk's memory is never reused.
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
                path: self.0.path.clone(),
                position,
                wanted_bytes,
                got_bytes,
            }),
            Err(error) => {
                Err(self.range_error(DiskOperation::Write, position, wanted_bytes, error))
            }
        }
    }

    /// The bytes at `position`, which may lie anywhere; fewer than `len_bytes` only where the file ends. One request of the device, so keep it at
    /// a megabyte or less.
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
                path: self.0.path.clone(),
                position: FilePosition(start),
                wanted_bytes,
                got_bytes,
            });
        }
        let end = got_bytes.min(lead_bytes + len_bytes);
        Ok(ReadBytes::new(result, lead_bytes.min(end)..end))
    }

    /// Makes the file `size_bytes` long at least, with space behind all of it; new space reads as zeros. A failure may leave the file longer than it was.
    pub async fn allocate(&self, size_bytes: u64) -> Result<(), DiskError> {
        let allocated = self.0.file.pre_allocate(size_bytes, false).await;
        allocated.map_err(|error| DiskError::file(DiskOperation::Allocate, &self.0.path, error))
    }

    /// Cuts the file to `size_bytes`, or extends it with a hole.
    pub async fn truncate(&self, size_bytes: u64) -> Result<(), DiskError> {
        let truncated = self.0.file.truncate(size_bytes).await;
        truncated.map_err(|error| DiskError::file(DiskOperation::Truncate, &self.0.path, error))
    }

    /// Everything whose write had completed before this call survives a power cut once it returns. Never call it again after an error: the
    /// second call reports success for data that is gone.
    pub async fn fdatasync(&self) -> Result<(), DiskError> {
        let synced = self.0.file.fdatasync().await;
        synced.map_err(|error| DiskError::file(DiskOperation::Sync, &self.0.path, error))
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
        closed.map_err(|error| DiskError::file(DiskOperation::Close, &open.path, error))
    }

    /// By descriptor, and not by path as glommio asks: the file may have been renamed.
    fn size_now(&self) -> Result<u64, DiskError> {
        let failed = |error: io::Error| DiskError::file(DiskOperation::Stat, &self.0.path, error);
        let mut stat = MaybeUninit::<libc::stat>::uninit();
        // SAFETY: the descriptor is open and `stat` is large enough for what the kernel writes into it.
        let outcome = unsafe { libc::fstat(self.0.file.as_raw_fd(), stat.as_mut_ptr()) };
        if outcome != 0 {
            return Err(failed(io::Error::last_os_error()));
        }
        // SAFETY: the call succeeded, so it filled `stat`.
        let size = unsafe { stat.assume_init() }.st_size;
        Ok(u64::try_from(size).expect("a file's size is not negative"))
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
            path: self.0.path.clone(),
            position,
            len_bytes,
            source,
        }
    }
}

fn has_o_direct(file: &DmaFile) -> io::Result<bool> {
    // SAFETY: asks for the flags of an open descriptor; no memory is passed.
    let flags = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETFL) };
    if flags < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(flags & libc::O_DIRECT != 0)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Duration;

    use bytes::Bytes;
    use futures_lite::future::poll_once;

    use super::super::{DiskErrorKind, test_directory};
    use super::*;
    use crate::io::chunk::ChunkPool;
    use crate::io::executor::{Core, block_on, sleep, spawn, spawn_local};

    fn chunk_of(pool: &ChunkPool, bytes: &[u8]) -> Chunk {
        let mut open = pool.take(bytes.len());
        open.append(bytes);
        open.freeze()
    }

    /// Bytes that differ from page to page.
    fn pattern(len_bytes: usize) -> Vec<u8> {
        (0..len_bytes).map(|i| (i * 31 + i / 251) as u8).collect()
    }

    async fn new_file(directory: &tempfile::TempDir) -> LogFile {
        LogFile::open(&directory.path().join("log"), OpenMode::CreateNew)
            .await
            .expect("a file")
    }

    #[test]
    fn the_first_file_of_an_executor_may_be_empty() {
        // On a thread of its own: `polled_io` guards against what only the first file of a thread meets.
        let thread = spawn("first", Core::Unpinned, || async {
            let directory = test_directory();
            let file = new_file(&directory).await;
            file.write(&chunk_of(&ChunkPool::new(0), b"first"), FilePosition::ZERO)
                .await?;
            let read = file.read(FilePosition::ZERO, 5).await?;
            let names = fs::read_dir(directory.path())
                .expect("the directory")
                .count();
            assert_eq!(names, 1, "the probe was left behind");
            Ok::<_, DiskError>(read.to_vec())
        });
        assert_eq!(
            thread.expect("an executor").join().expect("no error"),
            b"first"
        );
    }

    #[test]
    fn o_direct_is_on_here_and_known_to_be_off_in_memory() {
        block_on(async {
            let directory = test_directory();
            assert!(new_file(&directory).await.is_direct());
            let in_memory = tempfile::tempdir_in("/dev/shm").expect("a directory in memory");
            assert!(!new_file(&in_memory).await.is_direct());
        });
    }

    #[test]
    fn every_range_reads_back_what_was_written() {
        block_on(async {
            let directory = test_directory();
            let file = new_file(&directory).await;
            let written = pattern(3 * PAGE_BYTES + 100);
            file.write(&chunk_of(&ChunkPool::new(0), &written), FilePosition::ZERO)
                .await
                .expect("a write");
            let size_bytes = file.size_bytes().await.expect("a size");
            assert_eq!(size_bytes, 4 * PAGE_BYTES as u64, "not padded to a page");
            file.truncate(written.len() as u64).await.expect("a cut");
            assert_eq!(fs::read(file.path()).expect("the file"), written);
            for start in [0, 1, 4095, 4096, 4097, 8192, 12288, 12387] {
                for len_bytes in [0, 1, 2, 4095, 4096, 4097, 12388, 20000] {
                    let read = file
                        .read(FilePosition(start as u64), len_bytes)
                        .await
                        .expect("a read");
                    let end = written.len().min(start + len_bytes);
                    assert_eq!(
                        &read[..],
                        &written[start..end],
                        "{len_bytes} bytes at {start}"
                    );
                }
            }
            for behind in [written.len() as u64, 12389, 16384, 1 << 30] {
                let read = file.read(FilePosition(behind), 100).await.expect("a read");
                assert!(read.is_empty(), "read {} bytes at {behind}", read.len());
            }
        });
    }

    #[test]
    fn a_page_that_is_written_again_replaces_what_was_there() {
        block_on(async {
            let directory = test_directory();
            let file = new_file(&directory).await;
            file.allocate(1 << 20).await.expect("space");
            assert_eq!(file.size_bytes().await.expect("a size"), 1 << 20);
            let pool = ChunkPool::new(1 << 20);
            file.write(&chunk_of(&pool, &[1; 5000]), FilePosition::ZERO)
                .await
                .expect("a write");
            // The partial page again, and what was appended to it.
            let second = [&[1; 904][..], &[2; 6000]].concat();
            let position = FilePosition(PAGE_BYTES as u64);
            file.write(&chunk_of(&pool, &second), position)
                .await
                .expect("a write");
            let read = file.read(FilePosition::ZERO, 13000).await.expect("a read");
            assert_eq!(&read[..], [&[1; 5000][..], &[2; 6000], &[0; 2000]].concat());
            file.fdatasync().await.expect("a sync");
            file.close().await.expect("a close");
        });
    }

    #[test]
    fn writes_may_be_in_flight_at_the_same_time_and_chunks_come_home_after_them() {
        block_on(async {
            let directory = test_directory();
            let file = new_file(&directory).await;
            let pool = ChunkPool::new(64 << 20);
            const PART_BYTES: usize = 16 * 1024;
            let position = |number: u8| FilePosition(u64::from(number) * PART_BYTES as u64);
            let writes: Vec<_> = (0..32)
                .map(|number| {
                    let (file, chunk) = (file.clone(), chunk_of(&pool, &[number; PART_BYTES]));
                    spawn_local(async move { file.write(&chunk, position(number)).await })
                })
                .collect();
            for write in writes {
                write.await.expect("a write");
            }
            assert_eq!(pool.bytes_in_use(), 0);
            for number in 0..32 {
                let read = file
                    .read(position(number), PART_BYTES)
                    .await
                    .expect("a read");
                assert!(read.iter().all(|byte| *byte == number));
            }
        });
    }

    #[test]
    fn a_write_that_nobody_waits_for_keeps_its_memory_from_being_reused() {
        block_on(async {
            let directory = test_directory();
            let file = new_file(&directory).await;
            let pool = ChunkPool::new(1 << 20);
            let chunk = chunk_of(&pool, &[9; 16 * 1024]);
            let started = poll_once(file.write(&chunk, FilePosition::ZERO)).await;
            assert!(started.is_none(), "the write was not even queued");
            drop(chunk);
            sleep(Duration::from_millis(20)).await;
            assert_eq!((pool.bytes_in_use(), pool.free_bytes()), (16 * 1024, 0));
        });
    }

    #[test]
    fn reads_may_be_held_and_dropped_on_another_core() {
        block_on(async {
            let directory = test_directory();
            let file = new_file(&directory).await;
            let written = pattern(100_000);
            file.write(&chunk_of(&ChunkPool::new(0), &written), FilePosition::ZERO)
                .await
                .expect("a write");
            for _ in 0..50 {
                let read = file.read(FilePosition(10), 90_000).await.expect("a read");
                let part = Bytes::from(read.slice(1000..2000));
                assert_eq!(
                    part.as_ptr(),
                    read[1000..].as_ptr(),
                    "the bytes were copied"
                );
                let expected = written[1010..2010].to_vec();
                let reader = std::thread::spawn(move || assert_eq!(&part[..], &expected));
                drop(read);
                reader.join().expect("the other thread");
            }
        });
    }

    #[test]
    fn errors_name_the_file_and_say_of_what_kind_they_are() {
        block_on(async {
            let directory = test_directory();
            let path = directory.path().join("log");
            let error = LogFile::open(&path, OpenMode::Existing)
                .await
                .expect_err("no file");
            assert_eq!(
                (error.kind(), error.path()),
                (DiskErrorKind::NotFound, &*path)
            );
            assert!(
                error.to_string().contains(&path.display().to_string()),
                "{error}"
            );

            new_file(&directory).await.close().await.expect("a close");
            let error = LogFile::open(&path, OpenMode::CreateNew)
                .await
                .expect_err("it exists");
            assert_eq!(error.kind(), DiskErrorKind::AlreadyExists);

            let file = LogFile::open(&path, OpenMode::ReadOnly)
                .await
                .expect("a file");
            let chunk = chunk_of(&ChunkPool::new(0), b"x");
            let error = file
                .write(&chunk, FilePosition(8192))
                .await
                .expect_err("it is read only");
            assert!(
                matches!(
                    error,
                    DiskError::Range {
                        position: FilePosition(8192),
                        ..
                    }
                ),
                "{error}"
            );

            let missing = directory.path().join("missing/log");
            let error = LogFile::open(&missing, OpenMode::Create)
                .await
                .expect_err("no directory");
            assert_eq!(error.kind(), DiskErrorKind::NotFound);
        });
    }

    #[test]
    fn a_renamed_file_still_knows_its_size() {
        block_on(async {
            let directory = test_directory();
            let file = new_file(&directory).await;
            file.allocate(12288).await.expect("space");
            fs::rename(file.path(), directory.path().join("renamed")).expect("a new name");
            assert_eq!(file.size_bytes().await.expect("a size"), 12288);
        });
    }

    #[test]
    fn a_file_that_is_dropped_is_closed() {
        let directory = test_directory();
        let path = block_on(async { new_file(&directory).await.path().to_owned() });
        for descriptor in fs::read_dir("/proc/self/fd").expect("the descriptors of this process") {
            // Other tests close theirs meanwhile.
            let Ok(open) = fs::read_link(descriptor.expect("an entry").path()) else {
                continue;
            };
            assert_ne!(open, path);
        }
    }
}
