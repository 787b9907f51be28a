//! Which segment files are not opened any more: deleted, about to be, or replaced by a cleaned one.

use std::collections::VecDeque;

use rustc_hash::FxHashSet;

use crate::storage::log::{LogId, SegmentKey};

/// What will not be opened again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Retired {
    Log(LogId),
    Segment(SegmentKey),
}

impl Retired {
    pub fn covers(self, key: SegmentKey) -> bool {
        match self {
            Self::Log(log) => key.log == log,
            Self::Segment(segment) => key == segment,
        }
    }
}

/// The latest of what was retired. Only a read that was planned before can still ask for such a file, so those that were retired
/// longest ago are forgotten at the limit: a read that is older than all of these gets an error from the disk, and its client tries
/// again.
pub struct RetiredFiles {
    latest: VecDeque<Retired>,
    members: FxHashSet<Retired>,
    limit: usize,
}

impl RetiredFiles {
    pub fn new(limit: usize) -> Self {
        assert!(limit > 0, "what was retired last has to be known");
        Self {
            latest: VecDeque::new(),
            members: FxHashSet::default(),
            limit,
        }
    }

    pub fn insert(&mut self, what: Retired) {
        if !self.members.insert(what) {
            return;
        }
        if self.latest.len() == self.limit {
            let oldest = self.latest.pop_front().expect("the limit is not zero");
            self.members.remove(&oldest);
        }
        self.latest.push_back(what);
    }

    pub fn contains(&self, key: SegmentKey) -> bool {
        self.members.contains(&Retired::Log(key.log))
            || self.members.contains(&Retired::Segment(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Offset;

    #[test]
    fn what_was_retired_longest_ago_is_forgotten_at_the_limit() {
        let key = |segment| SegmentKey::appended(LogId(1), Offset(segment));
        let mut retired = RetiredFiles::new(3);
        for segment in 0..3 {
            retired.insert(Retired::Segment(key(segment)));
        }
        retired.insert(Retired::Segment(key(2)));
        assert!(retired.contains(key(0)), "the same again takes no room");
        retired.insert(Retired::Log(LogId(2)));
        assert!(!retired.contains(key(0)));
        assert!(retired.contains(key(1)));
        assert!(retired.contains(SegmentKey::appended(LogId(2), Offset(7))));
        assert!(!retired.contains(SegmentKey::appended(LogId(3), Offset(1))));
    }
}
