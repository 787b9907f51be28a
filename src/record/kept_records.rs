//! A batch made anew with some of its records: what compaction keeps of it.

use std::io;

use crate::model::TimestampMs;
use crate::model::limits::RECORD_BATCH_HEADER_BYTES;

use super::compression::{Codec, Compressor};
use super::encode::seal;
use super::header::{LOG_OVERHEAD_BYTES, RecordBatchHeader, TimestampType};
use super::records::RecordBody;
use super::varint;

/// Collects the records of one batch that stay, in order. The batch keeps its base offset and last offset, so that its offsets have
/// gaps and its producer's last sequence is still known (KIP-98); its codec; and everything else of its header but what follows from
/// the records.
///
/// With a delete horizon the batch's base timestamp is the time from which its tombstones may go (KIP-534). The records' timestamps
/// stay what they were: they are counted from there.
#[derive(Debug)]
pub struct KeptRecords {
    header: RecordBatchHeader,
    /// A horizon that is set now; the records' timestamps have to be counted anew.
    new_horizon: Option<TimestampMs>,
    max_timestamp: TimestampMs,
    record_count: i32,
    /// The records as in a batch that is not compressed.
    records: Vec<u8>,
}

impl KeptRecords {
    pub fn of(header: RecordBatchHeader) -> Self {
        Self {
            header,
            new_horizon: None,
            max_timestamp: TimestampMs::NONE,
            record_count: 0,
            records: Vec::new(),
        }
    }

    /// The same, with a delete horizon that the batch did not have. To be said before any record is pushed.
    pub fn with_delete_horizon(mut self, horizon: TimestampMs) -> Self {
        assert!(self.record_count == 0 && self.header.delete_horizon().is_none());
        self.new_horizon = Some(horizon);
        self
    }

    /// Keeps a record; `encoded` is what `body` was read from.
    pub fn push(&mut self, body: &RecordBody<'_>, encoded: &[u8]) {
        let timestamp = self
            .header
            .base_timestamp
            .0
            .wrapping_add(body.timestamp_delta);
        self.max_timestamp = self.max_timestamp.max(TimestampMs(timestamp));
        self.record_count += 1;
        let Some(horizon) = self.new_horizon else {
            varint::write(&mut self.records, encoded.len() as i64);
            self.records.extend_from_slice(encoded);
            return;
        };
        let timestamp = match self.header.attributes.timestamp_type() {
            TimestampType::CreateTime => timestamp,
            TimestampType::LogAppendTime => self.header.max_timestamp.0,
        };
        // attributes 1 | timestamp delta | everything else, which stays
        let attributes = encoded[0];
        let mut rest = &encoded[1..];
        varint::read_i64(&mut rest).expect("the record was read from these bytes");
        let delta = timestamp.wrapping_sub(horizon.0);
        let length = 1 + varint::size_bytes(delta) + rest.len();
        varint::write(&mut self.records, length as i64);
        self.records.push(attributes);
        varint::write(&mut self.records, delta);
        self.records.extend_from_slice(rest);
    }

    pub fn record_count(&self) -> i32 {
        self.record_count
    }

    /// The batch with the records that were pushed; none of them: only its header, so that its offsets and sequences stay known.
    pub fn build(self) -> io::Result<Vec<u8>> {
        let mut building = self.building()?;
        while !building.step(usize::MAX)? {}
        building.finish()
    }

    /// The same in steps, since compressing takes long.
    pub fn building(self) -> io::Result<BuildingBatch> {
        let mut header = self.header;
        header.record_count = self.record_count;
        let mut codec = Codec::None;
        if self.record_count == 0 {
            header.attributes = header
                .attributes
                .with_codec(Codec::None)
                .without_delete_horizon();
            header.base_timestamp = TimestampMs::NONE;
        } else {
            codec = header
                .attributes
                .codec()
                .expect("records were read with this codec");
            if let Some(horizon) = self.new_horizon {
                header.attributes = header.attributes.with_delete_horizon();
                header.base_timestamp = horizon;
            }
            if header.attributes.timestamp_type() == TimestampType::CreateTime {
                header.max_timestamp = self.max_timestamp;
            }
        }
        Ok(BuildingBatch {
            header,
            records: self.records,
            done_bytes: 0,
            compressor: Compressor::new(codec)?,
        })
    }
}

/// A batch whose records are all there and are being compressed.
pub struct BuildingBatch {
    header: RecordBatchHeader,
    records: Vec<u8>,
    done_bytes: usize,
    compressor: Compressor,
}

impl BuildingBatch {
    /// Compresses the next `bytes`; true once all are.
    pub fn step(&mut self, bytes: usize) -> io::Result<bool> {
        let rest = &self.records[self.done_bytes..];
        let piece = &rest[..rest.len().min(bytes)];
        self.compressor.write(piece)?;
        self.done_bytes += piece.len();
        Ok(self.done_bytes == self.records.len())
    }

    pub fn finish(self) -> io::Result<Vec<u8>> {
        assert_eq!(self.done_bytes, self.records.len(), "every record is in it");
        let mut header = self.header;
        let records = self.compressor.finish()?;
        let size_bytes = RECORD_BATCH_HEADER_BYTES + records.len();
        header.batch_length = i32::try_from(size_bytes - LOG_OVERHEAD_BYTES)
            .map_err(|_| io::Error::other("the batch would be larger than 2 GiB"))?;
        let mut batch = Vec::with_capacity(size_bytes);
        batch.extend_from_slice(&header.to_array());
        batch.extend_from_slice(&records);
        seal(&mut batch);
        Ok(batch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Offset, ProducerEpoch, ProducerId, Sequence};
    use crate::record::InflateBounds;
    use crate::record::encode::BatchBuilder;
    use crate::record::records::RecordReader;

    type Row = (i64, i64, Option<Vec<u8>>, Option<Vec<u8>>, usize);

    fn rows(batch: &[u8]) -> Vec<Row> {
        let mut reader = RecordReader::new(batch, InflateBounds::WIDEST).unwrap();
        assert!(reader.header().crc_fits(batch));
        let mut rows = Vec::new();
        while let Some(record) = reader.next_record().unwrap() {
            rows.push((
                record.offset.0,
                record.timestamp.0,
                record.key.map(<[u8]>::to_vec),
                record.value.map(<[u8]>::to_vec),
                record.headers.len(),
            ));
        }
        rows
    }

    fn batch(codec: Codec, timestamp_type: TimestampType) -> Vec<u8> {
        let mut builder = BatchBuilder::new().base_offset(Offset(100)).producer(
            ProducerId(7),
            ProducerEpoch(1),
            Sequence(40),
        );
        builder = builder.attributes(
            crate::record::Attributes(0)
                .with_codec(codec)
                .with_timestamp_type(timestamp_type),
        );
        for n in 0..6i64 {
            let value = (n != 3).then(|| format!("value {n}").repeat(50));
            builder.push(
                TimestampMs(1_000 + (n * 37) % 100),
                Some(format!("key {n}").as_bytes()),
                value.as_deref().map(str::as_bytes),
                &[("h", Some(b"x"))],
            );
        }
        builder.build()
    }

    fn keep(batch: &[u8], horizon: Option<i64>, keeps: impl Fn(i32) -> bool) -> Vec<u8> {
        let mut reader = RecordReader::new(batch, InflateBounds::WIDEST).unwrap();
        let mut kept = KeptRecords::of(*reader.header());
        if let Some(horizon) = horizon {
            kept = kept.with_delete_horizon(TimestampMs(horizon));
        }
        while let Some((body, encoded)) = reader.next_encoded().unwrap() {
            if keeps(body.offset_delta) {
                kept.push(&body, encoded);
            }
        }
        kept.build().unwrap()
    }

    #[test]
    fn kept_records_have_their_offsets_times_and_bytes_in_every_codec() {
        for codec in Codec::ALL {
            for timestamp_type in [TimestampType::CreateTime, TimestampType::LogAppendTime] {
                for horizon in [None, Some(5_000), Some(0)] {
                    let before = batch(codec, timestamp_type);
                    let after = keep(&before, horizon, |delta| delta % 2 == 1);
                    let mut expected = rows(&before);
                    expected.retain(|row| row.0 % 2 == 1);
                    assert_eq!(
                        rows(&after),
                        expected,
                        "{codec:?} {timestamp_type:?} {horizon:?}"
                    );
                    let header = RecordBatchHeader::parse(&after).unwrap();
                    assert_eq!(header.attributes.codec(), Ok(codec));
                    assert_eq!(header.delete_horizon(), horizon.map(TimestampMs));
                    let newest = expected.iter().map(|row| row.1).max();
                    assert_eq!(Some(header.max_timestamp.0), newest);
                }
            }
        }
    }

    #[test]
    fn a_batch_keeps_its_offsets_and_sequences_whatever_is_taken_out() {
        let before = batch(Codec::Zstd, TimestampType::CreateTime);
        let old = RecordBatchHeader::parse(&before).unwrap();
        for kept_count in [0, 1] {
            let after = keep(&before, None, |delta| delta < kept_count);
            let header = RecordBatchHeader::parse(&after).unwrap();
            assert_eq!(header.record_count, kept_count);
            assert!(header.counts_fit());
            assert_eq!(
                (
                    header.base_offset,
                    header.last_offset(),
                    header.base_sequence
                ),
                (old.base_offset, old.last_offset(), old.base_sequence)
            );
            assert_eq!(
                (header.producer_id, header.producer_epoch),
                (old.producer_id, old.producer_epoch)
            );
        }
        let empty = keep(&before, None, |_| false);
        assert_eq!(empty.len(), RECORD_BATCH_HEADER_BYTES);
        assert_eq!(rows(&empty), []);
    }

    #[test]
    fn a_horizon_that_is_set_stays_when_more_records_go() {
        let before = batch(Codec::Lz4, TimestampType::CreateTime);
        let first = keep(&before, Some(9_000), |delta| delta > 0);
        let second = keep(&first, None, |delta| delta > 2);
        let header = RecordBatchHeader::parse(&second).unwrap();
        assert_eq!(header.delete_horizon(), Some(TimestampMs(9_000)));
        assert_eq!(rows(&second), rows(&before)[3..]);
    }
}
