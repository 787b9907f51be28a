//! Streams that stand one after the other in one compressed body: gzip's members (RFC 1952) and zstd's frames (RFC 8878).

use std::io::{self, Read};

use crate::model::limits::{EMPTY_PARTS_MAX, ZSTD_WINDOW_LOG_MAX};

/// The decoder of one member.
pub(super) trait Member<'a>: Read + Sized {
    fn open(compressed: &'a [u8]) -> io::Result<Self>;

    /// What comes after the member. To be asked at its end.
    fn into_rest(self) -> &'a [u8];
}

/// Inflates member after member. Only `EMPTY_PARTS_MAX` of them may hold nothing: they cost work without an end in sight, and no client
/// makes them.
pub(super) struct Members<'a, M> {
    /// `None` at the end of the last.
    member: Option<M>,
    rest: &'a [u8],
    is_empty: bool,
    empty_count: usize,
}

impl<'a, M: Member<'a>> Members<'a, M> {
    pub fn open(compressed: &'a [u8]) -> io::Result<Self> {
        Ok(Self {
            member: Some(M::open(compressed)?),
            rest: &[],
            is_empty: true,
            empty_count: 0,
        })
    }

    /// Inflates into `out`, of one member at most; 0 at the end.
    pub fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.member {
            let read_bytes = member.read(out)?;
            if read_bytes > 0 {
                self.is_empty = false;
                return Ok(read_bytes);
            }
            self.empty_count += usize::from(self.is_empty);
            if self.empty_count > EMPTY_PARTS_MAX {
                return Err(io::Error::other("too many parts of it are empty"));
            }
            self.is_empty = true;
            self.rest = self.member.take().map_or(&[], M::into_rest);
            if !self.rest.is_empty() {
                self.member = Some(M::open(self.rest)?);
            }
        }
        Ok(0)
    }

    /// What comes after the last one. To be asked at the end.
    pub fn into_rest(self) -> &'a [u8] {
        self.member.map_or(self.rest, M::into_rest)
    }
}

impl<'a> Member<'a> for Box<flate2::bufread::GzDecoder<&'a [u8]>> {
    fn open(compressed: &'a [u8]) -> io::Result<Self> {
        Ok(Box::new(flate2::bufread::GzDecoder::new(compressed)))
    }

    fn into_rest(self) -> &'a [u8] {
        (*self).into_inner()
    }
}

impl<'a> Member<'a> for zstd::Decoder<'static, &'a [u8]> {
    fn open(compressed: &'a [u8]) -> io::Result<Self> {
        let mut decoder = zstd::Decoder::with_buffer(compressed)?.single_frame();
        decoder.window_log_max(ZSTD_WINDOW_LOG_MAX)?;
        Ok(decoder)
    }

    fn into_rest(self) -> &'a [u8] {
        self.finish()
    }
}
