//! Setting up the lanes: made in one place, then connected by each member on its own executor.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use glommio::channels::shared_channel::{self, SharedReceiver, SharedSender};

use super::inbox::Inbox;
use super::outbox::{Lane, Outbox};
use crate::io::executor::{Task, spawn_local};
use crate::model::limits::MESH_LANE_BATCHES_MAX;

/// How many messages of one lane were pushed and not yet received.
pub(super) type Waiting = Arc<AtomicUsize>;

/// One member's ends of its lanes, on the way to its executor.
pub struct MeshSeat<T: Send> {
    member: usize,
    /// By target; `None` at the member itself.
    senders: Vec<Option<(SharedSender<Vec<T>>, Waiting)>>,
    /// By source; `None` at the member itself.
    receivers: Vec<Option<(SharedReceiver<Vec<T>>, Waiting)>>,
}

/// The seats of a mesh of `member_count` executors, in order.
pub fn seats<T: Send>(member_count: usize) -> Vec<MeshSeat<T>> {
    let mut seats: Vec<_> = (0..member_count)
        .map(|member| MeshSeat {
            member,
            senders: Vec::new(),
            receivers: Vec::new(),
        })
        .collect();
    for source in 0..member_count {
        for target in 0..member_count {
            if source == target {
                seats[source].senders.push(None);
                seats[target].receivers.push(None);
                continue;
            }
            let (sender, receiver) = shared_channel::new_bounded(MESH_LANE_BATCHES_MAX);
            let waiting = Waiting::default();
            seats[source]
                .senders
                .push(Some((sender, Arc::clone(&waiting))));
            seats[target].receivers.push(Some((receiver, waiting)));
        }
    }
    seats
}

/// A member's ends, connected.
pub struct MeshEnd<T: Send + 'static> {
    pub member: usize,
    pub outbox: Outbox<T>,
    /// One for each other member, in order.
    pub inboxes: Vec<Inbox<T>>,
}

impl<T: Send + 'static> MeshSeat<T> {
    pub fn member(&self) -> usize {
        self.member
    }

    /// Connects the lanes on the current executor. Returns once every other member has done the same, and until then
    /// keeps its core busy.
    pub async fn join(self) -> MeshEnd<T> {
        // All at once: a lane is connected only when both of its ends try, and the others may try theirs in another
        // order.
        let senders: Vec<Option<(Task<_>, Waiting)>> = self
            .senders
            .into_iter()
            .map(|end| end.map(|(sender, waiting)| (spawn_local(sender.connect()), waiting)))
            .collect();
        let receivers: Vec<Option<(Task<_>, Waiting)>> = self
            .receivers
            .into_iter()
            .map(|end| end.map(|(receiver, waiting)| (spawn_local(receiver.connect()), waiting)))
            .collect();
        let mut lanes = Vec::with_capacity(senders.len());
        for end in senders {
            lanes.push(match end {
                Some((connecting, waiting)) => Some(Lane::new(connecting.await, waiting)),
                None => None,
            });
        }
        let outbox = Outbox::new(lanes);
        let mut inboxes = Vec::with_capacity(receivers.len());
        for (peer, end) in receivers.into_iter().enumerate() {
            if let Some((connecting, waiting)) = end {
                inboxes.push(Inbox::new(peer, connecting.await, waiting, outbox.clone()));
            }
        }
        MeshEnd {
            member: self.member,
            outbox,
            inboxes,
        }
    }
}
