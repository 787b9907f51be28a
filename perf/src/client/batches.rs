//! A walk over fetched record batches, written from Kafka's format and not from the broker's code: an audit
//! must not share the broker's mistakes.
//!
//! `producer/batch.rs` draws the bytes.

use std::borrow::Cow;

use super::wire::{Cursor, Truncated};
use crate::compression::Compression;

const HEADER_BYTES: usize = 61;

/// What precedes the part that a batch's length counts.
const LENGTH_COUNTS_FROM: usize = 12;

const CRC_COVERS_FROM: usize = 21;

const CONTROL_BIT: i16 = 0x20;

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BatchError {
    #[error("the batch at offset {base_offset} has format {magic}, not 2")]
    Magic { base_offset: i64, magic: i8 },
    #[error("the batch at offset {base_offset} fails its CRC")]
    Crc { base_offset: i64 },
    #[error("the batch at offset {base_offset} cannot be decompressed")]
    Compressed { base_offset: i64 },
    #[error("the records of the batch at offset {base_offset} do not fill it as its header says")]
    Records { base_offset: i64 },
}

/// One whole batch.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    pub base_offset: i64,
    pub last_offset_delta: i32,
    pub record_count: i32,
    attributes: i16,
    magic: i8,
    crc: u32,
    bytes: &'a [u8],
}

impl<'a> Batch<'a> {
    fn read(bytes: &'a [u8]) -> Result<Self, Truncated> {
        let mut header = Cursor::new(bytes);
        let base_offset = header.i64()?;
        header.take(8)?; // length, leader epoch
        let (magic, crc, attributes, last_offset_delta) =
            (header.i8()?, header.u32()?, header.i16()?, header.i32()?);
        header.take(30)?; // timestamps, producer
        Ok(Self {
            base_offset,
            last_offset_delta,
            record_count: header.i32()?,
            attributes,
            magic,
            crc,
            bytes,
        })
    }

    /// Where the next batch begins.
    pub fn next_offset(&self) -> i64 {
        self.base_offset + i64::from(self.last_offset_delta) + 1
    }

    pub fn size_bytes(&self) -> usize {
        self.bytes.len()
    }

    pub fn is_control(&self) -> bool {
        self.attributes & CONTROL_BIT != 0
    }

    /// Format and CRC.
    pub fn check(&self) -> Result<(), BatchError> {
        match self {
            Self {
                magic, base_offset, ..
            } if *magic != 2 => Err(BatchError::Magic {
                base_offset: *base_offset,
                magic: *magic,
            }),
            _ if crc32c::crc32c(&self.bytes[CRC_COVERS_FROM..]) != self.crc => {
                Err(BatchError::Crc {
                    base_offset: self.base_offset,
                })
            }
            _ => Ok(()),
        }
    }

    /// Hands out offset and value of each record.
    pub fn records(&self, mut each: impl FnMut(i64, &[u8])) -> Result<(), BatchError> {
        let base_offset = self.base_offset;
        let bytes = &self.bytes[HEADER_BYTES..];
        let plain = match Compression::of_attributes(self.attributes) {
            Some(Compression::None) => Cow::Borrowed(bytes),
            Some(codec) => codec
                .decompress(bytes)
                .map(Cow::Owned)
                .map_err(|_| BatchError::Compressed { base_offset })?,
            None => return Err(BatchError::Compressed { base_offset }),
        };
        let mut cursor = Cursor::new(&plain);
        let mut read_all = || {
            for _ in 0..self.record_count {
                let (offset_delta, value) = record(&mut cursor)?;
                each(base_offset + offset_delta, value);
            }
            Ok(cursor.is_at_end())
        };
        match read_all() {
            Ok(true) => Ok(()),
            Ok(false) | Err(Truncated) => Err(BatchError::Records { base_offset }),
        }
    }
}

/// Offset delta and value of one record.
fn record<'a>(cursor: &mut Cursor<'a>) -> Result<(i64, &'a [u8]), Truncated> {
    let length = cursor.varint()?;
    let mut record = Cursor::new(cursor.take(usize::try_from(length).map_err(|_| Truncated)?)?);
    record.i8()?; // attributes
    record.varint()?; // timestamp delta
    let offset_delta = record.varint()?;
    let key_bytes = record.varint()?;
    record.take(key_bytes.max(0) as usize)?;
    let value_bytes = record.varint()?;
    Ok((offset_delta, record.take(value_bytes.max(0) as usize)?))
}

/// The whole batches at the start of fetched bytes; a last one that is cut off is left out.
pub fn whole_batches(records: &[u8]) -> impl Iterator<Item = Batch<'_>> {
    let mut rest = records;
    std::iter::from_fn(move || {
        let length = i32::from_be_bytes(rest.get(8..12)?.try_into().expect("a slice of four"));
        let batch_bytes = LENGTH_COUNTS_FROM + usize::try_from(length).ok()?;
        let (batch, behind) = rest.split_at_checked(batch_bytes)?;
        rest = behind;
        Batch::read(batch).ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::payload::PayloadPool;
    use crate::producer::batch::{BatchTemplate, ProducerIdentity};
    use crate::producer::span::BatchSpan;
    use crate::record::{ProducerNumber, RunId, Stamp};
    use crate::schedule::Schedule;

    fn two_batches() -> Vec<u8> {
        let template = BatchTemplate::new(
            RunId(1),
            ProducerNumber(0),
            ProducerIdentity::NONE,
            50,
            10_000,
            None,
            &PayloadPool::Random {
                random_bytes_ratio: 0.5,
                pool_size: 3,
            },
        );
        let mut bytes = Vec::new();
        for (base_offset, count) in [(0i64, 70u32), (70, 3)] {
            let mut slot = template.slot();
            let span = BatchSpan {
                partition: 0,
                first_sequence: base_offset as u64,
                record_count: count,
                first_record: 0,
                built_ns: 0,
                keyed: None,
            };
            let size = template.encode(
                &mut slot,
                &span,
                &Schedule::Closed { end_ns: 0 },
                &Clock::start(),
            );
            slot[..8].copy_from_slice(&base_offset.to_be_bytes());
            bytes.extend_from_slice(&slot[..size]);
        }
        bytes
    }

    #[test]
    fn every_record_is_found_at_its_offset() {
        let bytes = two_batches();
        let mut offset_expected = 0;
        for batch in whole_batches(&bytes) {
            batch.check().unwrap();
            batch
                .records(|offset, value| {
                    assert_eq!(offset, offset_expected);
                    assert_eq!(
                        Stamp::decode_checked(value).unwrap().sequence,
                        offset as u64
                    );
                    offset_expected += 1;
                })
                .unwrap();
        }
        assert_eq!(offset_expected, 73);
    }

    #[test]
    fn a_batch_that_is_cut_off_is_left_for_the_next_fetch() {
        let bytes = two_batches();
        assert_eq!(whole_batches(&bytes[..bytes.len() - 1]).count(), 1);
        assert_eq!(whole_batches(&bytes[..40]).count(), 0);
    }

    #[test]
    fn a_flipped_bit_fails_the_batchs_crc() {
        let mut bytes = two_batches();
        bytes[1000] ^= 4;
        let first = whole_batches(&bytes).next().unwrap();
        assert_eq!(first.check(), Err(BatchError::Crc { base_offset: 0 }));
    }

    #[test]
    fn a_record_count_that_does_not_fit_the_records_is_an_error() {
        for count in [69, 71] {
            let mut bytes = two_batches();
            bytes[60] = count;
            let first = whole_batches(&bytes).next().unwrap();
            assert_eq!(
                first.records(|_, _| ()),
                Err(BatchError::Records { base_offset: 0 })
            );
        }
    }
}
