//! Fetch: from memory at once, from disk in a task of its own; and the long poll's waiting.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use smallvec::SmallVec;

use crate::io::executor;
use crate::metrics::{Counter, Stage};
use crate::model::api_key::FETCH;
use crate::model::{LeaderEpoch, Offset, TopicPartition};
use crate::shard::call::ReplyTo;
use crate::shard::command::{PartitionError, ReadDone, ReadItem, ReadReply, ReadRequest, WaitFlag};
use crate::shard::hosted::{HostedLeader, HostedPartition};
use crate::shard::runtime::Shard;
use crate::storage::batch_selection::Wanted;
use crate::storage::byte_run::ByteRun;
use crate::storage::log::ReadPlan;
use crate::storage::reader::{ReadError, read_batches};

/// A long poll: answered at the first of its partitions that has something.
pub struct DataWaiter {
    pub flag: WaitFlag,
    pub poll: Rc<std::cell::Cell<Option<ReplyTo<()>>>>,
}

/// The state of a read over several partitions.
struct ReadProgress {
    replies: Vec<ReadReply>,
    left_bytes: usize,
    is_first: bool,
    /// What is left was too little for a partition's next batch. The disk is not read to find that out for each of the others.
    is_full: bool,
}

impl Shard {
    pub(super) fn read(self: &Rc<Self>, request: ReadRequest, reply: ReplyTo<Vec<ReadReply>>) {
        let ReadRequest {
            items,
            max_bytes,
            sent_at,
        } = request;
        let started = self.clock().monotonic();
        let queued_ns = started.since(sent_at).as_nanos() as u64;
        self.metrics().record_stage(FETCH, Stage::Queue, queued_ns);
        let mut progress = ReadProgress {
            replies: Vec::with_capacity(items.len()),
            left_bytes: max_bytes,
            is_first: true,
            is_full: false,
        };
        let mut items = items.into_iter();
        while let Some(item) = items.next() {
            if let Some((partition, plan)) = self.read_from_memory(item, &mut progress) {
                let shard = self.clone();
                // What memory does not hold, and what comes after it, goes on in a task.
                executor::spawn_local(async move {
                    shard.read_from_disk(&partition, plan, &mut progress).await;
                    for item in items {
                        if let Some((partition, plan)) = shard.read_from_memory(item, &mut progress)
                        {
                            shard.read_from_disk(&partition, plan, &mut progress).await;
                        }
                    }
                    shard.router().answer(reply, progress.replies);
                })
                .detach();
                return;
            }
        }
        let executed = self.clock().monotonic().since(started);
        self.metrics()
            .record_stage(FETCH, Stage::Execute, executed.as_nanos() as u64);
        self.router().answer(reply, progress.replies);
    }

    /// Answers from memory or with an error; hands back the plan if the disk is needed.
    fn read_from_memory(
        &self,
        item: ReadItem,
        progress: &mut ReadProgress,
    ) -> Option<(Rc<HostedPartition>, ReadPlan)> {
        let Some(partition) = self.partition(item.partition) else {
            progress
                .replies
                .push(Err(PartitionError::Unknown(item.partition)));
            return None;
        };
        let leader = partition.leader.borrow();
        if let Err(error) = check_read(&leader, &item) {
            progress.replies.push(Err(error));
            return None;
        }
        let wanted = Wanted {
            offset: item.offset,
            max_bytes: item.max_bytes.min(progress.left_bytes),
            first_whole: progress.is_first,
            below: leader.high_watermark(),
        };
        let is_at_end = item.offset >= wanted.below || wanted.max_bytes == 0 && !wanted.first_whole;
        let run = match if is_at_end {
            ReadPlan::Nothing
        } else {
            leader.log().plan_read(wanted)
        } {
            ReadPlan::Nothing => ByteRun::starting_at(crate::model::FilePosition::ZERO),
            ReadPlan::Memory(run) => {
                self.metrics()
                    .count(Counter::TailReadBytes, run.len() as u64);
                run
            }
            ReadPlan::Disk(_) if progress.is_full => {
                ByteRun::starting_at(crate::model::FilePosition::ZERO)
            }
            plan @ (ReadPlan::Disk(_) | ReadPlan::Corrupt { .. }) => {
                drop(leader);
                return Some((partition, plan));
            }
        };
        drop(leader);
        progress.add(&partition, run);
        None
    }

    async fn read_from_disk(
        &self,
        partition: &HostedPartition,
        mut plan: ReadPlan,
        progress: &mut ReadProgress,
    ) {
        let mut is_limited = false;
        let started = self.clock().monotonic();
        let run = loop {
            match plan {
                ReadPlan::Disk(read) => {
                    let (key, wanted) = (read.key, read.wanted);
                    is_limited = !wanted.first_whole && wanted.max_bytes == progress.left_bytes;
                    let run = read_batches(read, self.read_ahead()).await;
                    if run.is_ok() || !self.files().is_retired(key) {
                        break run;
                    }
                    // The segment left the log meanwhile, or is just being replaced by a cleaned one.
                    executor::sleep(Duration::from_millis(1)).await;
                    plan = match self.plan_again(partition, wanted) {
                        Ok(plan) => plan,
                        Err(why) => return progress.replies.push(Err(why)),
                    };
                }
                ReadPlan::Corrupt { segment, position } => {
                    let path = partition.leader.borrow().log().segment_path(segment);
                    break Err(ReadError::Corrupt { path, position });
                }
                ReadPlan::Memory(run) => break Ok(run),
                ReadPlan::Nothing => {
                    break Ok(ByteRun::starting_at(crate::model::FilePosition::ZERO));
                }
            }
        };
        let read_ns = self.clock().monotonic().since(started).as_nanos() as u64;
        self.metrics().record_stage(FETCH, Stage::Disk, read_ns);
        match run {
            Ok(run) => {
                progress.is_full |= run.is_empty() && is_limited;
                progress.add(partition, run);
            }
            Err(error) => {
                tracing::error!(topic = %partition.topic, partition = %partition.partition.partition, %error, "read failed");
                progress
                    .replies
                    .push(Err(PartitionError::Read(Arc::new(error))));
            }
        }
    }

    fn plan_again(
        &self,
        partition: &HostedPartition,
        wanted: Wanted,
    ) -> Result<ReadPlan, PartitionError> {
        if partition.flags.is_gone.get() {
            return Err(PartitionError::Unknown(partition.partition));
        }
        let leader = partition.leader.borrow();
        let start = leader.log().start();
        if wanted.offset < start {
            return Err(PartitionError::OffsetOutOfRange {
                offset: wanted.offset,
                start,
                end: leader.high_watermark(),
            });
        }
        Ok(leader.log().plan_read(wanted))
    }

    /// Answers `reply` as soon as one of the partitions has a record at its offset, or cannot be read from any more.
    pub(super) fn await_data(
        &self,
        items: Vec<(TopicPartition, Offset)>,
        flag: WaitFlag,
        reply: ReplyTo<()>,
    ) {
        let poll = Rc::new(std::cell::Cell::new(Some(reply)));
        for (id, offset) in items {
            let waiter = DataWaiter {
                flag: flag.clone(),
                poll: poll.clone(),
            };
            let ready = match self.partition(id) {
                Some(partition) => {
                    let mut leader = partition.leader.borrow_mut();
                    if leader.waiters_mut().len() >= crate::model::limits::FETCH_WAITERS_SWEEP_COUNT
                    {
                        leader
                            .waiters_mut()
                            .retain(|waiter| waiter.flag.strong_count() > 0);
                    }
                    leader.wait_for_data(offset, waiter)
                }
                None => Some(waiter),
            };
            if let Some(waiter) = ready {
                self.tell_waiter(waiter);
                return;
            }
        }
    }

    pub(super) fn tell_waiter(&self, waiter: DataWaiter) {
        if let Some(reply) = waiter.poll.take() {
            self.router().answer(reply, ());
        }
    }
}

impl ReadProgress {
    fn add(&mut self, partition: &HostedPartition, run: ByteRun) {
        self.left_bytes = self.left_bytes.saturating_sub(run.len());
        self.is_first &= run.is_empty();
        let leader = partition.leader.borrow();
        self.replies.push(Ok(ReadDone {
            high_watermark: leader.high_watermark(),
            log_start: leader.log().start(),
            records_bytes: run.len(),
            records: if run.is_empty() {
                SmallVec::new()
            } else {
                run.into_pieces()
            },
        }));
    }
}

fn check_read(leader: &HostedLeader, item: &ReadItem) -> Result<(), PartitionError> {
    check_epoch(leader.epoch(), item.current_epoch)?;
    let (start, end) = (leader.log().start(), leader.high_watermark());
    if item.offset < start || item.offset > end {
        return Err(PartitionError::OffsetOutOfRange {
            offset: item.offset,
            start,
            end,
        });
    }
    Ok(())
}

/// The leader epoch that a client believes in must be the leader's (KIP-320).
pub(super) fn check_epoch(current: LeaderEpoch, given: LeaderEpoch) -> Result<(), PartitionError> {
    if !given.is_known() || given == current {
        Ok(())
    } else if given < current {
        Err(PartitionError::FencedLeaderEpoch { given, current })
    } else {
        Err(PartitionError::UnknownLeaderEpoch { given, current })
    }
}
