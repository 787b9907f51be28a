//! The Kafka APIs, one file each: decode what it needs, ask the owner, encode. Versions and error codes end here.
//!
//! Owns: the table of handlers, the mapping of our errors to Kafka's codes. Must never know: sockets, files, how a shard works inside.
//! Runs on: the shard that holds the client's connection. After a crash: nothing here survives.
//!
//! A request is **dispatched** when its handler returns (its place in the order of effects is then fixed: what it asks of a partition's
//! owner is on its way), and **completed** when the future that the handler returned is.

pub mod admin_context;
pub mod alter_configs;
pub mod api_versions;
mod authorized_operations;
mod config_changes;
mod config_resource;
pub mod context;
pub mod controller_client;
pub mod create_partitions;
pub mod create_topics;
pub mod delete_groups;
pub mod delete_records;
pub mod delete_topics;
pub mod describe_cluster;
pub mod describe_configs;
pub mod describe_groups;
pub mod describe_log_dirs;
pub mod describe_producers;
pub mod describe_topic_partitions;
pub mod dispatch;
pub mod error_code;
pub mod fetch;
pub mod find_coordinator;
mod group_coordinator;
pub mod heartbeat;
pub mod incremental_alter_configs;
pub mod init_producer_id;
pub mod join_group;
pub mod leave_group;
pub mod list_config_resources;
pub mod list_groups;
pub mod list_offsets;
pub mod metadata;
pub mod offset_commit;
pub mod offset_delete;
pub mod offset_fetch;
pub mod offset_for_leader_epoch;
mod offsets_topic;
pub mod owners;
pub mod produce;
pub mod reply;
pub mod reply_budget;
pub mod sync_group;
#[cfg(test)]
mod test_context;
mod text;
