//! CreateTopics (key 19), versions 2 to 7. KIP-464 (defaults by -1), KIP-525 (the settings in the answer, from version 5 on),
//! KIP-516 (topic ids, from version 7 on).

use kafka_protocol::ResponseError;
use kafka_protocol::messages::TopicName as WireTopicName;
use kafka_protocol::messages::create_topics_request::{CreatableTopic, CreateTopicsRequest};
use kafka_protocol::messages::create_topics_response::{
    CreatableTopicConfigs, CreatableTopicResult, CreateTopicsResponse,
};

use crate::api::admin_context::AdminContext;
use crate::api::error_code;
use crate::api::text::{message, text};
use crate::config::BrokerConfig;
use crate::controller::{ControllerCommand, NewTopic, NewTopicLayout};
use crate::metadata::Topic;
use crate::model::{NodeId, PartitionIndex, TopicId};

/// From this version on the answer describes the topic.
const DETAILS_FROM: i16 = 5;

/// From this version on the answer carries the topic's id.
const TOPIC_ID_FROM: i16 = 7;

/// What -1 stands for where a number may be left out.
const LEFT_OUT: i32 = -1;

pub async fn handle(
    context: impl AdminContext,
    request: CreateTopicsRequest,
    version: i16,
) -> CreateTopicsResponse {
    let validate_only = request.validate_only;
    let mut refusals = Vec::with_capacity(request.topics.len());
    let mut wanted = Vec::with_capacity(request.topics.len());
    for topic in &request.topics {
        let layout = layout(topic);
        refusals.push(layout.as_ref().err().copied());
        wanted.extend(layout.ok().map(|layout| new_topic(topic, layout)));
    }
    let command = |reply| ControllerCommand::CreateTopics {
        topics: wanted,
        validate_only,
        reply,
    };
    let results = context.controller().ask(command).await;
    let config = context.config();
    let mut results = results.map(Vec::into_iter);
    let topics = request
        .topics
        .into_iter()
        .zip(refusals)
        .map(|(topic, refusal)| {
            if let Some(reason) = refusal {
                return refused(topic.name, ResponseError::InvalidRequest, reason);
            }
            match &mut results {
                Err(gone) => refused(topic.name, error_code::CONTROLLER_GONE, *gone),
                Ok(results) => match results.next().expect("the controller answers each topic") {
                    Ok(created) => describe(topic.name, &created, &config, validate_only, version),
                    Err(error) => refused(topic.name, error_code::of_create_topic(&error), error),
                },
            }
        });
    CreateTopicsResponse::default().with_topics(topics.collect())
}

/// Numbers, or an assignment: not both.
fn layout(topic: &CreatableTopic) -> Result<NewTopicLayout, &'static str> {
    if topic.assignments.is_empty() {
        return Ok(NewTopicLayout::Counts {
            partition_count: topic.num_partitions,
            replication_factor: topic.replication_factor,
        });
    }
    if topic.num_partitions != LEFT_OUT || i32::from(topic.replication_factor) != LEFT_OUT {
        return Err(
            "beside a replica assignment the number of partitions and the replication factor must both be -1",
        );
    }
    let assigned = topic.assignments.iter().map(|assignment| {
        let replicas = assignment
            .broker_ids
            .iter()
            .map(|broker| NodeId(broker.0))
            .collect();
        (PartitionIndex(assignment.partition_index), replicas)
    });
    Ok(NewTopicLayout::Assigned(assigned.collect()))
}

fn new_topic(topic: &CreatableTopic, layout: NewTopicLayout) -> NewTopic {
    let settings = topic.configs.iter().map(|config| {
        let value = config.value.as_ref().map(|value| value.to_string());
        (config.name.to_string(), value)
    });
    NewTopic {
        name: topic.name.to_string(),
        layout,
        settings: settings.collect(),
    }
}

fn refused(
    name: WireTopicName,
    error: ResponseError,
    reason: impl std::fmt::Display,
) -> CreatableTopicResult {
    CreatableTopicResult::default()
        .with_name(name)
        .with_error_code(error.code())
        .with_error_message(message(reason))
}

fn describe(
    name: WireTopicName,
    topic: &Topic,
    config: &BrokerConfig,
    validate_only: bool,
    version: i16,
) -> CreatableTopicResult {
    let mut result = CreatableTopicResult::default()
        .with_name(name)
        .with_error_message(None);
    if version >= DETAILS_FROM {
        let settings = config
            .describe_topic(&topic.overrides)
            .into_iter()
            .map(|described| {
                CreatableTopicConfigs::default()
                    .with_name(text(described.setting.name))
                    .with_value(described.value.map(text))
                    .with_read_only(described.setting.is_read_only())
                    .with_config_source(described.source.wire_code())
            });
        result = result
            .with_num_partitions(topic.partition_count())
            .with_replication_factor(topic.replication_factor())
            .with_configs(Some(settings.collect()));
    }
    if version >= TOPIC_ID_FROM {
        // A topic that was only asked about has no id.
        result = result.with_topic_id(if validate_only {
            TopicId::ZERO.0
        } else {
            topic.id.0
        });
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::test_context::{TestContext, read_back, run, string};
    use kafka_protocol::messages::BrokerId;
    use kafka_protocol::messages::create_topics_request::{
        CreatableReplicaAssignment, CreatableTopicConfig,
    };

    fn topic(name: &str) -> CreatableTopic {
        let topic = CreatableTopic::default().with_name(WireTopicName(string(name)));
        topic.with_num_partitions(-1).with_replication_factor(-1)
    }

    fn create(
        context: &TestContext,
        topics: Vec<CreatableTopic>,
        version: i16,
    ) -> Vec<CreatableTopicResult> {
        let request = CreateTopicsRequest::default().with_topics(topics);
        read_back(&run(handle(context.clone(), request, version)), version).topics
    }

    #[test]
    fn every_version_creates_and_answers() {
        let context = TestContext::with_settings(&[("num.partitions", "3")]);
        for version in 2..=7 {
            let name = format!("t{version}");
            let result = create(&context, vec![topic(&name)], version).remove(0);
            assert_eq!(
                (result.name.as_str(), result.error_code),
                (name.as_str(), 0)
            );
            let created = context.image().topic(&name).cloned().unwrap();
            if version >= 5 {
                assert_eq!((result.num_partitions, result.replication_factor), (3, 1));
                let configs = result.configs.unwrap();
                assert_eq!(configs.len(), crate::config::TOPIC_SETTINGS.len());
            }
            assert_eq!(
                result.topic_id,
                if version >= 7 {
                    created.id.0
                } else {
                    TopicId::ZERO.0
                }
            );
        }
    }

    #[test]
    fn each_refusal_has_its_code_and_names_its_reason() {
        let context = TestContext::new().with_topic("exists", 1);
        let config = |name: &str, value: &str| {
            CreatableTopicConfig::default()
                .with_name(string(name))
                .with_value(Some(string(value)))
        };
        let dotted = TestContext::new().with_topic("a.b_c", 1);
        for (name, error) in [
            ("a.b_c", ResponseError::TopicAlreadyExists),
            ("a_b_c", ResponseError::InvalidTopicException),
            ("a.b.c", ResponseError::InvalidTopicException),
        ] {
            let result = create(&dotted, vec![topic(name)], 7).remove(0);
            assert_eq!(result.error_code, error.code(), "{name}");
        }
        assert_eq!(create(&dotted, vec![topic("a-b_c")], 7)[0].error_code, 0);
        let assignment = |index, broker| {
            let assignment = CreatableReplicaAssignment::default().with_partition_index(index);
            assignment.with_broker_ids(vec![BrokerId(broker)])
        };
        let cases = [
            (topic("exists"), ResponseError::TopicAlreadyExists),
            (topic("no name"), ResponseError::InvalidTopicException),
            (
                topic("a").with_num_partitions(0),
                ResponseError::InvalidPartitions,
            ),
            (
                topic("a").with_replication_factor(3),
                ResponseError::InvalidReplicationFactor,
            ),
            (
                topic("a").with_configs(vec![config("no.such", "1")]),
                ResponseError::InvalidConfig,
            ),
            (
                topic("a").with_configs(vec![config("compression.type", "zstd")]),
                ResponseError::InvalidConfig,
            ),
            (
                topic("a").with_configs(vec![config("retention.ms", "1").with_value(None)]),
                ResponseError::InvalidConfig,
            ),
            (
                topic("__cluster_metadata"),
                ResponseError::TopicAuthorizationFailed,
            ),
            (
                topic("a").with_assignments(vec![assignment(0, 9)]),
                ResponseError::InvalidReplicaAssignment,
            ),
            (
                topic("a")
                    .with_num_partitions(1)
                    .with_assignments(vec![assignment(0, 1)]),
                ResponseError::InvalidRequest,
            ),
        ];
        for (topic, error) in cases {
            let result = create(&context, vec![topic.clone()], 7).remove(0);
            assert_eq!(result.error_code, error.code(), "{topic:?}");
            assert!(!result.error_message.unwrap().is_empty());
        }
        assert_eq!(
            create(
                &context,
                vec![topic("a").with_assignments(vec![assignment(0, 1)])],
                7
            )[0]
            .error_code,
            0
        );
    }

    #[test]
    fn results_keep_the_order_of_the_request() {
        let context = TestContext::new();
        let mixed = topic("mixed")
            .with_num_partitions(1)
            .with_assignments(vec![Default::default()]);
        let results = create(
            &context,
            vec![topic("a"), mixed, topic("b c"), topic("d.e"), topic("d_e")],
            5,
        );
        let codes: Vec<_> = results
            .iter()
            .map(|result| (result.name.as_str(), result.error_code))
            .collect();
        assert_eq!(
            codes,
            [
                ("a", 0),
                ("mixed", 42),
                ("b c", 17),
                ("d.e", 0),
                ("d_e", 17)
            ]
        );
    }

    #[test]
    fn asking_only_makes_nothing() {
        let context = TestContext::new();
        let request = CreateTopicsRequest::default()
            .with_topics(vec![topic("a")])
            .with_validate_only(true);
        let result = run(handle(context.clone(), request, 7)).topics.remove(0);
        assert_eq!(
            (result.error_code, result.num_partitions, result.topic_id),
            (0, 1, TopicId::ZERO.0)
        );
        assert!(context.image().topic("a").is_none());
    }

    #[test]
    fn a_stopping_broker_sends_clients_to_another_controller() {
        let result = create(
            &TestContext::new().without_controller(),
            vec![topic("a")],
            7,
        )
        .remove(0);
        assert_eq!(result.error_code, ResponseError::NotController.code());
    }
}
