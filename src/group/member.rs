use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::id::{InstanceId, MemberId};
use super::request::{JoinProtocol, JoinRequest};
use super::timers::Alarm;

/// One member of a group, with the requests of its that wait. All of its bytes are its own: nothing here keeps a receive buffer.
#[derive(Debug)]
pub struct Member<T> {
    pub id: MemberId,
    pub instance: Option<InstanceId>,
    pub client_id: Arc<str>,
    pub client_host: Arc<str>,
    pub session_timeout_ms: i32,
    pub rebalance_timeout_ms: i32,
    pub protocols: Protocols,
    pub assignment: Bytes,
    /// It has not been through a rebalance: it does not know its id yet, so it cannot send a heartbeat while it waits.
    pub is_new: bool,
    pub joining: Option<T>,
    pub syncing: Option<T>,
    pub session: Alarm,
}

impl<T> Member<T> {
    /// A member takes this much beside what it brings, roughly, with the structs around it.
    pub const FIXED_BYTES: usize = 512;

    pub fn new(id: MemberId, request: &JoinRequest) -> Self {
        Self {
            id,
            instance: request.instance.clone(),
            client_id: request.client_id.as_str().into(),
            client_host: request.client_host.as_str().into(),
            session_timeout_ms: request.session_timeout_ms,
            rebalance_timeout_ms: request.rebalance_timeout_ms,
            protocols: Protocols::new(&request.protocols),
            assignment: Bytes::new(),
            is_new: true,
            joining: None,
            syncing: None,
            session: Alarm::default(),
        }
    }

    pub fn session_timeout(&self) -> Duration {
        millis(self.session_timeout_ms)
    }

    /// Somebody who waits for an answer needs no heartbeat.
    pub fn is_waiting(&self) -> bool {
        self.joining.is_some() || self.syncing.is_some()
    }

    /// What it takes in memory, roughly: what it holds, and a fixed part for the structs around it.
    pub fn bytes(&self) -> usize {
        let instance = self
            .instance
            .as_ref()
            .map_or(0, |instance| 3 * instance.as_str().len());
        Self::FIXED_BYTES
            + 3 * self.id.as_str().len()
            + instance
            + self.client_id.len()
            + self.client_host.len()
            + self.protocols.bytes()
            + self.assignment.len()
    }
}

/// A time-out of the wire; below zero is none at all.
pub fn millis(ms: i32) -> Duration {
    Duration::from_millis(u64::try_from(ms).unwrap_or(0))
}

/// A member's assignors with what each is told about it; the one it likes best is first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Protocols {
    list: Vec<(Arc<str>, Bytes)>,
}

impl Protocols {
    pub fn new(protocols: &[JoinProtocol]) -> Self {
        let own = |protocol: &JoinProtocol| {
            let metadata = Bytes::copy_from_slice(&protocol.metadata);
            (protocol.name.as_str().into(), metadata)
        };
        Self {
            list: protocols.iter().map(own).collect(),
        }
    }

    /// What a stored group says of a member: its metadata for the chosen one.
    pub fn chosen(name: &str, metadata: &[u8]) -> Self {
        Self {
            list: vec![(name.into(), Bytes::copy_from_slice(metadata))],
        }
    }

    /// Whether a request brings the same, in the same order.
    pub fn are(&self, protocols: &[JoinProtocol]) -> bool {
        let same = |((name, metadata), other): (&(Arc<str>, Bytes), &JoinProtocol)| {
            **name == *other.name && *metadata == other.metadata
        };
        self.list.len() == protocols.len() && self.list.iter().zip(protocols).all(same)
    }

    pub fn names(&self) -> impl Iterator<Item = &Arc<str>> {
        self.list.iter().map(|(name, _)| name)
    }

    /// Empty if the protocol is not one of these.
    pub fn metadata(&self, name: &str) -> Bytes {
        let found = self.list.iter().find(|(own, _)| **own == *name);
        found
            .map(|(_, metadata)| metadata.clone())
            .unwrap_or_default()
    }

    /// What they take in memory, roughly.
    pub fn bytes(&self) -> usize {
        let each = self.list.iter();
        each.map(|(name, metadata)| protocol_bytes(name, metadata))
            .sum()
    }

    /// What those of a request would take.
    pub fn bytes_wanted(protocols: &[JoinProtocol]) -> usize {
        let each = protocols.iter();
        each.map(|protocol| protocol_bytes(&protocol.name, &protocol.metadata))
            .sum()
    }
}

fn protocol_bytes(name: &str, metadata: &[u8]) -> usize {
    96 + name.len() + metadata.len()
}
