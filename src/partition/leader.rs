//! The leader of a partition: takes batches, and says who may be answered when its log gets on.

use bytes::Bytes;

use crate::model::{LeaderEpoch, Offset, TimestampMs};
use crate::partition::confirmation::Confirmation;
use crate::partition::confirmed_end::ConfirmedEnd;
use crate::partition::fetch_waiters::{FetchWaiters, WaitsForBytes};
use crate::partition::pending_acks::PendingAcks;
use crate::record::ValidBatch;
use crate::record::header::RecordBatchHeader;
use crate::storage::appender::{LogMark, WriteId};
use crate::storage::log::{Admission, Ahead, Log};
use crate::storage::producer_state::{ProducerBatch, ProducerState, Verdict};

/// `A` is handed back when a batch is confirmed, `W` when there is enough to read.
pub struct Leader<A, W> {
    epoch: LeaderEpoch,
    log: Log,
    producers: ProducerState,
    confirmation: Confirmation,
    confirmed_end: ConfirmedEnd,
    acks: PendingAcks<A>,
    waiters: FetchWaiters<W>,
}

/// A batch that has passed every check that does not depend on the log, with its bytes.
#[derive(Debug)]
pub struct CheckedBatch {
    valid: ValidBatch,
    bytes: Bytes,
}

/// What became of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is in the log (now, or as the repeat of a batch that is), and may be answered once `confirm_at` is confirmed.
    InLog {
        base_offset: Offset,
        log_append_time: Option<TimestampMs>,
        confirm_at: Offset,
    },
    /// The log has no room for it yet; nothing has changed.
    NotNow(Admission),
    /// `confirm_at`: clients take this refusal as success, so it may be given only once that offset is confirmed.
    Refused {
        why: ProducerRefusal,
        confirm_at: Offset,
    },
}

/// Why an idempotent producer's batch is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProducerRefusal {
    /// DUPLICATE_SEQUENCE_NUMBER
    #[error("sequence {0} was appended too long ago to know where")]
    DuplicateForgotten(crate::model::Sequence),
    /// OUT_OF_ORDER_SEQUENCE_NUMBER
    #[error("sequence {given} does not follow; {expected} would")]
    OutOfOrder {
        given: crate::model::Sequence,
        expected: crate::model::Sequence,
    },
    /// INVALID_PRODUCER_EPOCH
    #[error("producer epoch {given} is fenced by {current}")]
    Fenced {
        given: crate::model::ProducerEpoch,
        current: crate::model::ProducerEpoch,
    },
}

/// Who may go on after a step of the log.
#[must_use]
pub struct Progress<A, W> {
    pub acks: Vec<A>,
    pub waiters: Vec<W>,
    /// An fdatasync must run for the rest.
    pub needs_sync: bool,
}

impl<A, W: WaitsForBytes> Leader<A, W> {
    /// Leads a log from `epoch` on. What recovery found is confirmed: it is written, and nothing else can claim its offsets.
    pub fn new(
        epoch: LeaderEpoch,
        log: Log,
        producers: ProducerState,
        flush_messages: u64,
    ) -> Self {
        let end = log.end();
        Self {
            epoch,
            confirmation: Confirmation::new(flush_messages, end.offset),
            confirmed_end: ConfirmedEnd::new(end),
            log,
            producers,
            acks: PendingAcks::default(),
            waiters: FetchWaiters::default(),
        }
    }

    pub fn epoch(&self) -> LeaderEpoch {
        self.epoch
    }

    pub fn log(&self) -> &Log {
        &self.log
    }

    pub fn log_mut(&mut self) -> &mut Log {
        &mut self.log
    }

    pub fn producers(&self) -> &ProducerState {
        &self.producers
    }

    pub fn producers_mut(&mut self) -> &mut ProducerState {
        &mut self.producers
    }

    pub fn set_flush_messages(&mut self, flush_messages: u64) {
        self.confirmation.set_flush_messages(flush_messages);
    }

    /// The end of what consumers may see.
    pub fn high_watermark(&self) -> Offset {
        self.confirmation.confirmed()
    }

    /// Appends a checked batch, unless its producer's state refuses it or the log has no room yet.
    pub fn append(&mut self, batch: &CheckedBatch, now: TimestampMs, now_ns: u64) -> Outcome {
        let header = &batch.valid.header;
        let producer = ProducerBatch::of(header);
        if let Some(producer) = &producer {
            let given = producer.first_sequence;
            match self.producers.check(producer, self.log.end().offset) {
                Verdict::Append => {}
                Verdict::Duplicate {
                    base_offset,
                    last_offset,
                    timestamp,
                } => {
                    return Outcome::InLog {
                        base_offset,
                        log_append_time: batch.valid.log_append_time().map(|_| timestamp),
                        confirm_at: last_offset.plus(1),
                    };
                }
                Verdict::DuplicateForgotten { before } => {
                    return Outcome::Refused {
                        why: ProducerRefusal::DuplicateForgotten(given),
                        confirm_at: before,
                    };
                }
                Verdict::OutOfOrder { expected } => {
                    let why = ProducerRefusal::OutOfOrder { given, expected };
                    return Outcome::Refused {
                        why,
                        confirm_at: Offset::ZERO,
                    };
                }
                Verdict::Fenced { current } => {
                    let why = ProducerRefusal::Fenced {
                        given: producer.epoch,
                        current,
                    };
                    return Outcome::Refused {
                        why,
                        confirm_at: Offset::ZERO,
                    };
                }
            }
        }
        match self.log.admission(header, now) {
            Admission::Now => {}
            not_now => return Outcome::NotNow(not_now),
        }
        let appended = self.log.append(&batch.valid, &batch.bytes, self.epoch, now);
        self.confirmed_end.on_appended(self.log.end());
        if let Some(producer) = &producer {
            let timestamp = header.max_timestamp;
            self.producers.record(
                producer,
                appended.base_offset,
                appended.last_offset,
                timestamp,
                now_ns,
            );
        }
        Outcome::InLog {
            base_offset: appended.base_offset,
            log_append_time: batch.valid.log_append_time(),
            confirm_at: appended.last_offset.plus(1),
        }
    }

    /// Has `token` handed back once `confirm_at` is confirmed; now, if it is already.
    pub fn wait_for_ack(&mut self, confirm_at: Offset, token: A) -> Option<A> {
        if confirm_at <= self.high_watermark() {
            return Some(token);
        }
        self.acks.push(confirm_at, token);
        None
    }

    /// What consumers may see from the batch of `offset` on.
    pub fn ahead(&self, offset: Offset) -> Ahead {
        self.log.ahead(offset, self.confirmed_end.mark())
    }

    /// The same without a look at the batches, so that it may be an index interval too much.
    pub fn ahead_at_most(&self, offset: Offset) -> Ahead {
        self.log.ahead_at_most(offset, self.confirmed_end.mark())
    }

    /// Has `token` told of what consumers may see from now on, up to `room_bytes`, and handed back once it has enough.
    pub fn wait_for_data(&mut self, token: W, room_bytes: u64) {
        self.waiters.push(token, room_bytes);
    }

    pub fn on_written(&mut self, id: WriteId) -> Progress<A, W> {
        self.log.on_written(id);
        self.progress()
    }

    pub fn on_synced(&mut self, mark: LogMark) -> Progress<A, W> {
        self.log.on_synced(mark);
        self.progress()
    }

    /// Everybody who waits, because nothing more will be confirmed here.
    pub fn fail(&mut self) -> Progress<A, W> {
        Progress {
            acks: self.acks.fail_all().collect(),
            waiters: self.waiters.fire_all().collect(),
            needs_sync: false,
        }
    }

    fn progress(&mut self) -> Progress<A, W> {
        let written = self.log.written().offset;
        let synced = self.log.synced().offset;
        let confirmed = self.confirmation.advance(written, synced);
        let grown_bytes = self.confirmed_end.advance(confirmed.up_to);
        Progress {
            acks: self.acks.complete(confirmed.up_to).collect(),
            waiters: self.waiters.on_grown(grown_bytes).collect(),
            needs_sync: confirmed.needs_sync,
        }
    }
}

impl CheckedBatch {
    /// The `records` field of a produce request that has passed `record::Validation`: everything that does not depend on the log.
    pub fn of(valid: ValidBatch, records: Bytes) -> Self {
        assert_eq!(valid.size_bytes(), records.len(), "the batch that passed");
        Self {
            valid,
            bytes: records,
        }
    }

    pub fn header(&self) -> &RecordBatchHeader {
        &self.valid.header
    }

    pub fn size_bytes(&self) -> usize {
        self.bytes.len()
    }
}
