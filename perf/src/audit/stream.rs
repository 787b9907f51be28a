//! One producer's records in one partition, and which of them were read.

use std::collections::BTreeMap;
use std::ops::Range;

use super::findings::Anomaly;
use crate::producer::ledger::StreamLedger;

pub struct StreamAudit<'a> {
    ledger: &'a StreamLedger,
    /// The lowest sequence that no record so far has reached.
    next_sequence: u64,
    /// What was jumped over below it, as disjoint ranges by their start.
    missing: BTreeMap<u64, u64>,
}

impl<'a> StreamAudit<'a> {
    pub fn new(ledger: &'a StreamLedger) -> Self {
        Self {
            ledger,
            next_sequence: 0,
            missing: BTreeMap::new(),
        }
    }

    pub fn ledger(&self) -> &'a StreamLedger {
        self.ledger
    }

    /// Notes that `sequence` was read; says what is wrong with its place among its producer's records.
    pub fn place(&mut self, sequence: u64) -> Option<Anomaly> {
        if sequence >= self.next_sequence {
            if sequence > self.next_sequence {
                self.missing.insert(self.next_sequence, sequence);
            }
            self.next_sequence = sequence + 1;
            return None;
        }
        let gap = self
            .missing
            .range(..=sequence)
            .next_back()
            .map(|(&start, &end)| start..end);
        match gap.filter(|gap| gap.contains(&sequence)) {
            None => Some(Anomaly::Duplicated),
            Some(Range { start, end }) => {
                self.missing.remove(&start);
                if start < sequence {
                    self.missing.insert(start, sequence);
                }
                if sequence + 1 < end {
                    self.missing.insert(sequence + 1, end);
                }
                Some(Anomaly::Reordered)
            }
        }
    }

    /// Acked sequences that were never read.
    pub fn lost(mut self) -> Vec<Range<u64>> {
        if self.next_sequence < self.ledger.sent_count {
            self.missing
                .insert(self.next_sequence, self.ledger.sent_count);
        }
        let overlap = |(&start, &end): (&u64, &u64)| {
            let first = self
                .ledger
                .acked()
                .partition_point(|acked| acked.sequences().end <= start);
            self.ledger.acked()[first..]
                .iter()
                .take_while(move |acked| acked.first_sequence < end)
                .map(move |acked| acked.first_sequence.max(start)..acked.sequences().end.min(end))
        };
        self.missing.iter().flat_map(overlap).collect()
    }
}
