//! How many checks of batches a shard has under way that take more than their first step: each holds the window of a codec.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use crate::io::oneshot::{OneshotSender, oneshot};
use crate::model::limits::SLOW_CHECKS_PER_SHARD_MAX;

/// The slots of one shard, given in the order in which they were asked for.
#[derive(Clone)]
pub struct CheckSlots(Rc<Slots>);

struct Slots {
    free_count: Cell<usize>,
    waiters: RefCell<VecDeque<OneshotSender<CheckSlot>>>,
}

/// A slot that is taken, until it is dropped.
pub struct CheckSlot(CheckSlots);

impl CheckSlots {
    /// A slot, if one is free.
    pub fn try_take(&self) -> Option<CheckSlot> {
        let left_count = self.0.free_count.get().checked_sub(1)?;
        self.0.free_count.set(left_count);
        Some(CheckSlot(self.clone()))
    }

    /// Waits until it is this one's turn.
    pub async fn take(&self) -> CheckSlot {
        if let Some(slot) = self.try_take() {
            return slot;
        }
        let (sender, slot) = oneshot();
        self.0.waiters.borrow_mut().push_back(sender);
        slot.await
            .expect("a waiter stays in the queue until it is given a slot")
    }
}

impl Default for CheckSlots {
    fn default() -> Self {
        Self(Rc::new(Slots {
            free_count: Cell::new(SLOW_CHECKS_PER_SHARD_MAX),
            waiters: RefCell::default(),
        }))
    }
}

impl Drop for CheckSlot {
    fn drop(&mut self) {
        let slots = &self.0.0;
        loop {
            let next = slots.waiters.borrow_mut().pop_front();
            match next {
                Some(waiter) if waiter.is_abandoned() => {}
                Some(waiter) => return waiter.send(CheckSlot(self.0.clone())),
                None => return slots.free_count.set(slots.free_count.get() + 1),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures_lite::future::{block_on, poll_once};

    use super::*;

    #[test]
    fn a_slot_that_is_given_back_goes_to_who_waits_longest() {
        block_on(async {
            let slots = CheckSlots::default();
            let mut taken: Vec<_> = std::iter::from_fn(|| slots.try_take()).collect();
            assert_eq!(taken.len(), SLOW_CHECKS_PER_SHARD_MAX);
            let mut first = pin!(slots.take());
            let mut second = pin!(slots.take());
            assert!(poll_once(&mut first).await.is_none());
            assert!(poll_once(&mut second).await.is_none());
            taken.pop();
            assert!(slots.try_take().is_none(), "it is promised");
            assert!(poll_once(&mut second).await.is_none());
            let held = poll_once(&mut first).await.unwrap();
            drop(held);
            assert!(poll_once(&mut second).await.is_some());
            assert!(slots.try_take().is_some());
        });
    }

    #[test]
    fn a_waiter_that_went_away_keeps_no_slot() {
        block_on(async {
            let slots = CheckSlots::default();
            let taken: Vec<_> = std::iter::from_fn(|| slots.try_take()).collect();
            {
                let mut gone = pin!(slots.take());
                assert!(poll_once(&mut gone).await.is_none());
            }
            drop(taken);
            let free_again = std::iter::from_fn(|| slots.try_take()).take(100);
            assert_eq!(
                free_again.collect::<Vec<_>>().len(),
                SLOW_CHECKS_PER_SHARD_MAX
            );
        });
    }
}
