//! DescribeTopicPartitions (key 75), version 0. KIP-966: topics page by page, in the order of their names.

use std::collections::BTreeSet;
use std::sync::Arc;

use kafka_protocol::ResponseError;
use kafka_protocol::messages::describe_topic_partitions_request::DescribeTopicPartitionsRequest;
use kafka_protocol::messages::describe_topic_partitions_response::{
    Cursor, DescribeTopicPartitionsResponse, DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
};
use kafka_protocol::messages::{BrokerId, TopicName as WireTopicName};

use crate::api::admin_context::AdminContext;
use crate::api::authorized_operations;
use crate::api::text::{name_of, text};
use crate::metadata::{MetadataImage, Partition, Topic};
use crate::model::internal_topic::is_internal;
use crate::model::{NodeId, TopicName};

pub async fn handle(
    context: impl AdminContext,
    request: DescribeTopicPartitionsRequest,
    _version: i16,
) -> DescribeTopicPartitionsResponse {
    let image = context.image();
    let mut page = Page {
        room: page_size(
            request.response_partition_limit,
            context.config().request_partition_count_max,
        ),
        topics: Vec::new(),
        next: None,
    };
    let (start, first) = match &request.cursor {
        Some(cursor) => (cursor.topic_name.to_string(), cursor.partition_index),
        None => (String::new(), 0),
    };
    for (name, topic) in asked(&image, &request, &start) {
        // A cursor's partition counts only in the cursor's topic.
        let first = if name == start { first.max(0) } else { 0 };
        match topic {
            Some(topic) if !page.add(topic, first) => break,
            Some(_) => {}
            None => page.topics.push(absent(&name)),
        }
    }
    DescribeTopicPartitionsResponse::default()
        .with_topics(page.topics)
        .with_next_cursor(page.next)
}

fn page_size(asked: i32, limit: usize) -> usize {
    usize::try_from(asked).unwrap_or(0).clamp(1, limit)
}

/// The topics from `start` on, in the order of their names; `None` where one that was named does not exist.
fn asked<'a>(
    image: &'a MetadataImage,
    request: &'a DescribeTopicPartitionsRequest,
    start: &'a str,
) -> Box<dyn Iterator<Item = (String, Option<&'a Arc<Topic>>)> + 'a> {
    if request.topics.is_empty() {
        return Box::new(
            image
                .topics_from(start)
                .map(|topic| (topic.name.to_string(), Some(topic))),
        );
    }
    let names: BTreeSet<&str> = request
        .topics
        .iter()
        .map(|topic| topic.name.as_str())
        .collect();
    let names = names.into_iter().filter(move |name| *name >= start);
    Box::new(names.map(|name| (name.to_owned(), image.topic(name))))
}

struct Page {
    /// Partitions that still fit.
    room: usize,
    topics: Vec<DescribeTopicPartitionsResponseTopic>,
    next: Option<Cursor>,
}

impl Page {
    /// Adds the topic's partitions from `first` up as far as they fit. If they do not all fit, the page is full, and the cursor
    /// says where the next one begins.
    fn add(&mut self, topic: &Topic, first: i32) -> bool {
        let remaining = (topic.partition_count() - first).max(0) as usize;
        let taken = remaining.min(self.room);
        let next = (taken < remaining).then(|| {
            Cursor::default()
                .with_topic_name(name_of(topic))
                .with_partition_index(first + taken as i32)
        });
        if taken > 0 {
            let partitions = topic.partitions_from(first).take(taken);
            let partitions = partitions.map(|(id, partition)| describe(id.partition.0, partition));
            self.topics.push(
                DescribeTopicPartitionsResponseTopic::default()
                    .with_name(Some(name_of(topic)))
                    .with_topic_id(topic.id.0)
                    .with_is_internal(is_internal(topic.name.as_str()))
                    .with_partitions(partitions.collect())
                    .with_topic_authorized_operations(authorized_operations::on_a_topic(true)),
            );
        }
        self.room -= taken;
        self.next = next;
        self.next.is_none()
    }
}

fn describe(index: i32, partition: &Partition) -> DescribeTopicPartitionsResponsePartition {
    let nodes = |nodes: &[NodeId]| nodes.iter().map(|node| BrokerId(node.0)).collect();
    let response = DescribeTopicPartitionsResponsePartition::default()
        .with_partition_index(index)
        .with_leader_id(BrokerId(partition.leader.map_or(-1, |leader| leader.0)))
        .with_leader_epoch(partition.leader_epoch.0)
        .with_replica_nodes(nodes(&partition.replicas))
        .with_isr_nodes(nodes(&partition.isr))
        .with_eligible_leader_replicas(Some(Vec::new()))
        .with_last_known_elr(Some(Vec::new()));
    match partition.leader {
        Some(_) => response,
        None => response.with_error_code(ResponseError::LeaderNotAvailable.code()),
    }
}

fn absent(name: &str) -> DescribeTopicPartitionsResponseTopic {
    let error = match TopicName::new(name) {
        Ok(_) => ResponseError::UnknownTopicOrPartition,
        Err(_) => ResponseError::InvalidTopicException,
    };
    DescribeTopicPartitionsResponseTopic::default()
        .with_name(Some(WireTopicName(text(name))))
        .with_error_code(error.code())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::test_context::{TestContext, read_back, run, string};
    use kafka_protocol::messages::describe_topic_partitions_request::{
        Cursor as AskedCursor, TopicRequest,
    };

    fn context() -> TestContext {
        TestContext::new()
            .with_topic("a", 2)
            .with_topic("b", 3)
            .with_topic("c", 1)
    }

    fn request(
        names: &[&str],
        limit: i32,
        cursor: Option<(&str, i32)>,
    ) -> DescribeTopicPartitionsRequest {
        let topics = names
            .iter()
            .map(|name| TopicRequest::default().with_name(WireTopicName(string(name))));
        let cursor = cursor.map(|(name, partition)| {
            AskedCursor::default()
                .with_topic_name(WireTopicName(string(name)))
                .with_partition_index(partition)
        });
        DescribeTopicPartitionsRequest::default()
            .with_topics(topics.collect())
            .with_response_partition_limit(limit)
            .with_cursor(cursor)
    }

    type Rows = Vec<(String, Vec<i32>)>;

    fn page(
        context: &TestContext,
        request: DescribeTopicPartitionsRequest,
    ) -> (Rows, Option<(String, i32)>) {
        let response = read_back(&run(handle(context.clone(), request, 0)), 0);
        let rows = response.topics.iter().map(|topic| {
            let indexes = topic
                .partitions
                .iter()
                .map(|partition| partition.partition_index)
                .collect();
            (topic.name.as_ref().unwrap().to_string(), indexes)
        });
        let next = response
            .next_cursor
            .map(|cursor| (cursor.topic_name.to_string(), cursor.partition_index));
        (rows.collect(), next)
    }

    fn rows(rows: &[(&str, &[i32])]) -> Rows {
        rows.iter()
            .map(|(name, indexes)| (name.to_string(), indexes.to_vec()))
            .collect()
    }

    #[test]
    fn everything_fits_on_one_page() {
        let (found, next) = page(&context(), request(&[], 2000, None));
        assert_eq!(
            found,
            rows(&[("a", &[0, 1]), ("b", &[0, 1, 2]), ("c", &[0])])
        );
        assert_eq!(next, None);
    }

    #[test]
    fn pages_join_without_gap_or_overlap_whatever_their_size() {
        let context = context();
        for limit in 1..=7 {
            let (mut seen, mut cursor) = (Vec::new(), None::<(String, i32)>);
            loop {
                let start = cursor
                    .as_ref()
                    .map(|(name, partition)| (name.as_str(), *partition));
                let (found, next) = page(&context, request(&[], limit, start));
                let row = |(name, indexes): (String, Vec<i32>)| {
                    indexes.into_iter().map(move |index| (name.clone(), index))
                };
                let found: Vec<_> = found.into_iter().flat_map(row).collect();
                assert!(!found.is_empty() && found.len() <= limit as usize);
                seen.extend(found);
                cursor = next;
                if cursor.is_none() {
                    break;
                }
            }
            let expected = [("a", 0), ("a", 1), ("b", 0), ("b", 1), ("b", 2), ("c", 0)];
            assert_eq!(
                seen,
                expected.map(|(name, index)| (name.to_owned(), index)),
                "limit {limit}"
            );
        }
    }

    #[test]
    fn a_cursor_at_a_topic_that_is_gone_goes_on_behind_it() {
        let (found, _) = page(&context(), request(&[], 2000, Some(("aa", 7))));
        assert_eq!(found, rows(&[("b", &[0, 1, 2]), ("c", &[0])]));
        let (found, _) = page(&context(), request(&[], 2000, Some(("b", -9))));
        assert_eq!(found[0], ("b".to_owned(), vec![0, 1, 2]));
        let (found, _) = page(&context(), request(&[], 2000, Some(("b", i32::MAX))));
        assert_eq!(found, rows(&[("c", &[0])]));
    }

    #[test]
    fn a_page_is_bounded_by_the_brokers_limit_too() {
        let context = TestContext::with_settings(&[("max.request.partition.size.limit", "2")])
            .with_topic("t", 5);
        for asked in [0, -1, i32::MIN, 2000] {
            let (found, next) = page(&context, request(&[], asked, None));
            assert_eq!(next.is_some(), !found.is_empty());
            assert!(found[0].1.len() <= 2);
        }
    }

    #[test]
    fn named_topics_come_sorted_and_unknown_ones_say_so() {
        let names = ["c", "nope", "a", "no/name", "a"];
        let response = run(handle(context(), request(&names, 2000, None), 0));
        let found: Vec<_> = response
            .topics
            .iter()
            .map(|it| (it.name.as_ref().unwrap().as_str(), it.error_code))
            .collect();
        assert_eq!(found, [("a", 0), ("c", 0), ("no/name", 17), ("nope", 3)]);
        assert!(!response.topics[0].topic_id.is_nil());
    }
}
