//! The codecs of record batches, and inflating as a stream with a cap.

use std::io::{self, BufRead, BufReader, Read, Write};

use crate::model::limits::INFLATE_BUFFER_BYTES;

use super::snappy::{SnappyReader, compress_framed};

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

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InflateError {
    #[error("the {codec:?} data does not inflate: {reason}")]
    Corrupt { codec: Codec, reason: String },
    #[error("the {codec:?} data inflates to more than {inflated_bytes_max} bytes")]
    TooLarge {
        codec: Codec,
        inflated_bytes_max: usize,
    },
    #[error("the {codec:?} data ends inside a record")]
    CutShort { codec: Codec },
}

/// Inflates a compressed body piece by piece. Never holds more than a buffer and what the codec's window needs, and gives up at a cap,
/// so that a small batch cannot make the broker swell.
pub struct Inflater<'a> {
    codec: Codec,
    source: BufReader<Source<'a>>,
    inflated_bytes_max: usize,
    left_bytes: usize,
}

enum Source<'a> {
    Plain(&'a [u8]),
    Gzip(Box<flate2::bufread::MultiGzDecoder<&'a [u8]>>),
    Snappy(SnappyReader<'a>),
    Lz4(lz4::Decoder<&'a [u8]>),
    Zstd(zstd::Decoder<'static, &'a [u8]>),
}

impl Read for Source<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(bytes) => bytes.read(out),
            Self::Gzip(decoder) => decoder.read(out),
            Self::Snappy(decoder) => decoder.read(out),
            Self::Lz4(decoder) => decoder.read(out),
            Self::Zstd(decoder) => decoder.read(out),
        }
    }
}

impl<'a> Inflater<'a> {
    pub fn new(
        codec: Codec,
        compressed: &'a [u8],
        inflated_bytes_max: usize,
    ) -> Result<Self, InflateError> {
        let corrupt = |error: io::Error| InflateError::Corrupt {
            codec,
            reason: error.to_string(),
        };
        let source = match codec {
            Codec::None => Source::Plain(compressed),
            Codec::Gzip => Source::Gzip(Box::new(flate2::bufread::MultiGzDecoder::new(compressed))),
            Codec::Snappy => Source::Snappy(SnappyReader::new(compressed)),
            Codec::Lz4 => Source::Lz4(lz4::Decoder::new(compressed).map_err(corrupt)?),
            Codec::Zstd => Source::Zstd(zstd::Decoder::with_buffer(compressed).map_err(corrupt)?),
        };
        Ok(Self {
            codec,
            source: BufReader::with_capacity(INFLATE_BUFFER_BYTES, source),
            inflated_bytes_max,
            left_bytes: inflated_bytes_max,
        })
    }

    /// Whether everything was read. Bytes behind the end of the compressed stream do not count.
    pub fn is_at_end(&mut self) -> Result<bool, InflateError> {
        let codec = self.codec;
        self.source
            .fill_buf()
            .map(<[u8]>::is_empty)
            .map_err(|error| corrupt(codec, &error))
    }

    pub fn read_byte(&mut self) -> Result<u8, InflateError> {
        self.claim(1)?;
        let codec = self.codec;
        let buffered = self
            .source
            .fill_buf()
            .map_err(|error| corrupt(codec, &error))?;
        let byte = *buffered.first().ok_or(InflateError::CutShort { codec })?;
        self.source.consume(1);
        Ok(byte)
    }

    /// Replaces `out` by the next `len_bytes`. `out` grows with what arrives, not by the length that was declared.
    pub fn read_into(&mut self, out: &mut Vec<u8>, len_bytes: usize) -> Result<(), InflateError> {
        self.claim(len_bytes)?;
        out.clear();
        let read = (&mut self.source).take(len_bytes as u64).read_to_end(out);
        match read.map_err(|error| corrupt(self.codec, &error))? {
            read_bytes if read_bytes == len_bytes => Ok(()),
            _ => Err(InflateError::CutShort { codec: self.codec }),
        }
    }

    fn claim(&mut self, bytes: usize) -> Result<(), InflateError> {
        self.left_bytes = self
            .left_bytes
            .checked_sub(bytes)
            .ok_or(InflateError::TooLarge {
                codec: self.codec,
                inflated_bytes_max: self.inflated_bytes_max,
            })?;
        Ok(())
    }
}

fn corrupt(codec: Codec, error: &io::Error) -> InflateError {
    InflateError::Corrupt {
        codec,
        reason: error.to_string(),
    }
}
