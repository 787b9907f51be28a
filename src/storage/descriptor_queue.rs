//! Those who wait until one more file may be open: first come, first served, each for a bounded time.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::time::Duration;

use crate::io::executor;
use crate::io::oneshot::{OneshotSender, oneshot};
use crate::model::limits::OPEN_FILE_RETRY_MS;

#[derive(Default)]
pub struct DescriptorQueue {
    queue: RefCell<VecDeque<OneshotSender<()>>>,
    given_up: Cell<u64>,
}

impl DescriptorQueue {
    /// Returns when something may have become possible, at the latest after a while.
    pub async fn wait(&self) {
        let (sender, receiver) = oneshot();
        self.queue.borrow_mut().push_back(sender);
        let step = Duration::from_millis(OPEN_FILE_RETRY_MS);
        let _either = executor::timeout(step, receiver).await;
    }

    /// Lets the first one continue that still waits.
    pub fn help_one(&self) {
        if self.is_empty() {
            return;
        }
        if let Some(first) = self.queue.borrow_mut().pop_front() {
            first.send(());
        }
    }

    /// Counts one who was told that descriptors are short.
    pub fn note_given_up(&self) {
        self.given_up.set(self.given_up.get() + 1);
    }

    /// Whether nobody waits; those who waited long enough leave the front of the queue.
    pub fn is_empty(&self) -> bool {
        let mut queue = self.queue.borrow_mut();
        while queue.front().is_some_and(OneshotSender::is_abandoned) {
            queue.pop_front();
        }
        queue.is_empty()
    }

    /// How often nobody could be helped in time, since this was last asked.
    pub fn take_given_up(&self) -> u64 {
        self.given_up.take()
    }
}
