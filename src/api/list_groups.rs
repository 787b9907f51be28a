//! ListGroups (key 16), versions 0 to 5. KIP-518 (states, from version 4 on), KIP-848 (types, from 5 on: every group is classic).

use kafka_protocol::messages::GroupId as WireGroupId;
use kafka_protocol::messages::list_groups_request::ListGroupsRequest;
use kafka_protocol::messages::list_groups_response::{
    ListGroupsResponse, ListedGroup as WireGroup,
};

use crate::api::context::ApiContext;
use crate::api::group_coordinator::{ask_all, code_of, wrong_answer};
use crate::api::reply::{PendingReply, Reply, RequestId};
use crate::api::text::text;
use crate::group::{GroupAnswer, GroupRequest, GroupState, ListRequest, ListedGroup};
use crate::shard::command::GroupReply;

/// From this version on a group has its state.
const STATE_FROM: i16 = 4;

/// From this version on a group has its type.
const TYPE_FROM: i16 = 5;

const CLASSIC: &str = "classic";

pub fn dispatch(context: &ApiContext, id: RequestId, request: ListGroupsRequest) -> PendingReply {
    let list = list_request(&request);
    let replies = list.map(|list| ask_all(context, &GroupRequest::List(list)));
    Box::pin(async move {
        let replies = match replies {
            Some(replies) => replies.await,
            None => Vec::new(),
        };
        let response = respond(replies, id.version);
        Ok(Reply::of(&id, &response)?.with_error_codes([response.error_code]))
    })
}

/// `None`: no group is of a type that is asked for.
fn list_request(request: &ListGroupsRequest) -> Option<ListRequest> {
    let types = &request.types_filter;
    if !types.is_empty() && !types.iter().any(|it| it.eq_ignore_ascii_case(CLASSIC)) {
        return None;
    }
    let states = &request.states_filter;
    let named = || {
        states
            .iter()
            .filter_map(|name| GroupState::named(name))
            .collect()
    };
    Some(ListRequest {
        states: (!states.is_empty()).then(named),
    })
}

/// The groups of all coordinators; with the error of one that could not answer beside those of the others.
fn respond(replies: Vec<GroupReply>, version: i16) -> ListGroupsResponse {
    let mut response = ListGroupsResponse::default();
    for reply in replies {
        match reply {
            Ok(GroupAnswer::List(groups)) => response
                .groups
                .extend(groups.into_iter().map(|group| describe(group, version))),
            Ok(other) => wrong_answer(&other),
            Err(error) => response.error_code = code_of(error),
        }
    }
    response
}

fn describe(group: ListedGroup, version: i16) -> WireGroup {
    let mut described = WireGroup::default()
        .with_group_id(WireGroupId(text(&group.group)))
        .with_protocol_type(text(&group.protocol_type));
    if version >= STATE_FROM {
        described = described.with_group_state(text(group.state.name()));
    }
    if version >= TYPE_FROM {
        described = described.with_group_type(text(CLASSIC));
    }
    described
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::test_context::{read_back, string};
    use crate::group::{GroupError, GroupId};

    fn listed() -> GroupReply {
        Ok(GroupAnswer::List(vec![ListedGroup {
            group: GroupId::new("g"),
            protocol_type: "consumer".into(),
            state: GroupState::Stable,
        }]))
    }

    #[test]
    fn every_version_says_of_a_group_what_it_can() {
        for version in 0..=5 {
            let response = read_back(&respond(vec![listed(), listed()], version), version);
            assert_eq!(response.groups.len(), 2);
            let group = &response.groups[0];
            assert_eq!(group.protocol_type.as_str(), "consumer");
            assert_eq!(
                group.group_state.as_str(),
                if version >= 4 { "Stable" } else { "" }
            );
            assert_eq!(
                group.group_type.as_str(),
                if version >= 5 { "classic" } else { "" }
            );
        }
    }

    #[test]
    fn a_coordinator_that_is_loading_is_told_beside_the_groups_of_the_others() {
        let replies = vec![listed(), Err(GroupError::CoordinatorLoading), listed()];
        let response = respond(replies, 5);
        assert_eq!((response.error_code, response.groups.len()), (14, 2));
    }

    #[test]
    fn filters_go_by_type_and_state() {
        let request = |types: &[&str], states: &[&str]| {
            let strings = |words: &[&str]| words.iter().map(|word| string(word)).collect();
            ListGroupsRequest::default()
                .with_types_filter(strings(types))
                .with_states_filter(strings(states))
        };
        let states = |types, states| list_request(&request(types, states)).map(|it| it.states);
        assert_eq!(states(&[], &[]), Some(None));
        assert_eq!(states(&["consumer", "share"], &[]), None);
        assert_eq!(
            states(&["Classic"], &["stable", "no such state"]),
            Some(Some(vec![GroupState::Stable]))
        );
        assert_eq!(states(&[], &["no such state"]), Some(Some(Vec::new())));
    }
}
