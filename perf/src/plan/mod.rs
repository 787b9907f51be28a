//! A load, whole and checked: what the flags say, else the driver, else the workload, else the defaults.
//!
//! Owns: the precedence and the limits. Must never know: how the load is put on a broker.

mod check;
mod error;
mod groups;
mod merge;
mod offered;
#[cfg(test)]
mod tests;

pub use error::PlanError;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::client::fetch::FetchLimits;
use crate::compression::Compression;
use crate::consumer::group::GroupSettings;
use crate::keys::KeyDistributor;
use crate::offer::Offer;
use crate::payload::Payload;
use crate::producer::frame::Acks;
use crate::replay_from::ReplayFrom;
use crate::workload::Backlog;

/// Which keys the records have.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct KeyPlan {
    pub distributor: KeyDistributor,
    pub count: u32,
    pub zipf_exponent: f64,
}

/// Consumers that read what is there beside the load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReplayPlan {
    /// Of each topic; each reads all of it.
    pub consumers: u32,
    pub from: ReplayFrom,
    pub once: bool,
}

#[derive(Clone, Debug)]
pub struct LoadPlan {
    pub workload: String,
    /// None where no driver file was given.
    pub driver: Option<String>,
    pub bootstrap: String,
    pub replication: u16,
    pub topic_settings: Vec<(String, String)>,
    pub warmup: Duration,
    pub duration: Duration,
    pub offer: Offer,
    pub topics: u32,
    /// Of each topic, as are the producers and the subscriptions.
    pub partitions: u32,
    pub message_bytes: usize,
    pub payload: Payload,
    pub keys: KeyPlan,
    pub batch_bytes_max: usize,
    pub request_bytes_max: usize,
    pub producers: u32,
    pub subscriptions: u32,
    /// Of each subscription.
    pub consumers: u32,
    /// None: each consumer has the same partitions for good.
    pub groups: Option<GroupSettings>,
    pub backlog: Option<Backlog>,
    pub replay: Option<ReplayPlan>,
    pub acks: Acks,
    pub linger: Duration,
    pub in_flight_max: usize,
    pub idempotence: bool,
    pub compression: Compression,
    /// None: this process puts the load on.
    pub workers: Vec<String>,
    pub fetch: FetchLimits,
}

impl LoadPlan {
    /// Nothing is produced: consumers read topics that are there.
    pub fn only_reads(&self) -> bool {
        self.producers == 0
    }

    /// The producers' settings under Kafka's names.
    pub fn producer_config(&self) -> BTreeMap<String, String> {
        named([
            ("acks", self.acks.on_wire().to_string()),
            ("batch.size", self.batch_bytes_max.to_string()),
            ("max.request.size", self.request_bytes_max.to_string()),
            ("linger.ms", self.linger.as_millis().to_string()),
            (
                "max.in.flight.requests.per.connection",
                self.in_flight_max.to_string(),
            ),
            ("enable.idempotence", self.idempotence.to_string()),
            ("compression.type", self.compression.name().to_owned()),
        ])
    }

    /// The consumers' settings under Kafka's names.
    pub fn consumer_config(&self) -> BTreeMap<String, String> {
        let fetch = &self.fetch;
        let mut settings = named([
            ("fetch.max.bytes", fetch.response_bytes_max.to_string()),
            (
                "max.partition.fetch.bytes",
                fetch.partition_bytes_max.to_string(),
            ),
            ("fetch.min.bytes", fetch.response_bytes_min.to_string()),
            ("fetch.max.wait.ms", fetch.wait_ms_max.to_string()),
        ]);
        if let Some(group) = &self.groups {
            settings.extend(groups::consumer_config(group));
        }
        settings
    }
}

fn named<const N: usize>(settings: [(&str, String); N]) -> BTreeMap<String, String> {
    settings
        .map(|(name, value)| (name.to_owned(), value))
        .into()
}
