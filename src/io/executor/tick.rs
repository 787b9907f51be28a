//! The beat that keeps an executor from sleeping on runnable tasks.
//!
//! glommio 0.9 parks when its last round ran no queue. A round also runs none when it finds itself preempted before
//! its first queue: by the preemption timer (the thread was off its core for a moment), by a wake from another
//! thread, by a new connection. If that event woke no task, the executor sleeps, with runnable tasks in its queues,
//! until the next completion or timer, which may never come.
//!
//! So every executor keeps a timer armed: such a sleep lasts `TICK_MS` at most. The tick's own task can be the one
//! that is slept on, after its timer has fired; for that case a thread looks after all executors and wakes those
//! whose tick has stopped (`pulse`).

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use super::pulse::{self, Heart};
use super::task::{self, Task};
use super::time;
use crate::io::disk;
use crate::io::event::Event;
use crate::model::limits::TICK_MS;

thread_local! {
    static TICKS: RefCell<Event> = RefCell::new(Event::new());
}

/// Ready at this executor's next tick, at most `TICK_MS` from now unless the core is busy: for retries that nothing
/// else wakes.
pub fn next_tick() -> impl Future<Output = ()> {
    TICKS.with_borrow(Event::wait)
}

/// Starts the tick of this thread's executor; it stops with the guard. Does not wait; from its first turn on the task that calls is
/// woken in the place of the tick's, which has yet to have one.
pub(super) async fn start(name: &str) -> TickGuard {
    let ticks = Event::new();
    TICKS.set(ticks.clone());
    let heart = pulse::watch(name);
    take_wakes(&heart).await;
    let task = task::spawn_foreground(beat(ticks, Arc::clone(&heart)));
    TickGuard { heart, _task: task }
}

pub(super) struct TickGuard {
    heart: Arc<Heart>,
    _task: Task<()>,
}

impl Drop for TickGuard {
    fn drop(&mut self) {
        self.heart.stop();
    }
}

/// Has the task that awaits this woken when the tick has stopped. Does not wait.
async fn take_wakes(heart: &Heart) {
    poll_fn(|cx| {
        heart.start(cx.waker().clone());
        Poll::Ready(())
    })
    .await;
}

async fn beat(ticks: Event, heart: Arc<Heart>) {
    take_wakes(&heart).await;
    loop {
        time::sleep(Duration::from_millis(TICK_MS)).await;
        heart.beat();
        disk::collect_returned_reads();
        ticks.notify();
    }
}
