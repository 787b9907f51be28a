//! What a crew is told.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::client::cluster::Topic;
use crate::compression::Compression;
use crate::consumer::group::MemberPlan;
use crate::consumer::{PassesPlan, ReadPlan};
use crate::payload::PayloadPool;
use crate::plan::KeyPlan;
use crate::producer::Window;
use crate::producer::batch::ProducerIdentity;
use crate::producer::frame::Acks;
use crate::record::{ProducerNumber, RunId};
use crate::schedule::Schedule;

/// The part of one load step that one crew takes on. All instants in it count from the load's start, which is
/// agreed on when every crew is connected.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LoadOrder {
    pub run: RunId,
    pub topics: Vec<Topic>,
    pub producers: Vec<ProducerOrder>,
    /// Those whose partitions are fixed.
    pub consumers: Vec<ReadPlan>,
    /// Those that share their partitions in groups.
    pub members: Vec<MemberPlan>,
    /// Consumers that read what is there over and over until the producers are done.
    pub replays: Vec<PassesPlan>,
    pub window: Window,
    /// The window then ends some time after a backlog is drained, and its end above is only the latest.
    pub has_backlog: bool,
    /// Until when unanswered requests are waited for.
    pub drain_until_ns: u64,
    pub acks: Acks,
    pub linger: Duration,
    /// Requests under way from one producer to one broker.
    pub in_flight_max: usize,
    pub message_bytes: usize,
    pub batch_bytes_max: usize,
    pub request_bytes_max: usize,
    pub keys: KeyPlan,
    pub payloads: PayloadPool,
    pub compression: Compression,
}

impl LoadOrder {
    /// Deals producers and consumers out to so many crews, one after the other.
    pub fn deal(self, crews: usize) -> Vec<Self> {
        fn part<T: Clone>(all: &[T], crew: usize, crews: usize) -> Vec<T> {
            all.iter().skip(crew).step_by(crews).cloned().collect()
        }
        (0..crews)
            .map(|crew| Self {
                producers: part(&self.producers, crew, crews),
                consumers: part(&self.consumers, crew, crews),
                members: part(&self.members, crew, crews),
                replays: part(&self.replays, crew, crews),
                ..self.clone()
            })
            .collect()
    }
}

/// What one producer has of its own.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ProducerOrder {
    pub number: ProducerNumber,
    pub identity: ProducerIdentity,
    /// Its place in the order's topics.
    pub topic: usize,
    pub schedule: Schedule,
}
