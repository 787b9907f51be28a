use std::collections::BTreeSet;

use super::id::{GroupId, MemberId};
use crate::io::clock::Monotonic;

/// What a deadline is for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TimerKey {
    /// A member, or somebody who was given an id and did not come with it yet, is not heard of.
    Session(GroupId, MemberId),
    /// Whatever the group's state waits for: members to join, or to ask for their assignments.
    Rebalance(GroupId),
}

/// One deadline of somebody. It stands in `Timers` at most once.
#[derive(Clone, Copy, Debug, Default)]
pub struct Alarm {
    due: Option<Monotonic>,
    /// Where it stands in `Timers`: never later than `due`.
    placed: Option<Monotonic>,
}

/// The deadlines of all groups. A deadline that is put off, as each heartbeat does with a session's, costs nothing: only when its old
/// time comes is it put where it belongs.
#[derive(Debug, Default)]
pub struct Timers {
    places: BTreeSet<(Monotonic, TimerKey)>,
}

impl Timers {
    pub fn set(&mut self, alarm: &mut Alarm, due: Monotonic, key: impl FnOnce() -> TimerKey) {
        alarm.due = Some(due);
        match alarm.placed {
            Some(placed) if placed <= due => {}
            placed => {
                let key = key();
                if let Some(placed) = placed {
                    self.places.remove(&(placed, key.clone()));
                }
                self.places.insert((due, key));
                alarm.placed = Some(due);
            }
        }
    }

    pub fn cancel(&mut self, alarm: &mut Alarm, key: impl FnOnce() -> TimerKey) {
        if let Some(placed) = alarm.placed {
            self.places.remove(&(placed, key()));
        }
        *alarm = Alarm::default();
    }

    /// The next whose place in time has come. Its alarm must be told with `came`.
    pub fn pop(&mut self, now: Monotonic) -> Option<TimerKey> {
        let (placed, _) = self.places.first()?;
        if *placed > now {
            return None;
        }
        self.places.pop_first().map(|(_, key)| key)
    }

    /// Whether the alarm that `pop` named is due. If it was put off it is placed anew.
    pub fn came(&mut self, alarm: &mut Alarm, now: Monotonic, key: TimerKey) -> bool {
        alarm.placed = None;
        match alarm.due {
            Some(due) if due > now => {
                self.set(alarm, due, || key);
                false
            }
            Some(_) => {
                alarm.due = None;
                true
            }
            None => false,
        }
    }

    pub fn next(&self) -> Option<Monotonic> {
        self.places.first().map(|(placed, _)| *placed)
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.places.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn at(seconds: u64) -> Monotonic {
        Monotonic::ZERO + Duration::from_secs(seconds)
    }

    fn key() -> TimerKey {
        TimerKey::Rebalance(GroupId::new("g"))
    }

    #[test]
    fn a_deadline_that_is_put_off_comes_at_its_last_time_only() {
        let (mut timers, mut alarm) = (Timers::default(), Alarm::default());
        timers.set(&mut alarm, at(10), key);
        timers.set(&mut alarm, at(30), key);
        assert_eq!((timers.len(), timers.next()), (1, Some(at(10))));
        assert_eq!(timers.pop(at(9)), None);
        assert_eq!(timers.pop(at(10)), Some(key()));
        assert!(!timers.came(&mut alarm, at(10), key()));
        assert_eq!(timers.next(), Some(at(30)));
        assert_eq!(timers.pop(at(31)), Some(key()));
        assert!(timers.came(&mut alarm, at(31), key()));
        assert_eq!(timers.next(), None);
    }

    #[test]
    fn a_deadline_that_is_brought_forward_stands_once() {
        let (mut timers, mut alarm) = (Timers::default(), Alarm::default());
        timers.set(&mut alarm, at(30), key);
        timers.set(&mut alarm, at(10), key);
        assert_eq!((timers.len(), timers.next()), (1, Some(at(10))));
        timers.cancel(&mut alarm, key);
        assert_eq!((timers.len(), timers.pop(at(99))), (0, None));
    }
}
