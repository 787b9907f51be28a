//! What may be in flight: the quota of request bytes and requests of a connection and of its shard. At a limit the connection is not
//! read, or what it has sent is not dispatched; nothing grows.

use std::cell::Cell;
use std::future::Future;
use std::rc::Rc;

use futures_lite::future;

use crate::io::event::Event;
use crate::model::limits::{
    REQUEST_BYTES_IN_FLIGHT_PER_CONNECTION_MAX, REQUEST_BYTES_IN_FLIGHT_PER_SHARD_MAX,
    REQUESTS_IN_FLIGHT_PER_CONNECTION_MAX, REQUESTS_IN_FLIGHT_PER_SHARD_MAX,
};

/// The quota that all connections of a shard share.
#[derive(Clone)]
pub struct ShardQuota {
    bytes_max: usize,
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
    /// Of a shard: one of its connections receives although it is full.
    is_pass_taken: Cell<bool>,
}

/// Holds its part of the quota until it is dropped.
pub struct Permit {
    connection: Rc<Usage>,
    shard: ShardQuota,
    bytes: usize,
    requests: usize,
}

/// What a connection holds for a frame that is on its way.
#[derive(Default)]
pub struct Unfinished {
    permit: Option<Permit>,
    pass: Option<Pass>,
}

/// The right to receive the rest of a frame although the shard is full. One connection at a time has it: parts of frames free nothing
/// before the rest of them has come, and they may be all that fills the shard.
struct Pass(ShardQuota);

impl Default for ShardQuota {
    /// Where memory is plenty.
    fn default() -> Self {
        Self::new(REQUEST_BYTES_IN_FLIGHT_PER_SHARD_MAX)
    }
}

impl ShardQuota {
    pub fn new(bytes_max: usize) -> Self {
        Self {
            bytes_max,
            used: Rc::default(),
        }
    }

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

    fn take_pass(&self) -> Option<Pass> {
        (!self.used.is_pass_taken.replace(true)).then(|| Pass(self.clone()))
    }

    fn is_full(&self) -> bool {
        self.used_bytes() >= self.bytes_max
            || self.used_requests() >= REQUESTS_IN_FLIGHT_PER_SHARD_MAX
    }
}

impl ConnectionQuota {
    /// Completes when the connection may receive more of a frame that takes `wanted_bytes` then, and counts them; 0 is one that fits into
    /// the smallest buffer. A frame that is larger than a whole quota gets through once it is alone: what has arrived of it is no reason
    /// to let it wait. What others have under way keeps no connection from sending a small request.
    pub async fn ready_to_receive(&self, unfinished: &mut Unfinished, wanted_bytes: usize) {
        loop {
            let held_bytes = unfinished.bytes();
            let own_bytes = self.used.bytes.get() - held_bytes;
            let own = own_bytes < REQUEST_BYTES_IN_FLIGHT_PER_CONNECTION_MAX
                && self.used.requests.get() < REQUESTS_IN_FLIGHT_PER_CONNECTION_MAX;
            let is_small = own_bytes == 0 && wanted_bytes <= held_bytes;
            let is_full = self.shard.used_bytes() >= self.shard.bytes_max;
            if !own {
                // Others may go on meanwhile.
                unfinished.pass = None;
                self.used.released.wait().await;
                continue;
            }
            if is_small || !is_full || unfinished.pass.is_some() {
                break;
            }
            if held_bytes > 0 {
                unfinished.pass = self.shard.take_pass();
            }
            if unfinished.pass.is_none() {
                self.shard.used.released.wait().await;
            }
        }
        if wanted_bytes > unfinished.bytes() {
            unfinished.permit = Some(self.take_bytes(wanted_bytes));
        }
    }

    /// What to wait for before one more request may be dispatched; look again then. `None`: nothing. A connection may always have one.
    pub fn lack(&self) -> Option<impl Future<Output = ()> + use<>> {
        let own_is_full = self.used.requests.get() >= REQUESTS_IN_FLIGHT_PER_CONNECTION_MAX;
        let shard_is_full = self.shard.used_requests() >= REQUESTS_IN_FLIGHT_PER_SHARD_MAX;
        let lacks = own_is_full || shard_is_full && self.used.requests.get() > 0;
        lacks.then(|| future::or(self.used.released.wait(), self.shard.used.released.wait()))
    }

    /// Takes `bytes` for what is being received, or was and is not dispatched.
    pub fn take_bytes(&self, bytes: usize) -> Permit {
        let permit = Permit {
            connection: self.used.clone(),
            shard: self.shard.clone(),
            bytes,
            requests: 0,
        };
        permit.add(bytes, 0);
        permit
    }
}

impl Unfinished {
    fn bytes(&self) -> usize {
        self.permit.as_ref().map_or(0, Permit::bytes)
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        self.0.used.is_pass_taken.set(false);
        self.0.used.released.notify();
    }
}

impl Permit {
    /// A permit for a request of `bytes`, which this one held until now.
    pub fn split_request(&mut self, bytes: usize) -> Permit {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        self.add(0, 1);
        Permit {
            connection: self.connection.clone(),
            shard: self.shard.clone(),
            bytes,
            requests: 1,
        }
    }

    /// Gives back the bytes; the request still counts.
    pub fn release_bytes(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        self.give_back(bytes, 0);
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    fn add(&self, bytes: usize, requests: usize) {
        for used in [&self.connection, &self.shard.used] {
            used.bytes.set(used.bytes.get() + bytes);
            used.requests.set(used.requests.get() + requests);
        }
    }

    fn give_back(&self, bytes: usize, requests: usize) {
        let was_full = self.shard.is_full();
        for used in [&self.connection, &self.shard.used] {
            used.bytes.set(used.bytes.get() - bytes);
            used.requests.set(used.requests.get() - requests);
        }
        self.connection.released.notify();
        // Whoever waits for the shard waits for room, and there was room before.
        if was_full {
            self.shard.used.released.notify();
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.give_back(self.bytes, self.requests);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_lite::future::{block_on, poll_once};

    #[test]
    fn a_connection_at_its_limit_waits_until_something_is_answered() {
        let quota = ShardQuota::default().connection();
        let permit = quota.take_bytes(REQUEST_BYTES_IN_FLIGHT_PER_CONNECTION_MAX);
        let mut unfinished = Unfinished::default();
        let mut ready = Box::pin(quota.ready_to_receive(&mut unfinished, 0));
        assert_eq!(block_on(poll_once(&mut ready)), None);
        drop(permit);
        assert_eq!(block_on(poll_once(&mut ready)), Some(()));
    }

    /// Whether the next step of a frame is received now.
    fn is_received(
        quota: &ConnectionQuota,
        unfinished: &mut Unfinished,
        wanted_bytes: usize,
    ) -> bool {
        block_on(poll_once(quota.ready_to_receive(unfinished, wanted_bytes))).is_some()
    }

    #[test]
    fn a_frame_that_is_larger_than_the_quotas_is_received_to_its_end() {
        let shard = ShardQuota::default();
        let quota = shard.connection();
        let mut unfinished = Unfinished::default();
        let mut wanted_bytes = 128 * 1024;
        while wanted_bytes <= 2 * REQUEST_BYTES_IN_FLIGHT_PER_SHARD_MAX {
            for _step in 0..2 {
                assert!(
                    is_received(&quota, &mut unfinished, wanted_bytes),
                    "{wanted_bytes} bytes"
                );
                assert_eq!(shard.used_bytes(), wanted_bytes);
            }
            wanted_bytes *= 2;
        }
        drop(unfinished);
        assert_eq!(shard.used_bytes(), 0);
    }

    #[test]
    fn frames_of_which_parts_fill_the_shard_are_received_one_after_the_other() {
        const MIB: usize = 1024 * 1024;
        let shard = ShardQuota::new(20 * MIB);
        let (one, other, third) = (shard.connection(), shard.connection(), shard.connection());
        let mut of_one = Unfinished::default();
        let mut of_other = Unfinished::default();
        assert!(is_received(&one, &mut of_one, 10 * MIB));
        assert!(is_received(&other, &mut of_other, 10 * MIB));
        let mut of_third = Unfinished::default();
        assert!(
            !is_received(&third, &mut of_third, MIB),
            "it has nothing yet"
        );
        assert!(is_received(&other, &mut of_other, 20 * MIB));
        {
            let mut ready = Box::pin(one.ready_to_receive(&mut of_one, 20 * MIB));
            assert_eq!(block_on(poll_once(&mut ready)), None, "the other is at it");
            assert!(is_received(&other, &mut of_other, 30 * MIB));
            let request = other.take_bytes(30 * MIB);
            drop(of_other);
            assert_eq!(block_on(poll_once(&mut ready)), Some(()));
            drop(request);
        }
        drop(of_one);
        assert!(is_received(&third, &mut of_third, MIB));
        assert_eq!(shard.used_bytes(), MIB);
    }

    #[test]
    fn connections_share_the_quota_of_their_shard_but_small_requests_always_get_through() {
        let shard = ShardQuota::default();
        let (one, other) = (shard.connection(), shard.connection());
        let permit = one.take_bytes(REQUEST_BYTES_IN_FLIGHT_PER_SHARD_MAX);
        let mut unfinished = Unfinished::default();
        assert!(is_received(&other, &mut unfinished, 0));
        assert!(!is_received(&other, &mut unfinished, 1));
        let small = other.take_bytes(1);
        assert!(!is_received(&other, &mut unfinished, 0));
        {
            let mut growing = Box::pin(other.ready_to_receive(&mut unfinished, 1));
            assert_eq!(block_on(poll_once(&mut growing)), None);
            drop(permit);
            assert_eq!(block_on(poll_once(&mut growing)), Some(()));
        }
        drop(unfinished);
        drop(small);
        assert_eq!(shard.used_bytes(), 0);
    }

    #[test]
    fn requests_of_a_shard_are_bounded_and_each_connection_may_have_one() {
        let shard = ShardQuota::default();
        let mut held = Vec::new();
        while shard.used_requests() < REQUESTS_IN_FLIGHT_PER_SHARD_MAX {
            let greedy = shard.connection();
            while greedy.lack().is_none() {
                held.push(greedy.take_bytes(0).split_request(0));
            }
            assert!(held.len() <= REQUESTS_IN_FLIGHT_PER_SHARD_MAX);
        }
        let other = shard.connection();
        assert!(other.lack().is_none(), "its first");
        let first = other.take_bytes(0).split_request(0);
        let mut lack = Box::pin(other.lack().expect("a second one waits"));
        assert_eq!(block_on(poll_once(&mut lack)), None);
        drop(first);
        assert_eq!(
            block_on(poll_once(&mut lack)),
            Some(()),
            "its first is answered"
        );
        assert!(other.lack().is_none());
        drop(held);
        assert_eq!(shard.used_requests(), 0);
    }

    #[test]
    fn a_request_takes_over_the_bytes_that_were_received() {
        let shard = ShardQuota::default();
        let quota = shard.connection();
        let mut received = quota.take_bytes(100);
        let mut request = received.split_request(60);
        assert_eq!((request.bytes(), received.bytes()), (60, 40));
        assert_eq!((shard.used_bytes(), shard.used_requests()), (100, 1));
        drop(received);
        request.release_bytes();
        assert_eq!((shard.used_bytes(), shard.used_requests()), (0, 1));
        drop(request);
        assert_eq!(shard.used_requests(), 0);
    }
}
