//! Consumer groups: who is in a group, which rebalance it is in, what it has committed. The classic protocol of Kafka.
//!
//! Owns: the groups' state machine, the committed offsets, the bytes of the records of `__consumer_offsets`.
//! Must never know: shards, sockets, versions of the wire, clocks, files. Time comes in with each call; who waits is a token that is
//! handed back; what must be written is handed out, and the coordinator is told when it is on disk.
//! Runs on: the shard that owns the partition of `__consumer_offsets` that the group's name hashes to; one `Coordinator` each.
//! After a crash: every confirmed commit and every group as it last became stable or empty, from the records. Members then have a
//! whole session time-out to be heard of; a rebalance that was under way begins anew when they join again.

mod answer;
mod check;
mod classic_group;
mod coordinator;
mod group_offsets;
mod id;
mod member;
mod members;
mod membership;
mod pending_writes;
mod record;
mod request;
mod rules;
mod state;
mod subscription;
mod sweep;
#[cfg(test)]
mod tests;
mod timers;
mod turn;
mod write;

pub use answer::{
    Committed, DescribedGroup, DescribedMember, FetchedOffset, GroupAnswer, GroupError,
    JoinRefused, Joined, JoinedMember, ListedGroup, Synced,
};
pub use coordinator::{Coordinator, Replayed};
pub use id::{Generation, GroupId, InstanceId, MemberId};
pub use record::{BadRecord, RecordPart};
pub use request::{
    CommitRequest, DeleteOffsetsRequest, FetchOffsetsRequest, FetchPartitions, GroupRequest,
    HeartbeatRequest, JoinProtocol, JoinRequest, LeaveRequest, LeavingMember, ListRequest,
    OffsetToCommit, SyncRequest, TopicPartitions,
};
pub use rules::GroupRules;
pub use state::GroupState;
pub use write::{Effects, GroupRecord, GroupWrite, GroupWriteId, WriteRefused};
