//! What a producer knows of the fate of its records: the side of the story that the audit compares with the log.

use std::ops::Range;

use super::span::BatchSpan;
use crate::record::ProducerNumber;

/// The broker confirmed these records and said where they lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acked {
    pub first_sequence: u64,
    pub record_count: u64,
    /// None where the ack carried no offset, as that of a repeated batch may.
    pub base_offset: Option<i64>,
}

impl Acked {
    pub fn sequences(&self) -> Range<u64> {
        self.first_sequence..self.first_sequence + self.record_count
    }

    /// Where the record `sequence`, one of these, must lie.
    pub fn offset_of(&self, sequence: u64) -> Option<i64> {
        self.base_offset
            .map(|base| base + (sequence - self.first_sequence) as i64)
    }

    fn is_followed_by(&self, next: &Self) -> bool {
        self.sequences().end == next.first_sequence
            && self.offset_of(next.first_sequence) == next.base_offset
    }
}

/// The records of one producer in one partition. Those neither acked nor refused may or may not be in the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamLedger {
    /// Sequences 0 up to here were sent.
    pub sent_count: u64,
    acked: Vec<Acked>,
    refused: Vec<Range<u64>>,
}

impl StreamLedger {
    /// By sequence.
    pub fn acked(&self) -> &[Acked] {
        &self.acked
    }

    pub fn acked_count(&self) -> u64 {
        self.acked.iter().map(|acked| acked.record_count).sum()
    }

    /// First sequences and those behind the last.
    pub fn refused(&self) -> &[Range<u64>] {
        &self.refused
    }

    /// An entry of another ledger that follows those that are there.
    pub fn append_acked(&mut self, acked: Acked) {
        self.acked.push(acked);
    }

    pub fn append_refused(&mut self, refused: Range<u64>) {
        self.refused.push(refused);
    }

    pub fn was_refused(&self, sequence: u64) -> bool {
        self.refused.iter().any(|range| range.contains(&sequence))
    }

    pub fn acked_with(&self, sequence: u64) -> Option<&Acked> {
        let behind = self
            .acked
            .partition_point(|acked| acked.first_sequence <= sequence);
        self.acked[..behind]
            .last()
            .filter(|acked| acked.sequences().contains(&sequence))
    }

    fn add_acked(&mut self, acked: Acked) {
        // Acks of one partition come in order but for resends, so this is nearly always the end.
        let at = self
            .acked
            .partition_point(|earlier| earlier.first_sequence <= acked.first_sequence);
        match at.checked_sub(1).map(|before| &mut self.acked[before]) {
            Some(before) if before.is_followed_by(&acked) => {
                before.record_count += acked.record_count
            }
            _ => self.acked.insert(at, acked),
        }
    }
}

/// All streams of one producer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ledger {
    pub producer: ProducerNumber,
    pub streams: Vec<StreamLedger>,
}

impl Ledger {
    pub fn new(producer: ProducerNumber, partition_count: usize) -> Self {
        Self {
            producer,
            streams: vec![StreamLedger::default(); partition_count],
        }
    }

    /// Reserves the next `record_count` sequences of a partition and returns the first.
    pub fn send(&mut self, partition: usize, record_count: u32) -> u64 {
        let stream = &mut self.streams[partition];
        let first = stream.sent_count;
        stream.sent_count += u64::from(record_count);
        first
    }

    pub fn ack(&mut self, span: &BatchSpan, base_offset: Option<i64>) {
        let acked = Acked {
            first_sequence: span.first_sequence,
            record_count: u64::from(span.record_count),
            base_offset,
        };
        self.streams[span.partition].add_acked(acked);
    }

    /// The broker said that it did not take them.
    pub fn refuse(&mut self, span: &BatchSpan) {
        let range = span.first_sequence..span.first_sequence + u64::from(span.record_count);
        let refused = &mut self.streams[span.partition].refused;
        match refused.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => refused.push(range),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(first_sequence: u64, record_count: u32) -> BatchSpan {
        BatchSpan {
            partition: 0,
            first_sequence,
            record_count,
            first_record: 0,
            built_ns: 0,
            keyed: None,
        }
    }

    #[test]
    fn acks_that_follow_each_other_in_sequence_and_offset_are_one_entry() {
        let mut ledger = Ledger::new(ProducerNumber(0), 1);
        assert_eq!(
            [ledger.send(0, 10), ledger.send(0, 5), ledger.send(0, 5)],
            [0, 10, 15]
        );
        ledger.ack(&span(0, 10), Some(100));
        ledger.ack(&span(10, 5), Some(110));
        ledger.ack(&span(15, 5), Some(120));
        let stream = &ledger.streams[0];
        assert_eq!(stream.acked().len(), 2);
        assert_eq!(stream.acked_with(12).unwrap().offset_of(12), Some(112));
        assert_eq!(stream.acked_with(15).unwrap().offset_of(15), Some(120));
        assert_eq!(stream.acked_with(20), None);
        assert_eq!(stream.acked_count(), 20);
    }

    #[test]
    fn an_ack_that_comes_late_finds_its_place() {
        let mut ledger = Ledger::new(ProducerNumber(0), 1);
        ledger.ack(&span(10, 5), Some(10));
        ledger.ack(&span(0, 10), None);
        assert_eq!(ledger.streams[0].acked_with(3).unwrap().offset_of(3), None);
        assert_eq!(
            ledger.streams[0].acked_with(14).unwrap().offset_of(14),
            Some(14)
        );
    }

    #[test]
    fn refused_records_are_known() {
        let mut ledger = Ledger::new(ProducerNumber(0), 1);
        ledger.refuse(&span(5, 5));
        assert!(ledger.streams[0].was_refused(9));
        assert!(!ledger.streams[0].was_refused(10));
    }
}
