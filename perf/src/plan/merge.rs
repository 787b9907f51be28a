//! Flags over driver over workload over defaults.

use std::time::Duration;

use super::check::{ZIPF_EXPONENT_MAX, within};
use super::{KeyPlan, LoadPlan, PlanError, ReplayPlan};
use crate::bootstrap;
use crate::cli::{AcksArg, RunArgs};
use crate::client::fetch::FetchLimits;
use crate::compression::Compression;
use crate::driver::{ConsumerConfig, Driver};
use crate::keys::{KEY_COUNT_DEFAULT, KEY_COUNT_MAX, KeyDistributor, ZIPF_EXPONENT_DEFAULT};
use crate::offer::Offer;
use crate::payload::Payload;
use crate::producer::frame::Acks;
use crate::quantity::Bytes;
use crate::replay_from::ReplayFrom;
use crate::workload::{self, Backlog, Workload};

const DURATION_DEFAULT: Duration = Duration::from_secs(20);
const WARMUP_DEFAULT: Duration = Duration::from_secs(2);
const BATCH_BYTES_DEFAULT: u64 = 131_072;
const REQUEST_BYTES_DEFAULT: u64 = 1_000_000;
const LINGER_DEFAULT: Duration = Duration::from_millis(5);
const IN_FLIGHT_DEFAULT: usize = 5;
const FETCH_BYTES_DEFAULT: u64 = 16 * 1024 * 1024;
/// How long a consumer's fetch may wait at the log's end.
const FETCH_WAIT_MS_DEFAULT: u64 = 100;

const BATCH_BYTES_MAX: u64 = 100 * 1024 * 1024;
const MESSAGE_BYTES_MAX: u64 = 64 * 1024 * 1024;
const FETCH_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// More than a year of what a broker takes.
const BACKLOG_BYTES_MAX: u64 = 1_000_000_000_000_000;
const FETCH_WAIT_MS_MAX: u64 = 60_000;

impl RunArgs {
    /// Puts flags, driver and workload together and refuses what cannot be run.
    pub fn plan(&self) -> Result<LoadPlan, PlanError> {
        let load = workload::find(&self.workload)?;
        let driver = match &self.driver {
            Some(path) => Driver::read(path)?,
            None => Driver::default(),
        };
        let plan = self.merge(load, driver)?;
        plan.check()?;
        Ok(plan)
    }

    fn merge(&self, load: Workload, driver: Driver) -> Result<LoadPlan, PlanError> {
        let bytes = |flag: Option<Bytes>| flag.map(|size| size.0);
        let warmup = self.warmup.or(load.warmup).unwrap_or(WARMUP_DEFAULT);
        let duration = self
            .duration
            .or(load.test_duration)
            .unwrap_or(DURATION_DEFAULT);
        let producers = self.producers.unwrap_or(load.producers_per_topic);
        if producers == 0 {
            self.refuse_what_only_producers_need()?;
        }
        let batch_bytes = bytes(self.batch_bytes)
            .or(driver.producer.batch_bytes)
            .or(load.batch_bytes)
            .unwrap_or(BATCH_BYTES_DEFAULT);
        let request_bytes = bytes(self.request_bytes)
            .or(driver.producer.request_bytes)
            .unwrap_or(REQUEST_BYTES_DEFAULT);
        let in_flight_max = match (self.in_flight, driver.producer.in_flight_max) {
            (Some(flag), _) => flag,
            (None, Some(driver)) => driver as usize,
            (None, None) => IN_FLIGHT_DEFAULT,
        };
        let mut topic_settings = driver.topic_config;
        topic_settings.extend(self.topic_settings.iter().cloned());
        // Where nothing is produced, nothing is to be followed.
        let consumers = match producers {
            0 => 0,
            _ => self.consumers.unwrap_or(load.consumer_per_subscription),
        };
        Ok(LoadPlan {
            workload: load.name,
            driver: self
                .driver
                .as_ref()
                .map(|path| driver.name.unwrap_or_else(|| path.display().to_string())),
            bootstrap: bootstrap::with_ports(
                &self
                    .bootstrap
                    .clone()
                    .or(driver.bootstrap)
                    .unwrap_or_else(bootstrap::unnamed),
            ),
            replication: self.replication.or(driver.replication_factor).unwrap_or(1),
            topic_settings: topic_settings.into_iter().collect(),
            offer: match producers {
                0 => Offer::Rates(Vec::new()),
                _ => self.offer(load.producer_rate, warmup, duration)?,
            },
            warmup,
            duration,
            topics: self.topics.unwrap_or(load.topics),
            partitions: self.partitions.unwrap_or(load.partitions_per_topic),
            message_bytes: within(
                "message size",
                bytes(self.message_size).unwrap_or(load.message_size),
                MESSAGE_BYTES_MAX,
            )? as usize,
            payload: self.payload(load.payload)?,
            keys: self.key_plan(load.key_distributor)?,
            // Kafka's clients take a batch size of 0 for one record a batch.
            batch_bytes_max: within("batch size", batch_bytes, BATCH_BYTES_MAX)? as usize,
            request_bytes_max: within("request size", request_bytes, BATCH_BYTES_MAX)? as usize,
            producers,
            subscriptions: self.subscriptions.unwrap_or(load.subscriptions_per_topic),
            consumers,
            groups: self.groups(load.in_groups, consumers, &driver.consumer.group)?,
            backlog: match producers {
                0 => None,
                _ => self.backlog_plan(load.backlog)?,
            },
            replay: self.replay_plan()?,
            acks: match self.acks {
                Some(AcksArg::None) => Acks::None,
                Some(AcksArg::Leader) => Acks::Leader,
                Some(AcksArg::All) => Acks::All,
                None => driver.producer.acks.unwrap_or(Acks::Leader),
            },
            linger: self
                .linger_ms
                .map(Duration::from_millis)
                .or(driver.producer.linger)
                .unwrap_or(LINGER_DEFAULT),
            in_flight_max,
            idempotence: self
                .idempotence
                .or(driver.producer.idempotence)
                .unwrap_or(false),
            compression: self
                .compression
                .or(driver.producer.compression)
                .unwrap_or(Compression::None),
            workers: self.workers.iter().map(|it| it.trim().to_owned()).collect(),
            fetch: self.fetch_limits(&driver.consumer)?,
        })
    }

    fn payload(&self, of_workload: Payload) -> Result<Payload, PlanError> {
        match (&self.payload_file, self.random_bytes_ratio) {
            (Some(path), _) => Ok(Payload::File(path.clone())),
            (None, None) => Ok(of_workload),
            (None, Some(ratio)) if (0.0..=1.0).contains(&ratio) => Ok(Payload::Random {
                random_bytes_ratio: ratio,
                pool_size: match of_workload {
                    Payload::Random { pool_size, .. } => pool_size,
                    Payload::File(_) => Payload::POOL_SIZE_DEFAULT,
                },
            }),
            (None, Some(ratio)) => Err(PlanError::RandomBytesRatio(ratio)),
        }
    }

    fn backlog_plan(&self, of_workload: Option<Backlog>) -> Result<Option<Backlog>, PlanError> {
        let Some(bytes) = self
            .backlog
            .map(|size| size.0)
            .or(of_workload.map(|it| it.bytes))
        else {
            return match self.backlog_drain_ratio {
                Some(_) => Err(PlanError::WithoutEffect {
                    flag: "backlog-drain-ratio",
                    reason: "without --backlog",
                }),
                None => Ok(None),
            };
        };
        let drain_ratio = self
            .backlog_drain_ratio
            .or(of_workload.map(|it| it.drain_ratio))
            .unwrap_or(Backlog::DRAIN_RATIO_DEFAULT);
        if !(0.0..=1.0).contains(&drain_ratio) {
            return Err(PlanError::BacklogDrainRatio(drain_ratio));
        }
        let bytes = within("backlog", bytes, BACKLOG_BYTES_MAX)?;
        Ok(Some(Backlog { bytes, drain_ratio }))
    }

    fn replay_plan(&self) -> Result<Option<ReplayPlan>, PlanError> {
        if self.replay_consumers > 0 {
            return Ok(Some(ReplayPlan {
                consumers: self.replay_consumers,
                from: self.replay_from.unwrap_or(ReplayFrom::Earliest),
                once: self.replay_once,
            }));
        }
        let flags = [
            ("replay-from", self.replay_from.is_some()),
            ("replay-once", self.replay_once),
        ];
        match flags.into_iter().find(|(_, is_given)| *is_given) {
            Some((flag, _)) => Err(PlanError::WithoutEffect {
                flag,
                reason: "without --replay-consumers",
            }),
            None => Ok(None),
        }
    }

    fn refuse_what_only_producers_need(&self) -> Result<(), PlanError> {
        let flags = [
            ("rate", !self.rate.is_empty()),
            ("hold", self.hold.is_some()),
            ("try-duration", self.try_duration.is_some()),
            ("consumers", self.consumers.is_some()),
            ("backlog", self.backlog.is_some()),
            ("partitions", self.partitions.is_some()),
        ];
        match flags.into_iter().find(|(_, is_given)| *is_given) {
            Some((flag, _)) => Err(PlanError::WithoutEffect {
                flag,
                reason: "with --producers 0, which reads a topic that is there with --replay-consumers",
            }),
            None if self.topic.is_none() => Err(PlanError::ReadsWithoutTopic),
            None => Ok(()),
        }
    }

    fn key_plan(&self, of_workload: KeyDistributor) -> Result<KeyPlan, PlanError> {
        let plan = KeyPlan {
            distributor: self.keys.unwrap_or(of_workload),
            count: self.key_count.unwrap_or(KEY_COUNT_DEFAULT),
            zipf_exponent: self.zipf_exponent.unwrap_or(ZIPF_EXPONENT_DEFAULT),
        };
        let flags = [
            (
                "key-count",
                self.key_count.is_some(),
                plan.distributor != KeyDistributor::NoKey,
            ),
            (
                "zipf-exponent",
                self.zipf_exponent.is_some(),
                plan.distributor == KeyDistributor::Zipf,
            ),
        ];
        if let Some((flag, ..)) = flags.into_iter().find(|(_, said, used)| *said && !used) {
            return Err(PlanError::WithoutKeys {
                flag,
                distributor: plan.distributor,
            });
        }
        if !(plan.zipf_exponent > 0.0 && plan.zipf_exponent <= ZIPF_EXPONENT_MAX) {
            return Err(PlanError::ZipfExponent(plan.zipf_exponent));
        }
        within("key count", u64::from(plan.count), u64::from(KEY_COUNT_MAX))?;
        if plan.count == 0 {
            return Err(PlanError::Zero { name: "key count" });
        }
        Ok(plan)
    }

    fn fetch_limits(&self, driver: &ConsumerConfig) -> Result<FetchLimits, PlanError> {
        let flag = self.fetch_bytes.map(|size| size.0);
        let fetch_bytes = flag
            .or(driver.fetch_bytes_max)
            .unwrap_or(FETCH_BYTES_DEFAULT);
        let partition_bytes = flag
            .or(driver.partition_fetch_bytes_max)
            .unwrap_or(fetch_bytes);
        let bytes_min = driver.fetch_bytes_min.unwrap_or(1);
        let wait_ms = driver.fetch_wait_ms_max.unwrap_or(FETCH_WAIT_MS_DEFAULT);
        Ok(FetchLimits {
            response_bytes_max: within("fetch size", fetch_bytes, FETCH_BYTES_MAX)? as i32,
            partition_bytes_max: within("partition fetch size", partition_bytes, FETCH_BYTES_MAX)?
                as i32,
            response_bytes_min: within("least fetch size", bytes_min, FETCH_BYTES_MAX)? as i32,
            wait_ms_max: within("fetch wait", wait_ms, FETCH_WAIT_MS_MAX)? as i32,
        })
    }
}
