//! Loading the coordinators from their logs: in the background, one partition after the other, in pieces.

use std::rc::Rc;
use std::time::Duration;

use crate::group::{Coordinator, Replayed};
use crate::io::executor;
use crate::metrics::{Counter, Latency};
use crate::model::limits::{GROUP_LOAD_RETRY_MS, READ_BLOCK_BYTES};
use crate::model::{FilePosition, Offset};
use crate::record::InflateBounds;
use crate::record::header::RecordBatchHeader;
use crate::record::records::RecordReader;
use crate::shard::group_host::{HostedGroups, Loading};
use crate::shard::runtime::Shard;
use crate::storage::batch_selection::Wanted;
use crate::storage::byte_run::ByteRun;
use crate::storage::log::ReadPlan;
use crate::storage::read_steps::ReadSteps;
use crate::storage::reader::{ReadError, read_batches};

/// What loading one partition came to.
#[derive(Clone, Copy, Default)]
struct Loaded {
    record_count: u64,
    skipped_count: u64,
}

impl Shard {
    /// Loads the coordinators that wait for it. Those with nothing to read are ready at once.
    pub(super) fn load_groups(self: &Rc<Self>) {
        let mut to_read = Vec::new();
        for groups in self.groups().all() {
            if groups.state.get() != Loading::Waits {
                continue;
            }
            groups.state.set(Loading::Reads);
            let leader = groups.partition.leader.borrow();
            let is_empty = leader.log().start() == leader.high_watermark();
            drop(leader);
            if is_empty {
                let now = self.clock().monotonic();
                groups.coordinator.borrow_mut().loaded(now);
                groups.state.set(Loading::Done);
            } else {
                to_read.push(groups);
            }
        }
        if to_read.is_empty() {
            return;
        }
        let shard = self.clone();
        executor::spawn_background(async move {
            for groups in to_read {
                shard.load(&groups).await;
            }
        })
        .detach();
    }

    async fn load(self: &Rc<Self>, groups: &Rc<HostedGroups>) {
        let started = self.clock().monotonic();
        let loaded = self.replay_log(groups).await;
        self.begin_coordinating(groups).await;
        let took = self.clock().monotonic().since(started);
        self.metrics()
            .record_latency(Latency::GroupLoad, took.as_nanos() as u64);
        let Loaded {
            record_count,
            skipped_count,
        } = loaded;
        let index = groups.partition.partition.partition;
        tracing::debug!(partition = %index, records = record_count, skipped = skipped_count, took_ms = took.as_millis() as u64, "groups loaded");
    }

    /// Everything was replayed. Requests are taken after this, so whatever is left to do to the groups is done before.
    async fn begin_coordinating(self: &Rc<Self>, groups: &Rc<HostedGroups>) {
        groups
            .coordinator
            .borrow_mut()
            .loaded(self.clock().monotonic());
        self.forget_what_was_deleted(groups).await;
        // Late, since no heartbeat is taken before the end.
        self.run_in_slices(groups, Coordinator::begin_sessions)
            .await;
        self.forget_what_was_deleted(groups).await;
        groups.state.set(Loading::Done);
        self.groups().wake_timer();
    }

    /// Nothing is left to forget when it completes.
    async fn forget_what_was_deleted(self: &Rc<Self>, groups: &Rc<HostedGroups>) {
        loop {
            let forgotten = std::mem::take(&mut *groups.forgotten.borrow_mut());
            if forgotten.is_empty() {
                return;
            }
            self.run_in_slices(groups, |coordinator, ids, now, wall| {
                coordinator.forget_topics(ids, &forgotten, now, wall)
            })
            .await;
        }
    }

    /// Hands every record of the log to the coordinator. What is damaged is skipped, counted, and named in the broker's log.
    async fn replay_log(&self, groups: &HostedGroups) -> Loaded {
        let mut loaded = Loaded::default();
        let (mut offset, end) = {
            let leader = groups.partition.leader.borrow();
            (leader.log().start(), leader.high_watermark())
        };
        let mut damaged_since: Option<Offset> = None;
        while offset < end && !groups.partition.flags.is_gone.get() && !self.is_stopping() {
            let run = match self.read_for_load(groups, offset, end).await {
                Ok(run) => run,
                Err(error @ (ReadError::Disk(_) | ReadError::Index(_))) => {
                    // Not what the log holds but the disk: without the rest, groups would seem to have committed less.
                    tracing::error!(partition = %groups.partition.partition.partition, %error, "groups are not loaded yet; tried again");
                    executor::sleep(Duration::from_millis(GROUP_LOAD_RETRY_MS)).await;
                    continue;
                }
                Err(error @ ReadError::Corrupt { .. }) => {
                    if damaged_since.is_none() {
                        self.skip(groups, &mut loaded, offset, &error);
                        damaged_since = Some(offset);
                    }
                    // The batch behind the damaged one is found by its offset, which only trying tells.
                    offset = offset.plus(1);
                    executor::yield_if_needed().await;
                    continue;
                }
            };
            if run.is_empty() {
                offset = offset.plus(1);
                executor::yield_if_needed().await;
                continue;
            }
            damaged_since = None;
            let bytes = run.to_contiguous();
            let mut rest = &bytes[..];
            while let Ok(header) = RecordBatchHeader::parse(rest) {
                let (batch, behind) = rest.split_at(header.size_bytes());
                self.replay_batch(groups, batch, &mut loaded).await;
                // A damaged base offset, which no checksum covers, must not lead back.
                offset = offset.max(header.next_offset());
                rest = behind;
            }
        }
        loaded
    }

    async fn replay_batch(&self, groups: &HostedGroups, batch: &[u8], loaded: &mut Loaded) {
        let mut reader = match RecordReader::new(batch, InflateBounds::WIDEST) {
            Ok(reader) if reader.header().attributes.is_control() => return,
            Ok(reader) => reader,
            Err(error) => {
                let base_offset =
                    RecordBatchHeader::parse(batch).map_or(Offset::UNKNOWN, |it| it.base_offset);
                return self.skip(groups, loaded, base_offset, &error);
            }
        };
        let base_offset = reader.header().base_offset;
        loop {
            // A batch may hold thousands of commits.
            executor::yield_if_needed().await;
            match reader.next_record() {
                Ok(Some(record)) => {
                    let Some(key) = record.key else {
                        self.skip(groups, loaded, record.offset, &"it has no key");
                        continue;
                    };
                    match groups.coordinator.borrow_mut().replay(key, record.value) {
                        Ok(Replayed::Applied | Replayed::OtherKind(_)) => loaded.record_count += 1,
                        Err(error) => self.skip(groups, loaded, record.offset, &error),
                    }
                }
                Ok(None) => return,
                Err(error) => return self.skip(groups, loaded, base_offset, &error),
            }
        }
    }

    fn skip(
        &self,
        groups: &HostedGroups,
        loaded: &mut Loaded,
        offset: Offset,
        why: &dyn std::fmt::Display,
    ) {
        loaded.skipped_count += 1;
        self.metrics().count(Counter::GroupRecordsSkipped, 1);
        let (topic, index) = (
            &groups.partition.topic,
            groups.partition.partition.partition,
        );
        tracing::error!(%topic, partition = %index, %offset, reason = %why, "damaged: skipped while groups are loaded");
    }

    /// Batches from `offset` on, as much as one read takes.
    async fn read_for_load(
        &self,
        groups: &HostedGroups,
        offset: Offset,
        end: Offset,
    ) -> Result<ByteRun, ReadError> {
        let wanted = Wanted {
            offset,
            max_bytes: READ_BLOCK_BYTES,
            first_whole: true,
            below: end,
        };
        let plan = groups.partition.leader.borrow().log().plan_read(
            wanted,
            None,
            &mut ReadSteps::unbounded(),
        );
        match plan {
            ReadPlan::Nothing => Ok(ByteRun::starting_at(FilePosition::ZERO)),
            ReadPlan::Memory { run, .. } => Ok(run),
            ReadPlan::Disk(read) => read_batches(read, self.read_ahead()).await,
            ReadPlan::Corrupt { segment, position } => {
                let path = groups.partition.leader.borrow().log().segment_path(segment);
                Err(ReadError::Corrupt { path, position })
            }
        }
    }
}
