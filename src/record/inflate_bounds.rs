//! How much a batch may inflate to, and how much memory that may take.

use crate::model::limits::INFLATED_BATCH_BYTES_MAX;

/// What inflating one batch is bounded by. A decoder holds as much of what it has inflated as the codec's window reaches back, so a batch
/// that inflates to no more than `window_bytes_max` is never refused for its window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InflateBounds {
    /// All of the batch's records, inflated.
    pub inflated_bytes_max: usize,
    /// What a decoder may hold of that, and again the largest record where one is kept whole.
    pub window_bytes_max: usize,
}

impl InflateBounds {
    /// Whatever a batch may inflate to, and all of it in memory: for tools, which look at one batch at a time.
    pub const WIDEST: Self = Self::up_to(INFLATED_BATCH_BYTES_MAX);

    /// At most so many bytes, which may all be held.
    pub const fn up_to(inflated_bytes_max: usize) -> Self {
        Self {
            inflated_bytes_max,
            window_bytes_max: inflated_bytes_max,
        }
    }

    /// Whatever a batch may inflate to, of which a decoder may hold `window_bytes_max`.
    pub fn holding(window_bytes_max: usize) -> Self {
        Self {
            window_bytes_max: window_bytes_max.min(INFLATED_BATCH_BYTES_MAX),
            ..Self::WIDEST
        }
    }

    /// With `windows` times as much inflated as may be held: for who keeps what is inflated.
    pub fn kept_in(self, windows: usize) -> Self {
        let kept_bytes = self.window_bytes_max.saturating_mul(windows);
        Self {
            inflated_bytes_max: self.inflated_bytes_max.min(kept_bytes),
            ..self
        }
    }
}
