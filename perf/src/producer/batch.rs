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

use serde::{Deserialize, Serialize};

use super::record_sums::{HEADER_COUNT_BYTES, RecordSums, Shares};
use super::span::BatchSpan;
use crate::checksum::Shift;
use crate::clock::Clock;
use crate::keys::{KEY_BYTES, Keys};
use crate::payload::PayloadPool;
use crate::record::{
    INTENDED_AT, ProducerNumber, RunId, SEQUENCE_AT, STAMP_BYTES, STAMP_CHECKED_BYTES, Stamp,
};
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProducerIdentity {
    pub id: i64,
    pub epoch: i16,
}

impl ProducerIdentity {
    pub const NONE: Self = Self { id: -1, epoch: -1 };
}

/// The shape of all batches of one producer, with the parts of their checksums that never change.
pub struct BatchTemplate {
    identity: ProducerIdentity,
    /// A full batch, its first record's sequence and all times 0; a shorter one is a prefix.
    bytes: Vec<u8>,
    places: Vec<RecordPlace>,
    /// The shifts by the lengths that records have.
    shifts: Vec<Shift>,
    sums: RecordSums,
    /// None: records have no keys.
    keys: Option<Arc<Keys>>,
    /// From a record's key to its stamp.
    key_to_stamp_bytes: usize,
}

/// What is fixed about one record of a batch.
struct RecordPlace {
    stamp_start: u32,
    end: u32,
    /// Which of the template's shifts is by this record's length.
    shift: u32,
    /// Of the record with sequence and intended time 0 and an empty key.
    shares: Shares,
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
        let mut value_length = Vec::new();
        put_varint(&mut value_length, message_bytes as i64);
        let stamp = Stamp {
            run,
            producer,
            sequence: 0,
            intended_unix_ns: 0,
        };
        let mut bytes = vec![0; BATCH_HEADER_BYTES];
        let mut places = Vec::new();
        let (mut shifts, mut shifts_bytes) = (Vec::new(), Vec::new());
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
            head.extend_from_slice(&value_length);
            let body_bytes = head.len() + message_bytes + HEADER_COUNT_BYTES;
            let mut length = Vec::new();
            put_varint(&mut length, body_bytes as i64);
            let record_bytes = length.len() + body_bytes;
            if index > 0 && bytes.len() + record_bytes > batch_bytes_max {
                break;
            }
            let start = bytes.len();
            bytes.extend_from_slice(&length);
            bytes.extend_from_slice(&head);
            let stamp_start = bytes.len();
            bytes.extend_from_slice(&stamp.encode());
            bytes.extend_from_slice(&[0; STAMP_BYTES - STAMP_CHECKED_BYTES]);
            bytes.extend_from_slice(&fillers[index as usize % fillers.len()]);
            bytes.extend_from_slice(&[0; HEADER_COUNT_BYTES]);
            let shift = shifts_bytes
                .iter()
                .position(|bytes| *bytes == record_bytes)
                .unwrap_or_else(|| {
                    shifts_bytes.push(record_bytes);
                    shifts.push(Shift::new(record_bytes));
                    shifts.len() - 1
                });
            places.push(RecordPlace {
                stamp_start: stamp_start as u32,
                end: bytes.len() as u32,
                shift: shift as u32,
                shares: Shares::of_record(&mut bytes[start..], stamp_start - start),
            });
        }
        Self {
            identity,
            bytes,
            places,
            shifts,
            sums: RecordSums::new(message_bytes - STAMP_BYTES, KEY_BYTES + value_length.len()),
            keys,
            key_to_stamp_bytes: KEY_BYTES + value_length.len(),
        }
    }

    pub fn record_count_max(&self) -> u32 {
        self.places.len() as u32
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
        let size_bytes = self.places[count - 1].end as usize;
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
        let mut shares_of = self.sums.of_batch();
        for (index, place) in self.places[..count].iter().enumerate() {
            let sequence = span.first_sequence + index as u64;
            let intended_unix_ns = clock.unix_ns(span.intended_ns(schedule, index as u32));
            let stamp_start = place.stamp_start as usize;
            let mut shares = place.shares ^ shares_of.of(sequence, intended_unix_ns);
            if let (Some(keys), Some(records)) = (&self.keys, &span.keyed) {
                let key = keys.bytes(records[index].key);
                let key_start = stamp_start - self.key_to_stamp_bytes;
                slot[key_start..key_start + KEY_BYTES].copy_from_slice(&key);
                shares = shares ^ self.sums.of_key(&key);
            }
            let stamp = &mut slot[stamp_start..stamp_start + STAMP_BYTES];
            stamp[SEQUENCE_AT..INTENDED_AT].copy_from_slice(&sequence.to_le_bytes());
            stamp[INTENDED_AT..INTENDED_AT + 8].copy_from_slice(&intended_unix_ns.to_le_bytes());
            stamp[STAMP_CHECKED_BYTES..].copy_from_slice(&shares.own().to_le_bytes());
            crc = self.shifts[place.shift as usize].append(crc, shares.in_batch());
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
    use crate::producer::accumulator::KeyedRecord;

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
