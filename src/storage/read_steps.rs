//! How much a read may look at before its core serves somebody else.

use crate::model::limits::READ_STEPS_PER_SLICE;

/// What is left of a slice of work. A step is one batch header that is looked at, or one piece of memory that is taken hold of: some
/// tens of nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct ReadSteps {
    left: usize,
    taken: u64,
}

impl ReadSteps {
    /// A slice of a read that gives way to others between slices.
    pub fn slice() -> Self {
        Self {
            left: READ_STEPS_PER_SLICE,
            taken: 0,
        }
    }

    /// For work that is bounded otherwise.
    pub fn unbounded() -> Self {
        Self {
            left: usize::MAX,
            taken: 0,
        }
    }

    /// The next slice of the same read.
    pub fn refill(&mut self) {
        self.left = READ_STEPS_PER_SLICE;
    }

    pub fn take(&mut self, steps: usize) {
        self.left = self.left.saturating_sub(steps);
        self.taken += steps as u64;
    }

    /// How many pieces of memory to take hold of at once, so that steps are left for the headers in them.
    pub fn pieces_max(&self) -> usize {
        self.left.clamp(2, READ_STEPS_PER_SLICE) / 2
    }

    pub fn is_used_up(&self) -> bool {
        self.left == 0
    }

    /// Over all slices.
    pub fn taken(&self) -> u64 {
        self.taken
    }
}
