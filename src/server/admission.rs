//! When the next request of a connection may be dispatched. It is asked for each one: a buffer that was received holds thousands of
//! small ones.

use crate::api::reply_budget::{HeldReply, ReplyBudget, ReplySize};
use crate::server::in_flight::{ConnectionQuota, Permit, Unfinished};
use crate::shard::router::Router;

/// The bounds that one connection is under.
#[derive(Clone)]
pub struct Admission {
    pub quota: ConnectionQuota,
    pub replies: ReplyBudget,
}

impl Admission {
    /// Completes when the connection may receive more of a frame that takes `wanted_bytes` then, which `unfinished` holds from here on.
    pub async fn ready_to_receive(
        &self,
        router: &Router,
        unfinished: &mut Unfinished,
        wanted_bytes: usize,
    ) {
        self.quota.ready_to_receive(unfinished, wanted_bytes).await;
        router.ready().await;
    }

    /// Completes when a request with such a reply may be dispatched, which must then be done without another wait.
    pub async fn ready_to_dispatch(&self, router: &Router, reply: ReplySize) {
        loop {
            if let Some(lack) = self.quota.lack() {
                lack.await;
            } else if let Some(lack) = self.replies.lack(reply) {
                lack.await;
            } else if !router.is_ready() {
                router.ready().await;
            } else {
                return;
            }
        }
    }

    /// Takes what a request of `bytes` needs, which `received` has held until now.
    pub fn take(&self, received: &mut Permit, bytes: usize, reply: ReplySize) -> Admitted {
        Admitted {
            permit: received.split_request(bytes),
            reply: self.replies.hold(reply),
        }
    }
}

/// What a request holds that is under way, until its reply is sent.
pub struct Admitted {
    pub permit: Permit,
    pub reply: HeldReply,
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use super::*;
    use crate::api::reply_budget::ShardReplies;
    use crate::io::executor::{Core, sleep, spawn, spawn_local, yield_now};
    use crate::io::mesh::seats;
    use crate::model::ShardId;
    use crate::model::limits::MESH_QUEUE_MESSAGES_MAX;
    use crate::server::in_flight::ShardQuota;
    use crate::shard::command::Message;

    /// Each connection has received one buffer of small requests, all of them for a shard that is busy.
    #[test]
    fn frames_of_received_buffers_are_admitted_one_by_one_and_a_lane_never_holds_more_than_its_bound()
     {
        const CONNECTIONS: usize = 300;
        const FRAMES: usize = 1000;
        let is_busy = Arc::new(AtomicBool::new(true));
        let mut seats = seats::<Message>(2).into_iter();
        let (sending, taking) = (seats.next().unwrap(), seats.next().unwrap());
        let busy = is_busy.clone();
        let taker = spawn("taker", Core::Unpinned, move || async move {
            let mut mesh = taking.join().await;
            while busy.load(Ordering::Acquire) {
                sleep(Duration::from_millis(1)).await;
            }
            let mut taken_count = 0;
            while taken_count < CONNECTIONS * FRAMES {
                taken_count += mesh.inboxes[0].recv().await.expect("more").len();
            }
        })
        .unwrap();
        let sender = spawn("sender", Core::Unpinned, move || async move {
            let mesh = sending.join().await;
            let router = Rc::new(Router::new(ShardId(0), 2, mesh.outbox));
            let (quota, replies) = (ShardQuota::default(), ShardReplies::default());
            let dispatched = Rc::new(Cell::new(0));
            let mut tasks = Vec::new();
            for _ in 0..CONNECTIONS {
                let admission = Admission {
                    quota: quota.connection(),
                    replies: replies.connection(),
                };
                let (router, dispatched) = (router.clone(), dispatched.clone());
                tasks.push(spawn_local(async move {
                    let mut received = admission.quota.take_bytes(FRAMES);
                    for _ in 0..FRAMES {
                        admission
                            .ready_to_dispatch(&router, ReplySize::OfRequest)
                            .await;
                        drop(admission.take(&mut received, 1, ReplySize::OfRequest));
                        router.send(ShardId(1), Message::Start);
                        dispatched.set(dispatched.get() + 1);
                        assert!(router.untaken_count() <= MESH_QUEUE_MESSAGES_MAX);
                    }
                }));
            }
            while dispatched.get() < MESH_QUEUE_MESSAGES_MAX {
                yield_now().await;
            }
            for _ in 0..CONNECTIONS {
                yield_now().await;
            }
            assert_eq!(
                dispatched.get(),
                MESH_QUEUE_MESSAGES_MAX,
                "the lane is full"
            );
            is_busy.store(false, Ordering::Release);
            for task in tasks {
                task.await;
            }
            assert_eq!(dispatched.get(), CONNECTIONS * FRAMES);
        })
        .unwrap();
        sender.join();
        taker.join();
    }
}
