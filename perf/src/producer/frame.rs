//! A Produce request around batches that stay where they were encoded: only the few bytes between them are
//! written anew.

use std::io::{self, IoSlice, Write};
use std::ops::Range;

use kafka_protocol::messages::ApiKey;

use serde::{Deserialize, Serialize};

use crate::client::connection::CLIENT_ID;
use crate::client::error::ErrorCode;
use crate::client::wire::{Cursor, Truncated};

/// The versions whose layout is written and read here: before compact encodings.
pub const PRODUCE_VERSION_MIN: i16 = 3;
pub const PRODUCE_VERSION_MAX: i16 = 8;

/// How long the broker may take to have the records on all replicas.
const PRODUCE_TIMEOUT_MS: i32 = 30_000;

/// One request's partitions at most: two slices each must fit one `writev`.
pub const PARTITIONS_PER_REQUEST_MAX: usize = 500;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Acks {
    None,
    Leader,
    All,
}

impl Acks {
    pub fn on_wire(self) -> i16 {
        match self {
            Self::None => 0,
            Self::Leader => 1,
            Self::All => -1,
        }
    }
}

struct Part {
    /// In `heads`: what precedes the batch.
    head: Range<usize>,
    batch_bytes: usize,
}

/// One request, used again and again.
pub struct ProduceFrame {
    /// Everything but the batches, in the order of sending.
    heads: Vec<u8>,
    parts: Vec<Part>,
    /// The buffers of the batches; the first `parts.len()` are in use.
    slots: Vec<Vec<u8>>,
    /// Where `heads` holds the number of partitions.
    partition_count_at: usize,
    sent_bytes: usize,
    total_bytes: usize,
}

impl ProduceFrame {
    pub fn new(version: i16, acks: Acks, topic: &str, slots: Vec<Vec<u8>>) -> Self {
        let mut heads = vec![0; 4];
        heads.extend((ApiKey::Produce as i16).to_be_bytes());
        heads.extend(version.to_be_bytes());
        heads.extend([0; 4]); // correlation id
        put_short_string(&mut heads, CLIENT_ID);
        heads.extend((-1i16).to_be_bytes()); // no transaction
        heads.extend(acks.on_wire().to_be_bytes());
        heads.extend(PRODUCE_TIMEOUT_MS.to_be_bytes());
        heads.extend(1i32.to_be_bytes());
        put_short_string(&mut heads, topic);
        let partition_count_at = heads.len();
        heads.extend([0; 4]);
        assert!(!slots.is_empty() && slots.len() <= PARTITIONS_PER_REQUEST_MAX);
        Self {
            heads,
            parts: Vec::new(),
            slots,
            partition_count_at,
            sent_bytes: 0,
            total_bytes: 0,
        }
    }

    pub fn clear(&mut self) {
        self.heads.truncate(self.partition_count_at + 4);
        self.parts.clear();
        self.sent_bytes = 0;
        self.total_bytes = 0;
    }

    /// Of the sealed request, its length included.
    pub fn total_bytes(&self) -> usize {
        self.total_bytes
    }

    /// Batches per request at most.
    pub fn capacity(&self) -> usize {
        self.slots.len()
    }

    /// Adds a batch for `partition`: `encode` writes it into the slot and returns its size. At most `capacity` fit.
    pub fn push(&mut self, partition: i32, encode: impl FnOnce(&mut Vec<u8>) -> usize) {
        let batch_bytes = encode(&mut self.slots[self.parts.len()]);
        // What precedes the first batch is the head of the whole request too.
        let head_start = if self.parts.is_empty() {
            0
        } else {
            self.heads.len()
        };
        self.heads.extend(partition.to_be_bytes());
        self.heads.extend((batch_bytes as i32).to_be_bytes());
        self.parts.push(Part {
            head: head_start..self.heads.len(),
            batch_bytes,
        });
    }

    /// Completes the request; it can then be written.
    pub fn seal(&mut self, correlation_id: i32) {
        self.total_bytes = self.heads.len()
            + self
                .parts
                .iter()
                .map(|part| part.batch_bytes)
                .sum::<usize>();
        self.heads[0..4].copy_from_slice(&(self.total_bytes as i32 - 4).to_be_bytes());
        self.heads[8..12].copy_from_slice(&correlation_id.to_be_bytes());
        let count_at = self.partition_count_at;
        self.heads[count_at..count_at + 4]
            .copy_from_slice(&(self.parts.len() as i32).to_be_bytes());
    }

    /// Writes as much as the socket takes; true when all is written.
    pub fn write_to(&mut self, stream: &mut impl Write) -> io::Result<bool> {
        let mut slices = Vec::with_capacity(self.parts.len() * 2);
        for (part, slot) in self.parts.iter().zip(&self.slots) {
            slices.push(IoSlice::new(&self.heads[part.head.clone()]));
            slices.push(IoSlice::new(&slot[..part.batch_bytes]));
        }
        let mut rest = &mut slices[..];
        IoSlice::advance_slices(&mut rest, self.sent_bytes);
        while !rest.is_empty() {
            match stream.write_vectored(rest) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    self.sent_bytes += written;
                    IoSlice::advance_slices(&mut rest, written);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }
}

fn put_short_string(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as i16).to_be_bytes());
    out.extend(text.as_bytes());
}

/// The fate of one partition's batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartitionAck {
    pub partition: i32,
    pub error: ErrorCode,
    pub base_offset: Option<i64>,
}

/// The ack of the partition that stood at `place` in the request. Brokers answer in the order that they were asked in,
/// but need not.
pub fn ack_of(acks: &[PartitionAck], place: usize, partition: i32) -> Option<&PartitionAck> {
    let is_its = |ack: &&PartitionAck| ack.partition == partition;
    let in_place = acks.get(place).filter(is_its);
    in_place.or_else(|| acks.iter().find(is_its))
}

/// Reads a Produce answer behind its correlation id.
pub fn read_acks(
    body: &[u8],
    version: i16,
    mut each: impl FnMut(PartitionAck),
) -> Result<(), Truncated> {
    let mut cursor = Cursor::new(body);
    for _topic in 0..cursor.i32()?.max(0) {
        cursor.short_bytes()?;
        for _partition in 0..cursor.i32()?.max(0) {
            let partition = cursor.i32()?;
            let error = ErrorCode(cursor.i16()?);
            let base_offset = cursor.i64()?;
            cursor.i64()?; // log append time
            if version >= 5 {
                cursor.i64()?; // log start offset
            }
            if version >= 8 {
                for _record_error in 0..cursor.i32()?.max(0) {
                    cursor.i32()?;
                    cursor.short_bytes()?;
                }
                cursor.short_bytes()?; // error message
            }
            each(PartitionAck {
                partition,
                error,
                base_offset: (base_offset >= 0).then_some(base_offset),
            });
        }
    }
    cursor.i32()?; // throttle time
    Ok(())
}

#[cfg(test)]
mod tests {
    use bytes::{Bytes, BytesMut};
    use kafka_protocol::messages::produce_response::{
        PartitionProduceResponse, TopicProduceResponse,
    };
    use kafka_protocol::messages::{ProduceRequest, ProduceResponse, RequestHeader};
    use kafka_protocol::protocol::{Decodable, Encodable};

    use super::*;

    /// Takes three bytes at a time, and nothing at every other call.
    struct Reluctant(Vec<u8>, bool);

    impl Write for Reluctant {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.1 = !self.1;
            if !self.1 {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            let taken = bytes.len().min(3);
            self.0.extend_from_slice(&bytes[..taken]);
            Ok(taken)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn another_decoder_reads_the_request_in_every_version_also_when_it_was_written_in_pieces() {
        for version in PRODUCE_VERSION_MIN..=PRODUCE_VERSION_MAX {
            let mut frame = ProduceFrame::new(version, Acks::All, "topic", vec![vec![0; 8]; 2]);
            for correlation_id in [5, 6] {
                frame.clear();
                for (partition, batch) in [(3, &b"third"[..]), (1, b"first")] {
                    frame.push(partition, |slot| {
                        slot[..batch.len()].copy_from_slice(batch);
                        batch.len()
                    });
                }
                frame.seal(correlation_id);
                let mut socket = Reluctant(Vec::new(), false);
                while !frame.write_to(&mut socket).unwrap() {}

                let mut bytes = Bytes::from(socket.0);
                assert_eq!(
                    bytes.split_to(4),
                    Bytes::from((bytes.len() as u32).to_be_bytes().to_vec())
                );
                let header = RequestHeader::decode(
                    &mut bytes,
                    ApiKey::Produce.request_header_version(version),
                )
                .unwrap();
                assert_eq!(
                    (header.correlation_id, header.request_api_version),
                    (correlation_id, version)
                );
                let request = ProduceRequest::decode(&mut bytes, version).unwrap();
                assert!(bytes.is_empty());
                assert_eq!(
                    (request.acks, request.topic_data[0].name.as_str()),
                    (-1, "topic")
                );
                let parts: Vec<_> = request.topic_data[0]
                    .partition_data
                    .iter()
                    .map(|part| (part.index, part.records.clone().unwrap()))
                    .collect();
                assert_eq!(
                    parts,
                    [
                        (3, Bytes::from_static(b"third")),
                        (1, Bytes::from_static(b"first"))
                    ]
                );
            }
        }
    }

    #[test]
    fn a_partitions_ack_is_found_wherever_it_stands() {
        let acks = [4, 2, 9].map(|partition| PartitionAck {
            partition,
            error: ErrorCode::NONE,
            base_offset: Some(i64::from(partition)),
        });
        for place in 0..4 {
            for (at, partition) in [(0, 4), (1, 2), (2, 9)] {
                assert_eq!(ack_of(&acks, place, partition), Some(&acks[at]));
            }
            assert_eq!(ack_of(&acks, place, 3), None);
        }
    }

    #[test]
    fn acks_are_read_as_another_encoder_wrote_them() {
        let partition = |index, error, offset| {
            PartitionProduceResponse::default()
                .with_index(index)
                .with_error_code(error)
                .with_base_offset(offset)
        };
        for version in PRODUCE_VERSION_MIN..=PRODUCE_VERSION_MAX {
            let topic = TopicProduceResponse::default()
                .with_partition_responses(vec![partition(4, 0, 77), partition(2, 10, -1)]);
            let mut body = BytesMut::new();
            ProduceResponse::default()
                .with_responses(vec![topic])
                .encode(&mut body, version)
                .unwrap();
            let mut acks = Vec::new();
            read_acks(&body, version, |ack| acks.push(ack)).unwrap();
            let expected = [
                PartitionAck {
                    partition: 4,
                    error: ErrorCode::NONE,
                    base_offset: Some(77),
                },
                PartitionAck {
                    partition: 2,
                    error: ErrorCode(10),
                    base_offset: None,
                },
            ];
            assert_eq!(acks, expected);
            for len in 0..body.len() {
                assert_eq!(read_acks(&body[..len], version, |_| ()), Err(Truncated));
            }
        }
    }
}
