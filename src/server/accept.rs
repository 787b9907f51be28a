//! A shard's share of the listeners: accepts connections, refuses those over the limit, closes those that take too long.

use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use crate::api::context::ApiContext;
use crate::api::reply_budget::ShardReplies;
use crate::io::clock::Monotonic;
use crate::io::descriptors::DescriptorShare;
use crate::io::executor;
use crate::io::net::Listener;
use crate::io::recv::RecvPool;
use crate::metrics::{Counter, Gauge};
use crate::model::limits::{
    ACCEPT_PAUSE_MS, REJECTION_LOG_INTERVAL_MS, REPLY_BYTES_PER_CONNECTION_MAX, SWEEP_MS,
};
use crate::server::admission::Admission;
use crate::server::connection::{self, ConnectionEnd};
use crate::server::in_flight::ShardQuota;
use crate::server::roster::{Roster, SweepLimits};
use crate::shard::runtime::Shard;

pub struct Server {
    state: Rc<State>,
}

struct State {
    shard: Rc<Shard>,
    roster: Roster,
    quota: ShardQuota,
    replies: ShardReplies,
    pool: RecvPool,
    /// Descriptors for connections, shared by all shards.
    descriptors: DescriptorShare,
    is_draining: Cell<bool>,
    rejections: RareLine,
    refusals: RareLine,
    accept_failures: RareLine,
}

/// Lines of one kind, of which there is at most one each `REJECTION_LOG_INTERVAL_MS`: a flood of connections must not become a flood of
/// lines.
#[derive(Default)]
struct RareLine {
    logged_at: Cell<Option<Monotonic>>,
    unlogged: Cell<u64>,
}

impl RareLine {
    /// Whether a line is due, and how many were left out since the last one.
    fn turn(&self, now: Monotonic) -> Option<u64> {
        let interval = Duration::from_millis(REJECTION_LOG_INTERVAL_MS);
        let is_soon = |at| now.since(at) < interval;
        if self.logged_at.get().is_some_and(is_soon) {
            self.unlogged.set(self.unlogged.get() + 1);
            return None;
        }
        self.logged_at.set(Some(now));
        Some(self.unlogged.take())
    }
}

impl Server {
    pub fn new(shard: Rc<Shard>, descriptors: DescriptorShare) -> Self {
        let memory = shard.memory();
        let state = Rc::new(State {
            shard,
            roster: Roster::default(),
            quota: ShardQuota::new(memory.request_bytes),
            replies: ShardReplies::with_limits(REPLY_BYTES_PER_CONNECTION_MAX, memory.reply_bytes),
            pool: RecvPool::new(memory.free_buffers_bytes),
            descriptors,
            is_draining: Cell::new(false),
            rejections: RareLine::default(),
            refusals: RareLine::default(),
            accept_failures: RareLine::default(),
        });
        executor::spawn_local(state.clone().sweep()).detach();
        Self { state }
    }

    /// Accepts connections from now on.
    pub fn listen(&self, listener: Listener, context: ApiContext) {
        executor::spawn_local(self.state.clone().accept(listener, context)).detach();
    }

    /// Accepts nothing more; returns when every request that had arrived is answered, at the latest after `limit`.
    pub async fn drain(&self, limit: Duration) {
        let State {
            shard,
            roster,
            quota,
            is_draining,
            ..
        } = &*self.state;
        is_draining.set(true);
        let started = shard.clock().monotonic();
        while (quota.used_bytes() > 0 || quota.used_requests() > 0)
            && shard.clock().monotonic().since(started) < limit
        {
            executor::sleep(Duration::from_millis(1)).await;
        }
        roster.close_all();
    }
}

impl State {
    async fn accept(self: Rc<Self>, listener: Listener, context: ApiContext) {
        while !self.is_draining.get() {
            let accepted = match listener.accept().await {
                Ok(accepted) => accepted,
                Err(error) => {
                    // A connection that broke before it was accepted is gone from the queue; whatever else it was, the next call meets
                    // the same.
                    if !error.is_disconnect() {
                        if let Some(unlogged) = self.accept_failures.turn(self.now()) {
                            tracing::warn!(%error, unlogged_before = unlogged, "no connection was accepted");
                        }
                        executor::sleep(Duration::from_millis(ACCEPT_PAUSE_MS)).await;
                    }
                    continue;
                }
            };
            let metrics = self.shard.metrics();
            let peer = accepted.peer_addr();
            let connections_max = self.shard.config().connections_max as usize;
            let place = match self.descriptors.take(connections_max) {
                Some(place) if !self.is_draining.get() => place,
                _ => {
                    metrics.count(Counter::ConnectionsRefused, 1);
                    self.note_refusal(peer, connections_max);
                    continue;
                }
            };
            metrics.count(Counter::ConnectionsAccepted, 1);
            let connection = accepted.into_connection();
            let admission = Admission {
                quota: self.quota.connection(),
                replies: self.replies.connection(),
            };
            let entry = self.roster.enter(
                connection.closer(),
                admission.replies.clone(),
                self.shard.clock().monotonic(),
            );
            let state = self.clone();
            let context = ApiContext {
                client_host: peer.ip().to_canonical(),
                ..context.clone()
            };
            executor::spawn_local(async move {
                let _given_back_last = place;
                let pool = state.pool.clone();
                let served = connection::serve(connection, context, pool, admission, entry).await;
                if let Err(end) = served
                    && !end.is_ordinary()
                {
                    state.note_rejection(peer, &end);
                }
            })
            .detach();
        }
    }

    fn note_rejection(&self, peer: SocketAddr, end: &ConnectionEnd) {
        self.shard.metrics().count(Counter::ConnectionsRejected, 1);
        if let Some(unlogged) = self.rejections.turn(self.now()) {
            tracing::warn!(%peer, reason = %end, unlogged_before = unlogged, "connection closed");
        }
    }

    fn note_refusal(&self, peer: SocketAddr, connections_max: usize) {
        if self.is_draining.get() {
            return;
        }
        if let Some(unlogged) = self.refusals.turn(self.now()) {
            tracing::warn!(
                %peer,
                connections_max = connections_max.min(self.descriptors.count_max()),
                unlogged_before = unlogged,
                "connection refused: so many are open already (max.connections, and what the limit of open files leaves for connections)"
            );
        }
    }

    fn now(&self) -> Monotonic {
        self.shard.clock().monotonic()
    }

    async fn sweep(self: Rc<Self>) {
        while !self.is_draining.get() {
            executor::sleep(Duration::from_millis(SWEEP_MS)).await;
            let metrics = self.shard.metrics();
            metrics.set_gauge(Gauge::RequestsInFlight, self.quota.used_requests() as u64);
            metrics.set_gauge(Gauge::RequestBytesInFlight, self.quota.used_bytes() as u64);
            metrics.set_gauge(Gauge::ReplyBytesInFlight, self.replies.used_bytes() as u64);
            let config = self.shard.config();
            let limits = SweepLimits {
                request_timeout: Duration::from_millis(config.request_timeout_ms),
                idle_max: Duration::from_millis(config.connections_max_idle_ms),
                replies_are_full: self.replies.is_full(),
            };
            let swept = self.roster.sweep(self.shard.clock().monotonic(), limits);
            self.shard
                .metrics()
                .count(Counter::ConnectionsRejected, swept.slow_count as u64);
        }
    }
}
