//! The unit in which the tail of a log is filled, written, cached and sent.
//!
//! An [`OpenChunk`] is unique and grows; [`OpenChunk::freeze`] turns it into a [`Chunk`], which never changes again
//! and which the kernel, the tail cache and readers on any core hold at the same time.
//!
//! ```text
//! 0                      len            padded_len              capacity
//! | bytes that were appended | zeros (< 4096) | never read, never written |
//! ```

use std::fmt;
use std::mem::{self, ManuallyDrop};
use std::ops::{Deref, Range};
use std::rc::Rc;
use std::slice;
use std::sync::Arc;

use bytes::Bytes;
use glommio::allocate_dma_buffer_global;
use glommio::io::DmaBuffer;

use super::pool::{Lease, Memory, Pool};
use crate::model::limits::{CHUNK_BYTES_MAX, PAGE_BYTES};

/// Page-aligned memory from the plain heap.
struct PageMemory(DmaBuffer);

// SAFETY: `allocate_dma_buffer_global` makes the variant of `DmaBuffer` that is a pointer and a layout from the
// global allocator, without the reactor's reference count that the other variants carry; so it may be dropped on any
// thread.
unsafe impl Send for PageMemory {}
// SAFETY: through `&PageMemory` only its address and length are read; the bytes behind it are written through `&mut`
// alone (`OpenChunk`), and a frozen chunk has no `&mut` any more.
unsafe impl Sync for PageMemory {}

impl Memory for PageMemory {
    fn allocate(capacity_bytes: usize) -> Self {
        Self(allocate_dma_buffer_global(capacity_bytes))
    }

    fn capacity_bytes(&self) -> usize {
        self.0.len()
    }
}

/// The chunks of one executor: free lists per size class. A clone is the same pool.
#[derive(Clone)]
pub struct ChunkPool(Rc<Pool<PageMemory>>);

impl ChunkPool {
    /// At most `free_bytes_max` are kept for reuse; more goes back to the allocator, where blocks of one size become those of another.
    pub fn new(free_bytes_max: usize) -> Self {
        Self(Rc::new(Pool::new(
            PAGE_BYTES,
            CHUNK_BYTES_MAX,
            free_bytes_max,
        )))
    }

    /// An empty chunk of at least `capacity_bytes`, rounded up to a size class. Never fails; the tail cache
    /// bounds what is held.
    ///
    /// Panics above `CHUNK_BYTES_MAX`: a fuller tail goes on in the next chunk.
    pub fn take(&self, capacity_bytes: usize) -> OpenChunk {
        assert!(
            capacity_bytes <= CHUNK_BYTES_MAX,
            "a chunk of {capacity_bytes} bytes was asked for"
        );
        OpenChunk {
            lease: self.0.take(capacity_bytes),
            len_bytes: 0,
        }
    }

    /// Bytes of all chunks that are open, frozen or still held by a reader anywhere.
    pub fn bytes_in_use(&self) -> usize {
        self.0.in_use_bytes()
    }

    pub fn free_bytes(&self) -> usize {
        self.0.free_bytes()
    }
}

/// A chunk being filled; only its owner sees it.
pub struct OpenChunk {
    lease: Lease<PageMemory>,
    /// The memory below is initialised, the rest may be anything.
    len_bytes: usize,
}

impl OpenChunk {
    pub fn len(&self) -> usize {
        self.len_bytes
    }

    pub fn is_empty(&self) -> bool {
        self.len_bytes == 0
    }

    pub fn capacity(&self) -> usize {
        self.lease.memory().capacity_bytes()
    }

    pub fn remaining(&self) -> usize {
        self.capacity() - self.len_bytes
    }

    /// Panics if `bytes` do not fit in `remaining`.
    pub fn append(&mut self, bytes: &[u8]) {
        assert!(
            bytes.len() <= self.remaining(),
            "{} bytes into {} that remain",
            bytes.len(),
            self.remaining()
        );
        let len_bytes = self.len_bytes;
        // SAFETY: the range [len, len + bytes.len()) lies inside the allocation by the assertion; the memory is ours
        // alone (`&mut`), so it cannot overlap `bytes`; no reference to memory that may be uninitialised is made.
        unsafe {
            let end = self.lease.memory_mut().0.as_mut_ptr().add(len_bytes);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), end, bytes.len());
        }
        self.len_bytes += bytes.len();
    }

    /// Appends the parts one after the other; panics if all together do not fit.
    pub fn append_parts(&mut self, parts: &[&[u8]]) {
        for part in parts {
            self.append(part);
        }
    }

    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the first `len_bytes` bytes were written by `append`.
        unsafe { slice::from_raw_parts(self.lease.memory().0.as_ptr(), self.len_bytes) }
    }

    /// Ends the filling: pads with zeros to a whole page, since that is what O_DIRECT writes. `len` stays.
    pub fn freeze(mut self) -> Chunk {
        let padded_len_bytes = self.len_bytes.next_multiple_of(PAGE_BYTES);
        // SAFETY: capacities are multiples of a page, so the padding lies inside the allocation, which is ours alone.
        unsafe {
            let end = self.lease.memory_mut().0.as_mut_ptr().add(self.len_bytes);
            std::ptr::write_bytes(end, 0, padded_len_bytes - self.len_bytes);
        }
        Chunk(Arc::new(Frozen {
            lease: self.lease,
            len_bytes: self.len_bytes,
            padded_len_bytes,
        }))
    }
}

struct Frozen {
    lease: Lease<PageMemory>,
    len_bytes: usize,
    padded_len_bytes: usize,
}

/// A chunk that never changes again. A clone is the same memory; the last one dropped, on any core, sends it home.
#[derive(Clone)]
pub struct Chunk(Arc<Frozen>);

impl Chunk {
    pub fn len(&self) -> usize {
        self.0.len_bytes
    }

    pub fn is_empty(&self) -> bool {
        self.0.len_bytes == 0
    }

    /// The length that is written: `len` and the zeros up to a whole page.
    pub fn padded_len(&self) -> usize {
        self.0.padded_len_bytes
    }

    /// The memory that this chunk keeps from the pool.
    pub fn capacity(&self) -> usize {
        self.0.lease.memory().capacity_bytes()
    }

    pub fn bytes(&self) -> &[u8] {
        // SAFETY: `OpenChunk` initialised the first `len_bytes` bytes, and nobody writes a frozen chunk.
        unsafe { slice::from_raw_parts(self.0.lease.memory().0.as_ptr(), self.0.len_bytes) }
    }

    /// Panics if the range leaves `bytes`.
    pub fn slice(&self, range: Range<usize>) -> ChunkSlice {
        assert!(
            range.start <= range.end && range.end <= self.len(),
            "{range:?} of {} bytes",
            self.len()
        );
        ChunkSlice {
            chunk: self.clone(),
            range,
        }
    }

    /// Lends the padded bytes to a write. The loan must be ended after the completion and by nothing else.
    pub(super) fn lend_to_kernel(&self) -> KernelLoan {
        // SAFETY: a bitwise copy of a pointer, a layout and two lengths (see `PageMemory`). Its destructor never
        // runs: `KernelLoan` keeps one reference that is either forgotten or unwrapped and forgotten. Original and
        // copy only read.
        let mut view = unsafe { std::ptr::read(&self.0.lease.memory().0) };
        view.trim_to_size(self.padded_len());
        KernelLoan {
            chunk: ManuallyDrop::new(self.clone()),
            view: ManuallyDrop::new(Rc::new(view)),
        }
    }
}

impl fmt::Debug for Chunk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Chunk({} of {} bytes)", self.len(), self.capacity())
    }
}

/// What the kernel reads during one write: glommio's kind of buffer over a chunk's memory, trimmed to the bytes to
/// write.
///
/// Dropping a loan leaks the chunk on purpose. It happens where a write's future is dropped before its completion:
/// the kernel may then still be reading, and memory that went home would be filled anew under its eyes.
pub(super) struct KernelLoan {
    chunk: ManuallyDrop<Chunk>,
    view: ManuallyDrop<Rc<DmaBuffer>>,
}

impl KernelLoan {
    pub fn buffer(&self) -> Rc<DmaBuffer> {
        Rc::clone(&self.view)
    }

    /// The write has completed, well or not: the kernel has let go of the memory.
    pub fn end(self) {
        match Rc::try_unwrap(ManuallyDrop::into_inner(self.view)) {
            Ok(view) => {
                // The memory is the chunk's to free.
                mem::forget(view);
                drop(ManuallyDrop::into_inner(self.chunk));
            }
            Err(still_shared) => {
                debug_assert!(false, "the reactor kept a buffer after its completion");
                mem::forget(still_shared);
            }
        }
    }
}

/// A part of a chunk, for a reader on any core.
#[derive(Clone)]
pub struct ChunkSlice {
    chunk: Chunk,
    range: Range<usize>,
}

impl ChunkSlice {
    /// A part of this part; panics if the range leaves it.
    pub fn slice(&self, range: Range<usize>) -> ChunkSlice {
        assert!(
            range.start <= range.end && range.end <= self.len(),
            "{range:?} of {} bytes",
            self.len()
        );
        let start = self.range.start;
        ChunkSlice {
            chunk: self.chunk.clone(),
            range: start + range.start..start + range.end,
        }
    }
}

impl Deref for ChunkSlice {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.chunk.bytes()[self.range.clone()]
    }
}

impl AsRef<[u8]> for ChunkSlice {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

/// Without a copy: the `Bytes` own the slice.
impl From<ChunkSlice> for Bytes {
    fn from(slice: ChunkSlice) -> Self {
        Bytes::from_owner(slice)
    }
}

impl fmt::Debug for ChunkSlice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ChunkSlice({:?} of {:?})", self.range, self.chunk)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::limits::CHUNK_BYTES_MIN;

    #[test]
    fn chunks_may_be_shared_between_cores() {
        fn shareable<T: Send + Sync + 'static>() {}
        shareable::<Chunk>();
        shareable::<ChunkSlice>();
    }

    #[test]
    fn only_appended_bytes_are_visible_in_recycled_memory() {
        let pool = ChunkPool::new(1 << 20);
        let mut first = pool.take(CHUNK_BYTES_MIN);
        first.append(&[7; CHUNK_BYTES_MIN]);
        drop(first);
        let mut second = pool.take(CHUNK_BYTES_MIN);
        assert!(second.is_empty());
        assert_eq!(second.bytes(), b"");
        second.append_parts(&[b"ab", b"", b"c"]);
        assert_eq!(
            (second.bytes(), second.remaining()),
            (&b"abc"[..], CHUNK_BYTES_MIN - 3)
        );
    }

    #[test]
    fn freezing_pads_recycled_memory_with_zeros_to_a_page() {
        let pool = ChunkPool::new(1 << 20);
        let mut stale = pool.take(CHUNK_BYTES_MIN);
        stale.append(&[0xff; CHUNK_BYTES_MIN]);
        drop(stale);
        let mut open = pool.take(CHUNK_BYTES_MIN);
        open.append(&[1; PAGE_BYTES + 1]);
        let chunk = open.freeze();
        assert_eq!(
            (chunk.len(), chunk.padded_len()),
            (PAGE_BYTES + 1, 2 * PAGE_BYTES)
        );
        let loan = chunk.lend_to_kernel();
        assert_eq!(
            &loan.buffer().as_bytes()[..PAGE_BYTES + 1],
            &[1; PAGE_BYTES + 1]
        );
        assert_eq!(
            &loan.buffer().as_bytes()[PAGE_BYTES + 1..],
            &[0; PAGE_BYTES - 1]
        );
        loan.end();
    }

    #[test]
    fn a_chunk_that_ends_on_a_page_is_not_padded() {
        let pool = ChunkPool::new(1 << 20);
        let mut open = pool.take(CHUNK_BYTES_MIN);
        open.append(&[1; CHUNK_BYTES_MIN]);
        assert_eq!(open.freeze().padded_len(), CHUNK_BYTES_MIN);
        assert_eq!(pool.take(1).freeze().padded_len(), 0);
    }

    #[test]
    fn a_slice_keeps_its_chunk_in_use_until_it_is_dropped() {
        let pool = ChunkPool::new(1 << 20);
        let mut open = pool.take(CHUNK_BYTES_MIN);
        open.append(b"0123456789");
        let chunk = open.freeze();
        let bytes = Bytes::from(chunk.slice(2..8).slice(1..4));
        assert_eq!(&bytes[..], b"345");
        assert_eq!(
            bytes.as_ptr(),
            chunk.bytes()[3..].as_ptr(),
            "the bytes were copied"
        );
        drop(chunk);
        assert_eq!(pool.bytes_in_use(), CHUNK_BYTES_MIN);
        std::thread::spawn(move || drop(bytes))
            .join()
            .expect("the other thread");
        assert_eq!(
            (pool.bytes_in_use(), pool.free_bytes()),
            (0, CHUNK_BYTES_MIN)
        );
    }

    #[test]
    fn a_loan_that_never_ended_keeps_its_chunk_for_ever() {
        let pool = ChunkPool::new(1 << 20);
        let mut open = pool.take(CHUNK_BYTES_MIN);
        open.append(b"x");
        let chunk = open.freeze();
        let _never_ended = chunk.lend_to_kernel();
        drop(chunk);
        assert_eq!(
            (pool.bytes_in_use(), pool.free_bytes()),
            (CHUNK_BYTES_MIN, 0)
        );
    }

    #[test]
    #[should_panic(expected = "that remain")]
    fn appending_past_the_capacity_panics() {
        ChunkPool::new(0)
            .take(CHUNK_BYTES_MIN)
            .append(&[0; CHUNK_BYTES_MIN + 1]);
    }

    #[test]
    #[should_panic(expected = "of 3 bytes")]
    fn slicing_past_the_length_panics() {
        let mut open = ChunkPool::new(0).take(1);
        open.append(b"abc");
        open.freeze().slice(0..4);
    }
}
