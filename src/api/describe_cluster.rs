//! DescribeCluster (key 60), versions 0 to 2. KIP-700, KIP-919 (endpoint types, from version 1 on).

use kafka_protocol::ResponseError;
use kafka_protocol::messages::BrokerId;
use kafka_protocol::messages::describe_cluster_request::DescribeClusterRequest;
use kafka_protocol::messages::describe_cluster_response::{
    DescribeClusterBroker, DescribeClusterResponse,
};

use crate::api::admin_context::AdminContext;
use crate::api::authorized_operations;
use crate::api::text::{message, text};

const BROKERS: i8 = 1;
const CONTROLLERS: i8 = 2;

/// From this version on the client says whose endpoints it asks for.
const ENDPOINT_TYPE_FROM: i16 = 1;

pub async fn handle(
    context: impl AdminContext,
    request: DescribeClusterRequest,
    version: i16,
) -> DescribeClusterResponse {
    let response = DescribeClusterResponse::default().with_error_message(None);
    let endpoint_type = if version >= ENDPOINT_TYPE_FROM {
        request.endpoint_type
    } else {
        BROKERS
    };
    let refused = |error: ResponseError, reason| {
        response
            .clone()
            .with_error_code(error.code())
            .with_error_message(message(reason))
    };
    match endpoint_type {
        BROKERS => {}
        CONTROLLERS => {
            return refused(
                ResponseError::MismatchedEndpointType,
                "this listener is not a controller's",
            );
        }
        _ => {
            return refused(
                ResponseError::UnsupportedEndpointType,
                "there is no such endpoint type",
            );
        }
    }
    let (image, config) = (context.image(), context.config());
    let broker = DescribeClusterBroker::default()
        .with_broker_id(BrokerId(config.node_id.0))
        .with_host(text(&context.advertised().host))
        .with_port(i32::from(context.advertised().port))
        .with_rack(config.rack.as_deref().map(text));
    let operations =
        authorized_operations::on_the_cluster(request.include_cluster_authorized_operations);
    response
        .with_cluster_id(text(image.cluster_id()))
        .with_controller_id(BrokerId(config.node_id.0))
        .with_brokers(vec![broker])
        .with_cluster_authorized_operations(operations)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::test_context::{TestContext, read_back, run};

    #[test]
    fn the_cluster_is_this_broker_and_it_is_the_controller() {
        let context = TestContext::with_settings(&[("node.id", "5"), ("broker.rack", "r1")]);
        for version in 0..=2 {
            let request =
                DescribeClusterRequest::default().with_include_cluster_authorized_operations(true);
            let response = read_back(&run(handle(context.clone(), request, version)), version);
            assert_eq!((response.error_code, response.controller_id.0), (0, 5));
            assert_eq!(response.cluster_id.len(), 22);
            let broker = &response.brokers[0];
            assert_eq!(
                (broker.broker_id.0, broker.host.as_str(), broker.port),
                (5, "broker.example", 19092)
            );
            assert_eq!(broker.rack.as_deref(), Some("r1"));
            assert!(response.cluster_authorized_operations > 0);
        }
    }

    #[test]
    fn controllers_are_not_asked_for_here() {
        let code = |endpoint_type| {
            let request = DescribeClusterRequest::default().with_endpoint_type(endpoint_type);
            let response = run(handle(TestContext::new(), request, 1));
            read_back(&response, 1).error_code
        };
        assert_eq!(code(2), ResponseError::MismatchedEndpointType.code());
        assert_eq!(code(3), ResponseError::UnsupportedEndpointType.code());
    }
}
