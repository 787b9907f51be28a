//! What cannot be run, whoever asked for it.

use std::net::SocketAddr;
use std::time::Duration;

use super::{LoadPlan, PlanError};
use crate::producer::frame::Acks;
use crate::quantity::Rate;
use crate::record::STAMP_BYTES;

/// Kafka keeps five batches of an idempotent producer, so no more requests may be under way.
pub const IDEMPOTENT_IN_FLIGHT_MAX: usize = 5;
/// Beyond it nearly every record has the first key.
pub const ZIPF_EXPONENT_MAX: f64 = 10.0;
const PARTITIONS_MAX: u64 = 100_000;
const CLIENTS_MAX: u64 = 1_000;
/// A record that waits longer is no load.
const LINGER_MAX: Duration = Duration::from_secs(3600);

impl LoadPlan {
    pub(super) fn check(&self) -> Result<(), PlanError> {
        let of_all_topics = |count: u32| u64::from(self.topics) * u64::from(count);
        let readers = of_all_topics(self.subscriptions).saturating_mul(u64::from(self.consumers));
        within("partitions", of_all_topics(self.partitions), PARTITIONS_MAX)?;
        within("producers", of_all_topics(self.producers), CLIENTS_MAX)?;
        within("consumers", readers, CLIENTS_MAX)?;
        let replayers = self.replay.map_or(0, |replay| replay.consumers);
        within("replay consumers", of_all_topics(replayers), CLIENTS_MAX)?;
        if self.backlog.is_some() && readers == 0 {
            return Err(PlanError::BacklogWithoutConsumers);
        }
        if self.backlog.is_some() && self.offer.search().is_some() {
            return Err(PlanError::BacklogWithSearch);
        }
        if self.only_reads() && self.replay.is_none() {
            return Err(PlanError::ReadsWithoutConsumers);
        }
        within(
            "linger.ms",
            self.linger.as_millis().try_into().unwrap_or(u64::MAX),
            LINGER_MAX.as_millis() as u64,
        )?;
        let not_zero = [
            ("duration", self.duration.is_zero()),
            ("topics", self.topics == 0),
            ("partitions", self.partitions == 0),
            ("in-flight", self.in_flight_max == 0),
            ("replication", self.replication == 0),
            ("fetch size", self.fetch.response_bytes_max == 0),
            ("partition fetch size", self.fetch.partition_bytes_max == 0),
        ];
        if let Some((name, _)) = not_zero.into_iter().find(|(_, zero)| *zero) {
            return Err(PlanError::Zero { name });
        }
        if self.message_bytes < STAMP_BYTES {
            return Err(PlanError::MessageTooSmall {
                got: self.message_bytes as u64,
            });
        }
        if self.idempotence && self.acks != Acks::All {
            return Err(PlanError::IdempotenceNeedsAcksAll);
        }
        if self.idempotence && self.in_flight_max > IDEMPOTENT_IN_FLIGHT_MAX {
            return Err(PlanError::IdempotenceInFlight {
                got: self.in_flight_max,
            });
        }
        let mut max_known = false;
        for rate in self.offer.rates() {
            match rate {
                Rate::Max => max_known = true,
                Rate::PercentOfMax(percent) if !max_known => {
                    return Err(PlanError::PercentWithoutMax { percent: *percent });
                }
                _ => {}
            }
        }
        self.check_workers()?;
        match self.bootstrap.split(',').find(|text| !is_address(text)) {
            Some(text) => Err(PlanError::Bootstrap(text.trim().to_owned())),
            None => Ok(()),
        }
    }

    fn check_workers(&self) -> Result<(), PlanError> {
        let workers = &self.workers;
        if let Some(text) = workers.iter().find(|text| !is_address(text)) {
            return Err(PlanError::Worker(text.clone()));
        }
        let twice = |(place, worker): &(usize, &String)| workers[..*place].contains(worker);
        if let Some((_, worker)) = workers.iter().enumerate().find(twice) {
            return Err(PlanError::WorkerTwice(worker.clone()));
        }
        let producers = u64::from(self.topics) * u64::from(self.producers);
        if workers.len() as u64 > producers {
            return Err(PlanError::MoreWorkersThanProducers {
                workers: workers.len(),
                producers,
            });
        }
        Ok(())
    }
}

/// One HOST:PORT of a list.
fn is_address(text: &str) -> bool {
    let text = text.trim();
    let host_and_port = text
        .rsplit_once(':')
        .map(|(host, port)| (host, port.parse::<u16>()));
    match host_and_port {
        Some((host, Ok(_))) if !host.is_empty() => true,
        _ => text.parse::<SocketAddr>().is_ok(),
    }
}

/// Within a limit that has its name in the message.
pub fn within(name: &'static str, got: u64, max: u64) -> Result<u64, PlanError> {
    if got > max {
        return Err(PlanError::TooLarge { name, got, max });
    }
    Ok(got)
}
