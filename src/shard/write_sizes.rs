//! How large a partition's writes are, of late.

use std::cell::Cell;

use crate::model::limits::SMALL_WRITE_BYTES_MAX;

/// A running mean, in which the newest write counts for an eighth.
#[derive(Debug, Default)]
pub struct WriteSizes {
    mean_bytes: Cell<usize>,
}

impl WriteSizes {
    pub fn note(&self, write_bytes: usize) {
        let before = self.mean_bytes.get();
        self.mean_bytes.set(match before {
            0 => write_bytes,
            _ => before - before / 8 + write_bytes / 8,
        });
    }

    /// Whether the partition has been written to, and in small pieces.
    pub fn are_small(&self) -> bool {
        (1..=SMALL_WRITE_BYTES_MAX).contains(&self.mean_bytes.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_follows_the_writes() {
        let writes = WriteSizes::default();
        assert!(!writes.are_small(), "nothing is known");
        writes.note(20_480);
        assert!(writes.are_small());
        (0..50).for_each(|_| writes.note(512 * 1024));
        assert!(!writes.are_small());
    }
}
