//! Reads of what memory no longer holds: large O_DIRECT blocks, shared by readers of the same place, fetched ahead of a
//! sequential reader. It has a budget of its own, so a cold reader never evicts a log's tail.
//!
//! Where more segments are read in turn than there is room for blocks, each has a part of a block, as large as its share of the budget:
//! whole ones would be gone before their reader comes back, and be read again for every few batches.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ops::Range;
use std::path::Path;
use std::rc::Rc;
use std::time::Instant;

use bytes::Bytes;
use rustc_hash::FxHashMap;

use crate::io::disk::{DiskError, DiskOperation, OpenMode};
use crate::io::event::Event;
use crate::metrics::ShardMetrics;
use crate::model::FilePosition;
use crate::model::limits::{PAGE_BYTES, READ_AHEAD_BLOCKS, READ_BLOCK_BYTES, RECENT_READS_MAX};
use crate::storage::byte_run::ByteRun;
use crate::storage::log::{LogId, SegmentKey};
use crate::storage::open_files::{OpenFiles, SegmentFile};

/// Block `number` covers the file from `number * READ_BLOCK_BYTES` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct BlockKey {
    segment: SegmentKey,
    number: u64,
}

impl BlockKey {
    /// Where in the file it begins.
    fn start(self) -> u64 {
        self.number * READ_BLOCK_BYTES as u64
    }

    /// What lies in it of the file's bytes from `start` to `end`.
    fn part_of(self, start: FilePosition, end: FilePosition) -> Range<usize> {
        self.before(start)..self.before(end)
    }

    /// How much of it lies before `position`.
    fn before(self, position: FilePosition) -> usize {
        let behind = position.0.saturating_sub(self.start());
        behind.min(READ_BLOCK_BYTES as u64) as usize
    }
}

enum Block {
    /// Being read; who wants it waits for the notification and looks again.
    Loading(Event),
    /// What was readable when it was read, or a part of that: the block at a segment's growing end is read again.
    Loaded(Part),
}

/// Bytes of a block: those of the file from `from_bytes` behind the block's start.
struct Part {
    from_bytes: usize,
    bytes: Bytes,
}

impl Part {
    /// `None` if it does not cover them all.
    fn slice(&self, wanted: &Range<usize>) -> Option<Bytes> {
        let from = wanted.start.checked_sub(self.from_bytes)?;
        let to = wanted.end - self.from_bytes;
        (to <= self.bytes.len()).then(|| self.bytes.slice(from..to))
    }
}

#[derive(Clone)]
pub struct ReadAhead {
    inner: Rc<RefCell<Inner>>,
    files: OpenFiles,
    metrics: ShardMetrics,
}

struct Inner {
    budget_bytes: usize,
    held_bytes: usize,
    blocks: FxHashMap<BlockKey, Block>,
    /// Loaded blocks, oldest first.
    order: VecDeque<BlockKey>,
    readers: RecentReaders,
}

impl ReadAhead {
    pub fn new(budget_bytes: usize, files: OpenFiles, metrics: ShardMetrics) -> Self {
        let inner = Inner {
            budget_bytes,
            held_bytes: 0,
            blocks: FxHashMap::default(),
            order: VecDeque::new(),
            readers: RecentReaders::default(),
        };
        Self {
            inner: Rc::new(RefCell::new(inner)),
            files,
            metrics,
        }
    }

    /// The bytes from `start` to `end`, all of which must be readable; `readable_end` bounds what is fetched ahead.
    pub async fn read(
        &self,
        segment: SegmentKey,
        path: &Path,
        start: FilePosition,
        end: FilePosition,
        readable_end: FilePosition,
    ) -> Result<ByteRun, DiskError> {
        assert!(
            start < end && end <= readable_end,
            "{start}..{end} is not readable up to {readable_end}"
        );
        let file = self.files.get(segment, path, OpenMode::Existing).await?;
        let first = start.0 / READ_BLOCK_BYTES as u64;
        let last = (end.0 - 1) / READ_BLOCK_BYTES as u64;
        let is_sequential = self.holds(BlockKey {
            segment,
            number: first,
        }) || first > 0
            && self.holds(BlockKey {
                segment,
                number: first - 1,
            });
        let ahead = match is_sequential {
            true => self.inner.borrow().blocks_ahead(segment),
            false => 0,
        };
        let share_bytes = self.inner.borrow().share_bytes(segment);
        for number in first..=last + ahead {
            let key = BlockKey { segment, number };
            let readable = key.before(readable_end);
            // Of a block ahead its beginning is what comes first.
            let wanted = match key.part_of(start, end) {
                wanted if wanted.is_empty() => 0..readable.min(1),
                wanted => wanted,
            };
            if !wanted.is_empty() && !self.is_there(key, &wanted) {
                let part = part_to_load(&wanted, share_bytes, readable);
                self.start_loading(key, &file, part);
            }
        }
        let mut run = ByteRun::starting_at(start);
        for number in first..=last {
            let key = BlockKey { segment, number };
            let wanted = key.part_of(start, end);
            let part = part_to_load(&wanted, share_bytes, key.before(readable_end));
            run.push(self.bytes_of(key, &file, wanted, part).await?);
        }
        Ok(run)
    }

    /// Forgets a log's blocks, when it is deleted.
    pub fn forget(&self, log: LogId) {
        self.inner.borrow_mut().forget(|key| key.segment.log == log);
    }

    /// Forgets a segment's blocks, when its file is no longer part of the log.
    pub fn forget_segment(&self, segment: SegmentKey) {
        self.inner.borrow_mut().forget(|key| key.segment == segment);
    }

    fn holds(&self, key: BlockKey) -> bool {
        self.inner.borrow().blocks.contains_key(&key)
    }

    /// Whether these bytes of the block are loaded, or some of the block on their way.
    fn is_there(&self, key: BlockKey, wanted: &Range<usize>) -> bool {
        match self.inner.borrow().blocks.get(&key) {
            Some(Block::Loading(_)) => true,
            Some(Block::Loaded(part)) => part.slice(wanted).is_some(),
            None => false,
        }
    }

    fn start_loading(&self, key: BlockKey, file: &SegmentFile, part: Range<usize>) {
        let (this, file) = (self.clone(), file.clone());
        let loading = Event::new();
        this.inner
            .borrow_mut()
            .replace(key, Some(Block::Loading(loading.clone())));
        crate::io::executor::spawn_local(async move {
            // A failure leaves no block behind: whoever needs it reads it again and gets the error.
            let loaded = this.read_part(&file, key, part).await.ok();
            this.inner
                .borrow_mut()
                .replace(key, loaded.map(Block::Loaded));
            loading.notify();
        })
        .detach();
    }

    /// The wanted bytes of the block, for which `part` is read where they are not there.
    async fn bytes_of(
        &self,
        key: BlockKey,
        file: &SegmentFile,
        wanted: Range<usize>,
        part: Range<usize>,
    ) -> Result<Bytes, DiskError> {
        let loading = match self.inner.borrow().blocks.get(&key) {
            Some(Block::Loading(loading)) => Some(loading.wait()),
            _ => None,
        };
        if let Some(loading) = loading {
            loading.await;
        }
        if let Some(Block::Loaded(part)) = self.inner.borrow().blocks.get(&key)
            && let Some(bytes) = part.slice(&wanted)
        {
            return Ok(bytes);
        }
        let part = self.read_part(file, key, part).await?;
        let bytes = part
            .slice(&wanted)
            .expect("what is loaded covers what is wanted");
        self.inner
            .borrow_mut()
            .replace(key, Some(Block::Loaded(part)));
        Ok(bytes)
    }

    async fn read_part(
        &self,
        file: &SegmentFile,
        key: BlockKey,
        part: Range<usize>,
    ) -> Result<Part, DiskError> {
        let start = FilePosition(key.start() + part.start as u64);
        self.inner.borrow_mut().readers.note(key.segment);
        let started = Instant::now();
        let bytes = Bytes::from(file.read(start, part.len()).await?);
        self.metrics
            .record_disk_read(bytes.len(), started.elapsed().as_nanos() as u64);
        if bytes.len() < part.len() {
            return Err(DiskError::Short {
                operation: DiskOperation::Read,
                path: file.path().to_owned(),
                position: start,
                wanted_bytes: part.len(),
                got_bytes: bytes.len(),
                no_space: false,
            });
        }
        Ok(Part {
            from_bytes: part.start,
            bytes,
        })
    }
}

/// Which segments are read at present: those of the last reads from the disk. What is held does not say it, since where there are too
/// many they drop each other's blocks.
#[derive(Default)]
struct RecentReaders {
    reads: VecDeque<SegmentKey>,
    of_segment: FxHashMap<SegmentKey, usize>,
}

impl RecentReaders {
    fn note(&mut self, segment: SegmentKey) {
        self.reads.push_back(segment);
        *self.of_segment.entry(segment).or_default() += 1;
        if self.reads.len() > RECENT_READS_MAX
            && let Some(oldest) = self.reads.pop_front()
            && let Some(count) = self.of_segment.get_mut(&oldest)
        {
            *count -= 1;
            if *count == 0 {
                self.of_segment.remove(&oldest);
            }
        }
    }

    /// How many segments they are, with `segment`.
    fn count_with(&self, segment: SegmentKey) -> usize {
        self.of_segment.len() + usize::from(!self.of_segment.contains_key(&segment))
    }
}

impl Inner {
    /// What each of those segments may hold that are read at present, if `segment` is one of them.
    fn share_bytes(&self, segment: SegmentKey) -> usize {
        self.budget_bytes / self.readers.count_with(segment)
    }

    /// How far ahead of a sequential reader to fetch. What is fetched for one must not drop what the others come back for.
    fn blocks_ahead(&self, segment: SegmentKey) -> u64 {
        let share = (self.share_bytes(segment) / READ_BLOCK_BYTES) as u64;
        // The block where the reader stands, and the one that it goes on in.
        share.saturating_sub(2).min(READ_AHEAD_BLOCKS)
    }

    fn replace(&mut self, key: BlockKey, block: Option<Block>) {
        self.remove(key);
        let Some(block) = block else { return };
        if let Block::Loaded(part) = &block {
            self.held_bytes += part.bytes.len();
            self.order.push_back(key);
        }
        self.blocks.insert(key, block);
        while self.held_bytes > self.budget_bytes
            && let Some(&oldest) = self.order.front()
        {
            self.remove(oldest);
        }
    }

    fn remove(&mut self, key: BlockKey) {
        let Some(block) = self.blocks.remove(&key) else {
            return;
        };
        if let Block::Loaded(part) = block {
            self.held_bytes -= part.bytes.len();
            if self.order.front() == Some(&key) {
                self.order.pop_front();
            } else {
                self.order.retain(|it| *it != key);
            }
        }
    }

    /// But for those on their way, for which somebody waits.
    fn forget(&mut self, which: impl Fn(&BlockKey) -> bool) {
        let forgotten: Vec<_> = self.order.iter().filter(|it| which(it)).copied().collect();
        for key in forgotten {
            self.remove(key);
        }
    }
}

/// Which bytes of a block to read for those that are wanted: the whole of it, or from there as many as the reader's share.
fn part_to_load(wanted: &Range<usize>, share_bytes: usize, readable_bytes: usize) -> Range<usize> {
    if share_bytes >= READ_BLOCK_BYTES {
        return 0..readable_bytes;
    }
    let from = wanted.start - wanted.start % PAGE_BYTES;
    let to = wanted
        .end
        .max(from + share_bytes - share_bytes % PAGE_BYTES);
    from..to.min(readable_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Offset;

    fn segment_key(log: u64) -> SegmentKey {
        SegmentKey::appended(LogId(log), Offset(0))
    }

    fn part(from_bytes: usize, bytes: &'static [u8]) -> Part {
        let bytes = Bytes::from_static(bytes);
        Part { from_bytes, bytes }
    }

    fn holding(blocks: &[(u64, u64)]) -> Inner {
        let mut inner = Inner {
            budget_bytes: 24 * READ_BLOCK_BYTES,
            held_bytes: 0,
            blocks: FxHashMap::default(),
            order: VecDeque::new(),
            readers: RecentReaders::default(),
        };
        for &(segment, number) in blocks {
            inner.readers.note(segment_key(segment));
            let segment = segment_key(segment);
            inner.replace(
                BlockKey { segment, number },
                Some(Block::Loaded(part(0, b"a block"))),
            );
        }
        inner
    }

    #[test]
    fn many_segments_read_in_turn_get_less_ahead_so_that_none_drops_the_others_blocks() {
        let ahead = |segments: u64| {
            let blocks: Vec<_> = (0..segments).flat_map(|it| [(it, 0), (it, 1)]).collect();
            holding(&blocks).blocks_ahead(segment_key(0))
        };
        assert_eq!(ahead(1), READ_AHEAD_BLOCKS);
        assert_eq!(ahead(4), READ_AHEAD_BLOCKS);
        assert_eq!(ahead(6), 2);
        assert_eq!(ahead(12), 0);
        assert_eq!(ahead(100), 0);
    }

    #[test]
    fn more_segments_than_blocks_get_a_part_of_one_each() {
        let part = |segments: u64| {
            let blocks: Vec<_> = (0..segments).map(|it| (it, 0)).collect();
            let share_bytes = holding(&blocks).share_bytes(segment_key(0));
            part_to_load(&(10_000..20_000), share_bytes, READ_BLOCK_BYTES)
        };
        assert_eq!(part(24), 0..READ_BLOCK_BYTES);
        assert_eq!(part(96), 8_192..8_192 + READ_BLOCK_BYTES / 4);
        assert_eq!(part(1_024), 8_192..8_192 + READ_BLOCK_BYTES * 24 / 1_024);
    }

    #[test]
    fn a_part_is_what_is_wanted_at_least() {
        let part = part_to_load(&(10_000..20_000), PAGE_BYTES, READ_BLOCK_BYTES);
        assert_eq!(part, 8_192..20_000);
    }

    #[test]
    fn a_part_ends_where_the_block_or_what_is_readable_ends() {
        let share_bytes = READ_BLOCK_BYTES / 2;
        let wanted = READ_BLOCK_BYTES - 4_096..READ_BLOCK_BYTES;
        assert_eq!(part_to_load(&wanted, share_bytes, READ_BLOCK_BYTES), wanted);
        assert_eq!(part_to_load(&(0..100), share_bytes, 300), 0..300);
    }

    #[test]
    fn a_part_gives_only_what_it_covers() {
        let part = part(4_096, b"0123456789");
        assert_eq!(part.slice(&(4_098..4_100)).as_deref(), Some(&b"23"[..]));
        assert_eq!(part.slice(&(4_095..4_100)), None);
        assert_eq!(part.slice(&(4_098..4_107)), None);
    }

    #[test]
    fn what_is_dropped_for_the_budget_or_forgotten_is_held_no_more() {
        let mut inner = holding(&[(1, 0), (1, 1), (2, 0)]);
        inner.budget_bytes = inner.held_bytes;
        let (segment, number) = (segment_key(3), 0);
        inner.replace(
            BlockKey { segment, number },
            Some(Block::Loaded(part(0, b"a block"))),
        );
        inner.forget(|key| key.segment == segment_key(2));
        let mut held: Vec<_> = inner
            .blocks
            .keys()
            .map(|it| (it.segment, it.number))
            .collect();
        held.sort_unstable();
        assert_eq!(held, [(segment_key(1), 1), (segment, 0)]);
        assert_eq!(inner.held_bytes, 14);
    }

    #[test]
    fn a_segment_that_is_read_no_more_leaves_its_share_to_the_others() {
        let mut inner = holding(&[]);
        (0..100).for_each(|it| inner.readers.note(segment_key(it)));
        assert!(inner.share_bytes(segment_key(0)) < READ_BLOCK_BYTES);
        (0..RECENT_READS_MAX).for_each(|_| inner.readers.note(segment_key(0)));
        assert_eq!(inner.share_bytes(segment_key(0)), inner.budget_bytes);
    }
}
