//! Fetch requests, and a walk over their answers that copies no record.

use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::{BrokerId, FetchRequest, TopicName};
use kafka_protocol::protocol::StrBytes;

use serde::{Deserialize, Serialize};

use super::error::ErrorCode;
use super::wire::{Cursor, Truncated};

/// The version whose answer `FetchedPartitions` reads: the last before compact encodings.
pub const FETCH_VERSION: i16 = 11;

/// How a consumer asks.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct FetchLimits {
    /// For the whole answer.
    pub response_bytes_max: i32,
    pub partition_bytes_max: i32,
    /// How much the broker waits for.
    pub response_bytes_min: i32,
    /// How long the broker may wait for that.
    pub wait_ms_max: i32,
}

/// Asks for `(partition, offset)` each, without a fetch session.
pub fn request(topic: &str, wanted: &[(i32, i64)], limits: &FetchLimits) -> FetchRequest {
    let partition = |&(partition, offset): &(i32, i64)| {
        FetchPartition::default()
            .with_partition(partition)
            .with_current_leader_epoch(-1)
            .with_fetch_offset(offset)
            .with_partition_max_bytes(limits.partition_bytes_max)
    };
    let topic = FetchTopic::default()
        .with_topic(TopicName(StrBytes::from_string(topic.to_owned())))
        .with_partitions(wanted.iter().map(partition).collect());
    FetchRequest::default()
        .with_replica_id(BrokerId(-1))
        .with_max_wait_ms(limits.wait_ms_max)
        .with_min_bytes(limits.response_bytes_min)
        .with_max_bytes(limits.response_bytes_max)
        .with_session_id(0)
        .with_session_epoch(-1)
        .with_topics(vec![topic])
}

/// What one partition's part of an answer holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchedPartition<'a> {
    pub partition: i32,
    pub error: ErrorCode,
    pub high_watermark: i64,
    /// Record batches, the last possibly cut off.
    pub records: &'a [u8],
}

/// Reads a Fetch answer of version `FETCH_VERSION` to a request for one topic. Returns the answer's own error
/// if it has one.
pub fn partitions<'a>(
    frame: &'a [u8],
    correlation_id: i32,
    mut each: impl FnMut(FetchedPartition<'a>),
) -> Result<ErrorCode, Truncated> {
    let mut cursor = Cursor::new(frame);
    if cursor.i32()? != correlation_id {
        return Err(Truncated);
    }
    cursor.i32()?; // throttle time
    let error = ErrorCode(cursor.i16()?);
    cursor.i32()?; // session
    for _topic in 0..cursor.i32()?.max(0) {
        cursor.short_bytes()?;
        for _partition in 0..cursor.i32()?.max(0) {
            let partition = cursor.i32()?;
            let error = ErrorCode(cursor.i16()?);
            let high_watermark = cursor.i64()?;
            cursor.i64()?; // last stable offset
            cursor.i64()?; // log start offset
            for _aborted in 0..cursor.i32()?.max(0) {
                cursor.take(16)?;
            }
            cursor.i32()?; // preferred read replica
            each(FetchedPartition {
                partition,
                error,
                high_watermark,
                records: cursor.long_bytes()?,
            });
        }
    }
    Ok(error)
}

#[cfg(test)]
mod tests {
    use bytes::{Bytes, BytesMut};
    use kafka_protocol::messages::fetch_response::{
        AbortedTransaction, FetchableTopicResponse, PartitionData,
    };
    use kafka_protocol::messages::{FetchResponse, ResponseHeader};
    use kafka_protocol::protocol::Encodable;

    use super::*;

    fn encoded() -> Vec<u8> {
        let partition = |index: i32, records: &'static [u8]| {
            PartitionData::default()
                .with_partition_index(index)
                .with_high_watermark(100 + i64::from(index))
                .with_aborted_transactions(Some(vec![
                    AbortedTransaction::default();
                    index as usize
                ]))
                .with_records(Some(Bytes::from_static(records)))
        };
        let topic = FetchableTopicResponse::default()
            .with_topic(TopicName(StrBytes::from_static_str("t")))
            .with_partitions(vec![
                partition(0, b"zero"),
                partition(1, b""),
                partition(2, b"two").with_error_code(6),
            ]);
        let mut frame = BytesMut::new();
        ResponseHeader::default()
            .with_correlation_id(9)
            .encode(&mut frame, 0)
            .unwrap();
        FetchResponse::default()
            .with_responses(vec![topic])
            .encode(&mut frame, FETCH_VERSION)
            .unwrap();
        frame.to_vec()
    }

    #[test]
    fn the_walk_finds_what_another_encoder_wrote() {
        let frame = encoded();
        let mut found = Vec::new();
        let error = partitions(&frame, 9, |part| {
            found.push((
                part.partition,
                part.error.0,
                part.high_watermark,
                part.records.to_vec(),
            ))
        });
        assert_eq!(error, Ok(ErrorCode::NONE));
        let expected = [
            (0, 0, 100, b"zero".to_vec()),
            (1, 0, 101, Vec::new()),
            (2, 6, 102, b"two".to_vec()),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_cut_off_answer_is_an_error_at_every_length() {
        let frame = encoded();
        for len in 0..frame.len() {
            assert_eq!(
                partitions(&frame[..len], 9, |_| ()),
                Err(Truncated),
                "cut at {len}"
            );
        }
    }
}
