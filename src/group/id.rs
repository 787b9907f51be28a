use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use crate::model::PartitionIndex;

/// A name that clients choose or are given. It is data: it never becomes part of a path.
macro_rules! name_type {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            pub fn new(name: &str) -> Self {
                Self(name.into())
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }
    };
}

name_type!(
    /// A consumer group's name (`group.id`).
    GroupId
);

name_type!(
    /// What the coordinator calls a member: the client's id (or a static member's instance id) with a random suffix. Empty on
    /// the wire where the member has none yet.
    MemberId
);

name_type!(
    /// What a static member calls itself over its restarts (`group.instance.id`, KIP-345).
    InstanceId
);

impl GroupId {
    /// Which of `count` partitions of `__consumer_offsets` the group is in. Kafka's hash (Java's of a string), so that a log of
    /// Kafka's is found to be in place.
    pub fn partition(&self, count: i32) -> PartitionIndex {
        assert!(count > 0, "a topic has at least one partition");
        let hash = self.0.encode_utf16().fold(0i32, |hash, unit| {
            hash.wrapping_mul(31).wrapping_add(i32::from(unit))
        });
        // Kafka's absolute value of the smallest number is 0.
        PartitionIndex(hash.checked_abs().unwrap_or(0) % count)
    }
}

impl MemberId {
    /// The member does not have its id yet, or, in a commit, is no member.
    pub fn is_unknown(&self) -> bool {
        self.0.is_empty()
    }
}

/// Which rebalance of a group: each one that completes has a higher number, the first is 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Generation(pub i32);

impl Generation {
    /// What the wire carries where there is no generation: a commit of somebody who is no member.
    pub const NONE: Self = Self(-1);
    /// Before a group's first rebalance.
    pub const BEFORE_FIRST: Self = Self(0);

    /// Wraps to 1: a generation is never negative.
    pub fn next(self) -> Self {
        Self(self.0.checked_add(1).unwrap_or(1))
    }
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
