//! A producer's ledger in parts that fit a frame, each entry as the difference to the one before.

use serde::{Deserialize, Serialize};

use crate::crew::TopicLedger;
use crate::producer::ledger::{Acked, Ledger, StreamLedger};
use crate::record::ProducerNumber;

/// So many entries of at most 63 digits and signs stay far below the limit of a frame.
const ENTRIES_PER_PART_MAX: usize = 100_000;

/// Some of the entries of one producer and partition. Parts of one stream follow each other in order.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LedgerPart {
    /// The topic's place in the order's topics.
    topic: usize,
    producer: ProducerNumber,
    partition: usize,
    partition_count: usize,
    sent_count: u64,
    acked: Vec<AckedStep>,
    /// First sequence and the one behind the last.
    refused: Vec<(u64, u64)>,
}

/// How many sequences lie between the end of the entry before and this one; how many it has; how far its first
/// offset is from where that entry's offsets ended, if the ack told an offset.
type AckedStep = (i64, u64, Option<i64>);

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the ledger of producer {} is damaged: {reason}", producer.0)]
pub struct DamagedLedger {
    producer: ProducerNumber,
    reason: &'static str,
}

/// The whole ledger, one part after the other.
pub fn parts(of: &TopicLedger) -> impl Iterator<Item = LedgerPart> {
    let TopicLedger { topic, ledger } = of;
    let streams = ledger.streams.iter().enumerate();
    streams.flat_map(move |(partition, stream)| {
        let part = LedgerPart {
            topic: *topic,
            producer: ledger.producer,
            partition,
            partition_count: ledger.streams.len(),
            sent_count: stream.sent_count,
            acked: Vec::new(),
            refused: Vec::new(),
        };
        let mut end = End::default();
        let acked = stream.acked().chunks(ENTRIES_PER_PART_MAX);
        let acked: Vec<Vec<AckedStep>> = acked
            .map(|chunk| chunk.iter().map(|acked| end.step_to(acked)).collect())
            .collect();
        let refused = stream.refused().chunks(ENTRIES_PER_PART_MAX);
        let refused: Vec<Vec<(u64, u64)>> = refused
            .map(|chunk| chunk.iter().map(|range| (range.start, range.end)).collect())
            .collect();
        let with_acked = {
            let part = part.clone();
            // A stream without any entry still has its count.
            let some = if acked.is_empty() {
                vec![Vec::new()]
            } else {
                acked
            };
            some.into_iter().map(move |acked| LedgerPart {
                acked,
                ..part.clone()
            })
        };
        let with_refused = refused.into_iter().map(move |refused| LedgerPart {
            refused,
            ..part.clone()
        });
        with_acked.chain(with_refused)
    })
}

/// Where the entry before ended.
#[derive(Clone, Copy, Default)]
struct End {
    sequence: u64,
    offset: i64,
}

impl End {
    fn step_to(&mut self, acked: &Acked) -> AckedStep {
        let gap = acked.first_sequence.wrapping_sub(self.sequence) as i64;
        let away = acked.base_offset.map(|base| base - self.offset);
        self.move_behind(acked);
        (gap, acked.record_count, away)
    }

    fn move_behind(&mut self, acked: &Acked) {
        self.sequence = acked.sequences().end;
        if let Some(base) = acked.base_offset {
            self.offset = base + acked.record_count as i64;
        }
    }

    /// None: numbers that no run has.
    fn entry_of(&mut self, (gap, record_count, away): AckedStep) -> Option<Acked> {
        let first_sequence = self.sequence.checked_add_signed(gap)?;
        first_sequence.checked_add(record_count)?;
        let base_offset = match away {
            Some(away) => Some(self.offset.checked_add(away)?),
            None => None,
        };
        base_offset
            .unwrap_or(0)
            .checked_add(i64::try_from(record_count).ok()?)?;
        let acked = Acked {
            first_sequence,
            record_count,
            base_offset,
        };
        self.move_behind(&acked);
        Some(acked)
    }
}

/// Ledgers as they come in, part by part.
#[derive(Default)]
pub struct LedgerParts {
    ledgers: Vec<TopicLedger>,
}

impl LedgerParts {
    pub fn add(&mut self, part: LedgerPart) -> Result<(), DamagedLedger> {
        let damaged = |reason| DamagedLedger {
            producer: part.producer,
            reason,
        };
        let is_last = |of: &TopicLedger| of.ledger.producer == part.producer;
        if !self.ledgers.last().is_some_and(is_last) {
            self.ledgers.push(TopicLedger {
                topic: part.topic,
                ledger: Ledger::new(part.producer, part.partition_count),
            });
        }
        let of = self.ledgers.last_mut().expect("one was put there");
        let stream: &mut StreamLedger = of
            .ledger
            .streams
            .get_mut(part.partition)
            .ok_or_else(|| damaged("it has too many partitions"))?;
        stream.sent_count = part.sent_count;
        let mut end = End::default();
        if let Some(last) = stream.acked().last() {
            end.move_behind(last);
        }
        // The last offset may be further back than the last entry.
        if let Some(last) = stream
            .acked()
            .iter()
            .rev()
            .find(|it| it.base_offset.is_some())
        {
            end.offset = last.offset_of(last.sequences().end).unwrap_or(0);
        }
        for step in part.acked {
            let acked = end
                .entry_of(step)
                .ok_or_else(|| damaged("its numbers are out of range"))?;
            stream.append_acked(acked);
        }
        for (start, end) in part.refused {
            stream.append_refused(start..end);
        }
        Ok(())
    }

    pub fn into_ledgers(self) -> Vec<TopicLedger> {
        self.ledgers
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::producer::span::BatchSpan;
    use rand::rngs::SmallRng;
    use rand::{RngExt, SeedableRng};

    fn span(partition: usize, first_sequence: u64, record_count: u32) -> BatchSpan {
        BatchSpan {
            partition,
            first_sequence,
            record_count,
            first_record: 0,
            built_ns: 0,
            keyed: None,
        }
    }

    /// Batches of random sizes that are acked with or without an offset, refused, or never answered.
    fn ledger(seed: u64, batches: usize) -> TopicLedger {
        let mut random = SmallRng::seed_from_u64(seed);
        let mut ledger = Ledger::new(ProducerNumber(7), 3);
        let mut offset = 1_000_000_000;
        for _ in 0..batches {
            let (partition, count) = (random.random_range(0..2), random.random_range(1..200));
            let first = ledger.send(partition, count);
            offset += random.random_range(0..5);
            match random.random_range(0..20) {
                0 => {}
                1 => ledger.refuse(&span(partition, first, count)),
                2 => ledger.ack(&span(partition, first, count), None),
                _ => ledger.ack(&span(partition, first, count), Some(offset)),
            }
            offset += i64::from(count);
        }
        TopicLedger { topic: 4, ledger }
    }

    #[test]
    fn a_ledger_in_parts_over_the_wire_is_the_same_ledger() {
        for seed in 0..20 {
            let batches = if seed == 0 {
                3 * ENTRIES_PER_PART_MAX
            } else {
                500
            };
            let sent = ledger(seed, batches);
            let mut received = LedgerParts::default();
            let mut count = 0;
            for part in parts(&sent) {
                let wire = serde_json::to_string(&part).expect("plain data");
                assert!(wire.len() < super::super::wire::FRAME_BYTES_MAX / 8);
                let part = serde_json::from_str(&wire).expect("the same data");
                received.add(part).expect("a whole ledger");
                count += 1;
            }
            assert!(
                count >= if seed == 0 { 4 } else { 3 },
                "seed {seed}: {count} parts"
            );
            let received = received.into_ledgers();
            assert_eq!(received.len(), 1, "seed {seed}");
            assert_eq!(received[0].topic, 4);
            assert_eq!(received[0].ledger, sent.ledger, "seed {seed}");
        }
    }

    #[test]
    fn numbers_that_no_run_has_are_refused() {
        let sent = ledger(1, 10);
        let mut part = parts(&sent).next().expect("a part");
        part.acked.push((i64::MIN, 1, None));
        assert!(LedgerParts::default().add(part.clone()).is_err());
        part.acked.clear();
        part.partition = 3;
        assert!(LedgerParts::default().add(part).is_err());
    }
}
