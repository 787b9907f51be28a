//! DescribeConfigs (key 32), versions 1 to 4. KIP-226 (synonyms), KIP-569 (types and documentation, from version 3 on).

use kafka_protocol::ResponseError;
use kafka_protocol::messages::describe_configs_request::{
    DescribeConfigsRequest, DescribeConfigsResource,
};
use kafka_protocol::messages::describe_configs_response::{
    DescribeConfigsResourceResult, DescribeConfigsResponse, DescribeConfigsResult,
    DescribeConfigsSynonym,
};

use crate::api::admin_context::AdminContext;
use crate::api::config_resource::config_resource;
use crate::api::text::{message, text};
use crate::config::{BrokerConfig, DescribedSetting};
use crate::controller::ConfigResource;
use crate::metadata::MetadataImage;
use crate::model::TopicName;

/// From this version on the answer names types, and documentation where it is asked for.
const TYPES_FROM: i16 = 3;

pub async fn handle(
    context: impl AdminContext,
    request: DescribeConfigsRequest,
    version: i16,
) -> DescribeConfigsResponse {
    let (image, config) = (context.image(), context.config());
    let detail = Detail {
        synonyms: request.include_synonyms,
        types: version >= TYPES_FROM,
        documentation: version >= TYPES_FROM && request.include_documentation,
    };
    let results = request.resources.into_iter().map(|resource| {
        let result = DescribeConfigsResult::default().with_resource_type(resource.resource_type);
        let result = match describe(&image, &config, &resource) {
            Ok(settings) => {
                let wanted = settings
                    .iter()
                    .filter(|described| is_wanted(&resource, described.setting.name));
                let configs = wanted.map(|described| entry(described, &detail)).collect();
                result.with_error_message(None).with_configs(configs)
            }
            Err((error, reason)) => result
                .with_error_code(error.code())
                .with_error_message(message(reason)),
        };
        result.with_resource_name(resource.resource_name)
    });
    DescribeConfigsResponse::default().with_results(results.collect())
}

/// What of each setting is asked for.
struct Detail {
    synonyms: bool,
    types: bool,
    documentation: bool,
}

fn describe(
    image: &MetadataImage,
    config: &BrokerConfig,
    resource: &DescribeConfigsResource,
) -> Result<Vec<DescribedSetting>, (ResponseError, String)> {
    let invalid = |reason: String| (ResponseError::InvalidRequest, reason);
    let asked = config_resource(resource.resource_type, &resource.resource_name);
    match asked.map_err(|error| invalid(error.to_string()))? {
        ConfigResource::Topic(name) => {
            TopicName::new(&name)
                .map_err(|error| (ResponseError::InvalidTopicException, error.to_string()))?;
            let unknown = || {
                (
                    ResponseError::UnknownTopicOrPartition,
                    format!("topic '{name}' does not exist"),
                )
            };
            Ok(config.describe_topic(&image.topic(&name).ok_or_else(unknown)?.overrides))
        }
        ConfigResource::Broker(node) if node == config.node_id => Ok(config.describe_broker()),
        ConfigResource::Broker(node) => Err(invalid(format!(
            "this is broker {}; broker {node} was asked for",
            config.node_id
        ))),
        ConfigResource::AllBrokers => Ok(config.describe_all_brokers()),
    }
}

/// No list, or an empty one, asks for everything.
fn is_wanted(resource: &DescribeConfigsResource, name: &str) -> bool {
    match &resource.configuration_keys {
        Some(keys) if !keys.is_empty() => keys.iter().any(|key| key.as_str() == name),
        _ => true,
    }
}

fn entry(described: &DescribedSetting, detail: &Detail) -> DescribeConfigsResourceResult {
    let setting = described.setting;
    let mut entry = DescribeConfigsResourceResult::default()
        .with_name(text(setting.name))
        .with_value(described.value.as_deref().map(text))
        .with_read_only(setting.is_read_only())
        .with_config_source(described.source.wire_code());
    if detail.synonyms {
        let synonyms = described.candidates.iter().map(|candidate| {
            DescribeConfigsSynonym::default()
                .with_name(text(candidate.name))
                .with_value(Some(text(&candidate.value)))
                .with_source(candidate.source.wire_code())
        });
        entry = entry.with_synonyms(synonyms.collect());
    }
    if detail.types {
        entry = entry.with_config_type(setting.value_type.wire_code());
    }
    if detail.documentation {
        entry = entry.with_documentation(Some(text(setting.doc)));
    }
    entry
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::config_resource::{BROKER, BROKER_LOGGER, TOPIC};
    use crate::api::test_context::{TestContext, read_back, run, string};
    use crate::config::{BROKER_SETTINGS, TOPIC_SETTINGS};
    use kafka_protocol::protocol::StrBytes;

    fn resource(resource_type: i8, name: &str, keys: Option<&[&str]>) -> DescribeConfigsResource {
        let keys = keys.map(|keys| keys.iter().copied().map(string).collect::<Vec<StrBytes>>());
        DescribeConfigsResource::default()
            .with_resource_type(resource_type)
            .with_resource_name(string(name))
            .with_configuration_keys(keys)
    }

    fn describe_one(
        context: &TestContext,
        resource: DescribeConfigsResource,
        version: i16,
    ) -> DescribeConfigsResult {
        let request = DescribeConfigsRequest::default()
            .with_resources(vec![resource])
            .with_include_synonyms(true)
            .with_include_documentation(version >= 3);
        read_back(&run(handle(context.clone(), request, version)), version)
            .results
            .remove(0)
    }

    #[test]
    fn all_defaults_are_described_with_source_type_and_doc() {
        let context = TestContext::new().with_topic("t", 1);
        for version in 1..=4 {
            for (resource, settings) in [
                (resource(TOPIC, "t", None), TOPIC_SETTINGS),
                (resource(BROKER, "1", None), BROKER_SETTINGS),
            ] {
                let result = describe_one(&context, resource, version);
                assert_eq!(
                    (result.error_code, result.configs.len()),
                    (0, settings.len())
                );
                for (entry, setting) in result.configs.iter().zip(settings) {
                    assert_eq!(entry.name.as_str(), setting.name);
                    assert_eq!(entry.value.as_deref(), setting.default, "{}", setting.name);
                    assert_eq!(
                        (entry.config_source, entry.read_only),
                        (5, setting.is_read_only())
                    );
                    if version >= 3 {
                        assert_eq!(entry.config_type, setting.value_type.wire_code());
                        assert_eq!(entry.documentation.as_deref(), Some(setting.doc));
                    }
                }
            }
        }
    }

    #[test]
    fn only_what_is_asked_for_is_described() {
        let context = TestContext::new().with_topic("t", 1);
        let names = |keys| {
            let result = describe_one(&context, resource(TOPIC, "t", keys), 4);
            result
                .configs
                .into_iter()
                .map(|entry| entry.name.to_string())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            names(Some(&["retention.ms", "no.such", "flush.ms"])),
            ["flush.ms", "retention.ms"]
        );
        assert_eq!(names(Some(&[])).len(), TOPIC_SETTINGS.len());
    }

    #[test]
    fn synonyms_show_the_layers() {
        let context =
            TestContext::with_settings(&[("log.retention.hours", "2")]).with_topic("t", 1);
        let result = describe_one(&context, resource(TOPIC, "t", Some(&["retention.ms"])), 4);
        let entry = &result.configs[0];
        assert_eq!(
            (entry.value.as_deref(), entry.config_source),
            (Some("7200000"), 4)
        );
        let synonyms: Vec<_> = entry
            .synonyms
            .iter()
            .map(|it| (it.name.as_str(), it.source))
            .collect();
        assert_eq!(
            synonyms,
            [("log.retention.hours", 4), ("log.retention.hours", 5)]
        );
    }

    #[test]
    fn each_refusal_has_its_code_and_echoes_the_resource() {
        let context = TestContext::new();
        let cases = [
            (
                resource(TOPIC, "none", None),
                ResponseError::UnknownTopicOrPartition,
            ),
            (
                resource(TOPIC, "no/name", None),
                ResponseError::InvalidTopicException,
            ),
            (resource(BROKER, "2", None), ResponseError::InvalidRequest),
            (resource(BROKER, "x", None), ResponseError::InvalidRequest),
            (
                resource(BROKER_LOGGER, "1", None),
                ResponseError::InvalidRequest,
            ),
        ];
        for (asked, error) in cases {
            let result = describe_one(&context, asked.clone(), 4);
            assert_eq!(result.error_code, error.code(), "{asked:?}");
            assert_eq!(
                (result.resource_type, result.resource_name),
                (asked.resource_type, asked.resource_name)
            );
        }
        assert!(
            describe_one(&context, resource(BROKER, "", None), 4)
                .configs
                .is_empty()
        );
    }
}
