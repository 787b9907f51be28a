use std::time::Duration;

use super::id::GroupId;
use crate::io::clock::Monotonic;
use crate::model::limits::GROUP_SWEEP_WHEN_FULL_MS;

/// The round through all groups that looks for what has expired: every so often, a few groups at a time, so that no round holds up
/// a shard.
#[derive(Debug, Default)]
pub struct Sweep {
    due: Monotonic,
    begun: Monotonic,
    left: Vec<GroupId>,
}

impl Sweep {
    pub fn put_off(&mut self, due: Monotonic) {
        self.due = due;
    }

    /// Room is needed: the next round comes at once, unless one has just been made.
    pub fn hurry(&mut self, now: Monotonic) {
        let earliest = self.begun + Duration::from_millis(GROUP_SWEEP_WHEN_FULL_MS);
        self.due = self.due.min(earliest.max(now));
    }

    pub fn is_due(&self, now: Monotonic) -> bool {
        self.left.is_empty() && self.due <= now
    }

    pub fn begin(
        &mut self,
        now: Monotonic,
        next: Monotonic,
        groups: impl Iterator<Item = GroupId>,
    ) {
        self.left = groups.collect();
        self.begun = now;
        self.due = next;
    }

    /// The next groups of this round.
    pub fn take(&mut self, count: usize) -> Vec<GroupId> {
        self.left.split_off(self.left.len().saturating_sub(count))
    }

    /// At once where a round is under way.
    pub fn next(&self) -> Option<Monotonic> {
        match self.left.is_empty() {
            true => Some(self.due),
            false => Some(self.begun),
        }
    }
}
