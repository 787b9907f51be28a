//! What every record carries so that the audit can tell who sent it, in which order, when, and whether it came
//! back whole.
//!
//! A record's value, little endian:
//! ```text
//! 0        4        8                16               24       28       32
//! | magic  | run    | stream         | intended time  | producer        | filler ...
//! |        |        | sequence       | unix ns        |        | crc32c | half random, half zero
//! ```
//! The checksum is over the first 28 bytes and the filler.

use serde::{Deserialize, Serialize};

/// "CLP1" as bytes.
const MAGIC: u32 = u32::from_le_bytes(*b"CLP1");

/// The smallest value that can carry all of it, and so the smallest message size.
pub const STAMP_BYTES: usize = 32;

/// The part of the stamp that the checksum covers.
pub const STAMP_CHECKED_BYTES: usize = STAMP_BYTES - 4;

/// Where a stamp differs from those beside it: eight bytes each, little endian, one behind the other.
pub const SEQUENCE_AT: usize = 8;
pub const INTENDED_AT: usize = 16;

/// One invocation of the tool: tells its records from those of an earlier one in the same topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RunId(pub u32);

/// A producer thread within a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ProducerNumber(pub u32);

/// What one record says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    pub run: RunId,
    pub producer: ProducerNumber,
    /// 0, 1, 2 ... within one producer and partition.
    pub sequence: u64,
    pub intended_unix_ns: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StampError {
    #[error("not a record of corelog-perf")]
    Foreign,
    #[error("the record's own checksum does not match its bytes")]
    Checksum,
}

impl Stamp {
    /// All but the checksum, which depends on the filler behind it.
    pub fn encode(&self) -> [u8; STAMP_CHECKED_BYTES] {
        let mut bytes = [0; STAMP_CHECKED_BYTES];
        bytes[0..4].copy_from_slice(&MAGIC.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.run.0.to_le_bytes());
        bytes[SEQUENCE_AT..INTENDED_AT].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[INTENDED_AT..24].copy_from_slice(&self.intended_unix_ns.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.producer.0.to_le_bytes());
        bytes
    }

    /// Reads the stamp without the pass over the filler that `decode_checked` makes.
    pub fn decode(value: &[u8]) -> Result<Self, StampError> {
        let (stamp, _) = value
            .split_first_chunk::<STAMP_BYTES>()
            .ok_or(StampError::Foreign)?;
        if word(stamp, 0) != MAGIC {
            return Err(StampError::Foreign);
        }
        Ok(Self {
            run: RunId(word(stamp, 4)),
            sequence: u64::from(word(stamp, 8)) | u64::from(word(stamp, 12)) << 32,
            intended_unix_ns: (u64::from(word(stamp, 16)) | u64::from(word(stamp, 20)) << 32)
                as i64,
            producer: ProducerNumber(word(stamp, 24)),
        })
    }

    /// Reads the stamp and proves the whole value.
    pub fn decode_checked(value: &[u8]) -> Result<Self, StampError> {
        let stamp = Self::decode(value)?;
        let crc = crc32c::crc32c_append(
            crc32c::crc32c(&value[..STAMP_CHECKED_BYTES]),
            &value[STAMP_BYTES..],
        );
        match value[STAMP_CHECKED_BYTES..STAMP_BYTES] == crc.to_le_bytes() {
            true => Ok(stamp),
            false => Err(StampError::Checksum),
        }
    }
}

fn word(stamp: &[u8; STAMP_BYTES], at: usize) -> u32 {
    u32::from_le_bytes([stamp[at], stamp[at + 1], stamp[at + 2], stamp[at + 3]])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamped(filler: &[u8]) -> (Stamp, Vec<u8>) {
        let stamp = Stamp {
            run: RunId(7),
            producer: ProducerNumber(3),
            sequence: 1 << 40 | 9,
            intended_unix_ns: 1_795_974_668_031_000_000,
        };
        let checked = stamp.encode();
        let crc = crc32c::crc32c_append(crc32c::crc32c(&checked), filler);
        (stamp, [&checked, &crc.to_le_bytes()[..], filler].concat())
    }

    #[test]
    fn a_stamp_reads_back() {
        let (stamp, value) = stamped(b"filler");
        assert_eq!(Stamp::decode_checked(&value), Ok(stamp));
    }

    #[test]
    fn any_flipped_bit_is_noticed() {
        let (stamp, value) = stamped(b"filler");
        for bit in 0..value.len() * 8 {
            let mut flipped = value.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(Stamp::decode_checked(&flipped), Ok(stamp), "bit {bit}");
        }
    }

    #[test]
    fn a_value_too_short_for_a_stamp_is_foreign() {
        assert_eq!(
            Stamp::decode(&[0; STAMP_BYTES - 1]),
            Err(StampError::Foreign)
        );
    }
}
