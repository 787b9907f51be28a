//! What a shard does beside its requests: seals segments, has checkpoints written, frees memory, looks at clock and disk.

use std::rc::Rc;
use std::time::Duration;

use crate::io::clock::Monotonic;
use crate::io::disk::{DiskError, OpenMode};
use crate::io::fs;
use crate::io::{blocking, executor};
use crate::metrics::Counter;
use crate::model::limits::{
    CHECKPOINTS_PER_TICK_MAX, DISK_BYTES_MS, GROUP_FIGURES_MS, HOUSEKEEPING_MS, IDLE_AFTER_MS,
    SHORTAGE_LOG_INTERVAL_MS, SHORTAGE_RETRY_MS, UNCHECKPOINTED_BYTES_PER_SHARD_MAX,
};
use crate::shard::checkpoint::{CheckpointTurn, SyncBy};
use crate::shard::command::PartitionError;
use crate::shard::disk_guard::Room;
use crate::shard::hosted::HostedPartition;
use crate::shard::runtime::Shard;
use crate::storage::sealed_segment::SealedSegment;
use crate::storage::sealed_segments::ToSeal;
use crate::storage::{partition_files, segment_name};

impl Shard {
    /// Runs as long as the shard does: a tick every `HOUSEKEEPING_MS`.
    pub(super) async fn keep_house(self: Rc<Self>) {
        let mut disk_bytes_due = self.clock().monotonic();
        let mut group_figures_due = disk_bytes_due;
        let mut retained: Option<Monotonic> = None;
        let mut refusals_told: Option<Monotonic> = None;
        // What the clock says now is what a jump is measured by, also one that comes before the first tick.
        self.watch_clock();
        loop {
            executor::sleep(Duration::from_millis(HOUSEKEEPING_MS)).await;
            self.metrics().count(Counter::Ticks, 1);
            self.watch_clock();
            self.sync_what_is_due();
            self.give_up_if_offline();
            self.free_cache();
            self.publish_gauges();
            self.tell_of_refusals(&mut refusals_told);
            self.look_after_active().await;
            let now = self.clock().monotonic();
            if retained.is_none_or(|last| now.since(last) >= self.retention_interval()) {
                retained = Some(now);
                self.expire_everywhere().await;
            }
            if now >= group_figures_due {
                group_figures_due = now + Duration::from_millis(GROUP_FIGURES_MS);
                self.publish_group_gauges();
            }
            self.remove_deleted_files();
            self.remove_due_strays();
            if now >= disk_bytes_due {
                disk_bytes_due = now + Duration::from_millis(DISK_BYTES_MS);
                self.publish_disk_bytes();
            }
        }
    }

    // ---- sealing

    pub(super) fn seal_written(self: &Rc<Self>, partition: &Rc<HostedPartition>) {
        let to_seal = partition.leader.borrow_mut().log_mut().take_to_seal();
        for segment in to_seal {
            let (shard, partition) = (self.clone(), partition.clone());
            executor::spawn_background(async move { shard.seal(&partition, segment).await })
                .detach();
        }
    }

    /// Cuts a full segment to its exact length, stores its indexes, and then a checkpoint that says so. A start that comes between two of
    /// these finds zeros at the segment's end, or no whole indexes; both it puts right from the batches, since its recovery point still lies
    /// in this segment or before it.
    async fn seal(self: &Rc<Self>, partition: &Rc<HostedPartition>, segment: ToSeal) {
        while let Err(error) = self.cut(&segment).await {
            if error.shortage().is_none() {
                return self.fail_partition(partition, &error);
            }
            if partition.flags.is_gone.get() || self.log_dir().failure().is_some() {
                return;
            }
            // Until then the file is longer than its batches, which a start would cut as well.
            self.metrics().count(Counter::ShortageRetries, 1);
            executor::sleep(Duration::from_millis(SHORTAGE_RETRY_MS)).await;
        }
        // A checkpoint that began before the roll may be writing the same index files.
        let Some(turn) = CheckpointTurn::wait(partition).await else {
            return;
        };
        let (directory, index_tail) = (partition.directory(), segment.index_tail);
        let base_offset = segment.key.segment;
        let stored = blocking::run(move || {
            let stored = index_tail.write_if_there_is_space(&directory);
            if stored.is_err() {
                // Nobody knows what they hold; missing ones are made anew.
                let _ = partition_files::remove_indexes(&directory, base_offset);
            }
            stored
        });
        let stored = stored.await;
        drop(turn);
        let shown = segment.path.display();
        match &stored {
            Ok(true) => {}
            Ok(false) => {
                tracing::warn!(segment = %shown, "the disk has no room for a segment's indexes: they stay in memory");
            }
            Err(error) => {
                tracing::warn!(segment = %shown, %error, "a segment's indexes were not stored: they stay in memory");
            }
        }
        partition
            .leader
            .borrow_mut()
            .log_mut()
            .on_sealed(base_offset, matches!(stored, Ok(true)));
        self.metrics().count(Counter::SegmentsSealed, 1);
        drop(self.checkpoint(partition, SyncBy::Request).await);
    }

    async fn cut(&self, segment: &ToSeal) -> Result<(), DiskError> {
        let file = self
            .files()
            .get(segment.key, &segment.path, OpenMode::Existing)
            .await?;
        file.truncate(segment.size.0).await?;
        file.fdatasync().await
    }

    /// Tells of files that could not be opened for want of descriptors: a figure for each, a line now and then.
    fn tell_of_refusals(&self, told: &mut Option<Monotonic>) {
        let refused = self.files().take_given_up();
        if refused == 0 {
            return;
        }
        self.metrics().count(Counter::DescriptorRefusals, refused);
        let now = self.clock().monotonic();
        let interval = Duration::from_millis(SHORTAGE_LOG_INTERVAL_MS);
        if told.is_none_or(|last| now.since(last) >= interval) {
            *told = Some(now);
            tracing::warn!(
                refused,
                segment_files_max = self.files().limit(),
                "file descriptors are short: segment files could not be opened and clients are told to try again; raise the limit (ulimit -n)"
            );
        }
    }

    // ---- partitions appended to lately

    /// Looks at the partitions appended to lately: checkpoints those whose last one is old, puts to rest those that went idle.
    async fn look_after_active(self: &Rc<Self>) {
        let now = self.clock().monotonic();
        let interval = Duration::from_millis(self.config().checkpoint_interval_ms);
        let mut checkpoints_left = CHECKPOINTS_PER_TICK_MAX;
        let mut uncovered_bytes = 0;
        let mut farthest_behind: Option<(u64, Rc<HostedPartition>)> = None;
        for partition in self.active_partitions() {
            let is_idle =
                now.since(partition.last_append.get()) >= Duration::from_millis(IDLE_AFTER_MS);
            if !partition.is_behind() {
                if is_idle {
                    self.put_to_rest(&partition).await;
                }
                continue;
            }
            let behind_bytes = partition.behind_bytes();
            uncovered_bytes += behind_bytes;
            let waits = partition.checkpoint_not_before.get() > now;
            if waits || partition.flags.is_checkpointing.get() || checkpoints_left == 0 {
                continue;
            }
            if is_idle || now.since(partition.checkpointed.get().at) >= interval {
                checkpoints_left -= 1;
                self.checkpoint_in_background(&partition);
            } else if farthest_behind
                .as_ref()
                .is_none_or(|(most, _)| behind_bytes > *most)
            {
                farthest_behind = Some((behind_bytes, partition));
            }
        }
        if uncovered_bytes > UNCHECKPOINTED_BYTES_PER_SHARD_MAX
            && let Some((_, partition)) = farthest_behind
        {
            self.checkpoint_in_background(&partition);
        }
    }

    fn checkpoint_in_background(self: &Rc<Self>, partition: &Rc<HostedPartition>) {
        let (shard, partition) = (self.clone(), partition.clone());
        executor::spawn_background(async move {
            drop(shard.checkpoint(&partition, SyncBy::FlushMs).await);
        })
        .detach();
    }

    /// Writes the indexes that only memory has, in the background, if there is space by now.
    fn store_indexes(&self, partition: &Rc<HostedPartition>, unstored: Vec<Rc<SealedSegment>>) {
        if unstored.is_empty() || self.log_dir().room() != Room::Free {
            return;
        }
        let partition = partition.clone();
        executor::spawn_background(async move {
            for segment in unstored {
                let Some(turn) = CheckpointTurn::wait(&partition).await else {
                    return;
                };
                let is_here = |it: &Rc<SealedSegment>| Rc::ptr_eq(it, &segment);
                let is_left = partition.leader.borrow().log().sealed().iter().any(is_here);
                let Some(indexes) = segment.unstored_indexes().filter(|_| is_left) else {
                    continue;
                };
                let (directory, files) = (partition.directory(), indexes.to_files());
                let stored =
                    blocking::run(move || files.write_if_there_is_space(&directory)).await;
                drop(turn);
                match stored {
                    Ok(true) => {
                        segment.note_indexes_stored();
                        segment.release_indexes();
                    }
                    Ok(false) => return,
                    Err(error) => {
                        let shown = segment.path().display();
                        tracing::warn!(segment = %shown, %error, "a segment's indexes stay in memory");
                        return;
                    }
                }
            }
        })
        .detach();
    }

    /// Frees what an idle partition holds: prepared space, open files, what of its memory is not cache.
    async fn put_to_rest(self: &Rc<Self>, partition: &Rc<HostedPartition>) {
        if partition.flags.is_preparing.get() || partition.flags.is_gone.get() {
            return;
        }
        let to_cut = {
            let mut leader = partition.leader.borrow_mut();
            let log = leader.log_mut();
            if !log.is_all_written() || !log.is_sealed_up() {
                return;
            }
            let end = log.active().size();
            let (key, path) = (log.active_key(), log.active().path().to_owned());
            let gives_back = log.space().give_back(end);
            log.release_memory();
            self.store_indexes(partition, log.sealed().with_unstored_indexes());
            gives_back.then_some((key, path, end))
        };
        self.set_inactive(partition);
        // From the give-back on nothing has room: what comes waits, and nobody else may start to make some.
        partition.flags.is_preparing.set(true);
        if partition.spare.take().is_some() {
            let spare = partition.directory().join(segment_name::spare_file());
            let _ = blocking::run(move || fs::remove_file(&spare)).await;
        }
        if let Some((key, path, end)) = to_cut {
            let cut = async {
                self.files()
                    .get(key, &path, OpenMode::Existing)
                    .await?
                    .truncate(end.0)
                    .await
            };
            if let Err(error) = cut.await {
                tracing::warn!(%error, "unused space was not given back");
            }
            partition.leader.borrow_mut().log_mut().space().on_step();
        }
        partition.flags.is_preparing.set(false);
        if partition.parked.first_checked().is_some() {
            self.prepare(partition);
        } else {
            self.files().close_log(partition.log_id());
        }
    }

    // ---- the end

    /// Completes when every partition's appended batches are on disk, synced and checkpointed.
    pub(super) async fn stop(self: &Rc<Self>) -> Result<(), String> {
        self.set_stopping();
        self.stop_groups().await;
        let mut first_failure = Ok(());
        for partition in self.partitions() {
            // What is being prepared or deleted changes files, and what is being checked may be the broker's own; it ends soon, since nothing
            // more is admitted.
            while partition.flags.is_preparing.get()
                || partition.flags.is_deleting.get()
                || partition.parked.is_checking()
            {
                executor::sleep(Duration::from_millis(1)).await;
            }
            self.refuse_parked(&partition, &PartitionError::Stopping);
            if partition.is_behind()
                && let Err(error) = self.checkpoint(&partition, SyncBy::Request).await
            {
                if partition.flags.is_gone.get() {
                    continue;
                }
                first_failure = first_failure.and(Err(format!("{}: {error}", partition.topic)));
                continue;
            }
            if partition.flags.is_active.get() {
                partition.last_append.set(Monotonic::ZERO);
                self.put_to_rest(&partition).await;
            }
        }
        for partition in self.partitions() {
            // Long polls are answered with what there is; no batch waits any more, unless its write failed.
            let progress = partition.leader.borrow_mut().fail();
            self.give_up(progress, &PartitionError::Stopping);
        }
        first_failure
    }
}
