//! A fetch that waits, shared by its connection's core and those that own its partitions.
//!
//! ```text
//! connection's core                      owners' cores
//! LongPoll::new(missing) --AwaitData-->  each counts what it has, and then every byte that is confirmed
//! Call completes        <----Wake------  whoever makes the sum complete, and nobody else
//! ```
//! The count is one number that all owners lower, so that the poll is answered once and exactly when the bytes of all its partitions
//! together are enough.

use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, Weak};

use crate::io::executor;
use crate::model::limits::READ_ITEMS_PER_SLICE;
use crate::partition::fetch_waiters::WaitsForBytes;
use crate::shard::call::ReplyTo;
use crate::shard::command::AwaitItem;
use crate::shard::read::counted_bytes;
use crate::shard::runtime::Shard;

/// Held by the fetch as long as it waits; owners hold it weakly, so that one that ended is forgotten.
#[derive(Debug)]
pub struct LongPoll {
    missing_bytes: AtomicU64,
    reply: Mutex<Option<ReplyTo<()>>>,
}

impl LongPoll {
    /// `reply` is answered once `missing_bytes` have been counted. Panics at 0: there is nothing to wait for.
    pub fn new(missing_bytes: u64, reply: ReplyTo<()>) -> Self {
        assert!(missing_bytes > 0, "a long poll lacks something");
        Self {
            missing_bytes: AtomicU64::new(missing_bytes),
            reply: Mutex::new(Some(reply)),
        }
    }

    fn is_over(&self) -> bool {
        self.missing_bytes.load(Ordering::Relaxed) == 0
    }

    /// Says whether these were the last bytes that it lacked.
    fn count(&self, bytes: u64) -> bool {
        let before = self
            .missing_bytes
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |missing| {
                Some(missing.saturating_sub(bytes))
            })
            .expect("the update is never refused");
        before > 0 && before <= bytes
    }
}

/// A long poll as an owner of one of its partitions holds it.
#[derive(Clone, Debug)]
pub struct DataWaiter(Weak<LongPoll>);

impl DataWaiter {
    /// What to answer so that the fetch goes on; `None` if it does already.
    pub fn take_reply(&self) -> Option<ReplyTo<()>> {
        let poll = self.0.upgrade()?;
        poll.missing_bytes.store(0, Ordering::Relaxed);
        poll.reply
            .lock()
            .expect("no holder of the lock panics")
            .take()
    }
}

impl WaitsForBytes for DataWaiter {
    fn count(&self, bytes: u64) -> bool {
        self.0.upgrade().is_some_and(|poll| poll.count(bytes))
    }

    fn is_over(&self) -> bool {
        self.0.upgrade().is_none_or(|poll| poll.is_over())
    }
}

impl Shard {
    /// Tells `poll` once all its owners together have counted enough, or if one of its partitions cannot be read from any more.
    pub(super) fn await_data(self: &Rc<Self>, items: Vec<AwaitItem>, poll: Weak<LongPoll>) {
        let waiter = DataWaiter(poll);
        if items.len() <= READ_ITEMS_PER_SLICE {
            self.count_and_wait(&items, &waiter);
            return;
        }
        let shard = self.clone();
        executor::spawn_local(async move {
            for items in items.chunks(READ_ITEMS_PER_SLICE) {
                shard.count_and_wait(items, &waiter);
                executor::yield_if_needed().await;
            }
        })
        .detach();
    }

    fn count_and_wait(&self, items: &[AwaitItem], waiter: &DataWaiter) {
        for item in items {
            if waiter.is_over() {
                return;
            }
            let Some(partition) = self.partition(item.partition) else {
                self.tell_waiter(waiter);
                return;
            };
            let mut leader = partition.leader.borrow_mut();
            let is_readable =
                (leader.log().start()..=leader.log().end().offset).contains(&item.offset);
            let bytes = counted_bytes(leader.ahead(item.offset), item.max_bytes);
            if !is_readable || bytes > 0 && waiter.count(bytes) {
                self.tell_waiter(waiter);
                return;
            }
            let room_bytes = (item.max_bytes.max(1) as u64).saturating_sub(bytes);
            leader.wait_for_data(waiter.clone(), room_bytes);
        }
    }

    pub(super) fn tell_waiter(&self, waiter: &DataWaiter) {
        if let Some(reply) = waiter.take_reply() {
            self.router().answer(reply, ());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn the_owner_whose_bytes_complete_the_sum_tells_and_no_other() {
        let (reply, answers) = ReplyTo::thread();
        let poll = Arc::new(LongPoll::new(100, reply));
        let owners = [(); 2].map(|()| DataWaiter(Arc::downgrade(&poll)));
        assert!(!owners[0].count(60));
        assert!(owners[1].count(60));
        assert!(!owners[0].count(60) && owners[0].is_over());
        assert_eq!(owners[1].take_reply().unwrap().fill(()), None);
        assert!(owners[0].take_reply().is_none());
        assert_eq!(answers.try_iter().count(), 1);
    }

    #[test]
    fn a_poll_that_nobody_waits_for_is_over() {
        let poll = Arc::new(LongPoll::new(100, ReplyTo::thread().0));
        let owner = DataWaiter(Arc::downgrade(&poll));
        drop(poll);
        assert!(owner.is_over() && !owner.count(1_000));
        assert!(owner.take_reply().is_none());
    }
}
