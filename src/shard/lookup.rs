//! Questions about a partition's log: offsets by time, ends of epochs, sizes, producers; and DeleteRecords.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use crate::io::executor;
use crate::model::limits::MISLEADING_BATCHES_MAX;
use crate::model::{LeaderEpoch, Offset, TimestampMs, TopicPartition};
use crate::shard::call::ReplyTo;
use crate::shard::checkpoint::SyncBy;
use crate::shard::command::{
    DeleteBefore, DeleteRecordsReply, EpochEndItem, EpochEndReply, ListOffsetsItem,
    ListOffsetsReply, ListedOffset, LogSize, OffsetAt, PartitionError, ProducersReply,
};
use crate::shard::hosted::HostedPartition;
use crate::shard::read::check_epoch;
use crate::shard::runtime::Shard;
use crate::storage::log::SegmentKey;
use crate::storage::newest_record::{NewestOf, newest_timestamp};
use crate::storage::reader::{FoundByTime, ReadError, TimestampedOffset, find_by_time};

/// Why a lookup gave no answer.
enum LookUpError {
    Refused(PartitionError),
    /// A segment left the log meanwhile, or is just being replaced by a cleaned one: to be tried again.
    SegmentReplaced,
}

impl From<PartitionError> for LookUpError {
    fn from(why: PartitionError) -> Self {
        Self::Refused(why)
    }
}

impl Shard {
    pub(super) fn list_offsets(
        self: &Rc<Self>,
        items: Vec<ListOffsetsItem>,
        reply: ReplyTo<Vec<ListOffsetsReply>>,
    ) {
        let shard = self.clone();
        executor::spawn_local(async move {
            let mut replies = Vec::with_capacity(items.len());
            for item in items {
                replies.push(shard.list_offset(item).await);
                executor::yield_if_needed().await;
            }
            shard.router().answer(reply, replies);
        })
        .detach();
    }

    /// Answers one item after the other, and lets others run in between: a request may name every partition, and a partition may have
    /// much to tell.
    fn answer_each<T: 'static, R: 'static>(
        self: &Rc<Self>,
        items: Vec<T>,
        reply: ReplyTo<Vec<R>>,
        look: impl Fn(&Self, T) -> R + 'static,
    ) {
        let shard = self.clone();
        executor::spawn_local(async move {
            let mut replies = Vec::with_capacity(items.len());
            for item in items {
                replies.push(look(&shard, item));
                executor::yield_if_needed().await;
            }
            shard.router().answer(reply, replies);
        })
        .detach();
    }

    async fn list_offset(&self, item: ListOffsetsItem) -> ListOffsetsReply {
        loop {
            let partition = self.hosted(item.partition)?;
            match self.look_up(&partition, item).await {
                Err(LookUpError::SegmentReplaced) => {
                    executor::sleep(Duration::from_millis(1)).await;
                }
                Err(LookUpError::Refused(why)) => return Err(why),
                Ok(found) => return Ok(found),
            }
        }
    }

    async fn look_up(
        &self,
        partition: &HostedPartition,
        item: ListOffsetsItem,
    ) -> Result<Option<ListedOffset>, LookUpError> {
        check_epoch(partition.leader.borrow().epoch(), item.current_epoch)?;
        let without_time = |offset| TimestampedOffset {
            timestamp: TimestampMs::NONE,
            offset,
        };
        let found = match item.at {
            OffsetAt::Nowhere => None,
            OffsetAt::Earliest => Some(without_time(partition.leader.borrow().log().start())),
            OffsetAt::Latest => Some(without_time(partition.leader.borrow().high_watermark())),
            OffsetAt::Timestamp(timestamp) => self.first_at(partition, timestamp).await?.record,
            OffsetAt::MaxTimestamp => self.newest(partition).await?,
        };
        let leader = partition.leader.borrow();
        let epochs = leader.log().epochs();
        Ok(found.map(|found| ListedOffset {
            timestamp: found.timestamp,
            offset: found.offset,
            leader_epoch: epochs.epoch_of(found.offset).unwrap_or(leader.epoch()),
        }))
    }

    /// The first record that consumers may see whose timestamp is `timestamp` or later.
    async fn first_at(
        &self,
        partition: &HostedPartition,
        timestamp: TimestampMs,
    ) -> Result<FoundByTime, LookUpError> {
        // Each holds a codec's window and its largest record while others have their turn.
        let _slot = self.lookup_slots().take().await;
        let (views, from, below) = {
            let leader = partition.leader.borrow();
            let log = leader.log();
            (
                log.plan_time_lookup(timestamp),
                log.start(),
                leader.high_watermark(),
            )
        };
        let keys = views.iter().map(|view| view.key).collect();
        let found = find_by_time(
            views,
            timestamp,
            from,
            below,
            self.inflate_bounds(),
            self.read_ahead(),
        )
        .await;
        found.map_err(|error| self.lookup_failed(partition, keys, error))
    }

    /// The record with the largest timestamp of those that consumers may see, the first of several.
    async fn newest(
        &self,
        partition: &HostedPartition,
    ) -> Result<Option<TimestampedOffset>, LookUpError> {
        // The log's largest is the answer as long as it is not one that was deleted, or is not confirmed yet.
        let of_log = partition.leader.borrow().log().max_timestamp();
        if of_log == TimestampMs::NONE {
            return Ok(None);
        }
        let mut found = self.first_at(partition, of_log).await?;
        let mut misleading = Vec::new();
        while found.record.is_none() {
            misleading.append(&mut found.misleading);
            if misleading.len() > MISLEADING_BATCHES_MAX {
                break;
            }
            let slot = self.lookup_slots().take().await;
            let (segments, start, below) = {
                let leader = partition.leader.borrow();
                let below = leader.high_watermark();
                let log = leader.log();
                (log.plan_newest(below, &misleading), log.start(), below)
            };
            let keys = segments.iter().filter_map(NewestOf::key).collect();
            let newest = newest_timestamp(
                segments,
                start,
                below,
                &misleading,
                self.inflate_bounds(),
                self.read_ahead(),
            );
            let newest = newest.await;
            drop(slot);
            let newest = newest.map_err(|error| self.lookup_failed(partition, keys, error))?;
            if newest == TimestampMs::NONE {
                break;
            }
            found = self.first_at(partition, newest).await?;
            found.misleading.retain(|it| !misleading.contains(it));
            if found.misleading.is_empty() {
                // If there is none now, the log's start has moved past it meanwhile.
                break;
            }
        }
        Ok(found.record)
    }

    fn lookup_failed(
        &self,
        partition: &HostedPartition,
        keys: Vec<SegmentKey>,
        error: ReadError,
    ) -> LookUpError {
        if keys.iter().any(|key| self.files().is_retired(*key)) {
            return LookUpError::SegmentReplaced;
        }
        tracing::error!(topic = %partition.topic, partition = %partition.partition.partition, %error, "lookup by time failed");
        LookUpError::Refused(PartitionError::Read(Arc::new(error)))
    }

    pub(super) fn epoch_ends(
        self: &Rc<Self>,
        items: Vec<EpochEndItem>,
        reply: ReplyTo<Vec<EpochEndReply>>,
    ) {
        self.answer_each(items, reply, Self::epoch_end);
    }

    fn epoch_end(&self, item: EpochEndItem) -> EpochEndReply {
        let partition = self.hosted(item.partition)?;
        let leader = partition.leader.borrow();
        check_epoch(leader.epoch(), item.current_epoch)?;
        if item.epoch > leader.epoch() {
            return Ok((LeaderEpoch::UNKNOWN, Offset::UNKNOWN));
        }
        // The epoch that leads now reaches to the log's end even before its first record.
        if item.epoch == leader.epoch() {
            return Ok((item.epoch, leader.log().end().offset));
        }
        let end = leader
            .log()
            .epochs()
            .end_offset_for(item.epoch, leader.log().end().offset);
        Ok((end.epoch, end.end_offset))
    }

    pub(super) fn log_sizes(self: &Rc<Self>, reply: ReplyTo<Vec<LogSize>>) {
        self.answer_each(self.partitions(), reply, |_, partition| LogSize {
            partition: partition.partition,
            size_bytes: partition.leader.borrow().log().size_bytes(),
        });
    }

    pub(super) fn active_producers(
        self: &Rc<Self>,
        partitions: Vec<TopicPartition>,
        reply: ReplyTo<Vec<ProducersReply>>,
    ) {
        self.answer_each(partitions, reply, |shard, id| {
            let partition = shard.hosted(id)?;
            Ok(partition.leader.borrow().producers().active_producers())
        });
    }

    pub(super) fn delete_records(
        self: &Rc<Self>,
        items: Vec<(TopicPartition, DeleteBefore)>,
        reply: ReplyTo<Vec<DeleteRecordsReply>>,
    ) {
        let shard = self.clone();
        executor::spawn_local(async move {
            let mut replies = Vec::with_capacity(items.len());
            for (partition, before) in items {
                replies.push(shard.delete_before(partition, before).await);
            }
            shard.router().answer(reply, replies);
        })
        .detach();
    }

    /// Completes when the new log start offset would survive a crash.
    async fn delete_before(
        self: &Rc<Self>,
        id: TopicPartition,
        before: DeleteBefore,
    ) -> DeleteRecordsReply {
        let partition = self.hosted(id)?;
        if let Some(why) = self.log_dir().failure() {
            return Err(PartitionError::LogDirOffline(why));
        }
        let policy = partition.config.get().cleanup_policy;
        if policy.compact && !policy.delete {
            return Err(PartitionError::OnlyCompacted);
        }
        let start = {
            let mut leader = partition.leader.borrow_mut();
            let end = leader.high_watermark();
            let start = leader.log().start();
            let offset = match before {
                DeleteBefore::Offset(offset) => offset,
                DeleteBefore::HighWatermark => end,
            };
            if offset < Offset::ZERO || offset > end {
                return Err(PartitionError::OffsetOutOfRange { offset, start, end });
            }
            leader.log_mut().plan_start(offset);
            offset
        };
        self.checkpoint(&partition, SyncBy::Request).await?;
        let start = {
            let mut leader = partition.leader.borrow_mut();
            leader.log_mut().raise_start(start);
            leader.log().start()
        };
        self.delete_due_segments(&partition);
        Ok(start)
    }
}
