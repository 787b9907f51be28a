//! The open segment files of one shard: opened on use, the least recently used one closed at the limit.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;

use rustc_hash::FxHashMap;

use crate::io::disk::{DiskError, DiskOperation, LogFile, OpenMode};
use crate::io::event::Event;
use crate::model::limits::RETIRED_FILES_MAX;
use crate::storage::log::{LogId, SegmentKey};
use crate::storage::retired_files::{Retired, RetiredFiles};

#[derive(Clone)]
pub struct OpenFiles {
    inner: Rc<RefCell<Inner>>,
}

struct Inner {
    limit: usize,
    files: FxHashMap<SegmentKey, Entry>,
    by_use: BTreeMap<u64, SegmentKey>,
    next_use: u64,
    /// Being opened now, one entry for each caller.
    opening: Vec<SegmentKey>,
    opened: Event,
    /// None of these is opened again.
    retired: RetiredFiles,
}

struct Entry {
    file: LogFile,
    used: u64,
}

impl OpenFiles {
    /// Holds at most `limit` files open (a file that is being read or written when it is closed here stays open until then).
    pub fn new(limit: usize) -> Self {
        assert!(limit > 0, "a shard needs at least one open file");
        let inner = Inner {
            limit,
            files: FxHashMap::default(),
            by_use: BTreeMap::new(),
            next_use: 0,
            opening: Vec::new(),
            opened: Event::new(),
            retired: RetiredFiles::new(RETIRED_FILES_MAX),
        };
        Self {
            inner: Rc::new(RefCell::new(inner)),
        }
    }

    /// The file of `key`, opened now if it is not open.
    pub async fn get(
        &self,
        key: SegmentKey,
        path: &Path,
        mode: OpenMode,
    ) -> Result<LogFile, DiskError> {
        if let Some(file) = self.inner.borrow_mut().touch(key) {
            return Ok(file);
        }
        if self.inner.borrow().retired.contains(key) {
            return Err(DiskError::File {
                operation: DiskOperation::Open,
                path: path.to_owned(),
                source: std::io::ErrorKind::NotFound.into(),
            });
        }
        self.inner.borrow_mut().opening.push(key);
        let file = LogFile::open(path, mode).await;
        let mut inner = self.inner.borrow_mut();
        let at = inner
            .opening
            .iter()
            .position(|other| *other == key)
            .expect("it was put there above");
        inner.opening.swap_remove(at);
        inner.opened.notify();
        let file = file?;
        if let Some(opened_meanwhile) = inner.touch(key) {
            return Ok(opened_meanwhile);
        }
        inner.insert(key, file.clone());
        Ok(file)
    }

    /// The file of `key`, if it is open.
    pub fn opened(&self, key: SegmentKey) -> Option<LogFile> {
        self.inner.borrow_mut().touch(key)
    }

    pub fn close(&self, key: SegmentKey) {
        self.inner.borrow_mut().remove(key);
    }

    /// Closes the files and opens none of them again. Completes when no opening is under way either: only then may they be renamed or
    /// removed, since a file is looked up a second time while it is opened (see `io::disk`).
    pub async fn retire(&self, what: Retired) {
        let keys = {
            let mut inner = self.inner.borrow_mut();
            inner.retired.insert(what);
            inner
                .files
                .keys()
                .filter(|key| what.covers(**key))
                .copied()
                .collect::<Vec<_>>()
        };
        for key in keys {
            self.close(key);
        }
        loop {
            let opened = {
                let inner = self.inner.borrow();
                if !inner.opening.iter().any(|key| what.covers(*key)) {
                    return;
                }
                inner.opened.wait()
            };
            opened.await;
        }
    }

    /// Whether the file was retired, so that who planned to read it has to look for the records elsewhere.
    pub fn is_retired(&self, key: SegmentKey) -> bool {
        self.inner.borrow().retired.contains(key)
    }

    /// Closes every file of a log that has gone idle.
    pub fn close_log(&self, log: LogId) {
        let mut inner = self.inner.borrow_mut();
        let keys: Vec<_> = inner
            .files
            .keys()
            .filter(|key| key.log == log)
            .copied()
            .collect();
        for key in keys {
            inner.remove(key);
        }
    }

    pub fn len(&self) -> usize {
        self.inner.borrow().files.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Inner {
    fn touch(&mut self, key: SegmentKey) -> Option<LogFile> {
        let entry = self.files.get_mut(&key)?;
        self.by_use.remove(&entry.used);
        entry.used = self.next_use;
        self.by_use.insert(entry.used, key);
        self.next_use += 1;
        Some(entry.file.clone())
    }

    fn insert(&mut self, key: SegmentKey, file: LogFile) {
        while self.files.len() >= self.limit {
            let (_, oldest) = self.by_use.pop_first().expect("every open file has a use");
            self.files.remove(&oldest);
        }
        self.by_use.insert(self.next_use, key);
        self.files.insert(
            key,
            Entry {
                file,
                used: self.next_use,
            },
        );
        self.next_use += 1;
    }

    fn remove(&mut self, key: SegmentKey) {
        if let Some(entry) = self.files.remove(&key) {
            self.by_use.remove(&entry.used);
        }
    }
}
