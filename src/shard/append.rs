//! Produce: check, append in order, answer when confirmed.

use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;

use crate::io::clock::Monotonic;
use crate::io::disk::DiskError;
use crate::io::os_error::Shortage;
use crate::metrics::{Counter, Gauge, Stage};
use crate::model::api_key::PRODUCE;
use crate::model::limits::CHECKED_AT_ONCE_BYTES_MAX;
use crate::partition::leader::{CheckedBatch, Outcome};
use crate::record::validate::validate_within;
use crate::shard::call::{Call, ReplyTo};
use crate::shard::check::rules_for;
use crate::shard::command::{AppendDone, AppendItem, AppendReply, AppendRequest, PartitionError};
use crate::shard::hosted::HostedPartition;
use crate::shard::parked::{BatchSource, Parked, UncheckedBatch};
use crate::shard::reply_group::{Complete, ReplyGroup, ReplySlot};
use crate::shard::runtime::{Cached, Shard};

/// One batch's place in its command, and what it will be answered.
pub struct AppendToken {
    slot: ReplySlot<AppendReply>,
    answer: Option<AppendReply>,
    /// When its batch was copied into the log.
    appended_at: Option<Monotonic>,
}

impl AppendToken {
    fn new(slot: ReplySlot<AppendReply>) -> Self {
        Self {
            slot,
            answer: None,
            appended_at: None,
        }
    }

    fn with(mut self, answer: AppendReply) -> Self {
        self.answer = Some(answer);
        self
    }
}

impl Shard {
    pub(super) fn append(
        self: &Rc<Self>,
        request: AppendRequest,
        reply: ReplyTo<Vec<AppendReply>>,
    ) {
        let AppendRequest { items, sent_at } = request;
        let started = self.clock().monotonic();
        let metrics = self.metrics();
        metrics.record_stage(
            PRODUCE,
            Stage::Queue,
            started.since(sent_at).as_nanos() as u64,
        );
        metrics.raise_gauge(Gauge::AcksWaiting, items.len() as u64);
        match ReplyGroup::open(items.len(), reply) {
            Ok(slots) => {
                let mut at_once_bytes = CHECKED_AT_ONCE_BYTES_MAX;
                for (item, slot) in items.into_iter().zip(slots) {
                    self.append_one(item, AppendToken::new(slot), &mut at_once_bytes);
                }
            }
            Err(Complete { reply, replies }) => self.answer(reply, replies),
        }
        let executed = self.clock().monotonic().since(started);
        metrics.record_stage(PRODUCE, Stage::Execute, executed.as_nanos() as u64);
    }

    /// `at_once_bytes`: what checks may still cost before the request gives way to others.
    fn append_one(
        self: &Rc<Self>,
        item: AppendItem,
        token: AppendToken,
        at_once_bytes: &mut usize,
    ) {
        let partition = match self.hosted(item.partition) {
            Ok(partition) => partition,
            Err(_) if self.is_stopping() => {
                return self.refuse_append(token, PartitionError::Stopping);
            }
            Err(why) => return self.refuse_append(token, why),
        };
        if let Err(why) = self.check_takes(&partition, BatchSource::Producer) {
            return self.refuse_append(token, why);
        }
        if let Some(why) = partition.write_shortage() {
            return self.answer_append(token.with(Err(PartitionError::Shortage(why))));
        }
        let config = partition.config.get();
        let (in_sync_count, needed_count) =
            (partition.in_sync_count, config.min_insync_replica_count);
        if item.needs_all && in_sync_count < needed_count {
            let why = PartitionError::NotEnoughReplicas {
                in_sync_count,
                needed_count,
            };
            return self.refuse_append(token, why);
        }
        let batch = UncheckedBatch {
            records: item.records,
            source: BatchSource::Producer,
            token,
        };
        self.append_unchecked(&partition, batch, at_once_bytes);
    }

    /// Appends a batch that the broker itself wrote, if its partition can take one; what a topic asks of its producers does not hold
    /// for it. A shard that stops still appends what it has begun.
    pub(super) fn append_own(
        self: &Rc<Self>,
        partition: &Rc<HostedPartition>,
        records: Bytes,
    ) -> Call<Vec<AppendReply>> {
        let (reply, call) = self.router().open_call();
        self.metrics().raise_gauge(Gauge::AcksWaiting, 1);
        let token = AppendToken::new(ReplySlot::of_one(reply));
        let source = BatchSource::Broker;
        match self.check_takes(partition, source) {
            Err(why) => self.refuse_append(token, why),
            Ok(()) => {
                let batch = UncheckedBatch {
                    records,
                    source,
                    token,
                };
                let mut at_once_bytes = CHECKED_AT_ONCE_BYTES_MAX;
                self.append_unchecked(partition, batch, &mut at_once_bytes);
            }
        }
        call
    }

    /// Why the partition takes no batch at present, whatever the batch is.
    pub(super) fn check_takes(
        &self,
        partition: &HostedPartition,
        source: BatchSource,
    ) -> Result<(), PartitionError> {
        let is_own = source == BatchSource::Broker;
        if self.is_stopping() && !is_own {
            return Err(PartitionError::Stopping);
        }
        if partition.flags.is_gone.get() {
            return Err(PartitionError::Unknown(partition.partition));
        }
        if let Some(why) = self.log_dir().failure() {
            return Err(PartitionError::LogDirOffline(why));
        }
        match self.log_dir().room() {
            room if room.takes(is_own) => Ok(()),
            room => Err(PartitionError::NoRoom(room)),
        }
    }

    /// Checks and appends at once where that takes little time and no batch that came before waits; else the batch joins those that wait.
    fn append_unchecked(
        self: &Rc<Self>,
        partition: &Rc<HostedPartition>,
        batch: UncheckedBatch,
        at_once_bytes: &mut usize,
    ) {
        if !partition.parked.is_empty() {
            partition.parked.push(Parked::Unchecked(batch));
            return self.check_parked(partition);
        }
        let rules = rules_for(&partition.config.get(), batch.source);
        let now = self.clock().now();
        match validate_within(&batch.records, rules, now, at_once_bytes) {
            Ok(Some(valid)) => {
                let checked = CheckedBatch::of(valid, batch.records);
                self.append_or_put_back(partition, checked, batch.token);
                self.prepare(partition);
            }
            Ok(None) => {
                partition.parked.push(Parked::Unchecked(batch));
                self.check_parked(partition);
            }
            Err(invalid) => self.refuse_append(batch.token, PartitionError::InvalidBatch(invalid)),
        }
    }

    /// Appends the batch that is the next one of its partition, or leaves it in front until there is room.
    pub(super) fn append_or_put_back(
        self: &Rc<Self>,
        partition: &Rc<HostedPartition>,
        batch: CheckedBatch,
        token: AppendToken,
    ) {
        if let Err(no_room) = self.try_append(partition, batch, token) {
            let (batch, token) = *no_room;
            partition.parked.put_back(batch, token);
        }
    }

    /// Appends if the log has room; else hands the batch back.
    fn try_append(
        self: &Rc<Self>,
        partition: &Rc<HostedPartition>,
        batch: CheckedBatch,
        token: AppendToken,
    ) -> Result<(), Box<(CheckedBatch, AppendToken)>> {
        let monotonic = self.clock().monotonic();
        let mut leader = partition.leader.borrow_mut();
        let cached_before = Cached::of(&leader);
        let outcome = leader.append(&batch, self.append_time(), monotonic.as_ns());
        let (answer, confirm_at) = match outcome {
            Outcome::NotNow(_) => return Err(Box::new((batch, token))),
            Outcome::Refused { why, confirm_at } => {
                (Err(PartitionError::Producer(why)), confirm_at)
            }
            Outcome::InLog {
                base_offset,
                log_append_time,
                confirm_at,
            } => {
                let log_start = leader.log().start();
                (
                    Ok(AppendDone {
                        base_offset,
                        log_append_time,
                        log_start,
                    }),
                    confirm_at,
                )
            }
        };
        let cached = Cached::of(&leader).since(cached_before);
        if answer.is_ok() {
            self.metrics().count(Counter::BatchesAppended, 1);
            let record_count = batch.header().record_count as u64;
            self.metrics().count(Counter::RecordsAppended, record_count);
        }
        let mut token = token.with(answer);
        token.appended_at = Some(monotonic);
        let ready = leader.wait_for_ack(confirm_at, token);
        drop(leader);
        self.note_cached(partition, cached);
        partition.last_append.set(monotonic);
        self.mark_dirty(partition);
        if let Some(token) = ready {
            self.answer_append(token);
        }
        Ok(())
    }

    /// Appends what waited for room, as far as there is room now.
    pub(super) fn append_parked(self: &Rc<Self>, partition: &Rc<HostedPartition>) {
        while let Some((batch, token)) = partition.parked.take_checked() {
            if let Err(no_room) = self.try_append(partition, batch, token) {
                let (batch, token) = *no_room;
                return partition.parked.put_back(batch, token);
            }
        }
        self.check_parked(partition);
    }

    /// Refuses what waits to be checked or for room.
    pub(super) fn refuse_parked(
        self: &Rc<Self>,
        partition: &HostedPartition,
        why: &PartitionError,
    ) {
        for token in partition.parked.take_tokens() {
            self.refuse_append(token, why.clone());
        }
    }

    pub(super) fn refuse_append(&self, token: AppendToken, why: PartitionError) {
        self.answer_append(token.with(Err(why)));
    }

    /// Gives a batch the answer that it carries.
    pub(super) fn answer_append(&self, token: AppendToken) {
        let AppendToken {
            slot,
            answer,
            appended_at,
        } = token;
        self.metrics().lower_gauge(Gauge::AcksWaiting, 1);
        if let Some(appended_at) = appended_at {
            let waited = self.clock().monotonic().since(appended_at);
            self.metrics()
                .record_stage(PRODUCE, Stage::Disk, waited.as_nanos() as u64);
        }
        let answer = answer.expect("a token that is answered carries its answer");
        if let Some(Complete { reply, replies }) = slot.fill(answer) {
            self.answer(reply, replies);
        }
    }

    /// What a refusal for want of space says; a full disk is not a broken one, nor is a process without descriptors.
    pub(super) fn space_error(&self, error: DiskError) -> PartitionError {
        match error.shortage() {
            Some(Shortage::Space) => PartitionError::DiskFull(Arc::new(error)),
            Some(Shortage::Descriptors | Shortage::Memory | Shortage::Busy) => {
                PartitionError::Shortage(Arc::new(error))
            }
            None => {
                self.log_dir().fail(&error);
                PartitionError::LogDirOffline(error.to_string().into())
            }
        }
    }
}
