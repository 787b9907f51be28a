use std::fmt;

use crate::model::{PartitionIndex, TopicId, TopicName};

/// The longest name of a directory entry (NAME_MAX).
const FILE_NAME_BYTES_MAX: usize = 255;

/// A UUID as hex digits.
const UNIQUE_DIGITS: usize = 32;

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

/// Why a directory is no partition's any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Removal {
    /// Its topic was deleted.
    Deleted,
    /// A start or a new topic found it, and no topic has it.
    Stray,
}

impl Removal {
    const ALL: [Self; 2] = [Self::Deleted, Self::Stray];

    fn suffix(self) -> &'static str {
        match self {
            Self::Deleted => "-delete",
            Self::Stray => "-stray",
        }
    }
}

/// A directory that is no partition's any more, until its files are gone: `<topic>-<partition>.<32 hex digits>-delete` or `-stray`, as
/// in Kafka.
///
/// It never reads as a live partition, since that ends in a number. The digits, of the topic's id or random ones, keep apart what had
/// one name. The topic's name is for people only, and cut where the whole would be too long for a file name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RemovedDirName {
    pub removal: Removal,
    partition: PartitionIndex,
    unique: uuid::Uuid,
    topic_shown: String,
}

impl RemovedDirName {
    pub fn deleted(topic: &TopicName, topic_id: TopicId, partition: PartitionIndex) -> Self {
        Self::new(Removal::Deleted, topic, partition, topic_id.0)
    }

    /// Another name at each call.
    pub fn stray(topic: &TopicName, partition: PartitionIndex) -> Self {
        Self::new(Removal::Stray, topic, partition, uuid::Uuid::new_v4())
    }

    fn new(
        removal: Removal,
        topic: &TopicName,
        partition: PartitionIndex,
        unique: uuid::Uuid,
    ) -> Self {
        let fixed_bytes = format!("-{partition}.").len() + UNIQUE_DIGITS + removal.suffix().len();
        let shown_bytes = topic.as_str().len().min(FILE_NAME_BYTES_MAX - fixed_bytes);
        Self {
            removal,
            partition,
            unique,
            topic_shown: topic.as_str()[..shown_bytes].to_owned(),
        }
    }

    pub fn partition(&self) -> PartitionIndex {
        self.partition
    }

    /// Reads a name; `None` for every other directory.
    pub fn parse(name: &str) -> Option<Self> {
        let with_suffix = |removal: Removal| Some((removal, name.strip_suffix(removal.suffix())?));
        let (removal, rest) = Removal::ALL.into_iter().find_map(with_suffix)?;
        let (rest, unique) = rest.rsplit_once('.')?;
        let (topic, partition) = rest.rsplit_once('-')?;
        if unique.len() != UNIQUE_DIGITS {
            return None;
        }
        Some(Self {
            removal,
            partition: parse_partition(partition)?,
            unique: uuid::Uuid::try_parse(unique).ok()?,
            topic_shown: topic.to_owned(),
        })
    }
}

impl fmt::Display for RemovedDirName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}-{}.{}{}",
            self.topic_shown,
            self.partition,
            self.unique.simple(),
            self.removal.suffix()
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
    fn a_removed_directory_reads_back_and_is_never_a_live_one() {
        for name in ["orders", "a-1.b-2", "x-delete", "x-stray"] {
            let (name, partition) = (topic(name), PartitionIndex(3));
            for dir in [
                RemovedDirName::deleted(&name, id(0xfeed), partition),
                RemovedDirName::stray(&name, partition),
            ] {
                assert_eq!(RemovedDirName::parse(&dir.to_string()), Some(dir.clone()));
                assert_eq!(PartitionDirName::parse(&dir.to_string()), None);
            }
        }
        for live in [
            "x-0.0000000000000000000000000000feed-delete",
            "x-0.0000000000000000000000000000feed-stray",
        ] {
            let live = PartitionDirName {
                topic: topic(live),
                partition: PartitionIndex(0),
            };
            assert_eq!(RemovedDirName::parse(&live.to_string()), None);
        }
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
        let names = [
            RemovedDirName::deleted(&long, id(1), partition),
            RemovedDirName::deleted(&long, id(2), partition),
            RemovedDirName::stray(&long, partition),
            RemovedDirName::stray(&long, partition),
        ];
        for (index, name) in names.iter().enumerate() {
            assert_eq!(name.to_string().len(), FILE_NAME_BYTES_MAX);
            assert_eq!(
                RemovedDirName::parse(&name.to_string()).as_ref(),
                Some(name)
            );
            assert!(!names[..index].contains(name));
        }
    }
}
