//! The words of the product as types: ids, offsets, epochs, limits.
//!
//! Owns: newtypes and named constants. Must never know: how anything is stored, sent or scheduled.
//! Runs on: any core; everything here is plain data. After a crash: nothing here survives on its own.

pub mod api_key;
mod epoch;
mod id;
pub mod internal_topic;
pub mod limits;
mod offset;
mod producer;
mod timestamp;

pub use epoch::LeaderEpoch;
pub use id::{NodeId, PartitionIndex, ShardId, TopicId, TopicName, TopicNameError, TopicPartition};
pub use offset::{FilePosition, Offset};
pub use producer::{ProducerEpoch, ProducerId, Sequence};
pub use timestamp::TimestampMs;
