//! A record batch that is encoded once and then only patched: the payload stays where it lies, each send changes
//! the header and the stamp of every record.
//!
//! ```text
//! 0            8        12      16  17    21         23            27          35          43          51       53       57      61
//! | baseOffset | length | epoch | 2 | crc | attrs    | lastOffset- | base-      | max-      | producer  | producer| base   | record- | records
//! |            |        |       |   |     |          | Delta       | Timestamp  | Timestamp | Id        | Epoch   | Seq.   | Count   |
//! ```
//! A record: `length | attributes 0 | timestamp delta 0 | offset delta | key length | key | value length | stamp | filler | 0 headers`,
//! with the key length -1 and no key where records have none.

use std::sync::Arc;

use super::accumulator::KeyedRecord;
use crate::checksum::FixedTails;
use crate::clock::Clock;
use crate::keys::{KEY_BYTES, Keys};
use crate::payload::PayloadPool;
use crate::record::{ProducerNumber, RunId, STAMP_BYTES, STAMP_CHECKED_BYTES, Stamp};
use crate::schedule::Schedule;

/// The bytes of a batch before its first record.
pub const BATCH_HEADER_BYTES: usize = 61;

/// Where the batch's length stands, and what precedes the part that it counts.
pub const LENGTH_AT: usize = 8;
pub const LENGTH_COUNTS_FROM: usize = 12;

pub const CRC_AT: usize = 17;

/// Where the part that the batch's CRC covers begins.
pub const CRC_COVERS_FROM: usize = 21;

pub const ATTRIBUTES_AT: usize = 21;

/// Who sends, as the broker knows it: both -1 without idempotence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProducerIdentity {
    pub id: i64,
    pub epoch: i16,
}

impl ProducerIdentity {
    pub const NONE: Self = Self { id: -1, epoch: -1 };
}

/// The records of one batch, from which its bytes can be made at any time: also again, for a resend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchSpan {
    /// The partition's place in the run's list of partitions.
    pub partition: usize,
    /// Of the first record, within producer and partition.
    pub first_sequence: u64,
    pub record_count: u32,
    /// Of the first record, within the producer's schedule.
    pub first_record: u64,
    pub built_ns: u64,
    /// The records, where their keys brought them together; else they follow each other in the schedule.
    pub keyed: Option<Box<[KeyedRecord]>>,
}

impl BatchSpan {
    /// When its record `index` was meant to be sent.
    pub fn intended_ns(&self, schedule: &Schedule, index: u32) -> u64 {
        let record = match &self.keyed {
            Some(records) => records[index as usize].record,
            None => self.first_record + u64::from(index),
        };
        schedule.intended_ns(record, self.built_ns)
    }
}

/// The shape of all batches of one producer, with the parts of their checksums that never change.
pub struct BatchTemplate {
    run: RunId,
    producer: ProducerNumber,
    identity: ProducerIdentity,
    /// A full batch; a shorter one is a prefix.
    bytes: Vec<u8>,
    /// Where each record begins, and where the last one ends.
    record_starts: Vec<usize>,
    /// Where each record's stamp begins.
    stamp_starts: Vec<usize>,
    /// None: records have no keys.
    keys: Option<Arc<Keys>>,
    /// From a record's key to its stamp.
    key_to_stamp_bytes: usize,
    fillers: FixedTails,
    fillers_and_end: FixedTails,
    /// The filler at each record's place.
    filler_at: Vec<usize>,
}

impl BatchTemplate {
    /// Batches of at most `batch_bytes_max` with at least one record. `message_bytes` is at least `STAMP_BYTES`.
    pub fn new(
        run: RunId,
        producer: ProducerNumber,
        identity: ProducerIdentity,
        message_bytes: usize,
        batch_bytes_max: usize,
        keys: Option<Arc<Keys>>,
        payloads: &PayloadPool,
    ) -> Self {
        assert!(
            message_bytes >= STAMP_BYTES,
            "a message of {message_bytes} bytes cannot carry its stamp"
        );
        let seed = u64::from(run.0) << 32 | u64::from(producer.0);
        let count_max = (batch_bytes_max / message_bytes).max(1);
        let fillers = payloads.fillers(message_bytes, count_max, seed);
        let mut bytes = vec![0; BATCH_HEADER_BYTES];
        let (mut record_starts, mut stamp_starts) = (vec![bytes.len()], Vec::new());
        for index in 0.. {
            let mut head = vec![0, 0];
            put_varint(&mut head, index);
            match &keys {
                Some(_) => {
                    put_varint(&mut head, KEY_BYTES as i64);
                    head.extend([0; KEY_BYTES]);
                }
                None => put_varint(&mut head, -1),
            }
            put_varint(&mut head, message_bytes as i64);
            let body_bytes = head.len() + message_bytes + 1;
            let mut length = Vec::new();
            put_varint(&mut length, body_bytes as i64);
            if index > 0 && bytes.len() + length.len() + body_bytes > batch_bytes_max {
                break;
            }
            bytes.extend_from_slice(&length);
            bytes.extend_from_slice(&head);
            stamp_starts.push(bytes.len());
            bytes.extend_from_slice(&[0; STAMP_BYTES]);
            bytes.extend_from_slice(&fillers[index as usize % fillers.len()]);
            bytes.push(0);
            record_starts.push(bytes.len());
        }
        let filler_at = (0..stamp_starts.len())
            .map(|index| index % fillers.len())
            .collect();
        let fillers_and_end: Vec<_> = fillers
            .iter()
            .map(|filler| [&filler[..], &[0]].concat())
            .collect();
        let mut value_length = Vec::new();
        put_varint(&mut value_length, message_bytes as i64);
        Self {
            run,
            producer,
            identity,
            bytes,
            record_starts,
            stamp_starts,
            keys,
            key_to_stamp_bytes: KEY_BYTES + value_length.len(),
            fillers: FixedTails::new(&fillers),
            fillers_and_end: FixedTails::new(&fillers_and_end),
            filler_at,
        }
    }

    pub fn record_count_max(&self) -> u32 {
        self.stamp_starts.len() as u32
    }

    pub fn batch_bytes_max(&self) -> usize {
        self.bytes.len()
    }

    /// A buffer whose payload is in place; `encode` patches it as often as wanted.
    pub fn slot(&self) -> Vec<u8> {
        self.bytes.clone()
    }

    /// Turns a slot into the batch of `span` and returns the batch's size.
    pub fn encode(
        &self,
        slot: &mut [u8],
        span: &BatchSpan,
        schedule: &Schedule,
        clock: &Clock,
    ) -> usize {
        let count = span.record_count as usize;
        let size_bytes = self.record_starts[count];
        let built_ms = clock.unix_ns(span.intended_ns(schedule, 0)) / 1_000_000;
        let base_sequence = match self.identity {
            ProducerIdentity::NONE => -1,
            _ => (span.first_sequence & i32::MAX as u64) as i32,
        };
        slot[0..8].fill(0);
        slot[8..12].copy_from_slice(&(size_bytes as i32 - 12).to_be_bytes());
        slot[12..16].copy_from_slice(&(-1i32).to_be_bytes());
        slot[16] = 2;
        slot[21..23].fill(0);
        slot[23..27].copy_from_slice(&(count as i32 - 1).to_be_bytes());
        slot[27..35].copy_from_slice(&built_ms.to_be_bytes());
        slot[35..43].copy_from_slice(&built_ms.to_be_bytes());
        slot[43..51].copy_from_slice(&self.identity.id.to_be_bytes());
        slot[51..53].copy_from_slice(&self.identity.epoch.to_be_bytes());
        slot[53..57].copy_from_slice(&base_sequence.to_be_bytes());
        slot[57..61].copy_from_slice(&(count as i32).to_be_bytes());

        let mut crc = crc32c::crc32c(&slot[CRC_COVERS_FROM..BATCH_HEADER_BYTES]);
        for index in 0..count {
            let stamp = Stamp {
                run: self.run,
                producer: self.producer,
                sequence: span.first_sequence + index as u64,
                intended_unix_ns: clock.unix_ns(span.intended_ns(schedule, index as u32)),
            };
            let filler = self.filler_at[index];
            let checked = stamp.encode();
            let record_crc = self.fillers.append(crc32c::crc32c(&checked), filler);
            let (start, stamp_start) = (self.record_starts[index], self.stamp_starts[index]);
            let stamp_end = stamp_start + STAMP_BYTES;
            if let (Some(keys), Some(records)) = (&self.keys, &span.keyed) {
                let key_start = stamp_start - self.key_to_stamp_bytes;
                slot[key_start..key_start + KEY_BYTES]
                    .copy_from_slice(&keys.bytes(records[index].key));
            }
            slot[stamp_start..stamp_start + STAMP_CHECKED_BYTES].copy_from_slice(&checked);
            slot[stamp_start + STAMP_CHECKED_BYTES..stamp_end]
                .copy_from_slice(&record_crc.to_le_bytes());
            crc = self
                .fillers_and_end
                .append(crc32c::crc32c_append(crc, &slot[start..stamp_end]), filler);
        }
        slot[17..21].copy_from_slice(&crc.to_be_bytes());
        size_bytes
    }
}

/// Kafka's zigzag varint.
fn put_varint(out: &mut Vec<u8>, value: i64) {
    let mut rest = (value << 1 ^ value >> 63) as u64;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use kafka_protocol::records::RecordBatchDecoder;

    use super::*;
    use crate::keys::KeyDistributor;

    const POOL: PayloadPool = PayloadPool::Random {
        random_bytes_ratio: 0.5,
        pool_size: 7,
    };
    const IDENTITY: ProducerIdentity = ProducerIdentity { id: 4711, epoch: 2 };

    fn span(first_sequence: u64, record_count: u32) -> BatchSpan {
        BatchSpan {
            partition: 0,
            first_sequence,
            record_count,
            first_record: 10,
            built_ns: 5_000_000,
            keyed: None,
        }
    }

    #[test]
    fn another_decoder_accepts_every_length_of_batch_and_finds_the_stamps() {
        let template = BatchTemplate::new(
            RunId(1),
            ProducerNumber(2),
            IDENTITY,
            100,
            1_000_000,
            None,
            &POOL,
        );
        let schedule = Schedule::Paced {
            start_ns: 0,
            end_ns: u64::MAX,
            records_per_second: 1000.0,
        };
        let clock = Clock::start();
        let mut slot = template.slot();
        assert!(
            template.record_count_max() > 8192,
            "offset deltas of one, two and three bytes occur"
        );
        for (first_sequence, count) in [
            (0, template.record_count_max()),
            (3, 1),
            (i32::MAX as u64 + 6, 65),
        ] {
            let size = template.encode(&mut slot, &span(first_sequence, count), &schedule, &clock);
            let set = RecordBatchDecoder::decode(&mut Bytes::copy_from_slice(&slot[..size]))
                .expect("CRC and layout are right");
            assert_eq!(set.records.len(), count as usize);
            for (index, record) in set.records.iter().enumerate() {
                let stamp = Stamp::decode_checked(record.value.as_ref().unwrap()).unwrap();
                assert_eq!(stamp.sequence, first_sequence + index as u64);
                assert_eq!(
                    clock.at_ns(stamp.intended_unix_ns),
                    (10 + index as u64) * 1_000_000
                );
                assert_eq!((stamp.run, stamp.producer), (RunId(1), ProducerNumber(2)));
                assert_eq!(record.value.as_ref().unwrap().len(), 100);
                assert_eq!((record.producer_id, record.producer_epoch), (4711, 2));
            }
        }
    }

    #[test]
    fn a_keyed_batch_carries_each_records_key_and_its_intended_time() {
        let keys = Arc::new(Keys::new(KeyDistributor::Uniform, 100, 1.0).unwrap());
        let (run, producer) = (RunId(1), ProducerNumber(2));
        let template = BatchTemplate::new(
            run,
            producer,
            IDENTITY,
            300,
            100_000,
            Some(Arc::clone(&keys)),
            &POOL,
        );
        let schedule = Schedule::Paced {
            start_ns: 0,
            end_ns: u64::MAX,
            records_per_second: 1000.0,
        };
        let clock = Clock::start();
        let records: Vec<_> = (0..90)
            .map(|n| KeyedRecord {
                record: n * 3,
                key: 99 - n as u32,
            })
            .collect();
        let mut span = span(7, 90);
        span.keyed = Some(records.clone().into_boxed_slice());
        let mut slot = template.slot();
        let size = template.encode(&mut slot, &span, &schedule, &clock);
        let set = RecordBatchDecoder::decode(&mut Bytes::copy_from_slice(&slot[..size]))
            .expect("CRC and layout are right");
        for (record, keyed) in set.records.iter().zip(&records) {
            assert_eq!(record.key.as_deref(), Some(&keys.bytes(keyed.key)[..]));
            let stamp = Stamp::decode_checked(record.value.as_ref().unwrap()).unwrap();
            assert_eq!(
                clock.at_ns(stamp.intended_unix_ns),
                keyed.record * 1_000_000
            );
        }
    }

    #[test]
    fn the_base_sequence_wraps_at_two_to_the_31() {
        let template = BatchTemplate::new(
            RunId(1),
            ProducerNumber(2),
            IDENTITY,
            64,
            1_000,
            None,
            &POOL,
        );
        let mut slot = template.slot();
        template.encode(
            &mut slot,
            &span(1 << 31, 2),
            &Schedule::Closed { end_ns: 0 },
            &Clock::start(),
        );
        assert_eq!(slot[53..57], 0i32.to_be_bytes());
    }

    #[test]
    fn a_batch_stays_within_its_bytes_but_holds_at_least_one_record() {
        let template = |batch_bytes| {
            BatchTemplate::new(
                RunId(0),
                ProducerNumber(0),
                ProducerIdentity::NONE,
                1024,
                batch_bytes,
                None,
                &POOL,
            )
        };
        assert!(template(16_384).batch_bytes_max() <= 16_384);
        assert_eq!(template(16_384).record_count_max(), 15);
        assert_eq!(template(10).record_count_max(), 1);
    }
}
