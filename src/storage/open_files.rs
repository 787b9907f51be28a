//! The open segment files of one shard: opened on use, the least recently used one that nobody reads or writes closed at the limit.
//!
//! What counts against the limit are descriptors: files that are open, those being opened or closed, and those that are no longer kept
//! here but that somebody still uses. Where nothing can be closed, whoever wants a file waits in a queue, at most `OPEN_FILE_WAIT_MS`, and
//! is then told that descriptors are short, which is no failure of the disk. The same holds where the whole process or the system
//! has none left, whatever the limit here is.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Deref;
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

use crate::io::disk::{DiskError, DiskOperation, FileWatch, LogFile, OpenMode};
use crate::io::event::Event;
use crate::io::executor;
use crate::io::os_error::Shortage;
use crate::model::limits::{OPEN_FILE_RETRY_MS, OPEN_FILE_WAIT_MS, RETIRED_FILES_MAX};
use crate::storage::descriptor_queue::DescriptorQueue;
use crate::storage::log::{LogId, SegmentKey};
use crate::storage::retired_files::{Retired, RetiredFiles};

#[derive(Clone)]
pub struct OpenFiles {
    inner: Rc<RefCell<Inner>>,
    waiting: Rc<DescriptorQueue>,
}

/// An open file in use: it is not closed as long as this lives. A clone is the same open file.
pub struct SegmentFile {
    file: LogFile,
    waiting: Rc<DescriptorQueue>,
}

struct Inner {
    limit: usize,
    files: FxHashMap<SegmentKey, Entry>,
    by_use: BTreeMap<u64, SegmentKey>,
    next_use: u64,
    /// Places for files that are being opened, or closed to make one.
    places: usize,
    /// No longer kept here, but perhaps still used.
    leaving: Vec<FileWatch>,
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

/// The right to have one more descriptor; given back when it is dropped.
struct Place {
    files: OpenFiles,
}

impl OpenFiles {
    /// Has at most `limit` descriptors at a time.
    pub fn new(limit: usize) -> Self {
        assert!(limit > 0, "a shard needs at least one open file");
        let inner = Inner {
            limit,
            files: FxHashMap::default(),
            by_use: BTreeMap::new(),
            next_use: 0,
            places: 0,
            leaving: Vec::new(),
            opening: Vec::new(),
            opened: Event::new(),
            retired: RetiredFiles::new(RETIRED_FILES_MAX),
        };
        Self {
            inner: Rc::new(RefCell::new(inner)),
            waiting: Rc::default(),
        }
    }

    /// The file of `key`, opened now if it is not open. An error with a shortage says that it may be asked for again later.
    pub async fn get(
        &self,
        key: SegmentKey,
        path: &Path,
        mode: OpenMode,
    ) -> Result<SegmentFile, DiskError> {
        if let Some(file) = self.opened(key) {
            return Ok(file);
        }
        let deadline = Instant::now() + Duration::from_millis(OPEN_FILE_WAIT_MS);
        let mut place = self.place(path, deadline).await?;
        loop {
            if let Some(opened_meanwhile) = self.opened(key) {
                return Ok(opened_meanwhile);
            }
            if self.inner.borrow().retired.contains(key) {
                return Err(DiskError::File {
                    operation: DiskOperation::Open,
                    path: path.to_owned(),
                    source: std::io::ErrorKind::NotFound.into(),
                });
            }
            let opening = self.begin_opening(key);
            let opened = LogFile::open(path, mode).await;
            drop(opening);
            match opened {
                // Nobody would close it again: who retires a file has closed what was there.
                Ok(file) if self.inner.borrow().retired.contains(key) => {
                    // Nothing was written through it.
                    let _ = file.close().await;
                }
                Ok(file) => {
                    if let Some(opened_meanwhile) = self.opened(key) {
                        return Ok(opened_meanwhile);
                    }
                    self.inner.borrow_mut().insert(key, file.clone());
                    // The file has taken the place.
                    drop(place);
                    return Ok(self.in_use(file));
                }
                Err(error) => place = self.wait_out(error, place, deadline).await?,
            }
        }
    }

    /// A file that is not kept here; it counts as long as it is open.
    pub async fn open_apart(&self, path: &Path, mode: OpenMode) -> Result<SegmentFile, DiskError> {
        let deadline = Instant::now() + Duration::from_millis(OPEN_FILE_WAIT_MS);
        let mut place = self.place(path, deadline).await?;
        loop {
            match LogFile::open(path, mode).await {
                Ok(file) => {
                    self.inner.borrow_mut().leaving.push(file.watch());
                    drop(place);
                    return Ok(self.in_use(file));
                }
                Err(error) => place = self.wait_out(error, place, deadline).await?,
            }
        }
    }

    /// The file of `key`, if it is open.
    pub fn opened(&self, key: SegmentKey) -> Option<SegmentFile> {
        let file = self.inner.borrow_mut().touch(key)?;
        Some(self.in_use(file))
    }

    pub fn close(&self, key: SegmentKey) {
        self.inner.borrow_mut().remove(key);
        self.waiting.help_one();
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
        let keys: Vec<_> = {
            let inner = self.inner.borrow();
            let of_log = inner.files.keys().filter(|key| key.log == log);
            of_log.copied().collect()
        };
        for key in keys {
            self.close(key);
        }
    }

    pub fn len(&self) -> usize {
        self.inner.borrow().files.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn limit(&self) -> usize {
        self.inner.borrow().limit
    }

    /// How often somebody was told that descriptors are short, since this was last asked.
    pub fn take_given_up(&self) -> u64 {
        self.waiting.take_given_up()
    }

    fn in_use(&self, file: LogFile) -> SegmentFile {
        SegmentFile {
            file,
            waiting: self.waiting.clone(),
        }
    }

    fn begin_opening(&self, key: SegmentKey) -> impl Drop + use<> {
        self.inner.borrow_mut().opening.push(key);
        Opening {
            inner: self.inner.clone(),
            key,
        }
    }

    /// Waits until one more file may be open, and closes one for it where that helps.
    async fn place(&self, path: &Path, deadline: Instant) -> Result<Place, DiskError> {
        let mut comes_first = self.waiting.is_empty();
        loop {
            if comes_first && let Some(place) = self.try_place().await {
                return Ok(place);
            }
            if Instant::now() >= deadline {
                self.waiting.note_given_up();
                return Err(DiskError::no_descriptor(path));
            }
            self.waiting.wait().await;
            comes_first = true;
        }
    }

    async fn try_place(&self) -> Option<Place> {
        let idle = {
            let mut inner = self.inner.borrow_mut();
            if inner.has_room() {
                None
            } else {
                Some(inner.take_oldest_idle()?)
            }
        };
        self.inner.borrow_mut().places += 1;
        let place = Place {
            files: self.clone(),
        };
        if let Some(idle) = idle {
            close(idle).await;
        }
        Some(place)
    }

    /// After an opening that failed: waits, where that may help, and closes what is idle, since the process as a whole is short.
    async fn wait_out(
        &self,
        error: DiskError,
        place: Place,
        deadline: Instant,
    ) -> Result<Place, DiskError> {
        let may_pass = matches!(
            error.shortage(),
            Some(Shortage::Descriptors | Shortage::Memory | Shortage::Busy)
        );
        if !may_pass {
            return Err(error);
        }
        if Instant::now() >= deadline {
            self.waiting.note_given_up();
            return Err(error);
        }
        let idle = self.inner.borrow_mut().take_oldest_idle();
        match idle {
            Some(idle) => close(idle).await,
            None => executor::sleep(Duration::from_millis(OPEN_FILE_RETRY_MS)).await,
        }
        Ok(place)
    }
}

/// Its descriptor is free once this is done. What a close reports is nobody's news: who wrote has synced.
async fn close(file: LogFile) {
    if let Err(error) = file.close().await {
        tracing::debug!(%error, "a segment file was closed with an error");
    }
}

struct Opening {
    inner: Rc<RefCell<Inner>>,
    key: SegmentKey,
}

impl Drop for Opening {
    fn drop(&mut self) {
        let mut inner = self.inner.borrow_mut();
        let at = inner.opening.iter().position(|other| *other == self.key);
        inner.opening.swap_remove(at.expect("it was put there"));
        inner.opened.notify();
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.files.inner.borrow_mut().places -= 1;
        self.files.waiting.help_one();
    }
}

impl Clone for SegmentFile {
    fn clone(&self) -> Self {
        Self {
            file: self.file.clone(),
            waiting: self.waiting.clone(),
        }
    }
}

impl Deref for SegmentFile {
    type Target = LogFile;

    fn deref(&self) -> &LogFile {
        &self.file
    }
}

impl Drop for SegmentFile {
    /// Whoever waits looks in a turn of its own, when this handle is gone.
    fn drop(&mut self) {
        self.waiting.help_one();
    }
}

impl Inner {
    fn has_room(&mut self) -> bool {
        let without_leaving = self.files.len() + self.places;
        if without_leaving + self.leaving.len() >= self.limit {
            self.leaving.retain(FileWatch::is_open);
        }
        without_leaving + self.leaving.len() < self.limit
    }

    fn touch(&mut self, key: SegmentKey) -> Option<LogFile> {
        let entry = self.files.get_mut(&key)?;
        self.by_use.remove(&entry.used);
        entry.used = self.next_use;
        self.by_use.insert(entry.used, key);
        self.next_use += 1;
        Some(entry.file.clone())
    }

    fn insert(&mut self, key: SegmentKey, file: LogFile) {
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

    /// The least recently used file that nobody uses now.
    fn take_oldest_idle(&mut self) -> Option<LogFile> {
        let is_idle = |key: &&SegmentKey| !self.files[*key].file.is_shared();
        let oldest = *self.by_use.values().find(is_idle)?;
        let entry = self.files.remove(&oldest).expect("every use has its file");
        self.by_use.remove(&entry.used);
        Some(entry.file)
    }

    fn remove(&mut self, key: SegmentKey) {
        if let Some(entry) = self.files.remove(&key) {
            self.by_use.remove(&entry.used);
            if entry.file.is_shared() {
                self.leaving.push(entry.file.watch());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::disk::test_directory;
    use crate::io::executor::{block_on, spawn_local, yield_now};
    use crate::model::Offset;

    const LIMIT: usize = 3;

    fn key(number: usize) -> SegmentKey {
        SegmentKey::appended(LogId(number as u64), Offset(0))
    }

    struct Shard {
        files: OpenFiles,
        directory: tempfile::TempDir,
    }

    impl Shard {
        fn new() -> Self {
            Self {
                files: OpenFiles::new(LIMIT),
                directory: test_directory(),
            }
        }

        async fn get(&self, number: usize) -> Result<SegmentFile, DiskError> {
            let path = self.directory.path().join(number.to_string());
            self.files.get(key(number), &path, OpenMode::Create).await
        }

        /// How many of its files this process has open.
        fn open_count(&self) -> usize {
            let open = std::fs::read_dir("/proc/self/fd").unwrap();
            let targets = open.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
            // Besides the nameless file by which a thread asks a device what it can do.
            targets
                .filter(|target| target.starts_with(self.directory.path()))
                .filter(|target| !target.to_string_lossy().ends_with("(deleted)"))
                .count()
        }
    }

    #[test]
    fn never_more_are_open_than_the_limit_says() {
        block_on(async {
            let shard = Shard::new();
            for number in 0..4 * LIMIT {
                drop(shard.get(number).await.unwrap());
                assert!(shard.open_count() <= LIMIT, "{number}");
            }
            assert_eq!(shard.files.len(), LIMIT);
        });
    }

    #[test]
    fn the_least_recently_used_file_goes_unless_it_is_in_use() {
        block_on(async {
            let shard = Shard::new();
            let used = shard.get(0).await.unwrap();
            for number in 1..LIMIT {
                drop(shard.get(number).await.unwrap());
            }
            drop(shard.get(LIMIT).await.unwrap());
            assert!(shard.files.opened(key(0)).is_some(), "it is in use");
            assert!(shard.files.opened(key(1)).is_none(), "it was the oldest");
            drop(used);
        });
    }

    #[test]
    fn who_finds_all_files_in_use_waits_for_the_first_that_is_given_back() {
        block_on(async {
            let shard = Rc::new(Shard::new());
            let mut used = Vec::new();
            for number in 0..LIMIT {
                used.push(shard.get(number).await.unwrap());
            }
            let waiting = {
                let shard = shard.clone();
                spawn_local(async move { shard.get(LIMIT).await.map(drop) })
            };
            for _ in 0..10 {
                yield_now().await;
            }
            assert!(shard.files.opened(key(LIMIT)).is_none());
            used.pop();
            waiting.await.unwrap();
            assert!(shard.open_count() <= LIMIT);
        });
    }

    #[test]
    fn a_file_that_is_no_longer_kept_counts_as_long_as_it_is_used() {
        block_on(async {
            let shard = Shard::new();
            let used = shard.get(0).await.unwrap();
            shard.files.close(key(0));
            for number in 1..=LIMIT {
                drop(shard.get(number).await.unwrap());
                assert!(shard.open_count() <= LIMIT);
            }
            assert_eq!(shard.files.len(), LIMIT - 1);
            drop(used);
            drop(shard.get(LIMIT + 1).await.unwrap());
            assert_eq!(shard.files.len(), LIMIT);
        });
    }

    #[test]
    fn many_who_want_more_than_there_is_are_all_served() {
        block_on(async {
            let shard = Rc::new(Shard::new());
            let tasks: Vec<_> = (0..20 * LIMIT)
                .map(|number| {
                    let shard = shard.clone();
                    spawn_local(async move {
                        let file = shard.get(number).await.unwrap();
                        file.allocate(4096).await.unwrap();
                        assert!(shard.open_count() <= LIMIT);
                    })
                })
                .collect();
            for task in tasks {
                task.await;
            }
            assert_eq!(shard.files.take_given_up(), 0);
        });
    }

    #[test]
    fn a_file_that_is_retired_while_it_is_being_opened_is_not_kept() {
        block_on(async {
            let shard = Rc::new(Shard::new());
            let opening = {
                let shard = shard.clone();
                spawn_local(async move { shard.get(0).await.map(drop) })
            };
            while shard.files.inner.borrow().opening.is_empty() {
                yield_now().await;
            }
            shard.files.retire(Retired::Segment(key(0))).await;
            assert!(opening.await.is_err());
            assert!(shard.files.is_empty());
            assert_eq!(shard.open_count(), 0);
        });
    }

    #[test]
    fn who_waits_in_vain_is_told_of_a_shortage() {
        block_on(async {
            let shard = Shard::new();
            let mut used = Vec::new();
            for number in 0..LIMIT {
                used.push(shard.get(number).await.unwrap());
            }
            let error = shard.get(LIMIT).await.map(drop).unwrap_err();
            assert_eq!(error.shortage(), Some(Shortage::Descriptors));
            assert_eq!(shard.files.take_given_up(), 1);
            assert_eq!(shard.files.take_given_up(), 0);
            drop(used.pop());
            shard.get(LIMIT).await.unwrap();
        });
    }
}
