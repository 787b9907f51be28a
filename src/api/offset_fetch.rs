//! OffsetFetch (key 9), versions 1 to 9. KIP-88 (all offsets of a group, from version 2 on), KIP-320 (leader epochs, from 5 on),
//! KIP-447 (stable offsets only, from 7 on: every offset is, since none waits for a transaction), KIP-709 (several groups, from 8 on).

use kafka_protocol::messages::offset_fetch_request::OffsetFetchRequest;
use kafka_protocol::messages::offset_fetch_response::{
    OffsetFetchResponse, OffsetFetchResponseGroup, OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions, OffsetFetchResponseTopic, OffsetFetchResponseTopics,
};
use kafka_protocol::messages::{GroupId as WireGroupId, TopicName as WireTopicName};

use crate::api::admin_context::AdminContext;
use crate::api::context::ApiContext;
use crate::api::group_coordinator::{
    DUPLICATE_GROUP, ask_each, code_of, first_mentions, topic_named, wrong_answer,
};
use crate::api::reply::{PendingReply, Reply, RequestId};
use crate::api::text::text;
use crate::group::{
    Committed, FetchOffsetsRequest, FetchPartitions, FetchedOffset, GroupAnswer, GroupId,
    GroupRequest, TopicPartitions,
};
use crate::metadata::MetadataImage;
use crate::model::{PartitionIndex, TopicName};
use crate::shard::command::GroupReply;

/// From this version on several groups are asked about, and each has its answer.
const GROUPS_FROM: i16 = 8;

/// From this version on an answer has an error of its own beside those of its partitions.
const ERROR_FROM: i16 = 2;

/// From this version on an offset has a leader epoch.
const LEADER_EPOCH_FROM: i16 = 5;

/// What one group is asked: `None` is everything.
struct Asked {
    group: WireGroupId,
    topics: Option<Vec<(WireTopicName, Vec<i32>)>>,
}

/// One group's answer.
struct Found {
    group: WireGroupId,
    topics: Vec<(WireTopicName, Vec<Place>)>,
    error_code: i16,
}

struct Place {
    index: i32,
    committed: Option<Committed>,
}

pub fn dispatch(context: &ApiContext, id: RequestId, request: OffsetFetchRequest) -> PendingReply {
    let asked = asked(request, id.version);
    let groups = first_mentions(asked.iter().map(|it| it.group.as_str()));
    let image = context.image();
    let requests = asked.iter().zip(&groups).filter_map(|(asked, group)| {
        let group = group.clone()?;
        let request = FetchOffsetsRequest {
            group: group.clone(),
            partitions: partitions(&image, asked.topics.as_deref()),
        };
        Some((group, GroupRequest::FetchOffsets(request)))
    });
    let replies = ask_each(context, requests.collect());
    Box::pin(async move {
        let found = put_together(asked, &groups, replies.await);
        let codes: Vec<i16> = found.iter().map(|it| it.error_code).collect();
        let response = respond(found, id.version);
        Ok(Reply::of(&id, &response)?.with_error_codes(codes))
    })
}

fn asked(request: OffsetFetchRequest, version: i16) -> Vec<Asked> {
    if version < GROUPS_FROM {
        let topics = request.topics.map(|topics| {
            let topics = topics.into_iter();
            topics.map(|it| (it.name, it.partition_indexes)).collect()
        });
        let group = request.group_id;
        return vec![Asked { group, topics }];
    }
    let groups = request.groups.into_iter().map(|asked| Asked {
        group: asked.group_id,
        topics: asked.topics.map(|topics| {
            let topics = topics.into_iter();
            topics.map(|it| (it.name, it.partition_indexes)).collect()
        }),
    });
    groups.collect()
}

fn partitions(
    image: &MetadataImage,
    topics: Option<&[(WireTopicName, Vec<i32>)]>,
) -> FetchPartitions {
    let Some(topics) = topics else {
        return FetchPartitions::All;
    };
    let topics = topics.iter().filter_map(|(name, indexes)| {
        let (topic, topic_id) = topic_named(image, name)?;
        Some(TopicPartitions {
            topic,
            topic_id,
            partitions: indexes.iter().copied().map(PartitionIndex).collect(),
        })
    });
    FetchPartitions::These(topics.collect())
}

fn put_together(
    asked: Vec<Asked>,
    groups: &[Option<GroupId>],
    replies: Vec<GroupReply>,
) -> Vec<Found> {
    let mut replies = replies.into_iter();
    let found = asked.into_iter().zip(groups).map(|(asked, group)| {
        let mut found = Found {
            group: asked.group,
            topics: Vec::new(),
            error_code: 0,
        };
        let reply = match group {
            Some(_) => replies.next().expect("each group is answered"),
            None => {
                found.error_code = DUPLICATE_GROUP.code();
                return found;
            }
        };
        let result = match reply {
            Ok(GroupAnswer::FetchOffsets(result)) => result,
            Ok(other) => wrong_answer(&other),
            Err(error) => Err(error),
        };
        let places = |topics: Vec<_>| topics.into_iter().map(without_offsets).collect();
        match (result, asked.topics) {
            (Ok(offsets), None) => found.topics = by_topic(offsets),
            (Ok(offsets), Some(topics)) => {
                found.topics = places(topics);
                fill(&mut found.topics, offsets);
            }
            (Err(error), topics) => {
                found.topics = topics.map(places).unwrap_or_default();
                found.error_code = code_of(error);
            }
        }
        found
    });
    found.collect()
}

fn without_offsets((name, indexes): (WireTopicName, Vec<i32>)) -> (WireTopicName, Vec<Place>) {
    let places = indexes.into_iter().map(|index| Place {
        index,
        committed: None,
    });
    (name, places.collect())
}

/// The coordinator's offsets are those of the request's legal topics, in its order.
fn fill(topics: &mut [(WireTopicName, Vec<Place>)], offsets: Vec<FetchedOffset>) {
    let mut offsets = offsets.into_iter();
    let legal = topics
        .iter_mut()
        .filter(|(name, _)| TopicName::new(name).is_ok());
    for place in legal.flat_map(|(_, places)| places) {
        let fetched = offsets.next().expect("each partition is answered");
        assert_eq!(fetched.partition.0, place.index, "in the request's order");
        place.committed = fetched.committed;
    }
}

fn by_topic(offsets: Vec<FetchedOffset>) -> Vec<(WireTopicName, Vec<Place>)> {
    let mut topics: Vec<(TopicName, Vec<Place>)> = Vec::new();
    for fetched in offsets {
        let place = Place {
            index: fetched.partition.0,
            committed: fetched.committed,
        };
        match topics.last_mut() {
            Some((topic, places)) if *topic == fetched.topic => places.push(place),
            _ => topics.push((fetched.topic, vec![place])),
        }
    }
    let topics = topics.into_iter();
    topics
        .map(|(topic, places)| (WireTopicName(text(topic)), places))
        .collect()
}

fn respond(mut found: Vec<Found>, version: i16) -> OffsetFetchResponse {
    if version >= GROUPS_FROM {
        let groups = found.into_iter().map(|found| {
            let topics = found.topics.into_iter().map(|(name, places)| {
                let partitions = places.into_iter().map(|place| {
                    let (offset, epoch, metadata) = wire_of(place.committed.as_ref());
                    OffsetFetchResponsePartitions::default()
                        .with_partition_index(place.index)
                        .with_committed_offset(offset)
                        .with_committed_leader_epoch(epoch)
                        .with_metadata(Some(text(metadata)))
                });
                OffsetFetchResponseTopics::default()
                    .with_name(name)
                    .with_partitions(partitions.collect())
            });
            OffsetFetchResponseGroup::default()
                .with_group_id(found.group)
                .with_topics(match found.error_code {
                    0 => topics.collect(),
                    _ => Vec::new(),
                })
                .with_error_code(found.error_code)
        });
        return OffsetFetchResponse::default().with_groups(groups.collect());
    }
    let found = found.remove(0);
    let topics = found.topics.into_iter().map(|(name, places)| {
        let partitions = places.into_iter().map(|place| {
            let (offset, epoch, metadata) = wire_of(place.committed.as_ref());
            let epoch = if version >= LEADER_EPOCH_FROM {
                epoch
            } else {
                -1
            };
            OffsetFetchResponsePartition::default()
                .with_partition_index(place.index)
                .with_committed_offset(offset)
                .with_committed_leader_epoch(epoch)
                .with_metadata(Some(text(metadata)))
                .with_error_code(found.error_code)
        });
        OffsetFetchResponseTopic::default()
            .with_name(name)
            .with_partitions(partitions.collect())
    });
    let response = OffsetFetchResponse::default().with_topics(topics.collect());
    match version >= ERROR_FROM {
        true => response.with_error_code(found.error_code),
        false => response,
    }
}

/// Offset, leader epoch and metadata; where nothing is committed Kafka's signs for it.
fn wire_of(committed: Option<&Committed>) -> (i64, i32, &str) {
    match committed {
        Some(committed) => (
            committed.offset.0,
            committed.leader_epoch.0,
            &committed.metadata,
        ),
        None => (-1, -1, ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::test_context::{read_back, string};
    use crate::group::GroupError;
    use crate::model::{LeaderEpoch, Offset};

    fn fetched(topic: &str, index: i32, offset: Option<i64>) -> FetchedOffset {
        FetchedOffset {
            topic: TopicName::new(topic).unwrap(),
            partition: PartitionIndex(index),
            committed: offset.map(|offset| Committed {
                offset: Offset(offset),
                leader_epoch: LeaderEpoch(4),
                metadata: "note".into(),
            }),
        }
    }

    fn named(name: &str, indexes: &[i32]) -> (WireTopicName, Vec<i32>) {
        (WireTopicName(string(name)), indexes.to_vec())
    }

    /// Topic, partition, offset and error of each place in an answer about one group.
    fn places(response: &OffsetFetchResponse, version: i16) -> Vec<(String, i32, i64, i16)> {
        let mut places = Vec::new();
        if version < GROUPS_FROM {
            for topic in &response.topics {
                for it in &topic.partitions {
                    let place = (it.partition_index, it.committed_offset, it.error_code);
                    places.push((topic.name.to_string(), place.0, place.1, place.2));
                }
            }
            return places;
        }
        for topic in &response.groups[0].topics {
            for it in &topic.partitions {
                let place = (it.partition_index, it.committed_offset, it.error_code);
                places.push((topic.name.to_string(), place.0, place.1, place.2));
            }
        }
        places
    }

    fn answer(
        topics: Option<Vec<(WireTopicName, Vec<i32>)>>,
        reply: GroupReply,
        version: i16,
    ) -> OffsetFetchResponse {
        let group = WireGroupId(string("g"));
        let asked = vec![Asked { group, topics }];
        let groups = first_mentions(["g"].into_iter());
        let found = put_together(asked, &groups, vec![reply]);
        read_back(&respond(found, version), version)
    }

    #[test]
    fn every_version_answers_each_place_of_the_request_in_its_order() {
        for version in 1..=9 {
            let topics = vec![
                named("b", &[1, 0]),
                named("no/name", &[0]),
                named("a", &[0]),
            ];
            let offsets = vec![
                fetched("b", 1, Some(11)),
                fetched("b", 0, None),
                fetched("a", 0, Some(5)),
            ];
            let reply = Ok(GroupAnswer::FetchOffsets(Ok(offsets)));
            let response = answer(Some(topics), reply, version);
            let place = |topic: &str, index, offset| (topic.to_owned(), index, offset, 0);
            assert_eq!(
                places(&response, version),
                [
                    place("b", 1, 11),
                    place("b", 0, -1),
                    place("no/name", 0, -1),
                    place("a", 0, 5)
                ],
                "version {version}"
            );
        }
    }

    #[test]
    fn all_offsets_come_topic_by_topic() {
        for version in 2..=9 {
            let offsets = vec![fetched("a", 0, Some(5)), fetched("b", 1, Some(11))];
            let reply = Ok(GroupAnswer::FetchOffsets(Ok(offsets)));
            let response = answer(None, reply, version);
            assert_eq!(places(&response, version).len(), 2, "version {version}");
        }
    }

    #[test]
    fn an_error_stands_where_the_version_has_a_place_for_it() {
        for version in 1..=9 {
            let reply = Err(GroupError::NotCoordinator);
            let response = answer(Some(vec![named("a", &[0])]), reply, version);
            match version {
                1 => assert_eq!(places(&response, version)[0].3, 16),
                2..GROUPS_FROM => {
                    assert_eq!(
                        (response.error_code, places(&response, version)[0].3),
                        (16, 16)
                    );
                }
                _ => assert_eq!(response.groups[0].error_code, 16),
            }
        }
    }

    #[test]
    fn a_group_that_is_named_twice_is_answered_once() {
        let asked = || Asked {
            group: WireGroupId(string("g")),
            topics: None,
        };
        let groups = first_mentions(["g", "g"].into_iter());
        let replies = vec![Ok(GroupAnswer::FetchOffsets(Ok(Vec::new())))];
        let found = put_together(vec![asked(), asked()], &groups, replies);
        let codes: Vec<i16> = found.iter().map(|it| it.error_code).collect();
        assert_eq!(codes, [0, DUPLICATE_GROUP.code()]);
    }
}
