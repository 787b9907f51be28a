//! Asking the controller, which lives on another core, and waiting for its answer.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use crate::controller::{ControllerCommand, Reply};

/// One for each shard; cheap to clone.
#[derive(Clone)]
pub struct ControllerClient {
    send: Rc<dyn Fn(ControllerCommand) -> Result<(), ControllerGone>>,
}

/// The controller takes no more commands, or dropped this one: the broker is stopping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the controller is stopping")]
pub struct ControllerGone;

impl ControllerClient {
    /// `send` puts a command on its way to the controller's core. How many are on their way is bounded by the connections: each
    /// has at most one admin request in flight.
    pub fn new(send: impl Fn(ControllerCommand) -> Result<(), ControllerGone> + 'static) -> Self {
        Self {
            send: Rc::new(send),
        }
    }

    /// Sends the command that `make` makes, and completes with what its reply was called with.
    pub async fn ask<T: Send + 'static>(
        &self,
        make: impl FnOnce(Reply<T>) -> ControllerCommand,
    ) -> Result<T, ControllerGone> {
        let (replier, answer) = answer();
        (self.send)(make(Box::new(move |value| replier.fill(value))))?;
        answer.await
    }
}

/// Where the controller's core leaves an answer for a task of this one.
struct Slot<T> {
    value: Option<T>,
    waiter: Option<Waker>,
    /// The replier is gone; no value comes any more.
    is_closed: bool,
}

type SharedSlot<T> = Arc<Mutex<Slot<T>>>;

struct Replier<T>(SharedSlot<T>);

struct Answer<T>(SharedSlot<T>);

fn answer<T>() -> (Replier<T>, Answer<T>) {
    let slot = Arc::new(Mutex::new(Slot {
        value: None,
        waiter: None,
        is_closed: false,
    }));
    (Replier(slot.clone()), Answer(slot))
}

impl<T> Replier<T> {
    fn fill(self, value: T) {
        lock(&self.0).value = Some(value);
    }
}

impl<T> Drop for Replier<T> {
    fn drop(&mut self) {
        let mut slot = lock(&self.0);
        slot.is_closed = true;
        let waiter = slot.waiter.take();
        drop(slot);
        if let Some(waiter) = waiter {
            waiter.wake();
        }
    }
}

impl<T> Future for Answer<T> {
    type Output = Result<T, ControllerGone>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut slot = lock(&self.0);
        match slot.value.take() {
            Some(value) => Poll::Ready(Ok(value)),
            None if slot.is_closed => Poll::Ready(Err(ControllerGone)),
            None => {
                slot.waiter = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

/// A slot is whole between any two statements, so that a panic elsewhere while it was locked leaves nothing half done.
fn lock<T>(slot: &SharedSlot<T>) -> MutexGuard<'_, Slot<T>> {
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ProducerId;
    use futures_lite::future::block_on;
    use std::sync::mpsc;
    use std::thread;

    #[test]
    fn an_answer_comes_from_another_thread() {
        let (sender, commands) = mpsc::channel();
        let controller = thread::spawn(move || {
            for command in commands {
                if let ControllerCommand::AllocateProducerId { reply } = command {
                    reply(Ok(ProducerId(7)));
                }
            }
        });
        let client =
            ControllerClient::new(move |command| sender.send(command).map_err(|_| ControllerGone));
        for _ in 0..1000 {
            let id = block_on(client.ask(|reply| ControllerCommand::AllocateProducerId { reply }));
            assert_eq!(id.unwrap().unwrap(), ProducerId(7));
        }
        drop(client);
        controller.join().unwrap();
    }

    #[test]
    fn a_dropped_command_is_an_answer_too() {
        let client = ControllerClient::new(|command| {
            thread::spawn(move || drop(command));
            Ok(())
        });
        let id = block_on(client.ask(|reply| ControllerCommand::AllocateProducerId { reply }));
        assert_eq!(id.map(drop), Err(ControllerGone));
        let client = ControllerClient::new(|_| Err(ControllerGone));
        let id = block_on(client.ask(|reply| ControllerCommand::AllocateProducerId { reply }));
        assert_eq!(id.map(drop), Err(ControllerGone));
    }
}
