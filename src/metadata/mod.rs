//! What the cluster agreed on: topics, partitions, settings that were set online, producer ids.
//!
//! Owns: the image (immutable), the records that change it, their archived form, and the delta that tells a shard what to do.
//! Must never know: files, who decides on a change, who follows it.
//! Runs on: any core; pure functions over plain data, shared between cores by reference count.
//! After a crash: nothing here survives on its own; the controller's log holds the records.

mod cluster_id;
mod delta;
mod image;
mod record;
mod topic;

pub use cluster_id::{ClusterId, ClusterIdError};
pub use delta::{MetadataDelta, TopicChange};
pub use image::{ApplyError, MetadataImage};
pub use record::{
    MetadataRecord, PartitionRecord, RECORD_LAYOUT_VERSION, RecordError, decode_records,
    encode_records,
};
pub use topic::{Partition, Topic};
