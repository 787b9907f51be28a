use super::check::Check;
use super::setting::{Setting, Synonym};

pub(super) const NO_RECOMPRESSION: &str = "a batch is stored as its producer compressed it";
pub(super) const INFLATION_BOUND: &str = "the bound is the same for all topics";
const NO_TIERS: &str = "there is no remote storage";
pub(super) const NO_REPLICATION: &str = "every partition has one replica";

/// The settings of a topic: every one that Kafka 4.4 describes. Where this broker does not do yet what a value asks for, the
/// value is refused (`fixed`), never stored and ignored. In the order of their names.
pub const TOPIC_SETTINGS: &[Setting] = &[
    topic(Setting::list("cleanup.policy", "delete"))
        .check(Check::ElementsOf(&["compact", "delete"]))
        .synonyms(&[Synonym::of("log.cleanup.policy")])
        .doc(
            "What becomes of old records: delete removes whole segments by age and size; compact keeps the latest record of each \
             key, so records without a key are refused; both do both; an empty list keeps everything.",
        ),
    topic(Setting::int("compression.gzip.level", "-1"))
        .fixed(NO_RECOMPRESSION)
        .synonyms(&[Synonym::of("compression.gzip.level")])
        .doc("The level at which gzip would compress if compression.type were gzip."),
    topic(Setting::int("compression.lz4.level", "9"))
        .fixed(NO_RECOMPRESSION)
        .synonyms(&[Synonym::of("compression.lz4.level")])
        .doc("The level at which lz4 would compress if compression.type were lz4."),
    topic(Setting::string("compression.type", "producer"))
        .fixed(NO_RECOMPRESSION)
        .synonyms(&[Synonym::of("compression.type")])
        .doc("The compression of stored batches: producer keeps what the producer chose."),
    topic(Setting::int("compression.zstd.level", "3"))
        .fixed(NO_RECOMPRESSION)
        .synonyms(&[Synonym::of("compression.zstd.level")])
        .doc("The level at which zstd would compress if compression.type were zstd."),
    topic(Setting::string("corelog.record.validation", "full"))
        .check(Check::OneOf(&["full", "header"]))
        .synonyms(&[Synonym::of("corelog.record.validation")])
        .doc(
            "Whether the records of a compressed batch are looked at before it is taken (full), which costs the CPU time of inflating them, or \
             only its header (header), so that a broken batch is found by the consumers. Batches that are not compressed, and those of compacted \
             topics, are always looked at. Kafka has no such setting.",
        ),
    topic(Setting::long("delete.retention.ms", "86400000"))
        .at_least(0)
        .ms()
        .synonyms(&[Synonym::of("log.cleaner.delete.retention.ms")])
        .doc("How long compaction keeps the marker of a deleted key, from the first compaction that sees it on."),
    topic(Setting::boolean("errors.deadletterqueue.group.enable", "false"))
        .fixed("there are no share groups")
        .doc("Whether share groups may put undeliverable records into this topic."),
    topic(Setting::long("file.delete.delay.ms", "60000"))
        .at_least(0)
        .ms()
        .synonyms(&[Synonym::of("log.segment.delete.delay.ms")])
        .doc(
            "How long the files of a deleted segment stay, renamed to .deleted, before they are removed. Cut short while the disk \
             guard refuses produce.",
        ),
    topic(Setting::long("flush.messages", "9223372036854775807"))
        .at_least(1)
        .synonyms(&[Synonym::of("log.flush.interval.messages")])
        .doc(
            "After how many records a partition is made durable with fdatasync. With 1 each acknowledgement waits for it; \
             acknowledgements of many partitions share one fdatasync.",
        ),
    topic(Setting::long("flush.ms", "1000"))
        .at_least(0)
        .ms()
        .synonyms(&[Synonym::of("log.flush.interval.ms")])
        .doc("After how long written records are made durable with fdatasync, in the background. Kafka's default is never; see \
             log.flush.interval.ms."),
    topic(Setting::list("follower.replication.throttled.replicas", ""))
        .fixed(NO_REPLICATION)
        .doc("The replicas whose replication is throttled on the follower's side."),
    topic(Setting::int("index.interval.bytes", "4096"))
        .at_least(0)
        .bytes()
        .synonyms(&[Synonym::of("log.index.interval.bytes")])
        .doc("How many bytes of a segment lie between two entries of its offset index, about."),
    topic(Setting::list("leader.replication.throttled.replicas", ""))
        .fixed(NO_REPLICATION)
        .doc("The replicas whose replication is throttled on the leader's side."),
    topic(Setting::long("local.retention.bytes", "-2"))
        .bytes()
        .fixed(NO_TIERS)
        .doc("The size of the local part of a partition in remote storage; -2 stands for retention.bytes."),
    topic(Setting::long("local.retention.ms", "-2"))
        .ms()
        .fixed(NO_TIERS)
        .doc("How long the local part of a partition in remote storage is kept; -2 stands for retention.ms."),
    topic(Setting::long("max.compaction.lag.ms", "9223372036854775807"))
        .at_least(1)
        .ms()
        .synonyms(&[Synonym::of("log.cleaner.max.compaction.lag.ms")])
        .doc(
            "The longest time that a record of a compacted topic stays out of compaction; an active segment of such a topic is \
             rolled at this age.",
        ),
    topic(Setting::int("max.decompressed.message.bytes", "67108864"))
        .bytes()
        .fixed(INFLATION_BOUND)
        .synonyms(&[Synonym::of("max.decompressed.message.bytes")])
        .doc(
            "What a batch may inflate to where the broker must inflate it. Kafka bounds one record, by default only at what can be \
             allocated.",
        ),
    topic(Setting::int("max.message.bytes", "1048588"))
        .at_least(0)
        .bytes()
        .synonyms(&[Synonym::of("message.max.bytes")])
        .doc("The largest record batch, as compressed by its producer."),
    topic(Setting::long("message.timestamp.after.max.ms", "3600000"))
        .at_least(0)
        .ms()
        .synonyms(&[Synonym::of("log.message.timestamp.after.max.ms")])
        .doc("How far a record's timestamp may lie after the broker's clock. Not applied with LogAppendTime."),
    topic(Setting::long("message.timestamp.before.max.ms", "9223372036854775807"))
        .at_least(0)
        .ms()
        .synonyms(&[Synonym::of("log.message.timestamp.before.max.ms")])
        .doc("How far a record's timestamp may lie before the broker's clock. Not applied with LogAppendTime."),
    topic(Setting::string("message.timestamp.type", "CreateTime"))
        .check(Check::OneOf(&["CreateTime", "LogAppendTime"]))
        .synonyms(&[Synonym::of("log.message.timestamp.type")])
        .doc("Whose time a record carries: its producer's (CreateTime) or the broker's at append (LogAppendTime)."),
    topic(Setting::double("min.cleanable.dirty.ratio", "0.5"))
        .check(Check::RatioUpTo1)
        .synonyms(&[Synonym::of("log.cleaner.min.cleanable.ratio")])
        .doc("The share of uncompacted bytes above which a log is compacted."),
    topic(Setting::long("min.compaction.lag.ms", "0"))
        .at_least(0)
        .ms()
        .synonyms(&[Synonym::of("log.cleaner.min.compaction.lag.ms")])
        .doc("The shortest time that a record stays uncompacted."),
    topic(Setting::int("min.insync.replicas", "1"))
        .at_least(1)
        .synonyms(&[Synonym::of("min.insync.replicas")])
        .doc("How many replicas must be in sync for a write with acks=all to be accepted."),
    topic(Setting::boolean("preallocate", "false"))
        .fixed("the space ahead of the write position is always prepared in steps, in the background")
        .synonyms(&[Synonym::of("log.preallocate")])
        .doc("Whether a new segment's whole file is allocated when the segment is created."),
    topic(Setting::long("remote.copy.lag.bytes", "-1"))
        .bytes()
        .fixed(NO_TIERS)
        .doc("How many newer bytes make a segment ready for remote storage."),
    topic(Setting::long("remote.copy.lag.ms", "0"))
        .ms()
        .fixed(NO_TIERS)
        .doc("The age that makes a segment ready for remote storage."),
    topic(Setting::boolean("remote.log.copy.disable", "false"))
        .fixed(NO_TIERS)
        .doc("Whether no more segments go to remote storage."),
    topic(Setting::boolean("remote.log.delete.on.disable", "false"))
        .fixed(NO_TIERS)
        .doc("Whether remote segments are deleted when remote storage is switched off."),
    topic(Setting::boolean("remote.storage.enable", "false"))
        .fixed(NO_TIERS)
        .doc("Whether sealed segments move to remote storage."),
    topic(Setting::long("retention.bytes", "-1"))
        .at_least(-1)
        .bytes()
        .synonyms(&[Synonym::of("log.retention.bytes")])
        .doc("The size from which a partition's oldest segments are deleted, with cleanup.policy delete; -1 is no limit."),
    topic(Setting::long("retention.ms", "604800000"))
        .at_least(-1)
        .ms()
        .synonyms(&[
            Synonym::of("log.retention.ms"),
            Synonym::in_minutes("log.retention.minutes"),
            Synonym::in_hours("log.retention.hours"),
        ])
        .doc(
            "The age of its newest record from which a segment is deleted, with cleanup.policy delete; -1 is no limit. A timestamp in \
             the future keeps its segment, and all behind it, until this long after it. An active segment that is due is rolled first.",
        ),
    topic(Setting::int("segment.bytes", "1073741824"))
        .at_least(1024 * 1024)
        .bytes()
        .synonyms(&[Synonym::of("log.segment.bytes")])
        .doc("The size at which the active segment is sealed and a new one begins."),
    topic(Setting::int("segment.index.bytes", "10485760"))
        .at_least(4)
        .bytes()
        .synonyms(&[Synonym::of("log.index.size.max.bytes")])
        .doc("The largest offset index; a segment whose index is full is sealed."),
    topic(Setting::long("segment.jitter.ms", "0"))
        .ms()
        .fixed("segments are sealed at their own age, which differs by itself")
        .doc("The longest time, drawn at random, by which segments are sealed earlier than segment.ms says."),
    topic(Setting::long("segment.ms", "604800000"))
        .at_least(1)
        .ms()
        .synonyms(&[Synonym::of("log.roll.ms"), Synonym::in_hours("log.roll.hours")])
        .doc(
            "What a segment may span in its records' own time: a batch that is this much newer than the first one goes into the next \
             segment. Without timestamps the wall clock counts. Nothing is rolled while nothing is appended.",
        ),
    topic(Setting::boolean("unclean.leader.election.enable", "false"))
        .fixed(NO_REPLICATION)
        .synonyms(&[Synonym::of("unclean.leader.election.enable")])
        .doc("Whether a replica that is not in sync may lead when no other is left."),
];

const fn topic(setting: Setting) -> Setting {
    setting.online()
}

pub fn topic_setting(name: &str) -> Option<&'static Setting> {
    let found = TOPIC_SETTINGS.binary_search_by(|setting| setting.name.cmp(name));
    found.ok().map(|index| &TOPIC_SETTINGS[index])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::broker_settings::broker_setting;

    #[test]
    fn every_default_passes_its_own_check() {
        for setting in TOPIC_SETTINGS {
            let default = setting.default.expect(setting.name);
            assert_eq!(setting.check_value(default), Ok(()), "{}", setting.name);
        }
    }

    #[test]
    fn the_table_is_in_the_order_of_names_and_says_everything() {
        assert!(TOPIC_SETTINGS.is_sorted_by(|a, b| a.name < b.name));
        for setting in TOPIC_SETTINGS {
            assert!(setting.doc.ends_with('.'), "{}", setting.name);
            assert!(!setting.is_read_only(), "{}", setting.name);
        }
    }

    #[test]
    fn a_topics_default_is_what_its_brokers_synonym_defaults_to() {
        for setting in TOPIC_SETTINGS {
            let synonyms = setting.synonyms.iter();
            let inherited = synonyms.filter_map(|synonym| {
                let broker = broker_setting(synonym.name).expect(synonym.name);
                assert!(
                    synonym.factor != 1 || broker.value_type == setting.value_type,
                    "{}",
                    setting.name
                );
                let default = broker.default?;
                Some(match synonym.factor {
                    1 => default.to_owned(),
                    factor => (default.parse::<i64>().unwrap() * factor).to_string(),
                })
            });
            let inherited: Vec<String> = inherited.collect();
            assert!(
                inherited
                    .iter()
                    .all(|value| Some(value.as_str()) == setting.default),
                "{}",
                setting.name
            );
        }
    }
}
