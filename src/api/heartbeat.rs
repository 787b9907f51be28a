//! Heartbeat (key 12), versions 0 to 4. KIP-345 (static members, from version 3 on).

use kafka_protocol::messages::heartbeat_request::HeartbeatRequest as WireRequest;
use kafka_protocol::messages::heartbeat_response::HeartbeatResponse;

use crate::api::context::ApiContext;
use crate::api::error_code;
use crate::api::group_coordinator::{ask, instance, wrong_answer};
use crate::api::reply::{PendingReply, Reply, RequestId};
use crate::group::{
    Generation, GroupAnswer, GroupError, GroupId, GroupRequest, HeartbeatRequest, MemberId,
};

pub fn dispatch(context: &ApiContext, id: RequestId, request: WireRequest) -> PendingReply {
    let group = GroupId::new(&request.group_id);
    let heartbeat = HeartbeatRequest {
        group: group.clone(),
        generation: Generation(request.generation_id),
        member: MemberId::new(&request.member_id),
        instance: instance(request.group_instance_id.as_ref()),
    };
    let answer = ask(context, &group, GroupRequest::Heartbeat(heartbeat));
    Box::pin(async move {
        let error = match answer.await {
            Ok(GroupAnswer::Heartbeat(result)) => result.err(),
            Ok(other) => wrong_answer(&other),
            // Kafka's answer: the member goes on, and its group will be there when it asks for something.
            Err(GroupError::CoordinatorLoading) => None,
            Err(error) => Some(error),
        };
        let code = error.map_or(0, |error| error_code::of_group(error).code());
        let response = HeartbeatResponse::default().with_error_code(code);
        Ok(Reply::of(&id, &response)?.with_error_codes([code]))
    })
}
