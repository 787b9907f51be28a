use super::answer::GroupError;
use super::id::GroupId;
use super::request::{GroupRequest, HeartbeatRequest, JoinRequest, LeaveRequest, SyncRequest};
use super::rules::GroupRules;
use crate::model::limits::{
    GROUP_MEMBER_METADATA_BYTES_MAX, GROUP_MEMBER_PROTOCOLS_MAX, GROUP_NAME_BYTES_MAX,
};

/// What of a request can be judged without its group.
pub fn check(request: &GroupRequest, rules: &GroupRules) -> Result<(), GroupError> {
    match request {
        GroupRequest::Join(request) => {
            check_member_group(&request.group)?;
            check_join(request, rules)
        }
        GroupRequest::Sync(SyncRequest { group, .. })
        | GroupRequest::Heartbeat(HeartbeatRequest { group, .. })
        | GroupRequest::Leave(LeaveRequest { group, .. }) => check_member_group(group),
        // Offsets may be kept under the empty name; Kafka allows it for the sake of old clients.
        GroupRequest::Commit(request) if request.group.as_str().len() > GROUP_NAME_BYTES_MAX => {
            Err(GroupError::InvalidGroupId)
        }
        GroupRequest::Commit(_)
        | GroupRequest::FetchOffsets(_)
        | GroupRequest::DeleteOffsets(_)
        | GroupRequest::DeleteGroup(_)
        | GroupRequest::List(_)
        | GroupRequest::Describe(_) => Ok(()),
    }
}

fn check_member_group(group: &GroupId) -> Result<(), GroupError> {
    match group.as_str().len() {
        1..=GROUP_NAME_BYTES_MAX => Ok(()),
        _ => Err(GroupError::InvalidGroupId),
    }
}

fn check_join(request: &JoinRequest, rules: &GroupRules) -> Result<(), GroupError> {
    let session_timeouts = rules.min_session_timeout_ms..=rules.max_session_timeout_ms;
    if !session_timeouts.contains(&request.session_timeout_ms) {
        return Err(GroupError::InvalidSessionTimeout);
    }
    let instance = request.instance.as_ref();
    let names = [
        request.client_id.as_str(),
        &request.client_host,
        &request.protocol_type,
        instance
            .map(|instance| instance.as_str())
            .unwrap_or_default(),
    ];
    let protocols = request
        .protocols
        .iter()
        .map(|protocol| protocol.name.as_str());
    let mut names = names.into_iter().chain(protocols);
    let metadata_bytes: usize = request
        .protocols
        .iter()
        .map(|protocol| protocol.metadata.len())
        .sum();
    let too_long = names.any(|name| name.len() > GROUP_NAME_BYTES_MAX)
        || request.protocols.len() > GROUP_MEMBER_PROTOCOLS_MAX
        || metadata_bytes > GROUP_MEMBER_METADATA_BYTES_MAX;
    match too_long {
        true => Err(GroupError::TooLong),
        false => Ok(()),
    }
}
