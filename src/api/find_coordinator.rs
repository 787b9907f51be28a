//! FindCoordinator (key 10), versions 0 to 6. KIP-699 (several keys at once, from version 4 on).
//!
//! There are no groups and no transactions yet, so no key has a coordinator, and every key is told so. The API is served all the same
//! because librdkafka compresses with lz4 only where it finds version 0 of it.

use kafka_protocol::ResponseError;
use kafka_protocol::messages::BrokerId;
use kafka_protocol::messages::find_coordinator_request::FindCoordinatorRequest;
use kafka_protocol::messages::find_coordinator_response::{Coordinator, FindCoordinatorResponse};

use crate::api::admin_context::AdminContext;
use crate::api::text::message;

/// From this version on several keys are asked for, and each has its answer.
const KEYS_FROM: i16 = 4;

/// From this version on an answer says why.
const MESSAGE_FROM: i16 = 1;

/// Kinds of keys: a group's, a transactional producer's, a share group's.
const KEY_TYPES: std::ops::RangeInclusive<i8> = 0..=2;

pub async fn handle(
    _context: impl AdminContext,
    request: FindCoordinatorRequest,
    version: i16,
) -> FindCoordinatorResponse {
    let (error, reason) = if KEY_TYPES.contains(&request.key_type) {
        (
            ResponseError::CoordinatorNotAvailable,
            "this broker coordinates neither groups nor transactions",
        )
    } else {
        (
            ResponseError::InvalidRequest,
            "there is no such type of key",
        )
    };
    if version >= KEYS_FROM {
        let coordinators = request.coordinator_keys.into_iter().map(|key| {
            Coordinator::default()
                .with_key(key)
                .with_node_id(BrokerId(-1))
                .with_port(-1)
                .with_error_code(error.code())
                .with_error_message(message(reason))
        });
        return FindCoordinatorResponse::default().with_coordinators(coordinators.collect());
    }
    let reason = (version >= MESSAGE_FROM).then(|| message(reason)).flatten();
    FindCoordinatorResponse::default()
        .with_error_code(error.code())
        .with_error_message(reason)
        .with_node_id(BrokerId(-1))
        .with_port(-1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::test_context::{TestContext, read_back, run};
    use kafka_protocol::protocol::StrBytes;

    #[test]
    fn every_key_is_told_that_it_has_no_coordinator_in_every_version() {
        let context = TestContext::new();
        let key = StrBytes::from_static_str("group");
        for version in 0..=6 {
            let request = match version >= KEYS_FROM {
                true => FindCoordinatorRequest::default().with_coordinator_keys(vec![key.clone()]),
                false => FindCoordinatorRequest::default().with_key(key.clone()),
            };
            let response = read_back(&run(handle(context.clone(), request, version)), version);
            let codes: Vec<i16> = match version >= KEYS_FROM {
                true => response
                    .coordinators
                    .iter()
                    .map(|it| it.error_code)
                    .collect(),
                false => vec![response.error_code],
            };
            assert_eq!(
                codes,
                [ResponseError::CoordinatorNotAvailable.code()],
                "version {version}"
            );
        }
    }
}
