//! Sending record batches to the leaders of their partitions.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::{
    ApiKey, InitProducerIdRequest, ProduceRequest, ProducerId as WireProducerId,
};

use crate::model::{Offset, ProducerEpoch, ProducerId};

use super::cluster::Cluster;
use super::connection::Connection;
use super::error::{ClientError, ErrorCode};
use super::metadata::{TopicPartition, by_topic, topic_name};
use super::outage::Outage;

/// Kafka's clients name it also where there is no transaction to time out.
const NO_TRANSACTIONS_MS: i32 = i32::MAX;

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

/// How batches are delivered.
#[derive(Clone, Copy, Debug)]
pub struct Delivery {
    pub acks: Acks,
    /// Whether each batch has the id and the sequence of a producer, so that a broker which has it already does not write it again.
    pub is_idempotent: bool,
    /// For how long a batch is sent again while the cluster does not take it.
    pub timeout: Duration,
}

impl Delivery {
    /// Lets through what can be tried again without a record being written twice.
    fn retriable(&self, error: ClientError) -> Result<ClientError, ClientError> {
        let is_open = match error.code() {
            // Sent again it would still be out of order.
            Some(ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER) => return Err(error),
            Some(code) => code.leaves_open_whether_written(),
            None => !matches!(
                error,
                ClientError::Connect { .. } | ClientError::NoBroker { .. }
            ),
        };
        // Without acks nobody says what was written, so what was cut off is sent again.
        let may_repeat = self.is_idempotent || self.acks == Acks::None;
        match !is_open || may_repeat {
            true => Ok(error),
            false => Err(error),
        }
    }
}

/// What became of one partition's batch; the offset is that of its first record, where the broker says it.
type Answers = Vec<(TopicPartition, Result<Option<Offset>, ClientError>)>;

impl Cluster {
    /// An id for a producer. None: the cluster is too old to know producers.
    pub fn producer_id(&mut self) -> Result<Option<(ProducerId, ProducerEpoch)>, ClientError> {
        let request = InitProducerIdRequest::default()
            .with_transactional_id(None)
            .with_transaction_timeout_ms(NO_TRANSACTIONS_MS)
            .with_producer_id(WireProducerId(-1))
            .with_producer_epoch(-1);
        let given = self.until_ready(|cluster| {
            cluster.ask(&cluster.contact(), |broker| {
                let response = broker.call(&request)?;
                let about = "a producer id";
                broker.refuse_error(ApiKey::InitProducerId, about, response.error_code, None)?;
                let id = ProducerId(response.producer_id.0);
                Ok((id, ProducerEpoch(response.producer_epoch)))
            })
        });
        match given {
            Ok(given) => Ok(Some(given)),
            Err(ClientError::Version { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Sends a batch to each partition and tells of each that is confirmed, with the offset of its first record. What the cluster does not take
    /// at the moment, or no broker answers, is sent again until the delivery's time is over; but a batch that may have been written is only
    /// where that does not double it. `tell` is called once in each outage.
    pub fn produce(
        &mut self,
        delivery: &Delivery,
        mut batches: BTreeMap<TopicPartition, Bytes>,
        mut confirmed: impl FnMut(&TopicPartition, Option<Offset>),
        mut tell: impl FnMut(&ClientError),
    ) -> Result<(), ClientError> {
        let mut outage = Outage::new(delivery.timeout);
        while !batches.is_empty() {
            let (answers, failed) = self.produce_once(delivery.acks, &batches);
            let mut errors: Vec<ClientError> = failed.into_iter().collect();
            for (at, answer) in answers {
                match answer {
                    Ok(base_offset) => {
                        batches.remove(&at);
                        confirmed(&at, base_offset);
                    }
                    Err(error) => errors.push(error),
                }
            }
            // Only now: what is confirmed beside an error that ends it is told all the same.
            let mut delayed = None;
            for error in errors {
                delayed = Some(delivery.retriable(error)?);
            }
            if let Some(error) = delayed {
                outage.bear(self, error, &mut tell)?;
            }
        }
        Ok(())
    }

    /// What the leaders answered, and the error that kept the others from being asked.
    fn produce_once(
        &mut self,
        acks: Acks,
        batches: &BTreeMap<TopicPartition, Bytes>,
    ) -> (Answers, Option<ClientError>) {
        let timeout_ms = i32::try_from(self.options().response_timeout.as_millis());
        let mut answers = Vec::new();
        let leaders = match self.by_leader(batches.keys()) {
            Ok(leaders) => leaders,
            Err(error) => return (answers, Some(error)),
        };
        for (leader, partitions) in leaders {
            let request = request(acks, timeout_ms.unwrap_or(i32::MAX), &partitions, batches);
            let answered = self.ask(&leader, |broker| match acks {
                Acks::None => {
                    broker.send(&request)?;
                    let sent = partitions.iter().map(|&at| (at.clone(), Ok(None)));
                    Ok(sent.collect())
                }
                Acks::Leader | Acks::All => send(broker, &request, &partitions),
            });
            match answered {
                Ok(answered) => answers.extend(answered),
                Err(error) => return (answers, Some(error)),
            }
        }
        (answers, None)
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

fn send(
    broker: &mut Connection,
    request: &ProduceRequest,
    partitions: &[&TopicPartition],
) -> Result<Answers, ClientError> {
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
            let answer = match ErrorCode(part.error_code) {
                // It has been there for so long that the broker does not know where.
                ErrorCode::DUPLICATE_SEQUENCE_NUMBER => Ok(None),
                _ => refused.map(|()| Some(Offset(part.base_offset))),
            };
            answers.push((at, answer));
        }
    }
    let is_missing = |at: &&&TopicPartition| answers.iter().all(|(answered, _)| answered != **at);
    match partitions.iter().find(is_missing) {
        Some(missing) => Err(broker.protocol(format!("Produce without {missing}, which was sent"))),
        None => Ok(answers),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn closed() -> ClientError {
        ClientError::Closed {
            address: "a:1".to_owned(),
            api: ApiKey::Produce,
        }
    }

    fn refused(code: ErrorCode) -> ClientError {
        ClientError::Refused {
            address: "a:1".to_owned(),
            api: ApiKey::Produce,
            about: "t-0".to_owned(),
            code,
            message: None,
        }
    }

    #[test]
    fn what_may_have_been_written_is_sent_again_only_where_that_does_not_double_it() {
        let may_repeat = |acks, is_idempotent, error| {
            let timeout = Duration::ZERO;
            let delivery = Delivery {
                acks,
                is_idempotent,
                timeout,
            };
            delivery.retriable(error).is_ok()
        };
        for (acks, is_idempotent, repeats) in [
            (Acks::All, true, true),
            (Acks::All, false, false),
            (Acks::Leader, false, false),
            (Acks::None, false, true),
        ] {
            assert_eq!(may_repeat(acks, is_idempotent, closed()), repeats);
            let timed_out = refused(ErrorCode::REQUEST_TIMED_OUT);
            assert_eq!(may_repeat(acks, is_idempotent, timed_out), repeats);
            let no_leader = refused(ErrorCode::LEADER_NOT_AVAILABLE);
            assert!(may_repeat(acks, is_idempotent, no_leader), "nobody took it");
            let out_of_order = refused(ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER);
            assert!(!may_repeat(acks, is_idempotent, out_of_order));
        }
    }
}
