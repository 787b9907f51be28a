//! AlterConfigs (key 33), versions 0 to 2: all settings of a resource at once; what is not named goes back to its default.

use kafka_protocol::messages::alter_configs_request::{AlterConfigsRequest, AlterConfigsResource};
use kafka_protocol::messages::alter_configs_response::{
    AlterConfigsResourceResponse, AlterConfigsResponse,
};

use crate::api::admin_context::AdminContext;
use crate::api::config_changes::{self, ChangeRefusal};
use crate::api::text::message;
use crate::controller::SettingsChange;

pub async fn handle(
    context: impl AdminContext,
    request: AlterConfigsRequest,
    _version: i16,
) -> AlterConfigsResponse {
    let changes = request.resources.iter().map(|resource| {
        config_changes::change(
            resource.resource_type,
            &resource.resource_name,
            Ok(settings(resource)),
        )
    });
    let results = config_changes::ask(
        context.controller(),
        changes.collect(),
        request.validate_only,
    )
    .await;
    let responses = request
        .resources
        .into_iter()
        .zip(results)
        .map(|(resource, result)| {
            let response = AlterConfigsResourceResponse::default()
                .with_resource_type(resource.resource_type)
                .with_resource_name(resource.resource_name)
                .with_error_message(None);
            match result {
                Ok(()) => response,
                Err(ChangeRefusal { error, reason }) => response
                    .with_error_code(error.code())
                    .with_error_message(message(reason)),
            }
        });
    AlterConfigsResponse::default().with_responses(responses.collect())
}

fn settings(resource: &AlterConfigsResource) -> SettingsChange {
    let settings = resource.configs.iter().map(|config| {
        let value = config.value.as_ref().map(|value| value.to_string());
        (config.name.to_string(), value)
    });
    SettingsChange::ReplaceAll(settings.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::config_resource::TOPIC;
    use crate::api::test_context::{TestContext, read_back, run, string};
    use kafka_protocol::messages::alter_configs_request::AlterableConfig;

    fn alter(
        context: &TestContext,
        entries: &[(&str, Option<&str>)],
        version: i16,
    ) -> AlterConfigsResourceResponse {
        let configs = entries.iter().map(|(name, value)| {
            AlterableConfig::default()
                .with_name(string(name))
                .with_value(value.map(string))
        });
        let resource = AlterConfigsResource::default()
            .with_resource_type(TOPIC)
            .with_resource_name(string("t"))
            .with_configs(configs.collect());
        let request = AlterConfigsRequest::default().with_resources(vec![resource]);
        read_back(&run(handle(context.clone(), request, version)), version)
            .responses
            .remove(0)
    }

    #[test]
    fn what_is_not_named_goes_back_to_its_default() {
        for version in 0..=2 {
            let context = TestContext::new().with_topic("t", 1);
            assert_eq!(
                alter(&context, &[("retention.ms", Some("5"))], version).error_code,
                0
            );
            assert_eq!(
                alter(&context, &[("flush.ms", Some("6"))], version).error_code,
                0
            );
            let overrides = context.image().topic("t").unwrap().overrides.clone();
            assert_eq!(overrides, [("flush.ms", "6")].into_iter().collect());
        }
    }

    #[test]
    fn a_bad_value_leaves_everything_as_it_was() {
        let context = TestContext::new().with_topic("t", 1);
        alter(&context, &[("retention.ms", Some("5"))], 2);
        let response = alter(
            &context,
            &[("flush.ms", Some("6")), ("segment.ms", Some("x"))],
            2,
        );
        assert_eq!(
            response.error_code,
            kafka_protocol::ResponseError::InvalidConfig.code()
        );
        assert!(
            response
                .error_message
                .unwrap()
                .starts_with("segment.ms=x: ")
        );
        assert_eq!(
            context
                .image()
                .topic("t")
                .unwrap()
                .overrides
                .get("retention.ms"),
            Some("5")
        );
    }
}
