//! Sending record batches to the leaders of their partitions.

use std::collections::BTreeMap;
use std::thread::sleep;
use std::time::{Duration, Instant};

use bytes::Bytes;
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::{ApiKey, ProduceRequest};

use crate::model::Offset;

use super::cluster::Cluster;
use super::connection::Connection;
use super::error::{ClientError, ErrorCode};
use super::metadata::{TopicPartition, by_topic, topic_name};

/// How long a batch rests whose partition has no leader at the moment.
const RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// What a broker confirms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acks {
    /// Nothing.
    None,
    /// That the leader has it.
    Leader,
    /// That every replica in sync has it.
    All,
}

impl Acks {
    fn to_wire(self) -> i16 {
        match self {
            Self::None => 0,
            Self::Leader => 1,
            Self::All => -1,
        }
    }
}

/// What became of one partition's batch; the offset is that of its first record.
type Answers = Vec<(TopicPartition, Result<Offset, ClientError>)>;

impl Cluster {
    /// Sends a batch to each partition and tells of each that is confirmed, with the offset of its first record. Where a leader is being
    /// found the batch is sent again until the time for a response is over; a batch that may have been written is not, so that nothing is
    /// doubled.
    pub fn produce(
        &mut self,
        acks: Acks,
        mut batches: BTreeMap<TopicPartition, Bytes>,
        mut confirmed: impl FnMut(&TopicPartition, Option<Offset>),
    ) -> Result<(), ClientError> {
        let deadline = Instant::now() + self.options().response_timeout;
        loop {
            let mut delayed = None;
            match self.produce_once(acks, &batches) {
                Ok(None) => {
                    batches.keys().for_each(|at| confirmed(at, None));
                    return Ok(());
                }
                Ok(Some(answers)) => {
                    for (at, answer) in answers {
                        match answer {
                            Ok(base_offset) => {
                                batches.remove(&at);
                                confirmed(&at, Some(base_offset));
                            }
                            Err(error) => delayed = Some(retriable(error)?),
                        }
                    }
                }
                Err(error) => delayed = Some(retriable(error)?),
            }
            match delayed {
                None => return Ok(()),
                Some(error) if Instant::now() >= deadline => return Err(error),
                Some(_) => {}
            }
            self.forget_routes();
            sleep(RETRY_INTERVAL);
        }
    }

    /// None: nothing is confirmed.
    fn produce_once(
        &mut self,
        acks: Acks,
        batches: &BTreeMap<TopicPartition, Bytes>,
    ) -> Result<Option<Answers>, ClientError> {
        let timeout_ms = i32::try_from(self.options().response_timeout.as_millis());
        let mut answers = Vec::new();
        for (leader, partitions) in self.by_leader(batches.keys())? {
            let request = request(acks, timeout_ms.unwrap_or(i32::MAX), &partitions, batches);
            if acks == Acks::None {
                self.ask(&leader, |broker| broker.send(&request).map(drop))?;
            } else {
                let answered = self.ask(&leader, |broker| send(broker, &request))?;
                if let Some(missing) = partitions
                    .iter()
                    .find(|at| answered.iter().all(|(answered, _)| answered != **at))
                {
                    return Err(ClientError::Protocol {
                        address: leader,
                        reason: format!("Produce without {missing}, which was sent"),
                    });
                }
                answers.extend(answered);
            }
        }
        Ok((acks != Acks::None).then_some(answers))
    }
}

/// Lets through what can be tried again without a record being written twice.
fn retriable(error: ClientError) -> Result<ClientError, ClientError> {
    let is_open = error
        .code()
        .is_some_and(ErrorCode::leaves_open_whether_written);
    match error.is_transient() && !is_open {
        true => Ok(error),
        false => Err(error),
    }
}

fn request(
    acks: Acks,
    timeout_ms: i32,
    partitions: &[&TopicPartition],
    batches: &BTreeMap<TopicPartition, Bytes>,
) -> ProduceRequest {
    let part = |(index, batch): (i32, &Bytes)| {
        PartitionProduceData::default()
            .with_index(index)
            .with_records(Some(batch.clone()))
    };
    let topics = by_topic(partitions.iter().map(|&at| (at, &batches[at])))
        .into_iter()
        .map(|(topic, parts)| {
            TopicProduceData::default()
                .with_name(topic_name(topic))
                .with_partition_data(parts.into_iter().map(part).collect())
        })
        .collect();
    ProduceRequest::default()
        .with_acks(acks.to_wire())
        .with_timeout_ms(timeout_ms)
        .with_topic_data(topics)
}

fn send(broker: &mut Connection, request: &ProduceRequest) -> Result<Answers, ClientError> {
    let response = broker.call_that_waits(
        request,
        Duration::from_millis(request.timeout_ms.max(0) as u64),
    )?;
    let mut answers = Vec::new();
    for topic in &response.responses {
        for part in &topic.partition_responses {
            let at = TopicPartition::new(&topic.name, part.index);
            let message = part
                .record_errors
                .iter()
                .find_map(|error| error.batch_index_error_message.as_deref())
                .or(part.error_message.as_deref());
            let about = format!("records for {at}");
            let refused = broker.refuse_error(ApiKey::Produce, &about, part.error_code, message);
            answers.push((at, refused.map(|()| Offset(part.base_offset))));
        }
    }
    Ok(answers)
}
