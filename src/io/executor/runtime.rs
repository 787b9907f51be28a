//! Setting up an executor and running a main task on it to its end.

use std::future::Future;
use std::time::Duration;

use glommio::{LocalExecutor, LocalExecutorBuilder, Placement, PoolPlacement};

use super::task::Queues;
use super::thread::{Core, ExecutorError};
use super::{outside_work, tick, time};
use crate::model::limits::{
    BLOCKING_THREADS_PER_EXECUTOR, READ_MEMORY_BYTES_PER_EXECUTOR, RING_DEPTH, START_WITHIN_MS,
    TOOL_PREEMPT_AFTER_MS,
};

/// An executor for the current thread, which is pinned as asked.
pub(super) fn build(name: &str, core: Core) -> Result<LocalExecutor, ExecutorError> {
    // The default queue holds nothing but the task that starts the others. Were it preempted before its first turn, the executor would
    // sleep at once and for ever, since only that turn puts the guards in place. The other queues ask for their own, shorter slice.
    build_preempted_after(Duration::from_millis(START_WITHIN_MS), name, core)
}

fn build_preempted_after(
    time_slice: Duration,
    name: &str,
    core: Core,
) -> Result<LocalExecutor, ExecutorError> {
    let executor = LocalExecutorBuilder::new(Placement::Unbound)
        .name(name)
        .io_memory(READ_MEMORY_BYTES_PER_EXECUTOR)
        .ring_depth(RING_DEPTH)
        .preempt_timer(time_slice)
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
        let _tick = tick::start(name).await;
        let result = main.await;
        outside_work::ended().await;
        // Tasks that were cancelled have yet to be dropped, and files that were dropped have yet to be closed: both
        // happen in the executor's next turns.
        time::sleep(Duration::from_millis(1)).await;
        result
    })
}

/// Runs `main` on a fresh executor of this thread, for tests and tools. Tasks that were detached and still wait when
/// `main` is done are leaked with what they hold.
///
/// Panics inside an executor, and where io_uring is not available.
pub fn block_on<T>(main: impl Future<Output = T>) -> T {
    // `main` is in the default queue, so that its panic reaches the caller, and has the slice of that.
    let time_slice = Duration::from_millis(TOOL_PREEMPT_AFTER_MS);
    let executor = build_preempted_after(time_slice, "block-on", Core::Unpinned)
        .unwrap_or_else(|error| panic!("{error}"));
    run(&executor, "block-on", main)
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::task::Poll;
    use std::thread;

    use crossbeam::channel;

    use super::super::pulse;
    use super::super::task::yield_now;
    use super::*;

    /// Short enough that the timer is now and then over before the first queue runs, which is when glommio parks on
    /// runnable queues. A bare glommio executor stops within some ten thousand yields (with slices of 1 ms, within a
    /// million).
    const SHORT_TIME_SLICE: Duration = Duration::from_micros(100);
    const YIELD_COUNT: usize = 200_000;

    /// Fails, instead of waiting, where an executor sleeps for ever. Its thread is left behind then.
    fn ends_within_a_minute(work: impl FnOnce() + Send + 'static) {
        let (done, is_done) = channel::bounded(1);
        thread::spawn(move || {
            work();
            // Nobody listens any more where it took too long.
            let _late = done.send(());
        });
        is_done
            .recv_timeout(Duration::from_secs(60))
            .expect("the executor sleeps on runnable tasks");
    }

    #[test]
    fn executor_does_not_park_for_ever_with_runnable_queues() {
        ends_within_a_minute(|| {
            let executor = build_preempted_after(SHORT_TIME_SLICE, "parks", Core::Unpinned)
                .expect("an executor");
            run(&executor, "parks", async {
                for _ in 0..YIELD_COUNT {
                    yield_now().await;
                }
            });
        });
    }

    #[test]
    fn an_executor_that_sleeps_on_its_own_tick_is_woken_from_outside() {
        ends_within_a_minute(|| {
            let executor = build_preempted_after(SHORT_TIME_SLICE, "no tick", Core::Unpinned)
                .expect("an executor");
            // No tick here, as after a sleep on the tick's own task: only the pulse is left.
            let heart = pulse::watch("no tick");
            executor.run(async {
                poll_fn(|cx| {
                    heart.start(cx.waker().clone());
                    Poll::Ready(())
                })
                .await;
                for _ in 0..YIELD_COUNT {
                    heart.beat();
                    yield_now().await;
                }
                heart.stop();
            });
        });
    }
}
