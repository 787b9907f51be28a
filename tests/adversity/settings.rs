//! Settings changed while the broker runs, as an operator's tools do it.

use kafka_protocol::messages::IncrementalAlterConfigsRequest;
use kafka_protocol::messages::incremental_alter_configs_request::{
    AlterConfigsResource, AlterableConfig,
};
use kafka_protocol::messages::incremental_alter_configs_response::AlterConfigsResourceResponse;
use kafka_protocol::protocol::StrBytes;

use crate::wire::Client;

const TOPIC: i8 = 2;
const BROKER: i8 = 4;

/// Sets these for a topic; panics where one is refused.
pub fn alter_topic(client: &mut Client, topic: &str, settings: &[(&str, &str)]) {
    alter(client, TOPIC, topic, settings);
}

/// Sets these for all brokers.
pub fn alter_brokers(client: &mut Client, settings: &[(&str, &str)]) {
    alter(client, BROKER, "", settings);
}

/// Asks to set these for a topic.
pub fn try_alter_topic(
    client: &mut Client,
    topic: &str,
    settings: &[(&str, &str)],
) -> AlterConfigsResourceResponse {
    try_alter(client, TOPIC, topic, settings)
}

fn alter(client: &mut Client, kind: i8, name: &str, settings: &[(&str, &str)]) {
    let response = try_alter(client, kind, name, settings);
    assert_eq!(response.error_code, 0, "{response:?}");
}

fn try_alter(
    client: &mut Client,
    kind: i8,
    name: &str,
    settings: &[(&str, &str)],
) -> AlterConfigsResourceResponse {
    let string = |text: &str| StrBytes::from_string(text.to_owned());
    let settings = settings.iter().map(|(name, value)| {
        AlterableConfig::default()
            .with_name(string(name))
            .with_config_operation(0)
            .with_value(Some(string(value)))
    });
    let resource = AlterConfigsResource::default()
        .with_resource_type(kind)
        .with_resource_name(string(name))
        .with_configs(settings.collect());
    let request = IncrementalAlterConfigsRequest::default().with_resources(vec![resource]);
    client.ask(1, &request).responses.remove(0)
}
