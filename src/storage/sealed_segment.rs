//! A sealed segment: exact length, never written again. Its indexes are read when somebody looks something up in it.

use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use crate::io::event::Event;
use crate::model::{FilePosition, Offset, TimestampMs};
use crate::storage::file_error::FileError;
use crate::storage::log::{LogId, SegmentKey};
use crate::storage::offset_index::SegmentEnd;
use crate::storage::segment_indexes::SegmentIndexes;
use crate::storage::segment_name::{SegmentFileKind, SegmentFileName};

pub struct SealedSegment {
    base_offset: Offset,
    next_offset: Offset,
    size: FilePosition,
    max_timestamp: TimestampMs,
    written_at: TimestampMs,
    path: PathBuf,
    index_interval_bytes: u64,
    generation: u32,
    indexes: RefCell<Option<Rc<SegmentIndexes>>>,
    /// Whether their files have the indexes: a full disk may have refused them, and a segment that was just rolled is yet to be sealed.
    are_indexes_stored: Cell<bool>,
    /// Reads of the index files that are under way.
    loading_count: Cell<u32>,
    loaded: Event,
    /// The files of its name are, or are about to be, another segment's.
    is_replaced: Cell<bool>,
}

impl SealedSegment {
    /// Indexes that are given count as not stored until [`note_indexes_stored`](Self::note_indexes_stored).
    pub fn new(
        directory: &Path,
        base_offset: Offset,
        next_offset: Offset,
        size: FilePosition,
        max_timestamp: TimestampMs,
        index_interval_bytes: u64,
        indexes: Option<SegmentIndexes>,
    ) -> Self {
        Self {
            base_offset,
            next_offset,
            size,
            max_timestamp,
            written_at: TimestampMs::NONE,
            index_interval_bytes,
            path: directory
                .join(SegmentFileName::new(base_offset, SegmentFileKind::Log).to_string()),
            generation: 0,
            are_indexes_stored: Cell::new(indexes.is_none()),
            indexes: RefCell::new(indexes.map(Rc::new)),
            loading_count: Cell::new(0),
            loaded: Event::new(),
            is_replaced: Cell::new(false),
        }
    }

    /// The same as a later generation of the files of this name.
    pub fn of_generation(self, generation: u32) -> Self {
        Self { generation, ..self }
    }

    /// How often the files of its name were replaced before.
    pub fn generation(&self) -> u32 {
        self.generation
    }

    pub fn key(&self, log: LogId) -> SegmentKey {
        SegmentKey {
            log,
            segment: self.base_offset,
            generation: self.generation,
        }
    }

    /// The same segment, written at this time of the wall clock.
    pub fn written_at(self, written_at: TimestampMs) -> Self {
        Self { written_at, ..self }
    }

    pub fn base_offset(&self) -> Offset {
        self.base_offset
    }

    /// The offset behind its last record.
    pub fn next_offset(&self) -> Offset {
        self.next_offset
    }

    pub fn size(&self) -> FilePosition {
        self.size
    }

    pub fn max_timestamp(&self) -> TimestampMs {
        self.max_timestamp
    }

    /// What its age counts from: the largest timestamp, or when it was written where no record has one (Kafka's rule).
    pub fn newest(&self) -> TimestampMs {
        match self.max_timestamp {
            TimestampMs::NONE => self.written_at,
            newest => newest,
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its indexes, if they are in memory.
    pub fn indexes_in_memory(&self) -> Option<Rc<SegmentIndexes>> {
        self.indexes.borrow().clone()
    }

    /// Its indexes, from memory or read from their files now.
    pub async fn indexes(&self) -> Result<Rc<SegmentIndexes>, FileError> {
        if let Some(indexes) = &*self.indexes.borrow() {
            return Ok(indexes.clone());
        }
        let directory = self
            .path
            .parent()
            .expect("a segment lies in a directory")
            .to_owned();
        let (base_offset, interval_bytes) = (self.base_offset, self.index_interval_bytes);
        let end = SegmentEnd {
            offset: self.next_offset,
            position: self.size,
        };
        if self.is_replaced.get() {
            return Err(FileError {
                operation: "read the replaced indexes of",
                path: self.path.clone(),
                source: std::io::ErrorKind::NotFound.into(),
            });
        }
        let load = move || SegmentIndexes::load(&directory, base_offset, end, interval_bytes);
        self.loading_count.set(self.loading_count.get() + 1);
        let indexes = crate::io::blocking::run(load).await;
        self.loading_count.set(self.loading_count.get() - 1);
        self.loaded.notify();
        let (indexes, is_stored) = indexes?;
        self.are_indexes_stored.set(is_stored);
        let indexes = Rc::new(indexes);
        *self.indexes.borrow_mut() = Some(indexes.clone());
        Ok(indexes)
    }

    /// From here on its index files are not read (or made anew) any more. Completes when nobody does: then they may be replaced. Who
    /// reads the segment without having its indexes gets an error, and looks for the one that took its place.
    pub async fn retire(&self) {
        self.is_replaced.set(true);
        while self.loading_count.get() > 0 {
            self.loaded.wait().await;
        }
    }

    /// Lets go of indexes that are on disk too. A log that nobody reads holds no others.
    pub fn release_indexes(&self) {
        if self.are_indexes_stored.get() {
            *self.indexes.borrow_mut() = None;
        }
    }

    /// Indexes that only memory has.
    pub fn unstored_indexes(&self) -> Option<Rc<SegmentIndexes>> {
        let is_stored = self.are_indexes_stored.get();
        self.indexes_in_memory().filter(|_| !is_stored)
    }

    /// Their files have the indexes from now on.
    pub fn note_indexes_stored(&self) {
        self.are_indexes_stored.set(true);
    }
}
