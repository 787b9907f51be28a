//! Streams that stand one after the other in one compressed body: gzip's members (RFC 1952) and zstd's frames (RFC 8878).

use std::io::{self, Read};

use crate::model::limits::{
    EMPTY_PARTS_MAX, GZIP_INPUT_WITHOUT_OUTPUT_BYTES_MAX, ZSTD_INPUT_WITHOUT_OUTPUT_BYTES_MAX,
    ZSTD_WINDOW_LOG_MAX,
};

use super::metered::{Allowance, Metered};

/// The decoder of one member.
pub(super) trait Member<'a>: Read + Sized {
    fn open(compressed: &'a [u8]) -> io::Result<Self>;

    /// How much of what it has inflated its decoder may hold.
    fn window_bytes(compressed: &[u8]) -> usize;

    fn source(&self) -> &Metered<'a>;
}

/// Inflates member after member. Only `EMPTY_PARTS_MAX` of them may hold nothing: they cost work without an end in sight, and no client
/// makes them.
pub(super) struct Members<'a, M> {
    /// `None` at the end of the last.
    member: Option<M>,
    rest: &'a [u8],
    is_empty: bool,
    empty_count: usize,
    /// The largest of those seen.
    window_bytes: usize,
    taken_bytes: usize,
}

impl<'a, M: Member<'a>> Members<'a, M> {
    pub fn open(compressed: &'a [u8]) -> io::Result<Self> {
        Ok(Self {
            member: Some(M::open(compressed)?),
            rest: &[],
            is_empty: true,
            empty_count: 0,
            taken_bytes: 0,
            window_bytes: M::window_bytes(compressed),
        })
    }

    /// Inflates into `out`, of one member at most; 0 at the end.
    pub fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.member {
            let read_bytes = member.read(out)?;
            self.taken_bytes += member.source().refill();
            if read_bytes > 0 {
                self.is_empty = false;
                return Ok(read_bytes);
            }
            self.empty_count += usize::from(self.is_empty);
            if self.empty_count > EMPTY_PARTS_MAX {
                return Err(io::Error::other("too many parts of it are empty"));
            }
            self.is_empty = true;
            self.rest = member.source().rest();
            self.member = None;
            if !self.rest.is_empty() {
                self.member = Some(M::open(self.rest)?);
                self.window_bytes = self.window_bytes.max(M::window_bytes(self.rest));
            }
        }
        Ok(0)
    }

    /// How much of what it has inflated a decoder so far may have held.
    pub fn window_bytes(&self) -> usize {
        self.window_bytes
    }

    /// The compressed bytes that were taken since this was last asked.
    pub fn take_taken_bytes(&mut self) -> usize {
        std::mem::take(&mut self.taken_bytes)
    }

    /// What comes after the last one. To be asked at the end.
    pub fn rest(&self) -> &'a [u8] {
        let member = self.member.as_ref();
        member.map_or(self.rest, |member| member.source().rest())
    }
}

pub(super) type GzipMember<'a> = Box<flate2::bufread::GzDecoder<Metered<'a>>>;

impl<'a> Member<'a> for GzipMember<'a> {
    fn open(compressed: &'a [u8]) -> io::Result<Self> {
        let allowed = Allowance {
            bytes: GZIP_INPUT_WITHOUT_OUTPUT_BYTES_MAX,
            reads: usize::MAX,
        };
        let metered = Metered::new(compressed, allowed);
        Ok(Box::new(flate2::bufread::GzDecoder::new(metered)))
    }

    fn window_bytes(_: &[u8]) -> usize {
        DEFLATE_WINDOW_BYTES
    }

    fn source(&self) -> &Metered<'a> {
        self.get_ref()
    }
}

pub(super) type ZstdFrame<'a> = zstd::Decoder<'static, Metered<'a>>;

impl<'a> Member<'a> for ZstdFrame<'a> {
    fn open(compressed: &'a [u8]) -> io::Result<Self> {
        let allowed = Allowance {
            bytes: ZSTD_INPUT_WITHOUT_OUTPUT_BYTES_MAX,
            reads: usize::MAX,
        };
        let metered = Metered::new(compressed, allowed);
        let mut decoder = zstd::Decoder::with_buffer(metered)?.single_frame();
        decoder.window_log_max(ZSTD_WINDOW_LOG_MAX)?;
        Ok(decoder)
    }

    fn window_bytes(compressed: &[u8]) -> usize {
        zstd_window_bytes(compressed).unwrap_or(0)
    }

    fn source(&self) -> &Metered<'a> {
        self.get_ref()
    }
}

/// What a copy of deflate may reach back (RFC 1951).
const DEFLATE_WINDOW_BYTES: usize = 32 * 1024;

const ZSTD_MAGIC: [u8; 4] = 0xfd2f_b528_u32.to_le_bytes();

/// The window that the frame at the front of `compressed` asks for (RFC 8878, 3.1.1.1); `None` where no frame of data stands there. The
/// front of such a frame:
///
/// ```text
/// | magic 4 | descriptor 1: content size flag: 2 bits, single segment 1 bit, .. 3 bits, dictionary id flag: 2 bits |
/// | window 1: exponent - 10: 5 bits, mantissa: 3 bits. Only if it is no single segment | dictionary id 0, 1, 2 or 4 |
/// | content size, little-endian: 1 (a single segment's) or 0, 2 (and 256 more), 4 or 8 |
/// ```
///
/// The window of a single segment is its content.
fn zstd_window_bytes(compressed: &[u8]) -> Option<usize> {
    let (descriptor, rest) = compressed.strip_prefix(&ZSTD_MAGIC)?.split_first()?;
    let is_single_segment = descriptor & 0x20 != 0;
    if !is_single_segment {
        let window = rest.first()?;
        let base_bytes = 1_usize << (10 + (window >> 3));
        return Some(base_bytes + base_bytes / 8 * usize::from(window & 7));
    }
    let dictionary_id_bytes = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let size_bytes = 1_usize << (descriptor >> 6);
    let size = rest.get(dictionary_id_bytes..dictionary_id_bytes + size_bytes)?;
    let mut content_bytes = [0; 8];
    content_bytes[..size_bytes].copy_from_slice(size);
    let base_bytes = if size_bytes == 2 { 256 } else { 0 };
    let content_bytes = u64::from_le_bytes(content_bytes).saturating_add(base_bytes);
    Some(usize::try_from(content_bytes).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn the_window_is_what_the_frame_asks_for() {
        let streamed = |log: u32| {
            let mut encoder = zstd::Encoder::new(Vec::new(), 3).unwrap();
            encoder.window_log(log).unwrap();
            encoder.write_all(&[7; 5_000]).unwrap();
            encoder.finish().unwrap()
        };
        for log in [10, 17, 21, 27] {
            assert_eq!(zstd_window_bytes(&streamed(log)), Some(1 << log), "{log}");
        }
        for content_bytes in [1, 200, 255, 256, 300, 65_791, 65_792, 1_000_000] {
            let at_once = zstd::bulk::compress(&vec![7; content_bytes], 3).unwrap();
            assert_eq!(zstd_window_bytes(&at_once), Some(content_bytes));
        }
        let with_mantissa = [&ZSTD_MAGIC[..], &[0, 3 << 3 | 5]].concat();
        assert_eq!(zstd_window_bytes(&with_mantissa), Some(8192 + 5 * 1024));
        assert_eq!(zstd_window_bytes(&streamed(21)[..5]), None);
        assert_eq!(
            zstd_window_bytes(b"\x50\x2a\x4d\x18\0\0\0\0"),
            None,
            "it is skipped"
        );
    }
}
