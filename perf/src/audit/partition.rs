//! One partition's log against what the producers were told of it.

use std::collections::{BTreeMap, BTreeSet};

use super::findings::{Anomaly, AuditFindings, Finding};
use super::stream::StreamAudit;
use crate::client::batches::Batch;
use crate::producer::ledger::Ledger;
use crate::record::{ProducerNumber, RunId, Stamp, StampError};

/// The audit of one partition, fed with its batches in offset order.
pub struct PartitionAudit<'a> {
    run: RunId,
    topic: &'a str,
    partition: usize,
    streams: BTreeMap<ProducerNumber, StreamAudit<'a>>,
    lost: BTreeSet<ProducerNumber>,
    next_offset: i64,
    findings: AuditFindings,
}

impl<'a> PartitionAudit<'a> {
    /// `ledgers`: those of all producers of the topic; `first_offset`: where the reading begins.
    pub fn new(
        run: RunId,
        topic: &'a str,
        partition: usize,
        ledgers: &'a [Ledger],
        first_offset: i64,
    ) -> Self {
        let stream = |ledger: &'a Ledger| {
            (
                ledger.producer,
                StreamAudit::new(&ledger.streams[partition]),
            )
        };
        let streams: BTreeMap<_, _> = ledgers.iter().map(stream).collect();
        let findings = AuditFindings {
            records_sent: streams
                .values()
                .map(|stream| stream.ledger().sent_count)
                .sum(),
            records_acked: streams
                .values()
                .map(|stream| stream.ledger().acked_count())
                .sum(),
            ..AuditFindings::default()
        };
        Self {
            run,
            topic,
            partition,
            streams,
            lost: BTreeSet::new(),
            next_offset: first_offset,
            findings,
        }
    }

    /// Of these producers it is not known what they sent and were told.
    pub fn without(mut self, lost: &BTreeSet<ProducerNumber>) -> Self {
        self.lost = lost.clone();
        self
    }

    /// The partition could not be read any further.
    pub fn unreadable(&mut self, detail: String) {
        self.anomaly(Anomaly::Corrupted, 1, Some(self.next_offset), detail);
    }

    pub fn batch(&mut self, batch: &Batch) {
        if let Err(error) = batch.check() {
            self.anomaly(
                Anomaly::Corrupted,
                batch.record_count.max(1) as u64,
                Some(batch.base_offset),
                error.to_string(),
            );
            self.next_offset = batch.next_offset();
            return;
        }
        if batch.is_control() {
            self.next_offset = batch.next_offset();
            return;
        }
        if let Err(error) = batch.records(|offset, value| self.record(offset, value)) {
            self.anomaly(
                Anomaly::Corrupted,
                1,
                Some(batch.base_offset),
                error.to_string(),
            );
            self.next_offset = batch.next_offset();
        }
    }

    fn record(&mut self, offset: i64, value: &[u8]) {
        self.findings.records_read += 1;
        if offset != self.next_offset {
            let missing = offset.abs_diff(self.next_offset);
            self.anomaly(
                Anomaly::OffsetHole,
                missing,
                Some(offset),
                format!("offset {offset} follows where {} was due", self.next_offset),
            );
        }
        self.next_offset = offset + 1;
        match Stamp::decode_checked(value) {
            Ok(stamp) if stamp.run == self.run => self.stamped(offset, stamp),
            Ok(_) | Err(StampError::Foreign) => self.findings.records_foreign += 1,
            Err(error @ StampError::Checksum) => {
                self.anomaly(Anomaly::Corrupted, 1, Some(offset), error.to_string())
            }
        }
    }

    fn stamped(
        &mut self,
        offset: i64,
        Stamp {
            producer, sequence, ..
        }: Stamp,
    ) {
        if self.lost.contains(&producer) {
            self.findings.records_of_lost_producers += 1;
            return;
        }
        let name = format!("record {sequence} of producer {}", producer.0);
        let Some(stream) = self
            .streams
            .get_mut(&producer)
            .filter(|stream| sequence < stream.ledger().sent_count)
        else {
            return self.anomaly(
                Anomaly::Corrupted,
                1,
                Some(offset),
                format!("{name} was never sent to this partition"),
            );
        };
        let place = stream.place(sequence);
        let ledger = stream.ledger();
        if let Some(anomaly) = place {
            return self.anomaly(anomaly, 1, Some(offset), name);
        }
        match ledger.acked_with(sequence) {
            Some(acked) => match acked.offset_of(sequence) {
                Some(promised) if promised != offset => {
                    self.anomaly(
                        Anomaly::AckOffsetDiffers,
                        1,
                        Some(offset),
                        format!("{name} was acked at offset {promised}"),
                    );
                }
                _ => {}
            },
            None if ledger.was_refused(sequence) => {
                self.anomaly(
                    Anomaly::RefusedButPresent,
                    1,
                    Some(offset),
                    format!("{name} was refused"),
                );
            }
            None => self.findings.records_unacked_but_present += 1,
        }
    }

    /// All batches up to the end of the partition have been given.
    pub fn finish(mut self) -> AuditFindings {
        for (producer, stream) in std::mem::take(&mut self.streams) {
            for range in stream.lost() {
                let detail = format!(
                    "records {} to {} of producer {} were acked and are not there",
                    range.start,
                    range.end - 1,
                    producer.0
                );
                self.anomaly(Anomaly::Lost, range.end - range.start, None, detail);
            }
        }
        self.findings
    }

    fn anomaly(
        &mut self,
        anomaly: Anomaly,
        record_count: u64,
        offset: Option<i64>,
        detail: String,
    ) {
        self.findings.add(
            record_count,
            Finding {
                anomaly,
                topic: self.topic.to_owned(),
                partition: self.partition,
                offset,
                detail,
            },
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::findings::FINDINGS_SHOWN_MAX;
    use crate::client::batches::whole_batches;
    use crate::clock::Clock;
    use crate::payload::PayloadPool;
    use crate::producer::batch::{BATCH_HEADER_BYTES, BatchTemplate, ProducerIdentity};
    use crate::producer::span::BatchSpan;
    use crate::schedule::Schedule;

    const POOL: PayloadPool = PayloadPool::Random {
        random_bytes_ratio: 0.5,
        pool_size: 3,
    };
    const RUN: RunId = RunId(99);
    const PRODUCER: ProducerNumber = ProducerNumber(0);
    const BATCHES: u64 = 10;
    const RECORDS_PER_BATCH: u32 = 3;

    /// Ten batches of three records, all acked, and the log that a right broker makes of them.
    fn sent() -> (Ledger, Vec<Vec<u8>>) {
        let template =
            BatchTemplate::new(RUN, PRODUCER, ProducerIdentity::NONE, 64, 1000, None, &POOL);
        let mut ledger = Ledger::new(PRODUCER, 1);
        let mut log = Vec::new();
        for _ in 0..BATCHES {
            let first_sequence = ledger.send(0, RECORDS_PER_BATCH);
            let span = BatchSpan {
                partition: 0,
                first_sequence,
                record_count: RECORDS_PER_BATCH,
                first_record: 0,
                built_ns: 0,
                keyed: None,
            };
            let mut slot = template.slot();
            let size = template.encode(
                &mut slot,
                &span,
                &Schedule::Closed { end_ns: 0 },
                &Clock::start(),
            );
            slot.truncate(size);
            ledger.ack(&span, Some(first_sequence as i64));
            log.push(slot);
        }
        (ledger, log)
    }

    /// Numbers the batches as a broker would and audits the result.
    fn audit(ledger: Ledger, log: &[Vec<u8>]) -> AuditFindings {
        let ledgers = [ledger];
        let mut audit = PartitionAudit::new(RUN, "t", 0, &ledgers, 0);
        let mut offset = 0i64;
        for batch in log {
            let mut batch = batch.clone();
            batch[..8].copy_from_slice(&offset.to_be_bytes());
            offset += i64::from(RECORDS_PER_BATCH);
            whole_batches(&batch).for_each(|batch| audit.batch(&batch));
        }
        audit.finish()
    }

    fn count(findings: &AuditFindings, anomaly: Anomaly) -> u64 {
        findings.anomalies.get(&anomaly).copied().unwrap_or(0)
    }

    #[test]
    fn a_right_log_has_no_anomaly() {
        let (ledger, log) = sent();
        let findings = audit(ledger, &log);
        assert_eq!(findings.anomalies, BTreeMap::new());
        assert_eq!(
            (
                findings.records_sent,
                findings.records_acked,
                findings.records_read
            ),
            (30, 30, 30)
        );
    }

    #[test]
    fn a_planted_loss_is_found_in_the_middle_and_at_the_end() {
        for lost in [4, 9] {
            let (ledger, mut log) = sent();
            log.remove(lost);
            let findings = audit(ledger, &log);
            assert_eq!(count(&findings, Anomaly::Lost), 3, "{findings:?}");
        }
    }

    #[test]
    fn a_planted_duplicate_is_found() {
        let (ledger, mut log) = sent();
        log.push(log[2].clone());
        let findings = audit(ledger, &log);
        assert_eq!(
            findings.anomalies,
            BTreeMap::from([(Anomaly::Duplicated, 3)])
        );
    }

    #[test]
    fn a_planted_reordering_is_found() {
        let (ledger, mut log) = sent();
        log.swap(5, 6);
        let findings = audit(ledger, &log);
        assert_eq!(count(&findings, Anomaly::Reordered), 3);
        assert_eq!(count(&findings, Anomaly::Lost), 0);
    }

    #[test]
    fn a_planted_corruption_is_found_by_the_batchs_crc() {
        let (ledger, mut log) = sent();
        log[7][BATCH_HEADER_BYTES + 50] ^= 1;
        let findings = audit(ledger, &log);
        assert_eq!(count(&findings, Anomaly::Corrupted), 3);
        assert_eq!(findings.first_findings[0].offset, Some(21));
    }

    #[test]
    fn a_corruption_under_a_recomputed_batch_crc_is_found_by_the_records_own_checksum() {
        let (ledger, mut log) = sent();
        let batch = &mut log[7];
        batch[BATCH_HEADER_BYTES + 50] ^= 1;
        let crc = crc32c::crc32c(&batch[21..]);
        batch[17..21].copy_from_slice(&crc.to_be_bytes());
        let findings = audit(ledger, &log);
        assert_eq!(count(&findings, Anomaly::Corrupted), 1);
    }

    #[test]
    fn an_ack_that_named_another_offset_is_found() {
        let (_, log) = sent();
        let mut ledger = Ledger::new(PRODUCER, 1);
        for _ in 0..BATCHES {
            let first_sequence = ledger.send(0, RECORDS_PER_BATCH);
            let span = BatchSpan {
                partition: 0,
                first_sequence,
                record_count: RECORDS_PER_BATCH,
                first_record: 0,
                built_ns: 0,
                keyed: None,
            };
            ledger.ack(
                &span,
                Some(first_sequence as i64 + i64::from(first_sequence == 6)),
            );
        }
        assert_eq!(
            audit(ledger, &log).anomalies,
            BTreeMap::from([(Anomaly::AckOffsetDiffers, 3)])
        );
    }

    #[test]
    fn an_unacked_record_may_be_there_or_not_and_a_refused_one_may_not() {
        let (_, log) = sent();
        let mut ledger = Ledger::new(PRODUCER, 1);
        for number in 0..=BATCHES {
            let first_sequence = ledger.send(0, RECORDS_PER_BATCH);
            let span = BatchSpan {
                partition: 0,
                first_sequence,
                record_count: RECORDS_PER_BATCH,
                first_record: 0,
                built_ns: 0,
                keyed: None,
            };
            match number {
                3 => ledger.refuse(&span),
                4 | BATCHES => {}
                _ => ledger.ack(&span, Some(first_sequence as i64)),
            }
        }
        let findings = audit(ledger, &log);
        assert_eq!(
            findings.anomalies,
            BTreeMap::from([(Anomaly::RefusedButPresent, 3)])
        );
        assert_eq!(findings.records_unacked_but_present, 3);
    }

    #[test]
    fn a_hole_in_the_offsets_is_found() {
        let (ledger, log) = sent();
        let ledgers = [ledger];
        let mut audit = PartitionAudit::new(RUN, "t", 0, &ledgers, 0);
        for (number, batch) in log.iter().enumerate() {
            let mut batch = batch.clone();
            let offset = number as i64 * 3 + if number < 5 { 0 } else { 2 };
            batch[..8].copy_from_slice(&offset.to_be_bytes());
            whole_batches(&batch).for_each(|batch| audit.batch(&batch));
        }
        assert_eq!(count(&audit.finish(), Anomaly::OffsetHole), 2);
    }

    #[test]
    fn nothing_is_said_about_producers_whose_ledgers_are_lost_but_how_many_records_they_have() {
        let (_, log) = sent();
        let mut audit =
            PartitionAudit::new(RUN, "t", 0, &[], 0).without(&BTreeSet::from([PRODUCER]));
        for (number, batch) in log.iter().enumerate() {
            let mut batch = batch.clone();
            batch[..8].copy_from_slice(&(number as i64 * 3).to_be_bytes());
            whole_batches(&batch).for_each(|batch| audit.batch(&batch));
        }
        let findings = audit.finish();
        assert_eq!(findings.anomalies, BTreeMap::new());
        assert_eq!(findings.records_of_lost_producers, 30);
    }

    #[test]
    fn the_first_ten_cases_are_shown_and_all_are_counted() {
        let (ledger, log) = sent();
        let mut twice = log.clone();
        twice.extend(log);
        let findings = audit(ledger, &twice);
        assert_eq!(count(&findings, Anomaly::Duplicated), 30);
        assert_eq!(findings.first_findings.len(), FINDINGS_SHOWN_MAX);
    }
}
