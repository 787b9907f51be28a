//! What a producer is told, and what it has to tell.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::batch::ProducerIdentity;
use super::frame::Acks;
use super::ledger::Ledger;
use crate::client::cluster::Topic;
use crate::compression::Compression;
use crate::histogram::LatencyHistogram;
use crate::keys::Keys;
use crate::payload::PayloadPool;
use crate::record::{ProducerNumber, RunId};
use crate::schedule::Schedule;

/// The span of the run that counts; before it is warm-up.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Window {
    pub start_ns: u64,
    pub end_ns: u64,
}

impl Window {
    /// The same, with its edges moved.
    pub fn later_by(self, by_ns: u64) -> Self {
        Self {
            start_ns: self.start_ns + by_ns,
            end_ns: self.end_ns + by_ns,
        }
    }

    pub fn contains(&self, at_ns: u64) -> bool {
        (self.start_ns..self.end_ns).contains(&at_ns)
    }
}

/// What one producer does. Its instants count from the load's start until `Producer::begin_at` says when that is.
#[derive(Clone)]
pub struct ProducerPlan {
    pub run: RunId,
    pub number: ProducerNumber,
    pub identity: ProducerIdentity,
    pub topic: Arc<Topic>,
    pub schedule: Schedule,
    pub window: Window,
    /// Until when unanswered requests are waited for.
    pub drain_until_ns: u64,
    pub acks: Acks,
    pub linger: Duration,
    /// Requests under way to one broker.
    pub in_flight_max: usize,
    pub message_bytes: usize,
    pub batch_bytes_max: usize,
    pub request_bytes_max: usize,
    /// None: records have no keys, and full batches go to the partitions in turn.
    pub keys: Option<Arc<Keys>>,
    pub payloads: PayloadPool,
    pub compression: Compression,
}

/// What one producer measured.
pub struct ProducerResult {
    pub ledger: Ledger,
    /// From the intended send time to the ack, of the records intended within the window. Those without an ack
    /// count with the time that they had waited by the end, which is less than their latency.
    pub latency: LatencyHistogram,
    /// How late the generator itself was, per request: from when a request was due and could be sent to when
    /// its sending began.
    pub lag: LatencyHistogram,
    /// From the intended send time to the begin of sending, per record: the generator's lag plus the wait for
    /// room in flight.
    pub send_delay: LatencyHistogram,
    /// Records by the name of what went wrong.
    pub errors: BTreeMap<String, u64>,
    /// Records that were sent again, by the reason.
    pub resent: BTreeMap<String, u64>,
    /// Records of the window that were due but never got their turn: the broker did not keep up.
    pub unsent_records: u64,
}
