//! A shard's share of the listeners: accepts connections, refuses those over the limit, closes those that take too long.

use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use crate::api::context::ApiContext;
use crate::io::clock::Monotonic;
use crate::io::executor;
use crate::io::net::Listener;
use crate::io::recv::RecvPool;
use crate::metrics::{Counter, Gauge};
use crate::model::limits::{RECV_POOL_BYTES_PER_SHARD, REJECTION_LOG_INTERVAL_MS, SWEEP_MS};
use crate::server::connection::{self, ConnectionEnd};
use crate::server::in_flight::ShardQuota;
use crate::server::roster::Roster;
use crate::shard::runtime::Shard;

pub struct Server {
    state: Rc<State>,
}

struct State {
    shard: Rc<Shard>,
    roster: Roster,
    quota: ShardQuota,
    pool: RecvPool,
    is_draining: Cell<bool>,
    rejection_logged_at: Cell<Option<Monotonic>>,
    rejections_unlogged: Cell<u64>,
}

impl Server {
    pub fn new(shard: Rc<Shard>) -> Self {
        let state = Rc::new(State {
            shard,
            roster: Roster::default(),
            quota: ShardQuota::default(),
            pool: RecvPool::new(RECV_POOL_BYTES_PER_SHARD),
            is_draining: Cell::new(false),
            rejection_logged_at: Cell::new(None),
            rejections_unlogged: Cell::new(0),
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
                    if error.is_out_of_descriptors() {
                        tracing::warn!(%error, "no connection was accepted");
                        executor::sleep(Duration::from_millis(100)).await;
                    }
                    continue;
                }
            };
            let metrics = self.shard.metrics();
            let shard_count = self.shard.router().shards().count();
            let connections_max =
                (self.shard.config().connections_max as usize).div_ceil(shard_count);
            if self.roster.len() >= connections_max || self.is_draining.get() {
                metrics.count(Counter::ConnectionsRefused, 1);
                continue;
            }
            metrics.count(Counter::ConnectionsAccepted, 1);
            let peer = accepted.peer_addr();
            let connection = accepted.into_connection();
            let entry = self
                .roster
                .enter(connection.closer(), self.shard.clock().monotonic());
            let state = self.clone();
            let context = ApiContext {
                client_host: peer.ip().to_canonical(),
                ..context.clone()
            };
            executor::spawn_local(async move {
                let quota = state.quota.connection();
                let served =
                    connection::serve(connection, context, state.pool.clone(), quota, entry).await;
                if let Err(end) = served
                    && !end.is_ordinary()
                {
                    state.note_rejection(peer, &end);
                }
            })
            .detach();
        }
    }

    /// One line at most each `REJECTION_LOG_INTERVAL_MS`: a flood of bad connections must not become a flood of lines.
    fn note_rejection(&self, peer: SocketAddr, end: &ConnectionEnd) {
        self.shard.metrics().count(Counter::ConnectionsRejected, 1);
        let now = self.shard.clock().monotonic();
        let interval = Duration::from_millis(REJECTION_LOG_INTERVAL_MS);
        if self
            .rejection_logged_at
            .get()
            .is_some_and(|at| now.since(at) < interval)
        {
            self.rejections_unlogged
                .set(self.rejections_unlogged.get() + 1);
            return;
        }
        self.rejection_logged_at.set(Some(now));
        let unlogged = self.rejections_unlogged.replace(0);
        tracing::warn!(%peer, reason = %end, unlogged_before = unlogged, "connection closed");
    }

    async fn sweep(self: Rc<Self>) {
        while !self.is_draining.get() {
            executor::sleep(Duration::from_millis(SWEEP_MS)).await;
            let metrics = self.shard.metrics();
            metrics.set_gauge(Gauge::RequestsInFlight, self.quota.used_requests() as u64);
            metrics.set_gauge(Gauge::RequestBytesInFlight, self.quota.used_bytes() as u64);
            let config = self.shard.config();
            let swept = self.roster.sweep(
                self.shard.clock().monotonic(),
                Duration::from_millis(config.request_timeout_ms),
                Duration::from_millis(config.connections_max_idle_ms),
            );
            self.shard
                .metrics()
                .count(Counter::ConnectionsRejected, swept.slow_count as u64);
        }
    }
}
