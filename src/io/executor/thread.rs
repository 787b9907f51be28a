//! Threads that run an executor.

use std::future::Future;
use std::thread;

use crossbeam::channel;

use super::{abort, runtime, task};
use crate::model::limits::EXECUTOR_STACK_BYTES;

#[derive(Debug, thiserror::Error)]
pub enum ExecutorError {
    #[error("cannot start the thread '{name}': {source}")]
    Thread {
        name: String,
        source: std::io::Error,
    },
    #[error("cannot set up io_uring for '{name}': {reason}")]
    Ring { name: String, reason: String },
    #[error("cannot pin '{name}' to core {core}")]
    Pin { name: String, core: usize },
}

/// Where an executor's thread runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Core {
    Pinned(usize),
    Unpinned,
}

/// The cores that this process may use, by number.
pub fn available_cores() -> Vec<usize> {
    let cores = core_affinity::get_core_ids().unwrap_or_default();
    cores.into_iter().map(|core| core.id).collect()
}

/// A thread that runs an executor until its main task is done.
#[derive(Debug)]
pub struct ExecutorThread<T> {
    name: String,
    /// `None` comes only from a thread whose executor could not be set up, and that one is never handed out.
    thread: thread::JoinHandle<Option<T>>,
}

impl<T> ExecutorThread<T> {
    /// Waits for the main task's result. A panic on the thread has ended the process before it gets here.
    pub fn join(self) -> T {
        let outcome = self.thread.join().ok().flatten();
        outcome.expect("an executor's thread ends with the result of its main task")
    }

    pub fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }

    pub fn name(&self) -> &str {
        &self.name
    }
}

/// Starts a thread called `name` whose executor runs what `main` makes there, in the foreground queue, and ends with
/// it. Returns once the executor stands or could not be set up. A panic on the thread ends the process: a half-dead
/// broker that still answers is worse than a dead one.
pub fn spawn<T, F, M>(name: &str, core: Core, main: F) -> Result<ExecutorThread<T>, ExecutorError>
where
    T: Send + 'static,
    F: FnOnce() -> M + Send + 'static,
    M: Future<Output = T> + 'static,
{
    let (verdict, verdict_from_thread) = channel::bounded(1);
    let thread_name = name.to_owned();
    let run = move || {
        abort::abort_process_on_panic_here();
        let built = runtime::build(&thread_name, core);
        let (executor, built) = match built {
            Ok(executor) => (Some(executor), Ok(())),
            Err(error) => (None, Err(error)),
        };
        verdict
            .send(built)
            .expect("whoever spawns waits for this one message");
        let executor = executor?;
        Some(runtime::run(&executor, &thread_name, async move {
            task::spawn_foreground(main()).await
        }))
    };
    let thread = thread::Builder::new()
        .name(name.to_owned())
        .stack_size(EXECUTOR_STACK_BYTES)
        .spawn(run)
        .map_err(|source| ExecutorError::Thread {
            name: name.to_owned(),
            source,
        })?;
    verdict_from_thread
        .recv()
        .expect("the thread gives its verdict before it does anything else")?;
    Ok(ExecutorThread {
        name: name.to_owned(),
        thread,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::executor::block_on;

    #[test]
    fn the_main_task_runs_on_a_thread_of_that_name_and_its_result_is_joined() {
        let thread = spawn("shard-7", Core::Unpinned, || async {
            thread::current().name().map(str::to_owned)
        });
        assert_eq!(
            thread.expect("an executor").join().as_deref(),
            Some("shard-7")
        );
    }

    #[test]
    fn a_pinned_executor_runs_on_its_core() {
        let core = *available_cores().last().expect("a core");
        let thread = spawn("pinned", Core::Pinned(core), || async { available_cores() });
        assert_eq!(thread.expect("an executor").join(), [core]);
    }

    #[test]
    fn pinning_to_a_core_that_does_not_exist_is_an_error() {
        let error = spawn("nowhere", Core::Pinned(100_000), || async {}).expect_err("no such core");
        assert!(
            matches!(error, ExecutorError::Pin { core: 100_000, .. }),
            "{error}"
        );
    }

    #[test]
    fn two_executors_run_at_the_same_time() {
        let (sender, receiver) = std::sync::mpsc::channel();
        let first = spawn(
            "first",
            Core::Unpinned,
            move || async move { receiver.recv() },
        )
        .expect("an executor");
        let second = spawn(
            "second",
            Core::Unpinned,
            move || async move { sender.send(5) },
        )
        .expect("an executor");
        second.join().expect("a receiver");
        assert_eq!(first.join(), Ok(5));
        block_on(async {});
    }
}
