//! A load, whole and checked: what the flags say, else the driver, else the workload, else the defaults.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use crate::cli::{AcksArg, RunArgs};
use crate::client::fetch::FetchLimits;
use crate::compression::Compression;
use crate::driver::Driver;
use crate::keys::{KEY_COUNT_DEFAULT, KEY_COUNT_MAX, KeyDistributor, ZIPF_EXPONENT_DEFAULT};
use crate::payload::Payload;
use crate::producer::frame::Acks;
use crate::quantity::{Bytes, Rate};
use crate::record::STAMP_BYTES;
use crate::settings_file::FileError;
use crate::workload::{self, Workload, WorkloadError};

/// Kafka keeps five batches of an idempotent producer, so no more requests may be under way.
const IDEMPOTENT_IN_FLIGHT_MAX: usize = 5;

pub const BOOTSTRAP_DEFAULT: &str = "127.0.0.1:9092";
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
const FETCH_WAIT_MS_MAX: u64 = 60_000;
const PARTITIONS_MAX: u64 = 100_000;
const CLIENTS_MAX: u64 = 1_000;
/// Beyond it nearly every record has the first key.
const ZIPF_EXPONENT_MAX: f64 = 10.0;

/// Which keys the records have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KeyPlan {
    pub distributor: KeyDistributor,
    pub count: u32,
    pub zipf_exponent: f64,
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
    pub rates: Vec<Rate>,
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
    pub acks: Acks,
    pub linger: Duration,
    pub in_flight_max: usize,
    pub idempotence: bool,
    pub compression: Compression,
    pub fetch: FetchLimits,
}

/// What flags and files together must not say.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    #[error(transparent)]
    Driver(#[from] FileError),
    #[error("{name} must be more than 0")]
    Zero { name: &'static str },
    #[error(
        "messages of {got} bytes are too small: {STAMP_BYTES} bytes carry a record's sequence and checksum"
    )]
    MessageTooSmall { got: u64 },
    #[error("{name}: {got} is too many or too large, at most {max}")]
    TooLarge {
        name: &'static str,
        got: u64,
        max: u64,
    },
    #[error("idempotence needs acks=all, as in --idempotence --acks all")]
    IdempotenceNeedsAcksAll,
    #[error(
        "idempotence allows at most {IDEMPOTENT_IN_FLIGHT_MAX} requests under way, not {got}; --in-flight sets them"
    )]
    IdempotenceInFlight { got: usize },
    #[error("--rate {percent}% needs 'max' before it, as in --rate max,{percent}%")]
    PercentWithoutMax { percent: f64 },
    #[error(
        "the workload's producerRate 0 asks for a search of the highest rate, which is not supported; say --rate, as in --rate max"
    )]
    RateSearch,
    #[error("--{flag} has no effect with keys of kind {distributor:?}")]
    WithoutKeys {
        flag: &'static str,
        distributor: KeyDistributor,
    },
    #[error("--zipf-exponent must be more than 0 and at most {ZIPF_EXPONENT_MAX}, not {0}")]
    ZipfExponent(f64),
    #[error("the broker address '{0}' is not HOST:PORT")]
    Bootstrap(String),
    #[error("--random-bytes-ratio must be from 0 to 1, not {0}")]
    RandomBytesRatio(f64),
}

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
        let rates = match (self.rate.is_empty(), load.producer_rate) {
            (false, _) => self.rate.clone(),
            (true, Some(rate)) => vec![rate],
            (true, None) => return Err(PlanError::RateSearch),
        };
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
        Ok(LoadPlan {
            workload: load.name,
            driver: self
                .driver
                .as_ref()
                .map(|path| driver.name.unwrap_or_else(|| path.display().to_string())),
            bootstrap: self
                .bootstrap
                .clone()
                .or(driver.bootstrap)
                .unwrap_or_else(|| BOOTSTRAP_DEFAULT.to_owned()),
            replication: self.replication.or(driver.replication_factor).unwrap_or(1),
            topic_settings: topic_settings.into_iter().collect(),
            warmup: self.warmup.or(load.warmup).unwrap_or(WARMUP_DEFAULT),
            duration: self
                .duration
                .or(load.test_duration)
                .unwrap_or(DURATION_DEFAULT),
            rates,
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
            producers: self.producers.unwrap_or(load.producers_per_topic),
            subscriptions: self.subscriptions.unwrap_or(load.subscriptions_per_topic),
            consumers: self.consumers.unwrap_or(load.consumer_per_subscription),
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

    fn fetch_limits(
        &self,
        driver: &crate::driver::ConsumerConfig,
    ) -> Result<FetchLimits, PlanError> {
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

impl LoadPlan {
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
        named([
            ("fetch.max.bytes", fetch.response_bytes_max.to_string()),
            (
                "max.partition.fetch.bytes",
                fetch.partition_bytes_max.to_string(),
            ),
            ("fetch.min.bytes", fetch.response_bytes_min.to_string()),
            ("fetch.max.wait.ms", fetch.wait_ms_max.to_string()),
        ])
    }

    fn check(&self) -> Result<(), PlanError> {
        let of_all_topics = |count: u32| u64::from(self.topics) * u64::from(count);
        let readers = of_all_topics(self.subscriptions).saturating_mul(u64::from(self.consumers));
        within("partitions", of_all_topics(self.partitions), PARTITIONS_MAX)?;
        within("producers", of_all_topics(self.producers), CLIENTS_MAX)?;
        within("consumers", readers, CLIENTS_MAX)?;
        let not_zero = [
            ("duration", self.duration.is_zero()),
            ("topics", self.topics == 0),
            ("partitions", self.partitions == 0),
            ("producers", self.producers == 0),
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
        for rate in &self.rates {
            match rate {
                Rate::Max => max_known = true,
                Rate::PercentOfMax(percent) if !max_known => {
                    return Err(PlanError::PercentWithoutMax { percent: *percent });
                }
                _ => {}
            }
        }
        self.bootstrap.split(',').try_for_each(address)
    }
}

fn named<const N: usize>(settings: [(&str, String); N]) -> BTreeMap<String, String> {
    settings
        .map(|(name, value)| (name.to_owned(), value))
        .into()
}

/// One HOST:PORT of the list.
fn address(text: &str) -> Result<(), PlanError> {
    let text = text.trim();
    let host_and_port = text
        .rsplit_once(':')
        .map(|(host, port)| (host, port.parse::<u16>()));
    match host_and_port {
        Some((host, Ok(_))) if !host.is_empty() => Ok(()),
        _ if text.parse::<SocketAddr>().is_ok() => Ok(()),
        _ => Err(PlanError::Bootstrap(text.to_owned())),
    }
}

fn within(name: &'static str, got: u64, max: u64) -> Result<u64, PlanError> {
    if got > max {
        return Err(PlanError::TooLarge { name, got, max });
    }
    Ok(got)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Command};

    fn plan(arguments: &[&str]) -> Result<LoadPlan, PlanError> {
        let cli = Cli::try_parse_from(["corelog-perf", "run"].iter().chain(arguments))
            .expect("clap accepts it");
        let Command::Run(run) = cli.command else {
            panic!("another command")
        };
        run.plan()
    }

    #[test]
    fn flags_override_the_workload() {
        let plan = plan(&[
            "1-topic-16-partitions-1kb",
            "--partitions",
            "3",
            "--batch-bytes",
            "1MB",
            "--rate",
            "max,20%",
        ])
        .unwrap();
        assert_eq!(
            (plan.partitions, plan.message_bytes, plan.batch_bytes_max),
            (3, 1024, 1_000_000)
        );
        assert_eq!(plan.rates, [Rate::Max, Rate::PercentOfMax(20.0)]);
    }

    #[test]
    fn what_cannot_be_run_is_refused_with_its_flag() {
        assert!(matches!(plan(&["no-such"]), Err(PlanError::Workload(_))));
        assert!(matches!(
            plan(&["--message-size", "31"]),
            Err(PlanError::MessageTooSmall { got: 31 })
        ));
        assert!(matches!(
            plan(&["--partitions", "0"]),
            Err(PlanError::Zero { name: "partitions" })
        ));
        assert!(matches!(
            plan(&["--duration", "0s"]),
            Err(PlanError::Zero { name: "duration" })
        ));
        assert!(matches!(
            plan(&["--idempotence"]),
            Err(PlanError::IdempotenceNeedsAcksAll)
        ));
        assert!(matches!(
            plan(&["--idempotence", "--acks", "all", "--in-flight", "6"]),
            Err(PlanError::IdempotenceInFlight { got: 6 })
        ));
        assert!(matches!(
            plan(&["--rate", "20%,max"]),
            Err(PlanError::PercentWithoutMax { .. })
        ));
        assert!(matches!(
            plan(&["--batch-bytes", "1GB"]),
            Err(PlanError::TooLarge {
                name: "batch size",
                ..
            })
        ));
        assert!(matches!(
            plan(&["--bootstrap", "localhost"]),
            Err(PlanError::Bootstrap(_))
        ));
    }

    #[test]
    fn a_key_flag_that_would_have_no_effect_is_refused() {
        let zipf = plan(&[
            "--keys",
            "zipf",
            "--key-count",
            "7",
            "--zipf-exponent",
            "1.5",
        ])
        .unwrap();
        assert_eq!((zipf.keys.count, zipf.keys.zipf_exponent), (7, 1.5));
        for arguments in [
            &["--key-count", "7"][..],
            &["--keys", "uniform", "--zipf-exponent", "1"],
        ] {
            assert!(matches!(
                plan(arguments),
                Err(PlanError::WithoutKeys { .. })
            ));
        }
        assert!(plan(&["--keys", "uniform", "--key-count", "0"]).is_err());
        assert!(plan(&["--keys", "zipf", "--zipf-exponent", "NaN"]).is_err());
    }

    #[test]
    fn the_driver_overrides_the_defaults_and_a_flag_the_driver() {
        let file =
            std::env::temp_dir().join(format!("corelog-perf-driver-{}.yaml", std::process::id()));
        let text = "name: Kafka\nreplicationFactor: 3\ncommonConfig: bootstrap.servers=one:9092,two:9092\n\
                    producerConfig: |\n  acks=all\n  linger.ms=1\n  batch.size=2000\n\
                    consumerConfig: fetch.max.bytes=3000\ntopicConfig: min.insync.replicas=2\n";
        std::fs::write(&file, text).expect("the temporary directory takes a file");
        let path = file.to_str().expect("its name is UTF-8");
        let merged = plan(&["--driver", path, "--linger-ms", "7", "--fetch-bytes", "1MB"]);
        std::fs::remove_file(&file).expect("it was just written");
        let merged = merged.unwrap();
        assert_eq!(merged.driver.as_deref(), Some("Kafka"));
        assert_eq!(merged.bootstrap, "one:9092,two:9092");
        assert_eq!((merged.acks, merged.replication), (Acks::All, 3));
        assert_eq!(merged.linger, Duration::from_millis(7));
        assert_eq!(merged.batch_bytes_max, 2000);
        assert_eq!(merged.fetch.response_bytes_max, 1_000_000);
        assert_eq!(
            merged.topic_settings,
            [("min.insync.replicas".to_owned(), "2".to_owned())]
        );
        assert_eq!((merged.in_flight_max, merged.idempotence), (5, false));
    }
}
