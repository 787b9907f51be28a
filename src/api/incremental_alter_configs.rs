//! IncrementalAlterConfigs (key 44), versions 0 to 1. KIP-339.

use kafka_protocol::messages::incremental_alter_configs_request::{
    AlterConfigsResource, IncrementalAlterConfigsRequest,
};
use kafka_protocol::messages::incremental_alter_configs_response::{
    AlterConfigsResourceResponse, IncrementalAlterConfigsResponse,
};

use crate::api::admin_context::AdminContext;
use crate::api::config_changes::{self, ChangeRefusal};
use crate::api::text::message;
use crate::config::{AlterOperation, Alteration};
use crate::controller::SettingsChange;

pub async fn handle(
    context: impl AdminContext,
    request: IncrementalAlterConfigsRequest,
    _version: i16,
) -> IncrementalAlterConfigsResponse {
    let changes = request.resources.iter().map(|resource| {
        config_changes::change(
            resource.resource_type,
            &resource.resource_name,
            alterations(resource),
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
    IncrementalAlterConfigsResponse::default().with_responses(responses.collect())
}

fn alterations(resource: &AlterConfigsResource) -> Result<SettingsChange, String> {
    let alterations = resource.configs.iter().map(|config| {
        let operation = AlterOperation::from_wire_code(config.config_operation)
            .ok_or_else(|| format!("{} is no operation on a setting", config.config_operation))?;
        let value = config.value.as_ref().map(|value| value.to_string());
        Ok(Alteration {
            name: config.name.to_string(),
            operation,
            value,
        })
    });
    Ok(SettingsChange::Incremental(
        alterations.collect::<Result<_, String>>()?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::config_resource::{BROKER, GROUP, TOPIC};
    use crate::api::test_context::{TestContext, read_back, run, string};
    use kafka_protocol::ResponseError;
    use kafka_protocol::messages::incremental_alter_configs_request::AlterableConfig;

    const SET: i8 = 0;
    const DELETE: i8 = 1;
    const APPEND: i8 = 2;

    fn resource(
        resource_type: i8,
        name: &str,
        entry: (&str, i8, Option<&str>),
    ) -> AlterConfigsResource {
        let (setting, operation, value) = entry;
        let config = AlterableConfig::default()
            .with_name(string(setting))
            .with_config_operation(operation)
            .with_value(value.map(string));
        AlterConfigsResource::default()
            .with_resource_type(resource_type)
            .with_resource_name(string(name))
            .with_configs(vec![config])
    }

    fn alter(
        context: &TestContext,
        resources: Vec<AlterConfigsResource>,
        version: i16,
    ) -> Vec<AlterConfigsResourceResponse> {
        let request = IncrementalAlterConfigsRequest::default().with_resources(resources);
        read_back(&run(handle(context.clone(), request, version)), version).responses
    }

    #[test]
    fn every_version_alters_topics_and_brokers() {
        for version in 0..=1 {
            let context = TestContext::new().with_topic("t", 1);
            let responses = alter(
                &context,
                vec![
                    resource(TOPIC, "t", ("retention.ms", SET, Some("5"))),
                    resource(BROKER, "", ("log.flush.interval.ms", SET, Some("6"))),
                    resource(BROKER, "1", ("log.cleanup.policy", APPEND, Some("compact"))),
                ],
                version,
            );
            assert!(
                responses.iter().all(|response| response.error_code == 0),
                "{responses:?}"
            );
            assert_eq!(responses[1].resource_type, BROKER);
            assert_eq!(
                context
                    .image()
                    .topic("t")
                    .unwrap()
                    .overrides
                    .get("retention.ms"),
                Some("5")
            );
            let defaults = context.config().topic_defaults;
            assert_eq!(defaults.flush_ms, 6);
            assert!(defaults.cleanup_policy.compact && defaults.cleanup_policy.delete);
            alter(
                &context,
                vec![resource(TOPIC, "t", ("retention.ms", DELETE, None))],
                version,
            );
            assert!(context.image().topic("t").unwrap().overrides.is_empty());
        }
    }

    #[test]
    fn each_refusal_has_its_code_and_the_others_are_done() {
        let context = TestContext::new().with_topic("t", 1);
        let cases = [
            (
                resource(TOPIC, "t", ("retention.ms", SET, Some("x"))),
                ResponseError::InvalidConfig,
            ),
            (
                resource(TOPIC, "t", ("no.such", SET, Some("1"))),
                ResponseError::InvalidConfig,
            ),
            (
                resource(TOPIC, "t", ("retention.ms", SET, None)),
                ResponseError::InvalidRequest,
            ),
            (
                resource(TOPIC, "t", ("retention.ms", 9, Some("1"))),
                ResponseError::InvalidRequest,
            ),
            (
                resource(TOPIC, "none", ("retention.ms", SET, Some("1"))),
                ResponseError::UnknownTopicOrPartition,
            ),
            (
                resource(BROKER, "7", ("log.retention.ms", SET, Some("1"))),
                ResponseError::InvalidRequest,
            ),
            (
                resource(BROKER, "1", ("node.id", SET, Some("1"))),
                ResponseError::InvalidConfig,
            ),
            (
                resource(GROUP, "g", ("x", SET, Some("1"))),
                ResponseError::InvalidRequest,
            ),
        ];
        for (asked, error) in cases {
            let good = resource(BROKER, "", ("log.flush.interval.ms", SET, Some("6")));
            let responses = alter(&context, vec![asked.clone(), good], 1);
            assert_eq!(responses[0].error_code, error.code(), "{asked:?}");
            assert!(!responses[0].error_message.as_ref().unwrap().is_empty());
            assert_eq!(responses[1].error_code, 0);
        }
    }

    #[test]
    fn a_setting_that_stands_twice_is_refused() {
        let context = TestContext::new().with_topic("t", 1);
        let mut twice = resource(TOPIC, "t", ("retention.ms", SET, Some("1")));
        twice.configs.push(twice.configs[0].clone());
        assert_eq!(
            alter(&context, vec![twice], 1)[0].error_code,
            ResponseError::InvalidRequest.code()
        );
    }

    #[test]
    fn asking_only_changes_nothing() {
        let context = TestContext::new().with_topic("t", 1);
        let resources = vec![resource(TOPIC, "t", ("retention.ms", SET, Some("5")))];
        let request = IncrementalAlterConfigsRequest::default()
            .with_resources(resources)
            .with_validate_only(true);
        assert_eq!(
            run(handle(context.clone(), request, 1)).responses[0].error_code,
            0
        );
        assert!(context.image().topic("t").unwrap().overrides.is_empty());
    }
}
