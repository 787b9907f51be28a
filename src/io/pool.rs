//! Memory in size classes that comes home to the executor that took it, from whichever core drops it last.
//!
//! Taking needs no lock and, once warm, no allocator: the free lists belong to one executor, last in first out, so
//! that the memory used next is the memory still in the cache. A lease dropped anywhere travels home on a bounded
//! lock-free queue, which the next `take` empties. Where that queue is full, or enough is free already, the memory goes to
//! the allocator instead.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crossbeam::queue::ArrayQueue;

use crate::model::limits::POOL_RETURNS_MAX;

/// One kind of memory a pool can hold.
pub(super) trait Memory: Send + 'static {
    fn allocate(capacity_bytes: usize) -> Self;
    fn capacity_bytes(&self) -> usize;
}

/// The side of a pool that other cores may touch.
struct Home<M> {
    returned: ArrayQueue<M>,
    in_use_bytes: AtomicUsize,
}

pub(super) struct Pool<M: Memory> {
    home: Arc<Home<M>>,
    /// One free list per class; class n holds memory of `class_bytes_min << n` bytes.
    free: RefCell<Vec<Vec<M>>>,
    free_bytes: Cell<usize>,
    free_bytes_max: usize,
    class_bytes_min: usize,
    class_bytes_max: usize,
}

impl<M: Memory> Pool<M> {
    /// Both bounds are powers of two, and so is every class between them.
    pub fn new(class_bytes_min: usize, class_bytes_max: usize, free_bytes_max: usize) -> Self {
        assert!(class_bytes_min.is_power_of_two() && class_bytes_max.is_power_of_two());
        assert!(class_bytes_min <= class_bytes_max);
        let classes = (class_bytes_max / class_bytes_min).trailing_zeros() + 1;
        Self {
            home: Arc::new(Home {
                returned: ArrayQueue::new(POOL_RETURNS_MAX),
                in_use_bytes: AtomicUsize::new(0),
            }),
            free: RefCell::new((0..classes).map(|_| Vec::new()).collect()),
            free_bytes: Cell::new(0),
            free_bytes_max,
            class_bytes_min,
            class_bytes_max,
        }
    }

    /// Memory of at least `capacity_bytes`: of the smallest class that fits, or exactly as large where none does.
    /// Never fails; whoever takes has a bound on what it holds.
    pub fn take(&self, capacity_bytes: usize) -> Lease<M> {
        self.collect();
        let memory = match self.class_of(capacity_bytes) {
            None => M::allocate(capacity_bytes),
            Some(class) => match self.free.borrow_mut()[class].pop() {
                Some(memory) => {
                    self.free_bytes
                        .set(self.free_bytes.get() - memory.capacity_bytes());
                    memory
                }
                None => M::allocate(self.class_bytes_min << class),
            },
        };
        self.home
            .in_use_bytes
            .fetch_add(memory.capacity_bytes(), Ordering::Relaxed);
        Lease {
            memory: Some(memory),
            home: Arc::clone(&self.home),
        }
    }

    pub fn in_use_bytes(&self) -> usize {
        self.home.in_use_bytes.load(Ordering::Relaxed)
    }

    pub fn free_bytes_max(&self) -> usize {
        self.free_bytes_max
    }

    pub fn free_bytes(&self) -> usize {
        self.collect();
        self.free_bytes.get()
    }

    fn class_of(&self, capacity_bytes: usize) -> Option<usize> {
        if capacity_bytes > self.class_bytes_max {
            return None;
        }
        let class_bytes = capacity_bytes.max(self.class_bytes_min).next_power_of_two();
        Some((class_bytes / self.class_bytes_min).trailing_zeros() as usize)
    }

    /// Puts what came home on the free lists, as far as they may hold it.
    fn collect(&self) {
        while let Some(memory) = self.home.returned.pop() {
            let capacity_bytes = memory.capacity_bytes();
            if self.free_bytes.get() + capacity_bytes <= self.free_bytes_max
                && let Some(class) = self.class_of(capacity_bytes)
            {
                self.free.borrow_mut()[class].push(memory);
                self.free_bytes.set(self.free_bytes.get() + capacity_bytes);
            }
        }
    }
}

/// Memory on loan from a pool; dropping it, on any thread, sends it home.
pub(super) struct Lease<M: Memory> {
    /// `None` only while being dropped.
    memory: Option<M>,
    home: Arc<Home<M>>,
}

impl<M: Memory> Lease<M> {
    pub fn memory(&self) -> &M {
        self.memory
            .as_ref()
            .expect("a lease holds its memory until it is dropped")
    }

    pub fn memory_mut(&mut self) -> &mut M {
        self.memory
            .as_mut()
            .expect("a lease holds its memory until it is dropped")
    }
}

impl<M: Memory> Drop for Lease<M> {
    fn drop(&mut self) {
        if let Some(memory) = self.memory.take() {
            self.home
                .in_use_bytes
                .fetch_sub(memory.capacity_bytes(), Ordering::Relaxed);
            // A full queue hands the memory back, and it is freed here.
            let _freed = self.home.returned.push(memory);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Plain(Vec<u8>);

    impl Memory for Plain {
        fn allocate(capacity_bytes: usize) -> Self {
            Self(vec![0; capacity_bytes])
        }
        fn capacity_bytes(&self) -> usize {
            self.0.len()
        }
    }

    #[test]
    fn a_take_is_rounded_up_to_its_class() {
        let pool = Pool::<Plain>::new(16, 128, 1024);
        for (asked, got) in [
            (0, 16),
            (1, 16),
            (16, 16),
            (17, 32),
            (100, 128),
            (128, 128),
            (129, 129),
        ] {
            assert_eq!(
                pool.take(asked).memory().capacity_bytes(),
                got,
                "asked for {asked}"
            );
        }
    }

    #[test]
    fn the_memory_dropped_last_is_taken_first() {
        let pool = Pool::<Plain>::new(16, 128, 1024);
        let (first, second) = (pool.take(16), pool.take(16));
        let second_address = second.memory().0.as_ptr();
        drop(first);
        drop(second);
        assert_eq!(pool.free_bytes(), 32);
        assert_eq!(pool.take(16).memory().0.as_ptr(), second_address);
    }

    #[test]
    fn memory_dropped_on_another_thread_comes_home() {
        let pool = Pool::<Plain>::new(16, 128, 1024);
        let lease = pool.take(64);
        let address = lease.memory().0.as_ptr() as usize;
        assert_eq!(pool.in_use_bytes(), 64);
        std::thread::spawn(move || drop(lease))
            .join()
            .expect("the other thread");
        assert_eq!((pool.in_use_bytes(), pool.free_bytes()), (0, 64));
        assert_eq!(pool.take(64).memory().0.as_ptr() as usize, address);
    }

    #[test]
    fn free_lists_never_outgrow_their_bound() {
        let pool = Pool::<Plain>::new(16, 128, 64);
        let leases: Vec<_> = (0..10).map(|_| pool.take(16)).collect();
        assert_eq!(pool.in_use_bytes(), 160, "what is in use does not count");
        drop(leases);
        assert_eq!((pool.in_use_bytes(), pool.free_bytes()), (0, 64));
    }

    #[test]
    fn memory_larger_than_every_class_is_not_kept() {
        let pool = Pool::<Plain>::new(16, 128, 4096);
        drop(pool.take(1000));
        assert_eq!((pool.in_use_bytes(), pool.free_bytes()), (0, 0));
    }

    #[test]
    fn a_full_way_home_frees_instead_of_growing() {
        let pool = Pool::<Plain>::new(16, 16, usize::MAX);
        let leases: Vec<_> = (0..POOL_RETURNS_MAX + 10).map(|_| pool.take(16)).collect();
        drop(leases);
        assert_eq!(
            (pool.in_use_bytes(), pool.free_bytes()),
            (0, POOL_RETURNS_MAX * 16)
        );
    }

    #[test]
    fn a_lease_may_outlive_its_pool() {
        let pool = Pool::<Plain>::new(16, 16, 1024);
        let lease = pool.take(16);
        drop(pool);
        assert_eq!(lease.memory().0.len(), 16);
    }
}
