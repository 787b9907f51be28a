//! Produce: check, append in order, answer when confirmed.

use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;

use crate::config::{self, TopicConfig};
use crate::io::clock::Monotonic;
use crate::io::disk::DiskError;
use crate::io::os_error::Shortage;
use crate::metrics::{Counter, Gauge, Stage};
use crate::model::api_key::PRODUCE;
use crate::model::limits::OWN_BATCH_BYTES_MAX;
use crate::partition::leader::{CheckedBatch, Outcome};
use crate::record::header;
use crate::record::validate::ValidationRules;
use crate::shard::call::{Call, ReplyTo};
use crate::shard::command::{AppendDone, AppendItem, AppendReply, AppendRequest, PartitionError};
use crate::shard::hosted::{HostedPartition, ParkedBatch};
use crate::shard::reply_group::{Complete, ReplyGroup, ReplySlot};
use crate::shard::runtime::{Cached, Shard};

/// What is asked of a batch that the broker wrote: nothing but that it is one.
const OWN_BATCHES: ValidationRules = ValidationRules {
    batch_bytes_max: OWN_BATCH_BYTES_MAX,
    timestamp_type: header::TimestampType::CreateTime,
    timestamp_before_max_ms: i64::MAX,
    timestamp_after_max_ms: i64::MAX,
    is_compacted: true,
};

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
                for (item, slot) in items.into_iter().zip(slots) {
                    self.append_one(item, AppendToken::new(slot));
                }
            }
            Err(Complete { reply, replies }) => self.answer(reply, replies),
        }
        let executed = self.clock().monotonic().since(started);
        metrics.record_stage(PRODUCE, Stage::Execute, executed.as_nanos() as u64);
    }

    fn append_one(self: &Rc<Self>, item: AppendItem, token: AppendToken) {
        if self.is_stopping() {
            return self.answer_append(token.with(Err(PartitionError::Stopping)));
        }
        let Some(partition) = self.partition(item.partition) else {
            return self.answer_append(token.with(Err(PartitionError::Unknown(item.partition))));
        };
        if let Some(why) = self.log_dir().failure() {
            return self.answer_append(token.with(Err(PartitionError::LogDirOffline(why))));
        }
        let room = self.log_dir().room();
        if !room.takes(false) {
            return self.answer_append(token.with(Err(PartitionError::NoRoom(room))));
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
            return self.answer_append(token.with(Err(why)));
        }
        let rules = validation_rules(&config);
        let batch = match CheckedBatch::check(item.records, &rules, self.clock().now()) {
            Ok(batch) => batch,
            Err(invalid) => {
                return self.answer_append(token.with(Err(PartitionError::InvalidBatch(invalid))));
            }
        };
        self.append_or_park(&partition, batch, token);
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
        if let Some(why) = self.log_dir().failure() {
            self.answer_append(token.with(Err(PartitionError::LogDirOffline(why))));
            return call;
        }
        let room = self.log_dir().room();
        if !room.takes(true) {
            self.answer_append(token.with(Err(PartitionError::NoRoom(room))));
            return call;
        }
        match CheckedBatch::check(records, &OWN_BATCHES, self.clock().now()) {
            Ok(batch) => self.append_or_park(partition, batch, token),
            Err(invalid) => {
                self.answer_append(token.with(Err(PartitionError::InvalidBatch(invalid))));
            }
        }
        call
    }

    fn append_or_park(
        self: &Rc<Self>,
        partition: &Rc<HostedPartition>,
        batch: CheckedBatch,
        token: AppendToken,
    ) {
        if !partition.parked.borrow().is_empty() {
            partition
                .parked
                .borrow_mut()
                .push_back(ParkedBatch { batch, token });
            return;
        }
        if let Err(parked) = self.try_append(partition, batch, token) {
            partition.parked.borrow_mut().push_back(*parked);
        }
        self.prepare(partition);
    }

    /// Appends if the log has room; else hands the batch back.
    pub(super) fn try_append(
        self: &Rc<Self>,
        partition: &Rc<HostedPartition>,
        batch: CheckedBatch,
        token: AppendToken,
    ) -> Result<(), Box<ParkedBatch>> {
        let monotonic = self.clock().monotonic();
        let mut leader = partition.leader.borrow_mut();
        let cached_before = Cached::of(&leader);
        let outcome = leader.append(&batch, self.append_time(), monotonic.as_ns());
        let (answer, confirm_at) = match outcome {
            Outcome::NotNow(_) => return Err(Box::new(ParkedBatch { batch, token })),
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
        loop {
            let Some(ParkedBatch { batch, token }) = partition.parked.borrow_mut().pop_front()
            else {
                break;
            };
            if let Err(parked) = self.try_append(partition, batch, token) {
                partition.parked.borrow_mut().push_front(*parked);
                break;
            }
        }
    }

    /// Refuses what waited for room.
    pub(super) fn refuse_parked(
        self: &Rc<Self>,
        partition: &HostedPartition,
        why: &PartitionError,
    ) {
        let parked = std::mem::take(&mut *partition.parked.borrow_mut());
        for ParkedBatch { token, .. } in parked {
            self.answer_append(token.with(Err(why.clone())));
        }
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

    /// Answers a batch that was in the log but can no longer be confirmed.
    pub(super) fn fail_append(&self, token: AppendToken, why: &PartitionError) {
        self.answer_append(token.with(Err(why.clone())));
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

/// What a topic asks of the batches that it takes.
fn validation_rules(config: &TopicConfig) -> ValidationRules {
    let limit_ms = |ms: u64| i64::try_from(ms).unwrap_or(i64::MAX);
    ValidationRules {
        batch_bytes_max: config.max_message_bytes,
        timestamp_type: match config.message_timestamp_type {
            config::TimestampType::CreateTime => header::TimestampType::CreateTime,
            config::TimestampType::LogAppendTime => header::TimestampType::LogAppendTime,
        },
        timestamp_before_max_ms: limit_ms(config.message_timestamp_before_max_ms),
        timestamp_after_max_ms: limit_ms(config.message_timestamp_after_max_ms),
        is_compacted: config.cleanup_policy.compact,
    }
}
