//! Tasks and the two queues that they run in.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use glommio::{Latency, Shares, TaskQueueHandle};

use crate::model::limits::PREEMPT_AFTER_MS;

const FOREGROUND_SHARES: usize = 1000;
const BACKGROUND_SHARES: usize = 100;

thread_local! {
    static QUEUES: Cell<Option<Queues>> = const { Cell::new(None) };
}

/// The queues of this thread's executor.
#[derive(Clone, Copy)]
pub(super) struct Queues {
    foreground: TaskQueueHandle,
    background: TaskQueueHandle,
}

impl Queues {
    /// Makes the queues on the running executor; they are this thread's until the guard is dropped.
    pub(super) fn install() -> QueuesGuard {
        let executor = glommio::executor();
        let at_once = Latency::Matters(Duration::from_millis(PREEMPT_AFTER_MS));
        let foreground =
            executor.create_task_queue(Shares::Static(FOREGROUND_SHARES), at_once, "foreground");
        let background =
            executor.create_task_queue(Shares::Static(BACKGROUND_SHARES), at_once, "background");
        QUEUES.set(Some(Self {
            foreground,
            background,
        }));
        QueuesGuard
    }

    fn here() -> Self {
        QUEUES
            .get()
            .expect("tasks are spawned from inside an executor")
    }
}

pub(super) struct QueuesGuard;

impl Drop for QueuesGuard {
    fn drop(&mut self) {
        QUEUES.set(None);
    }
}

/// A spawned task, and a future of its result. Dropping it cancels the task at its next await.
#[must_use = "a task is cancelled when it is dropped; `detach` lets it run"]
#[derive(Debug)]
pub struct Task<T>(glommio::Task<T>);

impl<T> Task<T> {
    /// Lets the task run on its own.
    pub fn detach(self) {
        self.0.detach();
    }

    /// Cancels the task and waits until it has been dropped; its result if it was done before.
    pub async fn cancel(self) -> Option<T> {
        self.0.cancel().await
    }
}

impl<T> Future for Task<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        Pin::new(&mut self.0).poll(cx)
    }
}

/// Starts a task in the queue of the task that calls. It runs at once, inside this call, up to its first await that
/// waits: hold no borrow that it needs.
pub fn spawn_local<T: 'static>(future: impl Future<Output = T> + 'static) -> Task<T> {
    Task(glommio::spawn_local(future))
}

/// Starts a task in the queue for what may wait: preparing segments, retention, statistics. Its first turn comes
/// later.
pub fn spawn_background<T: 'static>(future: impl Future<Output = T> + 'static) -> Task<T> {
    spawn_into(Queues::here().background, future)
}

pub(super) fn spawn_foreground<T: 'static>(future: impl Future<Output = T> + 'static) -> Task<T> {
    spawn_into(Queues::here().foreground, future)
}

fn spawn_into<T: 'static>(
    queue: TaskQueueHandle,
    future: impl Future<Output = T> + 'static,
) -> Task<T> {
    Task(glommio::spawn_local_into(future, queue).expect("an executor's queues are never removed"))
}

/// Gives way where the task has used up its time slice; a long loop awaits this in every round.
pub async fn yield_if_needed() {
    glommio::yield_if_needed().await;
}

/// Lets every task that is runnable now run first.
pub async fn yield_now() {
    futures_lite::future::yield_now().await;
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;
    use crate::io::executor::block_on;
    use crate::io::oneshot::oneshot;

    #[test]
    fn a_dropped_task_is_cancelled_and_a_detached_one_runs() {
        block_on(async {
            let ran = Rc::new(Cell::new(0));
            let adds = |amount: u32| {
                let ran = Rc::clone(&ran);
                async move {
                    yield_now().await;
                    ran.set(ran.get() + amount);
                }
            };
            drop(spawn_local(adds(1)));
            spawn_local(adds(10)).detach();
            spawn_background(adds(100)).await;
            assert_eq!(spawn_local(adds(1000)).cancel().await, None);
            yield_now().await;
            assert_eq!(ran.get(), 110);
        });
    }

    #[test]
    fn a_busy_task_that_gives_way_lets_others_run() {
        block_on(async {
            let (sender, mut receiver) = oneshot();
            spawn_background(async move { sender.send(()) }).detach();
            while futures_lite::future::poll_once(&mut receiver)
                .await
                .is_none()
            {
                yield_if_needed().await;
            }
        });
    }

    #[test]
    fn a_wake_from_another_thread_reaches_a_sleeping_executor() {
        block_on(async {
            let (sender, receiver) = crossbeam::channel::bounded::<std::task::Waker>(1);
            let thread = std::thread::spawn(move || {
                let waker = receiver.recv().expect("a waker");
                std::thread::sleep(Duration::from_millis(20));
                waker.wake();
            });
            let mut polls = 0;
            std::future::poll_fn(|cx| {
                polls += 1;
                if polls > 1 {
                    return Poll::Ready(());
                }
                sender.send(cx.waker().clone()).expect("a receiver");
                Poll::Pending
            })
            .await;
            thread.join().expect("the other thread");
        });
    }
}
