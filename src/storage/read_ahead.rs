//! Reads of what memory no longer holds: large O_DIRECT blocks, shared by readers of the same place, fetched ahead of a
//! sequential reader. It has a budget of its own, so a cold reader never evicts a log's tail.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::path::Path;
use std::rc::Rc;
use std::time::Instant;

use bytes::Bytes;
use rustc_hash::FxHashMap;

use crate::io::disk::{DiskError, DiskOperation, LogFile, OpenMode};
use crate::io::event::Event;
use crate::metrics::ShardMetrics;
use crate::model::FilePosition;
use crate::model::limits::{READ_AHEAD_BLOCKS, READ_BLOCK_BYTES};
use crate::storage::byte_run::ByteRun;
use crate::storage::log::{LogId, SegmentKey};
use crate::storage::open_files::OpenFiles;

/// Block `number` covers the file from `number * READ_BLOCK_BYTES` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct BlockKey {
    segment: SegmentKey,
    number: u64,
}

enum Block {
    /// Being read; who wants it waits for the notification and looks again.
    Loading(Event),
    /// As much of it as was readable when it was read: the block at a segment's growing end is read again.
    Loaded(Bytes),
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
}

impl ReadAhead {
    pub fn new(budget_bytes: usize, files: OpenFiles, metrics: ShardMetrics) -> Self {
        let inner = Inner {
            budget_bytes,
            held_bytes: 0,
            blocks: FxHashMap::default(),
            order: VecDeque::new(),
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
        for number in first..=last + ahead {
            let key = BlockKey { segment, number };
            if number * (READ_BLOCK_BYTES as u64) < readable_end.0 && !self.is_there(key, end) {
                self.start_loading(key, &file, readable_end);
            }
        }
        let mut run = ByteRun::starting_at(start);
        for number in first..=last {
            let block_start = number * READ_BLOCK_BYTES as u64;
            let from = (start.0.max(block_start) - block_start) as usize;
            let to = (end.0.min(block_start + READ_BLOCK_BYTES as u64) - block_start) as usize;
            run.push(
                self.block(BlockKey { segment, number }, &file, to, readable_end)
                    .await?
                    .slice(from..to),
            );
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

    /// Whether the block is loaded far enough for a read up to `end`, or on its way.
    fn is_there(&self, key: BlockKey, end: FilePosition) -> bool {
        let needed = end
            .0
            .saturating_sub(key.number * READ_BLOCK_BYTES as u64)
            .min(READ_BLOCK_BYTES as u64);
        match self.inner.borrow().blocks.get(&key) {
            Some(Block::Loading(_)) => true,
            Some(Block::Loaded(bytes)) => bytes.len() as u64 >= needed,
            None => false,
        }
    }

    fn start_loading(&self, key: BlockKey, file: &LogFile, readable_end: FilePosition) {
        let (this, file) = (self.clone(), file.clone());
        let loading = Event::new();
        this.inner
            .borrow_mut()
            .replace(key, Some(Block::Loading(loading.clone())));
        crate::io::executor::spawn_local(async move {
            // A failure leaves no block behind: whoever needs it reads it again and gets the error.
            let loaded = this.read_block(&file, key, readable_end).await.ok();
            this.inner
                .borrow_mut()
                .replace(key, loaded.map(Block::Loaded));
            loading.notify();
        })
        .detach();
    }

    /// The block, at least its first `needed_bytes`.
    async fn block(
        &self,
        key: BlockKey,
        file: &LogFile,
        needed_bytes: usize,
        readable_end: FilePosition,
    ) -> Result<Bytes, DiskError> {
        let loading = match self.inner.borrow().blocks.get(&key) {
            Some(Block::Loaded(bytes)) if bytes.len() >= needed_bytes => return Ok(bytes.clone()),
            Some(Block::Loading(loading)) => Some(loading.wait()),
            _ => None,
        };
        if let Some(loading) = loading {
            loading.await;
            if let Some(Block::Loaded(bytes)) = self.inner.borrow().blocks.get(&key)
                && bytes.len() >= needed_bytes
            {
                return Ok(bytes.clone());
            }
        }
        let bytes = self.read_block(file, key, readable_end).await?;
        self.inner
            .borrow_mut()
            .replace(key, Some(Block::Loaded(bytes.clone())));
        Ok(bytes)
    }

    /// Reads a block, up to what is readable of it.
    async fn read_block(
        &self,
        file: &LogFile,
        key: BlockKey,
        readable_end: FilePosition,
    ) -> Result<Bytes, DiskError> {
        let start = key.number * READ_BLOCK_BYTES as u64;
        let len_bytes = (readable_end.0 - start).min(READ_BLOCK_BYTES as u64) as usize;
        let started = Instant::now();
        let bytes = Bytes::from(file.read(FilePosition(start), len_bytes).await?);
        self.metrics
            .record_disk_read(bytes.len(), started.elapsed().as_nanos() as u64);
        if bytes.len() < len_bytes {
            return Err(DiskError::Short {
                operation: DiskOperation::Read,
                path: file.path().to_owned(),
                position: FilePosition(start),
                wanted_bytes: len_bytes,
                got_bytes: bytes.len(),
                no_space: false,
            });
        }
        Ok(bytes)
    }
}

impl Inner {
    /// How far ahead of a sequential reader to fetch. What is fetched for one must not drop what the others come back for: where many
    /// segments are read in turn, each has but its share of the budget, and fetching ahead would read everything several times.
    fn blocks_ahead(&self, segment: SegmentKey) -> u64 {
        let mut segments: Vec<SegmentKey> = self.blocks.keys().map(|key| key.segment).collect();
        segments.push(segment);
        segments.sort_unstable();
        segments.dedup();
        let share = (self.budget_bytes / READ_BLOCK_BYTES / segments.len()) as u64;
        // The block where the reader stands, and the one that it goes on in.
        share.saturating_sub(2).min(READ_AHEAD_BLOCKS)
    }

    fn replace(&mut self, key: BlockKey, block: Option<Block>) {
        let added = match &block {
            Some(Block::Loaded(bytes)) => Some(bytes.len()),
            _ => None,
        };
        let before = match block {
            Some(block) => self.blocks.insert(key, block),
            None => self.blocks.remove(&key),
        };
        if let Some(Block::Loaded(bytes)) = before {
            self.held_bytes -= bytes.len();
            self.order.retain(|it| *it != key);
        }
        if let Some(bytes) = added {
            self.held_bytes += bytes;
            self.order.push_back(key);
        }
        while self.held_bytes > self.budget_bytes
            && let Some(oldest) = self.order.pop_front()
        {
            if let Some(Block::Loaded(bytes)) = self.blocks.remove(&oldest) {
                self.held_bytes -= bytes.len();
            }
        }
    }

    fn forget(&mut self, which: impl Fn(&BlockKey) -> bool) {
        self.order.retain(|key| !which(key));
        let held_bytes = &mut self.held_bytes;
        self.blocks.retain(|key, block| {
            let forgotten = which(key) && matches!(block, Block::Loaded(_));
            if let (true, Block::Loaded(bytes)) = (forgotten, block) {
                *held_bytes -= bytes.len();
            }
            !forgotten
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Offset;

    fn segment_key(log: u64) -> SegmentKey {
        SegmentKey::appended(LogId(log), Offset(0))
    }

    fn holding(blocks: &[(u64, u64)]) -> Inner {
        let mut inner = Inner {
            budget_bytes: 24 * READ_BLOCK_BYTES,
            held_bytes: 0,
            blocks: FxHashMap::default(),
            order: VecDeque::new(),
        };
        for &(segment, number) in blocks {
            let segment = segment_key(segment);
            inner.replace(
                BlockKey { segment, number },
                Some(Block::Loaded(Bytes::from_static(b"a block"))),
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
}
