//! One batch of metadata records as it lies in a file. Little endian.
//!
//! ```text
//!   0        4        8     9          12              20
//!   +--------+--------+-----+----------+---------------+------------------------+
//!   | length | crc    | ver | 0  0  0  | sequence      | archived records       |
//!   +--------+--------+-----+----------+---------------+------------------------+
//!   length    bytes of archived records
//!   crc       CRC-32 (IEEE, crc32fast) of the length and of everything behind the crc
//!   ver       layout version of the records
//!   sequence  1 for the first batch of a cluster, then one more for each
//! ```

use crate::metadata::{
    MetadataRecord, RECORD_LAYOUT_VERSION, RecordError, decode_records, encode_records,
};
use crate::model::limits::METADATA_BATCH_BYTES_MAX;

pub(super) const HEADER_BYTES: usize = 20;

#[derive(Debug)]
pub(super) struct Frame {
    pub sequence: u64,
    pub records: Vec<MetadataRecord>,
    pub size_bytes: usize,
}

/// Why the bytes at some place are no frame.
#[derive(Debug, thiserror::Error)]
pub enum FrameDefect {
    #[error("it needs {needed} bytes, and {present} are there")]
    Short { needed: usize, present: usize },
    #[error("its checksum is {stored:08x} but its bytes make {computed:08x}")]
    Checksum { stored: u32, computed: u32 },
    #[error("{0}")]
    Records(RecordError),
    #[error("it has number {found} where {expected} belongs")]
    Sequence { expected: u64, found: u64 },
}

#[derive(Debug, thiserror::Error)]
pub enum EncodeError {
    #[error("{0}")]
    Records(RecordError),
    #[error("the change takes {0} bytes; at most {METADATA_BATCH_BYTES_MAX} are stored at once")]
    TooLarge(usize),
}

pub(super) fn encode(
    sequence: u64,
    records: &[MetadataRecord],
    size_max: usize,
) -> Result<Vec<u8>, EncodeError> {
    let payload = encode_records(records).map_err(EncodeError::Records)?;
    let length = u32::try_from(payload.len())
        .ok()
        .filter(|_| payload.len() <= size_max);
    let length = length.ok_or(EncodeError::TooLarge(payload.len()))?;
    let mut bytes = Vec::with_capacity(HEADER_BYTES + payload.len());
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(&[RECORD_LAYOUT_VERSION, 0, 0, 0]);
    bytes.extend_from_slice(&sequence.to_le_bytes());
    bytes.extend_from_slice(&payload);
    let crc = checksum(&bytes);
    bytes[4..8].copy_from_slice(&crc.to_le_bytes());
    Ok(bytes)
}

/// The frame at the start of `bytes`, which may go on behind it.
pub(super) fn decode(bytes: &[u8]) -> Result<Frame, FrameDefect> {
    let (layout_version, sequence, frame) = check(bytes)?;
    let records =
        decode_records(layout_version, &frame[HEADER_BYTES..]).map_err(FrameDefect::Records)?;
    Ok(Frame {
        sequence,
        records,
        size_bytes: frame.len(),
    })
}

/// Where behind `bytes`' start a whole, valid frame with a number of at least `sequence_min` begins, if one does.
pub(super) fn find_behind(bytes: &[u8], sequence_min: u64) -> Option<usize> {
    (1..(bytes.len() + 1).saturating_sub(HEADER_BYTES)).find(|&position| {
        let candidate = &bytes[position..];
        // The number is compared first: nearly every position fails there, before a checksum is computed.
        (sequence_min..sequence_min.saturating_add(u64::from(u16::MAX)))
            .contains(&u64_at(candidate, 12))
            && check(candidate).is_ok()
    })
}

/// Lengths and checksum; the layout version, the number and the frame's own bytes.
fn check(bytes: &[u8]) -> Result<(u8, u64, &[u8]), FrameDefect> {
    let short = |needed| FrameDefect::Short {
        needed,
        present: bytes.len(),
    };
    if bytes.len() < HEADER_BYTES {
        return Err(short(HEADER_BYTES));
    }
    let size_bytes = HEADER_BYTES + u32_at(bytes, 0) as usize;
    let frame = bytes.get(..size_bytes).ok_or_else(|| short(size_bytes))?;
    let (stored, computed) = (u32_at(frame, 4), checksum(frame));
    if stored != computed {
        return Err(FrameDefect::Checksum { stored, computed });
    }
    Ok((frame[8], u64_at(frame, 12), frame))
}

fn checksum(frame: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&frame[..4]);
    hasher.update(&frame[8..]);
    hasher.finalize()
}

fn u32_at(bytes: &[u8], position: usize) -> u32 {
    u32::from_le_bytes(
        bytes[position..position + 4]
            .try_into()
            .expect("four bytes"),
    )
}

fn u64_at(bytes: &[u8], position: usize) -> u64 {
    u64::from_le_bytes(
        bytes[position..position + 8]
            .try_into()
            .expect("eight bytes"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(sequence: u64) -> Vec<u8> {
        encode(
            sequence,
            &[MetadataRecord::ClusterFormed { cluster_id: 5 }],
            METADATA_BATCH_BYTES_MAX,
        )
        .unwrap()
    }

    #[test]
    fn a_frame_reads_back_with_bytes_behind_it() {
        let mut bytes = encoded(9);
        let size_bytes = bytes.len();
        bytes.extend_from_slice(b"behind");
        let frame = decode(&bytes).unwrap();
        assert_eq!((frame.sequence, frame.size_bytes), (9, size_bytes));
        assert_eq!(
            frame.records,
            [MetadataRecord::ClusterFormed { cluster_id: 5 }]
        );
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_found() {
        let bytes = encoded(9);
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(decode(&flipped).is_err(), "bit {bit}");
        }
        for end in 0..bytes.len() {
            assert!(
                matches!(decode(&bytes[..end]), Err(FrameDefect::Short { .. })),
                "cut at {end}"
            );
        }
        assert!(decode(&[0; 4096]).is_err(), "zeros are no frame");
    }

    #[test]
    fn a_whole_frame_is_found_behind_damage() {
        let mut bytes = vec![0xaa; 33];
        bytes.extend_from_slice(&encoded(9));
        assert_eq!(find_behind(&bytes, 9), Some(33));
        assert_eq!(
            find_behind(&bytes, 10),
            None,
            "an older frame was overtaken"
        );
        assert_eq!(find_behind(&bytes[..bytes.len() - 1], 9), None);
        assert_eq!(find_behind(&[], 1), None);
    }

    #[test]
    fn a_change_has_a_bounded_size() {
        let records = [MetadataRecord::ClusterFormed { cluster_id: 5 }];
        assert!(matches!(
            encode(1, &records, 10),
            Err(EncodeError::TooLarge(_))
        ));
    }
}
