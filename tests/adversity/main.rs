//! A broker process that is treated badly: by its clients, who send what no client should, and by its machine, whose disk is full,
//! read-only or damaged. Whoever did nothing wrong must not notice.

mod admission;
mod bad_batches;
mod bad_requests;
mod broken_disk;
mod broker;
mod clock_jump;
mod cold_reads;
mod compaction_disk_full;
mod damaged_files;
mod damaged_offsets;
mod deleted_topics;
mod descriptors;
mod disk_full;
mod disk_guard;
mod fetches;
mod groups;
mod large_checks;
mod list_offsets;
mod memory;
mod produce;
mod retention;
mod segment_roll;
mod settings;
mod small_disk;
mod tools;
mod topics_on_full_disk;
mod unread_replies;
mod unusable_directory;
mod wire;
