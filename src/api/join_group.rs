//! JoinGroup (key 11), versions 0 to 9. KIP-394 (ids before members, from version 4 on), KIP-345 (static members, from 5 on),
//! KIP-559 (protocol types in the answer, from 7 on), KIP-814 (no assignment anew, from 9 on).

use bytes::Bytes;
use kafka_protocol::messages::join_group_request::JoinGroupRequest;
use kafka_protocol::messages::join_group_response::{JoinGroupResponse, JoinGroupResponseMember};
use kafka_protocol::protocol::StrBytes;

use crate::api::context::ApiContext;
use crate::api::error_code;
use crate::api::group_coordinator::{ask, instance, wrong_answer};
use crate::api::reply::{PendingReply, Reply, RequestId};
use crate::api::text::text;
use crate::group::{
    GroupAnswer, GroupError, GroupId, GroupRequest, JoinProtocol, JoinRefused, JoinRequest, Joined,
    MemberId,
};

/// From this version on a member that comes without an id is given one first.
const MEMBER_ID_REQUIRED_FROM: i16 = 4;

/// From this version on members may be static.
const INSTANCE_FROM: i16 = 5;

/// From this version on the answer names the protocol type, and what is not there is null.
const PROTOCOL_TYPE_FROM: i16 = 7;

/// From this version on a leader can be told to skip the assignment.
const SKIP_ASSIGNMENT_FROM: i16 = 9;

pub fn dispatch(
    context: &ApiContext,
    id: RequestId,
    client_id: &str,
    request: JoinGroupRequest,
) -> PendingReply {
    let group = GroupId::new(&request.group_id);
    // What is kept of the request is copied: it would hold the whole receive buffer otherwise.
    let protocols = request.protocols.iter().map(|protocol| JoinProtocol {
        name: protocol.name.to_string(),
        metadata: Bytes::copy_from_slice(&protocol.metadata),
    });
    let rebalance_timeout_ms = match id.version {
        0 => request.session_timeout_ms,
        _ => request.rebalance_timeout_ms,
    };
    let join = JoinRequest {
        group: group.clone(),
        member: MemberId::new(&request.member_id),
        instance: instance(request.group_instance_id.as_ref()),
        client_id: client_id.to_owned(),
        client_host: format!("/{}", context.client_host),
        session_timeout_ms: request.session_timeout_ms,
        rebalance_timeout_ms,
        protocol_type: request.protocol_type.to_string(),
        protocols: protocols.collect(),
        member_id_required: id.version >= MEMBER_ID_REQUIRED_FROM,
        can_skip_assignment: id.version >= SKIP_ASSIGNMENT_FROM,
        fresh: uuid::Uuid::new_v4(),
    };
    let member = join.member.clone();
    let answer = ask(context, &group, GroupRequest::Join(join));
    Box::pin(async move {
        let result = match answer.await {
            Ok(GroupAnswer::Join(result)) => result,
            Ok(other) => wrong_answer(&other),
            Err(error) => Err(JoinRefused { error, member }),
        };
        let response = match result {
            Ok(joined) => joined_response(joined, id.version),
            Err(JoinRefused { error, member }) => refused_response(error, &member, id.version),
        };
        Ok(Reply::of(&id, &response)?.with_error_codes([response.error_code]))
    })
}

fn joined_response(joined: Joined, version: i16) -> JoinGroupResponse {
    let members = joined.members.into_iter().map(|member| {
        let response = JoinGroupResponseMember::default()
            .with_member_id(text(&member.member))
            .with_metadata(member.metadata);
        match version >= INSTANCE_FROM {
            true => response.with_group_instance_id(member.instance.map(text)),
            false => response,
        }
    });
    let response = JoinGroupResponse::default()
        .with_generation_id(joined.generation.0)
        .with_protocol_name(Some(text(&joined.protocol_name)))
        .with_leader(text(&joined.leader))
        .with_member_id(text(&joined.member))
        .with_members(members.collect())
        .with_skip_assignment(version >= SKIP_ASSIGNMENT_FROM && joined.skip_assignment);
    match version >= PROTOCOL_TYPE_FROM {
        true => response.with_protocol_type(Some(text(&joined.protocol_type))),
        false => response,
    }
}

fn refused_response(error: GroupError, member: &MemberId, version: i16) -> JoinGroupResponse {
    let no_name = (version < PROTOCOL_TYPE_FROM).then(StrBytes::default);
    JoinGroupResponse::default()
        .with_error_code(error_code::of_group(error).code())
        .with_generation_id(-1)
        .with_protocol_name(no_name)
        .with_member_id(text(member))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::test_context::read_back;
    use crate::group::{Generation, InstanceId, JoinedMember};

    #[test]
    fn every_version_says_who_leads_and_what_the_members_want() {
        for version in 0..=9 {
            let joined = Joined {
                member: MemberId::new("m1"),
                generation: Generation(3),
                protocol_type: "consumer".into(),
                protocol_name: "range".into(),
                leader: MemberId::new("m1"),
                members: vec![JoinedMember {
                    member: MemberId::new("m1"),
                    instance: Some(InstanceId::new("i1")),
                    metadata: Bytes::from_static(b"topics"),
                }],
                skip_assignment: true,
            };
            let response = read_back(&joined_response(joined, version), version);
            assert_eq!((response.error_code, response.generation_id), (0, 3));
            assert_eq!(response.leader, response.member_id);
            assert_eq!(response.protocol_name.as_deref(), Some("range"));
            assert_eq!(response.protocol_type.is_some(), version >= 7);
            assert_eq!(response.skip_assignment, version >= 9);
            let member = &response.members[0];
            assert_eq!(&member.metadata[..], b"topics");
            assert_eq!(member.group_instance_id.is_some(), version >= 5);
        }
    }

    #[test]
    fn a_refused_member_reads_its_id_in_every_version() {
        for version in 0..=9 {
            let refused =
                refused_response(GroupError::MemberIdRequired, &MemberId::new("new"), version);
            let response = read_back(&refused, version);
            assert_eq!((response.error_code, response.generation_id), (79, -1));
            assert_eq!(response.member_id.as_str(), "new");
            assert_eq!(response.protocol_name.is_none(), version >= 7);
        }
    }
}
