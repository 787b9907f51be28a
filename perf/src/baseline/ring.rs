//! Raw O_DIRECT transfers through io_uring, and the aligned memory that they need. All unsafe code of this
//! package is here.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::fs::File;
use std::ops::{Deref, DerefMut};
use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use std::time::{Duration, Instant};

use io_uring::{IoUring, opcode, types};

use super::disk::DiskError;
use crate::histogram::LatencyHistogram;

/// What O_DIRECT wants of addresses, lengths and positions.
pub const PAGE_BYTES: usize = 4096;

/// Zeroed memory at a page boundary.
pub struct AlignedBuffer {
    start: NonNull<u8>,
    layout: Layout,
}

impl AlignedBuffer {
    pub fn new(len_bytes: usize) -> Self {
        assert!(
            len_bytes > 0 && len_bytes.is_multiple_of(PAGE_BYTES),
            "{len_bytes} bytes are not whole pages"
        );
        let layout =
            Layout::from_size_align(len_bytes, PAGE_BYTES).expect("a page is a power of two");
        // SAFETY: the layout has a size above zero, as asserted.
        let start = unsafe { alloc_zeroed(layout) };
        let start = NonNull::new(start).unwrap_or_else(|| handle_alloc_error(layout));
        Self { start, layout }
    }

    /// Not zeros, which a storage layer may treat specially.
    pub fn filled(len_bytes: usize) -> Self {
        let mut buffer = Self::new(len_bytes);
        for (at, byte) in buffer.iter_mut().enumerate() {
            *byte = ((at * 131) >> 3) as u8;
        }
        buffer
    }
}

impl Deref for AlignedBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: `start` points to `layout.size()` initialised bytes that live as long as self.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.layout.size()) }
    }
}

impl DerefMut for AlignedBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, and the borrow of self is unique.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.layout.size()) }
    }
}

impl Drop for AlignedBuffer {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout and not freed elsewhere.
        unsafe { dealloc(self.start.as_ptr(), self.layout) }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Read,
    Write,
}

pub struct Transferred {
    pub bytes: u64,
    pub elapsed: Duration,
    pub latency: LatencyHistogram,
}

/// Transfers blocks one after the other, `depth` at a time, from the file's start and round again, for
/// `how_long` or, if that is None, once.
pub fn transfer(
    file: &File,
    file_bytes: u64,
    block_bytes: usize,
    depth: usize,
    direction: Direction,
    how_long: Option<Duration>,
) -> Result<Transferred, DiskError> {
    let block_count = file_bytes / block_bytes as u64;
    let mut ring = IoUring::new(depth as u32).map_err(DiskError::Ring)?;
    let mut buffers: Vec<AlignedBuffer> = (0..depth)
        .map(|_| AlignedBuffer::filled(block_bytes))
        .collect();
    let mut started = vec![Instant::now(); depth];
    let mut latency = LatencyHistogram::new();
    let begin = Instant::now();
    let (mut next_block, mut in_flight, mut bytes) = (0u64, 0, 0);
    let mut idle: Vec<usize> = (0..depth).collect();
    let mut failure = None;
    loop {
        let goes_on = failure.is_none()
            && match how_long {
                // At least one, however late this thread got its turn: nothing moved would be no rate.
                Some(limit) => next_block == 0 || begin.elapsed() < limit,
                None => next_block < block_count,
            };
        while let Some(slot) =
            idle.pop_if(|_| goes_on && (how_long.is_some() || next_block < block_count))
        {
            let position = next_block % block_count * block_bytes as u64;
            next_block += 1;
            let (fd, buffer) = (types::Fd(file.as_raw_fd()), &mut buffers[slot]);
            let entry = match direction {
                Direction::Write => opcode::Write::new(fd, buffer.as_ptr(), block_bytes as u32)
                    .offset(position)
                    .build(),
                Direction::Read => opcode::Read::new(fd, buffer.as_mut_ptr(), block_bytes as u32)
                    .offset(position)
                    .build(),
            };
            started[slot] = Instant::now();
            // SAFETY: the descriptor and the buffer live until this function returns, which it does only after
            // every entry has completed; the buffer is not touched before, because its slot is not idle.
            let pushed = unsafe { ring.submission().push(&entry.user_data(slot as u64)) };
            pushed.expect("the queue has room for every slot");
            in_flight += 1;
        }
        if in_flight == 0 {
            break;
        }
        // On failure the kernel may still own buffers: leak them with the ring rather than free them under it.
        if let Err(error) = ring.submit_and_wait(1) {
            if error.kind() == std::io::ErrorKind::Interrupted {
                continue;
            }
            std::mem::forget((ring, buffers));
            return Err(DiskError::Ring(error));
        }
        for completion in ring.completion() {
            let slot = completion.user_data() as usize;
            in_flight -= 1;
            idle.push(slot);
            match completion.result() {
                done if done == block_bytes as i32 => {
                    bytes += block_bytes as u64;
                    latency.record_ns(started[slot].elapsed().as_nanos() as u64);
                }
                error if error < 0 => {
                    failure = Some(DiskError::Ring(std::io::Error::from_raw_os_error(-error)))
                }
                done => {
                    failure = Some(DiskError::Short {
                        wanted_bytes: block_bytes,
                        done_bytes: done as usize,
                    })
                }
            }
        }
    }
    match failure {
        Some(error) => Err(error),
        None => Ok(Transferred {
            bytes,
            elapsed: begin.elapsed(),
            latency,
        }),
    }
}
