use std::collections::BTreeMap;

use bytes::Bytes;

use super::answer::{GroupAnswer, GroupError};
use super::group_offsets::StoredOffset;
use super::id::{Generation, GroupId, MemberId};
use super::member::Protocols;
use super::write::GroupWriteId;
use crate::model::{PartitionIndex, TopicName};

/// What happens once a write is on disk, and who waits for it.
#[derive(Debug)]
pub enum Awaited<T> {
    Commit {
        token: T,
        /// Of the whole request; those below are good so far.
        results: Vec<Result<(), GroupError>>,
        offsets: Vec<CommittingOffset>,
    },
    /// The leader's assignment of a generation: then its members are told theirs.
    Assignment {
        generation: Generation,
        assignments: BTreeMap<MemberId, Bytes>,
    },
    Takeover(Takeover),
    /// A group became empty. Nobody waits.
    Emptied,
    OffsetsGone {
        offsets: Vec<(TopicName, PartitionIndex)>,
        /// Nobody waits for those that have expired.
        answer: Option<(T, Vec<Result<(), GroupError>>)>,
    },
    GroupGone {
        token: Option<T>,
    },
}

impl<T> Awaited<T> {
    /// The write has a record of the group itself, not only of offsets.
    pub fn is_of_group(&self) -> bool {
        match self {
            Self::Assignment { .. } | Self::Takeover(_) | Self::Emptied => true,
            Self::Commit { .. } | Self::OffsetsGone { .. } | Self::GroupGone { .. } => false,
        }
    }

    /// Who waits, with what it is told when the coordinator ends.
    pub fn stopped(self) -> Option<(T, GroupAnswer)> {
        let error = GroupError::NotCoordinator;
        match self {
            Self::Commit { token, results, .. } => {
                Some((token, GroupAnswer::Commit(vec![Err(error); results.len()])))
            }
            Self::OffsetsGone { answer, .. } => {
                answer.map(|(token, _)| (token, GroupAnswer::DeleteOffsets(Err(error))))
            }
            Self::GroupGone { token } => {
                token.map(|token| (token, GroupAnswer::DeleteGroup(Err(error))))
            }
            Self::Assignment { .. } | Self::Takeover(_) | Self::Emptied => None,
        }
    }
}

/// One offset of a commit, by its place in the request.
#[derive(Debug)]
pub struct CommittingOffset {
    pub index: usize,
    pub topic: TopicName,
    pub partition: PartitionIndex,
    pub stored: StoredOffset,
}

/// A static member came back under a new member id, and the group goes on without a rebalance. With what it was before. The
/// answer waits with the member, which a rebalance may overtake.
#[derive(Debug)]
pub struct Takeover {
    pub generation: Generation,
    pub member: MemberId,
    pub can_skip_assignment: bool,
    pub old_leader: Option<MemberId>,
    pub old_member: MemberId,
    pub old_protocols: Protocols,
    pub old_session_timeout_ms: i32,
    pub old_rebalance_timeout_ms: i32,
}

/// The writes that are on their way to the disk, each of one group. Bounded by the requests under way, each of which makes one at
/// most, and by the groups.
#[derive(Debug)]
pub struct PendingWrites<T> {
    next: u64,
    waiting: BTreeMap<GroupWriteId, (GroupId, Awaited<T>)>,
}

impl<T> Default for PendingWrites<T> {
    fn default() -> Self {
        Self {
            next: 0,
            waiting: BTreeMap::new(),
        }
    }
}

impl<T> PendingWrites<T> {
    pub fn begin(&mut self, group: GroupId, awaited: Awaited<T>) -> GroupWriteId {
        let id = GroupWriteId(self.next);
        self.next += 1;
        self.waiting.insert(id, (group, awaited));
        id
    }

    pub fn end(&mut self, id: GroupWriteId) -> Option<(GroupId, Awaited<T>)> {
        self.waiting.remove(&id)
    }

    pub fn drain(&mut self) -> impl Iterator<Item = Awaited<T>> {
        std::mem::take(&mut self.waiting)
            .into_values()
            .map(|(_, awaited)| awaited)
    }
}
