//! Snappy as Kafka's clients send it: xerial's framing (Java, and most others), or one bare block (some).

use crate::model::limits::EMPTY_PARTS_MAX;

use super::inflate_bounds::InflateBounds;

/// Opens a stream of xerial's snappy-java: this magic, a version and the lowest compatible version (each 4 bytes), then blocks, each
/// behind its length (4 bytes, big-endian).
const XERIAL_MAGIC: &[u8; 8] = b"\x82SNAPPY\0";
const XERIAL_HEADER_BYTES: usize = XERIAL_MAGIC.len() + 8;
const XERIAL_VERSION: i32 = 1;

/// What snappy-java compresses at a time.
const BLOCK_BYTES: usize = 32 * 1024;

/// Snappy's densest element is a copy of 64 bytes said in 3. A block that declares more than this times its own length lies.
const RATIO_MAX: usize = 22;

/// Compresses in blocks, as snappy-java does.
pub struct FramedSnappy {
    encoder: snap::raw::Encoder,
    out: Vec<u8>,
}

impl FramedSnappy {
    pub fn new() -> Self {
        let mut out = Vec::new();
        out.extend_from_slice(XERIAL_MAGIC);
        out.extend_from_slice(&XERIAL_VERSION.to_be_bytes());
        out.extend_from_slice(&XERIAL_VERSION.to_be_bytes());
        Self {
            encoder: snap::raw::Encoder::new(),
            out,
        }
    }

    pub fn write(&mut self, piece: &[u8]) {
        for block in piece.chunks(BLOCK_BYTES) {
            let compressed = self
                .encoder
                .compress_vec(block)
                .expect("a block of 32 KiB is within snappy's limit");
            let length = compressed.len() as u32;
            self.out.extend_from_slice(&length.to_be_bytes());
            self.out.extend_from_slice(&compressed);
        }
    }

    pub fn finish(self) -> Vec<u8> {
        self.out
    }
}

/// A block up to this size is inflated at once, in less than half a millisecond; a larger one as it is read.
const BLOCK_AT_ONCE_BYTES_MAX: usize = 256 * 1024;

/// How much of a larger block is inflated ahead of its reader.
const STEP_BYTES: usize = 64 * 1024;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SnappyError {
    #[error("{0}")]
    Corrupt(String),
    #[error("a block is larger than everything may be")]
    TooLarge,
    /// The block is held as a whole.
    #[error("a block is larger than what may be held")]
    HoldsTooMuch,
}

impl SnappyError {
    fn corrupt(reason: impl ToString) -> Self {
        Self::Corrupt(reason.to_string())
    }
}

/// Inflates block by block. The block that is read is kept whole: a copy may name any byte before it.
pub struct SnappyReader<'a> {
    rest: &'a [u8],
    is_framed: bool,
    block: Block<'a>,
    read_bytes: usize,
    bounds: InflateBounds,
    empty_count: usize,
}

impl<'a> SnappyReader<'a> {
    /// A block that declares more than `bounds` allow is refused before memory is taken for it.
    pub fn new(compressed: &'a [u8], bounds: InflateBounds) -> Self {
        let is_framed =
            compressed.len() >= XERIAL_HEADER_BYTES && compressed.starts_with(XERIAL_MAGIC);
        let rest = if is_framed {
            &compressed[XERIAL_HEADER_BYTES..]
        } else {
            compressed
        };
        Self {
            rest,
            is_framed,
            block: Block::default(),
            read_bytes: 0,
            bounds,
            empty_count: 0,
        }
    }

    /// Inflates into `out`; 0 at the end.
    pub fn read(&mut self, mut out: &mut [u8]) -> Result<usize, SnappyError> {
        while self.read_bytes == self.block.inflated.len() {
            if !self.block.is_whole() {
                self.block.inflate(STEP_BYTES)?;
            } else if self.rest.is_empty() {
                return Ok(0);
            } else {
                let compressed = self.next_block()?;
                self.block.begin(compressed, self.bounds)?;
                self.read_bytes = 0;
                self.empty_count += usize::from(self.block.inflated_bytes == 0);
                if self.empty_count > EMPTY_PARTS_MAX {
                    return Err(SnappyError::corrupt("too many blocks are empty"));
                }
            }
        }
        let inflated = &self.block.inflated[self.read_bytes..];
        let read_bytes = inflated.len().min(out.len());
        out = &mut out[..read_bytes];
        out.copy_from_slice(&inflated[..read_bytes]);
        self.read_bytes += read_bytes;
        Ok(read_bytes)
    }

    /// What of the compressed bytes was not looked at yet.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    fn next_block(&mut self) -> Result<&'a [u8], SnappyError> {
        if !self.is_framed {
            return Ok(std::mem::take(&mut self.rest));
        }
        let cut_short = || SnappyError::corrupt("a block is cut short");
        let (length, rest) = self.rest.split_first_chunk::<4>().ok_or_else(cut_short)?;
        let length = u32::from_be_bytes(*length) as usize;
        let (block, rest) = rest.split_at_checked(length).ok_or_else(cut_short)?;
        self.rest = rest;
        Ok(block)
    }
}

/// One block of snappy: its inflated length as a varint, then elements, each a tag byte that says what it is:
///
/// ```text
/// | length - 1: 6 bits (60 to 63: it follows in 1 to 4 bytes) | 00 |  a literal; its bytes follow
/// | offset / 256: 3 bits | length - 4: 3 bits                 | 01 |  a copy from `offset` bytes back; 1 byte of the offset follows
/// | length - 1: 6 bits                                        | 10 |  a copy; the offset follows in 2 bytes
/// | length - 1: 6 bits                                        | 11 |  a copy; the offset follows in 4 bytes
/// ```
#[derive(Default)]
struct Block<'a> {
    elements: &'a [u8],
    inflated: Vec<u8>,
    inflated_bytes: usize,
    /// What is left of the literal at the front of `elements`.
    literal_bytes: usize,
}

impl<'a> Block<'a> {
    fn begin(&mut self, compressed: &'a [u8], bounds: InflateBounds) -> Result<(), SnappyError> {
        self.inflated_bytes =
            snap::raw::decompress_len(compressed).map_err(SnappyError::corrupt)?;
        if self.inflated_bytes > compressed.len().saturating_mul(RATIO_MAX) {
            return Err(SnappyError::corrupt(
                "a block declares more than snappy can hold",
            ));
        }
        if self.inflated_bytes > bounds.inflated_bytes_max {
            return Err(SnappyError::TooLarge);
        }
        if self.inflated_bytes > bounds.window_bytes_max {
            return Err(SnappyError::HoldsTooMuch);
        }
        if self.inflated_bytes <= BLOCK_AT_ONCE_BYTES_MAX {
            self.inflated.resize(self.inflated_bytes, 0);
            snap::raw::Decoder::new()
                .decompress(compressed, &mut self.inflated)
                .map_err(SnappyError::corrupt)?;
            return Ok(());
        }
        let length_bytes = compressed.iter().take_while(|byte| **byte >= 0x80).count() + 1;
        self.elements = &compressed[length_bytes..];
        self.literal_bytes = 0;
        self.inflated.clear();
        Ok(())
    }

    fn is_whole(&self) -> bool {
        self.inflated.len() == self.inflated_bytes
    }

    /// Inflates at least `step_bytes` more, or to the end of the block.
    fn inflate(&mut self, step_bytes: usize) -> Result<(), SnappyError> {
        let target_bytes = self
            .inflated_bytes
            .min(self.inflated.len().saturating_add(step_bytes));
        while self.inflated.len() < target_bytes {
            if self.literal_bytes > 0 {
                let taken_bytes = self.literal_bytes.min(step_bytes);
                let literal = take(&mut self.elements, taken_bytes)?;
                self.literal_bytes -= taken_bytes;
                self.inflated.extend_from_slice(literal);
                continue;
            }
            let tag = take(&mut self.elements, 1)?[0];
            let (length, offset_bytes, offset_high) = match tag & 3 {
                0 => {
                    let length = usize::from(tag >> 2);
                    let more_bytes = length.saturating_sub(59);
                    let length = match more_bytes {
                        0 => length,
                        _ => little_endian(take(&mut self.elements, more_bytes)?),
                    };
                    self.literal_bytes = length + 1;
                    continue;
                }
                1 => (usize::from(tag >> 2 & 7) + 4, 1, usize::from(tag >> 5) << 8),
                2 => (usize::from(tag >> 2) + 1, 2, 0),
                _ => (usize::from(tag >> 2) + 1, 4, 0),
            };
            let offset = offset_high | little_endian(take(&mut self.elements, offset_bytes)?);
            self.copy(offset, length)?;
        }
        let is_over = self.inflated.len() > self.inflated_bytes;
        if is_over || (self.is_whole() && (!self.elements.is_empty() || self.literal_bytes > 0)) {
            return Err(SnappyError::corrupt("a block holds more than it declares"));
        }
        Ok(())
    }

    /// Repeats `length` bytes from `offset` bytes back; they overlap with themselves where `offset` is the smaller.
    fn copy(&mut self, offset: usize, length: usize) -> Result<(), SnappyError> {
        let from = self
            .inflated
            .len()
            .checked_sub(offset)
            .filter(|_| offset > 0);
        let from = from.ok_or_else(|| SnappyError::corrupt("a copy from outside the block"))?;
        if offset >= length {
            self.inflated.extend_from_within(from..from + length);
        } else {
            for at in from..from + length {
                self.inflated.push(self.inflated[at]);
            }
        }
        Ok(())
    }
}

fn take<'a>(elements: &mut &'a [u8], bytes: usize) -> Result<&'a [u8], SnappyError> {
    let (taken, rest) = elements
        .split_at_checked(bytes)
        .ok_or_else(|| SnappyError::corrupt("a block is cut short"))?;
    *elements = rest;
    Ok(taken)
}

/// A number of up to 4 bytes.
fn little_endian(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .rev()
        .fold(0, |value, byte| value << 8 | usize::from(*byte))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Inflates a bare block in steps, whatever its size.
    fn in_steps(compressed: &[u8], step_bytes: usize) -> Result<Vec<u8>, SnappyError> {
        let length_bytes = compressed.iter().take_while(|byte| **byte >= 0x80).count() + 1;
        let inflated_bytes = snap::raw::decompress_len(compressed).map_err(SnappyError::corrupt)?;
        let mut block = Block {
            elements: &compressed[length_bytes..],
            inflated_bytes,
            ..Block::default()
        };
        while !block.is_whole() {
            block.inflate(step_bytes)?;
        }
        Ok(block.inflated)
    }

    proptest! {
        #[test]
        fn a_block_inflated_in_steps_is_what_was_compressed(
            words in prop::collection::vec(prop::collection::vec(0u8..4, 1..40), 1..80),
            step_bytes in 1usize..3_000,
        ) {
            let text = words.concat();
            let compressed = snap::raw::Encoder::new().compress_vec(&text).unwrap();
            prop_assert_eq!(in_steps(&compressed, step_bytes), Ok(text));
        }

        #[test]
        fn a_garbled_block_inflates_in_steps_to_what_it_inflates_to_at_once(
            words in prop::collection::vec(prop::collection::vec(0u8..4, 1..40), 1..40),
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        ) {
            let mut compressed = snap::raw::Encoder::new().compress_vec(&words.concat()).unwrap();
            for (at, byte) in changes {
                let at = at.index(compressed.len() - 2) + 2;
                compressed[at] = byte;
            }
            let at_once = snap::raw::Decoder::new().decompress_vec(&compressed);
            prop_assert_eq!(in_steps(&compressed, 100).ok(), at_once.ok());
        }
    }

    #[test]
    fn a_large_block_reads_as_it_was_written() {
        let text: Vec<u8> = (0..3 * BLOCK_AT_ONCE_BYTES_MAX as u32)
            .flat_map(|n| (n / 700).to_le_bytes())
            .collect();
        let compressed = snap::raw::Encoder::new().compress_vec(&text).unwrap();
        let mut reader = SnappyReader::new(&compressed, InflateBounds::up_to(text.len()));
        let (mut read, mut piece) = (Vec::new(), vec![0; 10_000]);
        while let read_bytes @ 1.. = reader.read(&mut piece).unwrap() {
            read.extend_from_slice(&piece[..read_bytes]);
        }
        assert!(read == text, "other bytes");
        let mut read_within = |bounds| SnappyReader::new(&compressed, bounds).read(&mut piece);
        let too_large = InflateBounds::up_to(text.len() - 1);
        assert_eq!(read_within(too_large), Err(SnappyError::TooLarge));
        let held = InflateBounds::holding(text.len() - 1);
        assert_eq!(read_within(held), Err(SnappyError::HoldsTooMuch));
    }
}
