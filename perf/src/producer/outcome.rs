//! What becomes of each batch: acked, refused, to be sent again, or never known.

use std::collections::BTreeMap;

use super::batch::ProducerIdentity;
use super::frame::ack_of;
use super::latencies::Latencies;
use super::ledger::Ledger;
use super::link::Answer;
use super::span::BatchSpan;
use super::{ProducerPlan, ProducerResult, RESEND_DELAY_NS};
use crate::client::error::ErrorCode;
use crate::client::failure::Failure;
use crate::clock::Clock;
use crate::histogram::LatencyHistogram;
use crate::live::Live;
use crate::schedule::Schedule;

pub struct Outcomes {
    clock: Clock,
    schedule: Schedule,
    message_bytes: u64,
    /// Only an idempotent producer may send again without knowing what became of the first try.
    may_resend: bool,
    pub ledger: Ledger,
    latencies: Latencies,
    errors: BTreeMap<String, u64>,
    resends: Vec<BatchSpan>,
    resend_from_ns: u64,
    resent: BTreeMap<String, u64>,
    unsent_records: u64,
}

impl Outcomes {
    pub fn new(plan: &ProducerPlan, clock: Clock) -> Self {
        Self {
            clock,
            schedule: plan.schedule,
            message_bytes: plan.message_bytes as u64,
            may_resend: plan.identity != ProducerIdentity::NONE,
            ledger: Ledger::new(plan.number, plan.topic.leaders.len()),
            latencies: Latencies::new(plan.window),
            errors: BTreeMap::new(),
            resends: Vec::new(),
            resend_from_ns: 0,
            resent: BTreeMap::new(),
            unsent_records: 0,
        }
    }

    /// Nothing is due from `end_ns` on.
    pub fn end_at(&mut self, end_ns: u64) {
        self.schedule = self.schedule.ending_at(end_ns);
    }

    pub fn publish(&mut self, live: &Live) {
        self.latencies.publish(live);
    }

    pub fn answered(&mut self, answer: Answer, live: &Live) {
        Live::subtract(&live.requests_in_flight, 1);
        let now_ns = self.clock.now_ns();
        for (place, span) in answer.spans.into_iter().enumerate() {
            let ack = ack_of(&answer.acks, place, span.partition as i32);
            match ack {
                None => self.failed(&span, Failure::NoAnswerForPartition, None, live),
                Some(ack) if ack.error.is_ok() => self.acked(&span, ack.base_offset, now_ns, live),
                Some(ack)
                    if ack.error == ErrorCode::DUPLICATE_SEQUENCE_NUMBER && self.may_resend =>
                {
                    self.acked(&span, None, now_ns, live)
                }
                Some(ack) if ack.error.is_retriable() && self.may_resend => {
                    self.resend_later(span, Failure::Code(ack.error), now_ns, live)
                }
                Some(ack) => {
                    if !ack.error.leaves_open_whether_written() {
                        self.ledger.refuse(&span);
                    }
                    self.failed(&span, Failure::Code(ack.error), None, live);
                }
            }
        }
    }

    fn acked(&mut self, span: &BatchSpan, base_offset: Option<i64>, now_ns: u64, live: &Live) {
        self.ledger.ack(span, base_offset);
        self.confirmed(span, now_ns, live);
    }

    /// With acks=0 nothing better is known than that the socket has them.
    pub fn written_without_ack(&mut self, spans: &[BatchSpan], live: &Live) {
        Live::subtract(&live.requests_in_flight, 1);
        let now_ns = self.clock.now_ns();
        spans
            .iter()
            .for_each(|span| self.confirmed(span, now_ns, live));
    }

    fn confirmed(&mut self, span: &BatchSpan, now_ns: u64, live: &Live) {
        span.each_intended(&self.schedule, |intended_ns, record_count| {
            self.latencies.record(intended_ns, now_ns, record_count);
        });
        live.acked_at(now_ns);
        Live::add(&live.acked_records, u64::from(span.record_count));
        Live::add(
            &live.acked_bytes,
            u64::from(span.record_count) * self.message_bytes,
        );
    }

    /// The connection broke before these were answered.
    pub fn unanswered(&mut self, spans: Vec<BatchSpan>, reason: &str, now_ns: u64, live: &Live) {
        for span in spans {
            match self.may_resend {
                true => self.resend_later(span, Failure::ConnectionLost, now_ns, live),
                false => self.failed(&span, Failure::ConnectionLost, Some(reason), live),
            }
        }
    }

    /// The run ended before these were answered.
    pub fn never_answered(&mut self, spans: Vec<BatchSpan>, live: &Live) {
        for span in spans.iter().chain(&std::mem::take(&mut self.resends)) {
            self.failed(span, Failure::NeverAnswered, None, live);
            let now_ns = self.clock.now_ns();
            span.each_intended(&self.schedule, |intended_ns, record_count| {
                self.latencies
                    .record_in_vain(intended_ns, now_ns, record_count);
            });
        }
    }

    /// The run ended before the records from `next_record` on got their turn.
    pub fn never_sent(&mut self, next_record: u64) {
        let due_count = self
            .schedule
            .record_count_before(self.clock.now_ns())
            .unwrap_or(next_record);
        self.unsent_records = due_count.saturating_sub(next_record);
        for record in next_record..due_count {
            self.waited_in_vain(self.schedule.intended_ns(record, 0));
        }
    }

    /// The run ended before the batch of this record got its turn.
    pub fn never_taken(&mut self, record: u64) {
        self.unsent_records += 1;
        self.waited_in_vain(self.schedule.intended_ns(record, 0));
    }

    /// Leaving these out would hide the longest waits of all.
    fn waited_in_vain(&mut self, intended_ns: u64) {
        self.latencies
            .record_in_vain(intended_ns, self.clock.now_ns(), 1);
    }

    fn failed(&mut self, span: &BatchSpan, failure: Failure, detail: Option<&str>, live: &Live) {
        let error = match detail {
            Some(detail) => format!("{failure}: {detail}"),
            None => failure.to_string(),
        };
        *self.errors.entry(error).or_default() += u64::from(span.record_count);
        live.failed(failure, u64::from(span.record_count));
    }

    pub fn has_resends(&self) -> bool {
        !self.resends.is_empty()
    }

    pub fn resend_from_ns(&self) -> u64 {
        self.resend_from_ns
    }

    fn resend_later(&mut self, span: BatchSpan, reason: Failure, now_ns: u64, live: &Live) {
        *self.resent.entry(reason.to_string()).or_default() += u64::from(span.record_count);
        live.will_be_resent(reason, u64::from(span.record_count));
        self.resends.push(span);
        self.resend_from_ns = now_ns + RESEND_DELAY_NS;
    }

    /// The first batch of each of the wanted partitions that is to be sent again.
    pub fn take_resends(
        &mut self,
        count_max: usize,
        is_wanted: impl Fn(usize) -> bool,
    ) -> Vec<BatchSpan> {
        self.resends
            .sort_by_key(|span| (span.partition, span.first_sequence));
        let mut taken: Vec<BatchSpan> = Vec::new();
        self.resends.retain(|span| {
            let take = taken.len() < count_max
                && is_wanted(span.partition)
                && taken
                    .last()
                    .is_none_or(|last| last.partition != span.partition);
            if take {
                taken.push(span.clone());
            }
            !take
        });
        taken
    }

    pub fn into_result(
        self,
        lag: LatencyHistogram,
        send_delay: LatencyHistogram,
    ) -> ProducerResult {
        ProducerResult {
            ledger: self.ledger,
            latency: self.latencies.into_histogram(),
            lag,
            send_delay,
            errors: self.errors,
            resent: self.resent,
            unsent_records: self.unsent_records,
        }
    }
}
