//! Inflating as a stream, with a cap.

use std::io::{self, Read};

use crate::model::limits::{
    INFLATE_BUFFER_BYTES, INFLATE_INPUT_WORK, INFLATE_READ_WORK_BYTES, INFLATE_SHORT_READS_MAX,
    LZ4_READS_WITHOUT_OUTPUT_MAX,
};

use super::compression::Codec;
use super::inflate_bounds::InflateBounds;
use super::members::{GzipMember, Members, ZstdFrame};
use super::metered::{Allowance, Metered};
use super::snappy::{SnappyError, SnappyReader};

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InflateError {
    #[error("the {codec:?} data does not inflate: {reason}")]
    Corrupt { codec: Codec, reason: String },
    #[error("the {codec:?} data inflates to more than {inflated_bytes_max} bytes")]
    TooLarge {
        codec: Codec,
        inflated_bytes_max: usize,
    },
    #[error("inflating the {codec:?} data takes more than {window_bytes_max} bytes of memory")]
    WindowTooLarge {
        codec: Codec,
        window_bytes_max: usize,
    },
    #[error("the {codec:?} data ends inside a record")]
    CutShort { codec: Codec },
}

/// Inflates a compressed body piece by piece. Never holds more than a buffer and what the codec's window needs, and gives up at its bounds,
/// so that a small batch cannot make the broker swell.
pub struct Inflater<'a> {
    codec: Codec,
    source: Source<'a>,
    /// What is inflated and not yet consumed is `buffer[start..end]`.
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    is_source_at_end: bool,
    inflated_bytes: usize,
    bounds: InflateBounds,
    work_bytes: usize,
    /// Reads that gave less than they had room for.
    short_read_count: usize,
}

enum Source<'a> {
    Plain(&'a [u8]),
    Gzip(Members<'a, GzipMember<'a>>),
    Snappy(SnappyReader<'a>),
    Lz4(lz4::Decoder<Metered<'a>>),
    Zstd(Members<'a, ZstdFrame<'a>>),
}

impl Source<'_> {
    /// Inflates into `out`; 0 at the end.
    fn read(&mut self, out: &mut [u8]) -> Result<usize, SourceError> {
        let read = match self {
            Self::Plain(bytes) => bytes.read(out),
            Self::Gzip(decoder) => decoder.read(out),
            Self::Snappy(decoder) => return decoder.read(out).map_err(SourceError::Snappy),
            Self::Lz4(decoder) => decoder.read(out),
            Self::Zstd(decoder) => decoder.read(out),
        };
        read.map_err(SourceError::Codec)
    }

    /// The compressed bytes that were taken since this was last asked, where they may cost more than what they inflate to.
    fn take_taken_bytes(&mut self) -> usize {
        match self {
            Self::Gzip(members) => members.take_taken_bytes(),
            Self::Zstd(frames) => frames.take_taken_bytes(),
            Self::Lz4(decoder) => decoder.reader().refill(),
            Self::Plain(_) | Self::Snappy(_) => 0,
        }
    }

    /// How much of what it has inflated a decoder may hold, where that is more than some MiB.
    fn window_bytes(&self) -> usize {
        match self {
            Self::Zstd(frames) => frames.window_bytes(),
            // A block of snappy is looked at before it is inflated; the others' windows are small.
            Self::Plain(_) | Self::Gzip(_) | Self::Snappy(_) | Self::Lz4(_) => 0,
        }
    }
}

enum SourceError {
    Codec(io::Error),
    Snappy(SnappyError),
}

impl<'a> Inflater<'a> {
    pub fn new(
        codec: Codec,
        compressed: &'a [u8],
        bounds: InflateBounds,
    ) -> Result<Self, InflateError> {
        let corrupt = |error: io::Error| InflateError::Corrupt {
            codec,
            reason: error.to_string(),
        };
        let source = match codec {
            Codec::None => Source::Plain(compressed),
            Codec::Gzip => Source::Gzip(Members::open(compressed).map_err(corrupt)?),
            Codec::Snappy => Source::Snappy(SnappyReader::new(compressed, bounds)),
            Codec::Lz4 => {
                let allowed = Allowance {
                    bytes: usize::MAX,
                    reads: LZ4_READS_WITHOUT_OUTPUT_MAX,
                };
                let metered = Metered::new(compressed, allowed);
                Source::Lz4(lz4::Decoder::new(metered).map_err(corrupt)?)
            }
            Codec::Zstd => Source::Zstd(Members::open(compressed).map_err(corrupt)?),
        };
        Ok(Self {
            codec,
            source,
            buffer: vec![0; INFLATE_BUFFER_BYTES].into_boxed_slice(),
            start: 0,
            end: 0,
            is_source_at_end: false,
            inflated_bytes: 0,
            bounds,
            work_bytes: 0,
            short_read_count: 0,
        })
    }

    pub fn codec(&self) -> Codec {
        self.codec
    }

    /// What was done so far, in bytes that are inflated: data in many small parts costs more than it gives.
    pub fn work_bytes(&self) -> usize {
        self.work_bytes
    }

    /// The next bytes, which stay there until they are consumed: at least `wanted_bytes`, which may not be more than the buffer holds; fewer
    /// only where the data ends.
    #[inline]
    pub fn peek(&mut self, wanted_bytes: usize) -> Result<&[u8], InflateError> {
        if self.end - self.start < wanted_bytes {
            self.refill(wanted_bytes)?;
        }
        Ok(&self.buffer[self.start..self.end])
    }

    /// Moves past bytes that were peeked at.
    #[inline]
    pub fn consume(&mut self, bytes: usize) {
        assert!(
            bytes <= self.end - self.start,
            "only what was inflated is consumed"
        );
        self.start += bytes;
    }

    /// Takes the next `len_bytes`, which may not be more than the buffer holds.
    pub fn take(&mut self, len_bytes: usize) -> Result<&[u8], InflateError> {
        if self.peek(len_bytes)?.len() < len_bytes {
            return Err(InflateError::CutShort { codec: self.codec });
        }
        self.start += len_bytes;
        Ok(&self.buffer[self.start - len_bytes..self.start])
    }

    /// Whether everything was read. Bytes behind the end of the compressed stream do not count.
    pub fn is_at_end(&mut self) -> Result<bool, InflateError> {
        self.peek(1).map(<[u8]>::is_empty)
    }

    /// Puts what is next behind `out` until that has `len_bytes`, or some `work_bytes` were done; true once it has. `out` grows with what
    /// arrives, not by the length that was declared.
    pub fn append_to(
        &mut self,
        out: &mut Vec<u8>,
        len_bytes: usize,
        work_bytes: usize,
    ) -> Result<bool, InflateError> {
        let stop_at_bytes = self.work_bytes.saturating_add(work_bytes);
        while out.len() < len_bytes {
            if self.work_bytes >= stop_at_bytes {
                return Ok(false);
            }
            let inflated = self.peek(1)?;
            if inflated.is_empty() {
                return Err(InflateError::CutShort { codec: self.codec });
            }
            let taken_bytes = inflated.len().min(len_bytes - out.len());
            out.extend_from_slice(&inflated[..taken_bytes]);
            self.consume(taken_bytes);
        }
        Ok(true)
    }

    /// An error if so many bytes may not be held as a whole.
    pub fn check_held(&self, len_bytes: usize) -> Result<(), InflateError> {
        if len_bytes > self.bounds.window_bytes_max {
            return Err(self.window_too_large());
        }
        Ok(())
    }

    /// How many bytes stand after the end of the compressed stream; an error where the stream lacks its end. To be asked at the end.
    pub fn bytes_after_stream(self) -> Result<usize, InflateError> {
        let rest = match self.source {
            Source::Plain(rest) => rest,
            Source::Gzip(members) => members.rest(),
            Source::Snappy(decoder) => decoder.rest(),
            Source::Lz4(decoder) => {
                let (rest, complete) = decoder.finish();
                complete.map_err(|_| InflateError::Corrupt {
                    codec: self.codec,
                    reason: "the frame has no end".to_owned(),
                })?;
                rest.rest()
            }
            Source::Zstd(members) => members.rest(),
        };
        Ok(rest.len())
    }

    #[cold]
    fn refill(&mut self, wanted_bytes: usize) -> Result<(), InflateError> {
        assert!(wanted_bytes <= self.buffer.len(), "more than a buffer");
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        while self.end < wanted_bytes && !self.is_source_at_end {
            let room_bytes = self.buffer.len() - self.end;
            let read = self.source.read(&mut self.buffer[self.end..]);
            let read_bytes = read.map_err(|error| match error {
                SourceError::Snappy(SnappyError::TooLarge) => self.too_large(),
                SourceError::Snappy(SnappyError::HoldsTooMuch) => self.window_too_large(),
                SourceError::Snappy(SnappyError::Corrupt(reason)) => self.corrupt(reason),
                SourceError::Codec(error) => self.corrupt(error),
            })?;
            self.is_source_at_end = read_bytes == 0;
            self.end += read_bytes;
            self.inflated_bytes += read_bytes;
            let taken_bytes = self.source.take_taken_bytes();
            self.work_bytes += read_bytes
                .max(INFLATE_READ_WORK_BYTES)
                .max(INFLATE_INPUT_WORK * taken_bytes);
            self.short_read_count +=
                usize::from(read_bytes < room_bytes.min(INFLATE_READ_WORK_BYTES));
            let short_reads_max =
                INFLATE_SHORT_READS_MAX + self.inflated_bytes / INFLATE_READ_WORK_BYTES;
            if self.short_read_count > short_reads_max {
                return Err(self.corrupt("it is in too many small parts"));
            }
            if self.inflated_bytes > self.bounds.inflated_bytes_max {
                return Err(self.too_large());
            }
            if self.inflated_bytes > self.bounds.window_bytes_max
                && self.source.window_bytes() > self.bounds.window_bytes_max
            {
                return Err(self.window_too_large());
            }
        }
        Ok(())
    }

    fn corrupt(&self, reason: impl ToString) -> InflateError {
        InflateError::Corrupt {
            codec: self.codec,
            reason: reason.to_string(),
        }
    }

    fn too_large(&self) -> InflateError {
        InflateError::TooLarge {
            codec: self.codec,
            inflated_bytes_max: self.bounds.inflated_bytes_max,
        }
    }

    fn window_too_large(&self) -> InflateError {
        InflateError::WindowTooLarge {
            codec: self.codec,
            window_bytes_max: self.bounds.window_bytes_max,
        }
    }
}
