//! One value from one task to another of the same executor.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// The sender went away without a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the sender was dropped without an answer")]
pub struct Dropped;

struct Slot<T> {
    value: Cell<Option<T>>,
    sender_lives: Cell<bool>,
    receiver: RefCell<Option<Waker>>,
}

pub struct OneshotSender<T>(Rc<Slot<T>>);

/// A future of the value.
#[must_use = "nobody waits for the value otherwise"]
pub struct OneshotReceiver<T>(Rc<Slot<T>>);

pub fn oneshot<T>() -> (OneshotSender<T>, OneshotReceiver<T>) {
    let slot = Rc::new(Slot {
        value: Cell::new(None),
        sender_lives: Cell::new(true),
        receiver: RefCell::new(None),
    });
    (OneshotSender(Rc::clone(&slot)), OneshotReceiver(slot))
}

impl<T> OneshotSender<T> {
    /// Hands the value over; it is dropped with the channel where nobody waits any more.
    pub fn send(self, value: T) {
        self.0.value.set(Some(value));
    }

    /// True once the receiver is gone: the value is of no use to anyone.
    pub fn is_abandoned(&self) -> bool {
        Rc::strong_count(&self.0) == 1
    }
}

impl<T> Drop for OneshotSender<T> {
    fn drop(&mut self) {
        self.0.sender_lives.set(false);
        let receiver = self.0.receiver.take();
        if let Some(receiver) = receiver {
            receiver.wake();
        }
    }
}

impl<T> Future for OneshotReceiver<T> {
    type Output = Result<T, Dropped>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.0.value.take() {
            Some(value) => Poll::Ready(Ok(value)),
            None if self.0.sender_lives.get() => {
                *self.0.receiver.borrow_mut() = Some(cx.waker().clone());
                Poll::Pending
            }
            None => Poll::Ready(Err(Dropped)),
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_lite::future::{block_on, poll_once};

    use super::*;

    #[test]
    fn a_value_sent_before_the_wait_arrives() {
        let (sender, receiver) = oneshot();
        sender.send(7);
        assert_eq!(block_on(receiver), Ok(7));
    }

    #[test]
    fn a_value_sent_after_the_wait_arrives() {
        block_on(async {
            let (sender, mut receiver) = oneshot();
            assert!(poll_once(&mut receiver).await.is_none());
            sender.send("late");
            assert_eq!(receiver.await, Ok("late"));
        });
    }

    #[test]
    fn a_dropped_sender_is_an_error_and_not_a_wait_for_ever() {
        block_on(async {
            let (sender, mut receiver) = oneshot::<u8>();
            assert!(poll_once(&mut receiver).await.is_none());
            drop(sender);
            assert_eq!(receiver.await, Err(Dropped));
        });
    }

    #[test]
    fn a_sender_sees_that_nobody_waits() {
        let (sender, receiver) = oneshot::<u8>();
        assert!(!sender.is_abandoned());
        drop(receiver);
        assert!(sender.is_abandoned());
        sender.send(1);
    }
}
