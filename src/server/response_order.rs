//! Restores the order of replies: requests are dispatched one after the other, completed in any order, answered in the first one.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;

use crate::api::reply::{PendingReply, Reply, RequestId};
use crate::io::clock::Monotonic;
use crate::io::event::Event;
use crate::protocol::response::ResponseError;
use crate::server::admission::Admitted;

/// A dispatched request.
pub struct Dispatched {
    pub id: RequestId,
    pub reply: PendingReply,
    pub received_at: Monotonic,
    pub frame_bytes: usize,
    pub admitted: Admitted,
}

/// A completed one.
pub struct Completed {
    pub id: RequestId,
    pub reply: Result<Reply, ResponseError>,
    pub received_at: Monotonic,
    pub frame_bytes: usize,
    pub admitted: Admitted,
}

#[derive(Clone, Default)]
pub struct ResponseOrder {
    inner: Rc<Inner>,
}

#[derive(Default)]
struct Inner {
    queue: RefCell<VecDeque<Dispatched>>,
    changed: Event,
    is_closed: Cell<bool>,
    /// Requests that are dispatched and not yet handed out.
    open_count: Cell<usize>,
    /// The bytes that they hold.
    open_bytes: Cell<usize>,
}

impl ResponseOrder {
    pub fn push(&self, request: Dispatched) {
        let open_bytes = self.inner.open_bytes.get();
        self.inner
            .open_bytes
            .set(open_bytes + request.admitted.permit.bytes());
        self.inner.queue.borrow_mut().push_back(request);
        self.inner.open_count.set(self.inner.open_count.get() + 1);
        self.inner.changed.notify();
    }

    /// No more will come; `next` ends after those that are there.
    pub fn close(&self) {
        self.inner.is_closed.set(true);
        self.inner.changed.notify();
    }

    pub fn is_empty(&self) -> bool {
        self.inner.open_count.get() == 0
    }

    /// Bytes that requests hold which are dispatched and not yet handed out.
    pub fn open_bytes(&self) -> usize {
        self.inner.open_bytes.get()
    }

    /// Completes when every request dispatched so far is completed.
    pub async fn drained(&self) {
        while !self.is_empty() {
            self.inner.changed.wait().await;
        }
    }

    /// The next request's reply, once it is ready; `None` after the last one.
    pub async fn next(&self) -> Option<Completed> {
        loop {
            let changed = self.inner.changed.wait();
            let first = self.inner.queue.borrow_mut().pop_front();
            match first {
                Some(request) => return Some(self.complete(request).await),
                None if self.inner.is_closed.get() => return None,
                None => changed.await,
            }
        }
    }

    /// The next request's reply if it is ready now.
    pub async fn next_ready(&self) -> Option<Completed> {
        let mut request = self.inner.queue.borrow_mut().pop_front()?;
        let reply = std::future::poll_fn(|context| {
            Poll::Ready(match Pin::new(&mut request.reply).poll(context) {
                Poll::Ready(reply) => Some(reply),
                Poll::Pending => None,
            })
        })
        .await;
        match reply {
            Some(reply) => Some(self.completed(request, reply)),
            None => {
                self.inner.queue.borrow_mut().push_front(request);
                None
            }
        }
    }

    async fn complete(&self, mut request: Dispatched) -> Completed {
        let reply = request.reply.as_mut().await;
        self.completed(request, reply)
    }

    fn completed(&self, request: Dispatched, reply: Result<Reply, ResponseError>) -> Completed {
        self.inner.open_count.set(self.inner.open_count.get() - 1);
        let open_bytes = self.inner.open_bytes.get();
        self.inner
            .open_bytes
            .set(open_bytes - request.admitted.permit.bytes());
        self.inner.changed.notify();
        let Dispatched {
            id,
            received_at,
            frame_bytes,
            mut admitted,
            ..
        } = request;
        // A fetch has counted its reply itself.
        if let Ok(reply) = &reply
            && reply.held.is_none()
        {
            admitted.reply.settle(reply.len());
        }
        Completed {
            id,
            reply,
            received_at,
            frame_bytes,
            admitted,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::reply_budget::{ReplySize, ShardReplies};
    use crate::server::in_flight::ShardQuota;
    use futures_lite::future::{block_on, poll_once};
    use kafka_protocol::messages::ApiKey;

    fn request(correlation_id: i32, done: Rc<Cell<bool>>) -> Dispatched {
        let reply = std::future::poll_fn(move |_| match done.get() {
            true => Poll::Ready(Ok(Reply::default())),
            false => Poll::Pending,
        });
        Dispatched {
            id: RequestId {
                key: ApiKey::Produce,
                version: 3,
                correlation_id,
            },
            reply: Box::pin(reply),
            received_at: Monotonic::ZERO,
            frame_bytes: 0,
            admitted: Admitted {
                permit: ShardQuota::default()
                    .connection()
                    .take_bytes(0)
                    .split_request(0),
                reply: ShardReplies::default()
                    .connection()
                    .hold(ReplySize::OfRequest),
            },
        }
    }

    #[test]
    fn replies_leave_in_the_order_of_requests() {
        let order = ResponseOrder::default();
        let (first, second) = (Rc::new(Cell::new(false)), Rc::new(Cell::new(true)));
        order.push(request(1, first.clone()));
        order.push(request(2, second));
        assert!(
            block_on(order.next_ready()).is_none(),
            "the second is ready but the first is not"
        );
        first.set(true);
        assert_eq!(
            block_on(order.next_ready()).map(|it| it.id.correlation_id),
            Some(1)
        );
        assert_eq!(
            block_on(order.next_ready()).map(|it| it.id.correlation_id),
            Some(2)
        );
        assert!(order.is_empty());
    }

    #[test]
    fn a_closed_order_ends_after_what_was_dispatched() {
        let order = ResponseOrder::default();
        order.push(request(1, Rc::new(Cell::new(true))));
        order.close();
        assert!(block_on(order.next()).is_some());
        assert!(block_on(order.next()).is_none());
        assert!(block_on(poll_once(order.drained())).is_some());
    }
}
