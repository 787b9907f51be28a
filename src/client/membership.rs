//! Being a member of a consumer group, by the classic protocol and with the range assignor: join, be given partitions, heartbeat,
//! commit, leave.

use std::collections::{BTreeMap, BTreeSet};
use std::thread::sleep;
use std::time::{Duration, Instant};

use bytes::Bytes;
use kafka_protocol::messages::join_group_request::JoinGroupRequestProtocol;
use kafka_protocol::messages::join_group_response::JoinGroupResponseMember;
use kafka_protocol::messages::leave_group_request::MemberIdentity;
use kafka_protocol::messages::sync_group_request::SyncGroupRequestAssignment;
use kafka_protocol::messages::{
    ApiKey, HeartbeatRequest, JoinGroupRequest, JoinGroupResponse, LeaveGroupRequest,
    SyncGroupRequest,
};

use crate::model::Offset;

use super::cluster::{Cluster, Topics};
use super::consumer_protocol::{
    PROTOCOL_TYPE, decode_assignment, decode_subscription, encode_assignment, encode_subscription,
};
use super::error::{ClientError, ErrorCode};
use super::groups::{Committer, group_id};
use super::metadata::{TopicPartition, text};
use super::range_assignor::{Subscriber, assign};

const ASSIGNOR: &str = "range";

/// How long the coordinator waits for a sign of life. Kafka's default for consumers.
const SESSION_TIMEOUT: Duration = Duration::from_secs(45);

/// How long it waits for the others to join. Kafka's default for consumers is five minutes, since theirs may handle records meanwhile.
const REBALANCE_TIMEOUT: Duration = Duration::from_secs(60);

const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(3);

/// Between two attempts to join a group that rebalances again before this one had its part.
const REJOIN_INTERVAL: Duration = Duration::from_millis(100);

/// Whether what the member was given still holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    Holds,
    /// The group is rebalancing, or has gone on without this member: what is handled is to be committed, and then it joins again.
    MustRejoin,
}

/// A member of a group with the partitions that it was given in this generation.
pub struct Membership {
    group: String,
    topics: Vec<String>,
    /// None: the group does not know this one, or no more. Then it commits nothing: a commit of nobody's would be taken by an empty group,
    /// whatever an operator has set there.
    committer: Option<Committer>,
    assigned: Vec<TopicPartition>,
    heartbeat_at: Instant,
}

impl Membership {
    /// Joins, and returns when the group has given it its part.
    pub fn join(
        cluster: &mut Cluster,
        group: &str,
        topics: &[String],
    ) -> Result<Self, ClientError> {
        let mut membership = Self {
            group: group.to_owned(),
            topics: topics.to_vec(),
            committer: None,
            assigned: Vec::new(),
            heartbeat_at: Instant::now(),
        };
        membership.rejoin(cluster)?;
        Ok(membership)
    }

    pub fn group(&self) -> &str {
        &self.group
    }

    pub fn assigned(&self) -> &[TopicPartition] {
        &self.assigned
    }

    /// Takes part in a rebalance. What was given before is given up, so it is to be committed before.
    pub fn rejoin(&mut self, cluster: &mut Cluster) -> Result<(), ClientError> {
        self.assigned.clear();
        loop {
            let joined = match self.join_once(cluster) {
                Err(error) if error.code() == Some(ErrorCode::UNKNOWN_MEMBER_ID) => {
                    self.committer = None;
                    continue;
                }
                joined => joined?,
            };
            match self.sync(cluster, &joined) {
                Ok(assigned) => {
                    self.assigned = assigned;
                    self.heartbeat_at = Instant::now() + HEARTBEAT_INTERVAL;
                    return Ok(());
                }
                Err(error) if self.has_moved_on(&error) => sleep(REJOIN_INTERVAL),
                Err(error) => return Err(error),
            }
        }
    }

    fn about(&self) -> String {
        format!("group '{}'", self.group)
    }

    fn join_once(&mut self, cluster: &mut Cluster) -> Result<JoinGroupResponse, ClientError> {
        let about = self.about();
        let protocol = JoinGroupRequestProtocol::default()
            .with_name(text(ASSIGNOR))
            .with_metadata(Bytes::from(encode_subscription(&self.topics)));
        let request = JoinGroupRequest::default()
            .with_group_id(group_id(&self.group))
            .with_session_timeout_ms(SESSION_TIMEOUT.as_millis() as i32)
            .with_rebalance_timeout_ms(REBALANCE_TIMEOUT.as_millis() as i32)
            .with_protocol_type(text(PROTOCOL_TYPE))
            .with_protocols(vec![protocol]);
        let known = self.committer.as_ref();
        let mut member_id = known.map_or_else(String::new, |it| it.member_id.clone());
        let joined = cluster.until_ready(|cluster| {
            let coordinator = cluster.coordinator(&self.group)?;
            cluster.ask(&coordinator, |broker| {
                let request = request.clone().with_member_id(text(&member_id));
                let mut response = broker.call_that_waits(&request, REBALANCE_TIMEOUT)?;
                if ErrorCode(response.error_code) == ErrorCode::MEMBER_ID_REQUIRED {
                    // The coordinator gives the id first, so that a member that never hears of it leaves nothing behind.
                    member_id = response.member_id.to_string();
                    let request = request.with_member_id(response.member_id);
                    response = broker.call_that_waits(&request, REBALANCE_TIMEOUT)?;
                }
                broker.refuse_error(ApiKey::JoinGroup, &about, response.error_code, None)?;
                Ok(response)
            })
        })?;
        self.committer = Some(Committer {
            member_id: joined.member_id.to_string(),
            generation: joined.generation_id,
        });
        Ok(joined)
    }

    /// As the leader hands in the whole assignment, else only asks for one's part.
    fn sync(
        &self,
        cluster: &mut Cluster,
        joined: &JoinGroupResponse,
    ) -> Result<Vec<TopicPartition>, ClientError> {
        let assignments = match joined.leader == joined.member_id {
            true => assign_all(cluster, &joined.members)?,
            false => Vec::new(),
        };
        let request = SyncGroupRequest::default()
            .with_group_id(group_id(&self.group))
            .with_generation_id(joined.generation_id)
            .with_member_id(joined.member_id.clone())
            .with_assignments(assignments);
        let about = self.about();
        cluster.until_ready(|cluster| {
            let coordinator = cluster.coordinator(&self.group)?;
            cluster.ask(&coordinator, |broker| {
                // From version 5 on the coordinator compares both with what it knows.
                let request = match broker.versions().choose("", ApiKey::SyncGroup, 5, 5) {
                    Ok(_) => request
                        .clone()
                        .with_protocol_type(Some(text(PROTOCOL_TYPE)))
                        .with_protocol_name(Some(text(ASSIGNOR))),
                    Err(_) => request.clone(),
                };
                let response = broker.call_that_waits(&request, REBALANCE_TIMEOUT)?;
                broker.refuse_error(ApiKey::SyncGroup, &about, response.error_code, None)?;
                decode_assignment(&response.assignment)
                    .map_err(|error| broker.protocol(format!("the assignment: {error}")))
            })
        })
    }

    /// Tells the coordinator, when it is time, that this member lives, and hears whether its part still holds.
    pub fn heartbeat(&mut self, cluster: &mut Cluster) -> Result<Standing, ClientError> {
        if Instant::now() < self.heartbeat_at {
            return Ok(Standing::Holds);
        }
        let Some(committer) = &self.committer else {
            return Ok(Standing::MustRejoin);
        };
        let request = HeartbeatRequest::default()
            .with_group_id(group_id(&self.group))
            .with_generation_id(committer.generation)
            .with_member_id(text(&committer.member_id));
        let about = self.about();
        let beat = cluster.until_ready(|cluster| {
            let coordinator = cluster.coordinator(&self.group)?;
            cluster.ask(&coordinator, |broker| {
                let response = broker.call(&request)?;
                broker.refuse_error(ApiKey::Heartbeat, &about, response.error_code, None)
            })
        });
        let standing = self.standing(beat)?;
        self.heartbeat_at = Instant::now() + HEARTBEAT_INTERVAL;
        Ok(standing)
    }

    /// Commits what is handled. MustRejoin: it may not have been taken, since the group has moved on.
    pub fn commit(
        &mut self,
        cluster: &mut Cluster,
        offsets: &BTreeMap<TopicPartition, Offset>,
    ) -> Result<Standing, ClientError> {
        match &self.committer {
            None => Ok(Standing::MustRejoin),
            Some(committer) => {
                let committed = cluster.commit(&self.group, committer, offsets);
                self.standing(committed)
            }
        }
    }

    fn standing(&mut self, answer: Result<(), ClientError>) -> Result<Standing, ClientError> {
        match answer {
            Ok(()) => Ok(Standing::Holds),
            Err(error) if self.has_moved_on(&error) => Ok(Standing::MustRejoin),
            Err(error) => Err(error),
        }
    }

    /// Whether the group is in another generation, or about to be. A member that it has forgotten comes as a new one.
    fn has_moved_on(&mut self, error: &ClientError) -> bool {
        match error.code() {
            Some(ErrorCode::UNKNOWN_MEMBER_ID) => {
                self.committer = None;
                true
            }
            Some(ErrorCode::ILLEGAL_GENERATION | ErrorCode::REBALANCE_IN_PROGRESS) => true,
            _ => false,
        }
    }

    /// Gives up its part at once, in place of leaving the others to wait for the session to time out.
    pub fn leave(self, cluster: &mut Cluster) -> Result<(), ClientError> {
        let Some(committer) = &self.committer else {
            return Ok(());
        };
        let member_id = text(&committer.member_id);
        let request = LeaveGroupRequest::default().with_group_id(group_id(&self.group));
        let about = self.about();
        let coordinator = cluster.coordinator(&self.group)?;
        cluster.ask(&coordinator, |broker| {
            // From version 3 on several members can leave at once.
            let request = match broker.versions().choose("", ApiKey::LeaveGroup, 3, 5) {
                Ok(_) => {
                    let member = MemberIdentity::default().with_member_id(member_id);
                    request.with_members(vec![member])
                }
                Err(_) => request.with_member_id(member_id),
            };
            let response = broker.call(&request)?;
            broker.refuse_error(ApiKey::LeaveGroup, &about, response.error_code, None)
        })
    }
}

/// The part of each member, by what they say they want.
fn assign_all(
    cluster: &mut Cluster,
    members: &[JoinGroupResponseMember],
) -> Result<Vec<SyncGroupRequestAssignment>, ClientError> {
    let subscribers: Vec<Subscriber> = members
        .iter()
        .map(|member| Subscriber {
            member_id: member.member_id.to_string(),
            instance_id: member.group_instance_id.as_ref().map(|id| id.to_string()),
            // Who says what cannot be read gets nothing, and the others their parts.
            topics: decode_subscription(&member.metadata).unwrap_or_default(),
        })
        .collect();
    let wanted: BTreeSet<&String> = subscribers.iter().flat_map(|s| &s.topics).collect();
    let wanted: Vec<String> = wanted.into_iter().cloned().collect();
    let counts: BTreeMap<String, i32> = cluster
        .metadata(Topics::Named(&wanted))?
        .topics
        .into_iter()
        .filter(|topic| topic.error.is_ok())
        .map(|topic| (topic.name, topic.partitions.len() as i32))
        .collect();
    let assigned = assign(&subscribers, &counts);
    let assignment = |(member_id, partitions): (String, Vec<TopicPartition>)| {
        SyncGroupRequestAssignment::default()
            .with_member_id(text(&member_id))
            .with_assignment(Bytes::from(encode_assignment(&partitions)))
    };
    Ok(assigned.into_iter().map(assignment).collect())
}
