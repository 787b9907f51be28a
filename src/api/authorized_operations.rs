//! What a client may do, as the bit sets of KIP-430. Nobody is refused anything here, so that each holds all that can be done to
//! its resource; -2147483648 says that the client did not ask.

/// Kafka's numbers of operations.
const READ: u32 = 3;
const WRITE: u32 = 4;
const CREATE: u32 = 5;
const DELETE: u32 = 6;
const ALTER: u32 = 7;
const DESCRIBE: u32 = 8;
const DESCRIBE_CONFIGS: u32 = 10;
const ALTER_CONFIGS: u32 = 11;
const IDEMPOTENT_WRITE: u32 = 12;

const NOT_ASKED: i32 = i32::MIN;

const ON_A_TOPIC: i32 = bits(&[
    READ,
    WRITE,
    CREATE,
    DELETE,
    ALTER,
    DESCRIBE,
    DESCRIBE_CONFIGS,
    ALTER_CONFIGS,
]);

const ON_A_GROUP: i32 = bits(&[READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS]);

const ON_THE_CLUSTER: i32 = bits(&[
    CREATE,
    ALTER,
    DESCRIBE,
    DESCRIBE_CONFIGS,
    ALTER_CONFIGS,
    IDEMPOTENT_WRITE,
]);

pub fn on_a_topic(is_asked: bool) -> i32 {
    if is_asked { ON_A_TOPIC } else { NOT_ASKED }
}

pub fn on_a_group(is_asked: bool) -> i32 {
    if is_asked { ON_A_GROUP } else { NOT_ASKED }
}

pub fn on_the_cluster(is_asked: bool) -> i32 {
    if is_asked { ON_THE_CLUSTER } else { NOT_ASKED }
}

const fn bits(operations: &[u32]) -> i32 {
    let mut bits = 0;
    let mut index = 0;
    while index < operations.len() {
        bits |= 1 << operations[index];
        index += 1;
    }
    bits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bit_set_of_a_topic_is_kafkas() {
        // What Kafka answers for a topic where no authorizer is set.
        assert_eq!(on_a_topic(true), 3576);
        assert_eq!(on_a_topic(false), i32::MIN);
    }
}
