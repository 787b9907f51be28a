//! The open connections of a shard, and what closes those that take too long.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use futures_lite::future;
use slab::Slab;

use crate::api::reply_budget::ReplyBudget;
use crate::io::clock::{Clock, Monotonic};
use crate::io::net::Closer;

/// What a connection is doing, as the sweep sees it.
pub struct Presence {
    closer: Closer,
    /// When the first byte of a request arrived whose last one has not.
    pub receiving_since: Cell<Option<Monotonic>>,
    /// When the connection last had nothing in flight and nothing received; `None` while it has.
    pub idle_since: Cell<Option<Monotonic>>,
    pub sending: Sending,
}

impl Presence {
    /// Awaits what the client is not to be blamed for: meanwhile a request that is half there is not late.
    pub async fn without_haste(&self, clock: &Clock, wait: impl Future<Output = ()>) {
        let mut wait = pin!(wait);
        if future::poll_once(wait.as_mut()).await.is_some() {
            return;
        }
        let Some(since) = self.receiving_since.take() else {
            return wait.await;
        };
        let waits_since = clock.monotonic();
        wait.await;
        let now = clock.monotonic();
        self.receiving_since
            .set(Some(since + now.since(waits_since)));
    }
}

/// How a client takes its replies. The connection says what has happened, and each sweep since when nothing has.
pub struct Sending {
    replies: ReplyBudget,
    is_under_way: Cell<bool>,
    /// Since when the client has taken nothing of what is being sent.
    stalled_since: Cell<Option<Monotonic>>,
    /// Since when replies are held of which none has gone out whole.
    held_since: Cell<Option<Monotonic>>,
}

impl Sending {
    fn new(replies: ReplyBudget) -> Self {
        Self {
            replies,
            is_under_way: Cell::new(false),
            stalled_since: Cell::new(None),
            held_since: Cell::new(None),
        }
    }

    pub fn begins(&self) {
        self.is_under_way.set(true);
    }

    pub fn progressed(&self) {
        self.stalled_since.set(None);
    }

    pub fn ended(&self) {
        self.is_under_way.set(false);
        self.stalled_since.set(None);
        self.held_since.set(None);
    }

    fn note(&self, now: Monotonic) {
        let note = |since: &Cell<Option<Monotonic>>, is_so: bool| {
            since.set(is_so.then(|| since.get().unwrap_or(now)));
        };
        note(&self.stalled_since, self.is_under_way.get());
        note(&self.held_since, self.replies.used_bytes() > 0);
    }
}

#[derive(Clone, Default)]
pub struct Roster {
    present: Rc<RefCell<Slab<Rc<Presence>>>>,
}

/// On the roster until dropped.
pub struct Entry {
    roster: Roster,
    key: usize,
    pub presence: Rc<Presence>,
}

/// Why a connection was closed by the sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Swept {
    /// A request took longer than `socket.request.timeout.ms` to arrive; or a reply to be taken while others waited for that.
    pub slow_count: usize,
    /// Nothing happened for `connections.max.idle.ms`.
    pub idle_count: usize,
}

/// What a sweep goes by.
#[derive(Clone, Copy, Debug)]
pub struct SweepLimits {
    pub request_timeout: Duration,
    pub idle_max: Duration,
    /// The replies of the shard are at their bound.
    pub replies_are_full: bool,
}

impl Roster {
    pub fn enter(&self, closer: Closer, replies: ReplyBudget, now: Monotonic) -> Entry {
        let presence = Rc::new(Presence {
            closer,
            receiving_since: Cell::new(None),
            idle_since: Cell::new(Some(now)),
            sending: Sending::new(replies),
        });
        let key = self.present.borrow_mut().insert(presence.clone());
        Entry {
            roster: self.clone(),
            key,
            presence,
        }
    }

    pub fn len(&self) -> usize {
        self.present.borrow().len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Closes those that are over a limit.
    pub fn sweep(&self, now: Monotonic, limits: SweepLimits) -> Swept {
        let SweepLimits {
            request_timeout,
            idle_max,
            replies_are_full,
        } = limits;
        let over = |since: &Cell<Option<Monotonic>>, limit| {
            since.get().is_some_and(|it| now.since(it) > limit)
        };
        let mut swept = Swept {
            slow_count: 0,
            idle_count: 0,
        };
        for (_, presence) in &*self.present.borrow() {
            let sending = &presence.sending;
            sending.note(now);
            if over(&presence.receiving_since, request_timeout)
                || replies_are_full && over(&sending.held_since, request_timeout)
            {
                swept.slow_count += 1;
                presence.closer.close();
            } else if over(&presence.idle_since, idle_max) || over(&sending.stalled_since, idle_max)
            {
                swept.idle_count += 1;
                presence.closer.close();
            }
        }
        swept
    }

    pub fn close_all(&self) {
        for (_, presence) in &*self.present.borrow() {
            presence.closer.close();
        }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.roster.present.borrow_mut().remove(self.key);
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr, TcpStream};

    use super::*;
    use crate::api::reply_budget::{ReplySize, ShardReplies};
    use crate::io::executor::block_on;
    use crate::io::net::{Connection, bind};

    async fn connection() -> (Connection, TcpStream) {
        let any_port = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let listener = bind(any_port, 1).unwrap().remove(0).open();
        let peer = TcpStream::connect(listener.local_addr()).unwrap();
        (listener.accept().await.unwrap().into_connection(), peer)
    }

    fn seconds(seconds: u64) -> Monotonic {
        Monotonic::ZERO + Duration::from_secs(seconds)
    }

    fn limits(replies_are_full: bool) -> SweepLimits {
        SweepLimits {
            request_timeout: Duration::from_secs(60),
            idle_max: Duration::from_secs(600),
            replies_are_full,
        }
    }

    const NONE: Swept = Swept {
        slow_count: 0,
        idle_count: 0,
    };
    const ONE_SLOW: Swept = Swept {
        slow_count: 1,
        idle_count: 0,
    };
    const ONE_IDLE: Swept = Swept {
        slow_count: 0,
        idle_count: 1,
    };

    #[test]
    fn a_client_that_takes_no_reply_is_closed_sooner_while_others_wait_for_room() {
        block_on(async {
            let (connection, _peer) = connection().await;
            let replies = ShardReplies::default().connection();
            let roster = Roster::default();
            let entry = roster.enter(connection.closer(), replies.clone(), seconds(0));
            entry.presence.idle_since.set(None);
            assert_eq!(
                roster.sweep(seconds(1_000), limits(true)),
                NONE,
                "holds nothing"
            );
            let mut held = replies.hold(ReplySize::OfGrant);
            held.settle(1);
            assert_eq!(
                roster.sweep(seconds(1_000), limits(true)),
                NONE,
                "it is seen first now"
            );
            assert_eq!(
                roster.sweep(seconds(1_061), limits(false)),
                NONE,
                "nobody waits"
            );
            entry.presence.sending.ended();
            assert_eq!(
                roster.sweep(seconds(1_100), limits(true)),
                NONE,
                "one has gone out"
            );
            assert_eq!(roster.sweep(seconds(1_160), limits(true)), NONE);
            assert_eq!(roster.sweep(seconds(1_161), limits(true)), ONE_SLOW);
        });
    }

    #[test]
    fn a_client_that_takes_nothing_of_what_is_sent_is_closed_after_the_idle_time_and_a_slow_one_is_not()
     {
        block_on(async {
            let (connection, _peer) = connection().await;
            let replies = ShardReplies::default().connection();
            let roster = Roster::default();
            let entry = roster.enter(connection.closer(), replies, seconds(0));
            entry.presence.idle_since.set(None);
            entry.presence.sending.begins();
            assert_eq!(roster.sweep(seconds(1), limits(false)), NONE);
            assert_eq!(roster.sweep(seconds(600), limits(false)), NONE);
            entry.presence.sending.progressed();
            assert_eq!(
                roster.sweep(seconds(700), limits(false)),
                NONE,
                "it is slow"
            );
            assert_eq!(roster.sweep(seconds(1_301), limits(false)), ONE_IDLE);
        });
    }

    #[test]
    fn a_request_that_the_broker_itself_keeps_waiting_is_not_late() {
        block_on(async {
            let (connection, _peer) = connection().await;
            let replies = ShardReplies::default().connection();
            let roster = Roster::default();
            let clock = Clock::manual(crate::model::TimestampMs(0));
            let entry = roster.enter(connection.closer(), replies, seconds(0));
            let presence = &entry.presence;
            let late = clock.monotonic();
            presence.receiving_since.set(Some(late));
            let wait = async {
                crate::io::executor::yield_now().await;
                assert!(presence.receiving_since.get().is_none());
                clock.advance(Duration::from_secs(100));
            };
            presence.without_haste(&clock, wait).await;
            let since = presence.receiving_since.get().unwrap();
            assert_eq!(since.since(late), Duration::from_secs(100));
        });
    }
}
