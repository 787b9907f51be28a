//! The runtimes: one executor per core for shards, and a short-lived one for tests and tools.
//!
//! Every executor has a foreground queue (preempted after `PREEMPT_AFTER_MS`, woken at once from other threads), a
//! background queue with a tenth of the foreground's share of the core, and a tick that is always armed, without
//! which glommio 0.9 can sleep for ever on runnable tasks (see `tick`).

mod abort;
mod outside_work;
mod pulse;
mod runtime;
mod task;
mod thread;
mod tick;
mod time;

pub(in crate::io) use outside_work::on_blocking_thread;
pub use runtime::block_on;
pub use task::{Task, spawn_background, spawn_local, yield_if_needed, yield_now};
pub use thread::{Core, ExecutorError, ExecutorThread, available_cores, spawn};
pub use tick::next_tick;
pub use time::{Elapsed, sleep, timeout};
