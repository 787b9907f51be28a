use std::collections::BTreeMap;
use std::sync::Arc;

use super::record::OffsetValue;
use crate::model::{LeaderEpoch, Offset, PartitionIndex, TimestampMs, TopicId, TopicName};

/// What one group has committed. An offset is seen once its record is on disk; until then its place is only taken.
#[derive(Debug, Default)]
pub struct GroupOffsets {
    topics: BTreeMap<TopicName, BTreeMap<PartitionIndex, Slot>>,
    count: usize,
    metadata_bytes: usize,
}

#[derive(Debug, Default)]
struct Slot {
    stored: Option<StoredOffset>,
    /// Commits that are being written.
    writing: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredOffset {
    pub offset: Offset,
    pub leader_epoch: LeaderEpoch,
    pub metadata: Arc<str>,
    pub commit_time: TimestampMs,
    /// `NONE`: as the settings say.
    pub expire_time: TimestampMs,
    pub topic_id: TopicId,
}

impl StoredOffset {
    pub fn of(value: &OffsetValue<'_>) -> Self {
        Self {
            offset: value.offset,
            leader_epoch: value.leader_epoch,
            metadata: value.metadata.into(),
            commit_time: value.commit_time,
            expire_time: value.expire_time,
            topic_id: value.topic_id,
        }
    }

    pub fn value(&self) -> OffsetValue<'_> {
        OffsetValue {
            offset: self.offset,
            leader_epoch: self.leader_epoch,
            metadata: &self.metadata,
            commit_time: self.commit_time,
            expire_time: self.expire_time,
            topic_id: self.topic_id,
        }
    }
}

impl GroupOffsets {
    /// What the place of one takes in memory, roughly.
    pub const SLOT_BYTES: usize = 160;

    /// Partitions with an offset, or with one that is being written.
    pub fn len(&self) -> usize {
        self.count
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// What they take in memory, roughly.
    pub fn bytes(&self) -> usize {
        const TOPIC_BYTES: usize = 512;
        self.count * Self::SLOT_BYTES + self.topics.len() * TOPIC_BYTES + self.metadata_bytes
    }

    pub fn has(&self, topic: &TopicName, partition: PartitionIndex) -> bool {
        self.slot(topic, partition).is_some()
    }

    /// What one offset takes, roughly; 0 where there is none.
    pub fn bytes_of(&self, topic: &TopicName, partition: PartitionIndex) -> usize {
        let slot = self.slot(topic, partition);
        slot.map_or(0, |slot| {
            let metadata = slot.stored.as_ref().map_or(0, |it| it.metadata.len());
            Self::SLOT_BYTES + metadata
        })
    }

    pub fn get(&self, topic: &TopicName, partition: PartitionIndex) -> Option<&StoredOffset> {
        self.slot(topic, partition)?.stored.as_ref()
    }

    /// With those that are only being written.
    pub fn iter(
        &self,
    ) -> impl Iterator<Item = (&TopicName, PartitionIndex, Option<&StoredOffset>)> {
        self.topics.iter().flat_map(|(topic, partitions)| {
            let of = partitions.iter();
            of.map(move |(partition, slot)| (topic, *partition, slot.stored.as_ref()))
        })
    }

    pub fn partitions_of(&self, topic: &TopicName) -> Vec<PartitionIndex> {
        let partitions = self.topics.get(topic);
        partitions
            .map(|partitions| partitions.keys().copied().collect())
            .unwrap_or_default()
    }

    /// A commit of this partition is being written.
    pub fn begin(&mut self, topic: &TopicName, partition: PartitionIndex) {
        self.slot_mut(topic, partition).writing += 1;
    }

    /// It is on disk.
    pub fn confirm(&mut self, topic: &TopicName, partition: PartitionIndex, stored: StoredOffset) {
        self.slot_mut(topic, partition).writing -= 1;
        self.put(topic, partition, stored);
    }

    /// It never will be.
    pub fn refuse(&mut self, topic: &TopicName, partition: PartitionIndex) {
        self.slot_mut(topic, partition).writing -= 1;
        self.drop_if_unused(topic, partition);
    }

    pub fn put(&mut self, topic: &TopicName, partition: PartitionIndex, stored: StoredOffset) {
        self.metadata_bytes += stored.metadata.len();
        let slot = self.slot_mut(topic, partition);
        if let Some(old) = slot.stored.replace(stored) {
            self.metadata_bytes -= old.metadata.len();
        }
    }

    /// Its tombstone is on disk. A commit that is written behind it keeps the place.
    pub fn remove(&mut self, topic: &TopicName, partition: PartitionIndex) {
        if self.has(topic, partition) {
            let stored = self.slot_mut(topic, partition).stored.take();
            self.metadata_bytes -= stored.map_or(0, |old| old.metadata.len());
            self.drop_if_unused(topic, partition);
        }
    }

    /// Their tombstones are on disk, and those of commits before.
    pub fn remove_all(&mut self) {
        let all: Vec<_> = self
            .iter()
            .map(|(topic, partition, _)| (topic.clone(), partition))
            .collect();
        for (topic, partition) in all {
            self.remove(&topic, partition);
        }
    }

    fn slot(&self, topic: &TopicName, partition: PartitionIndex) -> Option<&Slot> {
        self.topics.get(topic)?.get(&partition)
    }

    fn slot_mut(&mut self, topic: &TopicName, partition: PartitionIndex) -> &mut Slot {
        if !self.topics.contains_key(topic) {
            self.topics.insert(topic.clone(), BTreeMap::new());
        }
        let partitions = self.topics.get_mut(topic).expect("it was just put there");
        partitions.entry(partition).or_insert_with(|| {
            self.count += 1;
            Slot::default()
        })
    }

    fn drop_if_unused(&mut self, topic: &TopicName, partition: PartitionIndex) {
        let Some(partitions) = self.topics.get_mut(topic) else {
            return;
        };
        let unused = |slot: &Slot| slot.stored.is_none() && slot.writing == 0;
        if partitions.get(&partition).is_some_and(unused) {
            partitions.remove(&partition);
            self.count -= 1;
            if partitions.is_empty() {
                self.topics.remove(topic);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(offset: i64) -> StoredOffset {
        StoredOffset {
            offset: Offset(offset),
            leader_epoch: LeaderEpoch::UNKNOWN,
            metadata: "meta".into(),
            commit_time: TimestampMs(1),
            expire_time: TimestampMs::NONE,
            topic_id: TopicId::ZERO,
        }
    }

    #[test]
    fn an_offset_is_seen_once_it_is_confirmed() {
        let (topic, zero) = (TopicName::new("t").unwrap(), PartitionIndex(0));
        let mut offsets = GroupOffsets::default();
        offsets.begin(&topic, zero);
        assert_eq!((offsets.len(), offsets.get(&topic, zero)), (1, None));
        offsets.confirm(&topic, zero, stored(5));
        assert_eq!(offsets.get(&topic, zero), Some(&stored(5)));
        offsets.begin(&topic, zero);
        offsets.refuse(&topic, zero);
        assert_eq!(offsets.get(&topic, zero), Some(&stored(5)));
        offsets.remove(&topic, zero);
        assert!(offsets.is_empty());
        assert_eq!(offsets.bytes(), 0);
    }

    #[test]
    fn a_refused_first_commit_leaves_nothing() {
        let (topic, zero) = (TopicName::new("t").unwrap(), PartitionIndex(0));
        let mut offsets = GroupOffsets::default();
        offsets.begin(&topic, zero);
        offsets.refuse(&topic, zero);
        assert!(offsets.is_empty());
        assert_eq!(offsets.bytes(), 0);
    }

    #[test]
    fn a_commit_behind_a_tombstone_keeps_its_place() {
        let (topic, zero) = (TopicName::new("t").unwrap(), PartitionIndex(0));
        let mut offsets = GroupOffsets::default();
        offsets.put(&topic, zero, stored(5));
        offsets.begin(&topic, zero);
        offsets.remove(&topic, zero);
        assert_eq!((offsets.len(), offsets.get(&topic, zero)), (1, None));
        offsets.confirm(&topic, zero, stored(6));
        assert_eq!(offsets.get(&topic, zero), Some(&stored(6)));
    }
}
