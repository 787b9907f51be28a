//! The file that says how far the metadata log was promised: without it, a log that lost whole batches at its end would look
//! like a shorter, healthy log. Two slots, each in a sector of its own and written in turn, so that a torn write leaves the other.
//! Little endian.
//!
//! ```text
//!   0          4          8                16          512        516 ...
//!   +----------+----------+----------------+--- 0 ... --+----------+--
//!   | magic    | crc      | sequence       |            | the second slot, likewise
//!   +----------+----------+----------------+------------+----------+--
//!   magic      "CLE1"
//!   crc        CRC-32 (IEEE) of the sequence's eight bytes
//!   sequence   the last batch that was promised to somebody; it lies in the slot of its parity
//! ```

use std::io;
use std::path::Path;

use crate::io::fs::File;

const MAGIC: &[u8; 4] = b"CLE1";
const SLOT_BYTES: usize = 512;
const FILE_BYTES: usize = 2 * SLOT_BYTES;

pub(super) struct EndCheckpoint {
    file: File,
}

impl EndCheckpoint {
    pub fn create(path: &Path, sequence: u64) -> io::Result<Self> {
        let file = File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(path)?;
        file.set_len(FILE_BYTES as u64)?;
        let checkpoint = Self { file };
        checkpoint.write(sequence)?;
        checkpoint.file.sync_all()?;
        Ok(checkpoint)
    }

    /// The file and the highest number in it; `None` if neither slot is whole.
    pub fn open(path: &Path) -> io::Result<(Self, Option<u64>)> {
        let file = File::options().read(true).write(true).open(path)?;
        let mut bytes = [0; FILE_BYTES];
        let sequence = match file.read_exact_at(&mut bytes, 0) {
            Ok(()) => bytes.chunks(SLOT_BYTES).filter_map(decode_slot).max(),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => None,
            Err(error) => return Err(error),
        };
        Ok((Self { file }, sequence))
    }

    /// Returns when the number is durable.
    pub fn write(&self, sequence: u64) -> io::Result<()> {
        let slot = (sequence % 2) * SLOT_BYTES as u64;
        self.file.write_all_at(&encode_slot(sequence), slot)?;
        self.file.sync_data()
    }
}

fn encode_slot(sequence: u64) -> [u8; 16] {
    let mut slot = [0; 16];
    let number = sequence.to_le_bytes();
    slot[..4].copy_from_slice(MAGIC);
    slot[4..8].copy_from_slice(&crc32fast::hash(&number).to_le_bytes());
    slot[8..].copy_from_slice(&number);
    slot
}

fn decode_slot(slot: &[u8]) -> Option<u64> {
    let number: [u8; 8] = slot.get(8..16)?.try_into().ok()?;
    let whole = slot[..4] == *MAGIC && slot[4..8] == crc32fast::hash(&number).to_le_bytes();
    whole.then_some(u64::from_le_bytes(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torn_slot_leaves_the_number_before() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("end");
        let checkpoint = EndCheckpoint::create(&path, 1).unwrap();
        checkpoint.write(2).unwrap();
        checkpoint.write(3).unwrap();
        assert_eq!(EndCheckpoint::open(&path).unwrap().1, Some(3));
        checkpoint
            .file
            .write_all_at(&[0xff], SLOT_BYTES as u64 + 9)
            .unwrap();
        assert_eq!(EndCheckpoint::open(&path).unwrap().1, Some(2));
        checkpoint.file.write_all_at(&[0xff], 9).unwrap();
        assert_eq!(EndCheckpoint::open(&path).unwrap().1, None);
        checkpoint.file.set_len(100).unwrap();
        assert_eq!(EndCheckpoint::open(&path).unwrap().1, None);
    }
}
