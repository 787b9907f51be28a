//! What an executor has under way on its blocking threads. It must not end before: a blocking thread of glommio that cannot hand its
//! result over panics, and a panic ends the process.

use std::cell::Cell;
use std::future::Future;
use std::time::Duration;

use super::time;

thread_local! {
    static UNDER_WAY_COUNT: Cell<usize> = const { Cell::new(0) };
}

/// Counts as under way until dropped.
struct UnderWay;

impl UnderWay {
    fn begin() -> Self {
        UNDER_WAY_COUNT.set(UNDER_WAY_COUNT.get() + 1);
        Self
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        UNDER_WAY_COUNT.set(UNDER_WAY_COUNT.get() - 1);
    }
}

/// Awaits `work`, a call on a blocking thread. Dropping the future leaves the call under way, and the executor waits for it at its
/// end.
pub(in crate::io) async fn on_blocking_thread<T: 'static>(
    work: impl Future<Output = T> + 'static,
) -> T {
    let under_way = UnderWay::begin();
    let task = glommio::spawn_local(async move {
        let result = work.await;
        drop(under_way);
        result
    });
    task.detach()
        .await
        .expect("a detached task is not cancelled")
}

/// Completes when nothing is under way on another thread.
pub(super) async fn ended() {
    while UNDER_WAY_COUNT.get() > 0 {
        time::sleep(Duration::from_millis(1)).await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use futures_lite::future::poll_once;

    use crate::io::blocking;
    use crate::io::executor::block_on;

    #[test]
    fn an_executor_ends_after_the_blocking_calls_that_nobody_awaits_any_more() {
        let is_done = Arc::new(AtomicBool::new(false));
        block_on({
            let is_done = is_done.clone();
            async move {
                let mut call = Box::pin(blocking::run(move || {
                    std::thread::sleep(std::time::Duration::from_millis(50));
                    is_done.store(true, Ordering::Release);
                }));
                assert!(poll_once(&mut call).await.is_none());
            }
        });
        assert!(is_done.load(Ordering::Acquire));
    }
}
