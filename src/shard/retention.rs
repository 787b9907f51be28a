//! Retention: takes what is due out of the logs and deletes its files. In this order, so that a crash at any point leaves a log that
//! starts where readers were told that it starts:
//!
//! ```text
//! the checkpoint says that the log starts behind what is due; the next start removes what lies below it
//!   -> it does: who asks for less gets OFFSET_OUT_OF_RANGE, who is reading goes on
//!     -> nobody opens the files any more
//!       -> the files are renamed to .deleted; the next start removes those
//!         -> after file.delete.delay.ms they are removed
//! ```

use std::rc::Rc;
use std::time::Duration;

use crate::io::fs;
use crate::io::os_error::Shortage;
use crate::io::{blocking, executor};
use crate::metrics::{Counter, Deletion, Gauge};
use crate::model::limits::{DELETION_RETRY_MS, GUARDED_RETENTION_MS};
use crate::model::{FilePosition, Offset, TimestampMs};
use crate::shard::checkpoint::{CheckpointTurn, SyncBy};
use crate::shard::command::PartitionError;
use crate::shard::deleted_files::DeletedSegment;
use crate::shard::disk_guard::Room;
use crate::shard::hosted::HostedPartition;
use crate::shard::retention_clock::ClockStep;
use crate::shard::runtime::{Cached, Shard};
use crate::shard::slow_removal;
use crate::storage::file_error::FileError;
use crate::storage::retention::{Due, DueSegments, RetentionRules, oldest_newest};
use crate::storage::retired_files::Retired;
use crate::storage::sealed_segment::SealedSegment;
use crate::storage::{atomic_file, partition_files};

impl Shard {
    /// How long after one look for what is due the next one follows.
    pub(super) fn retention_interval(&self) -> Duration {
        let interval_ms = self.config().retention_check_interval_ms;
        Duration::from_millis(match self.log_dir().room() {
            Room::Free => interval_ms,
            Room::Reserve | Room::Full => interval_ms.min(GUARDED_RETENTION_MS),
        })
    }

    pub(super) async fn expire_everywhere(self: &Rc<Self>) {
        let now = self.clock().monotonic();
        let expiration_ns = self
            .config()
            .producer_id_expiration_ms
            .saturating_mul(1_000_000);
        for partition in self.partitions() {
            executor::yield_if_needed().await;
            partition
                .leader
                .borrow_mut()
                .producers_mut()
                .expire(now.as_ns(), expiration_ns);
            self.tell_of_future(&partition);
            self.delete_due_segments(&partition);
        }
    }

    /// Takes the segments that are due out of the log and deletes their files, in the background; one such task for each partition.
    pub(super) fn delete_due_segments(self: &Rc<Self>, partition: &Rc<HostedPartition>) {
        if partition.flags.is_deleting.get() || !self.has_due(partition) {
            return;
        }
        partition.flags.is_deleting.set(true);
        let (shard, partition) = (self.clone(), partition.clone());
        executor::spawn_background(async move {
            // DeleteRecords may make more due meanwhile.
            while shard.has_due(&partition) && shard.delete_due(&partition).await {}
            partition.flags.is_deleting.set(false);
        })
        .detach();
    }

    /// The time by which ages are judged; see [`RetentionClock`](crate::shard::retention_clock::RetentionClock).
    pub(super) fn judging_time(&self) -> TimestampMs {
        self.watch_clock();
        self.retention_clock().borrow().judging()
    }

    /// What is written down now, to be judged by later.
    pub(super) fn stamping_time(&self) -> TimestampMs {
        self.watch_clock();
        self.append_time()
    }

    /// The same as of the last look at whether the clock was set back, at most a tick ago.
    pub(super) fn append_time(&self) -> TimestampMs {
        self.retention_clock().borrow().stamping(self.clock().now())
    }

    /// Looks whether the wall clock goes as time does.
    pub(super) fn watch_clock(&self) {
        let hold = Duration::from_millis(self.config().clock_jump_hold_ms);
        let (wall, monotonic) = (self.clock().now(), self.clock().monotonic());
        let mut retention_clock = self.retention_clock().borrow_mut();
        let step = retention_clock.observe(wall, monotonic, hold);
        let held_ms = retention_clock.held_ms();
        self.metrics().set_gauge(Gauge::ClockHeldMs, held_ms);
        let Some(step) = step else {
            return;
        };
        self.metrics().count(Counter::ClockSteps, 1);
        if !self.is_first() {
            return;
        }
        match step {
            ClockStep::Ahead { ms } => tracing::warn!(
                step_ms = ms,
                held_ms,
                "the wall clock has jumped ahead: nothing expires by it until log.retention.clock.jump.hold.ms is over or the broker is \
                 started anew; set the clock right if it is wrong"
            ),
            ClockStep::Back { ms } => {
                tracing::warn!(step_ms = ms, held_ms, "the wall clock was set back")
            }
            ClockStep::Believed { ms } => {
                tracing::warn!(
                    step_ms = ms,
                    "what expires by age follows the wall clock again"
                );
            }
        }
    }

    /// Removes the files whose delay is over; all of them where space is short.
    pub(super) fn remove_deleted_files(&self) {
        let mut files = self.deleted_files().borrow_mut();
        let due = match self.log_dir().room() {
            Room::Free => files.take_due(self.clock().monotonic()),
            Room::Reserve | Room::Full => files.take_all(),
        };
        if due.is_empty() {
            return;
        }
        let log_dir = self.log_dir().clone();
        executor::spawn_background(async move {
            for DeletedSegment {
                directory,
                base_offset,
            } in due
            {
                let path = partition_files::deleted_log_path(&directory, base_offset);
                let is_space_short = || log_dir.room() != Room::Free;
                if let Err(error) = slow_removal::shrink(path, is_space_short).await {
                    tracing::warn!(%error, "a deleted segment's file was not cut");
                }
                let removed =
                    blocking::run(move || partition_files::remove_deleted(&directory, base_offset));
                if let Err(error) = removed.await {
                    tracing::warn!(%error, "a deleted segment's files stay until the next start");
                }
            }
        })
        .detach();
    }

    // ---- inside

    fn has_due(&self, partition: &HostedPartition) -> bool {
        if partition.flags.is_gone.get() || self.is_stopping() || self.log_dir().failure().is_some()
        {
            return false;
        }
        !self.due(partition).is_empty()
    }

    fn due(&self, partition: &HostedPartition) -> DueSegments {
        let leader = partition.leader.borrow();
        let below = leader.high_watermark();
        DueSegments::of(
            leader.log(),
            rules_of(partition),
            below,
            self.judging_time(),
        )
    }

    /// One round; false where it came to nothing, so that the next look tries again.
    async fn delete_due(self: &Rc<Self>, partition: &Rc<HostedPartition>) -> bool {
        if self.due(partition).is_active_due() {
            self.roll_now(partition).await;
        }
        let due = self.due(partition);
        partition
            .leader
            .borrow_mut()
            .log_mut()
            .plan_start(due.start());
        if due.reasons().is_empty() || !self.store_start(partition, due.bases()).await {
            return false;
        }
        let dropped = partition
            .leader
            .borrow_mut()
            .log_mut()
            .drop_below(due.start());
        self.count_deleted(due.reasons(), &dropped);
        self.delete_files(partition, &dropped).await;
        true
    }

    /// The log goes on in a new segment, which has no space until something is appended. Completes when the one before is sealed. In memory
    /// first: a start that finds no file of the new segment lets the log end in the one before, at the same offset.
    pub(super) async fn roll_now(self: &Rc<Self>, partition: &Rc<HostedPartition>) {
        // Who prepares space may be about to roll by itself.
        if partition.flags.is_preparing.get() || partition.flags.is_gone.get() {
            return;
        }
        let path = {
            let mut leader = partition.leader.borrow_mut();
            let cached_before = Cached::of(&leader);
            leader.log_mut().roll(FilePosition::ZERO);
            let cached = Cached::of(&leader).since(cached_before);
            let path = leader.log().active().path().to_owned();
            drop(leader);
            self.note_cached(partition, cached);
            path
        };
        // What is appended from here on waits for space, which nobody may prepare while the file is made.
        partition.flags.is_preparing.set(true);
        self.mark_active(partition);
        self.seal_written(partition);
        let directory = partition.directory();
        let made = blocking::run(move || {
            // An empty file says where the log goes on, should the checkpoint be lost.
            fs::File::create(&path).map_err(FileError::of("create", &path))?;
            atomic_file::sync_dir(&directory)
        });
        match made.await {
            Ok(()) => {}
            // What is appended next makes the file, and has its directory synced.
            Err(error) if error.shortage().is_some() => {
                tracing::debug!(%error, "no file was made for the segment that follows an expired one");
            }
            Err(error) => self.fail_partition(partition, &error),
        }
        partition.flags.is_preparing.set(false);
        if partition.parked.first_checked().is_some() {
            self.prepare(partition);
        }
        while !partition.leader.borrow().log().is_sealed_up()
            && !partition.flags.is_gone.get()
            && self.log_dir().failure().is_none()
        {
            executor::sleep(Duration::from_millis(1)).await;
        }
    }

    /// Completes when the planned start would survive a crash; false where it never will. `bases` are the segments that lie below it.
    async fn store_start(
        self: &Rc<Self>,
        partition: &Rc<HostedPartition>,
        bases: &[Offset],
    ) -> bool {
        let mut bases = Some(bases.to_vec());
        loop {
            match self.checkpoint(partition, SyncBy::Request).await {
                Ok(()) => return true,
                Err(_) if self.is_stopping() => return false,
                Err(PartitionError::Checkpoint(error)) => match error.shortage() {
                    Some(Shortage::Space) => {}
                    Some(Shortage::Descriptors | Shortage::Memory | Shortage::Busy) => {
                        executor::sleep(Duration::from_millis(DELETION_RETRY_MS)).await;
                        continue;
                    }
                    None => return false,
                },
                Err(_) => return false,
            }
            // The page that the checkpoint needs is found where nothing is lost: in indexes, which recovery would make anew.
            match bases.take() {
                Some(bases) => {
                    // Once the partition is gone its path may be another's.
                    let Some(turn) = CheckpointTurn::wait(partition).await else {
                        return false;
                    };
                    let directory = partition.directory();
                    let removed = blocking::run(move || {
                        bases
                            .iter()
                            .try_for_each(|base| partition_files::remove_indexes(&directory, *base))
                    });
                    if let Err(error) = removed.await {
                        tracing::warn!(%error, "the indexes of old segments were not removed");
                    }
                    drop(turn);
                }
                None => executor::sleep(Duration::from_millis(DELETION_RETRY_MS)).await,
            }
        }
    }

    async fn delete_files(
        self: &Rc<Self>,
        partition: &Rc<HostedPartition>,
        dropped: &[Rc<SealedSegment>],
    ) {
        let log = partition.log_id();
        for segment in dropped {
            self.files()
                .retire(Retired::Segment(segment.key(log)))
                .await;
        }
        let (topic, index) = (&partition.topic, partition.partition.partition);
        let start = partition.leader.borrow().log().start();
        tracing::info!(%topic, partition = %index, segments = dropped.len(), log_start = %start, "old segments are deleted");
        let Some(turn) = CheckpointTurn::wait(partition).await else {
            return;
        };
        let directory = partition.directory();
        let bases = bases_of(dropped);
        let renamed = blocking::run(move || {
            bases.iter().try_for_each(|base| {
                match partition_files::rename_deleted(&directory, *base) {
                    // A longer name may need a block of the directory's, and on a full disk there is none: so without the delay.
                    Err(error) if error.is_disk_full() => {
                        partition_files::remove_segment(&directory, *base)
                    }
                    renamed => renamed,
                }
            })
        });
        let renamed = renamed.await;
        drop(turn);
        if let Err(error) = renamed {
            tracing::warn!(%error, "old segments were not deleted; the next start tries again");
        }
        let delay = Duration::from_millis(partition.config.get().file_delete_delay_ms);
        let due = self.clock().monotonic() + delay;
        for base_offset in bases_of(dropped) {
            let segment = DeletedSegment {
                directory: partition.directory(),
                base_offset,
            };
            self.deleted_files().borrow_mut().push(due, segment);
        }
        if delay.is_zero() {
            self.remove_deleted_files();
        }
    }

    fn count_deleted(&self, due: &[Due], dropped: &[Rc<SealedSegment>]) {
        for (why, segment) in due.iter().zip(dropped) {
            let why = match why {
                Due::LogStart => Deletion::DeleteRecords,
                Due::Size => Deletion::RetentionBytes,
                Due::Age => Deletion::RetentionMs,
            };
            self.metrics().count_deleted(why, 1, segment.size().0);
        }
    }

    /// Says once that a timestamp in the future keeps a log from being deleted by age.
    fn tell_of_future(&self, partition: &HostedPartition) {
        let has_limit = rules_of(partition).ms.is_some();
        let newest = oldest_newest(partition.leader.borrow().log());
        let is_future = has_limit && newest > self.clock().now();
        if is_future && !partition.flags.is_held_by_future.get() {
            let (topic, index) = (&partition.topic, partition.partition.partition);
            tracing::warn!(%topic, partition = %index, timestamp = %newest, "the oldest segment has a timestamp in the future: nothing is deleted by age until retention.ms after it");
        }
        partition.flags.is_held_by_future.set(is_future);
    }
}

/// Kafka's rule: without the policy `delete` nothing goes by age or size.
fn rules_of(partition: &HostedPartition) -> RetentionRules {
    let config = partition.config.get();
    let deletes = config.cleanup_policy.delete;
    RetentionRules {
        bytes: config.retention_bytes.filter(|_| deletes),
        ms: config.retention_ms.filter(|_| deletes),
    }
}

fn bases_of(segments: &[Rc<SealedSegment>]) -> Vec<Offset> {
    segments
        .iter()
        .map(|segment| segment.base_offset())
        .collect()
}
