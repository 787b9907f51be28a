use std::path::Path;

use rkyv::rancor;

use crate::model::{
    FilePosition, LeaderEpoch, Offset, PartitionIndex, TimestampMs, TopicId, TopicPartition,
};

use super::atomic_file;
use super::checksum_frame::{ChecksumFrame, FrameDamage};
use super::file_error::FileError;
use super::index_builder::IndexLengths;
use super::time_index::TimeIndexEntry;

/// The file's name in the partition's directory.
pub const CHECKPOINT_FILE: &str = "partition.checkpoint";

const FRAME: ChecksumFrame = ChecksumFrame {
    magic: *b"CLPC",
    version: 1,
};

/// One page, so that a checkpoint costs one block.
const FILE_BYTES_MAX: u64 = 4096;

/// From where recovery reads: everything below is on disk, synced, with its indexes, leader epochs and producers.
///
/// The writer's order makes that true: (1) take all of this in one turn, at the log end; (2) wait until the log is written and
/// synced up to `offset`; (3) write the index tails, the leader epochs and `<offset>.producers`; (4) write the checkpoint. And
/// before the log is cut below the recovery point, a lower one is written.
///
/// A clean stop needs no mark of its own: its recovery point is the end of the file, so there is nothing behind it to read.
/// A mark would have to be taken back before the first append after it, or a later crash would pass for a clean stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecoveryPoint {
    pub offset: Offset,
    /// The base offset of the segment in which recovery starts to read, and where in it.
    pub segment: Offset,
    pub position: FilePosition,
    /// The epoch of the last batch below; the one behind it must not be older.
    pub leader_epoch: LeaderEpoch,
    /// How much of the segment's index files is valid.
    pub index_lengths: IndexLengths,
    /// The largest timestamp of the segment up to `position`.
    pub latest: Option<TimeIndexEntry>,
    /// How many producers were known; 0: there is no `.producers` file.
    pub producer_count: u32,
}

/// What a partition's directory says of the partition, in `partition.checkpoint`:
///
/// ```text
/// | checksum frame "CLPC", 16 bytes | rkyv, fields in this order:
/// | topic id 16 | partition i32 | log start offset i64
/// | recovery point: offset i64, segment i64, position u64, leader epoch i32,
/// |   offset entries u32, time entries u32, latest timestamp i64 (-1: none) and its offset i64, producer count u32 |
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartitionCheckpoint {
    pub partition: TopicPartition,
    pub log_start_offset: Offset,
    pub recovery_point: RecoveryPoint,
}

#[derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
struct CheckpointBody {
    topic_id: [u8; 16],
    partition: i32,
    log_start_offset: i64,
    offset: i64,
    segment: i64,
    position: u64,
    leader_epoch: i32,
    offset_entries: u32,
    time_entries: u32,
    latest_timestamp: i64,
    latest_offset: i64,
    producer_count: u32,
}

/// Why there is no usable checkpoint. Recovery then reads the whole log, and the log starts where its first segment does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CheckpointDamage {
    #[error("the file is missing")]
    Missing,
    #[error(transparent)]
    Frame(#[from] FrameDamage),
}

impl RecoveryPoint {
    /// The start of a segment that nothing was appended to.
    pub fn segment_start(base_offset: Offset, leader_epoch: LeaderEpoch) -> Self {
        Self {
            offset: base_offset,
            segment: base_offset,
            position: FilePosition::ZERO,
            leader_epoch,
            index_lengths: IndexLengths::default(),
            latest: None,
            producer_count: 0,
        }
    }
}

impl PartitionCheckpoint {
    pub fn encode(&self) -> Vec<u8> {
        let point = &self.recovery_point;
        let body = CheckpointBody {
            topic_id: *self.partition.topic.0.as_bytes(),
            partition: self.partition.partition.0,
            log_start_offset: self.log_start_offset.0,
            offset: point.offset.0,
            segment: point.segment.0,
            position: point.position.0,
            leader_epoch: point.leader_epoch.0,
            offset_entries: point.index_lengths.offset_entries,
            time_entries: point.index_lengths.time_entries,
            latest_timestamp: point
                .latest
                .map_or(TimestampMs::NONE, |latest| latest.timestamp)
                .0,
            latest_offset: point
                .latest
                .map_or(Offset::UNKNOWN, |latest| latest.offset)
                .0,
            producer_count: point.producer_count,
        };
        FRAME.wrap(&rkyv::to_bytes::<rancor::Error>(&body).expect("plain numbers always serialize"))
    }

    pub fn decode(file: &[u8]) -> Result<Self, CheckpointDamage> {
        let body = FRAME.unwrap(file)?;
        let body = rkyv::from_bytes::<CheckpointBody, rancor::Error>(&body)
            .map_err(|_| FrameDamage::Body)?;
        let latest = TimeIndexEntry {
            timestamp: TimestampMs(body.latest_timestamp),
            offset: Offset(body.latest_offset),
        };
        Ok(Self {
            partition: TopicPartition {
                topic: TopicId(uuid::Uuid::from_bytes(body.topic_id)),
                partition: PartitionIndex(body.partition),
            },
            log_start_offset: Offset(body.log_start_offset),
            recovery_point: RecoveryPoint {
                offset: Offset(body.offset),
                segment: Offset(body.segment),
                position: FilePosition(body.position),
                leader_epoch: LeaderEpoch(body.leader_epoch),
                index_lengths: IndexLengths {
                    offset_entries: body.offset_entries,
                    time_entries: body.time_entries,
                },
                latest: (latest.timestamp > TimestampMs::NONE).then_some(latest),
                producer_count: body.producer_count,
            },
        })
    }

    /// Replaces the file; it survives a power cut when this returns.
    pub fn write(&self, dir: &Path) -> Result<(), FileError> {
        atomic_file::replace(&dir.join(CHECKPOINT_FILE), &self.encode())
    }

    /// Writes over the file that is there, for which a full disk has room too. All checkpoints are of one length and lie within a sector, so
    /// that a power cut leaves one or the other; were it to leave neither, the next start would read the whole log.
    pub fn overwrite(&self, dir: &Path) -> Result<(), FileError> {
        atomic_file::overwrite(&dir.join(CHECKPOINT_FILE), &self.encode())
    }

    pub fn read(dir: &Path) -> Result<Result<Self, CheckpointDamage>, FileError> {
        Ok(
            match atomic_file::read(&dir.join(CHECKPOINT_FILE), FILE_BYTES_MAX)? {
                Some(file) => Self::decode(&file),
                None => Err(CheckpointDamage::Missing),
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checkpoint() -> PartitionCheckpoint {
        PartitionCheckpoint {
            partition: TopicPartition {
                topic: TopicId(uuid::Uuid::from_u128(0xabc)),
                partition: PartitionIndex(7),
            },
            log_start_offset: Offset(1_000),
            recovery_point: RecoveryPoint {
                offset: Offset(5_500),
                segment: Offset(5_000),
                position: FilePosition(123_456),
                leader_epoch: LeaderEpoch(4),
                index_lengths: IndexLengths {
                    offset_entries: 30,
                    time_entries: 29,
                },
                latest: Some(TimeIndexEntry {
                    timestamp: TimestampMs(1_700_000_000_000),
                    offset: Offset(5_400),
                }),
                producer_count: 2,
            },
        }
    }

    #[test]
    fn a_checkpoint_comes_back_and_fits_a_page() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(
            PartitionCheckpoint::read(dir.path()).unwrap(),
            Err(CheckpointDamage::Missing)
        );
        let mut written = checkpoint();
        for latest in [written.recovery_point.latest, None] {
            written.recovery_point.latest = latest;
            written.write(dir.path()).unwrap();
            assert_eq!(PartitionCheckpoint::read(dir.path()).unwrap(), Ok(written));
            assert!(written.encode().len() as u64 <= FILE_BYTES_MAX);
        }
    }

    #[test]
    fn a_checkpoint_is_written_over_another_within_a_sector() {
        const SECTOR_BYTES: usize = 512;
        let dir = tempfile::tempdir().unwrap();
        let mut written = checkpoint();
        written.write(dir.path()).unwrap();
        let length = written.encode().len();
        written.log_start_offset = Offset(i64::MAX);
        written.recovery_point = RecoveryPoint::segment_start(Offset(0), LeaderEpoch::UNKNOWN);
        written.overwrite(dir.path()).unwrap();
        assert_eq!(PartitionCheckpoint::read(dir.path()).unwrap(), Ok(written));
        assert_eq!(written.encode().len(), length);
        assert!(length <= SECTOR_BYTES);
    }

    #[test]
    fn a_damaged_checkpoint_is_refused() {
        let file = checkpoint().encode();
        for byte in 0..file.len() {
            let mut damaged = file.clone();
            damaged[byte] ^= 0x10;
            assert!(
                matches!(
                    PartitionCheckpoint::decode(&damaged),
                    Err(CheckpointDamage::Frame(_))
                ),
                "byte {byte}"
            );
        }
        assert!(matches!(
            PartitionCheckpoint::decode(&[]),
            Err(CheckpointDamage::Frame(_))
        ));
    }
}
