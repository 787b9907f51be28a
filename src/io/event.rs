//! Waking tasks of the same executor.
//!
//! [`Event`] wakes everyone who waits at that moment. [`Signal`] is a flag that one task sleeps on: raised any number
//! of times before the task runs, it wakes it once.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use slab::Slab;

/// Something that happens again and again. A clone is the same event.
#[derive(Clone, Debug, Default)]
pub struct Event(Rc<EventState>);

#[derive(Debug, Default)]
struct EventState {
    occurrences: Cell<u64>,
    waiters: RefCell<Slab<Waker>>,
}

impl Event {
    pub fn new() -> Self {
        Self::default()
    }

    /// Wakes every task that waits now.
    pub fn notify(&self) {
        self.0
            .occurrences
            .set(self.0.occurrences.get().wrapping_add(1));
        // Taken out first: a waker may run code that waits on this event again.
        let waiters = self.0.waiters.take();
        for (_, waiter) in waiters {
            waiter.wake();
        }
    }

    /// Ready at the first `notify` after this call, even one before the first poll. So "check a condition, then wait"
    /// misses nothing as long as no await lies between.
    pub fn wait(&self) -> impl Future<Output = ()> + use<> {
        let mut seat = Seat {
            event: Rc::clone(&self.0),
            seen: self.0.occurrences.get(),
            key: None,
        };
        poll_fn(move |cx| seat.poll(cx))
    }

    pub fn waiter_count(&self) -> usize {
        self.0.waiters.borrow().len()
    }
}

/// A waiter's place; given up when its future is dropped before the event.
struct Seat {
    event: Rc<EventState>,
    /// The occurrences when the wait began. A later `notify` has emptied the slab, and `key` means nothing any more.
    seen: u64,
    key: Option<usize>,
}

impl Seat {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.event.occurrences.get() != self.seen {
            return Poll::Ready(());
        }
        let mut waiters = self.event.waiters.borrow_mut();
        match self.key {
            Some(key) => waiters[key].clone_from(cx.waker()),
            None => self.key = Some(waiters.insert(cx.waker().clone())),
        }
        Poll::Pending
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if let Some(key) = self.key
            && self.event.occurrences.get() == self.seen
        {
            self.event.waiters.borrow_mut().remove(key);
        }
    }
}

/// "There is work": a flag with one task that sleeps on it. A clone is the same flag.
#[derive(Clone, Debug, Default)]
pub struct Signal(Rc<SignalState>);

#[derive(Debug, Default)]
struct SignalState {
    raised: Cell<bool>,
    sleeper: RefCell<Option<Waker>>,
}

impl Signal {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn raise(&self) {
        self.0.raised.set(true);
        let sleeper = self.0.sleeper.take();
        if let Some(sleeper) = sleeper {
            sleeper.wake();
        }
    }

    pub fn is_raised(&self) -> bool {
        self.0.raised.get()
    }

    /// Sleeps until the flag is raised (or returns at once if it is) and lowers it. Of two tasks that wait at the
    /// same time only the later one is woken.
    pub fn wait(&self) -> impl Future<Output = ()> + use<> {
        let state = Rc::clone(&self.0);
        poll_fn(move |cx| {
            if state.raised.replace(false) {
                return Poll::Ready(());
            }
            *state.sleeper.borrow_mut() = Some(cx.waker().clone());
            Poll::Pending
        })
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures_lite::future::{block_on, poll_once};

    use super::*;

    #[test]
    fn an_event_wakes_all_who_wait_and_not_who_come_later() {
        block_on(async {
            let event = Event::new();
            let (mut first, mut second) = (pin!(event.wait()), pin!(event.wait()));
            assert!(poll_once(first.as_mut()).await.is_none());
            assert!(poll_once(second.as_mut()).await.is_none());
            assert_eq!(event.waiter_count(), 2);
            event.notify();
            assert_eq!(event.waiter_count(), 0);
            let mut late = pin!(event.wait());
            assert!(poll_once(late.as_mut()).await.is_none());
            assert!(poll_once(first).await.is_some());
            assert!(poll_once(second).await.is_some());
        });
    }

    #[test]
    fn an_event_between_the_wait_and_its_first_poll_is_not_missed() {
        block_on(async {
            let event = Event::new();
            let wait = event.wait();
            event.notify();
            wait.await;
        });
    }

    #[test]
    fn a_dropped_waiter_leaves_no_trace_and_takes_nobody_elses_place() {
        block_on(async {
            let event = Event::new();
            let mut early = Box::pin(event.wait());
            assert!(poll_once(early.as_mut()).await.is_none());
            event.notify();
            let mut later = Box::pin(event.wait());
            assert!(poll_once(later.as_mut()).await.is_none());
            drop(early);
            assert_eq!(event.waiter_count(), 1);
            drop(later);
            assert_eq!(event.waiter_count(), 0);
        });
    }

    #[test]
    fn a_signal_raised_many_times_wakes_once() {
        block_on(async {
            let signal = Signal::new();
            signal.raise();
            signal.raise();
            signal.wait().await;
            assert!(!signal.is_raised());
            assert!(poll_once(signal.wait()).await.is_none());
        });
    }

    #[test]
    fn a_signal_wakes_its_sleeper() {
        block_on(async {
            let signal = Signal::new();
            let mut sleep = pin!(signal.wait());
            assert!(poll_once(sleep.as_mut()).await.is_none());
            signal.clone().raise();
            sleep.await;
        });
    }
}
