//! OffsetDelete (key 47), version 0. KIP-496.

use kafka_protocol::ResponseError;
use kafka_protocol::messages::TopicName as WireTopicName;
use kafka_protocol::messages::offset_delete_request::OffsetDeleteRequest;
use kafka_protocol::messages::offset_delete_response::{
    OffsetDeleteResponse, OffsetDeleteResponsePartition, OffsetDeleteResponseTopic,
};

use crate::api::admin_context::AdminContext;
use crate::api::context::ApiContext;
use crate::api::group_coordinator::{ask, code_of, wrong_answer};
use crate::api::reply::{PendingReply, Reply, RequestId};
use crate::group::{DeleteOffsetsRequest, GroupAnswer, GroupError, GroupId, GroupRequest};
use crate::model::PartitionIndex;

/// A topic of the request, and whether it exists.
struct TopicPlaces {
    name: WireTopicName,
    indexes: Vec<i32>,
    is_known: bool,
}

pub fn dispatch(context: &ApiContext, id: RequestId, request: OffsetDeleteRequest) -> PendingReply {
    let group = GroupId::new(&request.group_id);
    let image = context.image();
    let mut partitions = Vec::new();
    let topics = request.topics.into_iter().map(|topic| {
        let indexes: Vec<i32> = topic
            .partitions
            .iter()
            .map(|it| it.partition_index)
            .collect();
        let known = image.topic(&topic.name);
        partitions.extend(known.map(|known| {
            let indexes = indexes.iter().copied().map(PartitionIndex);
            (known.name.clone(), indexes.collect())
        }));
        TopicPlaces {
            name: topic.name,
            indexes,
            is_known: known.is_some(),
        }
    });
    let topics: Vec<TopicPlaces> = topics.collect();
    let delete = DeleteOffsetsRequest {
        group: group.clone(),
        partitions,
    };
    let answer = ask(context, &group, GroupRequest::DeleteOffsets(delete));
    Box::pin(async move {
        let result = match answer.await {
            Ok(GroupAnswer::DeleteOffsets(result)) => result,
            Ok(other) => wrong_answer(&other),
            Err(error) => Err(error),
        };
        let response = respond(topics, result);
        let places = response.topics.iter().flat_map(|topic| &topic.partitions);
        let codes: Vec<i16> = places.map(|it| it.error_code).collect();
        Ok(Reply::of(&id, &response)?
            .with_error_codes([response.error_code])
            .with_error_codes(codes))
    })
}

fn respond(
    topics: Vec<TopicPlaces>,
    result: Result<Vec<Result<(), GroupError>>, GroupError>,
) -> OffsetDeleteResponse {
    let mut answers = match result {
        Ok(answers) => answers.into_iter(),
        Err(error) => return OffsetDeleteResponse::default().with_error_code(code_of(error)),
    };
    let topics = topics.into_iter().map(|topic| {
        let partitions = topic.indexes.into_iter().map(|index| {
            let code = match topic.is_known {
                false => ResponseError::UnknownTopicOrPartition.code(),
                true => {
                    let answer = answers.next().expect("each partition is answered");
                    answer.map_or_else(code_of, |()| 0)
                }
            };
            OffsetDeleteResponsePartition::default()
                .with_partition_index(index)
                .with_error_code(code)
        });
        OffsetDeleteResponseTopic::default()
            .with_name(topic.name)
            .with_partitions(partitions.collect())
    });
    OffsetDeleteResponse::default().with_topics(topics.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::test_context::{read_back, string};

    fn places(name: &str, indexes: &[i32], is_known: bool) -> TopicPlaces {
        TopicPlaces {
            name: WireTopicName(string(name)),
            indexes: indexes.to_vec(),
            is_known,
        }
    }

    #[test]
    fn each_partition_has_its_answer_and_unknown_topics_are_refused() {
        let topics = vec![places("gone", &[0], false), places("t", &[0, 1], true)];
        let result = Ok(vec![Ok(()), Err(GroupError::SubscribedToTopic)]);
        let response = read_back(&respond(topics, result), 0);
        let codes: Vec<i16> = response
            .topics
            .iter()
            .flat_map(|topic| topic.partitions.iter().map(|it| it.error_code))
            .collect();
        assert_eq!((response.error_code, codes), (0, vec![3, 0, 86]));
    }

    #[test]
    fn the_error_of_the_group_stands_alone() {
        let topics = vec![places("t", &[0], true)];
        let response = read_back(&respond(topics, Err(GroupError::GroupNotFound)), 0);
        assert_eq!((response.error_code, response.topics.len()), (69, 0));
    }
}
