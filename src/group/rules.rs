use std::time::Duration;

/// The settings that a coordinator follows, each under the name of its setting; their defaults are Kafka's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupRules {
    /// `group.min.session.timeout.ms`
    pub min_session_timeout_ms: i32,
    /// `group.max.session.timeout.ms`
    pub max_session_timeout_ms: i32,
    /// `group.initial.rebalance.delay.ms`
    pub initial_rebalance_delay: Duration,
    /// `group.max.size`: members of one group. More: GROUP_MAX_SIZE_REACHED.
    pub max_size: usize,
    /// `offset.metadata.max.bytes`. More: OFFSET_METADATA_TOO_LARGE.
    pub offset_metadata_max_bytes: usize,
    /// `offsets.retention.minutes`
    pub offsets_retention: Duration,
    /// `offsets.retention.check.interval.ms`
    pub offsets_retention_check_interval: Duration,
}

impl Default for GroupRules {
    fn default() -> Self {
        Self {
            min_session_timeout_ms: 6_000,
            max_session_timeout_ms: 1_800_000,
            initial_rebalance_delay: Duration::from_millis(3_000),
            max_size: i32::MAX as usize,
            offset_metadata_max_bytes: 4_096,
            offsets_retention: Duration::from_secs(7 * 24 * 3_600),
            offsets_retention_check_interval: Duration::from_secs(600),
        }
    }
}
