//! The API keys under which a shard counts the stages of a request; Kafka's numbers.

pub const PRODUCE: i16 = 0;
pub const FETCH: i16 = 1;
