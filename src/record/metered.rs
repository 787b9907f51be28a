use std::cell::Cell;
use std::io::{self, BufRead, Read};

use crate::model::limits::INFLATE_INPUT_PIECE_BYTES;

/// Compressed bytes of which a decoder takes a bounded number of pieces before it gives something: blocks may be empty, and what they cost
/// does not show in what they inflate to.
pub(super) struct Metered<'a> {
    rest: &'a [u8],
    pieces_max: usize,
    /// Pieces that it may still take.
    left_count: Cell<usize>,
    /// What it took since it last gave something.
    taken_bytes: Cell<usize>,
}

impl<'a> Metered<'a> {
    pub fn new(compressed: &'a [u8], pieces_max: usize) -> Self {
        Self {
            rest: compressed,
            pieces_max,
            left_count: Cell::new(pieces_max),
            taken_bytes: Cell::new(0),
        }
    }

    /// The decoder gave something; says what it took for that.
    pub fn refill(&self) -> usize {
        self.left_count.set(self.pieces_max);
        self.taken_bytes.take()
    }

    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

impl BufRead for Metered<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        let left_count = self.left_count.get().checked_sub(1);
        let left_count =
            left_count.ok_or_else(|| io::Error::other("too much of it stands for nothing"))?;
        self.left_count.set(left_count);
        let piece_bytes = self.rest.len().min(INFLATE_INPUT_PIECE_BYTES);
        Ok(&self.rest[..piece_bytes])
    }

    fn consume(&mut self, bytes: usize) {
        self.rest = &self.rest[bytes..];
        self.taken_bytes.set(self.taken_bytes.get() + bytes);
    }
}

impl Read for Metered<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read_bytes = self.fill_buf()?.read(out)?;
        self.consume(read_bytes);
        Ok(read_bytes)
    }
}
