//! A call from one core to another: the answer is put into a shared cell, and a wake-up goes back over the mesh.
//!
//! ```text
//! caller's core                                    owner's core
//! CallTable::open -> (ReplyTo, Call) --command-->  executes, ReplyTo::answer(value): fills the cell
//! Call::poll finds the value  <--- Wake(slot) ---
//! ```

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use crossbeam::channel::{Receiver, Sender};
use slab::Slab;

use crate::model::ShardId;

/// The place in its caller's table of a call that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallSlot(u32);

type Cell<T> = Arc<Mutex<Option<T>>>;

/// Where an answer goes. It must be used: a call whose `ReplyTo` is dropped is never answered.
#[must_use]
#[derive(Debug)]
pub struct ReplyTo<T>(Target<T>);

#[derive(Debug)]
enum Target<T> {
    Core {
        cell: Cell<T>,
        origin: ShardId,
        slot: CallSlot,
    },
    /// A thread that runs no executor, and blocks until it has its answer.
    Thread(Sender<T>),
}

impl<T> ReplyTo<T> {
    /// The answer goes to a thread that waits at the other end of the channel.
    pub fn thread() -> (Self, Receiver<T>) {
        let (sender, receiver) = crossbeam::channel::bounded(1);
        (Self(Target::Thread(sender)), receiver)
    }

    /// Gives the answer. If it is for a core, and the call still waits there, that core must then be told that `slot` can go on.
    pub fn fill(self, value: T) -> Option<(ShardId, CallSlot)> {
        match self.0 {
            // Clients that ask and go away would otherwise leave wake-ups without a bound.
            Target::Core { cell, .. } if Arc::strong_count(&cell) == 1 => None,
            Target::Core { cell, origin, slot } => {
                let before = cell
                    .lock()
                    .expect("no holder of the lock panics")
                    .replace(value);
                assert!(before.is_none(), "a call was answered twice");
                Some((origin, slot))
            }
            Target::Thread(sender) => {
                // A thread that has given up waiting wants no answer.
                let _ = sender.send(value);
                None
            }
        }
    }
}

/// The calls of one core that are under way. Bounded by the requests in flight.
#[derive(Clone, Default)]
pub struct CallTable {
    wakers: Rc<RefCell<Slab<Option<Waker>>>>,
}

impl CallTable {
    pub fn open<T>(&self, origin: ShardId) -> (ReplyTo<T>, Call<T>) {
        let cell = Cell::default();
        let index = self.wakers.borrow_mut().insert(None);
        let slot = CallSlot(u32::try_from(index).expect("calls in flight are bounded"));
        let call = Call {
            cell: cell.clone(),
            slot,
            table: self.clone(),
        };
        (ReplyTo(Target::Core { cell, origin, slot }), call)
    }

    /// Lets the call of `slot` look at its cell. A slot that was given up, or is another call's by now, is woken for nothing.
    pub fn wake(&self, slot: CallSlot) {
        let waker = self
            .wakers
            .borrow_mut()
            .get_mut(slot.0 as usize)
            .and_then(Option::take);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// Completes with the answer of the other core.
#[must_use = "a call is only awaited by its caller"]
pub struct Call<T> {
    cell: Cell<T>,
    slot: CallSlot,
    table: CallTable,
}

impl<T> Future for Call<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        if let Some(value) = self
            .cell
            .lock()
            .expect("no holder of the lock panics")
            .take()
        {
            return Poll::Ready(value);
        }
        self.table.wakers.borrow_mut()[self.slot.0 as usize] = Some(context.waker().clone());
        Poll::Pending
    }
}

impl<T> Drop for Call<T> {
    fn drop(&mut self) {
        self.table.wakers.borrow_mut().remove(self.slot.0 as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_lite::future::{block_on, poll_once};

    #[test]
    fn a_call_completes_with_its_answer_after_the_wake_up() {
        let table = CallTable::default();
        let (reply, call) = table.open::<u32>(ShardId(0));
        let mut call = Box::pin(call);
        assert_eq!(block_on(poll_once(&mut call)), None);
        let (origin, slot) = std::thread::spawn(move || reply.fill(7))
            .join()
            .unwrap()
            .unwrap();
        assert_eq!(origin, ShardId(0));
        table.wake(slot);
        assert_eq!(block_on(call), 7);
    }

    #[test]
    fn a_call_that_is_given_up_frees_its_slot() {
        let table = CallTable::default();
        let (reply, call) = table.open::<u32>(ShardId(0));
        drop(call);
        assert_eq!(reply.fill(1), None, "nobody is to be woken");
        let (_reply, _call) = table.open::<u32>(ShardId(0));
        assert_eq!(table.wakers.borrow().len(), 1);
    }
}
