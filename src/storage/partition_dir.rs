use std::fmt;

use crate::model::{PartitionIndex, TopicId, TopicName};

const DELETED_SUFFIX: &str = "-delete";

/// The longest name of a directory entry (NAME_MAX).
const FILE_NAME_BYTES_MAX: usize = 255;

/// A topic id as 32 hex digits.
const TOPIC_ID_DIGITS: usize = 32;

/// The directory of one partition, `<topic>-<partition>` as in Kafka. The last `-` divides, so every topic name is safe.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PartitionDirName {
    pub topic: TopicName,
    pub partition: PartitionIndex,
}

impl PartitionDirName {
    /// Reads a name; `None` for every other directory. A name that would be written otherwise is not one of ours.
    pub fn parse(name: &str) -> Option<Self> {
        let (topic, partition) = name.rsplit_once('-')?;
        Some(Self {
            topic: TopicName::new(topic).ok()?,
            partition: parse_partition(partition)?,
        })
    }
}

impl fmt::Display for PartitionDirName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.topic, self.partition)
    }
}

/// The directory of a partition whose topic was deleted, until its files are gone: `<topic>-<partition>.<topic id>-delete`.
///
/// It never reads as a live partition, since that ends in a number. The id keeps apart two topics that had one name. The
/// topic's name is for people only, and cut where the whole would be too long for a file name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DeletedDirName {
    pub topic_id: TopicId,
    pub partition: PartitionIndex,
    topic_shown: String,
}

impl DeletedDirName {
    pub fn new(topic: &TopicName, topic_id: TopicId, partition: PartitionIndex) -> Self {
        let fixed_bytes = format!("-{partition}.").len() + TOPIC_ID_DIGITS + DELETED_SUFFIX.len();
        let shown_bytes = topic.as_str().len().min(FILE_NAME_BYTES_MAX - fixed_bytes);
        Self {
            topic_id,
            partition,
            topic_shown: topic.as_str()[..shown_bytes].to_owned(),
        }
    }

    /// Reads a name; `None` for every other directory.
    pub fn parse(name: &str) -> Option<Self> {
        let (rest, topic_id) = name.strip_suffix(DELETED_SUFFIX)?.rsplit_once('.')?;
        let (topic, partition) = rest.rsplit_once('-')?;
        if topic_id.len() != TOPIC_ID_DIGITS {
            return None;
        }
        Some(Self {
            topic_id: TopicId(uuid::Uuid::try_parse(topic_id).ok()?),
            partition: parse_partition(partition)?,
            topic_shown: topic.to_owned(),
        })
    }
}

impl fmt::Display for DeletedDirName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}-{}.{}{DELETED_SUFFIX}",
            self.topic_shown,
            self.partition,
            self.topic_id.0.simple()
        )
    }
}

/// Digits without sign or leading zeros, so that one partition has one name.
fn parse_partition(digits: &str) -> Option<PartitionIndex> {
    let index: i32 = digits.parse().ok()?;
    (index >= 0 && index.to_string() == digits).then_some(PartitionIndex(index))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::limits::{PARTITIONS_PER_TOPIC_MAX, TOPIC_NAME_BYTES_MAX};

    fn topic(name: &str) -> TopicName {
        TopicName::new(name).unwrap()
    }

    fn id(number: u128) -> TopicId {
        TopicId(uuid::Uuid::from_u128(number))
    }

    #[test]
    fn the_last_dash_divides_topic_and_partition() {
        for name in ["orders", "a-b", "a-1", "a.b-c_d", "-", "x-delete", "..."] {
            let dir = PartitionDirName {
                topic: topic(name),
                partition: PartitionIndex(17),
            };
            assert_eq!(dir.to_string(), format!("{name}-17"));
            assert_eq!(PartitionDirName::parse(&dir.to_string()), Some(dir));
        }
    }

    #[test]
    fn a_partition_has_only_one_name() {
        for other in [
            "orders",
            "orders-",
            "orders-01",
            "orders-+1",
            "orders--1x",
            "-1",
            "orders-2147483648",
            "o/x-1",
        ] {
            assert_eq!(PartitionDirName::parse(other), None, "{other:?}");
        }
        assert_eq!(
            PartitionDirName::parse("orders--1").unwrap().topic.as_str(),
            "orders-"
        );
    }

    #[test]
    fn a_deleted_directory_reads_back_and_is_never_a_live_one() {
        for name in ["orders", "a-1.b-2", "x-delete"] {
            let dir = DeletedDirName::new(&topic(name), id(0xfeed), PartitionIndex(3));
            assert_eq!(DeletedDirName::parse(&dir.to_string()), Some(dir.clone()));
            assert_eq!(PartitionDirName::parse(&dir.to_string()), None);
        }
        let live = PartitionDirName {
            topic: topic("x-0.0000000000000000000000000000feed-delete"),
            partition: PartitionIndex(0),
        };
        assert_eq!(DeletedDirName::parse(&live.to_string()), None);
    }

    #[test]
    fn the_longest_names_fit_a_file_name_and_stay_apart() {
        let long = topic(&"x".repeat(TOPIC_NAME_BYTES_MAX));
        let partition = PartitionIndex(PARTITIONS_PER_TOPIC_MAX - 1);
        let live = PartitionDirName {
            topic: long.clone(),
            partition,
        };
        assert!(live.to_string().len() <= FILE_NAME_BYTES_MAX);
        let first = DeletedDirName::new(&long, id(1), partition);
        let second = DeletedDirName::new(&long, id(2), partition);
        assert_eq!(first.to_string().len(), FILE_NAME_BYTES_MAX);
        assert_ne!(first.to_string(), second.to_string());
        assert_eq!(DeletedDirName::parse(&first.to_string()), Some(first));
    }
}
