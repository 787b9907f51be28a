use bytes::Bytes;

use super::answer::{GroupAnswer, GroupError};

/// Names one write of a coordinator. Later writes have higher numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupWriteId(pub u64);

/// A record of `__consumer_offsets`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupRecord {
    pub key: Bytes,
    /// `None`: a tombstone.
    pub value: Option<Bytes>,
}

/// Records that go into the log together, in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupWrite {
    pub id: GroupWriteId,
    pub records: Vec<GroupRecord>,
}

/// Why the log did not take a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteRefused {
    /// For now: asked again it may work. Who waits is told COORDINATOR_NOT_AVAILABLE.
    Unavailable,
    /// The log is not this broker's, or its disk has failed. NOT_COORDINATOR.
    NotCoordinator,
    /// The records are larger than the log takes. INVALID_COMMIT_OFFSET_SIZE for offsets, else UNKNOWN_SERVER_ERROR.
    TooLarge,
}

impl WriteRefused {
    /// What who waited for a group's metadata is told.
    pub fn error(self) -> GroupError {
        match self {
            Self::Unavailable => GroupError::CoordinatorNotAvailable,
            Self::NotCoordinator => GroupError::NotCoordinator,
            Self::TooLarge => GroupError::GroupTooLarge,
        }
    }

    /// What who waited for offsets is told.
    pub fn commit_error(self) -> GroupError {
        match self {
            Self::TooLarge => GroupError::CommitTooLarge,
            Self::Unavailable | Self::NotCoordinator => self.error(),
        }
    }
}

/// What comes of one call of the coordinator: who is answered, what has to be written, and what is counted.
#[derive(Debug)]
pub struct Effects<T> {
    pub answers: Vec<(T, GroupAnswer)>,
    /// To be appended in this order, each as a whole.
    pub writes: Vec<GroupWrite>,
    /// Generations with members that groups have begun.
    pub generation_count: u64,
}

impl<T> Default for Effects<T> {
    fn default() -> Self {
        Self {
            answers: Vec::new(),
            writes: Vec::new(),
            generation_count: 0,
        }
    }
}
