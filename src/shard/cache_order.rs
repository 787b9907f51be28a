//! The cached chunks of all logs of a shard, oldest first, so that the oldest goes when the budget is used up.

use std::collections::VecDeque;
use std::rc::{Rc, Weak};

use crate::shard::cache_budget::CacheShare;

/// Knows of each chunk only whose it is: a log's own chunks go in the order in which they came. At most half of the entries are those
/// of logs that are gone, since each keeps the memory that its owner lay in.
pub(super) struct CacheOrder<P> {
    share: CacheShare,
    order: VecDeque<Weak<P>>,
    /// Entries whose chunks their owner has let go of; some may have left since.
    gone_count: usize,
}

impl<P> CacheOrder<P> {
    pub fn new(share: CacheShare) -> Self {
        Self {
            share,
            order: VecDeque::new(),
            gone_count: 0,
        }
    }

    pub fn own_bytes(&self) -> usize {
        self.share.own_bytes()
    }

    /// `count` more chunks of `owner` are cached, of `bytes` in all.
    pub fn add(&mut self, owner: &Rc<P>, count: usize, bytes: usize) {
        self.share.add(bytes);
        self.order
            .extend(std::iter::repeat_with(|| Rc::downgrade(owner)).take(count));
    }

    /// Whose chunk is to be freed, if one is; [`Self::on_freed`] is to follow.
    pub fn next_to_free(&mut self) -> Option<Rc<P>> {
        while self.share.is_over() {
            match self.order.pop_front()?.upgrade() {
                Some(owner) => return Some(owner),
                None => self.gone_count = self.gone_count.saturating_sub(1),
            }
        }
        None
    }

    pub fn on_freed(&mut self, bytes: usize) {
        self.share.subtract(bytes);
    }

    /// An owner that is deleted has let go of its `count` chunks, of `bytes` in all. `is_gone` tells the owners of which that is true.
    pub fn forget(&mut self, count: usize, bytes: usize, is_gone: impl Fn(&P) -> bool) {
        self.share.subtract(bytes);
        self.gone_count += count;
        if self.gone_count > self.order.len() / 2 {
            self.order
                .retain(|owner| owner.upgrade().is_some_and(|owner| !is_gone(&owner)));
            self.gone_count = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shard::cache_budget::CacheBudget;

    fn order(total_bytes: usize) -> CacheOrder<u32> {
        CacheOrder::new(CacheBudget::new(total_bytes, 1).share())
    }

    #[test]
    fn the_oldest_chunk_goes_first() {
        let mut order = order(25);
        let (first, second) = (Rc::new(1), Rc::new(2));
        order.add(&first, 1, 10);
        order.add(&second, 1, 10);
        assert_eq!(order.next_to_free(), None);
        order.add(&first, 1, 10);
        assert_eq!(order.next_to_free(), Some(first));
        order.on_freed(10);
        assert_eq!(order.next_to_free(), None);
    }

    #[test]
    fn deleted_logs_leave_no_more_entries_than_the_live_ones_have() {
        let mut order = order(usize::MAX);
        let live = Rc::new(0);
        order.add(&live, 10, 100);
        for _ in 0..1_000 {
            let deleted = Rc::new(1);
            order.add(&deleted, 7, 70);
            order.forget(7, 70, |owner| *owner == 1);
            assert!(order.order.len() <= 2 * (10 + 7), "{}", order.order.len());
        }
        assert_eq!(order.own_bytes(), 100);
        let left = order
            .order
            .iter()
            .filter(|it| it.upgrade() == Some(live.clone()));
        assert_eq!(left.count(), 10);
    }
}
