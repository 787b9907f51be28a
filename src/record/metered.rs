use std::cell::Cell;
use std::io::{self, BufRead, Read};

use crate::model::limits::INFLATE_INPUT_PIECE_BYTES;

/// How much a decoder may take before it gives something: blocks may be empty, and what they cost does not show in what they inflate to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allowance {
    pub bytes: usize,
    /// A decoder that asks for one block at a time takes few bytes in each read.
    pub reads: usize,
}

/// Compressed bytes of which a decoder takes no more than is allowed before it gives something.
pub(super) struct Metered<'a> {
    rest: &'a [u8],
    allowed: Allowance,
    left: Cell<Allowance>,
    /// What it took since it last gave something.
    taken_bytes: Cell<usize>,
}

impl<'a> Metered<'a> {
    pub fn new(compressed: &'a [u8], allowed: Allowance) -> Self {
        Self {
            rest: compressed,
            allowed,
            left: Cell::new(allowed),
            taken_bytes: Cell::new(0),
        }
    }

    /// The decoder gave something; says what it took for that.
    pub fn refill(&self) -> usize {
        self.left.set(self.allowed);
        self.taken_bytes.take()
    }

    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

impl BufRead for Metered<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        let Allowance { bytes, reads } = self.left.get();
        let reads = reads.checked_sub(1).filter(|_| bytes > 0);
        let reads = reads.ok_or_else(|| io::Error::other("too much of it stands for nothing"))?;
        self.left.set(Allowance { bytes, reads });
        let piece_bytes = self.rest.len().min(INFLATE_INPUT_PIECE_BYTES).min(bytes);
        Ok(&self.rest[..piece_bytes])
    }

    fn consume(&mut self, consumed_bytes: usize) {
        self.rest = &self.rest[consumed_bytes..];
        self.taken_bytes
            .set(self.taken_bytes.get() + consumed_bytes);
        let Allowance { bytes, reads } = self.left.get();
        self.left.set(Allowance {
            bytes: bytes - consumed_bytes,
            reads,
        });
    }
}

impl Read for Metered<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read_bytes = self.fill_buf()?.read(out)?;
        self.consume(read_bytes);
        Ok(read_bytes)
    }
}
