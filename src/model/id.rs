use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use super::limits::TOPIC_NAME_BYTES_MAX;

/// A broker's number in its cluster (`node.id`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub i32);

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The number of a shard in this process, 0 up. Never stored: a restart may have another number of cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShardId(pub u16);

impl ShardId {
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

impl fmt::Display for ShardId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The id that a topic keeps for its whole life (KIP-516); a topic made again under the same name has a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicId(pub uuid::Uuid);

impl TopicId {
    /// What the wire carries where a topic is named instead.
    pub const ZERO: Self = Self(uuid::Uuid::nil());
}

impl fmt::Display for TopicId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TopicNameError {
    #[error("a topic name is empty")]
    Empty,
    #[error("a topic name may not be '.' or '..'")]
    Dots,
    #[error("a topic name has {0} bytes; at most {TOPIC_NAME_BYTES_MAX} are allowed")]
    TooLong(usize),
    #[error("a topic name may hold only ASCII letters, digits, '.', '_' and '-'")]
    IllegalCharacter,
}

/// A legal topic name, `[a-zA-Z0-9._-]{1,249}` but not `.` or `..`; so it is safe as part of a path.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicName(Arc<str>);

impl TopicName {
    pub fn new(name: &str) -> Result<Self, TopicNameError> {
        let legal = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        match name {
            "" => Err(TopicNameError::Empty),
            "." | ".." => Err(TopicNameError::Dots),
            _ if name.len() > TOPIC_NAME_BYTES_MAX => Err(TopicNameError::TooLong(name.len())),
            _ if !name.bytes().all(legal) => Err(TopicNameError::IllegalCharacter),
            _ => Ok(Self(name.into())),
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for TopicName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TopicName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for TopicName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// The number of a partition in its topic, 0 up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartitionIndex(pub i32);

impl fmt::Display for PartitionIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A partition as the inside of the broker names it: by topic id, so that a deleted topic's name cannot be confused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicPartition {
    pub topic: TopicId,
    pub partition: PartitionIndex,
}

impl fmt::Display for TopicPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.topic, self.partition)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topic_names_follow_kafkas_rule() {
        assert!(TopicName::new("a.B_c-9").is_ok());
        assert!(TopicName::new(&"x".repeat(249)).is_ok());
        assert_eq!(TopicName::new(""), Err(TopicNameError::Empty));
        assert_eq!(TopicName::new(".."), Err(TopicNameError::Dots));
        assert_eq!(
            TopicName::new(&"x".repeat(250)),
            Err(TopicNameError::TooLong(250))
        );
        for bad in ["a/b", "a b", "ä", "a\0", "a:b"] {
            assert_eq!(
                TopicName::new(bad),
                Err(TopicNameError::IllegalCharacter),
                "{bad:?}"
            );
        }
    }
}
