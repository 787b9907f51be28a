//! Building record batches, for tests and for load generators.

use crate::model::limits::RECORD_BATCH_HEADER_BYTES;
use crate::model::{LeaderEpoch, Offset, ProducerEpoch, ProducerId, Sequence, TimestampMs};

use super::compression::Codec;
use super::crc::{crc32c, crc32c_with_new_head};
use super::header::{Attributes, CRC_COVERS_FROM, LOG_OVERHEAD_BYTES, RecordBatchHeader};
use super::varint;

/// Collects records into one batch. Offset deltas are counted from 0 up.
#[derive(Clone, Debug)]
pub struct BatchBuilder {
    attributes: Attributes,
    base_offset: Offset,
    leader_epoch: LeaderEpoch,
    producer: (ProducerId, ProducerEpoch, Sequence),
    /// The first record's and the largest.
    timestamps: Option<(TimestampMs, TimestampMs)>,
    record_count: i32,
    /// The records, not yet compressed.
    records: Vec<u8>,
    /// The record being written, kept for its allocation.
    body: Vec<u8>,
}

impl Default for BatchBuilder {
    fn default() -> Self {
        Self::new()
    }
}

impl BatchBuilder {
    pub fn new() -> Self {
        Self {
            attributes: Attributes(0),
            base_offset: Offset::ZERO,
            leader_epoch: LeaderEpoch::UNKNOWN,
            producer: (ProducerId::NONE, ProducerEpoch::NONE, Sequence::NONE),
            timestamps: None,
            record_count: 0,
            records: Vec::new(),
            body: Vec::new(),
        }
    }

    pub fn codec(mut self, codec: Codec) -> Self {
        self.attributes = self.attributes.with_codec(codec);
        self
    }

    /// Sets the flags as they are, codec included.
    pub fn attributes(mut self, attributes: Attributes) -> Self {
        self.attributes = attributes;
        self
    }

    pub fn base_offset(mut self, base_offset: Offset) -> Self {
        self.base_offset = base_offset;
        self
    }

    pub fn leader_epoch(mut self, leader_epoch: LeaderEpoch) -> Self {
        self.leader_epoch = leader_epoch;
        self
    }

    pub fn producer(
        mut self,
        id: ProducerId,
        epoch: ProducerEpoch,
        base_sequence: Sequence,
    ) -> Self {
        self.producer = (id, epoch, base_sequence);
        self
    }

    pub fn record(self, timestamp: TimestampMs, key: Option<&[u8]>, value: Option<&[u8]>) -> Self {
        self.record_with_headers(timestamp, key, value, &[])
    }

    pub fn record_with_headers(
        mut self,
        timestamp: TimestampMs,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[(&str, Option<&[u8]>)],
    ) -> Self {
        self.push(timestamp, key, value, headers);
        self
    }

    pub fn push(
        &mut self,
        timestamp: TimestampMs,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[(&str, Option<&[u8]>)],
    ) {
        let (base, max) = self.timestamps.get_or_insert((timestamp, timestamp));
        let base = *base;
        *max = timestamp.max(*max);
        let body = &mut self.body;
        body.clear();
        body.push(0);
        varint::write(body, timestamp.0.wrapping_sub(base.0));
        varint::write(body, self.record_count.into());
        write_nullable(body, key);
        write_nullable(body, value);
        varint::write(body, headers.len() as i64);
        for (name, value) in headers {
            write_nullable(body, Some(name.as_bytes()));
            write_nullable(body, *value);
        }
        varint::write(&mut self.records, body.len() as i64);
        self.records.extend_from_slice(body);
        self.record_count += 1;
    }

    pub fn record_count(&self) -> i32 {
        self.record_count
    }

    /// The size of the batch if it were closed now and not compressed.
    pub fn uncompressed_bytes(&self) -> usize {
        RECORD_BATCH_HEADER_BYTES + self.records.len()
    }

    /// Closes the batch: compresses, counts, and computes the CRC.
    ///
    /// Panics if the flags name a codec that does not exist: who builds a broken batch patches the bytes.
    pub fn build(&self) -> Vec<u8> {
        let codec = self
            .attributes
            .codec()
            .expect("the flags of a batch that is built name a codec");
        let compressed;
        let records = match codec {
            Codec::None => &self.records,
            _ => {
                compressed = codec
                    .compress(&self.records)
                    .expect("compressing into memory does not fail");
                &compressed
            }
        };
        let (producer_id, producer_epoch, base_sequence) = self.producer;
        let (base_timestamp, max_timestamp) = self
            .timestamps
            .unwrap_or((TimestampMs::NONE, TimestampMs::NONE));
        let header = RecordBatchHeader {
            base_offset: self.base_offset,
            batch_length: i32::try_from(
                RECORD_BATCH_HEADER_BYTES - LOG_OVERHEAD_BYTES + records.len(),
            )
            .expect("a batch is smaller than 2 GiB"),
            leader_epoch: self.leader_epoch,
            crc: 0,
            attributes: self.attributes,
            last_offset_delta: self.record_count - 1,
            base_timestamp,
            max_timestamp,
            producer_id,
            producer_epoch,
            base_sequence,
            record_count: self.record_count,
        };
        let mut batch = Vec::with_capacity(RECORD_BATCH_HEADER_BYTES + records.len());
        batch.extend_from_slice(&header.to_array());
        batch.extend_from_slice(records);
        seal(&mut batch);
        batch
    }
}

/// Makes the header of a finished batch that of a later one with the same records: other timestamps and another sequence, and the CRC that follows
/// from them. The records behind it are not read, so a load generator sends one body again and again and pays for no checksum.
pub fn restamp(
    header: &mut [u8; RECORD_BATCH_HEADER_BYTES],
    base_timestamp: TimestampMs,
    base_sequence: Sequence,
) {
    let before = *header;
    let mut fields = RecordBatchHeader::from_array(header).expect("a finished batch has a header");
    let moved_ms = base_timestamp.0 - fields.base_timestamp.0;
    fields.base_timestamp = base_timestamp;
    fields.max_timestamp = TimestampMs(fields.max_timestamp.0 + moved_ms);
    fields.base_sequence = base_sequence;
    *header = fields.to_array();
    let rest_bytes = fields.size_bytes() - RECORD_BATCH_HEADER_BYTES;
    fields.crc = crc32c_with_new_head(
        fields.crc,
        &before[CRC_COVERS_FROM..],
        &header[CRC_COVERS_FROM..],
        rest_bytes,
    );
    *header = fields.to_array();
}

/// Computes the CRC of a batch whose bytes were changed.
pub fn seal(batch: &mut [u8]) {
    let crc = crc32c(&batch[CRC_COVERS_FROM..]);
    batch[CRC_COVERS_FROM - 4..CRC_COVERS_FROM].copy_from_slice(&crc.to_be_bytes());
}

fn write_nullable(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    match bytes {
        None => varint::write(out, -1),
        Some(bytes) => {
            varint::write(out, bytes.len() as i64);
            out.extend_from_slice(bytes);
        }
    }
}
