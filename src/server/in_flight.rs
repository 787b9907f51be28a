//! What may be in flight: the quota of request bytes and requests of a connection and of its shard. At a limit the connection is not
//! read; nothing grows.

use std::cell::Cell;
use std::rc::Rc;

use crate::io::event::Event;
use crate::model::limits::{
    REQUEST_BYTES_IN_FLIGHT_PER_CONNECTION_MAX, REQUEST_BYTES_IN_FLIGHT_PER_SHARD_MAX,
    REQUESTS_IN_FLIGHT_PER_CONNECTION_MAX,
};

/// The quota that all connections of a shard share.
#[derive(Clone, Default)]
pub struct ShardQuota {
    used: Rc<Usage>,
}

/// One connection's quota.
#[derive(Clone)]
pub struct ConnectionQuota {
    used: Rc<Usage>,
    shard: ShardQuota,
}

#[derive(Default)]
struct Usage {
    bytes: Cell<usize>,
    requests: Cell<usize>,
    released: Event,
}

/// Holds its part of the quota until it is dropped.
pub struct Permit {
    connection: Rc<Usage>,
    shard: Rc<Usage>,
    bytes: usize,
    requests: usize,
}

impl ShardQuota {
    pub fn connection(&self) -> ConnectionQuota {
        ConnectionQuota {
            used: Rc::default(),
            shard: self.clone(),
        }
    }

    pub fn used_bytes(&self) -> usize {
        self.used.bytes.get()
    }

    pub fn used_requests(&self) -> usize {
        self.used.requests.get()
    }
}

impl ConnectionQuota {
    /// Completes when the connection may receive more. A request that is larger than a whole quota gets through once it is alone.
    pub async fn ready(&self) {
        loop {
            let own = self.used.bytes.get() < REQUEST_BYTES_IN_FLIGHT_PER_CONNECTION_MAX
                && self.used.requests.get() < REQUESTS_IN_FLIGHT_PER_CONNECTION_MAX;
            if !own {
                self.used.released.wait().await;
            } else if self.shard.used.bytes.get() >= REQUEST_BYTES_IN_FLIGHT_PER_SHARD_MAX {
                self.shard.used.released.wait().await;
            } else {
                return;
            }
        }
    }

    /// Takes `bytes` for a request; `ready` must have said that there is room.
    pub fn take_request(&self, bytes: usize) -> Permit {
        self.take(bytes, 1)
    }

    /// Takes `bytes` for a frame that is being received.
    pub fn take_bytes(&self, bytes: usize) -> Permit {
        self.take(bytes, 0)
    }

    fn take(&self, bytes: usize, requests: usize) -> Permit {
        let permit = Permit {
            connection: self.used.clone(),
            shard: self.shard.used.clone(),
            bytes,
            requests,
        };
        for used in [&permit.connection, &permit.shard] {
            used.bytes.set(used.bytes.get() + bytes);
            used.requests.set(used.requests.get() + requests);
        }
        permit
    }
}

impl Permit {
    /// Gives back the bytes; the request still counts.
    pub fn release_bytes(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        for used in [&self.connection, &self.shard] {
            used.bytes.set(used.bytes.get() - bytes);
            used.released.notify();
        }
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        for used in [&self.connection, &self.shard] {
            used.bytes.set(used.bytes.get() - self.bytes);
            used.requests.set(used.requests.get() - self.requests);
            used.released.notify();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_lite::future::{block_on, poll_once};

    #[test]
    fn a_connection_at_its_limit_waits_until_something_is_answered() {
        let quota = ShardQuota::default().connection();
        let permit = quota.take_request(REQUEST_BYTES_IN_FLIGHT_PER_CONNECTION_MAX);
        let mut ready = Box::pin(quota.ready());
        assert_eq!(block_on(poll_once(&mut ready)), None);
        drop(permit);
        assert_eq!(block_on(poll_once(&mut ready)), Some(()));
    }

    #[test]
    fn connections_share_the_quota_of_their_shard() {
        let shard = ShardQuota::default();
        let (one, other) = (shard.connection(), shard.connection());
        let permit = one.take_bytes(REQUEST_BYTES_IN_FLIGHT_PER_SHARD_MAX);
        assert_eq!(block_on(poll_once(other.ready())), None);
        drop(permit);
        assert_eq!(block_on(poll_once(other.ready())), Some(()));
        assert_eq!(shard.used_bytes(), 0);
    }
}
