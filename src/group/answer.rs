//! What a group's coordinator answers.

use std::sync::Arc;

use bytes::Bytes;

use super::id::{Generation, GroupId, InstanceId, MemberId};
use super::state::GroupState;
use crate::model::{LeaderEpoch, Offset, PartitionIndex, TopicName};

/// The answer to the `GroupRequest` of the same name.
#[derive(Clone, Debug, PartialEq)]
pub enum GroupAnswer {
    Join(Result<Joined, JoinRefused>),
    Sync(Result<Synced, GroupError>),
    Heartbeat(Result<(), GroupError>),
    /// For each member of the request, in its order; or the error of all.
    Leave(Result<Vec<Result<(), GroupError>>, GroupError>),
    /// For each offset of the request, in its order.
    Commit(Vec<Result<(), GroupError>>),
    FetchOffsets(Result<Vec<FetchedOffset>, GroupError>),
    /// For each partition of the request, flat, in its order; or the error of all.
    DeleteOffsets(Result<Vec<Result<(), GroupError>>, GroupError>),
    DeleteGroup(Result<(), GroupError>),
    List(Vec<ListedGroup>),
    /// `GroupNotFound`: up to version 5 of DescribeGroups the group is shown as `Dead` instead, without an error.
    Describe(Result<DescribedGroup, GroupError>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Joined {
    pub member: MemberId,
    pub generation: Generation,
    pub protocol_type: Arc<str>,
    pub protocol_name: Arc<str>,
    pub leader: MemberId,
    /// Everybody with what the chosen assignor is told about them, for the leader; for the others empty.
    pub members: Vec<JoinedMember>,
    /// The leader came back as the same static member: the assignment stands.
    pub skip_assignment: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct JoinedMember {
    pub member: MemberId,
    pub instance: Option<InstanceId>,
    pub metadata: Bytes,
}

/// With the member's id: the new one where the error is `MemberIdRequired`, else what the request said.
#[derive(Clone, Debug, PartialEq)]
pub struct JoinRefused {
    pub error: GroupError,
    pub member: MemberId,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Synced {
    pub protocol_type: Arc<str>,
    pub protocol_name: Arc<str>,
    pub assignment: Bytes,
}

#[derive(Clone, Debug, PartialEq)]
pub struct FetchedOffset {
    pub topic: TopicName,
    pub partition: PartitionIndex,
    /// `None`: nothing is committed, which the wire says as offset -1, epoch -1 and empty metadata.
    pub committed: Option<Committed>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Committed {
    pub offset: Offset,
    pub leader_epoch: LeaderEpoch,
    pub metadata: Arc<str>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ListedGroup {
    pub group: GroupId,
    /// Empty for a group that only holds offsets.
    pub protocol_type: Arc<str>,
    pub state: GroupState,
}

#[derive(Clone, Debug, PartialEq)]
pub struct DescribedGroup {
    pub group: GroupId,
    pub state: GroupState,
    pub protocol_type: Arc<str>,
    /// Empty unless the group is stable, and so are metadata and assignments.
    pub protocol_name: Arc<str>,
    pub members: Vec<DescribedMember>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct DescribedMember {
    pub member: MemberId,
    pub instance: Option<InstanceId>,
    pub client_id: Arc<str>,
    pub client_host: Arc<str>,
    pub metadata: Bytes,
    pub assignment: Bytes,
}

/// Why a coordinator refuses. The names are those of Kafka's errors where it has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum GroupError {
    /// INVALID_GROUP_ID.
    #[error("the group id is empty, or longer than is allowed")]
    InvalidGroupId,
    /// UNKNOWN_MEMBER_ID.
    #[error("the group has no such member")]
    UnknownMember,
    /// MEMBER_ID_REQUIRED.
    #[error("the member must join again with the id that it was given")]
    MemberIdRequired,
    /// FENCED_INSTANCE_ID.
    #[error("another member has taken over this instance id")]
    FencedInstance,
    /// ILLEGAL_GENERATION.
    #[error("the generation is not the group's")]
    IllegalGeneration,
    /// REBALANCE_IN_PROGRESS.
    #[error("the group is rebalancing: the member must join again")]
    RebalanceInProgress,
    /// INCONSISTENT_GROUP_PROTOCOL.
    #[error("the member's protocol is not one that the whole group has")]
    InconsistentProtocol,
    /// INVALID_SESSION_TIMEOUT.
    #[error("the session time-out is outside what the broker's settings allow")]
    InvalidSessionTimeout,
    /// GROUP_MAX_SIZE_REACHED.
    #[error("the group, or the memory for groups, is full")]
    GroupFull,
    /// INVALID_REQUEST.
    #[error("a part of the request is longer than is allowed")]
    TooLong,
    /// OFFSET_METADATA_TOO_LARGE.
    #[error("the metadata of the offset is longer than the setting allows")]
    OffsetMetadataTooLarge,
    /// INVALID_COMMIT_OFFSET_SIZE.
    #[error("the offsets do not fit in a record, or in the memory for groups")]
    CommitTooLarge,
    /// GROUP_ID_NOT_FOUND.
    #[error("there is no such group")]
    GroupNotFound,
    /// NON_EMPTY_GROUP.
    #[error("the group has members")]
    NonEmptyGroup,
    /// GROUP_SUBSCRIBED_TO_TOPIC.
    #[error("members of the group are subscribed to the topic")]
    SubscribedToTopic,
    /// COORDINATOR_LOAD_IN_PROGRESS: to be asked again in a moment.
    #[error("the group is being deleted, or the coordinator is loading")]
    CoordinatorLoading,
    /// COORDINATOR_NOT_AVAILABLE.
    #[error("the change could not be written")]
    CoordinatorNotAvailable,
    /// NOT_COORDINATOR.
    #[error("this is not the group's coordinator any more")]
    NotCoordinator,
    /// UNKNOWN_SERVER_ERROR.
    #[error("the group's members do not fit in a record")]
    GroupTooLarge,
}
