//! InitProducerId (key 22), versions 0 to 5, for idempotent producers. KIP-98, KIP-360 (an epoch bump, from version 3 on).

use kafka_protocol::ResponseError;
use kafka_protocol::messages::ProducerId as WireProducerId;
use kafka_protocol::messages::init_producer_id_request::InitProducerIdRequest;
use kafka_protocol::messages::init_producer_id_response::InitProducerIdResponse;

use crate::api::admin_context::AdminContext;
use crate::api::error_code;
use crate::controller::ControllerCommand;
use crate::model::{ProducerEpoch, ProducerId};

/// From this version on a producer may name the id and epoch that it has.
const PRESENT_ID_FROM: i16 = 3;

pub async fn handle(
    context: impl AdminContext,
    request: InitProducerIdRequest,
    version: i16,
) -> InitProducerIdResponse {
    // Transactions are not served. Every client takes this code for final, and names the transactional id beside it.
    if request.transactional_id.is_some() {
        return refused(ResponseError::TransactionalIdAuthorizationFailed);
    }
    match present_id(&request, version) {
        Err(error) => refused(error),
        Ok(Some((id, epoch))) if can_bump(id, epoch, context.image().next_producer_id()) => {
            granted(id, ProducerEpoch(epoch.0 + 1))
        }
        Ok(_) => match context
            .controller()
            .ask(|reply| ControllerCommand::AllocateProducerId { reply })
            .await
        {
            Ok(Ok(id)) => granted(id, ProducerEpoch(0)),
            Ok(Err(error)) => refused(error_code::of_producer_id(&error)),
            Err(_gone) => refused(ResponseError::CoordinatorLoadInProgress),
        },
    }
}

/// The id and epoch that the producer has already: both or neither.
fn present_id(
    request: &InitProducerIdRequest,
    version: i16,
) -> Result<Option<(ProducerId, ProducerEpoch)>, ResponseError> {
    let (id, epoch) = (
        ProducerId(request.producer_id.0),
        ProducerEpoch(request.producer_epoch),
    );
    match (id, epoch) {
        _ if version < PRESENT_ID_FROM => Ok(None),
        (ProducerId::NONE, ProducerEpoch::NONE) => Ok(None),
        (ProducerId::NONE, _) | (_, ProducerEpoch::NONE) => Err(ResponseError::InvalidRequest),
        present => Ok(Some(present)),
    }
}

/// Whether the next epoch of an id can be given: it was handed out once, and it has epochs left. Otherwise the producer starts
/// again with a new id. The highest epoch is never given, so that there is always one to fence with.
fn can_bump(id: ProducerId, epoch: ProducerEpoch, next_id: ProducerId) -> bool {
    id.is_some() && id < next_id && (0..i16::MAX - 1).contains(&epoch.0)
}

fn granted(id: ProducerId, epoch: ProducerEpoch) -> InitProducerIdResponse {
    InitProducerIdResponse::default()
        .with_producer_id(WireProducerId(id.0))
        .with_producer_epoch(epoch.0)
}

fn refused(error: ResponseError) -> InitProducerIdResponse {
    InitProducerIdResponse::default()
        .with_error_code(error.code())
        .with_producer_id(WireProducerId(ProducerId::NONE.0))
        .with_producer_epoch(ProducerEpoch::NONE.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::test_context::{TestContext, read_back, run, string};
    use kafka_protocol::messages::TransactionalId;

    fn present(id: i64, epoch: i16) -> InitProducerIdRequest {
        InitProducerIdRequest::default()
            .with_transactional_id(None)
            .with_producer_id(WireProducerId(id))
            .with_producer_epoch(epoch)
    }

    fn ask(context: &TestContext, request: InitProducerIdRequest, version: i16) -> (i16, i64, i16) {
        let response = read_back(&run(handle(context.clone(), request, version)), version);
        (
            response.error_code,
            response.producer_id.0,
            response.producer_epoch,
        )
    }

    #[test]
    fn every_version_gives_an_id_of_its_own() {
        let context = TestContext::new();
        for version in 0..=5 {
            assert_eq!(
                ask(&context, present(-1, -1), version),
                (0, i64::from(version), 0)
            );
        }
    }

    #[test]
    fn an_id_that_was_given_gets_its_next_epoch() {
        let context = TestContext::new();
        let (_, id, _) = ask(&context, present(-1, -1), 5);
        assert_eq!(ask(&context, present(id, 0), 3), (0, id, 1));
        assert_eq!(
            ask(&context, present(id, 0), 3),
            (0, id, 1),
            "a repeated request has the same answer"
        );
        assert_eq!(
            ask(&context, present(id, i16::MAX - 2), 3),
            (0, id, i16::MAX - 1)
        );
        let (code, other, epoch) = ask(&context, present(id, i16::MAX - 1), 3);
        assert_eq!((code, epoch), (0, 0), "the epochs are used up");
        assert_ne!(other, id);
    }

    #[test]
    fn an_id_that_was_never_given_is_replaced() {
        let context = TestContext::new();
        assert_eq!(ask(&context, present(123_456, 3), 5), (0, 0, 0));
    }

    #[test]
    fn an_id_without_epoch_or_an_epoch_without_id_is_refused() {
        let context = TestContext::new();
        let invalid = ResponseError::InvalidRequest.code();
        assert_eq!(ask(&context, present(5, -1), 3), (invalid, -1, -1));
        assert_eq!(ask(&context, present(-1, 5), 3), (invalid, -1, -1));
    }

    #[test]
    fn a_transactional_id_is_refused_for_good() {
        let request = present(-1, -1).with_transactional_id(Some(TransactionalId(string("tx"))));
        let refused = ResponseError::TransactionalIdAuthorizationFailed;
        assert_eq!(
            ask(&TestContext::new(), request, 4),
            (refused.code(), -1, -1)
        );
        assert!(!refused.is_retriable());
    }

    #[test]
    fn a_stopping_broker_asks_producers_to_try_again() {
        let (code, ..) = ask(&TestContext::new().without_controller(), present(-1, -1), 4);
        assert_eq!(code, ResponseError::CoordinatorLoadInProgress.code());
        assert!(ResponseError::CoordinatorLoadInProgress.is_retriable());
    }
}
