//! DeleteTopics (key 20), versions 1 to 6. KIP-516 (by topic id, from version 6 on).

use kafka_protocol::ResponseError;
use kafka_protocol::messages::delete_topics_request::{DeleteTopicState, DeleteTopicsRequest};
use kafka_protocol::messages::delete_topics_response::{
    DeletableTopicResult, DeleteTopicsResponse,
};

use crate::api::admin_context::AdminContext;
use crate::api::error_code;
use crate::api::text::{message, name_of};
use crate::controller::{ControllerCommand, TopicSelector};
use crate::model::TopicId;

/// From this version on topics are named by name or by id, and answered with both.
const TOPIC_ID_FROM: i16 = 6;

/// From this version on an error comes with a message.
const MESSAGE_FROM: i16 = 5;

pub async fn handle(
    context: impl AdminContext,
    request: DeleteTopicsRequest,
    version: i16,
) -> DeleteTopicsResponse {
    let asked: Vec<DeleteTopicState> = if version >= TOPIC_ID_FROM {
        request.topics
    } else {
        request
            .topic_names
            .into_iter()
            .map(|name| DeleteTopicState::default().with_name(Some(name)))
            .collect()
    };
    let selectors: Vec<_> = asked.iter().map(selector).collect();
    let topics = selectors.iter().flatten().cloned().collect();
    let results = context
        .controller()
        .ask(|reply| ControllerCommand::DeleteTopics { topics, reply })
        .await;
    let mut results = results.map(Vec::into_iter);
    let responses = asked.into_iter().zip(selectors).map(|(asked, selector)| {
        let result = DeletableTopicResult::default().with_name(asked.name);
        let result = if version >= TOPIC_ID_FROM {
            result.with_topic_id(asked.topic_id)
        } else {
            result
        };
        if let Err(reason) = selector {
            return refused(result, ResponseError::InvalidRequest, reason, version);
        }
        match &mut results {
            Err(gone) => refused(result, error_code::CONTROLLER_GONE, *gone, version),
            Ok(results) => match results.next().expect("the controller answers each topic") {
                Ok(topic) if version >= TOPIC_ID_FROM => result
                    .with_name(Some(name_of(&topic)))
                    .with_topic_id(topic.id.0),
                Ok(_) => result,
                Err(error) => refused(
                    result,
                    error_code::of_delete_topic(&error, version),
                    error,
                    version,
                ),
            },
        }
    });
    DeleteTopicsResponse::default().with_responses(responses.collect())
}

/// Either a name or an id.
fn selector(asked: &DeleteTopicState) -> Result<TopicSelector, &'static str> {
    let id = TopicId(asked.topic_id);
    match &asked.name {
        Some(_) if id != TopicId::ZERO => Err("a topic is named both by its name and by an id"),
        Some(name) => Ok(TopicSelector::Name(name.to_string())),
        None if id == TopicId::ZERO => Err("a topic is named neither by its name nor by its id"),
        None => Ok(TopicSelector::Id(id)),
    }
}

fn refused(
    result: DeletableTopicResult,
    error: ResponseError,
    reason: impl std::fmt::Display,
    version: i16,
) -> DeletableTopicResult {
    let result = result.with_error_code(error.code());
    if version >= MESSAGE_FROM {
        result.with_error_message(message(reason))
    } else {
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::test_context::{TestContext, read_back, run, string};
    use kafka_protocol::messages::TopicName as WireTopicName;

    fn name(text: &str) -> WireTopicName {
        WireTopicName(string(text))
    }

    fn by_name(text: &str) -> DeleteTopicState {
        DeleteTopicState::default().with_name(Some(name(text)))
    }

    fn by_id(id: uuid::Uuid) -> DeleteTopicState {
        DeleteTopicState::default()
            .with_name(None)
            .with_topic_id(id)
    }

    fn delete(context: &TestContext, topics: Vec<DeleteTopicState>) -> Vec<DeletableTopicResult> {
        let request = DeleteTopicsRequest::default().with_topics(topics);
        read_back(&run(handle(context.clone(), request, 6)), 6).responses
    }

    #[test]
    fn older_versions_delete_by_name() {
        for version in 1..=5 {
            let context = TestContext::new().with_topic("t", 1);
            let request =
                DeleteTopicsRequest::default().with_topic_names(vec![name("t"), name("u")]);
            let responses =
                read_back(&run(handle(context.clone(), request, version)), version).responses;
            assert_eq!(responses[0].name.as_ref().unwrap().as_str(), "t");
            assert_eq!((responses[0].error_code, responses[1].error_code), (0, 3));
            assert!(context.image().topic("t").is_none());
        }
    }

    #[test]
    fn version_6_deletes_by_name_or_id_and_answers_with_both() {
        let context = TestContext::new().with_topic("a", 1).with_topic("b", 1);
        let ids = ["a", "b"].map(|name| context.image().topic(name).unwrap().id.0);
        let responses = delete(&context, vec![by_name("a"), by_id(ids[1])]);
        for (response, (name, id)) in responses.iter().zip([("a", ids[0]), ("b", ids[1])]) {
            assert_eq!(response.error_code, 0);
            assert_eq!(
                (response.name.as_ref().unwrap().as_str(), response.topic_id),
                (name, id)
            );
        }
    }

    #[test]
    fn each_refusal_has_its_code() {
        let context = TestContext::new().with_topic("a", 1);
        let unknown = uuid::Uuid::from_u128(9);
        let cases = [
            (by_name("b"), ResponseError::UnknownTopicOrPartition),
            (by_id(unknown), ResponseError::UnknownTopicId),
            (
                by_name("a").with_topic_id(unknown),
                ResponseError::InvalidRequest,
            ),
            (by_id(uuid::Uuid::nil()), ResponseError::InvalidRequest),
        ];
        for (asked, error) in cases {
            let response = delete(&context, vec![asked.clone()]).remove(0);
            assert_eq!(response.error_code, error.code(), "{asked:?}");
            assert_eq!(
                (response.name, response.topic_id),
                (asked.name, asked.topic_id)
            );
        }
        assert!(context.image().topic("a").is_some());
    }

    #[test]
    fn forbidden_deletion_has_a_code_that_the_version_knows() {
        let context =
            TestContext::with_settings(&[("delete.topic.enable", "false")]).with_topic("a", 1);
        let code = |version| {
            let request = DeleteTopicsRequest::default().with_topic_names(vec![name("a")]);
            run(handle(context.clone(), request, version)).responses[0].error_code
        };
        assert_eq!(code(2), ResponseError::InvalidRequest.code());
        assert_eq!(code(3), ResponseError::TopicDeletionDisabled.code());
    }
}
