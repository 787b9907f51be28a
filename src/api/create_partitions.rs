//! CreatePartitions (key 37), versions 0 to 3. KIP-195.

use kafka_protocol::ResponseError;
use kafka_protocol::messages::create_partitions_request::{
    CreatePartitionsRequest, CreatePartitionsTopic,
};
use kafka_protocol::messages::create_partitions_response::{
    CreatePartitionsResponse, CreatePartitionsTopicResult,
};

use crate::api::admin_context::AdminContext;
use crate::api::error_code;
use crate::api::text::message;
use crate::controller::{ControllerCommand, NewPartitions};
use crate::model::NodeId;

pub async fn handle(
    context: impl AdminContext,
    request: CreatePartitionsRequest,
    _version: i16,
) -> CreatePartitionsResponse {
    let topics = request.topics.iter().map(new_partitions).collect();
    let validate_only = request.validate_only;
    let command = |reply| ControllerCommand::CreatePartitions {
        topics,
        validate_only,
        reply,
    };
    let results = context.controller().ask(command).await;
    let mut results = results.map(Vec::into_iter);
    // Every topic is echoed, the ones that got their partitions too: clients look each up by its name.
    let results = request.topics.into_iter().map(|topic| {
        let result = CreatePartitionsTopicResult::default().with_name(topic.name);
        let refused = |error: ResponseError, reason| {
            result
                .clone()
                .with_error_code(error.code())
                .with_error_message(reason)
        };
        match &mut results {
            Err(gone) => refused(error_code::CONTROLLER_GONE, message(gone)),
            Ok(results) => match results.next().expect("the controller answers each topic") {
                Ok(()) => result,
                Err(error) => refused(error_code::of_create_partitions(&error), message(error)),
            },
        }
    });
    CreatePartitionsResponse::default().with_results(results.collect())
}

fn new_partitions(topic: &CreatePartitionsTopic) -> NewPartitions {
    let assignments = topic.assignments.as_ref().map(|assignments| {
        let replicas = assignments.iter().map(|it| {
            it.broker_ids
                .iter()
                .map(|broker| NodeId(broker.0))
                .collect()
        });
        replicas.collect()
    });
    NewPartitions {
        name: topic.name.to_string(),
        total_count: topic.count,
        assignments,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::test_context::{TestContext, read_back, run, string};
    use kafka_protocol::messages::TopicName as WireTopicName;

    fn topic(name: &str, count: i32) -> CreatePartitionsTopic {
        let topic = CreatePartitionsTopic::default().with_name(WireTopicName(string(name)));
        topic.with_count(count).with_assignments(None)
    }

    #[test]
    fn every_topic_is_echoed_whether_it_got_partitions_or_not() {
        for version in 0..=3 {
            let context = TestContext::new().with_topic("t", 1);
            let topics = vec![topic("none", 3), topic("t", 3)];
            let request = CreatePartitionsRequest::default().with_topics(topics);
            let results =
                read_back(&run(handle(context.clone(), request, version)), version).results;
            let codes: Vec<_> = results
                .iter()
                .map(|result| (result.name.as_str(), result.error_code))
                .collect();
            assert_eq!(codes, [("none", 3), ("t", 0)]);
            assert_eq!(results[1].error_message, None);
            assert_eq!(context.image().topic("t").unwrap().partition_count(), 3);
        }
    }

    #[test]
    fn fewer_partitions_are_refused_with_the_numbers() {
        let context = TestContext::new().with_topic("t", 4);
        let request = CreatePartitionsRequest::default().with_topics(vec![topic("t", 2)]);
        let result = run(handle(context, request, 3)).results.remove(0);
        assert_eq!(result.error_code, ResponseError::InvalidPartitions.code());
        assert_eq!(
            result.error_message.unwrap().as_str(),
            "topic 't' has 4 partitions; 2 would not be an increase"
        );
    }

    #[test]
    fn asking_only_adds_nothing() {
        let context = TestContext::new().with_topic("t", 1);
        let request = CreatePartitionsRequest::default()
            .with_topics(vec![topic("t", 3)])
            .with_validate_only(true);
        assert_eq!(
            run(handle(context.clone(), request, 3)).results[0].error_code,
            0
        );
        assert_eq!(context.image().topic("t").unwrap().partition_count(), 1);
    }
}
