//! The codecs of record batches, in the framings that Kafka's Java clients write and read.

use std::io::{self, Read, Write};

use clap::ValueEnum;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use lz4::{BlockMode, BlockSize, ContentChecksum, EncoderBuilder};

/// No batch of this tool is larger; a damaged one may claim to be.
const PLAIN_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// Kafka's default.
const ZSTD_LEVEL: i32 = 3;

/// A snappy stream of the Java library: this header, then blocks behind their lengths.
const XERIAL_HEADER: [u8; 16] = *b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01";
const XERIAL_BLOCK_BYTES: usize = 32 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Compression {
    None,
    Gzip,
    Snappy,
    Lz4,
    Zstd,
}

impl Compression {
    /// By their number in a batch's attributes.
    const ALL: [Self; 5] = [Self::None, Self::Gzip, Self::Snappy, Self::Lz4, Self::Zstd];
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

    /// Appends the compressed bytes to `out`.
    pub fn compress(self, plain: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        match self {
            Self::None => out.extend_from_slice(plain),
            Self::Gzip => {
                let mut encoder = GzEncoder::new(out, flate2::Compression::default());
                encoder.write_all(plain)?;
                encoder.finish()?;
            }
            Self::Snappy => {
                out.extend_from_slice(&XERIAL_HEADER);
                let mut encoder = snap::raw::Encoder::new();
                for block in plain.chunks(XERIAL_BLOCK_BYTES) {
                    let length_at = out.len();
                    let start = length_at + 4;
                    out.resize(start + snap::raw::max_compress_len(block.len()), 0);
                    let block_bytes = encoder.compress(block, &mut out[start..])?;
                    out[length_at..start].copy_from_slice(&(block_bytes as u32).to_be_bytes());
                    out.truncate(start + block_bytes);
                }
            }
            Self::Lz4 => {
                // The Java client's reader refuses blocks that depend on each other.
                let mut encoder = EncoderBuilder::new()
                    .block_size(BlockSize::Max64KB)
                    .block_mode(BlockMode::Independent)
                    .checksum(ContentChecksum::NoChecksum)
                    .build(out)?;
                encoder.write_all(plain)?;
                encoder.finish().1?;
            }
            Self::Zstd => {
                let start = out.len();
                out.resize(start + zstd::zstd_safe::compress_bound(plain.len()), 0);
                let size = zstd::bulk::compress_to_buffer(plain, &mut out[start..], ZSTD_LEVEL)?;
                out.truncate(start + size);
            }
        }
        Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

    fn half_random() -> Vec<u8> {
        let noise = (0..50_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8);
        noise.chain(std::iter::repeat_n(0, 50_000)).collect()
    }

    #[test]
    fn every_codec_reads_back_what_it_wrote_behind_what_was_there() {
        for codec in Compression::ALL {
            for plain in [Vec::new(), b"a".to_vec(), half_random()] {
                let mut out = b"head".to_vec();
                codec.compress(&plain, &mut out).unwrap();
                assert_eq!(&out[..4], b"head");
                assert_eq!(codec.decompress(&out[4..]).unwrap(), plain, "{codec:?}");
            }
        }
    }

    #[test]
    fn zeros_compress() {
        for codec in &Compression::ALL[1..] {
            let mut out = Vec::new();
            codec.compress(&half_random(), &mut out).unwrap();
            assert!(out.len() < 70_000, "{codec:?}: {}", out.len());
        }
    }

    #[test]
    fn snappy_has_the_java_librarys_framing_and_is_read_without_it_too() {
        let mut out = Vec::new();
        Compression::Snappy.compress(b"abc", &mut out).unwrap();
        assert_eq!(out[..16], XERIAL_HEADER);
        let bare = snap::raw::Encoder::new().compress_vec(b"abc").unwrap();
        assert_eq!(out[16..20], (bare.len() as u32).to_be_bytes());
        assert_eq!(Compression::Snappy.decompress(&bare).unwrap(), b"abc");
    }

    #[test]
    fn cut_off_bytes_are_an_error() {
        for codec in &Compression::ALL[1..] {
            let mut out = Vec::new();
            codec.compress(&half_random(), &mut out).unwrap();
            assert!(
                codec.decompress(&out[..out.len() / 2]).is_err(),
                "{codec:?}"
            );
        }
    }
}
