//! Splitting a request by the shards that own its partitions, and putting the answers back in its order.

use kafka_protocol::ResponseError;

use crate::api::context::ApiContext;
use crate::api::error_code;
use crate::metadata::Topic;
use crate::model::PartitionIndex;
use crate::shard::command::PartitionError;

use crate::model::{ShardId, TopicPartition};
use crate::shard::call::Call;
use crate::shard::router::Router;

/// The items of a request, by owner. Within an owner they keep the request's order.
pub struct ByOwner<T> {
    groups: Vec<(ShardId, Vec<usize>, Vec<T>)>,
}

impl<T> Default for ByOwner<T> {
    fn default() -> Self {
        Self { groups: Vec::new() }
    }
}

impl<T> ByOwner<T> {
    /// `index` is the item's place in the request.
    pub fn push(&mut self, router: &Router, partition: TopicPartition, index: usize, item: T) {
        let owner = router.owner_of(partition);
        match self.groups.iter_mut().find(|(shard, ..)| *shard == owner) {
            Some((_, indexes, items)) => {
                indexes.push(index);
                items.push(item);
            }
            None => self.groups.push((owner, vec![index], vec![item])),
        }
    }

    pub fn len(&self) -> usize {
        self.groups.len()
    }

    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Asks every owner now; the answers are collected by the result.
    pub fn ask<R>(self, mut ask: impl FnMut(ShardId, Vec<T>) -> Call<Vec<R>>) -> Asked<R> {
        let calls = self
            .groups
            .into_iter()
            .map(|(owner, indexes, items)| (indexes, ask(owner, items)));
        Asked {
            calls: calls.collect(),
        }
    }
}

pub struct Asked<R> {
    calls: Vec<(Vec<usize>, Call<Vec<R>>)>,
}

impl<R> Asked<R> {
    /// Completes when every owner has answered; puts each answer at its item's place in `answers`.
    pub async fn collect_into(self, answers: &mut [Option<R>]) {
        for (indexes, call) in self.calls {
            let replies = call.await;
            assert_eq!(replies.len(), indexes.len(), "an owner answers each item");
            for (index, reply) in indexes.into_iter().zip(replies) {
                answers[index] = Some(reply);
            }
        }
    }
}

/// A request of one question for each partition, some of which are refused before anybody is asked.
pub struct Questions<T> {
    by_owner: ByOwner<T>,
    asked_count: usize,
    /// In the request's order; `None` is asked.
    refusals: Vec<Option<ResponseError>>,
}

impl<T> Default for Questions<T> {
    fn default() -> Self {
        Self {
            by_owner: ByOwner::default(),
            asked_count: 0,
            refusals: Vec::new(),
        }
    }
}

impl<T> Questions<T> {
    /// The next partition of the request: `question` makes what its owner is asked, if the partition exists and it agrees.
    pub fn add(
        &mut self,
        context: &ApiContext,
        topic: Option<&Topic>,
        index: PartitionIndex,
        question: impl FnOnce(TopicPartition) -> Result<T, ResponseError>,
    ) {
        let known = topic.filter(|topic| topic.partition(index).is_some());
        let question = known
            .ok_or(ResponseError::UnknownTopicOrPartition)
            .and_then(|topic| {
                let partition = TopicPartition {
                    topic: topic.id,
                    partition: index,
                };
                Ok((partition, question(partition)?))
            });
        self.refusals.push(match question {
            Ok((partition, item)) => {
                self.by_owner
                    .push(context.shard.router(), partition, self.asked_count, item);
                self.asked_count += 1;
                None
            }
            Err(error) => Some(error),
        });
    }

    /// Asks every owner now.
    pub fn ask<R>(
        self,
        ask: impl FnMut(ShardId, Vec<T>) -> Call<Vec<Result<R, PartitionError>>>,
    ) -> Answers<R> {
        Answers {
            asked: self.by_owner.ask(ask),
            asked_count: self.asked_count,
            refusals: self.refusals,
        }
    }
}

pub struct Answers<R> {
    asked: Asked<Result<R, PartitionError>>,
    asked_count: usize,
    refusals: Vec<Option<ResponseError>>,
}

impl<R> Answers<R> {
    /// Completes when every owner has answered: one result for each partition, in the request's order.
    pub async fn collect(self) -> impl Iterator<Item = Result<R, ResponseError>> {
        let mut answers: Vec<_> = (0..self.asked_count).map(|_| None).collect();
        self.asked.collect_into(&mut answers).await;
        let mut answers = answers.into_iter();
        self.refusals.into_iter().map(move |refusal| match refusal {
            Some(error) => Err(error),
            None => {
                let answer = answers
                    .next()
                    .flatten()
                    .expect("every asked partition was answered");
                answer.map_err(|error| error_code::of_partition(&error))
            }
        })
    }
}
