use super::check::{Check, parse_double};
use super::cores;
use super::listener;
use super::setting::{Setting, Synonym, Unit};
use super::topic_settings::{INFLATION_BOUND, NO_RECOMPRESSION, NO_REPLICATION};
use crate::model::limits::PARTITIONS_PER_TOPIC_MAX;

/// The settings of a broker: those that this broker honours, under Kafka's names where Kafka has one. The defaults are Kafka's
/// unless the doc says so. In the order of their names.
pub const BROKER_SETTINGS: &[Setting] = &[
    Setting::string("admin.listener", "127.0.0.1:9644")
        .check(Check::Form(listener::check_host_port))
        .doc("Where metrics and health are served over HTTP. Kafka has no such setting."),
    Setting::list("advertised.listeners", "")
        .unset()
        .high()
        .check(Check::Form(listener::check_listeners))
        .doc("What clients are told to connect to, as listeners is written. Unset: what listeners says."),
    Setting::boolean("auto.create.topics.enable", "true")
        .high()
        .doc("Whether asking for the metadata of an unknown topic creates it."),
    Setting::string("broker.rack", "").unset().doc("The rack, or zone, of this broker."),
    Setting::int("compression.gzip.level", "-1")
        .fixed(NO_RECOMPRESSION)
        .online()
        .doc("The default of the topics' compression.gzip.level."),
    Setting::int("compression.lz4.level", "9")
        .fixed(NO_RECOMPRESSION)
        .online()
        .doc("The default of the topics' compression.lz4.level."),
    Setting::string("compression.type", "producer")
        .high()
        .fixed(NO_RECOMPRESSION)
        .online()
        .doc("The default of the topics' compression.type."),
    Setting::int("compression.zstd.level", "3")
        .fixed(NO_RECOMPRESSION)
        .online()
        .doc("The default of the topics' compression.zstd.level."),
    Setting::long("connections.max.idle.ms", "600000")
        .at_least(1)
        .ms()
        .doc("How long a connection may be silent before it is closed."),
    Setting::string("corelog.record.validation", "full")
        .check(Check::OneOf(&["full", "header"]))
        .online()
        .doc("The default of the topics' corelog.record.validation. Kafka has no such setting."),
    Setting::string("cores", "auto").check(Check::Form(cores::check_cores)).doc(
        "The cores that run shards: auto is every core that the process may use, less one for the controller from 4 cores up; or \
         a list such as 0-3,6. Kafka has no such setting.",
    ),
    Setting::boolean("cores.pinned", "true")
        .doc("Whether each shard's thread is bound to its core. Off where brokers share a machine. Kafka has no such setting."),
    Setting::int("default.replication.factor", "1")
        .fixed(NO_REPLICATION)
        .doc("How many replicas a partition has where its topic does not say."),
    Setting::boolean("delete.topic.enable", "true").high().doc("Whether topics may be deleted by clients."),
    Setting::int("fetch.max.bytes", "57671680")
        .at_least(1024)
        .bytes()
        .doc("The most bytes that one fetch response holds, save that the first batch is sent whole."),
    Setting::list("group.coordinator.rebalance.protocols", "classic")
        .fixed("the classic protocol is the one that is served")
        .doc("The protocols by which consumers may form groups. Kafka's default also has consumer and streams."),
    Setting::int("group.initial.rebalance.delay.ms", "3000")
        .at_least(0)
        .ms()
        .online()
        .doc("How long the first rebalance of an empty group waits for more members to come."),
    Setting::int("group.max.session.timeout.ms", "1800000")
        .at_least(1)
        .ms()
        .online()
        .doc("The longest session time-out that a member may ask for."),
    Setting::int("group.max.size", "2147483647")
        .at_least(1)
        .online()
        .doc("The most members that one group may have."),
    Setting::int("group.min.session.timeout.ms", "6000")
        .at_least(1)
        .ms()
        .online()
        .doc("The shortest session time-out that a member may ask for."),
    Setting::string("listener.security.protocol.map", "PLAINTEXT:PLAINTEXT")
        .check(Check::Form(listener::check_protocol_map))
        .doc("The protocol of each listener name, as NAME:PLAINTEXT; it is needed where listeners has names other than PLAINTEXT."),
    Setting::list("listeners", "PLAINTEXT://127.0.0.1:9092").high().check(Check::Form(listener::check_listeners)).doc(
        "Where clients are served, as PLAINTEXT://host:port; several are separated by commas. Kafka's default is every interface; \
         here it is loopback.",
    ),
    Setting::long("log.cleaner.backoff.ms", "15000")
        .at_least(1)
        .ms()
        .online()
        .doc("How often the broker looks for logs to compact when it has found none."),
    Setting::long("log.cleaner.dedupe.buffer.size", "134217728")
        .at_least(1024 * 1024)
        .bytes()
        .online()
        .doc(
            "The memory, over all shards, for the keys of the logs that are being compacted, 24 bytes for each. A log with more keys is \
             compacted in several passes.",
        ),
    Setting::long("log.cleaner.delete.retention.ms", "86400000")
        .at_least(0)
        .ms()
        .online()
        .doc("The default of the topics' delete.retention.ms."),
    Setting::double("log.cleaner.io.max.bytes.per.second", "1.7976931348623157E308")
        .check(Check::Form(check_rate))
        .online()
        .doc("The most that compaction reads and writes in a second, over all shards."),
    Setting::long("log.cleaner.max.compaction.lag.ms", "9223372036854775807")
        .at_least(1)
        .ms()
        .online()
        .doc("The default of the topics' max.compaction.lag.ms."),
    Setting::double("log.cleaner.min.cleanable.ratio", "0.5")
        .check(Check::RatioUpTo1)
        .online()
        .doc("The default of the topics' min.cleanable.dirty.ratio."),
    Setting::long("log.cleaner.min.compaction.lag.ms", "0")
        .at_least(0)
        .ms()
        .online()
        .doc("The default of the topics' min.compaction.lag.ms."),
    Setting::list("log.cleanup.policy", "delete")
        .check(Check::ElementsOf(&["compact", "delete"]))
        .online()
        .doc("The default of the topics' cleanup.policy."),
    Setting::list("log.dir", "./corelog-data")
        .high()
        .check(Check::Form(check_directory))
        .doc("The directory of all data. Kafka's default is /tmp/kafka-logs."),
    Setting::list("log.dirs", "")
        .unset()
        .high()
        .check(Check::Form(check_directory))
        .synonyms(&[Synonym::of("log.dir")])
        .doc("The same as log.dir, and before it. One directory is served, not a list."),
    Setting::double("log.dirs.high.watermark", "0.95").check(Check::RatioUpTo1).online().doc(
        "The used share of the log directory's file system from which produce is refused with KAFKA_STORAGE_ERROR, before the disk is full. \
         Taken again 1 % of the file system below it. Kafka has no such setting.",
    ),
    Setting::double("log.dirs.reserve.watermark", "0.99").check(Check::RatioUpTo1).online().doc(
        "The used share from which the broker's own topics, such as committed offsets, are refused too; at the least \
         log.dirs.high.watermark. Kafka has no such setting.",
    ),
    Setting::long("log.flush.interval.messages", "9223372036854775807")
        .high()
        .at_least(1)
        .online()
        .doc("The default of the topics' flush.messages."),
    Setting::long("log.flush.interval.ms", "1000").high().at_least(0).ms().online().doc(
        "The default of the topics' flush.ms. Kafka's default is never; here no page cache stands behind an acknowledged write, \
         so that a power cut loses at most this.",
    ),
    Setting::int("log.flush.offset.checkpoint.interval.ms", "60000")
        .at_least(0)
        .ms()
        .doc("How often a partition that is appended to stores its recovery point: a start after a crash reads what came after it. A shard stores them earlier when they leave more than 2 GiB to read."),
    Setting::string("log.format", "human")
        .check(Check::OneOf(&["human", "json"]))
        .doc("How the broker's own log lines are written. Kafka has no such setting."),
    Setting::int("log.index.interval.bytes", "4096")
        .at_least(0)
        .bytes()
        .online()
        .doc("The default of the topics' index.interval.bytes."),
    Setting::int("log.index.size.max.bytes", "10485760")
        .at_least(4)
        .bytes()
        .online()
        .doc("The default of the topics' segment.index.bytes."),
    Setting::long("log.message.timestamp.after.max.ms", "3600000")
        .at_least(0)
        .ms()
        .online()
        .doc("The default of the topics' message.timestamp.after.max.ms."),
    Setting::long("log.message.timestamp.before.max.ms", "9223372036854775807")
        .at_least(0)
        .ms()
        .online()
        .doc("The default of the topics' message.timestamp.before.max.ms."),
    Setting::string("log.message.timestamp.type", "CreateTime")
        .check(Check::OneOf(&["CreateTime", "LogAppendTime"]))
        .online()
        .doc("The default of the topics' message.timestamp.type."),
    Setting::boolean("log.preallocate", "false")
        .fixed("the space ahead of the write position is always prepared in steps, in the background")
        .online()
        .doc("The default of the topics' preallocate."),
    Setting::long("log.retention.bytes", "-1")
        .high()
        .at_least(-1)
        .bytes()
        .online()
        .doc("The default of the topics' retention.bytes."),
    Setting::long("log.retention.check.interval.ms", "300000")
        .at_least(1)
        .ms()
        .doc("How often the broker looks for segments to delete; every 5 s at the least while the disk guard refuses produce."),
    Setting::long("log.retention.clock.jump.hold.ms", "86400000")
        .at_least(0)
        .ms()
        .online()
        .doc(
            "How long a wall clock that has jumped ahead is not believed: until then what it has jumped makes neither records nor committed \
             offsets older. Kafka has no such setting.",
        ),
    Setting::int("log.retention.hours", "168")
        .high()
        .at_least(-1)
        .unit(Unit::Hours)
        .doc("The default of log.retention.minutes, in hours."),
    Setting::int("log.retention.minutes", "")
        .unset()
        .high()
        .at_least(-1)
        .unit(Unit::Minutes)
        .doc("The default of log.retention.ms, in minutes. Unset: log.retention.hours."),
    Setting::long("log.retention.ms", "")
        .unset()
        .high()
        .at_least(-1)
        .ms()
        .online()
        .synonyms(&[Synonym::in_minutes("log.retention.minutes"), Synonym::in_hours("log.retention.hours")])
        .doc("The default of the topics' retention.ms. Unset: log.retention.minutes."),
    Setting::int("log.roll.hours", "168")
        .high()
        .at_least(1)
        .unit(Unit::Hours)
        .doc("The default of log.roll.ms, in hours."),
    Setting::long("log.roll.ms", "")
        .unset()
        .high()
        .at_least(1)
        .ms()
        .online()
        .synonyms(&[Synonym::in_hours("log.roll.hours")])
        .doc("The default of the topics' segment.ms. Unset: log.roll.hours."),
    Setting::int("log.segment.bytes", "1073741824")
        .high()
        .at_least(1024 * 1024)
        .bytes()
        .online()
        .doc("The default of the topics' segment.bytes."),
    Setting::long("log.segment.delete.delay.ms", "60000")
        .at_least(0)
        .ms()
        .online()
        .doc("The default of the topics' file.delete.delay.ms."),
    Setting::long("log.tail.cache.bytes", "").unset().at_least(16 * 1024 * 1024).bytes().doc(
        "The memory, over all shards, that holds the newest bytes of the logs for readers. Unset: a sixteenth of the memory \
         that the process may use, by the machine or its control group; where that is little, less. Kafka has no such setting: it leaves this to the page cache.",
    ),
    Setting::int("max.connections", "10000")
        .at_least(1)
        .online()
        .doc("How many client connections may be open; a further one is closed at once. Kafka's default is 2147483647."),
    Setting::int("max.decompressed.message.bytes", "67108864")
        .bytes()
        .fixed(INFLATION_BOUND)
        .online()
        .doc("The default of the topics' max.decompressed.message.bytes."),
    Setting::int("max.request.partition.size.limit", "2000")
        .at_least(1)
        .doc("How many partitions one DescribeTopicPartitions response holds."),
    Setting::int("message.max.bytes", "1048588")
        .high()
        .at_least(0)
        .bytes()
        .online()
        .doc("The default of the topics' max.message.bytes."),
    Setting::long("metadata.log.max.record.bytes.between.snapshots", "20971520")
        .high()
        .at_least(1)
        .bytes()
        .doc("How far the metadata log grows before a snapshot replaces it."),
    Setting::int("min.insync.replicas", "1")
        .high()
        .at_least(1)
        .online()
        .doc("The default of the topics' min.insync.replicas."),
    Setting::int("node.id", "1").high().at_least(0).doc("This broker's number in its cluster. Kafka has no default."),
    Setting::int("num.partitions", "1")
        .check(Check::Between(1, PARTITIONS_PER_TOPIC_MAX as i64))
        .doc("How many partitions a topic has where its creation does not say."),
    Setting::int("offset.metadata.max.bytes", "4096")
        .high()
        .at_least(0)
        .bytes()
        .online()
        .doc("The longest text that a client may keep beside a committed offset."),
    Setting::long("offsets.retention.check.interval.ms", "600000")
        .high()
        .at_least(1)
        .ms()
        .online()
        .doc("How often the broker looks for committed offsets to forget."),
    Setting::int("offsets.retention.minutes", "10080")
        .high()
        .at_least(1)
        .unit(Unit::Minutes)
        .online()
        .doc("How long committed offsets are kept after their group became empty, or without a group after the commit."),
    Setting::int("offsets.topic.num.partitions", "50")
        .high()
        .check(Check::Between(1, PARTITIONS_PER_TOPIC_MAX as i64))
        .doc("How many partitions the topic of committed offsets is created with. It keeps them, since groups find their partition by this number."),
    Setting::int("offsets.topic.replication.factor", "1")
        .high()
        .fixed(NO_REPLICATION)
        .doc("How many replicas the topic of committed offsets has. Kafka's default is 3."),
    Setting::int("offsets.topic.segment.bytes", "104857600")
        .high()
        .at_least(1024 * 1024)
        .bytes()
        .doc("The segment.bytes that the topic of committed offsets is created with."),
    Setting::int("producer.id.expiration.ms", "86400000")
        .low()
        .at_least(1)
        .ms()
        .online()
        .doc("How long a partition remembers the batches of an idempotent producer that has gone silent."),
    Setting::int("socket.request.max.bytes", "104857600")
        .high()
        .at_least(1)
        .bytes()
        .doc("The largest request; the connection of a larger one is closed before its body is read."),
    Setting::int("socket.request.timeout.ms", "60000")
        .at_least(1)
        .ms()
        .doc("How long the bytes of one request may take to arrive, from the first to the last. Kafka has no such setting."),
    Setting::boolean("unclean.leader.election.enable", "false")
        .high()
        .fixed(NO_REPLICATION)
        .online()
        .doc("The default of the topics' unclean.leader.election.enable."),
];

pub fn broker_setting(name: &str) -> Option<&'static Setting> {
    let found = BROKER_SETTINGS.binary_search_by(|setting| setting.name.cmp(name));
    found.ok().map(|index| &BROKER_SETTINGS[index])
}

fn check_rate(raw: &str) -> Result<(), String> {
    match parse_double(raw)? {
        rate if rate < 1.0 => Err("must be at least 1".into()),
        _ => Ok(()),
    }
}

fn check_directory(raw: &str) -> Result<(), String> {
    match raw {
        "" => Err("may not be empty".into()),
        _ if raw.contains(',') => Err("one directory is served, not a list".into()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_passes_its_own_check() {
        for setting in BROKER_SETTINGS {
            if let Some(default) = setting.default {
                assert_eq!(setting.check_value(default), Ok(()), "{}", setting.name);
            }
        }
    }

    #[test]
    fn the_table_is_in_the_order_of_names_and_says_everything() {
        assert!(BROKER_SETTINGS.is_sorted_by(|a, b| a.name < b.name));
        for setting in BROKER_SETTINGS {
            assert!(setting.doc.ends_with('.'), "{}", setting.name);
            for synonym in setting.synonyms {
                assert!(broker_setting(synonym.name).is_some(), "{}", synonym.name);
            }
        }
    }

    #[test]
    fn one_data_directory_is_served() {
        let setting = broker_setting("log.dirs").unwrap();
        assert!(setting.check_value("/data/a").is_ok());
        assert!(setting.check_value("/data/a,/data/b").is_err());
        assert!(setting.check_value("").is_err());
    }
}
