//! SyncGroup (key 14), versions 0 to 5. KIP-345 (static members, from version 3 on), KIP-559 (protocol type and name, from 5 on).

use bytes::Bytes;
use kafka_protocol::messages::sync_group_request::SyncGroupRequest;
use kafka_protocol::messages::sync_group_response::SyncGroupResponse;

use crate::api::context::ApiContext;
use crate::api::error_code;
use crate::api::group_coordinator::{ask, instance, wrong_answer};
use crate::api::reply::{PendingReply, Reply, RequestId};
use crate::api::text::text;
use crate::group::{
    Generation, GroupAnswer, GroupError, GroupId, GroupRequest, MemberId, SyncRequest, Synced,
};

/// From this version on protocol type and name are said in both directions.
const PROTOCOL_FROM: i16 = 5;

pub fn dispatch(context: &ApiContext, id: RequestId, request: SyncGroupRequest) -> PendingReply {
    let group = GroupId::new(&request.group_id);
    // Copied: an assignment is kept, and would hold the whole receive buffer otherwise.
    let assignments = request.assignments.iter().map(|assigned| {
        (
            MemberId::new(&assigned.member_id),
            Bytes::copy_from_slice(&assigned.assignment),
        )
    });
    let sync = SyncRequest {
        group: group.clone(),
        generation: Generation(request.generation_id),
        member: MemberId::new(&request.member_id),
        instance: instance(request.group_instance_id.as_ref()),
        protocol_type: request.protocol_type.as_ref().map(ToString::to_string),
        protocol_name: request.protocol_name.as_ref().map(ToString::to_string),
        assignments: assignments.collect(),
    };
    let answer = ask(context, &group, GroupRequest::Sync(sync));
    Box::pin(async move {
        let result = match answer.await {
            Ok(GroupAnswer::Sync(result)) => result,
            Ok(other) => wrong_answer(&other),
            Err(error) => Err(error),
        };
        let response = respond(result, id.version);
        Ok(Reply::of(&id, &response)?.with_error_codes([response.error_code]))
    })
}

fn respond(result: Result<Synced, GroupError>, version: i16) -> SyncGroupResponse {
    match result {
        Ok(synced) => {
            let response = SyncGroupResponse::default().with_assignment(synced.assignment);
            match version >= PROTOCOL_FROM {
                true => response
                    .with_protocol_type(Some(text(&synced.protocol_type)))
                    .with_protocol_name(Some(text(&synced.protocol_name))),
                false => response,
            }
        }
        Err(error) => {
            SyncGroupResponse::default().with_error_code(error_code::of_group(error).code())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::test_context::read_back;

    #[test]
    fn every_version_carries_the_assignment_and_newer_ones_the_protocol() {
        for version in 0..=5 {
            let synced = Synced {
                protocol_type: "consumer".into(),
                protocol_name: "range".into(),
                assignment: Bytes::from_static(b"yours"),
            };
            let response = read_back(&respond(Ok(synced), version), version);
            assert_eq!(
                (response.error_code, &response.assignment[..]),
                (0, &b"yours"[..])
            );
            assert_eq!(response.protocol_name.is_some(), version >= 5);
            let refused = respond(Err(GroupError::RebalanceInProgress), version);
            assert_eq!(read_back(&refused, version).error_code, 27);
        }
    }
}
