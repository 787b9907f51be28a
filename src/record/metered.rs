use std::cell::Cell;
use std::io::{self, Read};

use crate::model::limits::LZ4_READS_WITHOUT_OUTPUT_MAX;

/// Compressed bytes of which a decoder takes a bounded number of pieces before it gives something: lz4 reads block by block, and blocks
/// may be empty.
pub(super) struct Metered<'a> {
    rest: &'a [u8],
    reads_left: Cell<usize>,
}

impl<'a> Metered<'a> {
    pub fn new(compressed: &'a [u8]) -> Self {
        Self {
            rest: compressed,
            reads_left: Cell::new(LZ4_READS_WITHOUT_OUTPUT_MAX),
        }
    }

    /// The decoder gave something.
    pub fn refill(&self) {
        self.reads_left.set(LZ4_READS_WITHOUT_OUTPUT_MAX);
    }

    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

impl Read for Metered<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let left = self.reads_left.get().checked_sub(1);
        let left = left.ok_or_else(|| io::Error::other("too many blocks of it are empty"))?;
        self.reads_left.set(left);
        self.rest.read(out)
    }
}
