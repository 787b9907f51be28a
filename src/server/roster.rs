//! The open connections of a shard, and what closes those that take too long.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use slab::Slab;

use crate::io::clock::Monotonic;
use crate::io::net::Closer;

/// What a connection is doing, as the sweep sees it.
pub struct Presence {
    closer: Closer,
    /// When the first byte of a request arrived whose last one has not.
    pub receiving_since: Cell<Option<Monotonic>>,
    /// When the connection last had nothing in flight and nothing received; `None` while it has.
    pub idle_since: Cell<Option<Monotonic>>,
}

#[derive(Clone, Default)]
pub struct Roster {
    present: Rc<RefCell<Slab<Rc<Presence>>>>,
}

/// On the roster until dropped.
pub struct Entry {
    roster: Roster,
    key: usize,
    pub presence: Rc<Presence>,
}

/// Why a connection was closed by the sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Swept {
    /// A request took longer than `socket.request.timeout.ms` to arrive.
    pub slow_count: usize,
    /// Nothing happened for `connections.max.idle.ms`.
    pub idle_count: usize,
}

impl Roster {
    pub fn enter(&self, closer: Closer, now: Monotonic) -> Entry {
        let presence = Rc::new(Presence {
            closer,
            receiving_since: Cell::new(None),
            idle_since: Cell::new(Some(now)),
        });
        let key = self.present.borrow_mut().insert(presence.clone());
        Entry {
            roster: self.clone(),
            key,
            presence,
        }
    }

    pub fn len(&self) -> usize {
        self.present.borrow().len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Closes those that are over a limit.
    pub fn sweep(&self, now: Monotonic, request_timeout: Duration, idle_max: Duration) -> Swept {
        let over = |since: &Cell<Option<Monotonic>>, limit| {
            since.get().is_some_and(|it| now.since(it) > limit)
        };
        let mut swept = Swept {
            slow_count: 0,
            idle_count: 0,
        };
        for (_, presence) in &*self.present.borrow() {
            if over(&presence.receiving_since, request_timeout) {
                swept.slow_count += 1;
                presence.closer.close();
            } else if over(&presence.idle_since, idle_max) {
                swept.idle_count += 1;
                presence.closer.close();
            }
        }
        swept
    }

    pub fn close_all(&self) {
        for (_, presence) in &*self.present.borrow() {
            presence.closer.close();
        }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.roster.present.borrow_mut().remove(self.key);
    }
}
