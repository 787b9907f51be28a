//! The space prepared ahead of a segment's end, so that no write ever extends a file.
//!
//! A segment grows by `fallocate` in steps that double while it is busy. A batch is admitted only if it fits what is
//! prepared; else it waits for the step, and a full disk is told to its producer before anything of it is in the log.
//! An idle segment gives its unused space back.

use crate::model::FilePosition;
use crate::model::limits::{PREPARE_STEP_BYTES_MAX, PREPARE_STEP_BYTES_MIN};

pub struct PreparedSpace {
    segment_bytes: u64,
    prepared: FilePosition,
    step_bytes: u64,
    /// The file is being resized to this.
    running: Option<FilePosition>,
}

impl PreparedSpace {
    pub fn new(segment_bytes: u64, prepared: FilePosition) -> Self {
        Self {
            segment_bytes,
            prepared,
            step_bytes: PREPARE_STEP_BYTES_MIN,
            running: None,
        }
    }

    pub fn prepared(&self) -> FilePosition {
        self.prepared
    }

    pub fn holds(&self, end: FilePosition) -> bool {
        end <= self.prepared
    }

    /// The size to which the file should be extended now, if it should: `end` is where the log will end once what waits is
    /// appended. Says so once; `on_step` or `on_failure` must follow.
    pub fn next_step(&mut self, end: FilePosition) -> Option<FilePosition> {
        let low = self.prepared.0.saturating_sub(self.step_bytes / 2);
        if self.running.is_some() || end.0 <= low && self.prepared.0 > 0 {
            return None;
        }
        let full = self.prepared.0 >= self.segment_bytes;
        if full && self.holds(end) {
            return None;
        }
        let to = (self.prepared.0 + self.step_bytes).min(self.segment_bytes.max(self.prepared.0));
        let to = FilePosition(to.max(end.0).next_multiple_of(PREPARE_STEP_BYTES_MIN));
        self.running = Some(to);
        Some(to)
    }

    pub fn on_step(&mut self) {
        let to = self.running.take().expect("a step was running");
        self.step_bytes = if to > self.prepared {
            (self.step_bytes * 2).min(PREPARE_STEP_BYTES_MAX)
        } else {
            PREPARE_STEP_BYTES_MIN
        };
        self.prepared = to;
    }

    pub fn on_failure(&mut self) {
        assert!(self.running.take().is_some(), "a step was running");
    }

    /// Whether the unused space behind `end` should be cut off now. From here on nothing is admitted into it; `on_step` must follow.
    pub fn give_back(&mut self, end: FilePosition) -> bool {
        if self.running.is_some() || self.prepared <= end {
            return false;
        }
        self.prepared = end;
        self.running = Some(end);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_double_and_run_ahead_of_the_end() {
        let mut space = PreparedSpace::new(1 << 30, FilePosition::ZERO);
        let mut steps = Vec::new();
        for end in (0..64 << 20).step_by(100_000) {
            if let Some(to) = space.next_step(FilePosition(end)) {
                steps.push(to.0);
                space.on_step();
            }
            assert!(space.holds(FilePosition(end)), "{end}");
        }
        assert!(steps.len() < 12, "{steps:?}");
        assert!(steps.is_sorted());
    }

    #[test]
    fn a_batch_larger_than_the_segment_still_gets_its_space() {
        let mut space = PreparedSpace::new(1 << 20, FilePosition::ZERO);
        let to = space.next_step(FilePosition(3_000_000)).unwrap();
        assert!(to.0 >= 3_000_000);
        space.on_step();
        assert_eq!(
            space.next_step(FilePosition(3_000_000)),
            None,
            "the segment is full"
        );
    }

    #[test]
    fn a_failed_step_is_asked_for_again() {
        let mut space = PreparedSpace::new(1 << 30, FilePosition::ZERO);
        assert!(space.next_step(FilePosition(100)).is_some());
        assert_eq!(space.next_step(FilePosition(100)), None, "one at a time");
        space.on_failure();
        assert!(space.next_step(FilePosition(100)).is_some());
    }

    #[test]
    fn an_idle_segment_gives_its_space_back() {
        let mut space = PreparedSpace::new(1 << 30, FilePosition::ZERO);
        space.next_step(FilePosition(100));
        space.on_step();
        assert!(space.give_back(FilePosition(100)));
        assert_eq!(
            space.next_step(FilePosition(200)),
            None,
            "the file is being cut"
        );
        space.on_step();
        assert!(!space.give_back(FilePosition(100)));
        assert!(!space.holds(FilePosition(101)));
    }
}
