//! The memory that the tails of all logs may hold, over all shards: a busy shard may use what the others leave.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Shared by the shards; each counts in what it holds and frees its own oldest chunks when it should.
#[derive(Clone, Debug)]
pub struct CacheBudget {
    total_bytes: usize,
    fair_share_bytes: usize,
    held_bytes: Arc<AtomicUsize>,
}

/// One shard's part.
#[derive(Debug)]
pub struct CacheShare {
    budget: CacheBudget,
    own_bytes: usize,
}

impl CacheBudget {
    pub fn new(total_bytes: usize, shard_count: usize) -> Self {
        Self {
            total_bytes,
            fair_share_bytes: total_bytes / shard_count,
            held_bytes: Arc::default(),
        }
    }

    pub fn share(&self) -> CacheShare {
        CacheShare {
            budget: self.clone(),
            own_bytes: 0,
        }
    }
}

impl CacheShare {
    pub fn own_bytes(&self) -> usize {
        self.own_bytes
    }

    pub fn add(&mut self, bytes: usize) {
        self.own_bytes += bytes;
        self.budget.held_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub fn subtract(&mut self, bytes: usize) {
        self.own_bytes -= bytes;
        self.budget.held_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Whether this shard is to free a chunk: too much is held in all, and it has more than its share.
    pub fn is_over(&self) -> bool {
        self.own_bytes > self.budget.fair_share_bytes
            && self.budget.held_bytes.load(Ordering::Relaxed) > self.budget.total_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_shard_uses_what_the_others_leave_and_gives_it_back() {
        let budget = CacheBudget::new(100, 2);
        let (mut busy, mut other) = (budget.share(), budget.share());
        busy.add(100);
        assert!(!busy.is_over());
        other.add(30);
        assert!(busy.is_over());
        assert!(!other.is_over(), "it has less than its share");
        busy.subtract(30);
        assert!(!busy.is_over());
    }
}
