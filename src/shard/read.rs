//! Fetch: from memory at once, from disk in a task of its own. A read of more than a slice of work lets others run in between.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use smallvec::SmallVec;

use crate::io::executor;
use crate::metrics::{Counter, Stage};
use crate::model::api_key::FETCH;
use crate::model::limits::{READ_BLOCK_BYTES, READ_STEPS_PER_ITEM};
use crate::model::{FilePosition, LeaderEpoch};
use crate::shard::call::ReplyTo;
use crate::shard::command::{
    PartitionError, ReadBounds, ReadDone, ReadItem, ReadReply, ReadRequest, Unread,
};
use crate::shard::hosted::{HostedLeader, HostedPartition};
use crate::shard::runtime::Shard;
use crate::storage::batch_selection::Wanted;
use crate::storage::byte_run::ByteRun;
use crate::storage::log::{Ahead, ReadPlace, ReadPlan};
use crate::storage::read_steps::ReadSteps;
use crate::storage::reader::{ReadError, read_batches};

/// A read over several partitions, as far as it has got.
struct Reading {
    items: Vec<ReadItem>,
    phase: Phase,
    /// The item to be looked at next in this phase.
    next: usize,
    count: Count,
    progress: ReadProgress,
}

#[derive(Clone, Copy)]
enum Phase {
    /// Is there enough to read at all?
    Counts,
    /// It is not read: what there is, item by item.
    Offers,
    Reads,
}

/// Why a reading stopped.
enum Step {
    Done,
    /// Its slice of work is used up.
    Pause,
    /// This partition needs more than memory gave at once.
    Needs(Box<PendingRead>),
}

/// What of a fetch's partitions has been counted.
struct Count {
    bounds: ReadBounds,
    min_bytes: u64,
    found_bytes: u64,
    is_refused: bool,
    /// With nothing cut it is this much or less; `None`: something must be cut.
    uncut_bytes: Option<u64>,
}

/// What a read over several partitions has put together.
struct ReadProgress {
    replies: Vec<ReadReply>,
    left_bytes: usize,
    left_pieces: usize,
    /// The next partition may send its first batch whatever its size.
    may_exceed: bool,
    /// Only the very next one, whether it has something or not.
    is_granted: bool,
    /// What is left was too little for a partition's next batch. The disk is not read to find that out for each of the others.
    is_full: bool,
    steps: ReadSteps,
}

/// A partition's read that goes on.
struct PendingRead {
    partition: Rc<HostedPartition>,
    wanted: Wanted,
    plan: ReadPlan,
}

impl Shard {
    pub(super) fn read(self: &Rc<Self>, request: ReadRequest, reply: ReplyTo<Vec<ReadReply>>) {
        let started = self.clock().monotonic();
        let queued_ns = started.since(request.sent_at).as_nanos() as u64;
        self.metrics().record_stage(FETCH, Stage::Queue, queued_ns);
        let mut reading = Reading::new(request);
        match self.read_step(&mut reading) {
            Step::Done => {
                let executed = self.clock().monotonic().since(started);
                self.metrics()
                    .record_stage(FETCH, Stage::Execute, executed.as_nanos() as u64);
                self.router().answer(reply, reading.progress.replies);
            }
            step => {
                let shard = self.clone();
                executor::spawn_local(async move {
                    let replies = shard.read_on(reading, step).await;
                    shard.router().answer(reply, replies);
                })
                .detach();
            }
        }
    }

    /// The rest of a reading that stopped for `step`.
    async fn read_on(&self, mut reading: Reading, mut step: Step) -> Vec<ReadReply> {
        loop {
            match step {
                Step::Done => return reading.progress.replies,
                Step::Pause => {}
                Step::Needs(pending) => {
                    self.read_pending(*pending, &mut reading.progress).await;
                }
            }
            executor::yield_if_needed().await;
            reading.progress.steps.refill();
            step = self.read_step(&mut reading);
        }
    }

    /// Goes on as far as one slice of work and memory reach.
    fn read_step(&self, reading: &mut Reading) -> Step {
        loop {
            if reading.progress.steps.is_used_up() {
                return Step::Pause;
            }
            let Some(&item) = reading.items.get(reading.next) else {
                match reading.phase {
                    Phase::Counts => reading.begin(match reading.count.is_to_be_read() {
                        true => Phase::Reads,
                        false => Phase::Offers,
                    }),
                    Phase::Offers | Phase::Reads => return Step::Done,
                }
                continue;
            };
            reading.next += 1;
            reading.progress.steps.take(READ_STEPS_PER_ITEM);
            match reading.phase {
                Phase::Counts => {
                    self.count(&item, &mut reading.count);
                    if reading.count.is_decided() {
                        reading.next = reading.items.len();
                    }
                }
                Phase::Offers => reading.progress.replies.push(self.offer(&item)),
                Phase::Reads => {
                    if let Some(pending) = self.read_from_memory(item, &mut reading.progress) {
                        return Step::Needs(pending);
                    }
                }
            }
        }
    }

    fn count(&self, item: &ReadItem, count: &mut Count) {
        let Some(partition) = self.partition(item.partition) else {
            count.is_refused = true;
            return;
        };
        let leader = partition.leader.borrow();
        if check_read(&leader, item).is_err() {
            count.is_refused = true;
            return;
        }
        let at_most = leader.ahead_at_most(item.offset);
        let is_exact = count.min_bytes <= 1 || at_most == Ahead::Bytes(0);
        let ahead = match is_exact {
            true => at_most,
            false => leader.ahead(item.offset),
        };
        count.add(ahead, item.max_bytes);
    }

    /// What the partition has, unread.
    fn offer(&self, item: &ReadItem) -> ReadReply {
        let partition = self.hosted(item.partition)?;
        let leader = partition.leader.borrow();
        check_read(&leader, item)?;
        let bytes = counted_bytes(leader.ahead(item.offset), item.max_bytes);
        let first_batch = match bytes {
            0 => None,
            _ => leader
                .log()
                .batch_in_memory(item.offset, leader.high_watermark()),
        };
        let at_once_bytes = match first_batch {
            Some(_) => item.max_bytes,
            // A batch may be larger than a block, and is then read whole.
            None => READ_BLOCK_BYTES.max(partition.config.get().max_message_bytes),
        };
        let unread = Unread {
            bytes,
            first_batch_bytes: first_batch.map_or(0, |it| (it.end.0 - it.start.0) as usize),
            at_once_bytes,
        };
        Ok(ReadDone {
            unread,
            ..done(&leader, nothing())
        })
    }

    /// Answers from memory or with an error; hands back what needs more than that.
    fn read_from_memory(
        &self,
        item: ReadItem,
        progress: &mut ReadProgress,
    ) -> Option<Box<PendingRead>> {
        let partition = match self.hosted(item.partition) {
            Ok(partition) => partition,
            Err(why) => {
                progress.add(Err(why));
                return None;
            }
        };
        let leader = partition.leader.borrow();
        if let Err(error) = check_read(&leader, &item) {
            progress.add(Err(error));
            return None;
        }
        let is_full = progress.left_pieces == 0;
        let wanted = Wanted {
            offset: item.offset,
            max_bytes: match is_full {
                true => 0,
                false => item.max_bytes.min(progress.left_bytes),
            },
            first_whole: progress.may_exceed,
            below: leader.high_watermark(),
        };
        let is_at_end = item.offset >= wanted.below || wanted.max_bytes == 0 && !wanted.first_whole;
        let plan = if is_at_end {
            ReadPlan::Nothing
        } else {
            leader.log().plan_read(wanted, None, &mut progress.steps)
        };
        let run = match plan {
            ReadPlan::Nothing => nothing(),
            ReadPlan::Memory { run, rest: None } => {
                self.count_tail_read(&run);
                run
            }
            ReadPlan::Disk(_) if progress.is_full => nothing(),
            plan @ (ReadPlan::Memory { .. } | ReadPlan::Disk(_) | ReadPlan::Corrupt { .. }) => {
                drop(leader);
                return Some(Box::new(PendingRead {
                    partition,
                    wanted,
                    plan,
                }));
            }
        };
        progress.add(Ok(done(&leader, run)));
        None
    }

    /// Reads on in memory, slice after slice, or else from the disk.
    async fn read_pending(&self, pending: PendingRead, progress: &mut ReadProgress) {
        let PendingRead {
            partition,
            mut wanted,
            mut plan,
        } = pending;
        let mut got = nothing();
        let mut is_limited = false;
        let mut disk_since = None;
        let end = loop {
            let place = match plan {
                ReadPlan::Nothing => break Ok(()),
                // What memory gave is an answer.
                ReadPlan::Disk(_) | ReadPlan::Corrupt { .. } if !got.is_empty() => break Ok(()),
                ReadPlan::Memory { run, rest } => {
                    self.count_tail_read(&run);
                    wanted.max_bytes = wanted.max_bytes.saturating_sub(run.len());
                    wanted.first_whole &= run.is_empty();
                    got.append(run);
                    let is_enough =
                        wanted.max_bytes == 0 || got.piece_count() >= progress.left_pieces;
                    match rest {
                        Some(place) if got.is_empty() || !is_enough => {
                            wanted.offset = place.offset;
                            executor::yield_if_needed().await;
                            progress.steps.refill();
                            Some(place)
                        }
                        _ => break Ok(()),
                    }
                }
                ReadPlan::Disk(read) => {
                    disk_since.get_or_insert_with(|| self.clock().monotonic());
                    let key = read.key;
                    is_limited = !wanted.first_whole && wanted.max_bytes == progress.left_bytes;
                    match read_batches(read, self.read_ahead()).await {
                        Ok(run) => {
                            let after_hole = match run.is_empty() {
                                true => partition.leader.borrow().log().after_hole(key, wanted),
                                false => None,
                            };
                            let Some(next) = after_hole else {
                                got = run;
                                break Ok(());
                            };
                            tracing::debug!(path = %partition.directory().display(), offset = %wanted.offset, %next, "records are missing at a segment's end");
                            wanted.offset = next;
                            executor::yield_if_needed().await;
                            None
                        }
                        // The segment left the log meanwhile, or is just being replaced by a cleaned one.
                        Err(_) if self.files().is_retired(key) => {
                            executor::sleep(Duration::from_millis(1)).await;
                            None
                        }
                        Err(error) => break Err(error),
                    }
                }
                ReadPlan::Corrupt { segment, position } => {
                    let path = partition.leader.borrow().log().segment_path(segment);
                    break Err(ReadError::Corrupt { path, position });
                }
            };
            plan = match plan_again(&partition, wanted, place, &mut progress.steps) {
                Ok(plan) => plan,
                Err(_) if !got.is_empty() => break Ok(()),
                Err(why) => return progress.add(Err(why)),
            };
        };
        if let Some(since) = disk_since {
            let read_ns = self.clock().monotonic().since(since).as_nanos() as u64;
            self.metrics().record_stage(FETCH, Stage::Disk, read_ns);
        }
        match end {
            Ok(()) => {
                progress.is_full |= got.is_empty() && is_limited;
                progress.add(Ok(done(&partition.leader.borrow(), got)));
            }
            Err(error) if error.shortage().is_some() => progress
                .replies
                .push(Err(PartitionError::Read(Arc::new(error)))),
            Err(error) => {
                tracing::error!(topic = %partition.topic, partition = %partition.partition.partition, %error, "read failed");
                progress.add(Err(PartitionError::Read(Arc::new(error))));
            }
        }
    }

    fn count_tail_read(&self, run: &ByteRun) {
        self.metrics()
            .count(Counter::TailReadBytes, run.len() as u64);
    }
}

/// Plans a read that has waited: meanwhile the partition may have gone, or retention may have passed the offset.
fn plan_again(
    partition: &HostedPartition,
    wanted: Wanted,
    place: Option<ReadPlace>,
    steps: &mut ReadSteps,
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
    Ok(leader.log().plan_read(wanted, place, steps))
}

/// What of a partition's bytes counts for a fetch that takes `max_bytes` of them; something always counts as something, since a first
/// batch is sent whatever its size.
pub(super) fn counted_bytes(ahead: Ahead, max_bytes: usize) -> u64 {
    let max_bytes = max_bytes.max(1) as u64;
    match ahead {
        Ahead::Bytes(bytes) => bytes.min(max_bytes),
        Ahead::OlderSegment => max_bytes,
    }
}

fn nothing() -> ByteRun {
    ByteRun::starting_at(FilePosition::ZERO)
}

fn done(leader: &HostedLeader, run: ByteRun) -> ReadDone {
    ReadDone {
        high_watermark: leader.high_watermark(),
        log_start: leader.log().start(),
        records_bytes: run.len(),
        records: if run.is_empty() {
            SmallVec::new()
        } else {
            run.into_pieces()
        },
        unread: Unread::default(),
    }
}

impl Reading {
    fn new(request: ReadRequest) -> Self {
        let ReadRequest {
            items,
            bounds,
            min_bytes,
            max_pieces,
            sent_at: _,
        } = request;
        let count = Count {
            bounds,
            min_bytes,
            found_bytes: 0,
            is_refused: false,
            uncut_bytes: Some(0),
        };
        let mut reading = Self {
            phase: Phase::Counts,
            next: 0,
            progress: ReadProgress::new(items.len(), bounds, max_pieces),
            count,
            items,
        };
        if reading.count.is_decided() && reading.count.is_to_be_read() {
            reading.begin(Phase::Reads);
        }
        reading
    }

    fn begin(&mut self, phase: Phase) {
        (self.phase, self.next) = (phase, 0);
    }
}

impl Count {
    fn add(&mut self, ahead: Ahead, max_bytes: usize) {
        self.found_bytes += counted_bytes(ahead, max_bytes);
        self.uncut_bytes = match ahead {
            Ahead::Bytes(bytes) if bytes <= max_bytes as u64 => {
                self.uncut_bytes.map(|before| before + bytes)
            }
            _ => None,
        };
    }

    fn is_enough(&self) -> bool {
        self.is_refused || self.found_bytes >= self.min_bytes
    }

    fn is_cut(&self, share_bytes: usize) -> bool {
        self.uncut_bytes
            .is_none_or(|bytes| bytes > share_bytes as u64)
    }

    /// Whether the rest of the items would not change what is done.
    fn is_decided(&self) -> bool {
        match self.bounds {
            ReadBounds::Whole { .. } => self.is_enough(),
            ReadBounds::Share { share_bytes } => self.is_cut(share_bytes),
            ReadBounds::Granted { .. } => true,
        }
    }

    fn is_to_be_read(&self) -> bool {
        match self.bounds {
            ReadBounds::Whole { .. } => self.is_enough(),
            ReadBounds::Share { share_bytes } => self.is_enough() && !self.is_cut(share_bytes),
            ReadBounds::Granted { .. } => true,
        }
    }
}

impl ReadProgress {
    fn new(item_count: usize, bounds: ReadBounds, max_pieces: usize) -> Self {
        let (left_bytes, may_exceed) = match bounds {
            ReadBounds::Whole { max_bytes } => (max_bytes, true),
            ReadBounds::Share { share_bytes } => (share_bytes, false),
            ReadBounds::Granted { first_may_exceed } => (usize::MAX, first_may_exceed),
        };
        Self {
            replies: Vec::with_capacity(item_count),
            left_bytes,
            left_pieces: max_pieces,
            may_exceed,
            is_granted: matches!(bounds, ReadBounds::Granted { .. }),
            is_full: false,
            steps: ReadSteps::slice(),
        }
    }

    fn add(&mut self, reply: ReadReply) {
        let (bytes, pieces) = match &reply {
            Ok(done) => (done.records_bytes, done.records.len()),
            Err(_) => (0, 0),
        };
        self.left_bytes = self.left_bytes.saturating_sub(bytes);
        self.left_pieces = self.left_pieces.saturating_sub(pieces);
        self.may_exceed &= bytes == 0 && !self.is_granted;
        self.replies.push(reply);
    }
}

fn check_read(leader: &HostedLeader, item: &ReadItem) -> Result<(), PartitionError> {
    check_epoch(leader.epoch(), item.current_epoch)?;
    // What is not confirmed yet is not shown, but there; a reader of it waits, as in Kafka.
    let (start, end) = (leader.log().start(), leader.log().end().offset);
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
