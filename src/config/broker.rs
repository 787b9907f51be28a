use std::path::PathBuf;

use super::alter::check_broker_value;
use super::broker_settings::broker_setting;
use super::check::{parse_boolean, parse_double, parse_int, parse_long};
use super::cores::Cores;
use super::error::ConfigError;
use super::layers::Layers;
use super::listener::{HostPort, Listener, ListenerSetting, parse_listeners};
use super::overrides::Overrides;
use super::topic::TopicConfig;
use super::topic_settings::TOPIC_SETTINGS;
use crate::model::NodeId;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    Human,
    Json,
}

/// What consumer groups and their committed offsets are held to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupConfig {
    pub initial_rebalance_delay_ms: u64,
    pub max_session_timeout_ms: i32,
    pub max_size: usize,
    pub min_session_timeout_ms: i32,
    pub offset_metadata_max_bytes: usize,
    pub offsets_partition_count: i32,
    pub offsets_retention_check_interval_ms: u64,
    pub offsets_retention_ms: u64,
    pub offsets_segment_bytes: u64,
}

/// The settings that this broker acts by: the properties file and `--set`, then what was set online for all brokers, then what
/// was set online for this one; every value checked and parsed. Immutable: an online change makes a new one.
#[derive(Clone, Debug, PartialEq)]
pub struct BrokerConfig {
    pub admin_listener: HostPort,
    pub auto_create_topics: bool,
    pub cleaner_backoff_ms: u64,
    pub cleaner_dedupe_buffer_bytes: usize,
    pub cleaner_io_bytes_per_second: f64,
    pub connections_max: u32,
    pub connections_max_idle_ms: u64,
    pub cores: Cores,
    pub cores_pinned: bool,
    pub default_replication_factor: i16,
    pub delete_topics: bool,
    pub fetch_max_bytes: usize,
    pub groups: GroupConfig,
    /// At least one.
    pub listeners: Vec<Listener>,
    pub log_dir: PathBuf,
    pub log_format: LogFormat,
    /// `None`: a sixteenth of the machine's memory.
    pub log_tail_cache_bytes: Option<u64>,
    pub metadata_snapshot_interval_bytes: u64,
    pub node_id: NodeId,
    pub num_partitions: i32,
    pub producer_id_expiration_ms: u64,
    pub rack: Option<String>,
    pub request_max_bytes: usize,
    pub request_partition_count_max: usize,
    pub request_timeout_ms: u64,
    pub checkpoint_interval_ms: u64,
    /// `log.retention.clock.jump.hold.ms`
    pub clock_jump_hold_ms: u64,
    /// Used shares of the log directory's file system, from 0 to 1.
    pub disk_high_watermark: f64,
    pub disk_reserve_watermark: f64,
    pub retention_check_interval_ms: u64,
    /// What a topic has that overrides nothing.
    pub topic_defaults: TopicConfig,
    layers: Layers,
}

impl BrokerConfig {
    /// From the properties file and `--set` alone. They were checked one by one (`load`); what two settings must agree on is
    /// checked here.
    pub fn from_file_settings(file: Overrides) -> Result<Self, ConfigError> {
        for (name, value) in file.iter() {
            check_broker_value(name, value)?;
        }
        Self::from_layers(Layers {
            file,
            ..Layers::default()
        })
    }

    /// The same broker with other online settings: `cluster` those of all brokers, `node` those of this one.
    pub fn with_online(&self, cluster: &Overrides, node: &Overrides) -> Result<Self, ConfigError> {
        let layers = Layers {
            node: node.clone(),
            cluster: cluster.clone(),
            file: self.layers.file.clone(),
        };
        Self::from_layers(layers)
    }

    /// The effective settings of a topic with these overrides.
    pub fn topic_config(&self, overrides: &Overrides) -> Result<TopicConfig, ConfigError> {
        self.topic_defaults.with_overrides(overrides)
    }

    pub(super) fn layers(&self) -> &Layers {
        &self.layers
    }

    fn from_layers(layers: Layers) -> Result<Self, ConfigError> {
        let values = Values { layers: &layers };
        let protocol_map = values
            .text("listener.security.protocol.map")
            .unwrap_or_default();
        let bound = values.text("listeners").unwrap_or_default();
        let advertised = values.text("advertised.listeners");
        let listeners = parse_listeners(&bound, advertised.as_deref(), &protocol_map).map_err(
            |(setting, reason)| {
                let value = match setting {
                    ListenerSetting::Listeners => &bound,
                    ListenerSetting::Advertised => advertised.as_deref().unwrap_or_default(),
                };
                ConfigError::invalid(setting.name(), value, reason)
            },
        )?;
        let disk_high_watermark = values.parsed("log.dirs.high.watermark", parse_double)?;
        let disk_reserve_watermark = values.parsed("log.dirs.reserve.watermark", parse_double)?;
        Ok(Self {
            admin_listener: values.parsed("admin.listener", HostPort::parse)?,
            auto_create_topics: values.parsed("auto.create.topics.enable", parse_boolean)?,
            cleaner_backoff_ms: values.number("log.cleaner.backoff.ms")?,
            cleaner_dedupe_buffer_bytes: values.number("log.cleaner.dedupe.buffer.size")?,
            cleaner_io_bytes_per_second: values
                .parsed("log.cleaner.io.max.bytes.per.second", parse_double)?,
            connections_max: values.number("max.connections")?,
            connections_max_idle_ms: values.number("connections.max.idle.ms")?,
            cores: values.parsed("cores", Cores::parse)?,
            cores_pinned: values.parsed("cores.pinned", parse_boolean)?,
            default_replication_factor: values.number("default.replication.factor")?,
            delete_topics: values.parsed("delete.topic.enable", parse_boolean)?,
            fetch_max_bytes: values.number("fetch.max.bytes")?,
            groups: GroupConfig {
                initial_rebalance_delay_ms: values.number("group.initial.rebalance.delay.ms")?,
                max_session_timeout_ms: values.number("group.max.session.timeout.ms")?,
                max_size: values.number("group.max.size")?,
                min_session_timeout_ms: values.number("group.min.session.timeout.ms")?,
                offset_metadata_max_bytes: values.number("offset.metadata.max.bytes")?,
                offsets_partition_count: values.number("offsets.topic.num.partitions")?,
                offsets_retention_check_interval_ms: values
                    .number("offsets.retention.check.interval.ms")?,
                offsets_retention_ms: values.number::<u64>("offsets.retention.minutes")? * 60_000,
                offsets_segment_bytes: values.number("offsets.topic.segment.bytes")?,
            },
            listeners,
            log_dir: values.text("log.dirs").unwrap_or_default().into(),
            log_format: match values.text("log.format").as_deref() {
                Some("json") => LogFormat::Json,
                _ => LogFormat::Human,
            },
            log_tail_cache_bytes: values.optional_number("log.tail.cache.bytes")?,
            metadata_snapshot_interval_bytes: values
                .number("metadata.log.max.record.bytes.between.snapshots")?,
            node_id: NodeId(values.parsed("node.id", parse_int)?),
            num_partitions: values.number("num.partitions")?,
            producer_id_expiration_ms: values.number("producer.id.expiration.ms")?,
            rack: values.text("broker.rack"),
            request_max_bytes: values.number("socket.request.max.bytes")?,
            request_partition_count_max: values.number("max.request.partition.size.limit")?,
            request_timeout_ms: values.number("socket.request.timeout.ms")?,
            checkpoint_interval_ms: values.number("log.flush.offset.checkpoint.interval.ms")?,
            clock_jump_hold_ms: values.number("log.retention.clock.jump.hold.ms")?,
            disk_high_watermark,
            disk_reserve_watermark: disk_reserve_watermark.max(disk_high_watermark),
            retention_check_interval_ms: values.number("log.retention.check.interval.ms")?,
            topic_defaults: topic_defaults(&layers)?,
            layers,
        })
    }
}

impl Default for BrokerConfig {
    /// A broker where nothing is set.
    fn default() -> Self {
        Self::from_file_settings(Overrides::default()).expect("the defaults are legal")
    }
}

fn topic_defaults(layers: &Layers) -> Result<TopicConfig, ConfigError> {
    let mut config = TopicConfig::default();
    for setting in TOPIC_SETTINGS {
        if let Some(value) = layers.topic_effective(setting) {
            config
                .set(setting.name, &value)
                .map_err(|reason| ConfigError::invalid(setting.name, &value, reason))?;
        }
    }
    Ok(config)
}

/// Reads effective values of the table's settings. A name that the table has not is a bug of this file.
struct Values<'a> {
    layers: &'a Layers,
}

impl Values<'_> {
    fn text(&self, name: &str) -> Option<String> {
        let setting =
            broker_setting(name).expect("BROKER_SETTINGS has the settings that BrokerConfig reads");
        self.layers
            .effective(setting)
            .map(|value| value.trim().to_owned())
    }

    fn parsed<T>(
        &self,
        name: &str,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Result<T, ConfigError> {
        let raw = self
            .text(name)
            .ok_or_else(|| ConfigError::NoValue(name.into()))?;
        parse(&raw).map_err(|reason| ConfigError::invalid(name, &raw, reason))
    }

    fn number<T: TryFrom<i64>>(&self, name: &str) -> Result<T, ConfigError> {
        self.parsed(name, |raw| {
            T::try_from(parse_long(raw)?).map_err(|_| "is out of range".into())
        })
    }

    fn optional_number<T: TryFrom<i64>>(&self, name: &str) -> Result<Option<T>, ConfigError> {
        match self.text(name) {
            Some(_) => self.number(name).map(Some),
            None => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broker(entries: &[(&str, &str)]) -> Result<BrokerConfig, ConfigError> {
        BrokerConfig::from_file_settings(entries.iter().copied().collect())
    }

    #[test]
    fn nothing_set_makes_a_broker_on_loopback() {
        let config = BrokerConfig::default();
        assert_eq!(config.listeners[0].bind.to_string(), "127.0.0.1:9092");
        assert_eq!(config.admin_listener.to_string(), "127.0.0.1:9644");
        assert_eq!(config.log_dir, PathBuf::from("./corelog-data"));
        assert_eq!(
            (config.num_partitions, config.auto_create_topics),
            (1, true)
        );
        assert_eq!((config.log_tail_cache_bytes, config.rack), (None, None));
    }

    #[test]
    fn log_dirs_goes_before_log_dir() {
        assert_eq!(
            broker(&[("log.dir", "/a")]).unwrap().log_dir,
            PathBuf::from("/a")
        );
        assert_eq!(
            broker(&[("log.dir", "/a"), ("log.dirs", "/b")])
                .unwrap()
                .log_dir,
            PathBuf::from("/b")
        );
    }

    #[test]
    fn the_reserve_begins_no_earlier_than_produce_is_refused() {
        let config = broker(&[("log.dirs.high.watermark", "0.99")]).unwrap();
        assert_eq!(config.disk_reserve_watermark, 0.99);
        let config = broker(&[("log.dirs.high.watermark", "1")]).unwrap();
        assert_eq!(config.disk_reserve_watermark, 1.0);
    }

    #[test]
    fn topics_inherit_what_the_broker_says() {
        let config = broker(&[
            ("log.segment.bytes", "2097152"),
            ("log.retention.hours", "1"),
        ])
        .unwrap();
        assert_eq!(config.topic_defaults.segment_bytes, 2 << 20);
        assert_eq!(config.topic_defaults.retention_ms, Some(3_600_000));
        let overrides = [("segment.bytes", "1048576")].into_iter().collect();
        let topic = config.topic_config(&overrides).unwrap();
        assert_eq!(
            (topic.segment_bytes, topic.retention_ms),
            (1 << 20, Some(3_600_000))
        );
    }

    #[test]
    fn an_online_change_makes_another_view_and_can_be_taken_back() {
        let config = broker(&[("log.flush.interval.ms", "50")]).unwrap();
        let cluster = [("log.flush.interval.ms", "60")].into_iter().collect();
        let changed = config.with_online(&cluster, &Overrides::default()).unwrap();
        assert_eq!(changed.topic_defaults.flush_ms, 60);
        let back = changed
            .with_online(&Overrides::default(), &Overrides::default())
            .unwrap();
        assert_eq!(back, config);
    }

    #[test]
    fn a_broker_that_cannot_be_reached_is_refused() {
        let error = broker(&[("listeners", "PLAINTEXT://0.0.0.0:9092")])
            .unwrap_err()
            .to_string();
        assert!(error.contains("advertised.listeners"), "{error}");
        let entries = [
            ("listeners", "PLAINTEXT://0.0.0.0:9092"),
            ("advertised.listeners", "PLAINTEXT://b:9092"),
        ];
        assert_eq!(
            broker(&entries).unwrap().listeners[0]
                .advertised
                .to_string(),
            "b:9092"
        );
    }

    #[test]
    fn a_refusal_names_the_setting_the_value_and_the_reason() {
        let error = |name, value| broker(&[(name, value)]).unwrap_err().to_string();
        assert_eq!(
            error("num.partitions", "0"),
            "num.partitions=0: must be from 1 to 100000"
        );
        assert_eq!(
            error("num.partition", "1"),
            "unknown setting \"num.partition\"; did you mean num.partitions?"
        );
        assert!(error("default.replication.factor", "3").contains("one replica"));
    }
}
