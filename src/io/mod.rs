//! Disk, sockets, memory, time and the executors that drive them.
//!
//! Owns: the only use of glommio and the only `unsafe` in the product; O_DIRECT files, Kafka's sockets as byte
//! streams, the buffers both fill, the bounded lanes between executors, the clock. Must never know: what the bytes
//! mean. No record, no request, no partition. Runs on: every executor has its own pools, files, sockets and lanes,
//! and none of these may move to another; what may (`Chunk`, `ReadBytes`, received `Bytes`) says so by being `Send`.
//! After a crash: what a completed `LogFile::write` covered is in the file; nothing else here survives.

pub mod blocking;
pub mod chunk;
pub mod clock;
pub mod descriptors;
pub mod dir;
pub mod dir_lock;
pub mod disk;
pub mod event;
pub mod executor;
pub mod fs;
pub mod memory_limit;
pub mod mesh;
pub mod net;
pub mod oneshot;
pub mod os_error;
mod page_allocator;
pub mod page_toucher;
mod pool;
pub mod recv;
