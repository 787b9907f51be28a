//! DescribeGroups (key 15), versions 0 to 6. KIP-430 (authorized operations, from version 3 on), KIP-345 (static members, from 4 on),
//! KIP-1043 (an error for a group that is not there, from 6 on).

use kafka_protocol::messages::GroupId as WireGroupId;
use kafka_protocol::messages::describe_groups_request::DescribeGroupsRequest;
use kafka_protocol::messages::describe_groups_response::{
    DescribeGroupsResponse, DescribedGroup as WireGroup, DescribedGroupMember,
};

use crate::api::authorized_operations;
use crate::api::context::ApiContext;
use crate::api::group_coordinator::{
    DUPLICATE_GROUP, ask_each, code_of, first_mentions, wrong_answer,
};
use crate::api::reply::{PendingReply, Reply, RequestId};
use crate::api::text::{message, text};
use crate::group::{
    DescribedGroup, DescribedMember, GroupAnswer, GroupError, GroupId, GroupRequest, GroupState,
};
use crate::shard::command::GroupReply;

/// From this version on the answer can carry authorized operations.
const OPERATIONS_FROM: i16 = 3;

/// From this version on members may be static.
const INSTANCE_FROM: i16 = 4;

/// From this version on a group that does not exist is an error, with a message.
const NOT_FOUND_FROM: i16 = 6;

pub fn dispatch(
    context: &ApiContext,
    id: RequestId,
    request: DescribeGroupsRequest,
) -> PendingReply {
    let names = request.groups;
    let with_operations = request.include_authorized_operations;
    let groups = first_mentions(names.iter().map(|name| name.as_str()));
    let requests = groups
        .iter()
        .flatten()
        .map(|group| (group.clone(), GroupRequest::Describe(group.clone())));
    let replies = ask_each(context, requests.collect());
    Box::pin(async move {
        let response = respond(names, &groups, replies.await, with_operations, id.version);
        let codes: Vec<i16> = response.groups.iter().map(|it| it.error_code).collect();
        Ok(Reply::of(&id, &response)?.with_error_codes(codes))
    })
}

fn respond(
    names: Vec<WireGroupId>,
    groups: &[Option<GroupId>],
    replies: Vec<GroupReply>,
    with_operations: bool,
    version: i16,
) -> DescribeGroupsResponse {
    let mut replies = replies.into_iter();
    let groups = names.into_iter().zip(groups).map(|(name, group)| {
        if group.is_none() {
            return WireGroup::default()
                .with_group_id(name)
                .with_error_code(DUPLICATE_GROUP.code());
        }
        let result = match replies.next().expect("each group is answered") {
            Ok(GroupAnswer::Describe(result)) => result,
            Ok(other) => wrong_answer(&other),
            Err(error) => Err(error),
        };
        let described = match result {
            Ok(group) => describe(group, version),
            Err(error) => not_described(&name, error, version),
        };
        let described = described.with_group_id(name);
        match version >= OPERATIONS_FROM {
            true => described
                .with_authorized_operations(authorized_operations::on_a_group(with_operations)),
            false => described,
        }
    });
    DescribeGroupsResponse::default().with_groups(groups.collect())
}

fn describe(group: DescribedGroup, version: i16) -> WireGroup {
    let members = group.members.into_iter().map(|member| {
        let DescribedMember {
            member,
            instance,
            client_id,
            client_host,
            metadata,
            assignment,
        } = member;
        let described = DescribedGroupMember::default()
            .with_member_id(text(member))
            .with_client_id(text(client_id))
            .with_client_host(text(client_host))
            .with_member_metadata(metadata)
            .with_member_assignment(assignment);
        match version >= INSTANCE_FROM {
            true => described.with_group_instance_id(instance.map(text)),
            false => described,
        }
    });
    WireGroup::default()
        .with_group_state(text(group.state.name()))
        .with_protocol_type(text(&group.protocol_type))
        .with_protocol_data(text(&group.protocol_name))
        .with_members(members.collect())
}

fn not_described(name: &WireGroupId, error: GroupError, version: i16) -> WireGroup {
    match error {
        GroupError::GroupNotFound => {
            let dead = WireGroup::default().with_group_state(text(GroupState::Dead.name()));
            match version >= NOT_FOUND_FROM {
                true => dead
                    .with_error_code(code_of(error))
                    .with_error_message(message(format!("Group {} not found.", name.as_str()))),
                false => dead,
            }
        }
        error => WireGroup::default().with_error_code(code_of(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::test_context::{read_back, string};
    use crate::group::{InstanceId, MemberId};
    use bytes::Bytes;

    #[test]
    fn every_version_describes_members_and_repeats_no_group() {
        for version in 0..=6 {
            let names = ["g", "gone", "g"].map(|name| WireGroupId(string(name)));
            let groups = first_mentions(["g", "gone", "g"].into_iter());
            let described = DescribedGroup {
                group: GroupId::new("g"),
                state: GroupState::Stable,
                protocol_type: "consumer".into(),
                protocol_name: "range".into(),
                members: vec![DescribedMember {
                    member: MemberId::new("m1"),
                    instance: Some(InstanceId::new("i1")),
                    client_id: "c".into(),
                    client_host: "/127.0.0.1".into(),
                    metadata: Bytes::from_static(b"topics"),
                    assignment: Bytes::from_static(b"partitions"),
                }],
            };
            let replies = vec![
                Ok(GroupAnswer::Describe(Ok(described))),
                Ok(GroupAnswer::Describe(Err(GroupError::GroupNotFound))),
            ];
            let response = respond(names.to_vec(), &groups, replies, true, version);
            let response = read_back(&response, version);
            let [found, gone, again] = &response.groups[..] else {
                panic!("three groups were asked for");
            };
            assert_eq!(
                (found.error_code, found.group_state.as_str()),
                (0, "Stable")
            );
            assert_eq!(found.protocol_data.as_str(), "range");
            assert_eq!(&found.members[0].member_assignment[..], b"partitions");
            assert_eq!(found.members[0].client_host.as_str(), "/127.0.0.1");
            let operations = if version >= 3 { 3400 } else { i32::MIN };
            assert_eq!(found.authorized_operations, operations);
            assert_eq!(gone.error_code, if version >= 6 { 69 } else { 0 });
            assert_eq!(gone.group_state.as_str(), "Dead");
            assert_eq!(again.error_code, DUPLICATE_GROUP.code());
        }
    }
}
