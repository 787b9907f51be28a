//! The checksums of a batch's records from what differs between two batches: each record's sequence, its intended time
//! and its key. No byte of the batch is read.

use crate::checksum::{Shift, share_of};
use crate::keys::KEY_BYTES;
use crate::record::{INTENDED_AT, SEQUENCE_AT, STAMP_BYTES, STAMP_CHECKED_BYTES};

/// A record ends with its count of headers, which is 0.
pub const HEADER_COUNT_BYTES: usize = 1;

/// What something adds to two checksums: to the record's own, and to that of the record's bytes as a part of the
/// batch. Shares of different fields add up by xor, and both at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shares(u64);

impl Shares {
    fn new(own: u32, in_batch: u32) -> Self {
        Self(u64::from(own) << 32 | u64::from(in_batch))
    }

    /// Of a record with sequence and intended time 0: puts its checksum in place and returns that of all of it, too.
    pub fn of_record(record: &mut [u8], stamp_start: usize) -> Self {
        let stamp_end = stamp_start + STAMP_BYTES;
        let checksum_at = stamp_start + STAMP_CHECKED_BYTES;
        let own = crc32c::crc32c_append(
            crc32c::crc32c(&record[stamp_start..checksum_at]),
            &record[stamp_end..record.len() - HEADER_COUNT_BYTES],
        );
        record[checksum_at..stamp_end].copy_from_slice(&own.to_le_bytes());
        Self::new(own, crc32c::crc32c(record))
    }

    /// The record's own checksum.
    pub fn own(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// The checksum of the record's bytes.
    pub fn in_batch(self) -> u32 {
        self.0 as u32
    }
}

impl std::ops::BitXor for Shares {
    type Output = Self;

    fn bitxor(self, other: Self) -> Self {
        Self(self.0 ^ other.0)
    }
}

/// What the changing fields add, in all records whose stamp is as far from the end.
pub struct RecordSums {
    sequence: FieldShares,
    intended: FieldShares,
    /// Over all that stands behind a key.
    behind_key: Shift,
}

impl RecordSums {
    /// `key_to_stamp_bytes`: from the key's first byte.
    pub fn new(filler_bytes: usize, key_to_stamp_bytes: usize) -> Self {
        let filler = FillerShifts {
            own: Shift::new(filler_bytes),
            in_batch: Shift::new(filler_bytes + HEADER_COUNT_BYTES),
        };
        let behind_key_bytes =
            key_to_stamp_bytes - KEY_BYTES + STAMP_BYTES + filler_bytes + HEADER_COUNT_BYTES;
        Self {
            sequence: FieldShares::new(SEQUENCE_AT, &filler),
            intended: FieldShares::new(INTENDED_AT, &filler),
            behind_key: Shift::new(behind_key_bytes),
        }
    }

    /// For the records of one batch.
    pub fn of_batch(&self) -> BatchShares<'_> {
        BatchShares {
            sequence: Nearby::new(&self.sequence),
            intended: Nearby::new(&self.intended),
        }
    }

    pub fn of_key(&self, key: &[u8; KEY_BYTES]) -> Shares {
        Shares::new(0, self.behind_key.of(share_of(key)))
    }
}

/// From the stamp's end to that of what each checksum covers.
struct FillerShifts {
    own: Shift,
    in_batch: Shift,
}

/// Shares of a batch's records, one after the other.
pub struct BatchShares<'a> {
    sequence: Nearby<'a>,
    intended: Nearby<'a>,
}

impl BatchShares<'_> {
    pub fn of(&mut self, sequence: u64, intended_unix_ns: i64) -> Shares {
        self.sequence.of(sequence) ^ self.intended.of(intended_unix_ns as u64)
    }
}

/// Of one field of the stamp, eight bytes little endian.
struct FieldShares {
    /// By the field's bytes.
    of_byte: Box<[[Shares; 256]; 8]>,
}

impl FieldShares {
    fn new(at_byte: usize, filler: &FillerShifts) -> Self {
        let of_value = |at_byte: usize, value: u8| {
            let mut checked = [0; STAMP_CHECKED_BYTES];
            checked[at_byte] = value;
            let own = filler.own.of(share_of(&checked));
            // The record's own checksum changes with it.
            let mut stamp = [0; STAMP_BYTES];
            stamp[at_byte] = value;
            stamp[STAMP_CHECKED_BYTES..].copy_from_slice(&own.to_le_bytes());
            Shares::new(own, filler.in_batch.of(share_of(&stamp)))
        };
        Self {
            of_byte: Box::new(std::array::from_fn(|place| {
                std::array::from_fn(|value| of_value(at_byte + place, value as u8))
            })),
        }
    }

    fn of(&self, value: u64) -> Shares {
        let bytes = value.to_le_bytes();
        (0..8).fold(Shares::default(), |sum, place| {
            sum ^ self.of_byte[place][usize::from(bytes[place])]
        })
    }
}

/// Values near each other have their high bytes in common.
struct Nearby<'a> {
    field: &'a FieldShares,
    high: u64,
    high_shares: Shares,
}

const LOW_BITS: u32 = 24;

impl<'a> Nearby<'a> {
    fn new(field: &'a FieldShares) -> Self {
        Self {
            field,
            high: 0,
            high_shares: Shares::default(),
        }
    }

    fn of(&mut self, value: u64) -> Shares {
        if value >> LOW_BITS != self.high {
            self.high = value >> LOW_BITS;
            self.high_shares = self.field.of(self.high << LOW_BITS);
        }
        let [a, b, c, ..] = value.to_le_bytes().map(usize::from);
        let low = &self.field.of_byte;
        self.high_shares ^ low[0][a] ^ low[1][b] ^ low[2][c]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_have_the_shares_that_their_own_bytes_give() {
        let sums = RecordSums::new(100, KEY_BYTES);
        let field = &sums.sequence;
        let mut nearby = Nearby::new(field);
        let values = [0, 1, 255, 256, 1 << 24, (1 << 24) - 1, u64::MAX, 1 << 40, 7];
        for value in values {
            assert_eq!(nearby.of(value), field.of(value), "{value}");
        }
    }
}
