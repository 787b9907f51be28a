//! The sending ends of one member.

use std::cell::RefCell;
use std::rc::{Rc, Weak};
use std::sync::atomic::Ordering;

use futures_lite::future;
use glommio::channels::shared_channel::ConnectedSender;
use glommio::{GlommioError, ResourceType};

use super::seat::Waiting;
use crate::io::event::{Event, Signal};
use crate::io::executor::{Task, next_tick, spawn_local};
use crate::model::limits::{MESH_MESSAGES_UNTAKEN_MAX, MESH_QUEUE_MESSAGES_MAX};

/// Messages to all other members. A clone is the same outbox.
pub struct Outbox<T: Send + 'static>(Rc<Lanes<T>>);

impl<T: Send + 'static> Clone for Outbox<T> {
    fn clone(&self) -> Self {
        Self(Rc::clone(&self.0))
    }
}

struct Lanes<T: Send + 'static> {
    /// By target; `None` at the member itself.
    lanes: Vec<Option<Lane<T>>>,
    pushed: Signal,
    /// Cancelled when the outbox and all inboxes are gone.
    _flusher: Task<()>,
}

pub(super) struct Lane<T: Send + 'static> {
    sender: ConnectedSender<Vec<T>>,
    /// Pushed since the last flush, or left over from it because the lane had no slot.
    pending: RefCell<Vec<T>>,
    waiting: Waiting,
    room: Event,
}

impl<T: Send + 'static> Lane<T> {
    pub(super) fn new(sender: ConnectedSender<Vec<T>>, waiting: Waiting) -> Self {
        Self {
            sender,
            pending: RefCell::default(),
            waiting,
            room: Event::new(),
        }
    }

    fn is_full(&self) -> bool {
        self.waiting.load(Ordering::Acquire) >= MESH_QUEUE_MESSAGES_MAX
    }

    /// False if something is left because the lane has no free slot.
    fn flush(&self) -> bool {
        let batch = self.pending.take();
        if batch.is_empty() {
            return true;
        }
        let len = batch.len();
        match self.sender.try_send(batch) {
            Ok(()) => {
                // The next turn pushes about as much.
                self.pending.borrow_mut().reserve(len);
                true
            }
            Err(GlommioError::WouldBlock(ResourceType::Channel(batch))) => {
                *self.pending.borrow_mut() = batch;
                false
            }
            // The other executor has ended, and the process is about to; who waits for an answer sees his channel
            // dropped.
            Err(_closed) => {
                self.waiting.fetch_sub(len, Ordering::Release);
                true
            }
        }
    }
}

impl<T: Send + 'static> Outbox<T> {
    /// The outbox and the task that flushes it after every turn that pushed something.
    pub(super) fn new(lanes: Vec<Option<Lane<T>>>) -> Self {
        Self(Rc::new_cyclic(|this| {
            let pushed = Signal::new();
            let flusher = spawn_local(flush_after_each_turn(pushed.clone(), Weak::clone(this)));
            Lanes {
                lanes,
                pushed,
                _flusher: flusher,
            }
        }))
    }

    /// Puts a message on the lane to `target`; it leaves when the tasks that are runnable now have run, or by
    /// `flush`. The order to one target is the order of the pushes.
    ///
    /// Never fails and never waits: it is for new work, which is pushed only where `is_full` is false. Panics for the
    /// member itself, and at `MESH_MESSAGES_UNTAKEN_MAX`, which is only reached where that rule is broken.
    pub fn push(&self, target: usize, message: T) {
        let untaken = self.untaken_count(target);
        assert!(
            untaken < MESH_MESSAGES_UNTAKEN_MAX,
            "{untaken} messages wait for member {target}: nobody looks at is_full"
        );
        self.push_answer(target, message);
    }

    /// The same for an answer to what `target` has asked: pushed even where the lane is full, since holding answers
    /// back could stop both sides for ever. They are as many as the requests that `target` has under way.
    pub fn push_answer(&self, target: usize, message: T) {
        let lane = self.lane(target);
        lane.waiting.fetch_add(1, Ordering::Relaxed);
        lane.pending.borrow_mut().push(message);
        self.0.pushed.raise();
    }

    /// Sends what was pushed now, with at most one wake-up per target.
    pub fn flush(&self) {
        self.0.flush();
    }

    /// Whether `target` has `MESH_QUEUE_MESSAGES_MAX` messages still to take. Nobody makes new work for it then.
    pub fn is_full(&self, target: usize) -> bool {
        self.lane(target).is_full()
    }

    /// Waits until the lane to `target` is not full.
    pub async fn ready(&self, target: usize) {
        let lane = self.lane(target);
        while lane.is_full() {
            // The tick covers a member that takes and sends nothing back.
            future::or(lane.room.wait(), next_tick()).await;
        }
    }

    /// How many messages `target` has still to take.
    pub fn untaken_count(&self, target: usize) -> usize {
        self.lane(target).waiting.load(Ordering::Relaxed)
    }

    pub fn member_count(&self) -> usize {
        self.0.lanes.len()
    }

    pub(super) fn room_may_have_come(&self, target: usize) {
        let lane = self.lane(target);
        if !lane.is_full() {
            lane.room.notify();
        }
    }

    fn lane(&self, target: usize) -> &Lane<T> {
        self.0.lanes[target]
            .as_ref()
            .expect("a member sends nothing to itself")
    }
}

impl<T: Send + 'static> Lanes<T> {
    /// False if a lane had no slot for its batch.
    fn flush(&self) -> bool {
        let held_up = self
            .lanes
            .iter()
            .flatten()
            .filter(|lane| !lane.flush())
            .count();
        held_up == 0
    }
}

/// Woken by the first push of a turn, it runs behind the tasks that were runnable then.
async fn flush_after_each_turn<T: Send + 'static>(pushed: Signal, lanes: Weak<Lanes<T>>) {
    loop {
        pushed.wait().await;
        loop {
            let Some(lanes) = lanes.upgrade() else { return };
            if lanes.flush() {
                break;
            }
            drop(lanes);
            next_tick().await;
        }
    }
}
