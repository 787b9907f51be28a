//! The topics that the broker keeps for itself. Clients read them; nobody but the broker writes or deletes them.

/// Committed offsets and group metadata.
pub const OFFSETS_TOPIC: &str = "__consumer_offsets";

/// Kafka keeps its controllers' log under this name. There is no such topic here, and no client may create one.
pub const CLUSTER_METADATA_TOPIC: &str = "__cluster_metadata";

pub fn is_internal(topic: &str) -> bool {
    topic == OFFSETS_TOPIC
}

/// The partition of the offsets topic that a group's records are in: `abs(hash) % partitions` over Java's hash of a string, which
/// goes by UTF-16 code units. Kafka's rule, so that its tools look in the right partition.
pub fn offsets_partition_of(group: &str, partition_count: i32) -> i32 {
    let hash = group.encode_utf16().fold(0i32, |hash, unit| {
        hash.wrapping_mul(31).wrapping_add(i32::from(unit))
    });
    // Java's abs of the smallest number is that number; Kafka takes 0 for it.
    hash.checked_abs().unwrap_or(0) % partition_count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_in_the_partition_that_kafka_looks_in() {
        // "hello".hashCode() is 99162322 and "polygenelubricants".hashCode() is Integer.MIN_VALUE.
        assert_eq!(offsets_partition_of("hello", 50), 99_162_322 % 50);
        assert_eq!(offsets_partition_of("polygenelubricants", 50), 0);
        // "-".hashCode() is 45; a negative hash: "zzzzzz".hashCode() is -685785664.
        assert_eq!(offsets_partition_of("-", 50), 45);
        assert_eq!(offsets_partition_of("zzzzzz", 50), 685_785_664 % 50);
        // Two code units stand for one character outside the basic plane: "😀".hashCode() is 1772899.
        assert_eq!(offsets_partition_of("😀", 50), 1_772_899 % 50);
        assert_eq!(offsets_partition_of("", 50), 0);
    }
}
