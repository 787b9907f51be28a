//! Those who wait until a partition has more bytes to be seen: long polls.

use crate::model::limits::FETCH_WAITERS_SWEEP_COUNT;

/// A fetch that waits for bytes, of this partition and maybe of others.
pub trait WaitsForBytes {
    /// So many bytes more are there. Says whether the fetch now has all that it waits for.
    fn count(&self, bytes: u64) -> bool;

    /// Whether nobody waits any more.
    fn is_over(&self) -> bool;
}

/// The long polls of one partition. A step of the high watermark costs an addition for each, and none is told before it has enough.
#[derive(Debug)]
pub struct FetchWaiters<W> {
    waiting: Vec<Waiter<W>>,
    /// With so many, those that are over are swept out before another is added. A multiple of those that were left the last time,
    /// so that sweeping costs each new one but a step or two.
    sweep_at_count: usize,
}

#[derive(Debug)]
struct Waiter<W> {
    poll: W,
    /// What the partition may still add: no more of it fits into the poll's answer.
    room_bytes: u64,
}

impl<W> Default for FetchWaiters<W> {
    fn default() -> Self {
        Self {
            waiting: Vec::new(),
            sweep_at_count: FETCH_WAITERS_SWEEP_COUNT,
        }
    }
}

impl<W: WaitsForBytes> FetchWaiters<W> {
    /// `poll` is told of every byte from now on, up to `room_bytes` of them.
    pub fn push(&mut self, poll: W, room_bytes: u64) {
        if self.waiting.len() >= self.sweep_at_count {
            self.waiting.retain(|waiter| !waiter.poll.is_over());
            self.sweep_at_count = FETCH_WAITERS_SWEEP_COUNT.max(2 * self.waiting.len());
        }
        self.waiting.push(Waiter { poll, room_bytes });
    }

    /// The high watermark has passed so many bytes more. Hands back those who have enough, and forgets those that are over.
    pub fn on_grown(&mut self, bytes: u64) -> impl Iterator<Item = W> {
        let is_done = move |waiter: &mut Waiter<W>| {
            let counted = bytes.min(waiter.room_bytes);
            waiter.room_bytes -= counted;
            waiter.poll.is_over() || counted > 0 && waiter.poll.count(counted)
        };
        let done = self.waiting.extract_if(.., is_done);
        done.map(|waiter| waiter.poll)
    }

    /// Everybody, when the partition goes away.
    pub fn fire_all(&mut self) -> impl Iterator<Item = W> {
        self.waiting.drain(..).map(|waiter| waiter.poll)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::rc::Rc;

    /// What it lacks, and how often it was asked to count.
    #[derive(Clone, Default)]
    struct Poll(Rc<(Cell<u64>, Cell<u32>)>);

    impl Poll {
        fn lacking(bytes: u64) -> Self {
            let poll = Self::default();
            poll.0.0.set(bytes);
            poll
        }
    }

    impl WaitsForBytes for Poll {
        fn count(&self, bytes: u64) -> bool {
            let (lacks, counts) = &*self.0;
            lacks.set(lacks.get().saturating_sub(bytes));
            counts.set(counts.get() + 1);
            lacks.get() == 0
        }

        fn is_over(&self) -> bool {
            self.0.0.get() == 0
        }
    }

    #[test]
    fn a_poll_is_told_once_when_all_its_bytes_are_there() {
        let (mut waiters, poll) = (FetchWaiters::default(), Poll::lacking(1_000));
        waiters.push(poll.clone(), u64::MAX);
        for _ in 0..9 {
            assert_eq!(waiters.on_grown(100).count(), 0);
        }
        assert_eq!(waiters.on_grown(100).count(), 1);
        assert_eq!(waiters.on_grown(100).count(), 0);
        assert_eq!(poll.0.1.get(), 10);
    }

    #[test]
    fn the_bytes_of_several_partitions_add_up_each_within_its_room() {
        let poll = Poll::lacking(100);
        let (mut one, mut other) = (FetchWaiters::default(), FetchWaiters::default());
        one.push(poll.clone(), 60);
        other.push(poll.clone(), 60);
        assert_eq!(one.on_grown(1_000).count(), 0);
        assert_eq!(one.on_grown(1_000).count(), 0);
        assert_eq!(other.on_grown(39).count(), 0);
        assert_eq!(other.on_grown(1).count(), 1);
        assert_eq!(one.on_grown(1).count(), 1, "it is over, and forgotten");
        assert_eq!(one.on_grown(1).count(), 0);
    }

    #[test]
    fn polls_that_are_over_are_swept_out_and_those_that_wait_are_kept() {
        let mut waiters = FetchWaiters::default();
        let waiting: Vec<_> = (0..100).map(|_| Poll::lacking(1)).collect();
        for poll in &waiting {
            waiters.push(poll.clone(), 1);
        }
        for _ in 0..10_000 {
            waiters.push(Poll::lacking(0), 1);
        }
        assert!(waiters.waiting.len() <= 2 * waiting.len());
        assert_eq!(waiters.fire_all().filter(|it| !it.is_over()).count(), 100);
    }
}
