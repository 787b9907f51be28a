//! One partition's log on disk.
//!
//! Owns: segments, indexes, leader epochs, producer state, compaction, recovery. Must never know: who waits for a write, requests, replicas.
//! Runs on: the core that owns the partition; what touches files through io::fs runs on its blocking threads.
//! After a crash: everything up to the recovery point, and every whole batch behind it up to the first damaged one.

mod abandoned_segments;
pub mod active_segment;
pub mod appender;
pub mod atomic_file;
pub mod batch_selection;
pub mod byte_run;
pub mod checkpoint;
pub mod checksum_frame;
pub mod cleaner;
mod descriptor_queue;
mod fault_point;
#[cfg(test)]
mod fault_sweep;
pub mod file_error;
pub mod index_builder;
mod index_check;
pub mod index_files;
pub mod leader_epochs;
pub mod log;
pub mod newest_record;
pub mod next_segment;
pub mod offset_index;
pub mod open_files;
pub mod partition_dir;
pub mod partition_directory;
pub mod partition_files;
pub mod partition_metadata;
pub mod producer_snapshot;
pub mod producer_state;
pub mod read_ahead;
pub mod read_steps;
pub mod reader;
pub mod record_steps;
mod recovered;
pub mod recovery;
mod recovery_start;
mod replay;
pub mod retention;
pub mod retired_files;
pub mod scan;
mod sealed_scan;
pub mod sealed_segment;
pub mod sealed_segments;
pub mod segment_indexes;
pub mod segment_name;
pub mod segment_times;
pub mod segment_walk;
pub mod snapshot;
pub mod space;
pub mod tail_cache;
pub mod time_index;
pub mod verify;

pub use recovery_start::Distrust;
