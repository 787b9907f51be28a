//! The receiving end of one lane.

use std::sync::atomic::Ordering;

use glommio::channels::shared_channel::ConnectedReceiver;

use super::outbox::Outbox;
use super::seat::Waiting;

/// What one other member sends to this one.
pub struct Inbox<T: Send + 'static> {
    peer: usize,
    receiver: ConnectedReceiver<Vec<T>>,
    waiting: Waiting,
    outbox: Outbox<T>,
}

impl<T: Send + 'static> Inbox<T> {
    pub(super) fn new(
        peer: usize,
        receiver: ConnectedReceiver<Vec<T>>,
        waiting: Waiting,
        outbox: Outbox<T>,
    ) -> Self {
        Self {
            peer,
            receiver,
            waiting,
            outbox,
        }
    }

    /// The member at the other end.
    pub fn peer(&self) -> usize {
        self.peer
    }

    /// The next batch, in the order of the pushes and never empty; `None` once the other member is gone and its last
    /// batch was taken.
    pub async fn recv(&mut self) -> Option<Vec<T>> {
        let batch = self.receiver.recv().await?;
        self.waiting.fetch_sub(batch.len(), Ordering::Release);
        // A member that sends has also received: there may be room on the lane to it again.
        self.outbox.room_may_have_come(self.peer);
        Some(batch)
    }
}
