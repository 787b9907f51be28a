use super::check::{parse_double, parse_int, parse_list, parse_long};
use super::error::ConfigError;
use super::overrides::Overrides;
use super::topic_settings::{TOPIC_SETTINGS, topic_setting};

/// What happens to old records of a topic. With neither, everything is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CleanupPolicy {
    pub delete: bool,
    pub compact: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimestampType {
    CreateTime,
    LogAppendTime,
}

/// How far the broker looks into compressed batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordValidation {
    Full,
    Header,
}

/// The settings that a partition of one topic acts by: every layer resolved, every value parsed. A setting whose only served
/// value is its default has no field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TopicConfig {
    pub cleanup_policy: CleanupPolicy,
    pub delete_retention_ms: u64,
    pub file_delete_delay_ms: u64,
    /// `flush.messages`: fdatasync after this many records.
    pub flush_message_count: u64,
    pub flush_ms: u64,
    pub index_interval_bytes: u64,
    pub max_compaction_lag_ms: u64,
    pub max_message_bytes: usize,
    pub message_timestamp_after_max_ms: u64,
    pub message_timestamp_before_max_ms: u64,
    pub message_timestamp_type: TimestampType,
    pub min_cleanable_dirty_ratio: f64,
    pub min_compaction_lag_ms: u64,
    pub min_insync_replica_count: u32,
    pub record_validation: RecordValidation,
    /// `None` is no limit.
    pub retention_bytes: Option<u64>,
    /// `None` is no limit.
    pub retention_ms: Option<u64>,
    pub segment_bytes: u64,
    pub segment_index_bytes: u64,
    pub segment_ms: u64,
}

impl TopicConfig {
    /// Kafka's default of `flush.messages` and `flush.ms`.
    pub const NEVER: u64 = i64::MAX as u64;

    /// The effective settings of a topic: the defaults that its broker gives it, with its overrides over them. Overrides were
    /// checked when they were stored; one that a newer version stored and this one cannot read is an error here.
    pub fn with_overrides(mut self, overrides: &Overrides) -> Result<Self, ConfigError> {
        for (name, value) in overrides.iter() {
            check_topic_value(name, value)?;
            self.set(name, value)
                .map_err(|reason| ConfigError::invalid(name, value, reason))?;
        }
        Ok(self)
    }

    /// The age at which an active segment is sealed. Compaction works on sealed segments only, so that a compacted topic's lag
    /// bounds it too (Kafka's rule).
    pub fn roll_ms(&self) -> u64 {
        if self.cleanup_policy.compact {
            self.segment_ms.min(self.max_compaction_lag_ms)
        } else {
            self.segment_ms
        }
    }

    /// Stores one value that passed its check. A name without a field has one served value only.
    pub(super) fn set(&mut self, name: &str, raw: &str) -> Result<(), String> {
        let raw = raw.trim();
        match name {
            "cleanup.policy" => {
                let has = |policy| parse_list(raw).any(|element| element == policy);
                self.cleanup_policy = CleanupPolicy {
                    delete: has("delete"),
                    compact: has("compact"),
                };
            }
            "corelog.record.validation" => {
                self.record_validation = match raw {
                    "header" => RecordValidation::Header,
                    _ => RecordValidation::Full,
                };
            }
            "delete.retention.ms" => self.delete_retention_ms = unsigned(raw)?,
            "file.delete.delay.ms" => self.file_delete_delay_ms = unsigned(raw)?,
            "flush.messages" => self.flush_message_count = unsigned(raw)?,
            "flush.ms" => self.flush_ms = unsigned(raw)?,
            "index.interval.bytes" => self.index_interval_bytes = unsigned(raw)?,
            "max.compaction.lag.ms" => self.max_compaction_lag_ms = unsigned(raw)?,
            "max.message.bytes" => self.max_message_bytes = size(raw)?,
            "message.timestamp.after.max.ms" => {
                self.message_timestamp_after_max_ms = unsigned(raw)?
            }
            "message.timestamp.before.max.ms" => {
                self.message_timestamp_before_max_ms = unsigned(raw)?
            }
            "message.timestamp.type" => {
                self.message_timestamp_type = match raw {
                    "CreateTime" => TimestampType::CreateTime,
                    _ => TimestampType::LogAppendTime,
                };
            }
            "min.cleanable.dirty.ratio" => self.min_cleanable_dirty_ratio = parse_double(raw)?,
            "min.compaction.lag.ms" => self.min_compaction_lag_ms = unsigned(raw)?,
            "min.insync.replicas" => self.min_insync_replica_count = parse_int(raw)?.unsigned_abs(),
            "retention.bytes" => self.retention_bytes = limit(raw)?,
            "retention.ms" => self.retention_ms = limit(raw)?,
            "segment.bytes" => self.segment_bytes = unsigned(raw)?,
            "segment.index.bytes" => self.segment_index_bytes = unsigned(raw)?,
            "segment.ms" => self.segment_ms = unsigned(raw)?,
            _ => {}
        }
        Ok(())
    }
}

impl Default for TopicConfig {
    /// What a topic has on a broker where nothing is set.
    fn default() -> Self {
        let mut config = Self {
            cleanup_policy: CleanupPolicy {
                delete: true,
                compact: false,
            },
            delete_retention_ms: 0,
            file_delete_delay_ms: 0,
            flush_message_count: 0,
            flush_ms: 0,
            index_interval_bytes: 0,
            max_compaction_lag_ms: 0,
            max_message_bytes: 0,
            message_timestamp_after_max_ms: 0,
            message_timestamp_before_max_ms: 0,
            message_timestamp_type: TimestampType::CreateTime,
            min_cleanable_dirty_ratio: 0.0,
            min_compaction_lag_ms: 0,
            min_insync_replica_count: 0,
            record_validation: RecordValidation::Full,
            retention_bytes: None,
            retention_ms: None,
            segment_bytes: 0,
            segment_index_bytes: 0,
            segment_ms: 0,
        };
        for setting in TOPIC_SETTINGS {
            let default = setting.default.expect("every topic setting has a default");
            config
                .set(setting.name, default)
                .expect("every default is a legal value");
        }
        config
    }
}

/// Whether a topic may have this setting with this value.
pub fn check_topic_value(name: &str, value: &str) -> Result<(), ConfigError> {
    let setting = topic_setting(name).ok_or_else(|| {
        ConfigError::unknown(name, TOPIC_SETTINGS.iter().map(|setting| setting.name))
    })?;
    setting.check_value(value)
}

fn unsigned(raw: &str) -> Result<u64, String> {
    u64::try_from(parse_long(raw)?).map_err(|_| "may not be negative".into())
}

fn size(raw: &str) -> Result<usize, String> {
    usize::try_from(parse_int(raw)?).map_err(|_| "may not be negative".into())
}

/// A limit where -1 is none.
fn limit(raw: &str) -> Result<Option<u64>, String> {
    Ok(u64::try_from(parse_long(raw)?).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::check::Check;

    fn overridden(entries: &[(&str, &str)]) -> Result<TopicConfig, ConfigError> {
        TopicConfig::default().with_overrides(&entries.iter().copied().collect())
    }

    #[test]
    fn the_defaults_are_kafkas_but_for_flush_ms() {
        let config = TopicConfig::default();
        assert_eq!(
            config.cleanup_policy,
            CleanupPolicy {
                delete: true,
                compact: false
            }
        );
        assert_eq!(config.segment_bytes, 1 << 30);
        assert_eq!(config.max_message_bytes, 1_048_588);
        assert_eq!(config.retention_ms, Some(7 * 24 * 3_600_000));
        assert_eq!(config.retention_bytes, None);
        assert_eq!(config.flush_ms, 1000);
        assert_eq!(config.flush_message_count, TopicConfig::NEVER);
        assert_eq!(config.min_insync_replica_count, 1);
    }

    /// A setting that has more than one served value but no field would be stored and ignored.
    #[test]
    fn every_setting_with_a_choice_changes_the_typed_view() {
        for setting in TOPIC_SETTINGS {
            if matches!(setting.check, Check::Only { .. }) {
                continue;
            }
            let other = match setting.name {
                "cleanup.policy" => "compact",
                "corelog.record.validation" => "header",
                "message.timestamp.type" => "LogAppendTime",
                "min.cleanable.dirty.ratio" => "0.75",
                _ => "123456789",
            };
            let changed = overridden(&[(setting.name, other)]).unwrap();
            assert_ne!(changed, TopicConfig::default(), "{}", setting.name);
        }
    }

    #[test]
    fn minus_one_is_no_limit() {
        let config = overridden(&[("retention.ms", "-1"), ("retention.bytes", "77")]).unwrap();
        assert_eq!(
            (config.retention_ms, config.retention_bytes),
            (None, Some(77))
        );
    }

    #[test]
    fn an_empty_cleanup_policy_keeps_everything() {
        let policy = overridden(&[("cleanup.policy", "")])
            .unwrap()
            .cleanup_policy;
        assert_eq!(
            policy,
            CleanupPolicy {
                delete: false,
                compact: false
            }
        );
        let policy = overridden(&[("cleanup.policy", "compact,delete")])
            .unwrap()
            .cleanup_policy;
        assert_eq!(
            policy,
            CleanupPolicy {
                delete: true,
                compact: true
            }
        );
    }

    #[test]
    fn the_compaction_lag_rolls_only_a_compacted_topic() {
        let lag = ("max.compaction.lag.ms", "5000");
        assert_eq!(overridden(&[lag]).unwrap().roll_ms(), 7 * 24 * 3_600_000);
        assert_eq!(
            overridden(&[lag, ("cleanup.policy", "compact")])
                .unwrap()
                .roll_ms(),
            5000
        );
    }

    #[test]
    fn what_the_broker_does_not_do_is_refused_with_the_reason() {
        let refused = [
            ("compression.type", "zstd"),
            ("remote.storage.enable", "true"),
            ("preallocate", "true"),
            ("unclean.leader.election.enable", "true"),
            ("local.retention.ms", "1000"),
            ("leader.replication.throttled.replicas", "*"),
        ];
        for (name, value) in refused {
            let error = overridden(&[(name, value)]).unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("{name}={value}: only")),
                "{error}"
            );
        }
        assert!(overridden(&[("compression.type", "producer")]).is_ok());
    }

    #[test]
    fn an_unknown_setting_is_refused_with_the_likely_name() {
        let error = overridden(&[("retention.mss", "1")]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "unknown setting \"retention.mss\"; did you mean retention.ms?"
        );
    }
}
