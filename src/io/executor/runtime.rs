//! Setting up an executor and running a main task on it to its end.

use std::future::Future;
use std::time::Duration;

use glommio::{LocalExecutor, LocalExecutorBuilder, Placement, PoolPlacement};

use super::task::Queues;
use super::thread::{Core, ExecutorError};
use super::{tick, time};
use crate::model::limits::{
    BLOCKING_THREADS_PER_EXECUTOR, PREEMPT_AFTER_MS, READ_MEMORY_BYTES_PER_EXECUTOR, RING_DEPTH,
};

/// An executor for the current thread, which is pinned as asked.
pub(super) fn build(name: &str, core: Core) -> Result<LocalExecutor, ExecutorError> {
    let executor = LocalExecutorBuilder::new(Placement::Unbound)
        .name(name)
        .io_memory(READ_MEMORY_BYTES_PER_EXECUTOR)
        .ring_depth(RING_DEPTH)
        .preempt_timer(Duration::from_millis(PREEMPT_AFTER_MS))
        .blocking_thread_pool_placement(PoolPlacement::Unbound(BLOCKING_THREADS_PER_EXECUTOR))
        .make()
        .map_err(|error| ExecutorError::Ring {
            name: name.to_owned(),
            reason: error.to_string(),
        })?;
    // After the blocking threads were started: they would inherit the core and then block the shard with their work.
    if let Core::Pinned(core) = core
        && !pin_this_thread(core)
    {
        return Err(ExecutorError::Pin {
            name: name.to_owned(),
            core,
        });
    }
    Ok(executor)
}

fn pin_this_thread(core: usize) -> bool {
    // The crate panics at a number that no CPU set holds.
    core < libc::CPU_SETSIZE as usize
        && core_affinity::set_for_current(core_affinity::CoreId { id: core })
}

/// Runs `main` with queues and tick in place.
pub(super) fn run<T>(executor: &LocalExecutor, name: &str, main: impl Future<Output = T>) -> T {
    executor.run(async {
        let _queues = Queues::install();
        let _tick = tick::start(name);
        let result = main.await;
        // Tasks that were cancelled have yet to be dropped, and files that were dropped have yet to be closed: both happen in the
        // executor's next turns.
        time::sleep(Duration::from_millis(1)).await;
        result
    })
}

/// Runs `main` on a fresh executor of this thread, for tests and tools. Tasks that were detached and still wait when `main` is done are leaked
/// with what they hold.
///
/// Panics inside an executor, and where io_uring is not available.
pub fn block_on<T>(main: impl Future<Output = T>) -> T {
    let executor = build("block-on", Core::Unpinned).unwrap_or_else(|error| panic!("{error}"));
    run(&executor, "block-on", main)
}
