//! The flush task: at the end of each turn it starts the writes of what was appended.
//!
//! "Turn": the tasks of a core that were runnable when the first of them appended something. Batches appended within it are written
//! together.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use crate::io::disk::{DiskError, OpenMode};
use crate::io::executor;
use crate::io::os_error::Shortage;
use crate::metrics::Counter;
use crate::model::limits::SHORTAGE_RETRY_MS;
use crate::partition::leader::Progress;
use crate::shard::append::AppendToken;
use crate::shard::command::PartitionError;
use crate::shard::hosted::HostedPartition;
use crate::shard::long_poll::DataWaiter;
use crate::shard::runtime::{Cached, Shard};
use crate::storage::appender::TailWrite;
use crate::storage::log::SegmentKey;

impl Shard {
    /// Runs as long as the shard does.
    pub(super) async fn flush_turns(self: Rc<Self>) {
        loop {
            self.turn().wait().await;
            for partition in self.take_dirty() {
                partition.flags.is_dirty.set(false);
                self.start_writes(&partition);
            }
        }
    }

    fn start_writes(self: &Rc<Self>, partition: &Rc<HostedPartition>) {
        while let Some(write) = self.next_write(partition) {
            let (shard, partition) = (self.clone(), partition.clone());
            executor::spawn_local(async move { shard.write_on(&partition, write).await }).detach();
        }
    }

    /// Writes `write` and then what has gathered meanwhile, until nothing is left.
    async fn write_on(self: &Rc<Self>, partition: &Rc<HostedPartition>, mut write: TailWrite) {
        loop {
            let started = self.clock().monotonic();
            let written = self.write(partition, &write).await;
            let now = self.clock().monotonic();
            if let Err(error) = written {
                self.fail_partition(partition, &error);
                return;
            }
            self.metrics().record_disk_write(
                write.chunk.padded_len(),
                now.since(started).as_nanos() as u64,
            );
            if partition.unsynced_since.get().is_none() {
                partition.unsynced_since.set(Some(now));
                self.note_unsynced(partition);
            }
            self.note_written(write.chunk.padded_len());
            let progress = partition.leader.borrow_mut().on_written(write.id);
            self.go_on(partition, progress);
            self.seal_written(partition);
            self.sync_ahead();
            match self.next_write(partition) {
                Some(next) => write = next,
                None => return,
            }
            // More than one write may have become possible.
            self.start_writes(partition);
        }
    }

    fn next_write(&self, partition: &Rc<HostedPartition>) -> Option<TailWrite> {
        if self.log_dir().failure().is_some() || partition.flags.is_gone.get() {
            return None;
        }
        let mut leader = partition.leader.borrow_mut();
        let cached_before = Cached::of(&leader);
        let write = leader.log_mut().next_write();
        let cached = Cached::of(&leader).since(cached_before);
        drop(leader);
        self.note_cached(partition, cached);
        write
    }

    /// Writes, and as long as the system is short of something for it tries again: the batches have their offsets already, and the same
    /// bytes at the same place are written as often as it takes.
    async fn write(&self, partition: &HostedPartition, write: &TailWrite) -> Result<(), DiskError> {
        let mut was_short = false;
        let result = loop {
            let error = match self.try_write(partition, write).await {
                Ok(()) => break Ok(()),
                Err(error) => error,
            };
            let may_pass = match error.shortage() {
                Some(Shortage::Descriptors | Shortage::Memory | Shortage::Busy) => true,
                // The space was prepared: where it is not there the file system lied, and who knows about what else.
                Some(Shortage::Space) | None => false,
            };
            let is_given_up = self.log_dir().failure().is_some() || partition.flags.is_gone.get();
            if !may_pass || is_given_up {
                break Err(error);
            }
            self.metrics().count(Counter::ShortageRetries, 1);
            was_short = true;
            let error = Arc::new(error);
            if partition
                .write_shortage
                .replace(Some(error.clone()))
                .is_none()
            {
                let (topic, index) = (&partition.topic, partition.partition.partition);
                tracing::debug!(%topic, partition = %index, %error, "a write waits");
            }
            executor::sleep(Duration::from_millis(SHORTAGE_RETRY_MS)).await;
        };
        if was_short {
            partition.write_shortage.replace(None);
        }
        result
    }

    async fn try_write(
        &self,
        partition: &HostedPartition,
        write: &TailWrite,
    ) -> Result<(), DiskError> {
        let key = SegmentKey::appended(partition.log_id(), write.segment);
        let file = match self.files().opened(key) {
            Some(file) => file,
            None => {
                let path = partition.leader.borrow().log().segment_path(write.segment);
                self.files().get(key, &path, OpenMode::Existing).await?
            }
        };
        file.write(&write.chunk, write.position).await
    }

    /// Lets those go on who waited for what has just been reached.
    pub(super) fn go_on(
        self: &Rc<Self>,
        partition: &Rc<HostedPartition>,
        progress: Progress<AppendToken, DataWaiter>,
    ) {
        for token in progress.acks {
            self.answer_append(token);
        }
        for waiter in progress.waiters {
            self.tell_waiter(&waiter);
        }
        if progress.needs_sync {
            self.request_sync(partition);
        }
    }

    /// An I/O error: the directory goes offline, and whoever waits for this partition is refused.
    pub(super) fn fail_partition(
        self: &Rc<Self>,
        partition: &Rc<HostedPartition>,
        error: &dyn std::fmt::Display,
    ) {
        if partition.flags.is_gone.get() {
            return;
        }
        self.metrics().count(Counter::DiskErrors, 1);
        self.log_dir().fail(error);
        let why = PartitionError::LogDirOffline(error.to_string().into());
        let progress = partition.leader.borrow_mut().fail();
        self.give_up(progress, &why);
        self.refuse_parked(partition, &why);
    }

    /// Once the log directory is offline nothing in it is confirmed any more: whoever waits, on whatever partition, is told.
    pub(super) fn give_up_if_offline(self: &Rc<Self>) {
        let Some(why) = self.log_dir().failure() else {
            return;
        };
        let why = PartitionError::LogDirOffline(why);
        for partition in self.partitions() {
            let progress = partition.leader.borrow_mut().fail();
            self.give_up(progress, &why);
            self.refuse_parked(&partition, &why);
        }
    }

    /// Refuses the batches that wait, and lets the readers look for themselves.
    pub(super) fn give_up(
        &self,
        progress: Progress<AppendToken, DataWaiter>,
        why: &PartitionError,
    ) {
        for token in progress.acks {
            self.refuse_append(token, why.clone());
        }
        for waiter in progress.waiters {
            self.tell_waiter(&waiter);
        }
    }
}
