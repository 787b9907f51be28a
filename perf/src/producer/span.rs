//! Which records a batch has, and when each was meant to be sent.

use super::accumulator::KeyedRecord;
use crate::schedule::Schedule;

/// The records of one batch, from which its bytes can be made at any time: also again, for a resend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchSpan {
    /// The partition's place in the run's list of partitions.
    pub partition: usize,
    /// Of the first record, within producer and partition.
    pub first_sequence: u64,
    pub record_count: u32,
    /// Of the first record, within the producer's schedule.
    pub first_record: u64,
    pub built_ns: u64,
    /// The records, where their keys brought them together; else they follow each other in the schedule.
    pub keyed: Option<Box<[KeyedRecord]>>,
}

impl BatchSpan {
    /// When its record `index` was meant to be sent.
    pub fn intended_ns(&self, schedule: &Schedule, index: u32) -> u64 {
        let record = match &self.keyed {
            Some(records) => records[index as usize].record,
            None => self.first_record + u64::from(index),
        };
        schedule.intended_ns(record, self.built_ns)
    }

    /// Every time at which records were meant to be sent, and how many.
    pub fn each_intended(&self, schedule: &Schedule, mut each: impl FnMut(u64, u64)) {
        match schedule {
            Schedule::Closed { .. } => each(self.built_ns, u64::from(self.record_count)),
            Schedule::Paced { .. } => {
                (0..self.record_count).for_each(|index| each(self.intended_ns(schedule, index), 1))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_intended_time_counts_its_records_once() {
        let keyed = [7, 9, 20].map(|record| KeyedRecord { record, key: 0 });
        let mut span = BatchSpan {
            partition: 0,
            first_sequence: 0,
            record_count: 3,
            first_record: 10,
            built_ns: 55,
            keyed: None,
        };
        let times = |span: &BatchSpan, schedule: Schedule| {
            let mut times = Vec::new();
            span.each_intended(&schedule, |intended_ns, count| {
                times.push((intended_ns, count))
            });
            times
        };
        let paced = Schedule::Paced {
            start_ns: 1,
            end_ns: u64::MAX,
            records_per_second: 1e9,
        };
        assert_eq!(times(&span, paced), [(11, 1), (12, 1), (13, 1)]);
        assert_eq!(times(&span, Schedule::Closed { end_ns: 99 }), [(55, 3)]);
        span.keyed = Some(Box::new(keyed));
        assert_eq!(times(&span, paced), [(8, 1), (10, 1), (21, 1)]);
    }
}
