//! A bounded lane from threads that run no executor (HTTP, signals) into one that does.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use crossbeam::queue::ArrayQueue;

struct Lane<T> {
    queue: ArrayQueue<T>,
    receiver: Mutex<Option<Waker>>,
    receiver_lives: AtomicBool,
    sender_count: AtomicUsize,
}

impl<T> Lane<T> {
    /// A panic while the lock is held leaves a waker that is still right.
    fn receiver(&self) -> MutexGuard<'_, Option<Waker>> {
        self.receiver.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self) {
        let receiver = self.receiver().take();
        if let Some(receiver) = receiver {
            receiver.wake();
        }
    }
}

/// A lane for `capacity` messages.
pub fn foreign_lane<T: Send>(capacity: usize) -> (ForeignSender<T>, ForeignReceiver<T>) {
    let lane = Arc::new(Lane {
        queue: ArrayQueue::new(capacity),
        receiver: Mutex::new(None),
        receiver_lives: AtomicBool::new(true),
        sender_count: AtomicUsize::new(1),
    });
    (ForeignSender(Arc::clone(&lane)), ForeignReceiver(lane))
}

/// The message comes back.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ForeignSendError<T> {
    #[error("the lane is full")]
    Full(T),
    #[error("the receiving executor is gone")]
    Closed(T),
}

/// For any thread.
pub struct ForeignSender<T: Send>(Arc<Lane<T>>);

impl<T: Send> ForeignSender<T> {
    pub fn try_send(&self, message: T) -> Result<(), ForeignSendError<T>> {
        if !self.0.receiver_lives.load(Ordering::Acquire) {
            return Err(ForeignSendError::Closed(message));
        }
        self.0.queue.push(message).map_err(ForeignSendError::Full)?;
        self.0.wake();
        Ok(())
    }

    /// Waits while the lane is full. A message to an executor that is gone is dropped: the process is about to end.
    /// Blocks.
    pub fn send_blocking(&self, mut message: T) {
        while let Err(ForeignSendError::Full(back)) = self.try_send(message) {
            message = back;
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }
}

impl<T: Send> Clone for ForeignSender<T> {
    fn clone(&self) -> Self {
        self.0.sender_count.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(&self.0))
    }
}

impl<T: Send> Drop for ForeignSender<T> {
    fn drop(&mut self) {
        if self.0.sender_count.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.wake();
        }
    }
}

/// For one task of the executor.
pub struct ForeignReceiver<T: Send>(Arc<Lane<T>>);

impl<T: Send> ForeignReceiver<T> {
    /// The next message; `None` once every sender is gone and the lane is empty.
    pub async fn recv(&mut self) -> Option<T> {
        let lane = &*self.0;
        poll_fn(|cx| {
            if let Some(message) = lane.queue.pop() {
                return Poll::Ready(Some(message));
            }
            *lane.receiver() = Some(cx.waker().clone());
            // A message or an end between the look and the waker woke nobody.
            let no_more = lane.sender_count.load(Ordering::Acquire) == 0;
            match lane.queue.pop() {
                Some(message) => Poll::Ready(Some(message)),
                None if no_more => Poll::Ready(None),
                None => Poll::Pending,
            }
        })
        .await
    }
}

impl<T: Send> Drop for ForeignReceiver<T> {
    fn drop(&mut self) {
        self.0.receiver_lives.store(false, Ordering::Release);
        // Who waits for an answer to one of these learns that there will be none.
        while self.0.queue.pop().is_some() {}
    }
}
