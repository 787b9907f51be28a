//! The codecs of record batches, in the framings that Kafka's Java clients write and read.

use std::io::{self, Read};

use clap::ValueEnum;
use flate2::read::GzDecoder;
use serde::{Deserialize, Serialize};

/// No batch of this tool is larger; a damaged one may claim to be.
const PLAIN_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// A snappy stream of the Java library: this header, then blocks behind their lengths.
pub const XERIAL_HEADER: [u8; 16] = *b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01";
pub const XERIAL_BLOCK_BYTES: usize = 32 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
pub enum Compression {
    None,
    Gzip,
    Snappy,
    Lz4,
    Zstd,
}

impl Compression {
    /// By their number in a batch's attributes.
    pub const ALL: [Self; 5] = [Self::None, Self::Gzip, Self::Snappy, Self::Lz4, Self::Zstd];
    pub const NAMES: &'static str = "none, gzip, snappy, lz4 or zstd";

    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Gzip => "gzip",
            Self::Snappy => "snappy",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|codec| codec.name() == name)
    }

    pub fn in_attributes(self) -> i16 {
        self as i16
    }

    /// None: a codec that Kafka does not have.
    pub fn of_attributes(attributes: i16) -> Option<Self> {
        Self::ALL
            .get(usize::from(attributes as u16 & 0x07))
            .copied()
    }

    pub fn decompress(self, compressed: &[u8]) -> io::Result<Vec<u8>> {
        match self {
            Self::None => Ok(compressed.to_vec()),
            Self::Gzip => read_whole(GzDecoder::new(compressed)),
            Self::Snappy => match compressed.strip_prefix(&XERIAL_HEADER) {
                Some(blocks) => unsnap_blocks(blocks),
                None => unsnap(compressed),
            },
            Self::Lz4 => {
                let mut decoder = lz4::Decoder::new(compressed)?;
                let plain = read_whole(&mut decoder)?;
                // It takes the end of the bytes for the end of the frame, and tells only here.
                decoder.finish().1?;
                Ok(plain)
            }
            Self::Zstd => read_whole(zstd::stream::read::Decoder::new(compressed)?),
        }
    }
}

fn read_whole(decoder: impl Read) -> io::Result<Vec<u8>> {
    let mut plain = Vec::new();
    decoder.take(PLAIN_BYTES_MAX + 1).read_to_end(&mut plain)?;
    if plain.len() as u64 > PLAIN_BYTES_MAX {
        return Err(io::Error::other("the batch is too large when decompressed"));
    }
    Ok(plain)
}

fn unsnap_blocks(mut blocks: &[u8]) -> io::Result<Vec<u8>> {
    let mut plain = Vec::new();
    while let Some((length, rest)) = blocks.split_first_chunk::<4>() {
        let block_bytes = u32::from_be_bytes(*length) as usize;
        let (block, behind) = rest
            .split_at_checked(block_bytes)
            .ok_or(io::ErrorKind::UnexpectedEof)?;
        plain.extend(unsnap(block)?);
        if plain.len() as u64 > PLAIN_BYTES_MAX {
            return Err(io::Error::other("the batch is too large when decompressed"));
        }
        blocks = behind;
    }
    match blocks {
        [] => Ok(plain),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

fn unsnap(block: &[u8]) -> io::Result<Vec<u8>> {
    if snap::raw::decompress_len(block)? as u64 > PLAIN_BYTES_MAX {
        return Err(io::Error::other("the batch is too large when decompressed"));
    }
    Ok(snap::raw::Decoder::new().decompress_vec(block)?)
}
