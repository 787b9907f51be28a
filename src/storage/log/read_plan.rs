//! Where the bytes are that a reader asks for: in memory, or in which file and from where on. Nothing is read here.

use std::path::PathBuf;
use std::rc::Rc;

use crate::model::{FilePosition, Offset, TimestampMs};
use crate::storage::appender::LogMark;
use crate::storage::batch_selection::{Selection, Wanted, select};
use crate::storage::byte_run::ByteRun;
use crate::storage::newest_record::NewestOf;
use crate::storage::read_steps::ReadSteps;
use crate::storage::sealed_segment::SealedSegment;
use crate::storage::segment_indexes::floor_by_time;

use super::{Log, SegmentKey};

/// Where the bytes for a reader are.
pub enum ReadPlan {
    /// In memory: whole batches, or none yet where the search for the first goes on at `rest`.
    Memory {
        run: ByteRun,
        /// Where to look on, if the steps or the segment ended before a bound was reached.
        rest: Option<ReadPlace>,
    },
    /// On disk: `reader` fetches them.
    Disk(SegmentRead),
    Nothing,
    Corrupt {
        segment: Offset,
        position: FilePosition,
    },
}

/// A batch boundary from which a read goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadPlace {
    segment: SegmentKey,
    position: FilePosition,
    /// What is wanted there.
    pub offset: Offset,
}

/// The batch that holds an offset, or the first after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchPlace {
    pub start: FilePosition,
    pub end: FilePosition,
}

/// What lies ahead of a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ahead {
    /// So many bytes, at the most an index interval too many where the disk would have to be asked.
    Bytes(u64),
    /// The rest of a segment that is not appended to any more, and what follows.
    OlderSegment,
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

impl Floor {
    /// Where it is, if that needs no file.
    fn in_memory(&self, offset: Offset) -> Option<FilePosition> {
        match self {
            Self::At(position) => Some(*position),
            Self::InIndexOf(segment) => segment.indexes_in_memory().map(|it| it.floor(offset)),
        }
    }
}

/// A segment as a lookup by time sees it.
pub struct SegmentView {
    pub key: SegmentKey,
    pub path: PathBuf,
    pub floor: Floor,
    pub readable_end: FilePosition,
}

impl Log {
    /// Where the batches from `wanted.offset` on are. The offset must lie in the log. `from` is where an earlier plan of the same read
    /// left off; it is of no account where its segment has been replaced.
    pub fn plan_read(
        &self,
        wanted: Wanted,
        from: Option<ReadPlace>,
        steps: &mut ReadSteps,
    ) -> ReadPlan {
        let Some(view) = self.segment_for(wanted.offset) else {
            return ReadPlan::Nothing;
        };
        let SegmentView {
            key,
            path,
            floor,
            readable_end,
        } = view;
        let from = from.filter(|place| place.segment == key && place.offset == wanted.offset);
        let at = match from {
            Some(place) => Some(place.position),
            None => floor.in_memory(wanted.offset),
        };
        let nothing = || match self.after_hole(key, wanted) {
            Some(next) => ReadPlan::Memory {
                run: ByteRun::starting_at(FilePosition::ZERO),
                rest: Some(ReadPlace {
                    segment: key,
                    position: readable_end,
                    offset: next,
                }),
            },
            None => ReadPlan::Nothing,
        };
        if at.is_some_and(|at| at >= readable_end) {
            return nothing();
        }
        let in_memory =
            at.and_then(|at| self.select_in_memory(key, at, readable_end, wanted, steps));
        let place = |position, offset| ReadPlace {
            segment: key,
            position,
            offset,
        };
        match in_memory {
            Some((
                run,
                Selection::Batches {
                    start,
                    end,
                    next,
                    goes_on,
                },
            )) => {
                let is_sealed = key.segment < self.active.base_offset();
                let goes_on = goes_on || is_sealed && end == readable_end;
                ReadPlan::Memory {
                    run: run.cut(start, end),
                    rest: goes_on.then(|| place(end, next)),
                }
            }
            Some((_, Selection::Paused { position })) => ReadPlan::Memory {
                run: ByteRun::starting_at(position),
                rest: Some(place(position, wanted.offset)),
            },
            Some((_, Selection::Nothing)) => nothing(),
            Some((_, Selection::Corrupt { position })) => ReadPlan::Corrupt {
                segment: key.segment,
                position,
            },
            Some((_, Selection::Needs { .. })) | None => ReadPlan::Disk(SegmentRead {
                key,
                path,
                floor: from.map_or(floor, |place| Floor::At(place.position)),
                readable_end,
                wanted,
            }),
        }
    }

    /// Where to read on after a read of `key` that found nothing: its last batches may be missing, and no reader may wait there for ever.
    /// `None` where what is wanted may come, or was too large.
    pub fn after_hole(&self, key: SegmentKey, wanted: Wanted) -> Option<Offset> {
        let segment = self.sealed.find(wanted.offset)?;
        let next = segment.next_offset();
        let is_passed = segment.key(self.id) == key && wanted.first_whole && next < wanted.below;
        is_passed.then_some(next)
    }

    /// What memory holds of a segment from the batch at `start` on, and which of it is wanted; `None` if it does not hold that.
    fn select_in_memory(
        &self,
        key: SegmentKey,
        mut start: FilePosition,
        readable_end: FilePosition,
        wanted: Wanted,
        steps: &mut ReadSteps,
    ) -> Option<(ByteRun, Selection)> {
        let mut must_reach = start;
        let mut end = start
            .plus(wanted.max_bytes as u64)
            .plus(self.settings.index_interval_bytes);
        loop {
            let run = self.in_memory(key, start, must_reach, end.min(readable_end), steps)?;
            match select(&run, wanted, readable_end, steps) {
                Selection::Needs {
                    start: from,
                    end: to,
                } if run.end() < to && must_reach < to => {
                    (start, must_reach) = (from, to);
                    end = to.max(from.plus(wanted.max_bytes as u64));
                }
                selection => return Some((run, selection)),
            }
        }
    }

    /// The batch that holds `offset`, or the first after it, if that is below `below` and in memory.
    pub fn batch_in_memory(&self, offset: Offset, below: Offset) -> Option<BatchPlace> {
        let wanted = Wanted {
            offset,
            max_bytes: 0,
            first_whole: true,
            below,
        };
        let (key, end) = (
            self.active_key(),
            self.readable_end(self.active.base_offset(), self.active.size()),
        );
        let floor = self.active_floor(offset)?;
        match self.select_in_memory(key, floor, end, wanted, &mut ReadSteps::slice())? {
            (_, Selection::Batches { start, end, .. }) => Some(BatchPlace { start, end }),
            _ => None,
        }
    }

    /// What there is from the batch of `offset` on, up to `end`, without a look at the batches.
    pub fn ahead_at_most(&self, offset: Offset, end: LogMark) -> Ahead {
        if offset >= end.offset {
            return Ahead::Bytes(0);
        }
        match self.active_floor(offset) {
            Some(floor) if end.segment == self.active.base_offset() => {
                Ahead::Bytes(end.position.0.saturating_sub(floor.0))
            }
            _ => Ahead::OlderSegment,
        }
    }

    /// The same, to the byte where memory holds the batch of `offset`.
    pub fn ahead(&self, offset: Offset, end: LogMark) -> Ahead {
        match self.ahead_at_most(offset, end) {
            Ahead::Bytes(bytes) if bytes > 0 => {
                let place = self.batch_in_memory(offset, end.offset);
                Ahead::Bytes(place.map_or(bytes, |place| end.position.0 - place.start.0))
            }
            ahead => ahead,
        }
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

    /// What each segment says of the largest timestamp from the log's start on and below `below`. A segment that holds one of the
    /// `misleading` batches is looked at batch by batch, since its largest timestamp may be that one's.
    pub fn plan_newest(&self, below: Offset, misleading: &[Offset]) -> Vec<NewestOf> {
        let start = self.start;
        let mut segments = Vec::new();
        for segment in self.sealed.iter() {
            let (base, next) = (segment.base_offset(), segment.next_offset());
            if next <= start || base >= below {
                continue;
            }
            let is_misled = misleading.iter().any(|it| (base..next).contains(it));
            segments.push(if base >= start && next <= below && !is_misled {
                NewestOf::Whole(segment.max_timestamp())
            } else {
                NewestOf::Part {
                    view: SegmentView {
                        key: segment.key(self.id),
                        path: segment.path().to_owned(),
                        floor: Floor::InIndexOf(segment.clone()),
                        readable_end: self.readable_end(base, segment.size()),
                    },
                    from: base.max(start),
                    newest: TimestampMs::NONE,
                }
            });
        }
        let base = self.active.base_offset();
        if base >= below {
            return segments;
        }
        let indexes = self.active.indexes();
        let is_misled = misleading.iter().any(|it| *it >= base);
        // The batches up to an entry of the offset index are covered by the time index.
        let indexed = indexes.offsets().lookup(below.plus(-1));
        let (from, floor, newest) = if base >= start && !is_misled {
            let newest = indexes.times().last_below(below);
            let newest = newest.map_or(TimestampMs::NONE, |entry| entry.timestamp);
            (indexed.offset, indexed.position, newest)
        } else {
            let from = base.max(start);
            let floor = indexes.offsets().lookup(from).position;
            (from, floor, TimestampMs::NONE)
        };
        segments.push(NewestOf::Part {
            view: SegmentView {
                key: self.active_key(),
                path: self.active.path().to_owned(),
                floor: Floor::At(floor),
                readable_end: self.readable_end(base, self.active.size()),
            },
            from,
            newest,
        });
        segments
    }

    /// What memory holds of a segment as it was appended to; of a cleaned one it holds nothing.
    fn in_memory(
        &self,
        key: SegmentKey,
        start: FilePosition,
        must_reach: FilePosition,
        end: FilePosition,
        steps: &mut ReadSteps,
    ) -> Option<ByteRun> {
        if key.generation > 0 {
            return None;
        }
        let pieces_max = steps.pieces_max();
        let run = self
            .tail
            .read(key.segment, start, must_reach, end, pieces_max)?;
        steps.take(run.piece_count());
        Some(run)
    }

    /// A batch boundary of the active segment at or before `offset`; `None` if the offset is in an older segment.
    fn active_floor(&self, offset: Offset) -> Option<FilePosition> {
        let is_active = offset >= self.active.base_offset();
        is_active.then(|| self.active.indexes().offsets().lookup(offset).position)
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
