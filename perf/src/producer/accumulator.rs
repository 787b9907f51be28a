//! Keyed records between their due time and their batch: each goes to its key's partition, where it waits until the
//! batch is full or its first record has lingered.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crate::keys::{KeySequence, Keys, partition_of};
use crate::schedule::Schedule;

/// So many complete batches may wait for room in flight; records behind them are due, but not dealt out yet.
const COMPLETE_MAX: usize = 64;

/// A record that knows its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyedRecord {
    /// Its place in the producer's schedule.
    pub record: u64,
    pub key: u32,
}

/// A batch that can be sent.
#[derive(Debug, PartialEq, Eq)]
pub struct Complete {
    pub partition: usize,
    pub records: Vec<KeyedRecord>,
    pub since_ns: u64,
}

/// When a partition's first record has lingered.
struct Lingering {
    at_ns: u64,
    partition: usize,
    /// The batch may have filled meanwhile; then another record is its first.
    first_record: u64,
}

pub struct Accumulator {
    sequence: KeySequence,
    /// Of each key.
    partitions: Vec<u32>,
    /// Of each partition.
    filling: Vec<Vec<KeyedRecord>>,
    /// In the order of time, because records are dealt out in that order.
    lingering: VecDeque<Lingering>,
    complete: VecDeque<Complete>,
    record_count_max: usize,
    linger: Duration,
    /// No batch that is being filled has more records.
    longest: usize,
}

impl Accumulator {
    pub fn new(
        keys: &Arc<Keys>,
        seed: u64,
        partition_count: usize,
        record_count_max: u32,
        linger: Duration,
    ) -> Self {
        Self {
            sequence: KeySequence::new(Arc::clone(keys), seed),
            partitions: (0..keys.count())
                .map(|key| partition_of(&keys.bytes(key), partition_count) as u32)
                .collect(),
            filling: vec![Vec::new(); partition_count],
            lingering: VecDeque::new(),
            complete: VecDeque::new(),
            record_count_max: record_count_max as usize,
            linger,
            longest: 0,
        }
    }

    /// Deals out what is due at `now_ns`. `next_record` is the first that was not.
    pub fn advance(&mut self, next_record: &mut u64, schedule: &Schedule, now_ns: u64) {
        let due_count = match schedule.record_count_before(now_ns + 1) {
            Some(count) => count,
            None if schedule.is_over(now_ns) => *next_record,
            None => u64::MAX,
        };
        while *next_record < due_count && self.complete.len() < COMPLETE_MAX {
            let intended_ns = schedule.intended_ns(*next_record, now_ns);
            self.deal(*next_record, intended_ns);
            *next_record += 1;
        }
        // Nothing follows that could fill a batch.
        let is_last = schedule.is_over(now_ns) && *next_record >= due_count;
        while let Some(first) = self.lingering.front() {
            if first.at_ns > now_ns && !is_last {
                break;
            }
            let Lingering {
                at_ns,
                partition,
                first_record,
            } = self.lingering.pop_front().expect("it was just seen");
            let waits = self.filling[partition].first();
            if waits.is_some_and(|record| record.record == first_record) {
                self.complete(partition, at_ns.min(now_ns));
            }
        }
    }

    fn deal(&mut self, record: u64, intended_ns: u64) {
        let key = self.sequence.draw();
        let partition = self.partitions[key as usize] as usize;
        let batch = &mut self.filling[partition];
        if batch.is_empty() {
            self.lingering.push_back(Lingering {
                at_ns: intended_ns + self.linger.as_nanos() as u64,
                partition,
                first_record: record,
            });
        }
        batch.push(KeyedRecord { record, key });
        self.longest = self.longest.max(batch.len());
        if batch.len() == self.record_count_max {
            self.complete(partition, intended_ns);
            self.longest = self.filling.iter().map(Vec::len).max().unwrap_or(0);
        }
    }

    fn complete(&mut self, partition: usize, since_ns: u64) {
        self.complete.push_back(Complete {
            partition,
            records: std::mem::take(&mut self.filling[partition]),
            since_ns,
        });
    }

    /// The oldest complete batch that may be sent.
    pub fn take(&mut self, may_send: impl Fn(usize) -> bool) -> Option<Complete> {
        let at = self
            .complete
            .iter()
            .position(|batch| may_send(batch.partition))?;
        self.complete.remove(at)
    }

    pub fn has_complete(&self) -> bool {
        !self.complete.is_empty()
    }

    /// Before this instant no batch becomes complete.
    pub fn next_ns(&self, next_record: u64, schedule: &Schedule, now_ns: u64) -> u64 {
        let missing = (self.record_count_max - self.longest.min(self.record_count_max - 1)) as u64;
        let full_ns = schedule.intended_ns(next_record + missing - 1, now_ns);
        let lingered_ns = match self.lingering.front() {
            Some(first) => first.at_ns,
            None => schedule.intended_ns(next_record, now_ns) + self.linger.as_nanos() as u64,
        };
        full_ns.min(lingered_ns)
    }

    /// Everything that was dealt out and not taken.
    pub fn left(&self) -> impl Iterator<Item = &KeyedRecord> {
        let complete = self.complete.iter().flat_map(|batch| &batch.records);
        complete.chain(self.filling.iter().flatten())
    }

    pub fn is_empty(&self) -> bool {
        self.left().next().is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::KeyDistributor;

    const MS: u64 = 1_000_000;
    const LINGER: Duration = Duration::from_millis(5);

    fn accumulator(partitions: usize, record_count_max: u32) -> Accumulator {
        let keys = Keys::new(KeyDistributor::Zipf, 100, 1.0).unwrap();
        Accumulator::new(&Arc::new(keys), 1, partitions, record_count_max, LINGER)
    }

    /// One record a millisecond for a second.
    const SCHEDULE: Schedule = Schedule::Paced {
        start_ns: 0,
        end_ns: 1000 * MS,
        records_per_second: 1000.0,
    };

    #[test]
    fn every_due_record_is_in_one_batch_of_its_keys_partition_and_in_order() {
        let mut accumulator = accumulator(7, 10);
        let keys = Keys::new(KeyDistributor::Zipf, 100, 1.0).unwrap();
        let (mut next_record, mut seen) = (0, Vec::new());
        for now_ms in 0..=1000 {
            accumulator.advance(&mut next_record, &SCHEDULE, now_ms * MS);
            while let Some(batch) = accumulator.take(|_| true) {
                assert!(batch.records.len() <= 10 && batch.records.is_sorted_by_key(|r| r.record));
                for record in batch.records {
                    assert_eq!(partition_of(&keys.bytes(record.key), 7), batch.partition);
                    seen.push(record.record);
                }
            }
        }
        seen.sort_unstable();
        assert_eq!(seen, (0..1000).collect::<Vec<_>>());
        assert!(accumulator.is_empty());
    }

    #[test]
    fn a_batch_is_complete_when_it_is_full_or_its_first_record_has_lingered() {
        let mut accumulator = accumulator(1, 3);
        let mut next_record = 0;
        accumulator.advance(&mut next_record, &SCHEDULE, 2 * MS);
        let full = accumulator.take(|_| true).unwrap();
        assert_eq!((full.records.len(), full.since_ns), (3, 2 * MS));
        accumulator.advance(&mut next_record, &SCHEDULE, 4 * MS);
        assert_eq!(accumulator.take(|_| true), None);
        assert_eq!(accumulator.next_ns(next_record, &SCHEDULE, 4 * MS), 5 * MS);
    }

    #[test]
    fn what_waits_for_a_broker_is_kept_and_bounded() {
        let mut accumulator = accumulator(1, 1);
        let mut next_record = 0;
        accumulator.advance(&mut next_record, &SCHEDULE, 500 * MS);
        assert_eq!(accumulator.take(|_| false), None);
        assert_eq!(next_record, COMPLETE_MAX as u64);
        assert_eq!(accumulator.left().count(), COMPLETE_MAX);
    }
}
