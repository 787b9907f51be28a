use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A number that one thread writes and any thread reads.
///
/// Adding is a load, an add and a store, all relaxed: about a nanosecond, where `fetch_add` would lock the cache line. Two
/// writers would lose counts (never more than that), so `ShardMetrics` is bound to one thread.
#[derive(Debug, Default)]
pub(super) struct SingleWriterU64(AtomicU64);

impl SingleWriterU64 {
    #[inline]
    pub(super) fn add(&self, amount: u64) {
        self.0
            .store(self.0.load(Relaxed).wrapping_add(amount), Relaxed);
    }

    /// For gauges: one that would go below 0 stays at 0, so that a miscount shows as 0 and not as 2^64.
    #[inline]
    pub(super) fn subtract(&self, amount: u64) {
        self.0
            .store(self.0.load(Relaxed).saturating_sub(amount), Relaxed);
    }

    #[inline]
    pub(super) fn set(&self, value: u64) {
        self.0.store(value, Relaxed);
    }

    #[inline]
    pub(super) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}
