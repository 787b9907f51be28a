//! The bytes of a disk read, for readers on any core, without a copy.
//!
//! glommio reads into memory that it allocates and counts with non-atomic references, so its `ReadResult` must never
//! be cloned or dropped on another thread. Here it is wrapped: other cores see a pointer and a length, and whoever
//! drops the last handle sends the `ReadResult` home, where the next read or tick drops it.

use std::fmt;
use std::mem::ManuallyDrop;
use std::ops::{Deref, Range};
use std::slice;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use crossbeam::queue::ArrayQueue;
use glommio::io::ReadResult;

use crate::model::limits::READ_BUFFERS_OUT_MAX;

thread_local! {
    static HOME: Arc<Home> = Arc::new(Home {
        returned: ArrayQueue::new(READ_BUFFERS_OUT_MAX),
        out_count: AtomicUsize::new(0),
    });
}

/// Where read buffers of one executor come back to.
struct Home {
    returned: ArrayQueue<Parcel>,
    /// Buffers held by someone or on their way home. At most the queue's capacity, so that the way home always has
    /// room.
    out_count: AtomicUsize,
}

/// A read result in transit. It has no destructor: left in the queue of an executor that is gone, it leaks.
struct Parcel(ManuallyDrop<ReadResult>);

// SAFETY: a parcel is only moved between threads. It is opened (and its non-atomic counts touched) by
// `collect_returned_reads` on the thread that made the read, and dropping it unopened does nothing.
unsafe impl Send for Parcel {}

impl Parcel {
    fn open_at_home(self) {
        drop(ManuallyDrop::into_inner(self.0));
    }
}

/// Frees the buffers of this executor's reads that were dropped elsewhere.
pub(crate) fn collect_returned_reads() {
    HOME.with(|home| {
        while let Some(parcel) = home.returned.pop() {
            parcel.open_at_home();
            home.out_count.fetch_sub(1, Ordering::Relaxed);
        }
    });
}

/// Immutable bytes that were read from a file. A clone or a slice is the same memory; `Send` and `Sync`.
#[derive(Clone)]
pub struct ReadBytes {
    owner: Option<Arc<Owner>>,
    range: Range<usize>,
}

enum Owner {
    Borrowed(Borrowed),
    Copied(Box<[u8]>),
}

/// The memory of a read result, to be returned to the executor that read it.
struct Borrowed {
    /// Taken by `drop` alone.
    result: ManuallyDrop<ReadResult>,
    start: *const u8,
    len_bytes: usize,
    home: Arc<Home>,
}

// SAFETY: other threads read `start` and `len_bytes` and the bytes behind them, which the kernel has finished writing
// and nobody writes any more; they stay allocated as long as `result` does. `result` itself is touched by nobody but
// `drop`, which only moves it.
unsafe impl Send for Borrowed {}
// SAFETY: as above.
unsafe impl Sync for Borrowed {}

impl Drop for Borrowed {
    fn drop(&mut self) {
        // SAFETY: `result` is not used after this: the value is being dropped.
        let result = unsafe { ManuallyDrop::take(&mut self.result) };
        let parcel = Parcel(ManuallyDrop::new(result));
        let refused = self.home.returned.push(parcel);
        debug_assert!(
            refused.is_ok(),
            "more read buffers are out than were counted"
        );
    }
}

impl ReadBytes {
    /// Takes over the result of a read that this executor made.
    pub(super) fn new(result: ReadResult, range: Range<usize>) -> Self {
        collect_returned_reads();
        assert!(
            range.start <= range.end && range.end <= result.len(),
            "{range:?} of {} bytes",
            result.len()
        );
        if range.is_empty() {
            return Self {
                owner: None,
                range: 0..0,
            };
        }
        HOME.with(|home| {
            if home.out_count.load(Ordering::Relaxed) >= READ_BUFFERS_OUT_MAX {
                let copy = Owner::Copied(result[range.clone()].into());
                return Self {
                    owner: Some(Arc::new(copy)),
                    range: 0..range.len(),
                };
            }
            home.out_count.fetch_add(1, Ordering::Relaxed);
            let (start, len_bytes) = (result.as_ptr(), result.len());
            let borrowed = Borrowed {
                result: ManuallyDrop::new(result),
                start,
                len_bytes,
                home: Arc::clone(home),
            };
            Self {
                owner: Some(Arc::new(Owner::Borrowed(borrowed))),
                range,
            }
        })
    }

    /// A part of these bytes; panics if the range leaves them.
    pub fn slice(&self, range: Range<usize>) -> ReadBytes {
        assert!(
            range.start <= range.end && range.end <= self.len(),
            "{range:?} of {} bytes",
            self.len()
        );
        let start = self.range.start;
        ReadBytes {
            owner: self.owner.clone(),
            range: start + range.start..start + range.end,
        }
    }
}

impl Deref for ReadBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        let all = match self.owner.as_deref() {
            None => &[],
            Some(Owner::Copied(bytes)) => &bytes[..],
            // SAFETY: see `Borrowed`; the slice lives no longer than `self`, which holds the owner.
            Some(Owner::Borrowed(borrowed)) => unsafe {
                slice::from_raw_parts(borrowed.start, borrowed.len_bytes)
            },
        };
        &all[self.range.clone()]
    }
}

impl AsRef<[u8]> for ReadBytes {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

/// Without a copy: the `Bytes` own the read.
impl From<ReadBytes> for Bytes {
    fn from(bytes: ReadBytes) -> Self {
        Bytes::from_owner(bytes)
    }
}

impl fmt::Debug for ReadBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ReadBytes({} bytes)", self.len())
    }
}
