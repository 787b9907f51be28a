//! One partition's log on disk.
//!
//! Owns: segments, indexes, leader epochs, producer state, recovery. Must never know: who waits for a write, requests, replicas.
//! Runs on: the core that owns the partition; what touches files through std::fs runs on its blocking threads.
//! After a crash: everything up to the recovery point, and every whole batch behind it up to the first damaged one.

pub mod atomic_file;
pub mod checkpoint;
pub mod checksum_frame;
pub mod file_error;
pub mod index_builder;
pub mod leader_epochs;
pub mod offset_index;
pub mod partition_dir;
pub mod producer_snapshot;
pub mod producer_state;
pub mod segment_name;
pub mod time_index;
