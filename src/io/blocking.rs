//! Calls that block, off the executor's thread: directory work, small files, names.

use std::any::Any;
use std::panic::{self, AssertUnwindSafe};

use super::executor;

/// Runs `work` on one of the executor's few blocking threads (`BLOCKING_THREADS_PER_EXECUTOR`); calls beyond that
/// queue. A panic in it is a panic of the caller. Dropping the future does not stop the work, and the executor ends after it.
pub async fn run<T, F>(work: F) -> T
where
    T: Send + 'static,
    F: FnOnce() -> T + Send + 'static,
{
    // Caught, because a panic would otherwise end the blocking thread and leave the caller waiting for ever.
    let call =
        glommio::executor().spawn_blocking(move || panic::catch_unwind(AssertUnwindSafe(work)));
    let outcome = executor::on_blocking_thread(call).await;
    match outcome {
        Ok(result) => result,
        // A new panic and not the old one resumed, which no hook would see: a shard ends the process here.
        Err(payload) => panic!("a blocking call panicked: {}", message_of(payload.as_ref())),
    }
}

fn message_of(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}

#[cfg(test)]
mod tests {
    use crate::io::executor::block_on;

    #[test]
    fn the_result_comes_back_from_another_thread() {
        block_on(async {
            let here = std::thread::current().id();
            let there = super::run(|| std::thread::current().id()).await;
            assert_ne!(here, there);
        });
    }

    #[test]
    #[should_panic(expected = "a blocking call panicked: no such luck")]
    fn a_panic_reaches_the_caller() {
        block_on(super::run(|| panic!("no such luck")));
    }
}
