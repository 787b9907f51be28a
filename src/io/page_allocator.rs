//! The process's allocator: blocks of whole pages, which disks read and write, come from regions of huge pages; all else from the
//! system's allocator.
//!
//! glommio takes the memory of its buffers from the global allocator, with the alignment of a page. Nobody else in this process asks
//! for that alignment, so it marks them. In 4 KiB pages the first touch of a tail cache costs about as much CPU as receiving the
//! bytes that go into it, and so does every read of a megabyte, whose buffer the system's allocator would map and unmap each time.
//!
//! Blocks are buddies: a block of 512 KiB is two of 256 KiB, and two freed halves become one again, so that memory which held small
//! chunks serves large ones when the load changes. It is never given back to the system: what is taken at once is bounded by the
//! budgets of the pools and by the reads in flight.
//!
//! What was never handed out is not resident: the kernel clears a huge page when it is first touched, and whoever touches it waits. So
//! `page_toucher` does it in advance.
//!
//! ```text
//! region, 64 MiB, on a 64 MiB border
//! | map 16 K | 16 K | 32 K | 64 K | ... | 1 MiB | 2 MiB | 2 MiB | ... not handed out yet |
//! map: a byte for each 4 KiB of the region; 0, or 1 + the order of the free block that starts there
//! free block: | next free of its order | the one before | ... |
//! ```

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr::{self, NonNull};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::model::limits::{PAGE_BYTES, TOUCHED_AHEAD_BYTES_MAX, TOUCHED_AHEAD_BYTES_MIN};

const REGION_BYTES: usize = 64 << 20;

/// Sizes are powers of two from here up to `BLOCK_BYTES_MAX`, one for each order; others go to the system.
const BLOCK_BYTES_MIN: usize = PAGE_BYTES;
/// The size of a huge page, so that a region's next block is the next huge page.
const BLOCK_BYTES_MAX: usize = 2 << 20;
const ORDER_COUNT: usize = (BLOCK_BYTES_MAX / BLOCK_BYTES_MIN).trailing_zeros() as usize + 1;
const ORDER_MAX: usize = ORDER_COUNT - 1;

/// What the map of a region takes: a byte for each of its smallest blocks.
const MAP_BYTES: usize = REGION_BYTES / BLOCK_BYTES_MIN;
const MAP_ORDER: usize = (MAP_BYTES / BLOCK_BYTES_MIN).trailing_zeros() as usize;

#[global_allocator]
static ALLOCATOR: PageAllocator = PageAllocator {
    regions: Mutex::new(Regions::EMPTY),
    handed_out: Condvar::new(),
};

struct PageAllocator {
    regions: Mutex<Regions>,
    /// Told when a block is handed out for the first time: there is one more to touch.
    handed_out: Condvar,
}

struct Regions {
    /// The newest region's blocks of the largest size that were never handed out; touching one would make it resident.
    next: Blocks,
    /// The region after it, if it is mapped already.
    spare: Blocks,
    /// The block that the toucher is at, which nobody else may have meanwhile.
    touching: Option<Touching>,
    /// Of all blocks of the largest size that were ever handed out.
    handed_out_bytes: usize,
    /// The most that is made resident in advance.
    ahead_bytes_max: usize,
    /// The newest free block of each order.
    free: [*mut FreeBlock; ORDER_COUNT],
}

/// Blocks of the largest size, one behind the other, of which those before `touched` are resident.
#[derive(Clone, Copy)]
struct Blocks {
    start: usize,
    touched: usize,
    end: usize,
}

struct Touching {
    block: usize,
    /// It was its turn to be handed out, and the one behind it was. It will be free.
    is_passed: bool,
}

/// What the toucher does next.
pub enum Untouched {
    /// Touch the block of the largest size that starts here, which is the toucher's until then.
    Block(usize),
    /// Map a region and put it in as the spare one.
    Region,
}

/// What stands in a free block.
struct FreeBlock {
    next: *mut FreeBlock,
    before: *mut FreeBlock,
}

// SAFETY: the pointers in it lead to freed blocks, which belong to nobody else.
unsafe impl Send for Regions {}

/// The order of a layout, if its blocks come from the regions.
fn order_of(layout: &Layout) -> Option<usize> {
    let size = layout.size();
    let is_block = layout.align() == PAGE_BYTES
        && size.is_power_of_two()
        && (BLOCK_BYTES_MIN..=BLOCK_BYTES_MAX).contains(&size);
    is_block.then(|| (size / BLOCK_BYTES_MIN).trailing_zeros() as usize)
}

impl Regions {
    const EMPTY: Self = Self {
        next: Blocks::NONE,
        spare: Blocks::NONE,
        touching: None,
        handed_out_bytes: 0,
        ahead_bytes_max: TOUCHED_AHEAD_BYTES_MAX,
        free: [ptr::null_mut(); ORDER_COUNT],
    };

    fn take(&mut self, order: usize) -> *mut u8 {
        let found = (order..ORDER_COUNT).find(|&order| !self.free[order].is_null());
        let (block, found) = match found {
            Some(found) => {
                let block = self.free[found];
                self.unlink(block, found);
                (block as usize, found)
            }
            None => match self.take_untouched() {
                Some(block) => (block, ORDER_MAX),
                None => return ptr::null_mut(),
            },
        };
        // What is too large is halved, and the upper halves are free.
        for half in (order..found).rev() {
            self.link(block + (BLOCK_BYTES_MIN << half), half);
        }
        block as *mut u8
    }

    fn give_back(&mut self, block: NonNull<u8>, order: usize) {
        let (mut block, mut order) = (block.as_ptr() as usize, order);
        while order < ORDER_MAX {
            let buddy = block ^ (BLOCK_BYTES_MIN << order);
            // SAFETY: the map belongs to the regions.
            if unsafe { *map_entry(buddy) } != 1 + order as u8 {
                break;
            }
            self.unlink(buddy as *mut FreeBlock, order);
            block = block.min(buddy);
            order += 1;
        }
        self.link(block, order);
    }

    fn link(&mut self, block: usize, order: usize) {
        let next = self.free[order];
        let block = block as *mut FreeBlock;
        // SAFETY: the block is free, so it and its place in the map are ours; so is the next one.
        unsafe {
            block.write(FreeBlock {
                next,
                before: ptr::null_mut(),
            });
            if !next.is_null() {
                (*next).before = block;
            }
            *map_entry(block as usize) = 1 + order as u8;
        }
        self.free[order] = block;
    }

    fn unlink(&mut self, block: *mut FreeBlock, order: usize) {
        // SAFETY: the map says that the block is free, so `link` wrote it and its neighbours.
        unsafe {
            let FreeBlock { next, before } = block.read();
            if !next.is_null() {
                (*next).before = before;
            }
            if before.is_null() {
                self.free[order] = next;
            } else {
                (*before).next = next;
            }
            *map_entry(block as usize) = 0;
        }
    }

    /// A block of the largest size from the newest region, or from a new one.
    fn take_untouched(&mut self) -> Option<usize> {
        loop {
            if self.next.is_empty() {
                match self.spare.is_empty() {
                    true => {
                        let region = map_region()?;
                        self.next = self.open_region(region);
                    }
                    false => self.next = std::mem::replace(&mut self.spare, Blocks::NONE),
                }
            }
            let block = self.next.start;
            self.next.start += BLOCK_BYTES_MAX;
            self.handed_out_bytes += BLOCK_BYTES_MAX;
            match &mut self.touching {
                Some(touching) if touching.block == block => touching.is_passed = true,
                _ => return Some(block),
            }
        }
    }

    fn end_touch(&mut self) {
        let touched = self.touching.take().expect("a block is being touched");
        if touched.is_passed {
            self.link(touched.block, ORDER_MAX);
        }
    }

    /// The blocks of a new region; what its map leaves of the first is free.
    fn open_region(&mut self, region: usize) -> Blocks {
        // The map's block stays in use, so its buddies are never joined with it.
        for order in MAP_ORDER..ORDER_MAX {
            self.link(region + (BLOCK_BYTES_MIN << order), order);
        }
        Blocks {
            start: region + BLOCK_BYTES_MAX,
            touched: region + BLOCK_BYTES_MAX,
            end: region + REGION_BYTES,
        }
    }

    /// How much is to be resident before it is handed out: as much as was taken so far, so that a broker that does nothing stays
    /// small.
    fn ahead_bytes(&self) -> usize {
        self.handed_out_bytes
            .max(TOUCHED_AHEAD_BYTES_MIN)
            .min(self.ahead_bytes_max)
    }

    /// None: enough is resident.
    fn next_untouched(&mut self) -> Option<Untouched> {
        let ahead_bytes = self.ahead_bytes();
        let missing_bytes = ahead_bytes.saturating_sub(self.next.bytes());
        let block = match self.next.next_untouched(ahead_bytes) {
            Some(block) => block,
            None if missing_bytes == 0 => return None,
            None if self.spare.is_empty() => return Some(Untouched::Region),
            None => self.spare.next_untouched(missing_bytes)?,
        };
        self.touching = Some(Touching {
            block,
            is_passed: false,
        });
        Some(Untouched::Block(block))
    }
}

impl Blocks {
    const NONE: Self = Self {
        start: 0,
        touched: 0,
        end: 0,
    };

    fn is_empty(&self) -> bool {
        self.start == self.end
    }

    fn bytes(&self) -> usize {
        self.end - self.start
    }

    /// The first block among the next `bytes` that is not resident; it counts as touched from now on.
    fn next_untouched(&mut self, bytes: usize) -> Option<usize> {
        let block = self.touched.max(self.start);
        let is_wanted = block < self.end && block < self.start + bytes;
        is_wanted.then(|| {
            self.touched = block + BLOCK_BYTES_MAX;
            block
        })
    }
}

/// A new region of huge pages, not resident.
pub fn map_region() -> Option<usize> {
    // Twice as much, of which what lies outside of the borders goes back at once.
    let map = |bytes: usize| {
        // SAFETY: a new anonymous mapping disturbs nothing.
        unsafe {
            libc::mmap(
                ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        }
    };
    let unmap = |from: usize, to: usize| {
        if from < to {
            // SAFETY: the range is a part of the new mapping that nobody uses.
            unsafe { libc::munmap(from as *mut libc::c_void, to - from) };
        }
    };
    let mapped = map(2 * REGION_BYTES);
    if mapped == libc::MAP_FAILED {
        return None;
    }
    let mapped = mapped as usize;
    let start = mapped.next_multiple_of(REGION_BYTES);
    let end = start + REGION_BYTES;
    unmap(mapped, start);
    unmap(end, mapped + 2 * REGION_BYTES);
    // SAFETY: the range is the mapping. A kernel without huge pages refuses, and small ones do.
    unsafe {
        libc::madvise(
            start as *mut libc::c_void,
            REGION_BYTES,
            libc::MADV_HUGEPAGE,
        )
    };
    Some(start)
}

/// Makes the block resident that `await_untouched` gave.
///
/// By a write, and not by `MADV_POPULATE_WRITE`: that holds the lock of the whole address space while the kernel clears the memory, and
/// whatever maps or protects memory meanwhile, as an allocator does, waits for it with all threads behind.
pub fn touch_block(block: usize) {
    touch(block);
    ALLOCATOR.lock().end_touch();
}

/// Writes to each page of a block of the largest size, which must be the caller's alone.
fn touch(block: usize) {
    for page in (block..block + BLOCK_BYTES_MAX).step_by(PAGE_BYTES) {
        // SAFETY: the block is a part of a region, and those are never unmapped; nobody else has it.
        unsafe { (page as *mut u8).write_volatile(0) };
    }
}

/// From now on no more than this is made resident in advance.
pub fn limit_ahead(bytes_max: usize) {
    ALLOCATOR.lock().ahead_bytes_max = bytes_max;
}

/// Waits until there is something to touch.
pub fn await_untouched() -> Untouched {
    let mut regions = ALLOCATOR.lock();
    loop {
        match regions.next_untouched() {
            Some(untouched) => return untouched,
            None => {
                regions = ALLOCATOR
                    .handed_out
                    .wait(regions)
                    .unwrap_or_else(PoisonError::into_inner);
            }
        }
    }
}

/// The region that comes next. Its first block is touched before, since its map is in it and is written with the lock held.
pub fn put_in(region: usize) {
    touch(region);
    let mut regions = ALLOCATOR.lock();
    assert!(regions.spare.is_empty(), "one toucher asks for one region");
    regions.spare = regions.open_region(region);
}

/// A block's place in its region's map.
fn map_entry(block: usize) -> *mut u8 {
    let region = block & !(REGION_BYTES - 1);
    (region + (block - region) / BLOCK_BYTES_MIN) as *mut u8
}

impl PageAllocator {
    fn lock(&self) -> MutexGuard<'_, Regions> {
        // A panic inside would be a bug of these few lines; the lists are whole between any two of them.
        self.regions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, order: usize) -> *mut u8 {
        let (block, is_first_use) = {
            let mut regions = self.lock();
            let before = regions.handed_out_bytes;
            let block = regions.take(order);
            (block, regions.handed_out_bytes != before)
        };
        if is_first_use {
            self.handed_out.notify_one();
        }
        block
    }
}

// SAFETY: a block is handed out to one owner at a time, with the size and alignment asked for; a layout decides alone, and the same way
// at `alloc` and `dealloc`, whether the system or a region serves it.
unsafe impl GlobalAlloc for PageAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match order_of(&layout) {
            Some(order) => self.take(order),
            // SAFETY: the caller's duties are passed on.
            None => unsafe { System.alloc(layout) },
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        match order_of(&layout) {
            Some(order) => {
                let block = self.take(order);
                if !block.is_null() {
                    // SAFETY: the block has this size.
                    unsafe { block.write_bytes(0, layout.size()) };
                }
                block
            }
            // SAFETY: the caller's duties are passed on.
            None => unsafe { System.alloc_zeroed(layout) },
        }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        match (order_of(&layout), NonNull::new(block)) {
            (Some(order), Some(block)) => self.lock().give_back(block, order),
            // SAFETY: the caller's duties are passed on.
            _ => unsafe { System.dealloc(block, layout) },
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the caller answers for the new size.
        let new_layout = unsafe { Layout::from_size_align_unchecked(new_size, layout.align()) };
        if order_of(&layout).is_none() && order_of(&new_layout).is_none() {
            // SAFETY: the block came from there, and the caller's duties are passed on.
            return unsafe { System.realloc(block, layout, new_size) };
        }
        // SAFETY: the new block has room for what is copied, and is another one.
        unsafe {
            let new_block = self.alloc(new_layout);
            if !new_block.is_null() {
                ptr::copy_nonoverlapping(block, new_block, layout.size().min(new_size));
                self.dealloc(block, layout);
            }
            new_block
        }
    }
}

#[cfg(test)]
mod tests;
