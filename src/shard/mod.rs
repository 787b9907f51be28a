//! One shard: everything that one core does with the partitions that it owns.
//!
//! Owns: its partitions, their open files, chunks and reads, the coordinators of groups, and the tasks that write, sync and keep them. Must never know: API
//! versions, Kafka error codes, sockets. Runs on: its own core, in one executor; nothing here is shared with another core but
//! messages. After a crash: its partitions' directories; what it held in memory was not confirmed.
//!
//! A borrow of a partition's leader is never held across an await.

pub mod append;
pub mod cache_budget;
mod cache_order;
pub mod call;
mod check;
mod check_slots;
pub mod checkpoint;
pub mod clean;
pub mod command;
pub mod deleted_files;
pub mod disk_guard;
pub mod disk_watch;
pub mod flush;
pub mod group_host;
mod group_load;
mod group_write;
pub mod hosted;
pub mod housekeeping;
pub mod log_dir;
pub mod long_poll;
pub mod lookup;
pub mod memory_share;
pub mod metadata;
pub mod metadata_queue;
pub mod open_partition;
pub mod parked;
pub mod pending_partitions;
pub mod placement;
pub mod prepare;
pub mod read;
mod reply_group;
pub mod retention;
pub mod retention_clock;
pub mod router;
pub mod runtime;
pub mod slow_removal;
pub mod stray_directories;
mod sync;
mod topic_deletion;
