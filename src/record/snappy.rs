//! Snappy as Kafka's clients send it: xerial's framing (Java, and most others), or one bare block (some).

use std::io::{self, Read};

/// Opens a stream of xerial's snappy-java: this magic, a version and the lowest compatible version (each 4 bytes), then blocks, each
/// behind its length (4 bytes, big-endian).
const XERIAL_MAGIC: &[u8; 8] = b"\x82SNAPPY\0";
const XERIAL_HEADER_BYTES: usize = XERIAL_MAGIC.len() + 8;
const XERIAL_VERSION: i32 = 1;

/// What snappy-java compresses at a time.
const BLOCK_BYTES: usize = 32 * 1024;

/// Snappy's densest element is a copy of 64 bytes said in 3. A block that declares more than this times its own length lies.
const RATIO_MAX: usize = 22;

pub fn compress_framed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = snap::raw::Encoder::new();
    let mut out = Vec::with_capacity(XERIAL_HEADER_BYTES + bytes.len() / 2);
    out.extend_from_slice(XERIAL_MAGIC);
    out.extend_from_slice(&XERIAL_VERSION.to_be_bytes());
    out.extend_from_slice(&XERIAL_VERSION.to_be_bytes());
    for block in bytes.chunks(BLOCK_BYTES) {
        let compressed = encoder
            .compress_vec(block)
            .expect("a block of 32 KiB is within snappy's limit");
        out.extend_from_slice(&(compressed.len() as u32).to_be_bytes());
        out.extend_from_slice(&compressed);
    }
    out
}

/// Inflates block by block.
pub struct SnappyReader<'a> {
    rest: &'a [u8],
    is_framed: bool,
    block: Vec<u8>,
    read_bytes: usize,
}

impl<'a> SnappyReader<'a> {
    pub fn new(compressed: &'a [u8]) -> Self {
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
            block: Vec::new(),
            read_bytes: 0,
        }
    }

    fn next_block(&mut self) -> io::Result<&'a [u8]> {
        if !self.is_framed {
            return Ok(std::mem::take(&mut self.rest));
        }
        let (length, rest) = self
            .rest
            .split_first_chunk::<4>()
            .ok_or(io::ErrorKind::UnexpectedEof)?;
        let length = u32::from_be_bytes(*length) as usize;
        let (block, rest) = rest
            .split_at_checked(length)
            .ok_or(io::ErrorKind::UnexpectedEof)?;
        self.rest = rest;
        Ok(block)
    }
}

impl Read for SnappyReader<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.read_bytes == self.block.len() {
            if self.rest.is_empty() {
                return Ok(0);
            }
            let compressed = self.next_block()?;
            let inflated_bytes = snap::raw::decompress_len(compressed)?;
            if inflated_bytes > compressed.len().saturating_mul(RATIO_MAX) {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "a block declares more than snappy can hold",
                ));
            }
            self.block.resize(inflated_bytes, 0);
            self.read_bytes = 0;
            snap::raw::Decoder::new().decompress(compressed, &mut self.block)?;
        }
        let read_bytes = (&self.block[self.read_bytes..]).read(out)?;
        self.read_bytes += read_bytes;
        Ok(read_bytes)
    }
}
