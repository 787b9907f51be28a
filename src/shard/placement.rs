//! Which shard owns a partition: a pure function of ids and the number of shards, so nothing about it is stored.

use crate::model::{ShardId, TopicPartition};

/// `(hash(topic id) + partition) % shards`: the partitions of one topic go round the shards, and topics start at different ones.
pub fn owner_of(partition: TopicPartition, shard_count: u16) -> ShardId {
    let hash = partition.topic.0.as_u128();
    let folded = (hash as u64) ^ (hash >> 64) as u64;
    let place = folded.wrapping_add(partition.partition.0 as u64) % u64::from(shard_count);
    ShardId(place as u16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{PartitionIndex, TopicId};

    #[test]
    fn the_partitions_of_a_topic_spread_evenly() {
        let topic = TopicId(uuid::Uuid::new_v4());
        let mut counts = [0; 3];
        for partition in 0..99 {
            let partition = TopicPartition {
                topic,
                partition: PartitionIndex(partition),
            };
            counts[owner_of(partition, 3).index()] += 1;
        }
        assert_eq!(counts, [33, 33, 33]);
    }
}
