//! The batches of one partition that came and are not appended yet, in the order in which they came.

use std::cell::{Cell, Ref, RefCell};
use std::collections::VecDeque;

use bytes::Bytes;

use crate::partition::leader::CheckedBatch;
use crate::shard::append::AppendToken;

/// Whose batch it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchSource {
    /// The rules of the topic hold for it.
    Producer,
    /// The broker wrote it.
    Broker,
}

/// A batch of which nothing is known yet.
pub struct UncheckedBatch {
    pub records: Bytes,
    pub source: BatchSource,
    pub token: AppendToken,
}

pub enum Parked {
    /// Waits for its check: it takes long, or there were others before it.
    Unchecked(UncheckedBatch),
    /// Waits for room in the log.
    Checked {
        batch: CheckedBatch,
        token: AppendToken,
    },
}

/// One batch is checked at a time, so that a quick check does not overtake a slow one: while that lasts the batch is not in the queue, and
/// nothing else of the partition is appended. Bounded by what connections may have under way.
#[derive(Default)]
pub struct ParkedBatches {
    queue: RefCell<VecDeque<Parked>>,
    is_checking: Cell<bool>,
}

impl ParkedBatches {
    /// Whether a batch that comes now may be appended at once.
    pub fn is_empty(&self) -> bool {
        !self.is_checking.get() && self.queue.borrow().is_empty()
    }

    pub fn push(&self, parked: Parked) {
        self.queue.borrow_mut().push_back(parked);
    }

    // ---- the check

    pub fn is_checking(&self) -> bool {
        self.is_checking.get()
    }

    /// Whether the caller is to check what is in front. It then does so until `next_unchecked` gives nothing more.
    pub fn begin_check(&self) -> bool {
        let is_due = !self.is_checking.get()
            && matches!(self.queue.borrow().front(), Some(Parked::Unchecked(_)));
        if is_due {
            self.is_checking.set(true);
        }
        is_due
    }

    /// The batch to check next; `None` ends the check.
    pub fn next_unchecked(&self) -> Option<UncheckedBatch> {
        assert!(self.is_checking.get(), "a check was begun");
        let mut queue = self.queue.borrow_mut();
        let next = match queue.pop_front() {
            Some(Parked::Unchecked(batch)) => Some(batch),
            Some(checked) => {
                queue.push_front(checked);
                None
            }
            None => None,
        };
        self.is_checking.set(next.is_some());
        next
    }

    // ---- the wait for room

    /// The batch that waits for room.
    pub fn first_checked(&self) -> Option<Ref<'_, CheckedBatch>> {
        Ref::filter_map(self.queue.borrow(), |queue| match queue.front() {
            Some(Parked::Checked { batch, .. }) => Some(batch),
            _ => None,
        })
        .ok()
    }

    /// Takes the batch that waits for room, if none that came before it is being checked.
    pub fn take_checked(&self) -> Option<(CheckedBatch, AppendToken)> {
        let mut queue = self.queue.borrow_mut();
        match queue.pop_front() {
            Some(Parked::Checked { batch, token }) if !self.is_checking.get() => {
                Some((batch, token))
            }
            Some(other) => {
                queue.push_front(other);
                None
            }
            None => None,
        }
    }

    /// Puts a batch in front that found no room.
    pub fn put_back(&self, batch: CheckedBatch, token: AppendToken) {
        let mut queue = self.queue.borrow_mut();
        queue.push_front(Parked::Checked { batch, token });
    }

    /// Everyone who waits, but for the batch that is being checked: whoever checks it looks whether it may still be appended.
    pub fn take_tokens(&self) -> impl Iterator<Item = AppendToken> {
        let parked = std::mem::take(&mut *self.queue.borrow_mut());
        parked.into_iter().map(|parked| match parked {
            Parked::Unchecked(UncheckedBatch { token, .. }) | Parked::Checked { token, .. } => {
                token
            }
        })
    }
}
