//! Compaction of the shard's logs, one at a time, in the queue for what may wait: which log, how fast, and putting what was cleaned
//! into its place.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use crate::config::TopicConfig;
use crate::io::clock::Monotonic;
use crate::io::os_error::Shortage;
use crate::io::{blocking, executor};
use crate::metrics::{Counter, Gauge};
use crate::model::limits::{CLEANED_BATCH_WINDOWS, CLEANING_RETRY_MS, SHORTAGE_RETRY_MS};
use crate::model::{Offset, TimestampMs};
use crate::shard::checkpoint::{CheckpointTurn, SyncBy};
use crate::shard::deleted_files::DeletedSegment;
use crate::shard::hosted::{HostedLeader, HostedPartition};
use crate::shard::runtime::Shard;
use crate::storage::cleaner::checkpoint;
use crate::storage::cleaner::cleaned_file::CleanedSegment;
use crate::storage::cleaner::cleaning::{Cleaning, CleaningError, Work};
use crate::storage::cleaner::dirtiness::{CleaningBounds, Dirtiness};
use crate::storage::cleaner::pace::{Pace, Spent};
use crate::storage::cleaner::segment_group::SegmentGroup;
use crate::storage::cleaner::segment_source::SegmentSource;
use crate::storage::cleaner::swap::{self, Swap};
use crate::storage::file_error::FileError;
use crate::storage::partition_files;
use crate::storage::retired_files::Retired;
use crate::storage::sealed_segment::SealedSegment;
use crate::storage::segment_name::CLEANED_SUFFIX;

/// What the cleaner knows of a partition.
#[derive(Default)]
pub struct CleanerState {
    /// `None` until the checkpoint was read.
    first_dirty: Cell<Option<Offset>>,
    /// After a failure: not before this.
    retry_at: Cell<Monotonic>,
    /// The base offset of the first dirty segment, and how old it is, where that was asked for.
    dirty_since: Cell<Option<(Offset, TimestampMs)>>,
}

impl Shard {
    /// Runs as long as the shard does: every `log.cleaner.backoff.ms`, and again at once as long as there is something to clean.
    pub(super) async fn clean_logs(self: Rc<Self>) {
        let pace = RefCell::new(Pace::starting(self.clock().monotonic()));
        while !self.is_stopping() {
            executor::sleep(Duration::from_millis(self.config().cleaner_backoff_ms)).await;
            pace.borrow_mut().begin_round(self.clock().monotonic());
            while let Some((partition, dirtiness)) = self.dirtiest().await {
                self.clean(&partition, dirtiness, &pace).await;
            }
            pace.borrow_mut().end_round(self.clock().monotonic());
        }
    }

    /// The log that needs cleaning most, of those that need it.
    async fn dirtiest(self: &Rc<Self>) -> Option<(Rc<HostedPartition>, Dirtiness)> {
        if self.is_stopping() || self.log_dir().failure().is_some() {
            return None;
        }
        let mut dirtiest: Option<(Rc<HostedPartition>, Dirtiness)> = None;
        let mut ratio_max: f64 = 0.0;
        for partition in self.partitions() {
            let config = partition.config.get();
            if !config.cleanup_policy.compact {
                continue;
            }
            let is_aged = {
                let leader = partition.leader.borrow();
                leader.log().is_active_aged(self.judging_time())
            };
            if is_aged {
                self.roll_now(&partition).await;
            }
            let Some(dirtiness) = self.dirtiness(&partition).await else {
                continue;
            };
            ratio_max = ratio_max.max(dirtiness.ratio());
            let is_due = !dirtiness.is_clean()
                && (dirtiness.ratio() > config.min_cleanable_dirty_ratio
                    || self.is_overdue(&partition, &dirtiness).await);
            let is_more = |(_, most): &(_, Dirtiness)| dirtiness.ratio() > most.ratio();
            if is_due
                && self.clock().monotonic() >= partition.cleaner.retry_at.get()
                && dirtiest.as_ref().is_none_or(is_more)
            {
                dirtiest = Some((partition, dirtiness));
            }
        }
        self.metrics().set_gauge(
            Gauge::CleanerDirtyPercentMax,
            (ratio_max * 100.0).round() as u64,
        );
        dirtiest
    }

    /// `None` if it cannot be told now: the checkpoint does not read, or a segment is being sealed.
    async fn dirtiness(&self, partition: &HostedPartition) -> Option<Dirtiness> {
        let state = &partition.cleaner;
        if state.first_dirty.get().is_none() {
            if partition.leader.borrow().log().sealed().is_empty() {
                return None;
            }
            let directory = partition.directory();
            let read = blocking::run(move || checkpoint::read(&directory)).await;
            let first_dirty = match read {
                Ok(Some(Ok(offset))) => offset,
                Ok(None) => Offset::ZERO,
                Ok(Some(Err(damage))) => {
                    tracing::warn!(topic = %partition.topic, partition = %partition.partition.partition, %damage, "the cleaner's checkpoint is of no use: the whole log counts as dirty");
                    Offset::ZERO
                }
                Err(error) => {
                    tracing::warn!(%error, "the cleaner's checkpoint was not read");
                    return None;
                }
            };
            state.first_dirty.set(Some(first_dirty));
        }
        let leader = partition.leader.borrow();
        let log = leader.log();
        if !log.is_sealed_up() {
            return None;
        }
        let active = log.active().base_offset();
        // An offset from another time of this log is of no use.
        let first_dirty = state.first_dirty.get().filter(|offset| *offset <= active);
        let bounds = CleaningBounds {
            first_dirty: first_dirty.unwrap_or(Offset::ZERO).max(log.start()),
            below: leader.high_watermark().min(log.synced().offset),
            min_lag_ms: partition.config.get().min_compaction_lag_ms,
            now: self.judging_time(),
        };
        Some(Dirtiness::of(log.sealed().iter(), bounds))
    }

    /// Whether the first dirty segment is older than `max.compaction.lag.ms`.
    async fn is_overdue(&self, partition: &HostedPartition, dirtiness: &Dirtiness) -> bool {
        let max_lag_ms = partition.config.get().max_compaction_lag_ms;
        if max_lag_ms == TopicConfig::NEVER {
            return false;
        }
        let segment = {
            let leader = partition.leader.borrow();
            leader.log().sealed().find(dirtiness.first_dirty).cloned()
        };
        let Some(segment) = segment else {
            return false;
        };
        let since = match partition.cleaner.dirty_since.get() {
            Some((base_offset, since)) if base_offset == segment.base_offset() => since,
            _ => {
                let source = SegmentSource::open(&segment, partition.log_id(), self.files()).await;
                let Ok(mut source) = source else {
                    return false;
                };
                let Ok(Some((header, _))) = source.next_batch().await else {
                    return false;
                };
                let since = header.max_timestamp;
                partition
                    .cleaner
                    .dirty_since
                    .set(Some((segment.base_offset(), since)));
                since
            }
        };
        let age_ms = self.judging_time().0.saturating_sub(since.0);
        since > TimestampMs::NONE && u64::try_from(age_ms).is_ok_and(|age| age > max_lag_ms)
    }

    async fn clean(
        self: &Rc<Self>,
        partition: &Rc<HostedPartition>,
        dirtiness: Dirtiness,
        pace: &RefCell<Pace>,
    ) {
        let started = self.clock().monotonic();
        let before_bytes = partition.leader.borrow().log().size_bytes();
        let (topic, index) = (&partition.topic, partition.partition.partition);
        let cleaned = self.clean_log(partition, dirtiness, pace).await;
        let took = self.clock().monotonic().since(started);
        self.metrics()
            .count(Counter::CleanerMs, took.as_millis() as u64);
        let is_gone = partition.flags.is_gone.get() || self.is_stopping();
        match cleaned {
            Ok(()) => {
                let after_bytes = partition.leader.borrow().log().size_bytes();
                self.metrics().count(Counter::CleanerRuns, 1);
                tracing::info!(%topic, partition = %index, before_bytes, after_bytes, took_ms = took.as_millis() as u64, "compacted");
            }
            Err(CleaningError::Ended) => {
                self.leave_alone(partition, self.config().cleaner_backoff_ms)
            }
            // Whatever it was: its files are gone with it.
            Err(_) if is_gone => {}
            Err(error) => {
                self.metrics().count(Counter::CleanerFailures, 1);
                tracing::error!(%topic, partition = %index, %error, "compaction failed; it is tried again later");
                if error.is_device_failure() {
                    self.log_dir().fail(&error);
                }
                self.leave_alone(partition, CLEANING_RETRY_MS);
            }
        }
    }

    fn leave_alone(&self, partition: &HostedPartition, ms: u64) {
        let retry_at = self.clock().monotonic() + Duration::from_millis(ms);
        partition.cleaner.retry_at.set(retry_at);
    }

    /// Cleans up to where `dirtiness` says, in as many passes as the keys need.
    async fn clean_log(
        self: &Rc<Self>,
        partition: &Rc<HostedPartition>,
        dirtiness: Dirtiness,
        pace: &RefCell<Pace>,
    ) -> Result<(), CleaningError> {
        // A start must not look for its recovery point in a segment that is replaced, so the point moves on to the active one.
        self.checkpoint(partition, SyncBy::Request)
            .await
            .map_err(|_| CleaningError::Ended)?;
        let map_bytes =
            self.config().cleaner_dedupe_buffer_bytes / usize::from(self.router().shard_count());
        let map_bytes = map_bytes.min(self.memory().cleaner_key_bytes);
        let directory = partition.directory();
        let mut first_dirty = dirtiness.first_dirty;
        let mut supervisor = async |work: Work| self.supervise(partition, pace, work).await;
        while first_dirty < dirtiness.first_uncleanable {
            let config = partition.config.get();
            let cleaning = Cleaning {
                log: partition.log_id(),
                dir: &directory,
                files: self.files(),
                pool: self.pool(),
                index_interval_bytes: config.index_interval_bytes,
                judging: self.judging_time(),
                stamping: self.stamping_time(),
                delete_retention_ms: config.delete_retention_ms,
                bounds: self.inflate_bounds().kept_in(CLEANED_BATCH_WINDOWS),
            };
            let (segments, last_of_producers) = {
                let leader = partition.leader.borrow();
                let sealed = leader.log().sealed().iter();
                let cleanable = sealed
                    .take_while(|it| it.next_offset() <= dirtiness.first_uncleanable)
                    .cloned();
                let segments: Vec<Rc<SealedSegment>> = cleanable.collect();
                (segments, leader.producers().last_offsets())
            };
            let map = cleaning
                .map_keys(&segments, first_dirty, map_bytes, &mut supervisor)
                .await?;
            if map.end() <= first_dirty {
                return Err(CleaningError::Ended);
            }
            let reached = segments.partition_point(|it| it.base_offset() < map.end());
            for group in SegmentGroup::divide(&segments[..reached], config.segment_bytes) {
                let cleaned = cleaning
                    .clean(&group, &map, &last_of_producers, &mut supervisor)
                    .await;
                match cleaned {
                    Ok(Some(cleaned)) => self.replace(partition, &group, cleaned).await?,
                    Ok(None) => self.discard(partition, &group).await,
                    Err(error) => {
                        self.discard(partition, &group).await;
                        return Err(error);
                    }
                }
            }
            first_dirty = map.end();
            self.note_cleaned(partition, first_dirty).await?;
        }
        Ok(())
    }

    /// Counts what a cleaning did, keeps it waiting, and ends it where it may not go on.
    async fn supervise(
        &self,
        partition: &HostedPartition,
        pace: &RefCell<Pace>,
        work: Work,
    ) -> Result<(), CleaningError> {
        let metrics = self.metrics();
        metrics.count(Counter::CleanerReadBytes, work.read_bytes);
        metrics.count(Counter::CleanerWriteBytes, work.written_bytes);
        metrics.count(Counter::CleanerRecordsRemoved, work.removed_records);
        let limit = self.config().cleaner_io_bytes_per_second;
        let spent = Spent {
            bytes: work.read_bytes + work.written_bytes,
            limit_bytes_per_second: limit / f64::from(self.router().shard_count()),
            served_count: self.served_count(),
        };
        let wait = pace.borrow_mut().spend(spent, self.clock().monotonic());
        if wait >= Duration::from_millis(1) {
            executor::sleep(wait).await;
        } else {
            executor::yield_if_needed().await;
        }
        self.check_may_clean(partition)
    }

    fn check_may_clean(&self, partition: &HostedPartition) -> Result<(), CleaningError> {
        let may = !self.is_stopping()
            && !partition.flags.is_gone.get()
            && partition.config.get().cleanup_policy.compact
            && self.log_dir().failure().is_none();
        may.then_some(()).ok_or(CleaningError::Ended)
    }

    /// Puts a cleaned segment in the place of its group: on disk, then for whoever reads from here on.
    async fn replace(
        self: &Rc<Self>,
        partition: &Rc<HostedPartition>,
        group: &SegmentGroup,
        cleaned: CleanedSegment,
    ) -> Result<(), CleaningError> {
        let turn = CheckpointTurn::wait(partition).await;
        let turn = turn.ok_or(CleaningError::Ended)?;
        let begun = match self.check_may_clean(partition) {
            Ok(()) if partition.leader.borrow_mut().log_mut().begin_swap(group) => Ok(()),
            // Retention was faster.
            Ok(()) => Err(CleaningError::Ended),
            Err(ended) => Err(ended),
        };
        let (directory, index_tail) = (partition.directory(), cleaned.index_tail());
        let stored = match begun {
            Ok(()) => {
                let directory = directory.clone();
                let store = move || index_tail.write_with_suffix(&directory, CLEANED_SUFFIX);
                blocking::run(store).await.map_err(CleaningError::from)
            }
            Err(ended) => {
                drop(turn);
                self.discard(partition, group).await;
                return Err(ended);
            }
        };
        if let Err(error) = stored {
            self.give_up_swap(partition, group, turn).await;
            return Err(error);
        }
        let swap = Arc::new(Swap::new(&directory, &group.base_offsets()));
        let mut taken = 0;
        // This leaves the old files alone, so on a full disk they just stay.
        let decided = self
            .swap(partition, &swap, &mut taken, Swap::DECIDING_STEPS)
            .await;
        if let Err(error) = decided {
            if error.shortage().is_some() && Swap::is_undecided(taken) {
                self.give_up_swap(partition, group, turn).await;
            } else {
                self.fail_partition(partition, &error);
            }
            return Err(error.into());
        }
        // From here on nobody opens the old files any more; who wants to read them waits for the cleaned one.
        let log = partition.log_id();
        for segment in group.segments() {
            self.files()
                .retire(Retired::Segment(segment.key(log)))
                .await;
            segment.retire().await;
        }
        let replaced = group.base_offsets();
        let linked = blocking::run(move || {
            // Without the second name its space is freed at once, which is all.
            let is_linked = |base_offset: &Offset| {
                matches!(
                    partition_files::link_deleted(&directory, *base_offset),
                    Ok(true)
                )
            };
            let linked = replaced.into_iter().filter(is_linked);
            let segments = linked.map(|base_offset| DeletedSegment {
                directory: directory.clone(),
                base_offset,
            });
            segments.collect::<Vec<_>>()
        });
        let linked = linked.await;
        let step_count = swap.steps().len();
        if let Err(error) = self.swap(partition, &swap, &mut taken, step_count).await {
            if error.shortage().is_some() && self.is_stopping() {
                // The next start takes the steps that are left.
                return Err(CleaningError::Ended);
            }
            // How far it came is only known to the next start.
            self.fail_partition(partition, &error);
            return Err(error.into());
        }
        let now = self.clock().monotonic();
        {
            let mut deleted = self.deleted_files().borrow_mut();
            linked.into_iter().for_each(|it| deleted.push(now, it));
        }
        let removed_bytes = group.size_bytes().saturating_sub(cleaned.size.0);
        let mut checkpointed = partition.checkpointed.get();
        checkpointed.size_bytes = checkpointed.size_bytes.saturating_sub(removed_bytes);
        partition.checkpointed.set(checkpointed);
        partition
            .leader
            .borrow_mut()
            .log_mut()
            .end_swap(group, Some(cleaned));
        drop(turn);
        if !partition.flags.is_active.get() {
            // Nobody puts it to rest again.
            partition.leader.borrow_mut().log_mut().release_memory();
        }
        for segment in group.segments() {
            self.read_ahead().forget_segment(segment.key(log));
        }
        self.files().close(group.cleaned_key(log));
        Ok(())
    }

    /// Takes the steps of the swap `until` so many are taken, and waits for descriptors where one needs them and there are none.
    async fn swap(
        &self,
        partition: &HostedPartition,
        swap: &Arc<Swap>,
        taken: &mut usize,
        until: usize,
    ) -> Result<(), FileError> {
        let mut is_told = false;
        loop {
            let (steps, mut taken_now) = (swap.clone(), *taken);
            let run = blocking::run(move || {
                let result = steps.run_on(&mut taken_now, until);
                (taken_now, result)
            });
            let (taken_now, result) = run.await;
            *taken = taken_now;
            let shortage = result.as_ref().err().and_then(FileError::shortage);
            // On a full disk an undecided swap is given up, which leaves the old files as they are.
            let may_pass = match shortage {
                Some(Shortage::Space) => !Swap::is_undecided(*taken),
                Some(Shortage::Descriptors | Shortage::Memory | Shortage::Busy) => true,
                None => false,
            };
            match result {
                Err(error) if may_pass && !self.is_stopping() && !partition.flags.is_gone.get() => {
                    if !is_told {
                        tracing::warn!(%error, "cleaned segments wait to take the place of the old ones");
                        is_told = true;
                    }
                    self.metrics().count(Counter::ShortageRetries, 1);
                    executor::sleep(Duration::from_millis(SHORTAGE_RETRY_MS)).await;
                }
                result => return result,
            }
        }
    }

    /// The old files stay, and what was cleaned goes.
    async fn give_up_swap(
        &self,
        partition: &Rc<HostedPartition>,
        group: &SegmentGroup,
        turn: CheckpointTurn,
    ) {
        let end_swap = |leader: &mut HostedLeader| leader.log_mut().end_swap(group, None);
        end_swap(&mut partition.leader.borrow_mut());
        drop(turn);
        self.discard(partition, group).await;
    }

    /// Removes what was cleaned of a group and is not to take its place.
    async fn discard(&self, partition: &Rc<HostedPartition>, group: &SegmentGroup) {
        self.files().close(group.cleaned_key(partition.log_id()));
        let Some(turn) = CheckpointTurn::wait(partition).await else {
            return;
        };
        let (directory, base_offset) = (partition.directory(), group.base_offset());
        let removed = blocking::run(move || swap::remove_cleaned(&directory, base_offset));
        if let Err(error) = removed.await {
            tracing::warn!(%error, "what was cleaned in vain stays until the next start");
        }
        drop(turn);
    }

    async fn note_cleaned(
        &self,
        partition: &Rc<HostedPartition>,
        first_dirty: Offset,
    ) -> Result<(), CleaningError> {
        let turn = CheckpointTurn::wait(partition).await;
        let turn = turn.ok_or(CleaningError::Ended)?;
        self.check_may_clean(partition)?;
        let directory = partition.directory();
        let written: Result<(), FileError> =
            blocking::run(move || checkpoint::write(&directory, first_dirty)).await;
        drop(turn);
        partition.cleaner.first_dirty.set(Some(first_dirty));
        written.map_err(CleaningError::from)
    }
}
