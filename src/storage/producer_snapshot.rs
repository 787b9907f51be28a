use std::path::Path;

use rkyv::rancor;
use smallvec::SmallVec;

use crate::model::limits::{PRODUCER_BATCHES_REMEMBERED, PRODUCERS_PER_PARTITION_MAX};
use crate::model::{Offset, ProducerEpoch, ProducerId, Sequence, TimestampMs};

use super::atomic_file;
use super::checksum_frame::{ChecksumFrame, FrameDamage};
use super::file_error::FileError;
use super::producer_state::{ProducerEntry, ProducerState, RememberedBatch};
use super::segment_name::{SegmentFileKind, SegmentFileName};

const FRAME: ChecksumFrame = ChecksumFrame {
    magic: *b"CLPS",
    version: 1,
};

/// More than the largest state takes, checked before anything is read.
const FILE_BYTES_MAX: u64 =
    1024 + PRODUCERS_PER_PARTITION_MAX as u64 * (64 + 48 * PRODUCER_BATCHES_REMEMBERED as u64);

/// The producers' state after every batch below an offset, in `<20 digits of the offset>.producers`:
///
/// ```text
/// | checksum frame "CLPS", 16 bytes | rkyv: offset i64, producers sorted by id |
/// each producer: id i64, epoch i16, sequences known u32, 1 to 5 batches
/// each batch: first and last sequence i32, base and last offset i64, timestamp i64
/// ```
///
/// All five batches, where Kafka's `.snapshot` keeps one: a repeat of any of them is recognised after `kill -9` too.
#[derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
struct SnapshotBody {
    offset: i64,
    producers: Vec<ProducerRow>,
}

#[derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
struct ProducerRow {
    producer_id: i64,
    epoch: i16,
    sequences_known: u32,
    batches: Vec<BatchRow>,
}

#[derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
struct BatchRow {
    first_sequence: i32,
    last_sequence: i32,
    base_offset: i64,
    last_offset: i64,
    timestamp: i64,
}

/// Why there is no usable snapshot. Recovery then takes the producers from the batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotDamage {
    #[error("the file is missing")]
    Missing,
    #[error(transparent)]
    Frame(#[from] FrameDamage),
    #[error("it was taken at offset {found}")]
    OtherOffset { found: Offset },
}

/// The bytes of the file for the state as it is, which must be the one after every batch below `offset`.
pub fn encode(state: &ProducerState, offset: Offset) -> Vec<u8> {
    let producers = state
        .sorted()
        .into_iter()
        .map(|(producer_id, entry)| ProducerRow {
            producer_id: producer_id.0,
            epoch: entry.epoch.0,
            sequences_known: entry.sequences_known,
            batches: entry.batches.iter().map(BatchRow::of).collect(),
        });
    let body = SnapshotBody {
        offset: offset.0,
        producers: producers.collect(),
    };
    let bytes = rkyv::to_bytes::<rancor::Error>(&body).expect("plain numbers always serialize");
    FRAME.wrap(&bytes)
}

/// Reads the bytes of a file that is named after `offset`. Every producer counts as seen `now_ns`.
pub fn decode(file: &[u8], offset: Offset, now_ns: u64) -> Result<ProducerState, SnapshotDamage> {
    let body = FRAME.unwrap(file)?;
    let body =
        rkyv::from_bytes::<SnapshotBody, rancor::Error>(&body).map_err(|_| FrameDamage::Body)?;
    if body.offset != offset.0 {
        return Err(SnapshotDamage::OtherOffset {
            found: Offset(body.offset),
        });
    }
    let mut state = ProducerState::default();
    for row in body.producers {
        if row.batches.is_empty() || row.batches.len() > PRODUCER_BATCHES_REMEMBERED {
            return Err(FrameDamage::Body.into());
        }
        let batches: SmallVec<_> = row.batches.iter().map(BatchRow::remembered).collect();
        let entry = ProducerEntry::restored(
            ProducerEpoch(row.epoch),
            batches,
            row.sequences_known,
            now_ns,
        );
        state.restore(ProducerId(row.producer_id), entry);
    }
    Ok(state)
}

/// Writes the bytes of `encode` into their file; it survives a power cut when this returns.
pub fn write(dir: &Path, offset: Offset, file: &[u8]) -> Result<(), FileError> {
    atomic_file::replace(
        &dir.join(SegmentFileName::new(offset, SegmentFileKind::Producers).to_string()),
        file,
    )
}

pub fn read(
    dir: &Path,
    offset: Offset,
    now_ns: u64,
) -> Result<Result<ProducerState, SnapshotDamage>, FileError> {
    let path = dir.join(SegmentFileName::new(offset, SegmentFileKind::Producers).to_string());
    Ok(match atomic_file::read(&path, FILE_BYTES_MAX)? {
        Some(file) => decode(&file, offset, now_ns),
        None => Err(SnapshotDamage::Missing),
    })
}

impl BatchRow {
    fn of(batch: &RememberedBatch) -> Self {
        Self {
            first_sequence: batch.first_sequence.0,
            last_sequence: batch.last_sequence.0,
            base_offset: batch.base_offset.0,
            last_offset: batch.last_offset.0,
            timestamp: batch.timestamp.0,
        }
    }

    fn remembered(&self) -> RememberedBatch {
        RememberedBatch {
            first_sequence: Sequence(self.first_sequence),
            last_sequence: Sequence(self.last_sequence),
            base_offset: Offset(self.base_offset),
            last_offset: Offset(self.last_offset),
            timestamp: TimestampMs(self.timestamp),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::producer_state::{ProducerBatch, Verdict};
    use super::*;

    fn batch(producer: i64, first: i32) -> ProducerBatch {
        ProducerBatch {
            producer_id: ProducerId(producer),
            epoch: ProducerEpoch(2),
            first_sequence: Sequence(first),
            last_sequence: Sequence(first + 9),
        }
    }

    fn state(producer_count: i64) -> ProducerState {
        let mut state = ProducerState::default();
        for number in 0..8 {
            for producer in 0..producer_count {
                let base = (i64::from(number) * producer_count + producer) * 10;
                state.record(
                    &batch(producer, number * 10),
                    Offset(base),
                    Offset(base + 9),
                    TimestampMs(base),
                    0,
                );
            }
        }
        state
    }

    #[test]
    fn every_remembered_batch_and_the_forgotten_ones_are_known_again() {
        let before = state(3);
        let after = decode(&encode(&before, Offset(240)), Offset(240), 99).unwrap();
        for number in 0..9 {
            for producer in 0..4 {
                let batch = batch(producer, number * 10);
                assert_eq!(
                    after.check(&batch, Offset(240)),
                    before.check(&batch, Offset(240)),
                    "{batch:?}"
                );
            }
        }
        assert!(matches!(
            after.check(&batch(1, 30), Offset(240)),
            Verdict::Duplicate {
                base_offset: Offset(100),
                ..
            }
        ));
        assert_eq!(after.active_producers(), before.active_producers());
    }

    #[test]
    fn the_largest_state_stays_below_the_bound() {
        let mut largest = ProducerState::default();
        for number in 0..PRODUCER_BATCHES_REMEMBERED as i32 {
            for producer in 0..PRODUCERS_PER_PARTITION_MAX as i64 {
                largest.record(
                    &batch(producer, number * 10),
                    Offset(producer),
                    Offset(producer),
                    TimestampMs(0),
                    0,
                );
            }
        }
        assert!(encode(&largest, Offset(1)).len() as u64 <= FILE_BYTES_MAX);
    }

    #[test]
    fn a_snapshot_of_another_offset_or_a_damaged_one_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(
            read(dir.path(), Offset(240), 0).unwrap().unwrap_err(),
            SnapshotDamage::Missing
        );
        let file = encode(&state(3), Offset(240));
        write(dir.path(), Offset(250), &file).unwrap();
        let found = SnapshotDamage::OtherOffset { found: Offset(240) };
        assert_eq!(
            read(dir.path(), Offset(250), 0).unwrap().unwrap_err(),
            found
        );
        write(dir.path(), Offset(240), &file[..file.len() - 1]).unwrap();
        assert!(matches!(
            read(dir.path(), Offset(240), 0).unwrap(),
            Err(SnapshotDamage::Frame(_))
        ));
        write(dir.path(), Offset(240), &file).unwrap();
        assert_eq!(read(dir.path(), Offset(240), 0).unwrap().unwrap().len(), 3);
    }
}
