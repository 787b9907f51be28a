//! The way from a group's name to its coordinator: the partition of the offsets topic that the name hashes to, and the shard that owns it.

use std::collections::HashSet;
use std::future::Future;

use kafka_protocol::ResponseError;
use kafka_protocol::messages::TopicName as WireTopicName;
use kafka_protocol::protocol::StrBytes;

use crate::api::admin_context::AdminContext;
use crate::api::context::ApiContext;
use crate::api::owners::ByOwner;
use crate::group::{GroupAnswer, GroupError, GroupId, GroupRequest, InstanceId};
use crate::metadata::{MetadataImage, Topic};
use crate::model::internal_topic::{OFFSETS_TOPIC, offsets_partition_of};
use crate::model::{PartitionIndex, TopicId, TopicName, TopicPartition};
use crate::shard::command::{Command, GroupItem, GroupReply};

/// Asks the coordinator of one group, now; the answer comes with the future.
pub fn ask(
    context: &ApiContext,
    group: &GroupId,
    request: GroupRequest,
) -> impl Future<Output = GroupReply> + use<> {
    let replies = ask_each(context, vec![(group.clone(), request)]);
    async move { replies.await.remove(0) }
}

/// Asks the coordinators of several groups, now; the answers come in the order of the requests.
pub fn ask_each(
    context: &ApiContext,
    requests: Vec<(GroupId, GroupRequest)>,
) -> impl Future<Output = Vec<GroupReply>> + use<> {
    let image = context.image();
    let topic = image.topic(OFFSETS_TOPIC).cloned();
    let requests = requests.into_iter().map(|(group, request)| {
        let topic = topic.as_deref()?;
        let partition = partition_of(topic, group.as_str());
        Some(GroupItem { partition, request })
    });
    ask_items(context, requests.collect())
}

/// Asks the coordinators of all groups.
pub fn ask_all(
    context: &ApiContext,
    request: &GroupRequest,
) -> impl Future<Output = Vec<GroupReply>> + use<> {
    let image = context.image();
    let partitions = image.topic(OFFSETS_TOPIC).into_iter();
    let items = partitions
        .flat_map(|topic| topic.partitions_from(0))
        .map(|(partition, _)| {
            Some(GroupItem {
                partition,
                request: request.clone(),
            })
        });
    ask_items(context, items.collect())
}

/// Without an offsets topic there is no coordinator either: whoever asks looks for one, which creates the topic.
fn ask_items(
    context: &ApiContext,
    items: Vec<Option<GroupItem>>,
) -> impl Future<Output = Vec<GroupReply>> + use<> {
    let mut by_owner = ByOwner::default();
    let mut replies: Vec<Option<GroupReply>> = Vec::with_capacity(items.len());
    for (index, item) in items.into_iter().enumerate() {
        replies.push(match item {
            None => Some(Err(GroupError::NotCoordinator)),
            Some(item) => {
                by_owner.push(context.shard.router(), item.partition, index, item);
                None
            }
        });
    }
    let asked = by_owner.ask(|owner, items| {
        context
            .shard
            .call(owner, |reply| Command::Groups(items, reply))
    });
    async move {
        asked.collect_into(&mut replies).await;
        let replies = replies.into_iter();
        replies
            .map(|reply| reply.expect("every coordinator answers"))
            .collect()
    }
}

pub fn partition_of(offsets_topic: &Topic, group: &str) -> TopicPartition {
    let index = offsets_partition_of(group, offsets_topic.partition_count());
    TopicPartition {
        topic: offsets_topic.id,
        partition: PartitionIndex(index),
    }
}

/// The answer to a request of another kind than was asked.
pub fn wrong_answer(answer: &GroupAnswer) -> ! {
    unreachable!("a coordinator answers what it was asked, not {answer:?}")
}

pub fn instance(id: Option<&StrBytes>) -> Option<InstanceId> {
    id.map(|id| InstanceId::new(id))
}

/// The group of each name that stands there for the first time; a name that is repeated is not asked about again, since what is known of a
/// group can be much more than its name.
pub fn first_mentions<'a>(names: impl Iterator<Item = &'a str>) -> Vec<Option<GroupId>> {
    let mut seen = HashSet::new();
    names
        .map(|name| seen.insert(name).then(|| GroupId::new(name)))
        .collect()
}

/// The topic of a request about offsets, by a name that may be no legal one.
pub fn topic_named(image: &MetadataImage, name: &WireTopicName) -> Option<(TopicName, TopicId)> {
    let found = image.topic(name);
    match found {
        Some(topic) => Some((topic.name.clone(), topic.id)),
        None => Some((TopicName::new(name).ok()?, TopicId::ZERO)),
    }
}

/// The error of every part of an answer.
pub fn code_of(error: GroupError) -> i16 {
    crate::api::error_code::of_group(error).code()
}

pub const DUPLICATE_GROUP: ResponseError = ResponseError::InvalidRequest;
