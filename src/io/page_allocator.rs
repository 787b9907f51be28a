//! The process's allocator: blocks of whole pages, which disks read and write, come from regions of huge pages; all else from the
//! system's allocator.
//!
//! glommio takes the memory of its buffers from the global allocator, with the alignment of a page. Nobody else in this process asks
//! for that alignment, so it marks them. In 4 KiB pages the first touch of a tail cache costs about as much CPU as receiving the
//! bytes that go into it, and so does every read of a megabyte, whose buffer the system's allocator would map and unmap each time.
//!
//! ```text
//! region, 64 MiB, on a 2 MiB border:  | 512 KiB | 512 KiB | 16 K | 16 K | 1 MiB | ... not handed out yet |
//! ```
//!
//! A block that is freed is kept for the next of its size, never given back: what is taken at once is bounded by the budgets of the
//! pools and by the reads in flight.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr::{self, NonNull};
use std::sync::{Mutex, PoisonError};

use crate::model::limits::PAGE_BYTES;

const REGION_BYTES: usize = 64 << 20;
const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Sizes are powers of two from here up to `BLOCK_BYTES_MAX`; others go to the system.
const BLOCK_BYTES_MIN: usize = 16 << 10;
const BLOCK_BYTES_MAX: usize = 2 << 20;
const CLASS_COUNT: usize = (BLOCK_BYTES_MAX / BLOCK_BYTES_MIN).trailing_zeros() as usize + 1;

#[global_allocator]
static ALLOCATOR: PageAllocator = PageAllocator {
    regions: Mutex::new(Regions::EMPTY),
};

struct PageAllocator {
    regions: Mutex<Regions>,
}

struct Regions {
    /// What is left of the newest region.
    next: usize,
    end: usize,
    /// Freed blocks by size; the first word of each points to the next one.
    free: [*mut u8; CLASS_COUNT],
}

// SAFETY: the pointers in it lead to freed blocks, which belong to nobody else.
unsafe impl Send for Regions {}

/// The class of a layout, if its blocks come from the regions.
fn class_of(layout: &Layout) -> Option<usize> {
    let size = layout.size();
    let is_block = layout.align() == PAGE_BYTES
        && size.is_power_of_two()
        && (BLOCK_BYTES_MIN..=BLOCK_BYTES_MAX).contains(&size);
    is_block.then(|| (size / BLOCK_BYTES_MIN).trailing_zeros() as usize)
}

impl Regions {
    const EMPTY: Self = Self {
        next: 0,
        end: 0,
        free: [ptr::null_mut(); CLASS_COUNT],
    };

    fn take(&mut self, class: usize) -> *mut u8 {
        let freed = self.free[class];
        if !freed.is_null() {
            // SAFETY: `give_back` stored the pointer there, and nobody has the block.
            self.free[class] = unsafe { freed.cast::<*mut u8>().read() };
            return freed;
        }
        let block_bytes = BLOCK_BYTES_MIN << class;
        if self.end - self.next < block_bytes && !self.map_region() {
            return ptr::null_mut();
        }
        let block = self.next as *mut u8;
        self.next += block_bytes;
        block
    }

    fn give_back(&mut self, block: NonNull<u8>, class: usize) {
        // SAFETY: the block is at least a page, and its owner has just given it up.
        unsafe { block.as_ptr().cast::<*mut u8>().write(self.free[class]) };
        self.free[class] = block.as_ptr();
    }

    /// What is left of the region before is lost, less than a block; its pages were never touched.
    fn map_region(&mut self) -> bool {
        let with_border = REGION_BYTES + HUGE_PAGE_BYTES;
        // SAFETY: a new anonymous mapping disturbs nothing.
        let mapped = unsafe {
            libc::mmap(
                ptr::null_mut(),
                with_border,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if mapped == libc::MAP_FAILED {
            return false;
        }
        let start = (mapped as usize).next_multiple_of(HUGE_PAGE_BYTES);
        // SAFETY: the range lies in the new mapping. A kernel without huge pages refuses, and small ones do.
        unsafe {
            libc::madvise(
                start as *mut libc::c_void,
                REGION_BYTES,
                libc::MADV_HUGEPAGE,
            )
        };
        (self.next, self.end) = (start, start + REGION_BYTES);
        true
    }
}

impl PageAllocator {
    fn with<T>(&self, work: impl FnOnce(&mut Regions) -> T) -> T {
        // A panic inside would be a bug of these few lines; the lists are whole between any two of them.
        work(&mut self.regions.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

// SAFETY: a block is handed out to one owner at a time, with the size and alignment asked for; a layout decides alone, and the same way
// at `alloc` and `dealloc`, whether the system or a region serves it.
unsafe impl GlobalAlloc for PageAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match class_of(&layout) {
            Some(class) => self.with(|regions| regions.take(class)),
            // SAFETY: the caller's duties are passed on.
            None => unsafe { System.alloc(layout) },
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        match class_of(&layout) {
            Some(class) => {
                let block = self.with(|regions| regions.take(class));
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
        match (class_of(&layout), NonNull::new(block)) {
            (Some(class), Some(block)) => self.with(|regions| regions.give_back(block, class)),
            // SAFETY: the caller's duties are passed on.
            _ => unsafe { System.dealloc(block, layout) },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_freed_block_serves_the_next_of_its_size() {
        let mut regions = Regions::EMPTY;
        let class = class_of(&Layout::from_size_align(512 << 10, PAGE_BYTES).unwrap()).unwrap();
        let (first, second) = (regions.take(class), regions.take(class));
        assert_eq!(second as usize - first as usize, 512 << 10);
        assert_eq!(first as usize % PAGE_BYTES, 0);
        regions.give_back(NonNull::new(first).unwrap(), class);
        regions.give_back(NonNull::new(second).unwrap(), class);
        assert_eq!([regions.take(class), regions.take(class)], [second, first]);
    }

    #[test]
    fn only_page_aligned_powers_of_two_are_blocks() {
        let class = |size, align| class_of(&Layout::from_size_align(size, align).unwrap());
        assert_eq!(class(16 << 10, 4096), Some(0));
        assert_eq!(class(2 << 20, 4096), Some(CLASS_COUNT - 1));
        for other in [
            (16 << 10, 8),
            (8 << 10, 4096),
            (24 << 10, 4096),
            (4 << 20, 4096),
        ] {
            assert_eq!(class(other.0, other.1), None, "{other:?}");
        }
    }

    #[test]
    fn blocks_of_every_size_are_usable_and_apart() {
        let layouts: Vec<_> = (0..CLASS_COUNT)
            .map(|class| Layout::from_size_align(BLOCK_BYTES_MIN << class, PAGE_BYTES).unwrap())
            .collect();
        // SAFETY: each block is written within its size and freed once with its own layout.
        unsafe {
            let blocks: Vec<_> = layouts
                .iter()
                .map(|layout| std::alloc::alloc(*layout))
                .collect();
            for (n, (block, layout)) in blocks.iter().zip(&layouts).enumerate() {
                block.write_bytes(n as u8, layout.size());
            }
            for (n, (block, layout)) in blocks.iter().zip(&layouts).enumerate() {
                assert!(
                    std::slice::from_raw_parts(*block, layout.size())
                        .iter()
                        .all(|byte| *byte == n as u8)
                );
                std::alloc::dealloc(*block, *layout);
            }
        }
    }
}
