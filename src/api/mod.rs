//! The Kafka APIs, one file each: decode what it needs, ask the owner, encode. Versions and error codes end here.
//!
//! Owns: the table of handlers, the mapping of our errors to Kafka's codes. Must never know: sockets, files, how a shard works inside.
//! Runs on: the shard that holds the client's connection. After a crash: nothing here survives.
//!
//! A request is **dispatched** when its handler returns (its place in the order of effects is then fixed: what it asks of a partition's
//! owner is on its way), and **completed** when the future that the handler returned is.

pub mod api_versions;
pub mod context;
pub mod controller_client;
pub mod delete_records;
pub mod describe_log_dirs;
pub mod describe_producers;
pub mod dispatch;
pub mod error_code;
pub mod fetch;
pub mod list_offsets;
pub mod offset_for_leader_epoch;
pub mod owners;
pub mod produce;
pub mod reply;
