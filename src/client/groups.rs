//! Consumer groups as their coordinators know them: who is in them, and what they have committed.

use std::collections::BTreeMap;

use kafka_protocol::messages::consumer_group_describe_response::{
    Assignment, DescribedGroup as NewDescribedGroup,
};
use kafka_protocol::messages::describe_groups_response::{
    DescribedGroup as ClassicDescribedGroup, DescribedGroupMember,
};
use kafka_protocol::messages::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use kafka_protocol::messages::offset_delete_request::{
    OffsetDeleteRequestPartition, OffsetDeleteRequestTopic,
};
use kafka_protocol::messages::{
    ApiKey, ConsumerGroupDescribeRequest, DeleteGroupsRequest, DescribeGroupsRequest, GroupId,
    ListGroupsRequest, OffsetCommitRequest, OffsetDeleteRequest, OffsetFetchRequest,
};

use crate::model::Offset;

use super::cluster::Cluster;
use super::connection::Connection;
use super::consumer_protocol::{PROTOCOL_TYPE, decode_assignment};
use super::error::{ClientError, ErrorCode};
use super::metadata::{TopicPartition, by_topic, text, topic_name};
use super::response_shapes::spoken;

/// The state of a group that is not there (DescribeGroups up to version 5).
const STATE_DEAD: &str = "Dead";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedGroup {
    pub group: String,
    /// Kafka's name for it; empty where the broker is too old to tell.
    pub state: String,
    /// Kafka's name for how its members agree (`classic`, `consumer`); empty where the broker is too old to tell.
    pub group_type: String,
    /// `consumer` where its members consume.
    pub protocol_type: String,
}

/// How the members of a group agree on who has what, with Kafka's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupType {
    Classic,
    /// The protocol of KIP-848.
    Consumer,
}

impl GroupType {
    pub fn name(self) -> &'static str {
        match self {
            Self::Classic => "classic",
            Self::Consumer => "consumer",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    pub group: String,
    pub state: String,
    pub group_type: GroupType,
    pub protocol_type: String,
    /// How partitions are assigned; empty while there is no generation.
    pub assignor: String,
    pub members: Vec<GroupMember>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupMember {
    pub member_id: String,
    pub instance_id: Option<String>,
    pub client_id: String,
    pub host: String,
    pub assigned: Vec<TopicPartition>,
}

/// What an offset is committed with on behalf of: a member in its generation, or nobody, which an empty group allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committer {
    pub member_id: String,
    pub generation: i32,
}

impl Committer {
    /// Who is not a member.
    pub fn outsider() -> Self {
        Self {
            member_id: String::new(),
            generation: -1,
        }
    }
}

/// What became of one committed offset that was to be forgotten.
pub type DeletedOffset = (TopicPartition, Result<(), ClientError>);

pub(super) fn group_id(group: &str) -> GroupId {
    GroupId(text(group))
}

fn about(group: &str) -> String {
    format!("group '{group}'")
}

impl Cluster {
    /// The groups of all brokers, by name.
    pub fn groups(&mut self) -> Result<Vec<ListedGroup>, ClientError> {
        let mut groups = BTreeMap::new();
        for broker in self.brokers()? {
            let listed = self.until_ready(|cluster| cluster.groups_at(&broker.address))?;
            groups.extend(listed.into_iter().map(|group| (group.group.clone(), group)));
        }
        Ok(groups.into_values().collect())
    }

    fn groups_at(&mut self, address: &str) -> Result<Vec<ListedGroup>, ClientError> {
        self.ask(address, |broker| {
            let response = broker.call(&ListGroupsRequest::default())?;
            broker.refuse_error(ApiKey::ListGroups, "groups", response.error_code, None)?;
            let listed = response.groups.iter().map(|group| ListedGroup {
                group: group.group_id.to_string(),
                state: group.group_state.to_string(),
                group_type: group.group_type.to_string(),
                protocol_type: group.protocol_type.to_string(),
            });
            Ok(listed.collect())
        })
    }

    /// Asks the group's coordinator, and again while it is being found or loads the group.
    fn ask_coordinator<T>(
        &mut self,
        group: &str,
        question: impl Fn(&mut Connection) -> Result<T, ClientError>,
    ) -> Result<T, ClientError> {
        self.until_ready(|cluster| {
            let coordinator = cluster.coordinator(group)?;
            cluster.ask(&coordinator, &question)
        })
    }

    /// A group that is not there is refused with GROUP_ID_NOT_FOUND, whatever the version.
    pub fn group(&mut self, group: &str) -> Result<Group, ClientError> {
        let request = DescribeGroupsRequest::default().with_groups(vec![group_id(group)]);
        let classic = self.ask_coordinator(group, |broker| {
            let response = broker.call(&request)?;
            let described = the_one(broker, &response.groups, ApiKey::DescribeGroups)?;
            let code = match &*described.group_state {
                STATE_DEAD if described.error_code == 0 => ErrorCode::GROUP_ID_NOT_FOUND.0,
                _ => described.error_code,
            };
            let message = described.error_message.as_deref();
            broker.refuse_error(ApiKey::DescribeGroups, &about(group), code, message)?;
            Ok(Group::of_classic(described))
        });
        match classic {
            Err(error)
                if error.code() == Some(ErrorCode::GROUP_ID_NOT_FOUND)
                    && self.coordinator_speaks(group, ApiKey::ConsumerGroupDescribe)? =>
            {
                self.new_group(group)
            }
            classic => classic,
        }
    }

    fn coordinator_speaks(&mut self, group: &str, key: ApiKey) -> Result<bool, ClientError> {
        let api = spoken(key);
        self.ask_coordinator(group, |broker| {
            let chosen = broker
                .versions()
                .choose(broker.address(), key, api.min, api.max);
            Ok(chosen.is_ok())
        })
    }

    /// A group of the protocol of KIP-848, which DescribeGroups does not find.
    fn new_group(&mut self, group: &str) -> Result<Group, ClientError> {
        let request = ConsumerGroupDescribeRequest::default().with_group_ids(vec![group_id(group)]);
        self.ask_coordinator(group, |broker| {
            let response = broker.call(&request)?;
            let described = the_one(broker, &response.groups, ApiKey::ConsumerGroupDescribe)?;
            let message = described.error_message.as_deref();
            let code = described.error_code;
            broker.refuse_error(ApiKey::ConsumerGroupDescribe, &about(group), code, message)?;
            Ok(Group::of_new(described))
        })
    }

    pub fn delete_group(&mut self, group: &str) -> Result<(), ClientError> {
        let request = DeleteGroupsRequest::default().with_groups_names(vec![group_id(group)]);
        self.ask_coordinator(group, |broker| {
            let response = broker.call(&request)?;
            let result = the_one(broker, &response.results, ApiKey::DeleteGroups)?;
            broker.refuse_error(ApiKey::DeleteGroups, &about(group), result.error_code, None)
        })
    }

    /// All that the group has committed.
    pub fn committed(
        &mut self,
        group: &str,
    ) -> Result<BTreeMap<TopicPartition, Offset>, ClientError> {
        let request = OffsetFetchRequest::default()
            .with_group_id(group_id(group))
            .with_topics(None);
        self.ask_coordinator(group, |broker| {
            let response = broker.call(&request)?;
            broker.refuse_error(
                ApiKey::OffsetFetch,
                &about(group),
                response.error_code,
                None,
            )?;
            let mut offsets = BTreeMap::new();
            for topic in &response.topics {
                for part in &topic.partitions {
                    let at = TopicPartition::new(&topic.name, part.partition_index);
                    let about = format!("what group '{group}' has committed for {at}");
                    broker.refuse_error(ApiKey::OffsetFetch, &about, part.error_code, None)?;
                    if part.committed_offset >= 0 {
                        offsets.insert(at, Offset(part.committed_offset));
                    }
                }
            }
            Ok(offsets)
        })
    }

    pub fn commit(
        &mut self,
        group: &str,
        committer: &Committer,
        offsets: &BTreeMap<TopicPartition, Offset>,
    ) -> Result<(), ClientError> {
        let part = |(partition, offset): (i32, Offset)| {
            OffsetCommitRequestPartition::default()
                .with_partition_index(partition)
                .with_committed_offset(offset.0)
                .with_committed_leader_epoch(-1)
                .with_committed_metadata(Some(text("")))
        };
        let topics = by_topic(offsets.iter().map(|(at, &offset)| (at, offset)))
            .into_iter()
            .map(|(topic, parts)| {
                OffsetCommitRequestTopic::default()
                    .with_name(topic_name(topic))
                    .with_partitions(parts.into_iter().map(part).collect())
            })
            .collect();
        let request = OffsetCommitRequest::default()
            .with_group_id(group_id(group))
            .with_generation_id_or_member_epoch(committer.generation)
            .with_member_id(text(&committer.member_id))
            .with_retention_time_ms(-1)
            .with_topics(topics);
        self.ask_coordinator(group, |broker| {
            let response = broker.call(&request)?;
            for topic in &response.topics {
                for part in &topic.partitions {
                    let at = TopicPartition::new(&topic.name, part.partition_index);
                    let about = format!("group '{group}' for {at}");
                    broker.refuse_error(ApiKey::OffsetCommit, &about, part.error_code, None)?;
                }
            }
            Ok(())
        })
    }

    /// Forgets what the group has committed for these partitions. Each is answered for by itself.
    pub fn delete_offsets(
        &mut self,
        group: &str,
        partitions: &[TopicPartition],
    ) -> Result<Vec<DeletedOffset>, ClientError> {
        let part = |(partition, ()): &(i32, ())| {
            OffsetDeleteRequestPartition::default().with_partition_index(*partition)
        };
        let topics = by_topic(partitions.iter().map(|at| (at, ())))
            .into_iter()
            .map(|(topic, parts)| {
                OffsetDeleteRequestTopic::default()
                    .with_name(topic_name(topic))
                    .with_partitions(parts.iter().map(part).collect())
            })
            .collect();
        let request = OffsetDeleteRequest::default()
            .with_group_id(group_id(group))
            .with_topics(topics);
        self.ask_coordinator(group, |broker| {
            let response = broker.call(&request)?;
            broker.refuse_error(
                ApiKey::OffsetDelete,
                &about(group),
                response.error_code,
                None,
            )?;
            let mut results = Vec::new();
            for topic in &response.topics {
                for part in &topic.partitions {
                    let at = TopicPartition::new(&topic.name, part.partition_index);
                    let about = format!("what group '{group}' has committed for {at}");
                    let code = part.error_code;
                    let result = broker.refuse_error(ApiKey::OffsetDelete, &about, code, None);
                    results.push((at, result));
                }
            }
            Ok(results)
        })
    }
}

/// The only element of an answer about one group.
fn the_one<'a, T>(
    broker: &Connection,
    elements: &'a [T],
    api: ApiKey,
) -> Result<&'a T, ClientError> {
    match elements {
        [element] => Ok(element),
        _ => Err(broker.protocol(format!(
            "{api:?} with {} groups where one was asked for",
            elements.len()
        ))),
    }
}

impl Group {
    fn of_classic(group: &ClassicDescribedGroup) -> Self {
        let consumes = &*group.protocol_type == PROTOCOL_TYPE;
        let member = |member: &DescribedGroupMember| GroupMember {
            member_id: member.member_id.to_string(),
            instance_id: member.group_instance_id.as_ref().map(|id| id.to_string()),
            client_id: member.client_id.to_string(),
            host: member.client_host.to_string(),
            // What cannot be read, or is of another protocol, is shown as nothing.
            assigned: match consumes {
                true => decode_assignment(&member.member_assignment).unwrap_or_default(),
                false => Vec::new(),
            },
        };
        Self {
            group: group.group_id.to_string(),
            group_type: GroupType::Classic,
            state: group.group_state.to_string(),
            protocol_type: group.protocol_type.to_string(),
            assignor: group.protocol_data.to_string(),
            members: group.members.iter().map(member).collect(),
        }
    }

    fn of_new(group: &NewDescribedGroup) -> Self {
        let partitions = |assignment: &Assignment| {
            let mut partitions = Vec::new();
            for topic in &assignment.topic_partitions {
                for &partition in &topic.partitions {
                    partitions.push(TopicPartition::new(&topic.topic_name, partition));
                }
            }
            partitions
        };
        let members = group.members.iter().map(|member| GroupMember {
            member_id: member.member_id.to_string(),
            instance_id: member.instance_id.as_ref().map(|id| id.to_string()),
            client_id: member.client_id.to_string(),
            host: member.client_host.to_string(),
            assigned: partitions(&member.assignment),
        });
        Self {
            group: group.group_id.to_string(),
            group_type: GroupType::Consumer,
            state: group.group_state.to_string(),
            protocol_type: PROTOCOL_TYPE.to_owned(),
            assignor: group.assignor_name.to_string(),
            members: members.collect(),
        }
    }
}
