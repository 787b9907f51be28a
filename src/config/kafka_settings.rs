//! Settings of Apache Kafka that this broker has not, so that a `server.properties` of Kafka's starts it.

/// What becomes of a setting of Kafka's that is not in `BROKER_SETTINGS`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// Whatever it says makes no difference here: what it tunes is not there, or needs no tuning.
    NoEffect,
    /// Only this value says what this broker does. Another one is refused, since who set it relies on it.
    Only {
        value: &'static str,
        reason: &'static str,
    },
    /// Who set it relies on something that is not there: refused, whatever it says.
    NotServed(&'static str),
}

use Meaning::{NoEffect, NotServed, Only};

const NO_POLICIES: &str = "no classes are loaded: nothing would ask this policy";

/// Names, or beginnings of names that end in a dot. The first one that matches counts.
const KAFKA_SETTINGS: &[(&str, Meaning)] = &[
    ("add.partitions.to.txn.", NoEffect),
    ("alter.config.policy.class.name", NotServed(NO_POLICIES)),
    ("alter.log.dirs.", NoEffect),
    (
        "authorizer.class.name",
        NotServed("there are no ACLs yet: every client may do everything"),
    ),
    ("auto.leader.rebalance.enable", NoEffect),
    ("background.threads", NoEffect),
    ("broker.heartbeat.interval.ms", NoEffect),
    ("broker.session.timeout.ms", NoEffect),
    ("client.quota.callback.class", NotServed(NO_POLICIES)),
    (
        "config.providers",
        NotServed("values are taken as they are written, not from a provider"),
    ),
    ("connection.failed.authentication.delay.ms", NoEffect),
    ("connections.max.reauth.ms", NoEffect),
    ("controlled.shutdown.", NoEffect),
    ("controller.", NoEffect),
    ("cordoned.log.dirs", NoEffect),
    ("create.topic.policy.class.name", NotServed(NO_POLICIES)),
    ("delegation.token.", NoEffect),
    ("delete.records.purgatory.", NoEffect),
    ("early.start.listeners", NoEffect),
    ("errors.deadletterqueue.", NoEffect),
    ("fetch.purgatory.", NoEffect),
    ("follower.", NoEffect),
    ("group.consumer.", NoEffect),
    ("group.coordinator.", NoEffect),
    ("group.share.", NoEffect),
    ("group.streams.", NoEffect),
    ("initial.broker.registration.timeout.ms", NoEffect),
    ("inter.broker.listener.name", NoEffect),
    ("kafka.metrics.", NoEffect),
    ("leader.", NoEffect),
    (
        "log.cleaner.enable",
        Only {
            value: "true",
            reason: "topics with cleanup.policy=compact are always compacted",
        },
    ),
    ("log.cleaner.io.buffer.", NoEffect),
    ("log.cleaner.threads", NoEffect),
    ("log.dir.failure.timeout.ms", NoEffect),
    ("log.flush.scheduler.interval.ms", NoEffect),
    ("log.flush.start.offset.checkpoint.interval.ms", NoEffect),
    ("log.initial.task.delay.ms", NoEffect),
    ("log.local.", NoEffect),
    ("log.remote.", NoEffect),
    ("log.roll.jitter.", NoEffect),
    ("max.connection.creation.rate", NoEffect),
    ("max.connections.per.ip", NoEffect),
    ("max.connections.per.ip.overrides", NoEffect),
    ("max.incremental.fetch.session.cache.slots", NoEffect),
    ("metadata.", NoEffect),
    ("metric.", NoEffect),
    ("metrics.", NoEffect),
    ("num.io.threads", NoEffect),
    ("num.network.threads", NoEffect),
    ("num.recovery.threads.per.data.dir", NoEffect),
    ("num.replica.", NoEffect),
    ("offsets.commit.timeout.ms", NoEffect),
    ("offsets.load.buffer.size", NoEffect),
    ("offsets.topic.compression.codec", NoEffect),
    ("password.encoder.", NoEffect),
    ("principal.builder.class", NoEffect),
    ("process.roles", NoEffect),
    ("producer.id.expiration.check.interval.ms", NoEffect),
    ("producer.purgatory.", NoEffect),
    ("queued.max.", NoEffect),
    ("quota.window.", NoEffect),
    (
        "remote.log.storage.system.enable",
        Only {
            value: "false",
            reason: "there is no remote storage",
        },
    ),
    ("remote.", NoEffect),
    ("replica.", NoEffect),
    ("replication.quota.", NoEffect),
    ("request.timeout.ms", NoEffect),
    ("sasl.", NoEffect),
    ("security.inter.broker.protocol", NoEffect),
    ("security.providers", NoEffect),
    ("share.", NoEffect),
    ("socket.connection.setup.", NoEffect),
    ("socket.listen.backlog.size", NoEffect),
    ("socket.receive.buffer.bytes", NoEffect),
    ("socket.send.buffer.bytes", NoEffect),
    ("ssl.", NoEffect),
    (
        "super.users",
        NotServed("there are no ACLs yet: every client may do everything"),
    ),
    ("telemetry.", NoEffect),
    ("transaction.", NoEffect),
    ("transactional.id.expiration.ms", NoEffect),
    (
        "zookeeper.connect",
        NotServed("there is no ZooKeeper: the broker keeps its own metadata"),
    ),
];

/// What becomes of the setting, if it is one of Kafka's.
pub(super) fn kafka_setting(name: &str) -> Option<Meaning> {
    KAFKA_SETTINGS
        .iter()
        .find(|(pattern, _)| {
            *pattern == name || pattern.ends_with('.') && name.starts_with(pattern)
        })
        .map(|(_, meaning)| *meaning)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::broker_settings::broker_setting;

    #[test]
    fn a_setting_that_is_served_is_not_among_those_without_effect() {
        for (pattern, _) in KAFKA_SETTINGS {
            assert!(broker_setting(pattern).is_none(), "{pattern}");
        }
    }

    #[test]
    fn a_beginning_ends_in_a_dot_and_a_name_does_not() {
        assert_eq!(kafka_setting("sasl.enabled.mechanisms"), Some(NoEffect));
        assert_eq!(kafka_setting("sasl"), None);
        assert_eq!(kafka_setting("num.io.threads"), Some(NoEffect));
        assert_eq!(kafka_setting("num.io.threads.max"), None);
        assert!(matches!(
            kafka_setting("remote.log.storage.system.enable"),
            Some(Only { value: "false", .. })
        ));
    }
}
