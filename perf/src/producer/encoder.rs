//! Makes a batch's bytes in a request's slot: patched in place, or patched aside and compressed into it.

use super::batch::{
    ATTRIBUTES_AT, BATCH_HEADER_BYTES, BatchTemplate, CRC_AT, CRC_COVERS_FROM, LENGTH_AT,
    LENGTH_COUNTS_FROM,
};
use super::span::BatchSpan;
use crate::clock::Clock;
use crate::compression::Compression;
use crate::compressor::Compressor;
use crate::schedule::Schedule;

pub struct BatchEncoder {
    template: BatchTemplate,
    compressor: Compressor,
    /// The batch as it is before compression; empty without.
    plain: Vec<u8>,
}

impl BatchEncoder {
    pub fn new(template: BatchTemplate, compression: Compression) -> Self {
        let plain = match compression {
            Compression::None => Vec::new(),
            _ => template.slot(),
        };
        Self {
            template,
            compressor: Compressor::new(compression),
            plain,
        }
    }

    pub fn record_count_max(&self) -> u32 {
        self.template.record_count_max()
    }

    /// Before compression.
    pub fn batch_bytes_max(&self) -> usize {
        self.template.batch_bytes_max()
    }

    /// A buffer for `encode`. Without compression the payload is in place.
    pub fn slot(&self) -> Vec<u8> {
        match self.compressor.codec() {
            Compression::None => self.template.slot(),
            _ => Vec::new(),
        }
    }

    /// Makes the slot's first bytes the batch of `span` and returns how many they are.
    pub fn encode(
        &mut self,
        slot: &mut Vec<u8>,
        span: &BatchSpan,
        schedule: &Schedule,
        clock: &Clock,
    ) -> usize {
        if self.compressor.codec() == Compression::None {
            return self.template.encode(slot, span, schedule, clock);
        }
        let plain_bytes = self.template.encode(&mut self.plain, span, schedule, clock);
        let (header, records) = self.plain[..plain_bytes].split_at(BATCH_HEADER_BYTES);
        slot.clear();
        slot.extend_from_slice(header);
        self.compressor
            .compress(records, slot)
            .expect("compressing into memory does not fail");
        let length = (slot.len() - LENGTH_COUNTS_FROM) as i32;
        slot[LENGTH_AT..LENGTH_AT + 4].copy_from_slice(&length.to_be_bytes());
        slot[ATTRIBUTES_AT..ATTRIBUTES_AT + 2]
            .copy_from_slice(&self.compressor.codec().in_attributes().to_be_bytes());
        let crc = crc32c::crc32c(&slot[CRC_COVERS_FROM..]);
        slot[CRC_AT..CRC_AT + 4].copy_from_slice(&crc.to_be_bytes());
        slot.len()
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use kafka_protocol::records::RecordBatchDecoder;

    use super::*;
    use crate::client::batches::whole_batches;
    use crate::payload::PayloadPool;
    use crate::producer::batch::ProducerIdentity;
    use crate::record::{ProducerNumber, RunId, Stamp};

    #[test]
    fn another_decoder_and_the_audits_own_read_every_compressed_batch_and_it_is_smaller() {
        for name in ["gzip", "snappy", "lz4", "zstd"] {
            let pool = PayloadPool::Random {
                random_bytes_ratio: 0.5,
                pool_size: 100,
            };
            let (run, producer) = (RunId(1), ProducerNumber(2));
            let none = ProducerIdentity::NONE;
            let template = BatchTemplate::new(run, producer, none, 1024, 100_000, None, &pool);
            let mut encoder = BatchEncoder::new(template, Compression::named(name).unwrap());
            let mut slot = encoder.slot();
            for record_count in [encoder.record_count_max(), 3] {
                let span = BatchSpan {
                    partition: 0,
                    first_sequence: 5,
                    record_count,
                    first_record: 0,
                    built_ns: 0,
                    keyed: None,
                };
                let schedule = Schedule::Closed { end_ns: 0 };
                let size = encoder.encode(&mut slot, &span, &schedule, &Clock::start());
                assert!(
                    size * 10 < record_count as usize * 1024 * 8,
                    "{name}: {size}"
                );
                let mut bytes = Bytes::copy_from_slice(&slot[..size]);
                let set = RecordBatchDecoder::decode(&mut bytes).expect("CRC and layout are right");
                assert_eq!(set.records.len(), record_count as usize);
                let batch = whole_batches(&slot[..size]).next().unwrap();
                batch.check().unwrap();
                let mut next_sequence = 5;
                batch
                    .records(|_, value| {
                        let stamp = Stamp::decode_checked(value).unwrap();
                        assert_eq!(stamp.sequence, next_sequence);
                        next_sequence += 1;
                    })
                    .unwrap();
                assert_eq!(next_sequence, 5 + u64::from(record_count));
            }
        }
    }
}
