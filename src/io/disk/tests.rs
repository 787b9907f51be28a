//! Files on a real disk.

use std::fs;
use std::time::Duration;

use bytes::Bytes;
use futures_lite::future::poll_once;

use super::*;
use crate::io::chunk::{Chunk, ChunkPool};
use crate::io::executor::{Core, block_on, sleep, spawn, spawn_local};
use crate::io::os_error::OsErrorKind;
use crate::model::FilePosition;
use crate::model::limits::{PAGE_BYTES, READ_BUFFERS_OUT_MAX};

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
fn any_number_of_reads_may_be_held_at_once() {
    block_on(async {
        let directory = test_directory();
        let file = new_file(&directory).await;
        let written = pattern(READ_BUFFERS_OUT_MAX + 100);
        file.write(&chunk_of(&ChunkPool::new(0), &written), FilePosition::ZERO)
            .await
            .expect("a write");
        let mut held = Vec::new();
        for position in 0..written.len() as u64 {
            held.push(file.read(FilePosition(position), 1).await.expect("a read"));
        }
        let bytes: Vec<u8> = held.iter().map(|read| read[0]).collect();
        assert_eq!(bytes, written);
        std::thread::spawn(move || drop(held))
            .join()
            .expect("the other thread");
        let read = file.read(FilePosition::ZERO, 10).await.expect("a read");
        assert_eq!(&read[..], &written[..10]);
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
            (OsErrorKind::NotFound, &*path)
        );
        assert!(
            error.to_string().contains(&path.display().to_string()),
            "{error}"
        );

        new_file(&directory).await.close().await.expect("a close");
        let error = LogFile::open(&path, OpenMode::CreateNew)
            .await
            .expect_err("it exists");
        assert_eq!(error.kind(), OsErrorKind::AlreadyExists);

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
        assert_eq!(error.kind(), OsErrorKind::NotFound);
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
    let path = block_on(async move { new_file(&directory).await.path().to_owned() });
    for descriptor in fs::read_dir("/proc/self/fd").expect("the descriptors of this process") {
        // Other tests close theirs meanwhile.
        let Ok(open) = fs::read_link(descriptor.expect("an entry").path()) else {
            continue;
        };
        assert_ne!(open, path);
    }
}
