//! What a client asks of a group's coordinator. What a request means in one version of the protocol and not in another is a flag.

use bytes::Bytes;

use super::answer::{GroupAnswer, GroupError, JoinRefused};
use super::id::{Generation, GroupId, InstanceId, MemberId};
use super::state::GroupState;
use crate::model::{LeaderEpoch, Offset, PartitionIndex, TopicId, TopicName};

/// Each is answered with the variant of `GroupAnswer` of the same name, exactly once.
#[derive(Clone, Debug)]
pub enum GroupRequest {
    Join(JoinRequest),
    Sync(SyncRequest),
    Heartbeat(HeartbeatRequest),
    Leave(LeaveRequest),
    Commit(CommitRequest),
    FetchOffsets(FetchOffsetsRequest),
    DeleteOffsets(DeleteOffsetsRequest),
    DeleteGroup(GroupId),
    List(ListRequest),
    Describe(GroupId),
}

impl GroupRequest {
    /// The answer to it that says this of the whole request.
    pub fn refused(&self, error: GroupError) -> GroupAnswer {
        match self {
            Self::Join(request) => GroupAnswer::Join(Err(JoinRefused {
                error,
                member: request.member.clone(),
            })),
            Self::Sync(_) => GroupAnswer::Sync(Err(error)),
            Self::Heartbeat(_) => GroupAnswer::Heartbeat(Err(error)),
            Self::Leave(request) if error == GroupError::UnknownMember => {
                GroupAnswer::Leave(Ok(vec![Err(error); request.members.len()]))
            }
            Self::Leave(_) => GroupAnswer::Leave(Err(error)),
            Self::Commit(request) => GroupAnswer::Commit(vec![Err(error); request.offsets.len()]),
            Self::FetchOffsets(_) => GroupAnswer::FetchOffsets(Err(error)),
            Self::DeleteOffsets(_) => GroupAnswer::DeleteOffsets(Err(error)),
            Self::DeleteGroup(_) => GroupAnswer::DeleteGroup(Err(error)),
            Self::List(_) => GroupAnswer::List(Vec::new()),
            Self::Describe(_) => GroupAnswer::Describe(Err(error)),
        }
    }
}

/// Answered when the rebalance that it takes part in has gathered its members, or at once where none is needed.
#[derive(Clone, Debug)]
pub struct JoinRequest {
    pub group: GroupId,
    /// Unknown (empty) the first time.
    pub member: MemberId,
    pub instance: Option<InstanceId>,
    pub client_id: String,
    /// Where the client is seen, as Kafka shows it: `/127.0.0.1`.
    pub client_host: String,
    pub session_timeout_ms: i32,
    /// Version 0 has none: the session time-out then.
    pub rebalance_timeout_ms: i32,
    /// `consumer`, `connect`, ...
    pub protocol_type: String,
    /// The member's assignors, the one it likes best first.
    pub protocols: Vec<JoinProtocol>,
    /// From version 4 on a new dynamic member is first given its id, with MEMBER_ID_REQUIRED (KIP-394).
    pub member_id_required: bool,
    /// From version 9 on a static leader that comes back can be told to skip the assignment (KIP-814).
    pub can_skip_assignment: bool,
    /// Makes this member's id unique if it needs a new one. Any random number will do; it comes from outside so that the same
    /// requests always have the same results.
    pub fresh: uuid::Uuid,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinProtocol {
    pub name: String,
    /// What the assignor is told about this member; opaque to the coordinator but for the topics of a `consumer`.
    pub metadata: Bytes,
}

/// Answered when the leader's assignment is on disk.
#[derive(Clone, Debug)]
pub struct SyncRequest {
    pub group: GroupId,
    pub generation: Generation,
    pub member: MemberId,
    pub instance: Option<InstanceId>,
    /// From version 5 on the member repeats what it believes to be the group's; checked where it is there.
    pub protocol_type: Option<String>,
    pub protocol_name: Option<String>,
    /// The leader's alone; others send none.
    pub assignments: Vec<(MemberId, Bytes)>,
}

#[derive(Clone, Debug)]
pub struct HeartbeatRequest {
    pub group: GroupId,
    pub generation: Generation,
    pub member: MemberId,
    pub instance: Option<InstanceId>,
}

/// Up to version 2 one member leaves, from version 3 on any number.
#[derive(Clone, Debug)]
pub struct LeaveRequest {
    pub group: GroupId,
    pub members: Vec<LeavingMember>,
}

/// An instance id without a member id: an administrator removes a static member.
#[derive(Clone, Debug)]
pub struct LeavingMember {
    pub member: MemberId,
    pub instance: Option<InstanceId>,
}

/// Answered when the offsets are on disk. Unknown topics and partitions are sorted out by who asks, before.
#[derive(Clone, Debug)]
pub struct CommitRequest {
    pub group: GroupId,
    /// `NONE` together with an unknown member: a consumer that does not use the group for its partitions, or a tool.
    pub generation: Generation,
    pub member: MemberId,
    pub instance: Option<InstanceId>,
    /// Versions 2 to 4 carry `retention_time_ms`: the offsets expire that long after the commit, whatever the setting says.
    pub retention_ms: Option<i64>,
    pub offsets: Vec<OffsetToCommit>,
}

#[derive(Clone, Debug)]
pub struct OffsetToCommit {
    pub topic: TopicName,
    /// `ZERO` where it is not known. An offset is not shown for a topic of the same name and another id.
    pub topic_id: TopicId,
    pub partition: PartitionIndex,
    pub offset: Offset,
    /// `UNKNOWN` where the version has none.
    pub leader_epoch: LeaderEpoch,
    /// A null of the wire is the empty string.
    pub metadata: String,
}

/// One group of an OffsetFetch request. `require_stable` asks for nothing here: no offset waits for a transaction.
#[derive(Clone, Debug)]
pub struct FetchOffsetsRequest {
    pub group: GroupId,
    pub partitions: FetchPartitions,
}

#[derive(Clone, Debug)]
pub enum FetchPartitions {
    /// Whatever the group has committed (a null array of topics).
    All,
    These(Vec<TopicPartitions>),
}

#[derive(Clone, Debug)]
pub struct TopicPartitions {
    pub topic: TopicName,
    /// `ZERO`: whichever topic had the name at the commit.
    pub topic_id: TopicId,
    pub partitions: Vec<PartitionIndex>,
}

#[derive(Clone, Debug)]
pub struct DeleteOffsetsRequest {
    pub group: GroupId,
    pub partitions: Vec<(TopicName, Vec<PartitionIndex>)>,
}

#[derive(Clone, Debug)]
pub struct ListRequest {
    /// `None`: in whatever state. An empty list matches no group (a filter of words that name no state).
    pub states: Option<Vec<GroupState>>,
}
