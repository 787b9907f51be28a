//! LeaveGroup (key 13), versions 0 to 5. KIP-345 (several members, static ones too, from version 3 on).

use kafka_protocol::messages::leave_group_request::LeaveGroupRequest;
use kafka_protocol::messages::leave_group_response::{LeaveGroupResponse, MemberResponse};
use kafka_protocol::protocol::StrBytes;

use crate::api::context::ApiContext;
use crate::api::error_code;
use crate::api::group_coordinator::{ask, instance, wrong_answer};
use crate::api::reply::{PendingReply, Reply, RequestId};
use crate::group::{
    GroupAnswer, GroupError, GroupId, GroupRequest, LeaveRequest, LeavingMember, MemberId,
};

/// From this version on several members leave, and each has its answer.
const MEMBERS_FROM: i16 = 3;

/// A member as the request names it.
type Named = (StrBytes, Option<StrBytes>);

pub fn dispatch(context: &ApiContext, id: RequestId, request: LeaveGroupRequest) -> PendingReply {
    let group = GroupId::new(&request.group_id);
    let named: Vec<Named> = match id.version >= MEMBERS_FROM {
        true => {
            let members = request.members.into_iter();
            members
                .map(|member| (member.member_id, member.group_instance_id))
                .collect()
        }
        false => vec![(request.member_id, None)],
    };
    let members = named.iter().map(|(member, instance_id)| LeavingMember {
        member: MemberId::new(member),
        instance: instance(instance_id.as_ref()),
    });
    let leave = LeaveRequest {
        group: group.clone(),
        members: members.collect(),
    };
    let answer = ask(context, &group, GroupRequest::Leave(leave));
    Box::pin(async move {
        let result = match answer.await {
            Ok(GroupAnswer::Leave(result)) => result,
            Ok(other) => wrong_answer(&other),
            Err(error) => Err(error),
        };
        let response = respond(result, named, id.version);
        let codes: Vec<i16> = response.members.iter().map(|it| it.error_code).collect();
        Ok(Reply::of(&id, &response)?
            .with_error_codes([response.error_code])
            .with_error_codes(codes))
    })
}

fn respond(
    result: Result<Vec<Result<(), GroupError>>, GroupError>,
    named: Vec<Named>,
    version: i16,
) -> LeaveGroupResponse {
    let code = |result: Result<(), GroupError>| {
        result.map_or_else(|error| error_code::of_group(error).code(), |()| 0)
    };
    let left = match result {
        Ok(left) => left,
        Err(error) => return LeaveGroupResponse::default().with_error_code(code(Err(error))),
    };
    if version < MEMBERS_FROM {
        let error_code = left.into_iter().next().map_or(0, code);
        return LeaveGroupResponse::default().with_error_code(error_code);
    }
    let members = named
        .into_iter()
        .zip(left)
        .map(|((member, instance), result)| {
            MemberResponse::default()
                .with_member_id(member)
                .with_group_instance_id(instance)
                .with_error_code(code(result))
        });
    LeaveGroupResponse::default().with_members(members.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::test_context::{read_back, string};

    #[test]
    fn older_versions_answer_the_one_member_and_newer_ones_each() {
        let named = vec![(string("a"), None), (string("b"), Some(string("i")))];
        for version in 0..=5 {
            let result = Ok(vec![Err(GroupError::UnknownMember), Ok(())]);
            let response = read_back(&respond(result, named.clone(), version), version);
            if version < MEMBERS_FROM {
                assert_eq!(response.error_code, 25);
                continue;
            }
            assert_eq!(response.error_code, 0);
            let codes: Vec<i16> = response.members.iter().map(|it| it.error_code).collect();
            assert_eq!(codes, [25, 0]);
            assert_eq!(response.members[1].group_instance_id.as_deref(), Some("i"));
        }
    }
}
