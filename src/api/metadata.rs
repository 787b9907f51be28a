//! Metadata (key 3), versions 0 to 13. KIP-516 (topic ids; to ask by id, from version 12 on), KIP-430 (authorized operations).

use std::collections::{BTreeMap, BTreeSet};

use kafka_protocol::ResponseError;
use kafka_protocol::messages::metadata_request::{MetadataRequest, MetadataRequestTopic};
use kafka_protocol::messages::metadata_response::{
    MetadataResponse, MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use kafka_protocol::messages::{BrokerId, TopicName as WireTopicName};

use crate::api::admin_context::AdminContext;
use crate::api::authorized_operations;
use crate::api::error_code;
use crate::api::offsets_topic;
use crate::api::text::{name_of, text};
use crate::config::BrokerConfig;
use crate::controller::{
    ControllerCommand, CreateTopicError, NewTopic, NewTopicLayout, NotFollowed,
};
use crate::metadata::{MetadataImage, Partition, Topic};
use crate::model::internal_topic::{OFFSETS_TOPIC, is_internal};
use crate::model::{NodeId, TopicId, TopicName};

/// From this version on null asks for all topics, and an empty list for none; before, an empty list asks for all.
const NULL_IS_ALL_FROM: i16 = 1;

/// From this version on a topic says whether it is the broker's own.
const INTERNAL_FROM: i16 = 1;

/// From this version on a topic may be asked for by its id.
const BY_ID_FROM: i16 = 12;

/// From this version on topics have ids in the answer.
const TOPIC_ID_FROM: i16 = 10;

/// The versions that carry the cluster's authorized operations.
const CLUSTER_OPERATIONS: std::ops::RangeInclusive<i16> = 8..=10;

/// From this version on topics have authorized operations.
const TOPIC_OPERATIONS_FROM: i16 = 8;

pub async fn handle(
    context: impl AdminContext,
    request: MetadataRequest,
    version: i16,
) -> MetadataResponse {
    let asked = match &request.topics {
        None => None,
        Some(topics) if topics.is_empty() && version < NULL_IS_ALL_FROM => None,
        Some(topics) => Some(topics.as_slice()),
    };
    let failures = match asked {
        Some(topics)
            if request.allow_auto_topic_creation && context.config().auto_create_topics =>
        {
            create_missing(&context, topics).await
        }
        _ => BTreeMap::new(),
    };
    // Taken after the creation: the controller answers when every shard has followed it.
    let (image, config) = (context.image(), context.config());
    let answer = TopicAnswer {
        version,
        with_operations: request.include_topic_authorized_operations,
    };
    let topics = match asked {
        None => image.topics().map(|topic| answer.present(topic)).collect(),
        Some(topics) => topics
            .iter()
            .map(|asked| answer.asked(&image, asked, &failures))
            .collect(),
    };
    let broker = MetadataResponseBroker::default()
        .with_node_id(BrokerId(config.node_id.0))
        .with_host(text(&context.advertised().host))
        .with_port(i32::from(context.advertised().port))
        .with_rack(config.rack.as_deref().map(text));
    let response = MetadataResponse::default()
        .with_brokers(vec![broker])
        .with_cluster_id(Some(text(image.cluster_id())))
        .with_controller_id(BrokerId(config.node_id.0))
        .with_topics(topics);
    if CLUSTER_OPERATIONS.contains(&version) {
        let is_asked = request.include_cluster_authorized_operations;
        return response
            .with_cluster_authorized_operations(authorized_operations::on_the_cluster(is_asked));
    }
    response
}

/// Creates the topics that are asked for by name and do not exist, with the broker's defaults. What could not be created is
/// given back with the reason.
async fn create_missing(
    context: &impl AdminContext,
    asked: &[MetadataRequestTopic],
) -> BTreeMap<String, ResponseError> {
    let image = context.image();
    let names = asked
        .iter()
        .filter(|topic| topic.topic_id.is_nil())
        .filter_map(|topic| topic.name.as_ref());
    let missing: BTreeSet<&str> = names
        .map(|name| name.as_str())
        .filter(|name| image.topic(name).is_none())
        .collect();
    if missing.is_empty() {
        return BTreeMap::new();
    }
    let config = context.config();
    let topics = missing
        .iter()
        .map(|name| new_topic(name, &config))
        .collect();
    let command = |reply| ControllerCommand::CreateTopics {
        topics,
        validate_only: false,
        reply,
    };
    let failure = |result: Result<_, CreateTopicError>| match result {
        Ok(_) => None,
        // The topic is there; its partitions say for themselves that they are not open yet.
        Err(CreateTopicError::NotFollowed(NotFollowed::Unopened { .. })) => None,
        // Somebody else was faster, and this shard has not followed yet: the client asks again.
        Err(CreateTopicError::Exists(_)) => Some(ResponseError::LeaderNotAvailable),
        Err(error) => Some(error_code::of_create_topic(&error)),
    };
    match context.controller().ask(command).await {
        Ok(results) => {
            let results = missing.into_iter().zip(results);
            results
                .filter_map(|(name, result)| Some((name.to_owned(), failure(result)?)))
                .collect()
        }
        Err(_gone) => missing
            .into_iter()
            .map(|name| (name.to_owned(), ResponseError::LeaderNotAvailable))
            .collect(),
    }
}

fn new_topic(name: &str, config: &BrokerConfig) -> NewTopic {
    if name == OFFSETS_TOPIC {
        return offsets_topic::as_created(config);
    }
    NewTopic {
        name: name.to_owned(),
        layout: NewTopicLayout::Counts {
            partition_count: -1,
            replication_factor: -1,
        },
        settings: Vec::new(),
    }
}

/// How topics are shown in one answer.
struct TopicAnswer {
    version: i16,
    with_operations: bool,
}

impl TopicAnswer {
    fn asked(
        &self,
        image: &MetadataImage,
        asked: &MetadataRequestTopic,
        failures: &BTreeMap<String, ResponseError>,
    ) -> MetadataResponseTopic {
        let id = TopicId(asked.topic_id);
        match &asked.name {
            // Ids are in the request from version 10 on, but it may be asked by them only from 12 on.
            _ if id != TopicId::ZERO && self.version < BY_ID_FROM => {
                self.absent(asked, ResponseError::InvalidRequest)
            }
            _ if id != TopicId::ZERO => match image.topic_by_id(id) {
                Some(topic) => self.present(topic),
                None => self.absent(asked, ResponseError::UnknownTopicId),
            },
            None => self.absent(asked, ResponseError::InvalidRequest),
            Some(name) => match image.topic(name) {
                Some(topic) => self.present(topic),
                None => self.absent(asked, reason_of_absence(name, failures)),
            },
        }
    }

    fn present(&self, topic: &Topic) -> MetadataResponseTopic {
        let partitions = topic
            .partitions_from(0)
            .map(|(id, partition)| describe(id.partition.0, partition));
        let response = MetadataResponseTopic::default()
            .with_name(Some(name_of(topic)))
            .with_is_internal(self.version >= INTERNAL_FROM && is_internal(topic.name.as_str()))
            .with_partitions(partitions.collect());
        let response = if self.version >= TOPIC_ID_FROM {
            response.with_topic_id(topic.id.0)
        } else {
            response
        };
        if self.version >= TOPIC_OPERATIONS_FROM {
            return response.with_topic_authorized_operations(authorized_operations::on_a_topic(
                self.with_operations,
            ));
        }
        response
    }

    fn absent(&self, asked: &MetadataRequestTopic, error: ResponseError) -> MetadataResponseTopic {
        let response = MetadataResponseTopic::default().with_error_code(error.code());
        let response = if self.version >= TOPIC_ID_FROM {
            response.with_topic_id(asked.topic_id)
        } else {
            response
        };
        // A name may be null only where topics are asked for by id.
        let name = asked.name.clone();
        response.with_name(if self.version >= BY_ID_FROM {
            name
        } else {
            Some(name.unwrap_or_default())
        })
    }
}

fn reason_of_absence(
    name: &WireTopicName,
    failures: &BTreeMap<String, ResponseError>,
) -> ResponseError {
    match failures.get(name.as_str()) {
        Some(error) => *error,
        None if TopicName::new(name).is_err() => ResponseError::InvalidTopicException,
        None => ResponseError::UnknownTopicOrPartition,
    }
}

fn describe(index: i32, partition: &Partition) -> MetadataResponsePartition {
    let nodes = |nodes: &[NodeId]| nodes.iter().map(|node| BrokerId(node.0)).collect();
    let response = MetadataResponsePartition::default()
        .with_partition_index(index)
        .with_leader_id(BrokerId(partition.leader.map_or(-1, |leader| leader.0)))
        .with_leader_epoch(partition.leader_epoch.0)
        .with_replica_nodes(nodes(&partition.replicas))
        .with_isr_nodes(nodes(&partition.isr));
    match partition.leader {
        Some(_) => response,
        None => response.with_error_code(ResponseError::LeaderNotAvailable.code()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::test_context::{TestContext, read_back, run, string};

    fn named(name: &str) -> MetadataRequestTopic {
        MetadataRequestTopic::default().with_name(Some(WireTopicName(string(name))))
    }

    fn by_id(id: uuid::Uuid) -> MetadataRequestTopic {
        MetadataRequestTopic::default()
            .with_name(None)
            .with_topic_id(id)
    }

    fn request(topics: Option<Vec<MetadataRequestTopic>>, create: bool) -> MetadataRequest {
        MetadataRequest::default()
            .with_topics(topics)
            .with_allow_auto_topic_creation(create)
    }

    fn ask(context: &TestContext, request: MetadataRequest, version: i16) -> MetadataResponse {
        read_back(&run(handle(context.clone(), request, version)), version)
    }

    fn codes(response: &MetadataResponse) -> Vec<(&str, i16)> {
        let name = |topic: &MetadataResponseTopic| topic.name.as_ref().map_or(0, |name| name.len());
        assert!(response.topics.iter().all(|topic| name(topic) > 0));
        response
            .topics
            .iter()
            .map(|topic| (topic.name.as_ref().unwrap().as_str(), topic.error_code))
            .collect()
    }

    #[test]
    fn every_version_names_broker_controller_and_partitions() {
        let context = TestContext::with_settings(&[("node.id", "5")]).with_topic("t", 2);
        for version in 0..=13 {
            let response = ask(&context, request(Some(vec![named("t")]), false), version);
            let broker = &response.brokers[0];
            assert_eq!(
                (broker.node_id.0, broker.host.as_str(), broker.port),
                (5, "broker.example", 19092)
            );
            if version >= 1 {
                assert_eq!(
                    response.controller_id.0, 5,
                    "admin clients send their requests there"
                );
            }
            if version >= 2 {
                assert_eq!(response.cluster_id.as_ref().unwrap().len(), 22);
            }
            let topic = &response.topics[0];
            assert_eq!((topic.error_code, topic.partitions.len()), (0, 2));
            assert_eq!(topic.topic_id.is_nil(), version < 10);
            let partition = &topic.partitions[1];
            assert_eq!(
                (
                    partition.error_code,
                    partition.partition_index,
                    partition.leader_id.0
                ),
                (0, 1, 5)
            );
            assert_eq!(partition.leader_epoch, if version >= 7 { 0 } else { -1 });
            assert_eq!(
                (partition.replica_nodes.len(), partition.isr_nodes.len()),
                (1, 1)
            );
        }
    }

    #[test]
    fn all_topics_are_null_or_in_version_0_an_empty_list() {
        let context = TestContext::new().with_topic("b", 1).with_topic("a", 1);
        assert_eq!(
            codes(&ask(&context, request(Some(Vec::new()), true), 0)),
            [("a", 0), ("b", 0)]
        );
        for version in 1..=13 {
            assert_eq!(
                codes(&ask(&context, request(None, true), version)),
                [("a", 0), ("b", 0)]
            );
            assert!(
                ask(&context, request(Some(Vec::new()), true), version)
                    .topics
                    .is_empty()
            );
        }
    }

    #[test]
    fn asking_for_an_unknown_topic_creates_it() {
        let context = TestContext::with_settings(&[("num.partitions", "3")]);
        let topics = vec![named("new"), named("new"), named("no/name")];
        let response = ask(&context, request(Some(topics), true), 4);
        assert_eq!(codes(&response), [("new", 0), ("new", 0), ("no/name", 17)]);
        assert_eq!(response.topics[0].partitions.len(), 3);
        assert_eq!(context.image().topic_count(), 1);
    }

    #[test]
    fn the_topic_of_offsets_is_created_as_the_broker_wants_it_and_says_that_it_is_internal() {
        let context = TestContext::with_settings(&[
            ("num.partitions", "3"),
            ("offsets.topic.num.partitions", "7"),
        ]);
        for version in 1..=13 {
            let topics = vec![named(OFFSETS_TOPIC), named("t")];
            let response = ask(&context, request(Some(topics), true), version);
            let internal: Vec<bool> = response.topics.iter().map(|it| it.is_internal).collect();
            assert_eq!(internal, [true, false], "version {version}");
            assert_eq!(response.topics[0].partitions.len(), 7);
        }
    }

    #[test]
    fn a_topic_is_not_created_where_the_client_or_the_broker_says_so() {
        let unknown = [("new", ResponseError::UnknownTopicOrPartition.code())];
        let context = TestContext::new();
        assert_eq!(
            codes(&ask(&context, request(Some(vec![named("new")]), false), 4)),
            unknown
        );
        let context = TestContext::with_settings(&[("auto.create.topics.enable", "false")]);
        assert_eq!(
            codes(&ask(&context, request(Some(vec![named("new")]), true), 4)),
            unknown
        );
        assert_eq!(context.image().topic_count(), 0);
    }

    #[test]
    fn a_topic_that_cannot_be_created_now_is_asked_for_again() {
        let context = TestContext::new().without_controller();
        let response = ask(&context, request(Some(vec![named("new")]), true), 9);
        assert_eq!(
            codes(&response),
            [("new", ResponseError::LeaderNotAvailable.code())]
        );
        assert!(ResponseError::LeaderNotAvailable.is_retriable());
    }

    #[test]
    fn topics_are_found_by_id_from_version_12_on() {
        let context = TestContext::new().with_topic("t", 1);
        let id = context.image().topic("t").unwrap().id.0;
        let unknown = uuid::Uuid::from_u128(9);
        for version in 12..=13 {
            let response = ask(
                &context,
                request(Some(vec![by_id(id), by_id(unknown)]), true),
                version,
            );
            assert_eq!(response.topics[0].name.as_ref().unwrap().as_str(), "t");
            let absent = &response.topics[1];
            assert_eq!(
                (absent.error_code, absent.topic_id),
                (ResponseError::UnknownTopicId.code(), unknown)
            );
            assert_eq!(absent.name, None);
        }
        for version in 10..=11 {
            let response = ask(&context, request(Some(vec![by_id(id)]), true), version);
            assert_eq!(
                response.topics[0].error_code,
                ResponseError::InvalidRequest.code()
            );
        }
        let neither = ask(
            &context,
            request(Some(vec![by_id(uuid::Uuid::nil())]), true),
            12,
        );
        assert_eq!(
            neither.topics[0].error_code,
            ResponseError::InvalidRequest.code()
        );
    }

    #[test]
    fn authorized_operations_come_where_they_are_asked_for() {
        let context = TestContext::new().with_topic("t", 1);
        for version in 8..=13 {
            let mut asked = request(None, false).with_include_topic_authorized_operations(true);
            asked.include_cluster_authorized_operations = version <= 10;
            let response = ask(&context, asked, version);
            assert!(response.topics[0].topic_authorized_operations > 0);
            assert_eq!(response.cluster_authorized_operations > 0, version <= 10);
        }
    }
}
