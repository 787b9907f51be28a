//! A driver: which cluster a load is put on and how its clients are set, in the OpenMessaging Benchmark's form for
//! Kafka.
//!
//! Owns: the names that a driver file may use. Must never know: the load.

mod properties;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use self::properties::{Properties, Side};
use crate::compression::Compression;
use crate::consumer::group::Assignor;
use crate::producer::frame::Acks;
use crate::settings_file::{FileError, SettingsFile};

const KEYS: &[&str] = &[
    "name",
    "driverClass",
    "replicationFactor",
    "reset",
    "topicConfig",
    "commonConfig",
    "producerConfig",
    "consumerConfig",
];

/// What a driver file sets; None where it leaves the default.
#[derive(Clone, Debug, Default)]
pub struct Driver {
    pub name: Option<String>,
    /// One address or several, separated by commas.
    pub bootstrap: Option<String>,
    pub replication_factor: Option<u16>,
    /// Handed to the broker as they are: it knows which it has.
    pub topic_config: BTreeMap<String, String>,
    pub producer: ProducerConfig,
    pub consumer: ConsumerConfig,
}

#[derive(Clone, Debug, Default)]
pub struct ProducerConfig {
    pub acks: Option<Acks>,
    pub linger: Option<Duration>,
    pub batch_bytes: Option<u64>,
    pub request_bytes: Option<u64>,
    pub in_flight_max: Option<u64>,
    pub idempotence: Option<bool>,
    pub compression: Option<Compression>,
}

#[derive(Clone, Debug, Default)]
pub struct ConsumerConfig {
    pub fetch_bytes_max: Option<u64>,
    pub partition_fetch_bytes_max: Option<u64>,
    pub fetch_bytes_min: Option<u64>,
    pub fetch_wait_ms_max: Option<u64>,
    pub group: GroupConfig,
}

/// What concerns only the members of consumer groups.
#[derive(Clone, Debug, Default)]
pub struct GroupConfig {
    pub assignor: Option<Assignor>,
    pub session_timeout: Option<Duration>,
    pub heartbeat_interval: Option<Duration>,
    /// Kafka's consumers give their `max.poll.interval.ms` as the time that the others wait for one that is to join again.
    pub rebalance_timeout: Option<Duration>,
    /// False: the consumer commits by itself after each fetch, as the OpenMessaging Benchmark's do.
    pub auto_commit: Option<bool>,
    pub auto_commit_interval: Option<Duration>,
}

impl Driver {
    pub fn read(path: &Path) -> Result<Self, FileError> {
        Self::of(&SettingsFile::read(path, KEYS)?)
    }

    fn of(file: &SettingsFile) -> Result<Self, FileError> {
        let class = file.text("driverClass")?;
        if let Some(class) = class.filter(|class| !class.to_lowercase().contains("kafka")) {
            return Err(FileError::NotSupported {
                file: file.file().to_owned(),
                key: "driverClass".to_owned(),
                reason: format!("is {class}; corelog-perf speaks Kafka's protocol only"),
            });
        }
        // Every run has a topic of its own and deletes it, so nothing is left to be reset.
        file.switch("reset")?;
        let replication_factor = file.count("replicationFactor")?;
        let mut common = file.properties("commonConfig")?;
        let mut producer = Properties::new(
            file.file(),
            "producerConfig",
            &common,
            file.properties("producerConfig")?,
        );
        let bootstrap = producer.text("bootstrap.servers")?;
        common.remove("bootstrap.servers");
        let mut consumer = Properties::new(
            file.file(),
            "consumerConfig",
            &common,
            file.properties("consumerConfig")?,
        );
        let driver = Self {
            name: file.text("name")?,
            bootstrap,
            replication_factor: replication_factor
                .map(|factor| u16::try_from(factor).unwrap_or(u16::MAX)),
            topic_config: file.properties("topicConfig")?,
            producer: ProducerConfig {
                acks: producer.acks()?,
                linger: producer.milliseconds("linger.ms")?,
                batch_bytes: producer.whole("batch.size")?,
                request_bytes: producer.whole("max.request.size")?,
                in_flight_max: producer.whole("max.in.flight.requests.per.connection")?,
                idempotence: producer.switch("enable.idempotence")?,
                compression: producer.compression()?,
            },
            consumer: ConsumerConfig {
                fetch_bytes_max: consumer.whole("fetch.max.bytes")?,
                partition_fetch_bytes_max: consumer.whole("max.partition.fetch.bytes")?,
                fetch_bytes_min: consumer.whole("fetch.min.bytes")?,
                fetch_wait_ms_max: consumer.whole("fetch.max.wait.ms")?,
                group: GroupConfig {
                    assignor: consumer.assignor()?,
                    session_timeout: consumer.milliseconds("session.timeout.ms")?,
                    heartbeat_interval: consumer.milliseconds("heartbeat.interval.ms")?,
                    rebalance_timeout: consumer.milliseconds("max.poll.interval.ms")?,
                    auto_commit: consumer.switch("enable.auto.commit")?,
                    auto_commit_interval: consumer.milliseconds("auto.commit.interval.ms")?,
                },
            },
        };
        producer.finish(Side::Producer)?;
        consumer.finish(Side::Consumer)?;
        Ok(driver)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn driver(text: &str) -> Result<Driver, FileError> {
        Driver::of(&SettingsFile::parse("kafka.yaml".to_owned(), text, KEYS)?)
    }

    const KAFKA: &str = "
name: Kafka
driverClass: io.openmessaging.benchmark.driver.kafka.KafkaBenchmarkDriver
replicationFactor: 3
reset: true
topicConfig: |
  min.insync.replicas=2
commonConfig: |
  bootstrap.servers=one:9092,two:9092
  default.api.timeout.ms=600000
producerConfig: |
  acks=all
  linger.ms=1
  batch.size=1048576
  retries=2147483647
consumerConfig: |
  auto.offset.reset=earliest
  enable.auto.commit=false
  max.partition.fetch.bytes=10485760
";

    #[test]
    fn a_driver_file_of_the_openmessaging_benchmark_is_read_whole() {
        let driver = driver(KAFKA).unwrap();
        assert_eq!(driver.bootstrap.as_deref(), Some("one:9092,two:9092"));
        assert_eq!(driver.replication_factor, Some(3));
        assert_eq!(driver.topic_config["min.insync.replicas"], "2");
        assert_eq!(driver.producer.acks, Some(Acks::All));
        assert_eq!(driver.producer.linger, Some(Duration::from_millis(1)));
        assert_eq!(driver.producer.batch_bytes, Some(1_048_576));
        assert_eq!(driver.producer.in_flight_max, None);
        assert_eq!(driver.consumer.partition_fetch_bytes_max, Some(10_485_760));
    }

    #[test]
    fn an_unknown_property_is_refused_with_its_block_and_the_nearest_known_one() {
        let message = |text| driver(text).unwrap_err().to_string();
        assert_eq!(
            message("producerConfig: 'lingr.ms=1'"),
            "kafka.yaml: 'producerConfig: lingr.ms' is not known, did you mean 'linger.ms'?"
        );
        assert_eq!(
            message("consumerConfig: 'linger.ms=1'"),
            "kafka.yaml: 'consumerConfig: linger.ms' is not known"
        );
    }

    #[test]
    fn a_known_property_that_would_be_ignored_is_refused() {
        for text in [
            "producerConfig: 'buffer.memory=1'",
            "consumerConfig: 'group.id=a'",
            "consumerConfig: 'group.protocol=consumer'",
            "commonConfig: 'security.protocol=SSL'",
        ] {
            assert!(
                matches!(driver(text), Err(FileError::NotSupported { .. })),
                "{text}"
            );
        }
    }

    #[test]
    fn what_concerns_groups_is_read_by_kafkas_names() {
        let text = "consumerConfig:\n  partition.assignment.strategy: \
                    org.apache.kafka.clients.consumer.RoundRobinAssignor\n  heartbeat.interval.ms: 500\n  \
                    enable.auto.commit: true\n  auto.commit.interval.ms: 1000\n";
        let group = driver(text).unwrap().consumer.group;
        assert_eq!(group.assignor, Some(Assignor::RoundRobin));
        assert_eq!(group.heartbeat_interval, Some(Duration::from_millis(500)));
        assert_eq!(group.auto_commit, Some(true));
        assert_eq!(group.auto_commit_interval, Some(Duration::from_secs(1)));
        let sticky = "consumerConfig: 'partition.assignment.strategy=CooperativeStickyAssignor'";
        assert!(driver(sticky).unwrap_err().to_string().contains("range"));
    }

    #[test]
    fn a_driver_of_another_system_is_refused() {
        let text = "driverClass: io.openmessaging.benchmark.driver.pulsar.PulsarBenchmarkDriver";
        assert!(driver(text).unwrap_err().to_string().contains("Pulsar"));
    }
}
