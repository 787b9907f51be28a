//! FindCoordinator (key 10), versions 0 to 6. KIP-699 (several keys at once, from version 4 on).
//!
//! This broker coordinates every group, once the topic of committed offsets is there; the first who asks waits until it is. There are no
//! transactions: their keys are refused for good, as InitProducerId refuses them. To COORDINATOR_NOT_AVAILABLE clients ask again for as
//! long as they have patience, which is a minute with some and for ever with others. There are no share groups either.

use kafka_protocol::ResponseError;
use kafka_protocol::messages::BrokerId;
use kafka_protocol::messages::find_coordinator_request::FindCoordinatorRequest;
use kafka_protocol::messages::find_coordinator_response::{Coordinator, FindCoordinatorResponse};
use kafka_protocol::protocol::StrBytes;

use crate::api::admin_context::AdminContext;
use crate::api::offsets_topic;
use crate::api::text::{message, text};

/// From this version on the key says what it is of; before it is a group's.
const KEY_TYPE_FROM: i16 = 1;

/// From this version on several keys are asked for, and each has its answer.
const KEYS_FROM: i16 = 4;

/// From this version on an answer says why.
const MESSAGE_FROM: i16 = 1;

/// Kinds of keys: a group's, a transactional producer's, a share group's.
const GROUP: i8 = 0;
const TRANSACTION: i8 = 1;
const SHARE: i8 = 2;

type Refusal = (ResponseError, &'static str);

pub async fn handle(
    context: impl AdminContext,
    request: FindCoordinatorRequest,
    version: i16,
) -> FindCoordinatorResponse {
    let key_type = match version >= KEY_TYPE_FROM {
        true => request.key_type,
        false => GROUP,
    };
    let found = find(&context, key_type).await;
    let of_key = |key: &StrBytes| match found {
        Ok(()) if key.is_empty() => Err((ResponseError::InvalidGroupId, "the group id is empty")),
        found => found,
    };
    if version >= KEYS_FROM {
        let coordinators = request.coordinator_keys.into_iter().map(|key| {
            let coordinator = match of_key(&key) {
                Ok(()) => {
                    let (id, host, port) = this_broker(&context);
                    Coordinator::default()
                        .with_node_id(id)
                        .with_host(host)
                        .with_port(port)
                }
                Err((error, reason)) => Coordinator::default()
                    .with_node_id(BrokerId(-1))
                    .with_port(-1)
                    .with_error_code(error.code())
                    .with_error_message(message(reason)),
            };
            coordinator.with_key(key)
        });
        return FindCoordinatorResponse::default().with_coordinators(coordinators.collect());
    }
    match of_key(&request.key) {
        Ok(()) => {
            let (id, host, port) = this_broker(&context);
            FindCoordinatorResponse::default()
                .with_node_id(id)
                .with_host(host)
                .with_port(port)
        }
        Err((error, reason)) => {
            let reason = (version >= MESSAGE_FROM).then(|| message(reason)).flatten();
            FindCoordinatorResponse::default()
                .with_error_code(error.code())
                .with_error_message(reason)
                .with_node_id(BrokerId(-1))
                .with_port(-1)
        }
    }
}

async fn find(context: &impl AdminContext, key_type: i8) -> Result<(), Refusal> {
    match key_type {
        GROUP => match offsets_topic::ensure(context).await {
            Ok(_) => Ok(()),
            Err(error) => Err((error, "the topic of committed offsets could not be created")),
        },
        TRANSACTION => Err((
            ResponseError::TransactionalIdAuthorizationFailed,
            "this broker has no transactions",
        )),
        SHARE => Err((
            ResponseError::CoordinatorNotAvailable,
            "this broker coordinates consumer groups only",
        )),
        _ => Err((
            ResponseError::InvalidRequest,
            "there is no such type of key",
        )),
    }
}

fn this_broker(context: &impl AdminContext) -> (BrokerId, StrBytes, i32) {
    let advertised = context.advertised();
    let id = BrokerId(context.config().node_id.0);
    (id, text(&advertised.host), i32::from(advertised.port))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::test_context::{TestContext, read_back, run, string};
    use crate::model::internal_topic::OFFSETS_TOPIC;

    /// Error, node and port of each key's answer.
    fn ask(
        context: &TestContext,
        key: &str,
        key_type: i8,
        version: i16,
    ) -> Vec<(i16, i32, String, i32)> {
        let request = match version >= KEYS_FROM {
            true => FindCoordinatorRequest::default().with_coordinator_keys(vec![string(key)]),
            false => FindCoordinatorRequest::default().with_key(string(key)),
        };
        let request = request.with_key_type(key_type);
        let response = read_back(&run(handle(context.clone(), request, version)), version);
        if version >= KEYS_FROM {
            let coordinators = response.coordinators.iter();
            return coordinators
                .map(|it| (it.error_code, it.node_id.0, it.host.to_string(), it.port))
                .collect();
        }
        let host = response.host.to_string();
        vec![(response.error_code, response.node_id.0, host, response.port)]
    }

    #[test]
    fn this_broker_coordinates_every_group_and_the_first_who_asks_creates_the_topic() {
        for version in 0..=6 {
            let context = TestContext::with_settings(&[
                ("node.id", "5"),
                ("offsets.topic.num.partitions", "3"),
                ("num.partitions", "1"),
            ]);
            let here = (0, 5, "broker.example".to_owned(), 19092);
            for group in ["g", "other"] {
                let answers = ask(&context, group, GROUP, version);
                assert_eq!(answers.as_slice(), std::slice::from_ref(&here));
            }
            let image = context.image();
            let topic = image.topic(OFFSETS_TOPIC).expect("it was created");
            assert_eq!(topic.partition_count(), 3);
            let config = context.config().topic_config(&topic.overrides).unwrap();
            assert!(config.cleanup_policy.compact && !config.cleanup_policy.delete);
            assert_eq!(config.segment_bytes, 100 << 20);
        }
    }

    #[test]
    fn other_keys_have_no_coordinator() {
        let context = TestContext::new();
        let refused = ResponseError::TransactionalIdAuthorizationFailed;
        for version in 1..=6 {
            for (key_type, error) in [
                (TRANSACTION, refused),
                (SHARE, ResponseError::CoordinatorNotAvailable),
            ] {
                let answers = ask(&context, "t", key_type, version);
                assert_eq!(answers[0].0, error.code(), "version {version}");
            }
            assert_eq!(
                ask(&context, "t", 9, version)[0].0,
                ResponseError::InvalidRequest.code()
            );
        }
        assert!(context.image().topic(OFFSETS_TOPIC).is_none());
    }

    #[test]
    fn without_a_controller_the_client_is_told_to_ask_again() {
        let context = TestContext::new().without_controller();
        for version in 0..=6 {
            let answers = ask(&context, "g", GROUP, version);
            assert_eq!(answers[0].0, ResponseError::CoordinatorNotAvailable.code());
        }
    }
}
