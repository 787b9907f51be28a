//! Where the bytes are that a reader asks for: in memory, or in which file and from where on. Nothing is read here.

use std::path::PathBuf;
use std::rc::Rc;

use crate::model::{FilePosition, Offset, TimestampMs};
use crate::storage::batch_selection::{Selection, Wanted, select};
use crate::storage::byte_run::ByteRun;
use crate::storage::sealed_segment::SealedSegment;
use crate::storage::segment_indexes::floor_by_time;

use super::{Log, SegmentKey};

/// Where the bytes for a reader are.
pub enum ReadPlan {
    /// In memory, whole batches.
    Memory(ByteRun),
    /// On disk: `reader` fetches them.
    Disk(SegmentRead),
    Nothing,
    Corrupt {
        segment: Offset,
        position: FilePosition,
    },
}

/// A read of one segment file.
pub struct SegmentRead {
    pub key: SegmentKey,
    pub path: PathBuf,
    pub floor: Floor,
    pub readable_end: FilePosition,
    pub wanted: Wanted,
}

/// The batch boundary at or before the wanted offset.
pub enum Floor {
    At(FilePosition),
    /// To be looked up in the segment's index, which may have to be read first.
    InIndexOf(Rc<SealedSegment>),
}

/// A segment as a lookup by time sees it.
pub struct SegmentView {
    pub key: SegmentKey,
    pub path: PathBuf,
    pub floor: Floor,
    pub readable_end: FilePosition,
}

impl Log {
    /// Where the batches from `wanted.offset` on are. The offset must lie in the log.
    pub fn plan_read(&self, wanted: Wanted) -> ReadPlan {
        let Some(view) = self.segment_for(wanted.offset) else {
            return ReadPlan::Nothing;
        };
        let SegmentView {
            key,
            path,
            floor,
            readable_end,
        } = view;
        let at = match &floor {
            Floor::At(at) => Some(*at),
            Floor::InIndexOf(segment) => segment
                .indexes_in_memory()
                .map(|it| it.floor(wanted.offset)),
        };
        if at.is_some_and(|at| at >= readable_end) {
            return ReadPlan::Nothing;
        }
        if let Some(mut start) = at {
            let mut end =
                start.plus((wanted.max_bytes) as u64 + self.settings.index_interval_bytes);
            while let Some(run) = self.in_memory(key, start, end.min(readable_end)) {
                match select(&run, wanted, readable_end, false) {
                    Selection::Batches { start, end } => {
                        return ReadPlan::Memory(run.cut(start, end));
                    }
                    Selection::Nothing => return ReadPlan::Nothing,
                    Selection::Corrupt { position } => {
                        return ReadPlan::Corrupt {
                            segment: key.segment,
                            position,
                        };
                    }
                    Selection::Needs {
                        start: from,
                        end: to,
                    } => {
                        start = from;
                        end = to.max(from.plus(wanted.max_bytes as u64));
                    }
                }
            }
        }
        ReadPlan::Disk(SegmentRead {
            key,
            path,
            floor,
            readable_end,
            wanted,
        })
    }

    /// The segments, oldest first, that may hold a record with a timestamp of `timestamp` or later.
    pub fn plan_time_lookup(&self, timestamp: TimestampMs) -> Vec<SegmentView> {
        let sealed = self
            .sealed
            .iter()
            .filter(|it| it.max_timestamp() >= timestamp && it.next_offset() > self.start);
        let mut views: Vec<_> = sealed
            .map(|segment| SegmentView {
                key: segment.key(self.id),
                path: segment.path().to_owned(),
                floor: Floor::InIndexOf(segment.clone()),
                readable_end: self.readable_end(segment.base_offset(), segment.size()),
            })
            .collect();
        if self.active.max_timestamp() >= timestamp {
            let indexes = self.active.indexes();
            let offset = floor_by_time(indexes.times(), timestamp);
            views.push(SegmentView {
                key: self.active_key(),
                path: self.active.path().to_owned(),
                floor: Floor::At(indexes.offsets().lookup(offset).position),
                readable_end: self.readable_end(self.active.base_offset(), self.active.size()),
            });
        }
        views
    }

    /// What memory holds of a segment as it was appended to; of a cleaned one it holds nothing.
    fn in_memory(
        &self,
        key: SegmentKey,
        start: FilePosition,
        end: FilePosition,
    ) -> Option<ByteRun> {
        if key.generation > 0 {
            return None;
        }
        self.tail.read(key.segment, start, end)
    }

    /// How far a segment may be read: up to what is written.
    fn readable_end(&self, segment: Offset, size: FilePosition) -> FilePosition {
        let written = self.written();
        match segment.cmp(&written.segment) {
            std::cmp::Ordering::Less => size,
            std::cmp::Ordering::Equal => written.position,
            std::cmp::Ordering::Greater => FilePosition::ZERO,
        }
    }

    fn segment_for(&self, offset: Offset) -> Option<SegmentView> {
        if offset >= self.active.base_offset() {
            return Some(SegmentView {
                key: self.active_key(),
                path: self.active.path().to_owned(),
                floor: Floor::At(self.active.indexes().offsets().lookup(offset).position),
                readable_end: self.readable_end(self.active.base_offset(), self.active.size()),
            });
        }
        let segment = self.sealed.find(offset)?;
        Some(SegmentView {
            key: segment.key(self.id),
            path: segment.path().to_owned(),
            floor: Floor::InIndexOf(segment.clone()),
            readable_end: self.readable_end(segment.base_offset(), segment.size()),
        })
    }
}
