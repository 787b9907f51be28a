//! One producer's codec, set up once and used for all its batches.

use std::io::{self, Write};

use flate2::{Compress, Crc, FlushCompress, Status};
use lz4::{BlockMode, BlockSize, ContentChecksum, EncoderBuilder};

use crate::compression::{Compression, XERIAL_BLOCK_BYTES, XERIAL_HEADER};

/// Kafka's default.
const ZSTD_LEVEL: i32 = 3;

/// Deflate, no name, no time, an unknown system (RFC 1952).
const GZIP_HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];

/// By how much the output grows when the codec asks for room.
const GZIP_ROOM_BYTES: usize = 32 * 1024;

pub enum Compressor {
    None,
    /// Bare deflate; the frame around it is written here, because a whole encoder cannot begin anew.
    Gzip(Compress),
    Snappy(Box<snap::raw::Encoder>),
    /// The crate's encoder cannot begin anew: it is set up for each batch.
    Lz4,
    Zstd(zstd::bulk::Compressor<'static>),
}

impl Compressor {
    pub fn new(codec: Compression) -> Self {
        match codec {
            Compression::None => Self::None,
            Compression::Gzip => Self::Gzip(Compress::new(flate2::Compression::default(), false)),
            Compression::Snappy => Self::Snappy(Box::new(snap::raw::Encoder::new())),
            Compression::Lz4 => Self::Lz4,
            Compression::Zstd => Self::Zstd(
                zstd::bulk::Compressor::new(ZSTD_LEVEL).expect("zstd has its default level"),
            ),
        }
    }

    pub fn codec(&self) -> Compression {
        match self {
            Self::None => Compression::None,
            Self::Gzip(_) => Compression::Gzip,
            Self::Snappy(_) => Compression::Snappy,
            Self::Lz4 => Compression::Lz4,
            Self::Zstd(_) => Compression::Zstd,
        }
    }

    /// Appends the compressed bytes to `out`.
    pub fn compress(&mut self, plain: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        match self {
            Self::None => out.extend_from_slice(plain),
            Self::Gzip(deflate) => gzip(deflate, plain, out)?,
            Self::Snappy(encoder) => {
                out.extend_from_slice(&XERIAL_HEADER);
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
            Self::Zstd(compressor) => {
                let start = out.len();
                out.resize(start + zstd::zstd_safe::compress_bound(plain.len()), 0);
                let size = compressor.compress_to_buffer(plain, &mut out[start..])?;
                out.truncate(start + size);
            }
        }
        Ok(())
    }
}

fn gzip(deflate: &mut Compress, plain: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
    out.extend_from_slice(&GZIP_HEADER);
    deflate.reset();
    loop {
        let taken_bytes = deflate.total_in() as usize;
        out.reserve(GZIP_ROOM_BYTES);
        let status = deflate.compress_vec(&plain[taken_bytes..], out, FlushCompress::Finish)?;
        if status == Status::StreamEnd {
            break;
        }
    }
    let mut crc = Crc::new();
    crc.update(plain);
    out.extend(crc.sum().to_le_bytes());
    out.extend(crc.amount().to_le_bytes());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn half_random() -> Vec<u8> {
        let noise = (0..50_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8);
        noise.chain(std::iter::repeat_n(0, 50_000)).collect()
    }

    #[test]
    fn every_codec_reads_back_each_batch_that_one_compressor_wrote_behind_what_was_there() {
        for codec in Compression::ALL {
            let mut compressor = Compressor::new(codec);
            assert_eq!(compressor.codec(), codec);
            for plain in [Vec::new(), half_random(), b"a".to_vec(), half_random()] {
                let mut out = b"head".to_vec();
                compressor.compress(&plain, &mut out).unwrap();
                assert_eq!(&out[..4], b"head");
                assert_eq!(codec.decompress(&out[4..]).unwrap(), plain, "{codec:?}");
            }
        }
    }

    #[test]
    fn what_one_compressor_writes_does_not_depend_on_what_it_wrote_before() {
        for codec in Compression::ALL {
            let (mut first, mut second) = (Vec::new(), Vec::new());
            let mut compressor = Compressor::new(codec);
            compressor.compress(&half_random(), &mut first).unwrap();
            compressor.compress(&half_random(), &mut second).unwrap();
            assert!(first == second, "{codec:?}");
        }
    }

    #[test]
    fn zeros_compress() {
        for codec in &Compression::ALL[1..] {
            let mut out = Vec::new();
            let mut compressor = Compressor::new(*codec);
            compressor.compress(&half_random(), &mut out).unwrap();
            assert!(out.len() < 70_000, "{codec:?}: {}", out.len());
        }
    }

    #[test]
    fn snappy_has_the_java_librarys_framing_and_is_read_without_it_too() {
        let mut out = Vec::new();
        let mut compressor = Compressor::new(Compression::Snappy);
        compressor.compress(b"abc", &mut out).unwrap();
        assert_eq!(out[..16], XERIAL_HEADER);
        let bare = snap::raw::Encoder::new().compress_vec(b"abc").unwrap();
        assert_eq!(out[16..20], (bare.len() as u32).to_be_bytes());
        assert_eq!(Compression::Snappy.decompress(&bare).unwrap(), b"abc");
    }

    #[test]
    fn cut_off_bytes_are_an_error() {
        for codec in &Compression::ALL[1..] {
            let mut out = Vec::new();
            let mut compressor = Compressor::new(*codec);
            compressor.compress(&half_random(), &mut out).unwrap();
            assert!(
                codec.decompress(&out[..out.len() / 2]).is_err(),
                "{codec:?}"
            );
        }
    }
}
