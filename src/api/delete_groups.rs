//! DeleteGroups (key 42), versions 0 to 2. KIP-229.

use kafka_protocol::messages::delete_groups_request::DeleteGroupsRequest;
use kafka_protocol::messages::delete_groups_response::{
    DeletableGroupResult, DeleteGroupsResponse,
};

use crate::api::context::ApiContext;
use crate::api::group_coordinator::{
    DUPLICATE_GROUP, ask_each, code_of, first_mentions, wrong_answer,
};
use crate::api::reply::{PendingReply, Reply, RequestId};
use crate::group::{GroupAnswer, GroupRequest};

pub fn dispatch(context: &ApiContext, id: RequestId, request: DeleteGroupsRequest) -> PendingReply {
    let names = request.groups_names;
    let groups = first_mentions(names.iter().map(|name| name.as_str()));
    let requests = groups
        .iter()
        .flatten()
        .map(|group| (group.clone(), GroupRequest::DeleteGroup(group.clone())));
    let replies = ask_each(context, requests.collect());
    Box::pin(async move {
        let mut replies = replies.await.into_iter();
        let results = names.into_iter().zip(groups).map(|(name, group)| {
            let code = match group.map(|_| replies.next().expect("each group is answered")) {
                None => DUPLICATE_GROUP.code(),
                Some(Ok(GroupAnswer::DeleteGroup(result))) => result.map_or_else(code_of, |()| 0),
                Some(Ok(other)) => wrong_answer(&other),
                Some(Err(error)) => code_of(error),
            };
            DeletableGroupResult::default()
                .with_group_id(name)
                .with_error_code(code)
        });
        let response = DeleteGroupsResponse::default().with_results(results.collect());
        let codes: Vec<i16> = response.results.iter().map(|it| it.error_code).collect();
        Ok(Reply::of(&id, &response)?.with_error_codes(codes))
    })
}
