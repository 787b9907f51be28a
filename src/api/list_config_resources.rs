//! ListConfigResources (key 74), versions 0 to 1. KIP-714 (version 0 lists client metrics only), KIP-1142.

use kafka_protocol::ResponseError;
use kafka_protocol::messages::list_config_resources_request::ListConfigResourcesRequest;
use kafka_protocol::messages::list_config_resources_response::{
    ConfigResource, ListConfigResourcesResponse,
};

use crate::api::admin_context::AdminContext;
use crate::api::config_resource::{BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP, TOPIC};
use crate::api::text::text;
use crate::config::BrokerConfig;
use crate::metadata::MetadataImage;

/// From this version on the client says which types it asks for; before, it asks for client metrics.
const TYPES_FROM: i16 = 1;

pub async fn handle(
    context: impl AdminContext,
    request: ListConfigResourcesRequest,
    version: i16,
) -> ListConfigResourcesResponse {
    let response = ListConfigResourcesResponse::default();
    let known = [TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP];
    let mut types = match request.resource_types {
        _ if version < TYPES_FROM => vec![CLIENT_METRICS],
        types if types.is_empty() => known.to_vec(),
        types => types,
    };
    types.sort_unstable();
    types.dedup();
    if types
        .iter()
        .any(|resource_type| !known.contains(resource_type))
    {
        return response.with_error_code(ResponseError::UnsupportedVersion.code());
    }
    let (image, config) = (context.image(), context.config());
    let resources = types
        .into_iter()
        .flat_map(|resource_type| resources(&image, &config, resource_type));
    response.with_config_resources(resources.collect())
}

/// Of the types that have no settings here there are no resources.
fn resources(
    image: &MetadataImage,
    config: &BrokerConfig,
    resource_type: i8,
) -> Vec<ConfigResource> {
    let resource = |name| {
        ConfigResource::default()
            .with_resource_type(resource_type)
            .with_resource_name(name)
    };
    match resource_type {
        TOPIC => image
            .topics()
            .map(|topic| resource(text(&topic.name)))
            .collect(),
        BROKER => vec![resource(text(config.node_id))],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::test_context::{TestContext, read_back, run};

    fn list(types: &[i8], version: i16) -> ListConfigResourcesResponse {
        let context = TestContext::new().with_topic("b", 1).with_topic("a", 1);
        let request = ListConfigResourcesRequest::default().with_resource_types(types.to_vec());
        read_back(&run(handle(context, request, version)), version)
    }

    fn rows(response: &ListConfigResourcesResponse) -> Vec<(i8, &str)> {
        response
            .config_resources
            .iter()
            .map(|it| (it.resource_type, it.resource_name.as_str()))
            .collect()
    }

    #[test]
    fn no_type_asks_for_every_type() {
        assert_eq!(
            rows(&list(&[], 1)),
            [(TOPIC, "a"), (TOPIC, "b"), (BROKER, "1")]
        );
        assert_eq!(rows(&list(&[BROKER, BROKER], 1)), [(BROKER, "1")]);
        assert!(rows(&list(&[GROUP, CLIENT_METRICS, BROKER_LOGGER], 1)).is_empty());
    }

    #[test]
    fn version_0_asks_for_client_metrics_of_which_there_are_none() {
        assert!(list(&[], 0).config_resources.is_empty());
    }

    #[test]
    fn an_unknown_type_is_refused() {
        assert_eq!(
            list(&[TOPIC, 3], 1).error_code,
            ResponseError::UnsupportedVersion.code()
        );
    }
}
