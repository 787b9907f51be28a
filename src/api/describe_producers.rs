//! DescribeProducers (key 61), version 0. KIP-664.

use kafka_protocol::messages::describe_producers_request::DescribeProducersRequest;
use kafka_protocol::messages::describe_producers_response::{
    DescribeProducersResponse, PartitionResponse, ProducerState, TopicResponse,
};
use kafka_protocol::protocol::StrBytes;

use crate::api::context::ApiContext;
use crate::api::owners::Questions;
use crate::api::reply::{PendingReply, Reply, RequestId};
use crate::model::PartitionIndex;
use crate::shard::command::Command;
use crate::storage::producer_state::ActiveProducer;

pub fn dispatch(
    context: &ApiContext,
    id: RequestId,
    request: DescribeProducersRequest,
) -> PendingReply {
    let mut questions = Questions::default();
    let mut topics = Vec::with_capacity(request.topics.len());
    for topic in request.topics {
        let found = context.topic(&topic.name);
        for index in &topic.partition_indexes {
            questions.add(context, found.as_deref(), PartitionIndex(*index), Ok);
        }
        topics.push((topic.name, topic.partition_indexes));
    }
    let answers = questions.ask(|owner, items| {
        context
            .shard
            .call(owner, |reply| Command::Producers(items, reply))
    });
    Box::pin(async move {
        let mut answers = answers.collect().await;
        let mut codes = Vec::new();
        let topics = topics.into_iter().map(|(name, partitions)| {
            let partitions = partitions.iter().zip(&mut answers).map(|(index, answer)| {
                let response = PartitionResponse::default().with_partition_index(*index);
                match answer {
                    Ok(producers) => response
                        .with_active_producers(producers.iter().map(producer_state).collect()),
                    Err(error) => {
                        codes.push(error.code());
                        let message = Some(StrBytes::from_string(error.to_string()));
                        response
                            .with_error_code(error.code())
                            .with_error_message(message)
                    }
                }
            });
            TopicResponse::default()
                .with_name(name)
                .with_partitions(partitions.collect())
        });
        let response = DescribeProducersResponse::default().with_topics(topics.collect());
        Ok(Reply::of(&id, &response)?.with_error_codes(codes))
    })
}

/// No transaction is ever open here, so its start offset is -1, as is the epoch of its coordinator.
fn producer_state(producer: &ActiveProducer) -> ProducerState {
    ProducerState::default()
        .with_producer_id(producer.producer_id.0.into())
        .with_producer_epoch(producer.epoch.0.into())
        .with_last_sequence(producer.last_sequence.0)
        .with_last_timestamp(producer.last_timestamp.0)
        .with_coordinator_epoch(-1)
        .with_current_txn_start_offset(-1)
}
