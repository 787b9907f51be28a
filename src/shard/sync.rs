//! Group commit: one round of fdatasyncs covers every partition that asked before it began.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use futures_lite::StreamExt;
use futures_lite::stream;

use crate::config::TopicConfig;
use crate::io::clock::Monotonic;
use crate::io::disk::{DiskError, OpenMode};
use crate::io::os_error::Shortage;
use crate::io::{blocking, dir, executor};
use crate::metrics::Counter;
use crate::model::limits::{
    FDATASYNCS_IN_FLIGHT_PER_SHARD_MAX, SHORTAGE_RETRY_MS, SYNC_AHEAD_BYTES, SYNC_AHEAD_INTERVAL_MS,
};
use crate::shard::hosted::HostedPartition;
use crate::shard::runtime::Shard;
use crate::storage::log::SegmentKey;

/// What ended a sync. Unless it was a shortage nobody knows what is on disk.
#[derive(Debug, thiserror::Error)]
enum SyncError {
    #[error(transparent)]
    File(#[from] DiskError),
    #[error(transparent)]
    Directory(#[from] dir::DirError),
}

impl SyncError {
    /// What was short before anything was asked of the disk.
    fn shortage(&self) -> Option<Shortage> {
        match self {
            Self::File(error) => error.shortage(),
            Self::Directory(error) => error.shortage(),
        }
    }
}

#[derive(Default)]
pub struct SyncGroup {
    waiting: RefCell<Vec<Rc<HostedPartition>>>,
    /// Partitions with written bytes that no fdatasync covers yet.
    unsynced: RefCell<Vec<Rc<HostedPartition>>>,
    /// What was written since an fdatasync last began, which takes whatever lies in the device's cache with it.
    unsynced_bytes: Cell<u64>,
    /// When the last sync ahead of its time was asked for.
    last_ahead: Cell<Option<Monotonic>>,
    is_running: Cell<bool>,
}

impl Shard {
    /// Puts the partition into the next round.
    pub(super) fn request_sync(self: &Rc<Self>, partition: &Rc<HostedPartition>) {
        if !partition.flags.wants_sync.replace(true) {
            self.syncs().waiting.borrow_mut().push(partition.clone());
        }
        if !self.syncs().is_running.replace(true) {
            let shard = self.clone();
            executor::spawn_local(async move {
                shard.run_rounds().await;
                shard.syncs().is_running.set(false);
            })
            .detach();
        }
    }

    pub(super) fn note_unsynced(&self, partition: &Rc<HostedPartition>) {
        self.syncs().unsynced.borrow_mut().push(partition.clone());
    }

    /// Asks for a sync of every partition whose oldest unsynced bytes are as old as its `flush.ms`; then also of those that are half as
    /// old, since one round of many costs less than many rounds.
    pub(super) fn sync_what_is_due(self: &Rc<Self>) {
        let now = self.clock().monotonic();
        let has_waited = |partition: &HostedPartition, percent: u64| {
            let wait_ms = u128::from(partition.config.get().flush_ms) * u128::from(percent) / 100;
            let since = partition.unsynced_since.get();
            since.is_some_and(|since| now.since(since).as_millis() >= wait_ms)
        };
        let unsynced = self.syncs().unsynced.borrow().clone();
        if unsynced.iter().any(|it| has_waited(it, 100)) {
            for partition in unsynced.iter().filter(|it| has_waited(it, 50)) {
                self.request_sync(partition);
            }
        }
    }

    pub(super) fn note_written(&self, written_bytes: usize) {
        let unsynced_bytes = &self.syncs().unsynced_bytes;
        unsynced_bytes.set(unsynced_bytes.get() + written_bytes as u64);
    }

    /// Asks for a sync of the partition that waits longest for one, once enough is written. A device with a write cache keeps writes
    /// waiting while it empties the cache: for 50 ms after a second of 50 MB/s, for a second after one at full load, for 5 ms after 2 MiB.
    /// The interval keeps the number of syncs, and of commits of the file system's journal, from growing with the load.
    pub(super) fn sync_ahead(self: &Rc<Self>) {
        let syncs = self.syncs();
        if syncs.unsynced_bytes.get() < SYNC_AHEAD_BYTES || syncs.is_running.get() {
            return;
        }
        let now = self.clock().monotonic();
        let has_passed = |last| now.since(last).as_millis() >= SYNC_AHEAD_INTERVAL_MS;
        if !syncs.last_ahead.get().is_none_or(has_passed) {
            return;
        }
        let unsynced = syncs.unsynced.borrow();
        let oldest = unsynced
            .iter()
            .find(|it| it.config.get().flush_ms != TopicConfig::NEVER)
            .cloned();
        drop(unsynced);
        if let Some(oldest) = oldest {
            syncs.last_ahead.set(Some(now));
            self.request_sync(&oldest);
        }
    }

    async fn run_rounds(self: &Rc<Self>) {
        loop {
            let round = std::mem::take(&mut *self.syncs().waiting.borrow_mut());
            if round.is_empty() {
                return;
            }
            let mut tasks: Vec<_> = Vec::new();
            for partition in round {
                partition.flags.wants_sync.set(false);
                let shard = self.clone();
                tasks.push(executor::spawn_local(async move {
                    shard.sync(&partition).await
                }));
                if tasks.len() >= FDATASYNCS_IN_FLIGHT_PER_SHARD_MAX {
                    stream::iter(tasks.drain(..))
                        .then(|task| task)
                        .count()
                        .await;
                }
            }
            stream::iter(tasks).then(|task| task).count().await;
        }
    }

    /// Completes when everything that was written when it began survives a power cut, and those who waited for that were told.
    pub(super) async fn sync(self: &Rc<Self>, partition: &Rc<HostedPartition>) {
        partition.unsynced_since.set(None);
        self.syncs()
            .unsynced
            .borrow_mut()
            .retain(|it| !Rc::ptr_eq(it, partition));
        let (mark, files) = partition.leader.borrow().log().unsynced();
        if files.is_empty() || self.log_dir().failure().is_some() || partition.flags.is_gone.get() {
            return;
        }
        let started = self.clock().monotonic();
        self.syncs().unsynced_bytes.set(0);
        match self.sync_files(partition, &files).await {
            Ok(()) => {
                self.metrics()
                    .record_fdatasync(self.clock().monotonic().since(started).as_nanos() as u64);
                let progress = partition.leader.borrow_mut().on_synced(mark);
                self.go_on(partition, progress);
            }
            Err(error) if error.shortage().is_some() => self.sync_later(partition),
            Err(error) => self.fail_partition(partition, &error),
        }
    }

    /// Nothing was synced, since the system was short of something before the first fdatasync that would have failed: asks again soon.
    fn sync_later(self: &Rc<Self>, partition: &Rc<HostedPartition>) {
        self.metrics().count(Counter::ShortageRetries, 1);
        if partition.unsynced_since.get().is_none() {
            partition.unsynced_since.set(Some(self.clock().monotonic()));
            self.note_unsynced(partition);
        }
        let (shard, partition) = (self.clone(), partition.clone());
        executor::spawn_local(async move {
            executor::sleep(Duration::from_millis(SHORTAGE_RETRY_MS)).await;
            shard.request_sync(&partition);
        })
        .detach();
    }

    async fn sync_files(
        &self,
        partition: &HostedPartition,
        files: &[(SegmentKey, std::path::PathBuf)],
    ) -> Result<(), SyncError> {
        if partition.flags.has_new_files.replace(false) {
            let path = partition.directory();
            let synced = blocking::run(move || dir::sync_dir(&path)).await;
            if synced.is_err() {
                partition.flags.has_new_files.set(true);
            }
            synced?;
        }
        for (key, path) in files {
            // What retention deletes meanwhile was synced before it left the log.
            if self.files().is_retired(*key) {
                continue;
            }
            self.files()
                .get(*key, path, OpenMode::Existing)
                .await?
                .fdatasync()
                .await?;
        }
        Ok(())
    }
}
