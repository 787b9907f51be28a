use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use corelog::io::chunk::ChunkPool;
use corelog::metrics::MetricsRegistry;
use corelog::model::{
    FilePosition, LeaderEpoch, Offset, PartitionIndex, ProducerId, ShardId, TimestampMs, TopicId,
    TopicPartition,
};
use corelog::record::records::RecordReader;
use corelog::record::{InflateBounds, RecordBatchHeader};
use corelog::storage::active_segment::RollRules;
use corelog::storage::batch_selection::Wanted;
use corelog::storage::checkpoint::{PartitionCheckpoint, RecoveryPoint};
use corelog::storage::cleaner::cleaning::{Cleaning, CleaningError, Work};
use corelog::storage::cleaner::segment_group::SegmentGroup;
use corelog::storage::cleaner::swap::Swap;
use corelog::storage::index_builder::{IndexBuilder, IndexLengths};
use corelog::storage::index_files::IndexTail;
use corelog::storage::leader_epochs::LeaderEpochs;
use corelog::storage::log::{Log, LogId, LogSettings, ReadPlan};
use corelog::storage::open_files::OpenFiles;
use corelog::storage::producer_snapshot;
use corelog::storage::producer_state::{ProducerBatch, ProducerState};
use corelog::storage::read_ahead::ReadAhead;
use corelog::storage::read_steps::ReadSteps;
use corelog::storage::reader::{TimestampedOffset, find_by_time, read_batches};
use corelog::storage::recovery::{FoundLog, Recovered, RecoveryRules, recover};
use corelog::storage::sealed_segment::SealedSegment;
use corelog::storage::segment_name::{CLEANED_SUFFIX, SegmentFileKind, SegmentFileName};
use corelog::storage::segment_times::SegmentTimes;
use rustc_hash::FxHashMap;

pub const RULES: RecoveryRules = RecoveryRules {
    index_interval_bytes: 512,
    now_ns: 0,
};
const LOG: LogId = LogId(1);
pub const SEGMENT_BYTES: u64 = 16 * 1024;

pub fn id() -> TopicPartition {
    TopicPartition {
        topic: TopicId(uuid::Uuid::from_u128(5)),
        partition: PartitionIndex(0),
    }
}

/// A record as a reader sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    pub offset: i64,
    pub timestamp: i64,
    pub key: String,
    pub value: Option<Vec<u8>>,
}

/// A stopped partition whose segments lie in a directory of their own.
pub struct Partition {
    dir: tempfile::TempDir,
    /// The active segment: its base offset and bytes.
    active: (Offset, Vec<u8>),
    end: Offset,
    epochs: LeaderEpochs,
    producers: ProducerState,
}

/// How a cleaning is to be run.
#[derive(Clone, Copy)]
pub struct CleanRules {
    pub map_bytes: usize,
    pub now: i64,
    pub delete_retention_ms: u64,
}

impl Partition {
    pub fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
            active: (Offset::ZERO, Vec::new()),
            end: Offset::ZERO,
            epochs: LeaderEpochs::default(),
            producers: ProducerState::default(),
        }
    }

    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub fn end(&self) -> Offset {
        self.end
    }

    pub fn active_base(&self) -> Offset {
        self.active.0
    }

    pub fn producers(&self) -> &ProducerState {
        &self.producers
    }

    /// Appends a batch that was built for the log's end.
    pub fn append(&mut self, batch: &[u8]) {
        let header = RecordBatchHeader::parse(batch).unwrap();
        assert_eq!(header.base_offset, self.end);
        if self.active.1.len() + batch.len() > SEGMENT_BYTES as usize {
            self.roll();
        }
        self.epochs.assign(header.leader_epoch, header.base_offset);
        if let Some(producer) = ProducerBatch::of(&header) {
            let (base, last) = (header.base_offset, header.last_offset());
            self.producers
                .record(&producer, base, last, header.max_timestamp, 0);
        }
        self.active.1.extend_from_slice(batch);
        self.end = header.next_offset();
    }

    /// Seals the active segment.
    pub fn roll(&mut self) {
        if self.active.1.is_empty() {
            return;
        }
        let (base, bytes) = std::mem::replace(&mut self.active, (self.end, Vec::new()));
        let mut indexes = indexes_of(base, &bytes);
        indexes.seal();
        fs::write(self.path(base, SegmentFileKind::Log), &bytes).unwrap();
        IndexTail::of(&indexes, IndexLengths::default())
            .write(self.dir())
            .unwrap();
    }

    /// Writes the active segment and a checkpoint of all.
    pub fn stop(&self) {
        let (base, bytes) = &self.active;
        fs::write(self.path(*base, SegmentFileKind::Log), bytes).unwrap();
        let indexes = indexes_of(*base, bytes);
        IndexTail::of(&indexes, IndexLengths::default())
            .write(self.dir())
            .unwrap();
        self.epochs.write(self.dir()).unwrap();
        let producer_count = self.producers.len() as u32;
        if producer_count > 0 {
            let file = producer_snapshot::encode(&self.producers, self.end);
            producer_snapshot::write(self.dir(), self.end, &file).unwrap();
        }
        let recovery_point = RecoveryPoint {
            offset: self.end,
            segment: *base,
            position: FilePosition(bytes.len() as u64),
            leader_epoch: self
                .epochs
                .latest()
                .map_or(LeaderEpoch::UNKNOWN, |latest| latest.epoch),
            index_lengths: indexes.lengths(),
            latest: indexes.latest(),
            producer_count,
        };
        let checkpoint = PartitionCheckpoint {
            partition: id(),
            log_start_offset: Offset::ZERO,
            recovery_point,
        };
        checkpoint.write(self.dir()).unwrap();
    }

    fn path(&self, base: Offset, kind: SegmentFileKind) -> PathBuf {
        self.dir()
            .join(SegmentFileName::new(base, kind).to_string())
    }
}

fn indexes_of(base: Offset, bytes: &[u8]) -> IndexBuilder {
    let mut indexes = IndexBuilder::new(base, RULES.index_interval_bytes);
    let mut position = 0;
    while position < bytes.len() {
        let header = RecordBatchHeader::parse(&bytes[position..]).unwrap();
        let at = FilePosition(position as u64);
        indexes.on_batch(header.last_offset(), header.max_timestamp, at);
        position += header.size_bytes();
    }
    indexes
}

/// Copies a stopped partition's files.
pub fn copy_of(dir: &Path) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, copy.path().join(path.file_name().unwrap())).unwrap();
    }
    copy
}

pub fn recovered(dir: &Path) -> Recovered {
    let recovered = recover(dir, id(), &RULES).unwrap();
    assert_eq!(recovered.cuts, []);
    assert_eq!(recovered.damaged, []);
    recovered
}

fn sealed(dir: &Path) -> Vec<Rc<SealedSegment>> {
    let sealed = recovered(dir).sealed.into_iter().map(|info| {
        let newest = info
            .latest
            .map_or(TimestampMs::NONE, |latest| latest.timestamp);
        let size = FilePosition(info.size_bytes);
        let (base, end, interval) = (
            info.base_offset,
            info.end_offset,
            RULES.index_interval_bytes,
        );
        Rc::new(SealedSegment::new(
            dir, base, end, size, newest, interval, None,
        ))
    });
    sealed.collect()
}

/// Told of a group that was cleaned, by the segments in it: it has to put the cleaned one into their place.
pub type OnSwap<'a> = &'a mut dyn FnMut(&Path, &[Offset]);

/// Cleans the sealed segments of the partition in `dir` as its shard would, in as many passes as it needs; gives their number.
pub async fn clean(
    dir: &Path,
    from: Offset,
    rules: CleanRules,
    last_of_producers: &FxHashMap<ProducerId, Offset>,
    on_swap: OnSwap<'_>,
) -> Result<usize, CleaningError> {
    let mut from = from;
    let mut passes = 0;
    let until = sealed(dir).last().map_or(from, |last| last.next_offset());
    while from < until {
        let (files, pool) = (OpenFiles::new(16), ChunkPool::new(1 << 20));
        let cleaning = Cleaning {
            log: LOG,
            dir,
            files: &files,
            pool: &pool,
            index_interval_bytes: RULES.index_interval_bytes,
            judging: TimestampMs(rules.now),
            stamping: TimestampMs(rules.now),
            delete_retention_ms: rules.delete_retention_ms,
            bounds: InflateBounds::WIDEST,
        };
        let segments = sealed(dir);
        let mut supervisor = async |_: Work| Ok(());
        let map = cleaning
            .map_keys(&segments, from, rules.map_bytes, &mut supervisor)
            .await?;
        assert!(map.end() > from, "each pass gets on");
        let reached = segments.partition_point(|it| it.base_offset() < map.end());
        for group in SegmentGroup::divide(&segments[..reached], SEGMENT_BYTES) {
            let cleaned = cleaning
                .clean(&group, &map, last_of_producers, &mut supervisor)
                .await?;
            if let Some(cleaned) = cleaned {
                cleaned
                    .index_tail()
                    .write_with_suffix(dir, CLEANED_SUFFIX)
                    .unwrap();
                on_swap(dir, &group.base_offsets());
            }
        }
        from = map.end();
        passes += 1;
    }
    Ok(passes)
}

pub fn swap_at_once(dir: &Path, group: &[Offset]) {
    Swap::new(dir, group).run().unwrap();
}

/// A log that was opened to be read.
pub struct OpenLog {
    log: Log,
    ahead: ReadAhead,
}

impl OpenLog {
    pub fn open(dir: &Path) -> Self {
        let found = recovered(dir);
        let settings = LogSettings {
            roll: RollRules {
                segment_bytes: SEGMENT_BYTES,
                segment_ms: u64::MAX,
                index_entries_max: usize::MAX,
            },
            index_interval_bytes: RULES.index_interval_bytes,
        };
        let name = SegmentFileName::new(found.active.base_offset, SegmentFileKind::Log);
        let active = fs::read(dir.join(name.to_string())).unwrap_or_default();
        let tail_page = active[active.len() / 4096 * 4096..].into();
        let found = FoundLog {
            start: found.log_start_offset,
            end: found.log_end_offset,
            sealed: found.sealed,
            active: found.active,
            active_times: SegmentTimes::EMPTY,
            epochs: found.leader_epochs,
            tail_page,
        };
        let log = Log::open(
            LOG,
            dir.to_owned(),
            settings,
            ChunkPool::new(1 << 20),
            found,
        );
        let metrics = MetricsRegistry::new(1).shard(ShardId(0));
        Self {
            log,
            ahead: ReadAhead::new(8 << 20, OpenFiles::new(16), metrics),
        }
    }

    /// What one fetch at `offset` gives, and the offset to go on at.
    pub async fn fetch(&self, offset: Offset, max_bytes: usize) -> (Vec<Row>, Offset) {
        let wanted = Wanted {
            offset,
            max_bytes,
            first_whole: true,
            below: self.log.end().offset,
        };
        let run = match self
            .log
            .plan_read(wanted, None, &mut ReadSteps::unbounded())
        {
            ReadPlan::Disk(read) => read_batches(read, &self.ahead).await.unwrap(),
            ReadPlan::Memory { run, .. } => run,
            ReadPlan::Nothing => return (Vec::new(), offset),
            ReadPlan::Corrupt { .. } => panic!("a damaged batch at {offset}"),
        };
        let bytes = run.to_contiguous();
        let (mut rows, mut next, mut rest) = (Vec::new(), offset, &bytes[..]);
        while let Ok(header) = RecordBatchHeader::parse(rest) {
            let (batch, behind) = rest.split_at(header.size_bytes());
            rows.extend(
                rows_of(batch)
                    .into_iter()
                    .filter(|row| row.offset >= offset.0),
            );
            next = header.next_offset();
            rest = behind;
        }
        (rows, next)
    }

    /// Everything from `offset` on, as a consumer gets it: fetch after fetch.
    pub async fn read_from(&self, offset: Offset, max_bytes: usize) -> Vec<Row> {
        let (mut rows, mut at) = (Vec::new(), offset);
        while at < self.log.end().offset {
            let (fetched, next) = self.fetch(at, max_bytes).await;
            assert!(next > at, "a fetch at {at} gets on");
            rows.extend(fetched);
            at = next;
        }
        rows
    }

    pub async fn offset_of_time(&self, timestamp: i64) -> Option<TimestampedOffset> {
        let timestamp = TimestampMs(timestamp);
        let views = self.log.plan_time_lookup(timestamp);
        let (start, end) = (self.log.start(), self.log.end().offset);
        find_by_time(
            views,
            timestamp,
            start,
            end,
            InflateBounds::WIDEST,
            &self.ahead,
        )
        .await
        .unwrap()
        .record
    }
}

pub fn rows_of(batch: &[u8]) -> Vec<Row> {
    let mut reader = RecordReader::new(batch, InflateBounds::up_to(1 << 24)).unwrap();
    let mut rows = Vec::new();
    while let Some(record) = reader.next_record().unwrap() {
        rows.push(Row {
            offset: record.offset.0,
            timestamp: record.timestamp.0,
            key: String::from_utf8(record.key.unwrap().to_vec()).unwrap(),
            value: record.value.map(<[u8]>::to_vec),
        });
    }
    rows
}
