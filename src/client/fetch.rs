//! Reading records from the leaders of their partitions.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::thread::sleep;
use std::time::Duration;

use bytes::Bytes;
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::{ApiKey, BrokerId, FetchRequest};

use crate::model::Offset;
use crate::model::limits::RECORD_BATCH_HEADER_BYTES;
use crate::record::records::{Record, RecordReader};
use crate::record::{InflateBounds, RecordBatchHeader, TimestampType};

use super::cluster::Cluster;
use super::error::{ClientError, ErrorCode};
use super::metadata::{TopicPartition, topic_name};

/// How much one broker may send at once, and of one partition. A batch that is larger comes alone.
const RESPONSE_BYTES: i32 = 8 * 1024 * 1024;
const PARTITION_BYTES: i32 = 1024 * 1024;

/// How long the client rests after a partition had no leader.
const RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// What a broker sent of one partition.
#[derive(Clone, Debug)]
pub struct Fetched {
    pub at: TopicPartition,
    /// What was asked for: the batch that holds it may begin before.
    pub from: Offset,
    pub high_watermark: Offset,
    /// Record batches, the last possibly cut off.
    records: Bytes,
}

impl Cluster {
    /// Asks the leaders for records from these offsets on; each waits up to `wait` while it has none. An answer may be full before it comes
    /// to the last partition, so they are asked as they stand in `in_turn`. A partition whose leader is being found has no part in the
    /// answer.
    pub fn fetch(
        &mut self,
        positions: &BTreeMap<TopicPartition, Offset>,
        in_turn: &[TopicPartition],
        wait: Duration,
    ) -> Result<Vec<Fetched>, ClientError> {
        let leaders = self.until_ready(|cluster| cluster.by_leader(in_turn))?;
        let mut sent = Vec::new();
        for (leader, partitions) in &leaders {
            let request = request(positions, partitions, wait);
            match self.ask(leader, |broker| broker.send(&request)) {
                Ok(request) => sent.push((leader, request)),
                Err(error) => {
                    sent.iter().for_each(|(leader, _)| self.hang_up(leader));
                    return Err(error);
                }
            }
        }
        let mut fetched = Vec::new();
        let mut failed = None;
        let mut is_delayed = false;
        // All are read, also behind one that failed: an answer left on a connection would be taken for the next one.
        for (leader, sent) in sent {
            let answer = self.ask(leader, |broker| {
                broker.receive_response::<FetchRequest>(sent)
            });
            let parts = match answer {
                Ok(response) => self.ask(leader, |broker| {
                    broker.refuse_error(ApiKey::Fetch, "records", response.error_code, None)?;
                    let mut parts = Vec::new();
                    for topic in &response.responses {
                        for part in &topic.partitions {
                            let at = TopicPartition::new(&topic.topic, part.partition_index);
                            let about = format!("records of {at}");
                            let refused =
                                broker.refuse_error(ApiKey::Fetch, &about, part.error_code, None);
                            parts.push(refused.map(|()| Fetched {
                                from: positions.get(&at).copied().unwrap_or(Offset::ZERO),
                                at,
                                high_watermark: Offset(part.high_watermark),
                                records: part.records.clone().unwrap_or_default(),
                            }));
                        }
                    }
                    Ok(parts)
                }),
                Err(error) => Err(error),
            };
            match parts {
                Ok(parts) => {
                    for part in parts {
                        match part {
                            Ok(part) => fetched.push(part),
                            Err(error) if error.is_transient() => is_delayed = true,
                            Err(error) => failed = Some(error),
                        }
                    }
                }
                Err(error) => failed = Some(error),
            }
        }
        if is_delayed {
            self.forget_routes();
            sleep(RETRY_INTERVAL);
        }
        fetched.retain(|part| positions.contains_key(&part.at));
        match failed {
            None => Ok(fetched),
            Some(error) => Err(error),
        }
    }
}

impl Fetched {
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }
}

/// Whether the offset that was asked for is not there any more, or not yet.
pub fn is_out_of_range(error: &ClientError) -> bool {
    error.code() == Some(ErrorCode::OFFSET_OUT_OF_RANGE)
}

fn request(
    positions: &BTreeMap<TopicPartition, Offset>,
    partitions: &[&TopicPartition],
    wait: Duration,
) -> FetchRequest {
    let part = |(partition, from): (i32, Offset)| {
        FetchPartition::default()
            .with_partition(partition)
            .with_current_leader_epoch(-1)
            .with_fetch_offset(from.0)
            .with_partition_max_bytes(PARTITION_BYTES)
    };
    // A topic stands once for each of its partitions where those of another come in between.
    let topics = partitions
        .chunk_by(|a, b| a.topic == b.topic)
        .map(|of_topic| {
            let parts = of_topic
                .iter()
                .map(|&at| part((at.partition, positions[at])));
            FetchTopic::default()
                .with_topic(topic_name(&of_topic[0].topic))
                .with_partitions(parts.collect())
        })
        .collect();
    FetchRequest::default()
        .with_replica_id(BrokerId(-1))
        .with_max_wait_ms(i32::try_from(wait.as_millis()).unwrap_or(i32::MAX))
        .with_min_bytes(1)
        .with_max_bytes(RESPONSE_BYTES)
        .with_session_id(0)
        .with_session_epoch(-1)
        .with_topics(topics)
}

impl Fetched {
    /// Hands out the records from the offset that was asked for on, until `each` breaks off, and returns the offset to go on with. What
    /// transactions write for themselves is passed over.
    pub fn records(
        &self,
        mut each: impl FnMut(&Record<'_>, TimestampType) -> ControlFlow<()>,
    ) -> Result<Offset, ClientError> {
        let unreadable = |reason: String| ClientError::Records {
            partition: self.at.to_string(),
            reason,
        };
        let mut next = self.from;
        let mut rest: &[u8] = &self.records;
        while let Some(batch) = whole_batch(rest).map_err(&unreadable)? {
            rest = &rest[batch.len()..];
            let mut reader = RecordReader::new(batch, InflateBounds::WIDEST)
                .map_err(|error| unreadable(error.to_string()))?;
            let header = *reader.header();
            if !header.crc_fits(batch) {
                return Err(unreadable(format!(
                    "the batch at offset {} fails its checksum",
                    header.base_offset
                )));
            }
            if header.attributes.is_control() {
                next = next.max(header.next_offset());
                continue;
            }
            let timestamp_type = header.attributes.timestamp_type();
            while let Some(record) = reader
                .next_record()
                .map_err(|error| unreadable(error.to_string()))?
            {
                if record.offset < self.from {
                    continue;
                }
                next = record.offset.plus(1);
                if each(&record, timestamp_type).is_break() {
                    return Ok(next);
                }
            }
            next = next.max(header.next_offset());
        }
        Ok(next)
    }
}

/// The batch at the front of `bytes`; none: they end within it.
fn whole_batch(bytes: &[u8]) -> Result<Option<&[u8]>, String> {
    if bytes.len() < RECORD_BATCH_HEADER_BYTES {
        return Ok(None);
    }
    let header = RecordBatchHeader::parse(bytes).map_err(|error| error.to_string())?;
    Ok(bytes.get(..header.size_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::TimestampMs;
    use crate::record::Codec;
    use crate::record::encode::BatchBuilder;

    fn fetched(from: i64, records: Vec<u8>) -> Fetched {
        Fetched {
            at: TopicPartition::new("t", 0),
            from: Offset(from),
            high_watermark: Offset(100),
            records: records.into(),
        }
    }

    fn batch(base_offset: i64, codec: Codec, values: &[&str]) -> Vec<u8> {
        let mut builder = BatchBuilder::new()
            .codec(codec)
            .base_offset(Offset(base_offset));
        for value in values {
            builder.push(TimestampMs(1), None, Some(value.as_bytes()), &[]);
        }
        builder.build()
    }

    fn values(fetched: &Fetched) -> (Vec<String>, Result<Offset, String>) {
        let mut values = Vec::new();
        let next = fetched.records(|record, _| {
            values.push(String::from_utf8_lossy(record.value.unwrap()).into_owned());
            ControlFlow::Continue(())
        });
        (values, next.map_err(|error| error.to_string()))
    }

    #[test]
    fn records_before_the_wanted_offset_and_a_cut_off_batch_are_left_out() {
        for codec in Codec::ALL {
            let mut bytes = batch(10, codec, &["a", "b", "c"]);
            let cut = batch(13, codec, &["d", "e"]);
            bytes.extend(&cut[..cut.len() - 1]);
            let expected = (vec!["b".to_owned(), "c".to_owned()], Ok(Offset(13)));
            assert_eq!(values(&fetched(11, bytes)), expected, "{codec:?}");
        }
    }

    #[test]
    fn a_reader_that_breaks_off_goes_on_behind_its_last_record() {
        let fetched = fetched(0, batch(0, Codec::None, &["a", "b", "c"]));
        let next = fetched.records(|_, _| ControlFlow::Break(()));
        assert_eq!(next.unwrap(), Offset(1));
    }

    #[test]
    fn partitions_are_asked_in_the_order_of_their_turns() {
        let in_turn = [("a", 1), ("b", 0), ("b", 1), ("a", 0)]
            .map(|(topic, partition)| TopicPartition::new(topic, partition));
        let positions = in_turn.iter().map(|at| (at.clone(), Offset(7))).collect();
        let partitions: Vec<&TopicPartition> = in_turn.iter().collect();
        let request = request(&positions, &partitions, Duration::ZERO);
        let asked = request.topics.iter().flat_map(|topic| {
            let parts = topic.partitions.iter();
            parts.map(|part| TopicPartition::new(&topic.topic, part.partition))
        });
        assert_eq!(asked.collect::<Vec<_>>(), in_turn);
        assert_eq!(request.topics.len(), 3);
    }

    #[test]
    fn a_flipped_bit_is_an_error_with_the_partition_and_the_offset() {
        let mut bytes = batch(7, Codec::None, &["value"]);
        *bytes.last_mut().unwrap() ^= 1;
        let (_, next) = values(&fetched(7, bytes));
        let expected =
            "the broker's records of t-0 cannot be read: the batch at offset 7 fails its checksum";
        assert_eq!(next.unwrap_err(), expected);
    }

    #[test]
    fn records_behind_removed_offsets_go_on_at_the_batchs_end() {
        let mut bytes = batch(0, Codec::None, &["a"]);
        bytes[23..27].copy_from_slice(&9i32.to_be_bytes());
        crate::record::encode::seal(&mut bytes);
        assert_eq!(values(&fetched(5, bytes)), (Vec::new(), Ok(Offset(10))));
    }
}
