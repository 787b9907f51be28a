//! The buffers that sockets are read into.
//!
//! A [`RecvBuf`] is initialised memory from a pool: it is filled, frozen into `Bytes` that requests are sliced out
//! of, and comes home when the last of these is dropped, on whichever core. So a request of 1 MB touches no fresh
//! page.

use std::rc::Rc;

use bytes::Bytes;

use super::pool::{Lease, Memory, Pool};
use crate::model::limits::{RECV_BUF_BYTES_MAX, RECV_BUF_BYTES_MIN};

struct HeapMemory(Box<[u8]>);

impl Memory for HeapMemory {
    fn allocate(capacity_bytes: usize) -> Self {
        Self(vec![0; capacity_bytes].into_boxed_slice())
    }

    fn capacity_bytes(&self) -> usize {
        self.0.len()
    }
}

/// The receive buffers of one executor. A clone is the same pool.
#[derive(Clone)]
pub struct RecvPool(Rc<Pool<HeapMemory>>);

impl RecvPool {
    /// At most `free_bytes_max` are kept for reuse.
    pub fn new(free_bytes_max: usize) -> Self {
        Self(Rc::new(Pool::new(
            RECV_BUF_BYTES_MIN,
            RECV_BUF_BYTES_MAX,
            free_bytes_max,
        )))
    }

    /// An empty buffer of at least `capacity_bytes`: a power of two, or exactly that large above
    /// `RECV_BUF_BYTES_MAX`, and then not pooled. Never fails; the caller bounds what it asks for.
    pub fn take(&self, capacity_bytes: usize) -> RecvBuf {
        RecvBuf {
            lease: self.0.take(capacity_bytes),
            len_bytes: 0,
        }
    }

    /// Whether a buffer of so many bytes may be taken before there is anything to receive: all buffers together are then no more than may
    /// be kept for reuse.
    pub fn has_room_ahead(&self, capacity_bytes: usize) -> bool {
        self.bytes_in_use() + capacity_bytes <= self.0.free_bytes_max()
    }

    /// Bytes of all buffers that are being filled or whose `Bytes` are still held anywhere.
    pub fn bytes_in_use(&self) -> usize {
        self.0.in_use_bytes()
    }

    pub fn free_bytes(&self) -> usize {
        self.0.free_bytes()
    }
}

/// A buffer that a socket fills from the front.
pub struct RecvBuf {
    lease: Lease<HeapMemory>,
    len_bytes: usize,
}

impl RecvBuf {
    /// How many bytes were received.
    pub fn len(&self) -> usize {
        self.len_bytes
    }

    pub fn is_empty(&self) -> bool {
        self.len_bytes == 0
    }

    pub fn capacity(&self) -> usize {
        self.lease.memory().capacity_bytes()
    }

    pub fn bytes(&self) -> &[u8] {
        &self.lease.memory().0[..self.len_bytes]
    }

    /// The room behind what was received; `advance` says how much of it was filled.
    pub fn unfilled(&mut self) -> &mut [u8] {
        &mut self.lease.memory_mut().0[self.len_bytes..]
    }

    /// Panics past the capacity.
    pub fn advance(&mut self, received_bytes: usize) {
        assert!(
            received_bytes <= self.capacity() - self.len_bytes,
            "{received_bytes} bytes more than there is room for"
        );
        self.len_bytes += received_bytes;
    }

    /// Copies `bytes` behind what was received, for a frame that began in another buffer. Panics past the capacity.
    pub fn append(&mut self, bytes: &[u8]) {
        self.unfilled()[..bytes.len()].copy_from_slice(bytes);
        self.len_bytes += bytes.len();
    }

    /// What was received, without a copy. The buffer comes home when the last slice of it is dropped.
    pub fn freeze(self) -> Bytes {
        Bytes::from_owner(self)
    }
}

impl AsRef<[u8]> for RecvBuf {
    fn as_ref(&self) -> &[u8] {
        self.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn received_bytes_are_frozen_without_a_copy_and_come_home() {
        let pool = RecvPool::new(16 << 20);
        let mut buf = pool.take(1_000_000);
        assert_eq!(buf.capacity(), 1 << 20);
        buf.append(b"head");
        buf.unfilled()[..4].copy_from_slice(b"body");
        buf.advance(4);
        let address = buf.bytes().as_ptr();
        let bytes = buf.freeze();
        assert_eq!((&bytes[..], bytes.as_ptr()), (&b"headbody"[..], address));
        let body = bytes.slice(4..);
        drop(bytes);
        assert_eq!(pool.bytes_in_use(), 1 << 20);
        std::thread::spawn(move || drop(body))
            .join()
            .expect("the other thread");
        assert_eq!((pool.bytes_in_use(), pool.free_bytes()), (0, 1 << 20));
        let again = pool.take(1_000_000);
        assert!(again.is_empty());
        assert_eq!(again.bytes().as_ptr(), address);
    }

    #[test]
    fn a_buffer_above_the_largest_class_is_exact_and_not_kept() {
        let pool = RecvPool::new(1 << 30);
        let buf = pool.take(RECV_BUF_BYTES_MAX + 1);
        assert_eq!(buf.capacity(), RECV_BUF_BYTES_MAX + 1);
        drop(buf);
        assert_eq!((pool.bytes_in_use(), pool.free_bytes()), (0, 0));
    }

    #[test]
    #[should_panic(expected = "room for")]
    fn advancing_past_the_capacity_panics() {
        let mut buf = RecvPool::new(0).take(1);
        buf.advance(buf.capacity() + 1);
    }
}
