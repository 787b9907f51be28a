use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::Path;
use std::time::SystemTime;

use corelog::model::{
    FilePosition, LeaderEpoch, Offset, PartitionIndex, ProducerEpoch, ProducerId, Sequence,
    TimestampMs, TopicId, TopicPartition,
};
use corelog::record::RecordBatchHeader;
use corelog::record::encode::BatchBuilder;
use corelog::storage::checkpoint::{CHECKPOINT_FILE, PartitionCheckpoint, RecoveryPoint};
use corelog::storage::index_builder::{IndexBuilder, IndexLengths};
use corelog::storage::index_files::IndexTail;
use corelog::storage::leader_epochs::{LEADER_EPOCHS_FILE, LeaderEpochs};
use corelog::storage::producer_snapshot;
use corelog::storage::producer_state::{ProducerBatch, ProducerState, Verdict};
use corelog::storage::recovery::{Recovered, RecoveryRules};
use corelog::storage::segment_name::{SegmentFileKind, SegmentFileName};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, RngExt};

pub const RULES: RecoveryRules = RecoveryRules {
    index_interval_bytes: 4096,
    now_ns: 0,
};
const SEGMENT_BYTES: usize = 60_000;

pub fn partition() -> TopicPartition {
    TopicPartition {
        topic: TopicId(uuid::Uuid::from_u128(77)),
        partition: PartitionIndex(3),
    }
}

/// One batch as it was appended: which segment, where in it, and its bytes.
#[derive(Clone, Debug)]
pub struct WrittenBatch {
    pub segment: usize,
    pub position: usize,
    pub bytes: Vec<u8>,
}

impl WrittenBatch {
    pub fn header(&self) -> RecordBatchHeader {
        RecordBatchHeader::parse(&self.bytes).unwrap()
    }
}

#[derive(Clone, Debug)]
pub struct Segment {
    pub base_offset: Offset,
    pub bytes: Vec<u8>,
    pub indexes: IndexBuilder,
}

/// The log as its owner would have it in memory, one batch after another, with its state files on disk.
#[derive(Debug)]
pub struct Writer {
    dir: tempfile::TempDir,
    pub segments: Vec<Segment>,
    pub batches: Vec<WrittenBatch>,
    pub epochs: LeaderEpochs,
    pub producers: ProducerState,
    pub recovery_point: RecoveryPoint,
    pub log_start_offset: Offset,
    saved: IndexLengths,
    epoch: LeaderEpoch,
    next_sequences: BTreeMap<i64, (i16, i32)>,
}

impl Writer {
    pub fn new(random: &mut StdRng) -> Self {
        let point = RecoveryPoint::segment_start(Offset(0), LeaderEpoch::UNKNOWN);
        let mut writer = Self {
            dir: temp_dir(),
            segments: Vec::new(),
            batches: Vec::new(),
            epochs: LeaderEpochs::default(),
            producers: ProducerState::default(),
            recovery_point: point,
            log_start_offset: Offset(0),
            saved: IndexLengths::default(),
            epoch: LeaderEpoch(random.random_range(0..3)),
            next_sequences: BTreeMap::new(),
        };
        writer.segments.push(new_segment(Offset(0)));
        writer.checkpoint();
        writer
    }

    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub fn active(&self) -> &Segment {
        self.segments.last().unwrap()
    }

    pub fn log_end_offset(&self) -> Offset {
        self.batches
            .last()
            .map_or(self.segments[0].base_offset, |batch| {
                batch.header().next_offset()
            })
    }

    pub fn log_bytes(&self) -> Vec<u8> {
        self.segments
            .iter()
            .flat_map(|segment| segment.bytes.clone())
            .collect()
    }

    /// Appends batches, rolls segments, changes leaders and takes checkpoints, as it comes.
    pub fn append_some(&mut self, random: &mut StdRng) {
        for _ in 0..random.random_range(1..60) {
            self.append(random);
            if random.random_bool(0.04) {
                self.epoch.0 += random.random_range(1..3);
            }
            if random.random_bool(0.05) {
                self.write_all();
                self.checkpoint();
            }
        }
    }

    fn append(&mut self, random: &mut StdRng) {
        let base_offset = self.log_end_offset();
        let mut builder = BatchBuilder::new()
            .base_offset(base_offset)
            .leader_epoch(self.epoch);
        let record_count = random.random_range(1..12);
        if random.random_bool(0.7) {
            let producer = random.random_range(0..4);
            let (epoch, sequence) = self.next_sequences.entry(producer).or_insert((0, 0));
            if random.random_bool(0.05) {
                (*epoch, *sequence) = (*epoch + 1, 0);
            }
            builder = builder.producer(
                ProducerId(producer),
                ProducerEpoch(*epoch),
                Sequence(*sequence),
            );
            *sequence += record_count;
        }
        let timestamp = if random.random_bool(0.1) {
            -1
        } else {
            random.random_range(0..1_000_000)
        };
        for _ in 0..record_count {
            let mut value = vec![0; random.random_range(0..1_500)];
            random.fill_bytes(&mut value);
            builder.push(TimestampMs(timestamp), None, Some(&value), &[]);
        }
        let bytes = builder.build();
        if !self.active().bytes.is_empty()
            && self.active().bytes.len() + bytes.len() > SEGMENT_BYTES
        {
            self.start_segment();
        }
        self.take(bytes, true);
    }

    /// Puts a batch at the end of the active segment.
    fn take(&mut self, bytes: Vec<u8>, check: bool) {
        let header = RecordBatchHeader::parse(&bytes).unwrap();
        let log_end_offset = self.log_end_offset();
        let segment = self.segments.last_mut().unwrap();
        let position = segment.bytes.len();
        segment.bytes.extend_from_slice(&bytes);
        segment.indexes.on_batch(
            header.last_offset(),
            header.max_timestamp,
            FilePosition(position as u64),
        );
        if self.epochs.assign(header.leader_epoch, header.base_offset) && check {
            self.epochs.write(self.dir.path()).unwrap();
        }
        if let Some(batch) = ProducerBatch::of(&header) {
            if check {
                assert_eq!(
                    self.producers.check(&batch, log_end_offset),
                    Verdict::Append
                );
            }
            self.producers.record(
                &batch,
                header.base_offset,
                header.last_offset(),
                header.max_timestamp,
                0,
            );
        }
        self.batches.push(WrittenBatch {
            segment: self.segments.len() - 1,
            position,
            bytes,
        });
    }

    pub fn start_segment(&mut self) {
        let segment = self.segments.last_mut().unwrap();
        segment.indexes.seal();
        IndexTail::of(&segment.indexes, self.saved)
            .write(self.dir.path())
            .unwrap();
        self.saved = IndexLengths::default();
        self.segments.push(new_segment(self.log_end_offset()));
    }

    /// Everything appended is on disk.
    pub fn write_all(&self) {
        for segment in &self.segments {
            fs::write(
                self.dir().join(log_name(segment.base_offset)),
                &segment.bytes,
            )
            .unwrap();
        }
    }

    /// In the order that the checkpoint's contract asks for. The log itself is written by then.
    pub fn checkpoint(&mut self) {
        IndexTail::of(&self.active().indexes, self.saved)
            .write(self.dir())
            .unwrap();
        self.saved = self.active().indexes.lengths();
        self.epochs.write(self.dir()).unwrap();
        let previous = SegmentFileName::new(self.recovery_point.offset, SegmentFileKind::Producers);
        let offset = self.log_end_offset();
        if !self.producers.is_empty() {
            producer_snapshot::write(
                self.dir(),
                offset,
                &producer_snapshot::encode(&self.producers, offset),
            )
            .unwrap();
        }
        self.recovery_point = RecoveryPoint {
            offset,
            segment: self.active().base_offset,
            position: FilePosition(self.active().bytes.len() as u64),
            leader_epoch: self
                .batches
                .last()
                .map_or(LeaderEpoch::UNKNOWN, |batch| batch.header().leader_epoch),
            index_lengths: self.saved,
            latest: self.active().indexes.latest(),
            producer_count: self.producers.len() as u32,
        };
        self.write_checkpoint_only();
        if self.recovery_point.offset != previous.base_offset {
            fs::remove_file(self.dir().join(previous.to_string())).unwrap_or(());
        }
    }

    pub fn write_checkpoint_only(&self) {
        let (log_start_offset, recovery_point) = (self.log_start_offset, self.recovery_point);
        PartitionCheckpoint {
            partition: partition(),
            log_start_offset,
            recovery_point,
        }
        .write(self.dir())
        .unwrap();
    }

    /// Forgets all but the first batches, as if the others had never been appended.
    pub fn cut_to(&mut self, kept: usize) {
        let batches = std::mem::take(&mut self.batches);
        let bases: Vec<Offset> = self
            .segments
            .iter()
            .map(|segment| segment.base_offset)
            .collect();
        self.segments = vec![new_segment(bases[0])];
        self.saved = IndexLengths::default();
        let epochs = std::mem::take(&mut self.epochs);
        self.producers = ProducerState::default();
        for batch in batches.into_iter().take(kept) {
            if batch.segment == self.segments.len() {
                self.seal_in_memory();
                self.segments.push(new_segment(bases[batch.segment]));
            }
            self.take(batch.bytes, false);
        }
        // A segment that was started right where the log is now cut stays, and is empty.
        if bases.get(self.segments.len()) == Some(&self.log_end_offset())
            && self.has_file(self.log_end_offset())
        {
            self.seal_in_memory();
            self.segments.push(new_segment(self.log_end_offset()));
        }
        let batches = self.batches.clone();
        self.next_sequences.clear();
        for batch in batches
            .iter()
            .filter_map(|batch| ProducerBatch::of(&batch.header()))
        {
            self.next_sequences.insert(
                batch.producer_id.0,
                (batch.epoch.0, batch.last_sequence.plus(1).0),
            );
        }
        // New batches are appended by a leader of a new epoch, as after every restart of a leader.
        self.epoch.0 = epochs
            .latest()
            .map_or(self.epoch.0, |latest| latest.epoch.0.max(self.epoch.0))
            + 1;
    }

    fn seal_in_memory(&mut self) {
        self.segments.last_mut().unwrap().indexes.seal();
    }

    fn has_file(&self, base_offset: Offset) -> bool {
        self.dir().join(log_name(base_offset)).exists()
    }

    /// Appends go on from what recovery gave.
    pub fn go_on(&mut self, recovered: Recovered) {
        self.recovery_point = recovered.recovery_point;
        self.saved = recovered.active.saved;
        self.epochs = recovered.leader_epochs;
        self.segments.last_mut().unwrap().indexes = recovered.active.indexes;
    }

    pub fn log_files(&self) -> usize {
        let has_bytes = |name: &String| fs::metadata(self.dir().join(name)).unwrap().len() > 0;
        self.file_names()
            .iter()
            .filter(|name| name.ends_with(".log") && has_bytes(name))
            .count()
    }

    pub fn remove_segments(&self, range: Range<usize>) {
        for segment in &self.segments[range] {
            fs::remove_file(self.dir().join(log_name(segment.base_offset))).unwrap();
        }
    }

    /// Removes, cuts, zeroes or flips some of the files beside the segments; returns which.
    pub fn damage_state_files(&self, random: &mut StdRng) -> Vec<(String, &'static str)> {
        let state_file = |name: &String| {
            [
                ".index",
                ".timeindex",
                ".producers",
                CHECKPOINT_FILE,
                LEADER_EPOCHS_FILE,
            ]
            .iter()
            .any(|end| name.ends_with(end))
        };
        let mut damaged = Vec::new();
        for name in self.file_names().into_iter().filter(state_file) {
            if random.random_bool(0.7) {
                continue;
            }
            let path = self.dir().join(&name);
            let mut bytes = fs::read(&path).unwrap();
            let mut kinds = vec!["removed"];
            if !bytes.is_empty() {
                kinds.extend(["cut", "zeroed"]);
            }
            // An index has no checksum: a flipped bit in it is found when it is used.
            if !name.ends_with("index") && !name.ends_with(LEADER_EPOCHS_FILE) && !bytes.is_empty()
            {
                kinds.push("flipped");
            }
            let kind = *kinds.choose(random).unwrap();
            match kind {
                "removed" => fs::remove_file(&path).unwrap(),
                // Not between two entries of an index: what is left is then an index, and its loss is found when it is used.
                "cut" => {
                    fs::write(&path, &bytes[..random.random_range(0..bytes.len()) | 1]).unwrap()
                }
                "zeroed" => fs::write(&path, vec![0; bytes.len()]).unwrap(),
                _ => {
                    let at = random.random_range(0..bytes.len());
                    bytes[at] ^= 1 << random.random_range(0..8);
                    fs::write(&path, bytes).unwrap();
                }
            }
            damaged.push((name, kind));
        }
        damaged
    }

    pub fn file_times(&self) -> BTreeMap<String, SystemTime> {
        let time = |name: &String| {
            fs::metadata(self.dir().join(name))
                .unwrap()
                .modified()
                .unwrap()
        };
        self.file_names()
            .into_iter()
            .map(|name| (name.clone(), time(&name)))
            .collect()
    }

    fn file_names(&self) -> Vec<String> {
        fs::read_dir(self.dir())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    }
}

/// In memory where that is possible: these tests sync thousands of files, and no disk loses power.
pub fn temp_dir() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm")
        .or_else(|_| tempfile::tempdir())
        .unwrap()
}

pub fn log_name(base_offset: Offset) -> String {
    SegmentFileName::new(base_offset, SegmentFileKind::Log).to_string()
}

fn new_segment(base_offset: Offset) -> Segment {
    let indexes = IndexBuilder::new(base_offset, RULES.index_interval_bytes);
    Segment {
        base_offset,
        bytes: Vec::new(),
        indexes,
    }
}
