//! The codecs of record batches.

use std::io::{self, Write};

use super::snappy::compress_framed;

/// How the records of a batch are compressed; the header of the batch never is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Codec {
    None,
    Gzip,
    Snappy,
    Lz4,
    Zstd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("codec {0} does not exist")]
pub struct UnknownCodec(pub u8);

impl Codec {
    pub const ALL: [Self; 5] = [Self::None, Self::Gzip, Self::Snappy, Self::Lz4, Self::Zstd];

    /// The number in the attributes of a batch.
    pub fn id(self) -> u8 {
        self as u8
    }

    pub fn from_id(id: u8) -> Result<Self, UnknownCodec> {
        Self::ALL
            .get(usize::from(id))
            .copied()
            .ok_or(UnknownCodec(id))
    }

    /// The name in `compression.type`.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Gzip => "gzip",
            Self::Snappy => "snappy",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        }
    }

    /// Compresses as Kafka's Java producer does: snappy in xerial's framing, lz4 as a frame of independent blocks.
    pub fn compress(self, bytes: &[u8]) -> io::Result<Vec<u8>> {
        match self {
            Self::None => Ok(bytes.to_vec()),
            Self::Gzip => {
                let mut encoder =
                    flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
                encoder.write_all(bytes)?;
                encoder.finish()
            }
            Self::Snappy => Ok(compress_framed(bytes)),
            Self::Lz4 => {
                let mut encoder = lz4::EncoderBuilder::new()
                    .block_mode(lz4::BlockMode::Independent)
                    .build(Vec::new())?;
                encoder.write_all(bytes)?;
                let (compressed, result) = encoder.finish();
                result.map(|()| compressed)
            }
            Self::Zstd => zstd::encode_all(bytes, zstd::DEFAULT_COMPRESSION_LEVEL),
        }
    }
}
