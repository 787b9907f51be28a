//! A group's coordinator: the classic protocol of consumer groups, and the offsets that they commit.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use kafka_protocol::messages::consumer_protocol_assignment::TopicPartition;
use kafka_protocol::messages::join_group_request::JoinGroupRequestProtocol;
use kafka_protocol::messages::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use kafka_protocol::messages::offset_fetch_request::OffsetFetchRequestTopic;
use kafka_protocol::messages::sync_group_request::SyncGroupRequestAssignment;
use kafka_protocol::messages::{
    ApiKey, ConsumerProtocolAssignment, ConsumerProtocolSubscription, DeleteGroupsRequest,
    FindCoordinatorRequest, GroupId, HeartbeatRequest, JoinGroupRequest, LeaveGroupRequest,
    OffsetCommitRequest, OffsetFetchRequest, SyncGroupRequest, TopicName,
};
use kafka_protocol::protocol::{Decodable, Encodable, StrBytes};

use super::cluster::BrokerAddress;
use super::connection::{Connection, Traffic};
use super::error::{ClientError, ErrorCode};

/// The kind of all groups whose members share partitions.
const PROTOCOL_TYPE: &str = "consumer";

/// Of the members' own messages to each other, which the coordinator only carries.
const CONSUMER_PROTOCOL_VERSION: i16 = 0;

/// The version of OffsetCommit that is spoken at most: the last before compact encodings.
pub const OFFSET_COMMIT_VERSION_MAX: i16 = 7;
pub const OFFSET_COMMIT_VERSION_MIN: i16 = 2;

/// Each is a record of its own in the coordinator's log.
const GROUPS_PER_DELETION_MAX: usize = 500;

/// Whom the members of a group talk to.
pub struct Coordinator {
    connection: Connection,
    group: String,
}

/// What a member is in one generation of its group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Membership {
    pub generation: i32,
    pub member_id: String,
}

/// The answer to a member that joined.
pub enum Joined {
    /// Join again under this id (KIP-394).
    IdGiven(String),
    Member(Membership),
    /// It decides who reads what, of all the members.
    Leader {
        membership: Membership,
        members: Vec<String>,
    },
}

/// What one member is to read of the group's topic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Share {
    pub partitions: Vec<usize>,
    /// How many members the generation has, which the leader tells everybody.
    pub members: u32,
}

/// How long a coordinator may take for what it does not do at once.
#[derive(Clone, Copy, Debug)]
pub struct JoinTimeouts {
    pub session: Duration,
    pub rebalance: Duration,
}

/// Who coordinates the group, as any broker says.
pub fn find_coordinator(
    connection: &mut Connection,
    group: &str,
) -> Result<BrokerAddress, ClientError> {
    let request = FindCoordinatorRequest::default()
        .with_key(text(group))
        .with_key_type(0);
    let found = connection.call(&request, 0, 2)?;
    connection.refuse_error(
        ApiKey::FindCoordinator,
        found.error_code,
        found.error_message.as_deref(),
    )?;
    Ok(BrokerAddress(format!("{}:{}", &*found.host, found.port)))
}

/// The groups' state and offsets are gone after that. None of them may have members.
pub fn delete_groups(bootstrap: &str, groups: &[String]) -> Result<(), ClientError> {
    let mut by_coordinator: BTreeMap<BrokerAddress, Vec<GroupId>> = BTreeMap::new();
    let mut connection = Connection::open(bootstrap)?;
    for group in groups {
        let coordinator = find_coordinator(&mut connection, group)?;
        let group = GroupId(text(group));
        by_coordinator.entry(coordinator).or_default().push(group);
    }
    for (coordinator, groups) in by_coordinator {
        let mut connection = Connection::open(&coordinator.0)?;
        for some in groups.chunks(GROUPS_PER_DELETION_MAX) {
            let request = DeleteGroupsRequest::default().with_groups_names(some.to_vec());
            let answer = connection.call(&request, 0, 2)?;
            for result in &answer.results {
                // A group that never committed is forgotten with its last member.
                if ErrorCode(result.error_code) != ErrorCode::GROUP_ID_NOT_FOUND {
                    connection.refuse_error(ApiKey::DeleteGroups, result.error_code, None)?;
                }
            }
        }
    }
    Ok(())
}

/// `(partition, offset)` each, as a member commits them, or, without a membership, whoever owns a group without members.
pub fn commit_request(
    group: &str,
    membership: Option<&Membership>,
    topic: &str,
    offsets: &[(usize, i64)],
) -> OffsetCommitRequest {
    let partition = |&(partition, offset): &(usize, i64)| {
        OffsetCommitRequestPartition::default()
            .with_partition_index(partition as i32)
            .with_committed_offset(offset)
            .with_committed_metadata(Some(StrBytes::default()))
    };
    let topic = OffsetCommitRequestTopic::default()
        .with_name(TopicName(text(topic)))
        .with_partitions(offsets.iter().map(partition).collect());
    let request = OffsetCommitRequest::default()
        .with_group_id(GroupId(text(group)))
        .with_topics(vec![topic]);
    match membership {
        Some(Membership {
            generation,
            member_id,
        }) => request
            .with_generation_id_or_member_epoch(*generation)
            .with_member_id(text(member_id)),
        None => request,
    }
}

/// The offsets that the group has committed for these partitions; None where it has none. The connection is one to its coordinator.
pub fn committed_offsets(
    connection: &mut Connection,
    group: &str,
    topic: &str,
    partitions: &[usize],
) -> Result<Vec<(usize, Option<i64>)>, ClientError> {
    let wanted = OffsetFetchRequestTopic::default()
        .with_name(TopicName(text(topic)))
        .with_partition_indexes(partitions.iter().map(|it| *it as i32).collect());
    let request = OffsetFetchRequest::default()
        .with_group_id(GroupId(text(group)))
        .with_topics(Some(vec![wanted]));
    let response = connection.call(&request, 1, 5)?;
    connection.refuse_error(ApiKey::OffsetFetch, response.error_code, None)?;
    let mut offsets = Vec::new();
    for part in response.topics.iter().flat_map(|topic| &topic.partitions) {
        connection.refuse_error(ApiKey::OffsetFetch, part.error_code, None)?;
        let offset = (part.committed_offset >= 0).then_some(part.committed_offset);
        offsets.push((part.partition_index as usize, offset));
    }
    offsets.sort_unstable();
    let mut asked = partitions.to_vec();
    asked.sort_unstable();
    match offsets.iter().map(|(partition, _)| *partition).eq(asked) {
        true => Ok(offsets),
        false => Err(connection.protocol(format!(
            "OffsetFetch: {} partitions, and not those that were asked for",
            offsets.len()
        ))),
    }
}

impl Coordinator {
    /// Asks `bootstrap` who coordinates the group and connects there.
    pub fn open(bootstrap: &str, group: &str, timeouts: JoinTimeouts) -> Result<Self, ClientError> {
        let address = find_coordinator(&mut Connection::open(bootstrap)?, group)?;
        let mut connection = Connection::open(&address.0)?;
        // A join is answered when all other members have joined, too.
        connection.wait_longer_by(timeouts.rebalance)?;
        Ok(Self {
            connection,
            group: group.to_owned(),
        })
    }

    pub fn take_traffic(&mut self) -> Traffic {
        self.connection.take_traffic()
    }

    /// Asks to be a member that reads `topic`, under the id that it was given before, or an empty one.
    pub fn join(
        &mut self,
        member_id: &str,
        assignor: &str,
        topic: &str,
        timeouts: JoinTimeouts,
    ) -> Result<Joined, ClientError> {
        let subscription = ConsumerProtocolSubscription::default().with_topics(vec![text(topic)]);
        let protocol = JoinGroupRequestProtocol::default()
            .with_name(text(assignor))
            .with_metadata(self.of_consumers(&subscription)?);
        let request = JoinGroupRequest::default()
            .with_group_id(self.id())
            .with_session_timeout_ms(timeouts.session.as_millis() as i32)
            .with_rebalance_timeout_ms(timeouts.rebalance.as_millis() as i32)
            .with_member_id(text(member_id))
            .with_protocol_type(text(PROTOCOL_TYPE))
            .with_protocols(vec![protocol]);
        let joined = self.connection.call(&request, 2, 5)?;
        if ErrorCode(joined.error_code) == ErrorCode::MEMBER_ID_REQUIRED {
            return Ok(Joined::IdGiven(joined.member_id.to_string()));
        }
        self.connection
            .refuse_error(ApiKey::JoinGroup, joined.error_code, None)?;
        let membership = Membership {
            generation: joined.generation_id,
            member_id: joined.member_id.to_string(),
        };
        if joined.leader != joined.member_id {
            return Ok(Joined::Member(membership));
        }
        let members = joined.members.iter();
        Ok(Joined::Leader {
            membership,
            members: members.map(|member| member.member_id.to_string()).collect(),
        })
    }

    /// Hands in what the leader decided, nothing from anybody else, and returns what this member is to read.
    pub fn sync(
        &mut self,
        membership: &Membership,
        topic: &str,
        decided: &[(String, Share)],
    ) -> Result<Share, ClientError> {
        let mut assignments = Vec::new();
        for (member, share) in decided {
            let partitions = share.partitions.iter().map(|it| *it as i32).collect();
            let of_topic = TopicPartition::default()
                .with_topic(TopicName(text(topic)))
                .with_partitions(partitions);
            let members = Bytes::copy_from_slice(&share.members.to_be_bytes());
            let assignment = ConsumerProtocolAssignment::default()
                .with_assigned_partitions(vec![of_topic])
                .with_user_data(Some(members));
            let assignment = SyncGroupRequestAssignment::default()
                .with_member_id(text(member))
                .with_assignment(self.of_consumers(&assignment)?);
            assignments.push(assignment);
        }
        let request = SyncGroupRequest::default()
            .with_group_id(self.id())
            .with_generation_id(membership.generation)
            .with_member_id(text(&membership.member_id))
            .with_assignments(assignments);
        let synced = self.connection.call(&request, 0, 3)?;
        self.connection
            .refuse_error(ApiKey::SyncGroup, synced.error_code, None)?;
        self.share(synced.assignment, topic)
    }

    /// No bytes are no partitions.
    fn share(&self, mut assignment: Bytes, topic: &str) -> Result<Share, ClientError> {
        if assignment.is_empty() {
            return Ok(Share::default());
        }
        let unreadable = |reason: String| self.connection.protocol(format!("SyncGroup: {reason}"));
        if assignment.remaining() < 2 {
            return Err(unreadable("an assignment of one byte".to_owned()));
        }
        assignment.advance(2);
        let assignment =
            ConsumerProtocolAssignment::decode(&mut assignment, CONSUMER_PROTOCOL_VERSION)
                .map_err(|error| unreadable(error.to_string()))?;
        let of_topic = assignment.assigned_partitions.iter();
        let of_topic = of_topic.filter(|part| &*part.topic.0 == topic);
        let partitions = of_topic.flat_map(|part| &part.partitions);
        let members = assignment.user_data.as_deref();
        Ok(Share {
            partitions: partitions.map(|partition| *partition as usize).collect(),
            members: members
                .and_then(|bytes| bytes.try_into().ok())
                .map_or(0, u32::from_be_bytes),
        })
    }

    pub fn heartbeat(&mut self, membership: &Membership) -> Result<(), ClientError> {
        let request = HeartbeatRequest::default()
            .with_group_id(self.id())
            .with_generation_id(membership.generation)
            .with_member_id(text(&membership.member_id));
        let answer = self.connection.call(&request, 0, 3)?;
        self.connection
            .refuse_error(ApiKey::Heartbeat, answer.error_code, None)
    }

    pub fn commit(
        &mut self,
        membership: &Membership,
        topic: &str,
        offsets: &[(usize, i64)],
    ) -> Result<(), ClientError> {
        let request = commit_request(&self.group, Some(membership), topic, offsets);
        let answer = self.connection.call(
            &request,
            OFFSET_COMMIT_VERSION_MIN,
            OFFSET_COMMIT_VERSION_MAX,
        )?;
        let partitions = answer.topics.iter().flat_map(|topic| &topic.partitions);
        partitions.map(|part| part.error_code).try_for_each(|code| {
            self.connection
                .refuse_error(ApiKey::OffsetCommit, code, None)
        })
    }

    /// The offsets that the group has committed; None where it has none.
    pub fn committed(
        &mut self,
        topic: &str,
        partitions: &[usize],
    ) -> Result<Vec<(usize, Option<i64>)>, ClientError> {
        committed_offsets(&mut self.connection, &self.group, topic, partitions)
    }

    pub fn leave(&mut self, member_id: &str) -> Result<(), ClientError> {
        let request = LeaveGroupRequest::default()
            .with_group_id(self.id())
            .with_member_id(text(member_id));
        let answer = self.connection.call(&request, 0, 2)?;
        self.connection
            .refuse_error(ApiKey::LeaveGroup, answer.error_code, None)
    }

    fn id(&self) -> GroupId {
        GroupId(text(&self.group))
    }

    /// Behind its version, as members write to each other.
    fn of_consumers(&self, message: &impl Encodable) -> Result<Bytes, ClientError> {
        let mut bytes = BytesMut::new();
        bytes.put_i16(CONSUMER_PROTOCOL_VERSION);
        message
            .encode(&mut bytes, CONSUMER_PROTOCOL_VERSION)
            .map_err(|error| {
                self.connection
                    .protocol(format!("a message to members cannot be encoded: {error}"))
            })?;
        Ok(bytes.freeze())
    }
}

fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}
