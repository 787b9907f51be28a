//! One partition's log: puts its parts together and holds the rules between them. Nothing here awaits.
//!
//! Rules, in one place:
//! - offsets are assigned here and nowhere else, one batch after the other without a gap;
//! - `log start <= synced <= written <= end`, and none of the four goes back (a follower's truncation will be the one exception);
//! - a batch is appended only into space that is prepared, so a full disk refuses it before it has an offset;
//! - bytes above `written` are never given to a reader;
//! - a segment is sealed once every write to it has completed.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use crate::io::chunk::ChunkPool;
use crate::model::limits::RECORD_BATCH_HEADER_BYTES;
use crate::model::{FilePosition, LeaderEpoch, Offset, TimestampMs};
use crate::record::header::RecordBatchHeader;
use crate::record::validate::ValidBatch;
use crate::storage::active_segment::{ActiveSegment, RollRules};
use crate::storage::appender::{Appender, LogMark, TailWrite, WriteId};
use crate::storage::cleaner::cleaned_file::CleanedSegment;
use crate::storage::cleaner::segment_group::SegmentGroup;
use crate::storage::index_builder::{IndexBuilder, IndexLengths};
use crate::storage::index_files::IndexTail;
use crate::storage::leader_epochs::LeaderEpochs;
use crate::storage::recovered::FoundLog;
use crate::storage::sealed_segment::SealedSegment;
use crate::storage::sealed_segments::{SealedSegments, ToSeal};
use crate::storage::segment_indexes::SegmentIndexes;
use crate::storage::segment_name::{SegmentFileKind, SegmentFileName};
use crate::storage::space::PreparedSpace;
use crate::storage::tail_cache::TailCache;

mod read_plan;

pub use read_plan::{Ahead, BatchPlace, Floor, ReadPlace, ReadPlan, SegmentRead, SegmentView};

/// Names a log within its process, so that files and cached blocks of a log made anew are never taken for the old one's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogId(pub u64);

/// A segment file of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SegmentKey {
    pub log: LogId,
    pub segment: Offset,
    /// How often the segment was replaced by a cleaned one, which has its name but not its bytes.
    pub generation: u32,
}

impl SegmentKey {
    /// The segment as it was appended to.
    pub fn appended(log: LogId, segment: Offset) -> Self {
        Self {
            log,
            segment,
            generation: 0,
        }
    }
}

/// What of the topic's settings a log needs to know.
#[derive(Clone, Copy, Debug)]
pub struct LogSettings {
    pub roll: RollRules,
    pub index_interval_bytes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    pub base_offset: Offset,
    pub last_offset: Offset,
}

/// Whether a batch may be appended now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    Now,
    /// Not before the active segment has more prepared space.
    AfterSpace,
    /// Not before the next segment is there.
    AfterRoll,
}

pub struct Log {
    id: LogId,
    directory: PathBuf,
    settings: LogSettings,
    start: Offset,
    /// Where the log will start once a checkpoint says so; never below `start`.
    planned_start: Offset,
    sealed: SealedSegments,
    active: ActiveSegment,
    appender: Appender,
    tail: TailCache,
    epochs: LeaderEpochs,
    synced: LogMark,
}

impl Log {
    /// Takes over what recovery found.
    pub fn open(
        id: LogId,
        directory: PathBuf,
        settings: LogSettings,
        pool: ChunkPool,
        found: FoundLog,
    ) -> Self {
        let sealed = found.sealed.into_iter().map(|segment| {
            SealedSegment::new(
                &directory,
                segment.base_offset,
                segment.end_offset,
                FilePosition(segment.size_bytes),
                segment
                    .latest
                    .map_or(TimestampMs::NONE, |latest| latest.timestamp),
                settings.index_interval_bytes,
                segment.unstored_indexes.map(SegmentIndexes::from),
            )
            .written_at(segment.written_at)
        });
        let sealed = SealedSegments::new(sealed);
        let active = found.active;
        let size = FilePosition(active.size_bytes);
        let end = LogMark {
            segment: active.base_offset,
            position: size,
            offset: found.end,
        };
        let space = PreparedSpace::new(settings.roll.segment_bytes, size);
        Self {
            id,
            settings,
            start: found.start,
            planned_start: found.start,
            sealed,
            active: ActiveSegment::new(
                &directory,
                active.base_offset,
                size,
                active.indexes,
                active.saved,
                space,
            )
            .with_times(found.active_times),
            appender: Appender::new(pool, end, found.tail_page),
            tail: TailCache::default(),
            epochs: found.epochs,
            synced: end,
            directory,
        }
    }

    pub fn id(&self) -> LogId {
        self.id
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    pub fn set_settings(&mut self, settings: LogSettings) {
        self.settings = settings;
    }

    /// The first offset that a reader may ask for.
    pub fn start(&self) -> Offset {
        self.start
    }

    /// The log end offset: the next one to be assigned.
    pub fn end(&self) -> LogMark {
        self.appender.end()
    }

    pub fn written(&self) -> LogMark {
        self.appender.written()
    }

    /// The end of what an fdatasync has covered.
    pub fn synced(&self) -> LogMark {
        self.synced
    }

    pub fn epochs(&self) -> &LeaderEpochs {
        &self.epochs
    }

    pub fn active(&self) -> &ActiveSegment {
        &self.active
    }

    pub fn active_key(&self) -> SegmentKey {
        SegmentKey::appended(self.id, self.active.base_offset())
    }

    /// What of the log is in memory.
    pub fn tail(&self) -> &TailCache {
        &self.tail
    }

    pub fn segment_path(&self, base_offset: Offset) -> PathBuf {
        self.directory
            .join(SegmentFileName::new(base_offset, SegmentFileKind::Log).to_string())
    }

    pub fn is_all_written(&self) -> bool {
        self.appender.is_all_written()
    }

    /// Bytes of all segments.
    pub fn size_bytes(&self) -> u64 {
        self.sealed.size_bytes() + self.active.size().0
    }

    pub fn segment_count(&self) -> usize {
        self.sealed.len() + 1
    }

    // ---- append

    pub fn admission(&self, header: &RecordBatchHeader, now: TimestampMs) -> Admission {
        let batch_bytes = header.size_bytes() as u64;
        let last_offset = self.end().offset.plus(i64::from(header.last_offset_delta));
        if self.active.must_roll(
            self.settings.roll,
            batch_bytes,
            header.max_timestamp,
            last_offset,
            now,
        ) {
            Admission::AfterRoll
        } else if self
            .active
            .space
            .holds(self.active.size().plus(batch_bytes))
        {
            Admission::Now
        } else {
            Admission::AfterSpace
        }
    }

    /// Appends one valid batch: assigns its offsets, stamps them and the leader epoch, copies it. `batch` is the whole of it as the
    /// producer sent it. `admission` must have said `Now`.
    pub fn append(
        &mut self,
        valid: &ValidBatch,
        batch: &[u8],
        epoch: LeaderEpoch,
        now: TimestampMs,
    ) -> Appended {
        let base_offset = self.end().offset;
        let stamped = valid.stamped_header(base_offset, epoch);
        let header = RecordBatchHeader::from_array(&stamped).expect("a validated header parses");
        assert_eq!(
            header.size_bytes(),
            batch.len(),
            "a validated batch has the length that its header says"
        );
        assert!(
            self.active
                .space
                .holds(self.active.size().plus(batch.len() as u64)),
            "a batch was appended into space that is not prepared, in {}",
            self.active.path().display()
        );
        self.epochs.assign(epoch, base_offset);
        self.active.on_append(&header, now);
        let tail = &mut self.tail;
        self.appender.append(
            &stamped,
            &batch[RECORD_BATCH_HEADER_BYTES..],
            header.next_offset(),
            |frozen| tail.push(frozen),
        );
        debug_assert_eq!(self.appender.end().position, self.active.size());
        Appended {
            base_offset,
            last_offset: header.last_offset(),
        }
    }

    /// Goes on in a new segment that starts at the log's end and has `prepared` bytes of space.
    pub fn roll(&mut self, prepared: FilePosition) {
        let base_offset = self.end().offset;
        assert!(
            base_offset > self.active.base_offset(),
            "an empty segment is not rolled"
        );
        let space = PreparedSpace::new(self.settings.roll.segment_bytes, prepared);
        let indexes = IndexBuilder::new(base_offset, self.settings.index_interval_bytes);
        let saved = IndexLengths::default();
        let next = ActiveSegment::new(
            &self.directory,
            base_offset,
            FilePosition::ZERO,
            indexes,
            saved,
            space,
        );
        let full = std::mem::replace(&mut self.active, next);
        let key = SegmentKey::appended(self.id, full.base_offset());
        let (path, size, max_timestamp) =
            (full.path().to_owned(), full.size(), full.max_timestamp());
        let (saved, written_at) = (full.saved(), full.last_append());
        let mut indexes = full.into_indexes();
        indexes.seal();
        let index_tail = IndexTail::of(&indexes, saved);
        let segment = SealedSegment::new(
            &self.directory,
            key.segment,
            base_offset,
            size,
            max_timestamp,
            self.settings.index_interval_bytes,
            Some(SegmentIndexes::from(indexes)),
        )
        .written_at(written_at);
        let to_seal = ToSeal {
            key,
            path,
            size,
            index_tail,
        };
        self.sealed.push_rolled(segment, to_seal);
        let tail = &mut self.tail;
        self.appender.start_segment(|frozen| tail.push(frozen));
    }

    pub fn space(&mut self) -> &mut PreparedSpace {
        &mut self.active.space
    }

    // ---- write and sync

    pub fn next_write(&mut self) -> Option<TailWrite> {
        let tail = &mut self.tail;
        self.appender.next_write(|frozen| tail.push(frozen))
    }

    /// See [`Appender::on_written`].
    pub fn on_written(&mut self, id: WriteId) -> Option<LogMark> {
        self.appender.on_written(id)
    }

    /// The segments whose writes have all completed since the last call.
    pub fn take_to_seal(&mut self) -> Vec<ToSeal> {
        let written = self.written().segment;
        self.sealed.take_to_seal(written)
    }

    /// See [`SealedSegments::on_sealed`].
    pub fn on_sealed(&mut self, base_offset: Offset, are_indexes_stored: bool) {
        self.sealed.on_sealed(base_offset, are_indexes_stored);
    }

    /// See [`SealedSegments::is_sealed_up`].
    pub fn is_sealed_up(&self) -> bool {
        self.sealed.is_sealed_up()
    }

    /// The active segment's index files now hold this much, if `segment` is still the active one.
    pub fn on_indexes_saved(&mut self, segment: Offset, saved: IndexLengths) {
        if self.active.base_offset() == segment {
            self.active.set_saved(saved);
        }
    }

    /// The files that an fdatasync must cover so that everything up to `written` is synced, and that mark.
    pub fn unsynced(&self) -> (LogMark, Vec<(SegmentKey, PathBuf)>) {
        let written = self.written();
        let mut files = Vec::new();
        if written != self.synced {
            let synced = self.synced.offset;
            let sealed = self.sealed.iter().filter(|segment| {
                segment.next_offset() > synced && segment.base_offset() <= written.segment
            });
            files.extend(sealed.map(|segment| (segment.key(self.id), segment.path().to_owned())));
            if written.segment == self.active.base_offset() && written.position > FilePosition::ZERO
            {
                files.push((self.active_key(), self.active.path().to_owned()));
            }
        }
        (written, files)
    }

    pub fn on_synced(&mut self, mark: LogMark) {
        if mark.offset > self.synced.offset {
            self.synced = mark;
        }
    }

    // ---- clean

    /// Whether the active segment is as old as it may get, so that its records are kept from being compacted.
    pub fn is_active_aged(&self, now: TimestampMs) -> bool {
        let has_records = self.active.size() > FilePosition::ZERO && self.is_all_written();
        has_records && self.active.is_aged(self.settings.roll, now)
    }

    /// See [`SealedSegments::begin_swap`].
    pub fn begin_swap(&mut self, group: &SegmentGroup) -> bool {
        self.sealed.begin_swap(group)
    }

    /// The files of `cleaned`, if there is one, have taken the place of the group's.
    pub fn end_swap(&mut self, group: &SegmentGroup, cleaned: Option<CleanedSegment>) {
        let cleaned = cleaned.map(|cleaned| {
            let latest = cleaned.indexes.latest();
            SealedSegment::new(
                &self.directory,
                group.base_offset(),
                group.next_offset(),
                cleaned.size,
                latest.map_or(TimestampMs::NONE, |latest| latest.timestamp),
                self.settings.index_interval_bytes,
                Some(SegmentIndexes::from(cleaned.indexes)),
            )
            .of_generation(group.cleaned_key(self.id).generation)
            .written_at(group.newest())
        });
        if let Some(cleaned) = &cleaned {
            cleaned.note_indexes_stored();
        }
        self.sealed.end_swap(group, cleaned);
    }

    // ---- memory

    /// The largest timestamp in the log, over all its segments.
    pub fn max_timestamp(&self) -> TimestampMs {
        self.sealed.max_timestamp().max(self.active.max_timestamp())
    }

    /// Frees the oldest cached chunk; returns how many bytes that was.
    pub fn drop_oldest_cached(&mut self) -> usize {
        self.tail.drop_oldest()
    }

    /// Lets go of everything cached; the disk has it, or the log is being deleted.
    pub fn drop_cache(&mut self) {
        self.tail.clear();
    }

    /// For a log that nobody has written to for a while: lets go of what it holds besides its cache, if the disk has it too.
    pub fn release_memory(&mut self) {
        if self.is_all_written() {
            self.appender.release_tail_page();
            self.sealed.release_indexes();
        }
    }

    // ---- delete a prefix

    /// The segments that are not appended to any more, oldest first.
    pub fn sealed(&self) -> &SealedSegments {
        &self.sealed
    }

    /// Has the next checkpoint say that the log starts at `to`. Nobody is shown that before it is on disk: a start that was shown never
    /// goes back.
    pub fn plan_start(&mut self, to: Offset) {
        assert!(
            to <= self.written().offset,
            "the log start offset may not pass what is written"
        );
        self.planned_start = self.planned_start.max(to);
    }

    /// What a checkpoint says.
    pub fn planned_start(&self) -> Offset {
        self.planned_start
    }

    /// Raises the log start offset to what was planned before a checkpoint that is on disk now; it never goes back.
    pub fn raise_start(&mut self, to: Offset) {
        assert!(
            to <= self.planned_start,
            "a log start offset is stored first"
        );
        self.start = self.start.max(to);
    }

    /// Raises the log start offset as [`raise_start`](Self::raise_start) does, and takes the sealed segments that lie wholly below it out
    /// of the log. Their files are the caller's to delete.
    pub fn drop_below(&mut self, to: Offset) -> Vec<Rc<SealedSegment>> {
        self.raise_start(to);
        let dropped = self.sealed.drop_below(self.start);
        if !dropped.is_empty() {
            self.epochs.truncate_from_start(self.start);
        }
        dropped
    }
}
