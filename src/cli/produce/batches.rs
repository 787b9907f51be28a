use std::collections::BTreeMap;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;

use crate::client::metadata::TopicPartition;
use crate::client::murmur2::partition_of;
use crate::model::{ProducerEpoch, ProducerId, Sequence, TimestampMs};
use crate::record::Codec;
use crate::record::encode::BatchBuilder;

/// A batch that is as large is sent without waiting for more; below the smallest `max.message.bytes` that brokers come with.
const BATCH_BYTES: usize = 256 * 1024;

/// Records on their way into batches, one for each partition.
pub(super) struct Batches {
    topic: String,
    partitions: usize,
    chosen: Option<i32>,
    codec: Codec,
    headers: Vec<(String, String)>,
    /// What the cluster knows batches by that are sent again.
    producer: Option<(ProducerId, ProducerEpoch)>,
    /// Of the next record of each partition.
    sequences: BTreeMap<i32, Sequence>,
    open: BTreeMap<i32, BatchBuilder>,
    /// When the first of them came.
    oldest: Option<Instant>,
    is_full: bool,
    /// Where the next records without a key go.
    turn: usize,
}

impl Batches {
    pub(super) fn new(
        topic: &str,
        partitions: usize,
        chosen: Option<i32>,
        codec: Codec,
        headers: Vec<(String, String)>,
        producer: Option<(ProducerId, ProducerEpoch)>,
    ) -> Self {
        Self {
            topic: topic.to_owned(),
            partitions,
            chosen,
            codec,
            headers,
            producer,
            sequences: BTreeMap::new(),
            open: BTreeMap::new(),
            oldest: None,
            is_full: false,
            turn: 0,
        }
    }

    pub(super) fn push(&mut self, key: Option<&[u8]>, value: Option<&[u8]>) {
        let partition = match (self.chosen, key) {
            (Some(chosen), _) => chosen,
            (None, Some(key)) => partition_of(key, self.partitions) as i32,
            (None, None) => (self.turn % self.partitions) as i32,
        };
        let headers: Vec<(&str, Option<&[u8]>)> = self
            .headers
            .iter()
            .map(|(name, value)| (name.as_str(), Some(value.as_bytes())))
            .collect();
        let batch = self
            .open
            .entry(partition)
            .or_insert_with(|| BatchBuilder::new().codec(self.codec));
        batch.push(now(), key, value, &headers);
        self.is_full |= batch.uncompressed_bytes() >= BATCH_BYTES;
        self.oldest.get_or_insert_with(Instant::now);
    }

    pub(super) fn oldest(&self) -> Option<Instant> {
        self.oldest
    }

    pub(super) fn are_due(&self, linger: Duration) -> bool {
        self.is_full || self.oldest.is_some_and(|since| since.elapsed() >= linger)
    }

    /// The batches as they are sent, each with its number of records.
    pub(super) fn take(
        &mut self,
    ) -> (
        BTreeMap<TopicPartition, u64>,
        BTreeMap<TopicPartition, Bytes>,
    ) {
        self.turn += 1;
        self.oldest = None;
        self.is_full = false;
        let mut counts = BTreeMap::new();
        let mut batches = BTreeMap::new();
        for (partition, batch) in std::mem::take(&mut self.open) {
            let at = TopicPartition::new(&self.topic, partition);
            let count = batch.record_count();
            counts.insert(at.clone(), count as u64);
            let batch = match self.producer {
                None => batch,
                Some((id, epoch)) => {
                    let next = self.sequences.entry(partition).or_insert(Sequence::FIRST);
                    let sequence = *next;
                    *next = sequence.plus(count);
                    batch.producer(id, epoch, sequence)
                }
            };
            batches.insert(at, Bytes::from(batch.build()));
        }
        (counts, batches)
    }
}

fn now() -> TimestampMs {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    TimestampMs(since.map_or(0, |since| since.as_millis() as i64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::RecordBatchHeader;

    fn batches(chosen: Option<i32>) -> Batches {
        let producer = Some((ProducerId(7), ProducerEpoch(0)));
        Batches::new("t", 3, chosen, Codec::None, Vec::new(), producer)
    }

    #[test]
    fn the_batches_of_a_partition_follow_one_another_in_their_sequences() {
        let mut batches = batches(None);
        let mut first_sequences = Vec::new();
        for _ in 0..4 {
            batches.push(None, Some(b"a"));
            batches.push(None, Some(b"b"));
            let (_, built) = batches.take();
            for (at, batch) in built {
                let header = RecordBatchHeader::parse(&batch).unwrap();
                assert_eq!(header.producer_id, ProducerId(7));
                first_sequences.push((at.partition, header.base_sequence.0));
            }
        }
        assert_eq!(first_sequences, [(0, 0), (1, 0), (2, 0), (0, 2)]);
    }

    fn partitions(batches: &mut Batches) -> Vec<(i32, u64)> {
        let (counts, _) = batches.take();
        counts
            .into_iter()
            .map(|(at, count)| (at.partition, count))
            .collect()
    }

    #[test]
    fn a_key_has_its_partition_and_records_without_one_go_batch_by_batch_in_turn() {
        let mut batches = batches(None);
        let by_key = partition_of(b"foobar", 3) as i32;
        batches.push(Some(b"foobar"), None);
        batches.push(Some(b"foobar"), Some(b"x"));
        assert_eq!(partitions(&mut batches), [(by_key, 2)]);
        for turn in [1, 2, 0] {
            batches.push(None, Some(b"a"));
            batches.push(None, Some(b"b"));
            assert_eq!(partitions(&mut batches), [(turn, 2)]);
        }
    }

    #[test]
    fn a_chosen_partition_gets_all_and_a_full_batch_is_due_at_once() {
        let mut batches = batches(Some(2));
        let hour = Duration::from_secs(3600);
        batches.push(Some(b"k"), Some(b"small"));
        assert!(!batches.are_due(hour));
        batches.push(None, Some(&vec![0; BATCH_BYTES]));
        assert!(batches.are_due(hour));
        assert_eq!(partitions(&mut batches), [(2, 2)]);
        assert!(!batches.are_due(Duration::ZERO));
    }
}
