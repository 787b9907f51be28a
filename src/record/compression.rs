//! The codecs of record batches.

use std::io::{self, Write};

use super::snappy::FramedSnappy;

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
        let mut compressor = Compressor::new(self)?;
        compressor.write(bytes)?;
        compressor.finish()
    }
}

/// Compresses piece by piece, as [`Codec::compress`] does at once.
pub struct Compressor(Encoder);

enum Encoder {
    None(Vec<u8>),
    Gzip(flate2::write::GzEncoder<Vec<u8>>),
    Snappy(Box<FramedSnappy>),
    Lz4(lz4::Encoder<Vec<u8>>),
    Zstd(zstd::Encoder<'static, Vec<u8>>),
}

impl Compressor {
    pub fn new(codec: Codec) -> io::Result<Self> {
        let out = Vec::new();
        Ok(Self(match codec {
            Codec::None => Encoder::None(out),
            Codec::Gzip => Encoder::Gzip(flate2::write::GzEncoder::new(
                out,
                flate2::Compression::default(),
            )),
            Codec::Snappy => Encoder::Snappy(Box::new(FramedSnappy::new())),
            Codec::Lz4 => Encoder::Lz4(
                lz4::EncoderBuilder::new()
                    .block_mode(lz4::BlockMode::Independent)
                    .build(out)?,
            ),
            Codec::Zstd => Encoder::Zstd(zstd::Encoder::new(out, zstd::DEFAULT_COMPRESSION_LEVEL)?),
        }))
    }

    pub fn write(&mut self, piece: &[u8]) -> io::Result<()> {
        match &mut self.0 {
            Encoder::None(out) => out.extend_from_slice(piece),
            Encoder::Gzip(encoder) => encoder.write_all(piece)?,
            Encoder::Snappy(encoder) => encoder.write(piece),
            Encoder::Lz4(encoder) => encoder.write_all(piece)?,
            Encoder::Zstd(encoder) => encoder.write_all(piece)?,
        }
        Ok(())
    }

    pub fn finish(self) -> io::Result<Vec<u8>> {
        match self.0 {
            Encoder::None(out) => Ok(out),
            Encoder::Gzip(encoder) => encoder.finish(),
            Encoder::Snappy(encoder) => Ok(encoder.finish()),
            Encoder::Lz4(encoder) => {
                let (compressed, result) = encoder.finish();
                result.map(|()| compressed)
            }
            Encoder::Zstd(encoder) => encoder.finish(),
        }
    }
}
