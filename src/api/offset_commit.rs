//! OffsetCommit (key 8), versions 2 to 9. KIP-211 (no retention of their own from version 5 on), KIP-320 (leader epochs, from 6 on),
//! KIP-345 (static members, from 7 on).

use kafka_protocol::ResponseError;
use kafka_protocol::messages::TopicName as WireTopicName;
use kafka_protocol::messages::offset_commit_request::OffsetCommitRequest;
use kafka_protocol::messages::offset_commit_response::{
    OffsetCommitResponse, OffsetCommitResponsePartition, OffsetCommitResponseTopic,
};

use crate::api::admin_context::AdminContext;
use crate::api::context::ApiContext;
use crate::api::error_code;
use crate::api::group_coordinator::{ask, instance, wrong_answer};
use crate::api::reply::{PendingReply, Reply, RequestId};
use crate::group::{
    CommitRequest, Generation, GroupAnswer, GroupId, GroupRequest, MemberId, OffsetToCommit,
};
use crate::metadata::{MetadataImage, Topic};
use crate::model::{LeaderEpoch, Offset, PartitionIndex};
use crate::shard::command::GroupReply;

/// From this version on an offset has a leader epoch.
const LEADER_EPOCH_FROM: i16 = 6;

/// A partition of the request: whether its offset was given to the coordinator.
struct Place {
    index: i32,
    refusal: Option<ResponseError>,
}

struct TopicPlaces {
    name: WireTopicName,
    partitions: Vec<Place>,
}

pub fn dispatch(context: &ApiContext, id: RequestId, request: OffsetCommitRequest) -> PendingReply {
    let group = GroupId::new(&request.group_id);
    let image = context.image();
    let (topics, offsets) = sort_out(&image, &request, id.version);
    let is_any_asked = !offsets.is_empty();
    let commit = CommitRequest {
        group: group.clone(),
        generation: Generation(request.generation_id_or_member_epoch),
        member: MemberId::new(&request.member_id),
        instance: instance(request.group_instance_id.as_ref()),
        retention_ms: (request.retention_time_ms >= 0).then_some(request.retention_time_ms),
        offsets,
    };
    // Without a known partition there is nothing to commit and nobody to ask.
    let answer = is_any_asked.then(|| ask(context, &group, GroupRequest::Commit(commit)));
    Box::pin(async move {
        let reply = match answer {
            Some(answer) => answer.await,
            None => Ok(GroupAnswer::Commit(Vec::new())),
        };
        let (response, codes) = respond(topics, reply);
        Ok(Reply::of(&id, &response)?.with_error_codes(codes))
    })
}

/// Offsets of partitions that exist go to the coordinator; the others are refused here.
fn sort_out(
    image: &MetadataImage,
    request: &OffsetCommitRequest,
    version: i16,
) -> (Vec<TopicPlaces>, Vec<OffsetToCommit>) {
    let mut offsets = Vec::new();
    let topics = request.topics.iter().map(|topic| {
        let found = image.topic(&topic.name);
        let partitions = topic.partitions.iter().map(|asked| {
            let partition = PartitionIndex(asked.partition_index);
            let known = found.filter(|topic| topic.partition(partition).is_some());
            offsets.extend(known.map(|topic| {
                OffsetToCommit {
                    topic: topic.name.clone(),
                    topic_id: topic.id,
                    partition,
                    offset: Offset(asked.committed_offset),
                    leader_epoch: match version >= LEADER_EPOCH_FROM {
                        true => LeaderEpoch(asked.committed_leader_epoch),
                        false => LeaderEpoch::UNKNOWN,
                    },
                    metadata: asked
                        .committed_metadata
                        .as_ref()
                        .map(ToString::to_string)
                        .unwrap_or_default(),
                }
            }));
            Place {
                index: asked.partition_index,
                refusal: refusal_of(known.map(|topic| &**topic)),
            }
        });
        TopicPlaces {
            name: topic.name.clone(),
            partitions: partitions.collect(),
        }
    });
    (topics.collect(), offsets)
}

fn refusal_of(known: Option<&Topic>) -> Option<ResponseError> {
    known
        .is_none()
        .then_some(ResponseError::UnknownTopicOrPartition)
}

fn respond(topics: Vec<TopicPlaces>, reply: GroupReply) -> (OffsetCommitResponse, Vec<i16>) {
    let (mut answers, error) = match reply {
        Ok(GroupAnswer::Commit(answers)) => (answers.into_iter(), None),
        Ok(other) => wrong_answer(&other),
        Err(error) => (Vec::new().into_iter(), Some(error)),
    };
    let mut codes = Vec::new();
    let topics = topics.into_iter().map(|topic| {
        let partitions = topic.partitions.into_iter().map(|place| {
            let code = match (place.refusal, error) {
                (Some(refusal), _) => refusal.code(),
                (None, Some(error)) => error_code::of_group(error).code(),
                (None, None) => match answers.next().expect("each offset is answered") {
                    Ok(()) => 0,
                    Err(error) => error_code::of_group(error).code(),
                },
            };
            codes.push(code);
            OffsetCommitResponsePartition::default()
                .with_partition_index(place.index)
                .with_error_code(code)
        });
        OffsetCommitResponseTopic::default()
            .with_name(topic.name)
            .with_partitions(partitions.collect())
    });
    let response = OffsetCommitResponse::default().with_topics(topics.collect());
    (response, codes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::test_context::{TestContext, read_back, string};
    use crate::group::GroupError;
    use kafka_protocol::messages::offset_commit_request::{
        OffsetCommitRequestPartition, OffsetCommitRequestTopic,
    };

    fn request(topics: &[(&str, &[i32])]) -> OffsetCommitRequest {
        let topics = topics.iter().map(|(name, partitions)| {
            let partitions = partitions.iter().map(|index| {
                OffsetCommitRequestPartition::default()
                    .with_partition_index(*index)
                    .with_committed_offset(i64::from(*index) + 100)
                    .with_committed_leader_epoch(7)
                    .with_committed_metadata(None)
            });
            OffsetCommitRequestTopic::default()
                .with_name(WireTopicName(string(name)))
                .with_partitions(partitions.collect())
        });
        OffsetCommitRequest::default().with_topics(topics.collect())
    }

    fn codes(response: &OffsetCommitResponse) -> Vec<i16> {
        let partitions = response.topics.iter().flat_map(|topic| &topic.partitions);
        partitions.map(|it| it.error_code).collect()
    }

    #[test]
    fn only_offsets_of_partitions_that_exist_reach_the_coordinator() {
        let context = TestContext::new().with_topic("t", 2);
        let request = request(&[("t", &[0, 2, 1, -1]), ("gone", &[0]), ("no/name", &[0])]);
        for version in 2..=9 {
            let (topics, offsets) = sort_out(&context.image(), &request, version);
            let asked: Vec<i64> = offsets.iter().map(|it| it.offset.0).collect();
            assert_eq!(asked, [100, 101]);
            let epoch = if version >= 6 { 7 } else { -1 };
            assert!(offsets.iter().all(|it| it.leader_epoch.0 == epoch));
            let reply = Ok(GroupAnswer::Commit(vec![
                Ok(()),
                Err(GroupError::OffsetMetadataTooLarge),
            ]));
            let (response, counted) = respond(topics, reply);
            assert_eq!(
                codes(&read_back(&response, version)),
                [0, 3, 12, 3, 3, 3],
                "version {version}"
            );
            assert_eq!(counted, [0, 3, 12, 3, 3, 3]);
        }
    }

    #[test]
    fn the_error_of_a_coordinator_is_that_of_every_partition_that_it_was_asked_about() {
        let context = TestContext::new().with_topic("t", 1);
        let (topics, _) = sort_out(&context.image(), &request(&[("t", &[0, 1])]), 9);
        let (response, _) = respond(topics, Err(GroupError::CoordinatorLoading));
        assert_eq!(codes(&response), [14, 3]);
    }
}
