//! OffsetForLeaderEpoch (key 23), versions 2 to 4. KIP-101, KIP-320. Replicas do not ask here.

use kafka_protocol::ResponseError;
use kafka_protocol::messages::offset_for_leader_epoch_request::OffsetForLeaderEpochRequest;
use kafka_protocol::messages::offset_for_leader_epoch_response::{
    EpochEndOffset, OffsetForLeaderEpochResponse, OffsetForLeaderTopicResult,
};

use crate::api::context::ApiContext;
use crate::api::owners::Questions;
use crate::api::reply::{PendingReply, Reply, RequestId};
use crate::model::{LeaderEpoch, PartitionIndex};
use crate::shard::command::{Command, EpochEndItem};

pub fn dispatch(
    context: &ApiContext,
    id: RequestId,
    request: OffsetForLeaderEpochRequest,
) -> PendingReply {
    let is_replica = request.replica_id.0 >= 0;
    let mut questions = Questions::default();
    let mut topics = Vec::with_capacity(request.topics.len());
    for topic in request.topics {
        let found = context.topic(&topic.topic);
        for asked in &topic.partitions {
            questions.add(
                context,
                found.as_deref(),
                PartitionIndex(asked.partition),
                |partition| {
                    if is_replica {
                        return Err(ResponseError::InvalidRequest);
                    }
                    let current_epoch = LeaderEpoch(asked.current_leader_epoch);
                    Ok(EpochEndItem {
                        partition,
                        current_epoch,
                        epoch: LeaderEpoch(asked.leader_epoch),
                    })
                },
            );
        }
        topics.push((topic.topic, topic.partitions));
    }
    let answers = questions.ask(|owner, items| {
        context
            .shard
            .call(owner, |reply| Command::EpochEnds(items, reply))
    });
    Box::pin(async move {
        let mut answers = answers.collect().await;
        let mut codes = Vec::new();
        let topics = topics.into_iter().map(|(name, partitions)| {
            let partitions = partitions.iter().zip(&mut answers).map(|(asked, answer)| {
                let response = EpochEndOffset::default().with_partition(asked.partition);
                match answer {
                    Ok((epoch, end)) => response.with_leader_epoch(epoch.0).with_end_offset(end.0),
                    Err(error) => {
                        codes.push(error.code());
                        response
                            .with_error_code(error.code())
                            .with_leader_epoch(-1)
                            .with_end_offset(-1)
                    }
                }
            });
            OffsetForLeaderTopicResult::default()
                .with_topic(name)
                .with_partitions(partitions.collect())
        });
        let response = OffsetForLeaderEpochResponse::default().with_topics(topics.collect());
        Ok(Reply::of(&id, &response)?.with_error_codes(codes))
    })
}
