//! Walking the records inside a batch.

use crate::model::limits::{INFLATE_BUFFER_BYTES, RECORD_BATCH_HEADER_BYTES, RECORD_HEADERS_MAX};
use crate::model::{Offset, TimestampMs};

use super::compression::{Codec, UnknownCodec};
use super::header::{HeaderError, RecordBatchHeader, TimestampType};
use super::inflate_bounds::InflateBounds;
use super::inflater::{InflateError, Inflater};
use super::varint;

/// The smallest header of a record: an empty key and no value.
pub(super) const RECORD_HEADER_BYTES_MIN: usize = 2;

/// Why bytes are no record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordProblem {
    #[error("its length is cut short, negative or reaches past the batch")]
    Length,
    #[error("a field in front of its key is cut short")]
    Prefix,
    #[error("its timestamp overflows")]
    Timestamp,
    #[error("its offset delta is {offset_delta}")]
    OffsetDelta { offset_delta: i32 },
    #[error("its key reaches past its end")]
    Key,
    #[error("its value reaches past its end")]
    Value,
    #[error("its headers reach past its end")]
    Headers,
    #[error("it has {header_count} headers; at most {RECORD_HEADERS_MAX} are allowed")]
    TooManyHeaders { header_count: usize },
    #[error("it has {left_bytes} bytes behind its headers")]
    BytesLeft { left_bytes: usize },
}

/// A record without its length, as varints and bytes:
///
/// ```text
/// | attributes 1 | timestamp delta | offset delta | key length, -1: null | key | value length, -1: null | value |
/// | header count | { key length | key | value length, -1: null | value } ... |
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordBody<'a> {
    pub timestamp_delta: i64,
    pub offset_delta: i32,
    pub key: Option<&'a [u8]>,
    pub value: Option<&'a [u8]>,
    pub headers: RecordHeaders<'a>,
}

impl<'a> RecordBody<'a> {
    /// Reads `body`, which must be exactly one record. Everything is checked, headers too, and nothing copied.
    #[inline]
    pub fn parse(body: &'a [u8]) -> Result<Self, RecordProblem> {
        let (_attributes, mut rest) = body.split_first().ok_or(RecordProblem::Prefix)?;
        let timestamp_delta = varint::read_i64(&mut rest).ok_or(RecordProblem::Prefix)?;
        let offset_delta = varint::read_i32(&mut rest).ok_or(RecordProblem::Prefix)?;
        let key = read_nullable(&mut rest).ok_or(RecordProblem::Key)?;
        let value = read_nullable(&mut rest).ok_or(RecordProblem::Value)?;
        let headers = RecordHeaders::parse(&mut rest)?;
        if !rest.is_empty() {
            return Err(RecordProblem::BytesLeft {
                left_bytes: rest.len(),
            });
        }
        Ok(Self {
            timestamp_delta,
            offset_delta,
            key,
            value,
            headers,
        })
    }
}

/// Takes one whole record, length and body, off the front of `rest`; gives the body.
#[inline]
pub(super) fn split_record<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], RecordProblem> {
    let length = varint::read_i32(rest).ok_or(RecordProblem::Length)?;
    let length = usize::try_from(length).map_err(|_| RecordProblem::Length)?;
    let (body, behind) = rest.split_at_checked(length).ok_or(RecordProblem::Length)?;
    *rest = behind;
    Ok(body)
}

#[inline]
fn read_nullable<'a>(rest: &mut &'a [u8]) -> Option<Option<&'a [u8]>> {
    match varint::read_i32(rest)? {
        -1 => Some(None),
        length => {
            let (bytes, behind) = rest.split_at_checked(usize::try_from(length).ok()?)?;
            *rest = behind;
            Some(Some(bytes))
        }
    }
}

/// The headers of a record, already checked; iterating cannot fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordHeaders<'a> {
    count: usize,
    bytes: &'a [u8],
}

impl<'a> RecordHeaders<'a> {
    #[inline]
    fn parse(rest: &mut &'a [u8]) -> Result<Self, RecordProblem> {
        let count = varint::read_i32(rest).and_then(|count| usize::try_from(count).ok());
        let count = count.filter(|count| *count <= rest.len() / RECORD_HEADER_BYTES_MIN);
        let count = count.ok_or(RecordProblem::Headers)?;
        check_header_count(count)?;
        let bytes = *rest;
        for _ in 0..count {
            read_header(rest).ok_or(RecordProblem::Headers)?;
        }
        Ok(Self { count, bytes })
    }

    pub fn len(&self) -> usize {
        self.count
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub fn iter(&self) -> impl Iterator<Item = (&'a [u8], Option<&'a [u8]>)> + use<'a> {
        let mut rest = self.bytes;
        (0..self.count).map(move |_| {
            read_header(&mut rest).expect("headers were checked when they were parsed")
        })
    }
}

/// Whether a record may have so many.
#[inline]
pub(super) fn check_header_count(header_count: usize) -> Result<(), RecordProblem> {
    if header_count > RECORD_HEADERS_MAX {
        return Err(RecordProblem::TooManyHeaders { header_count });
    }
    Ok(())
}

fn read_header<'a>(rest: &mut &'a [u8]) -> Option<(&'a [u8], Option<&'a [u8]>)> {
    let key = read_nullable(rest)??;
    let value = read_nullable(rest)?;
    Some((key, value))
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordsError {
    #[error(transparent)]
    Header(#[from] HeaderError),
    #[error("a batch of {batch_bytes} bytes is cut to {have_bytes}")]
    CutShort {
        batch_bytes: usize,
        have_bytes: usize,
    },
    #[error(transparent)]
    Codec(#[from] UnknownCodec),
    #[error(transparent)]
    Inflate(#[from] InflateError),
    #[error("record {index} of the batch: {problem}")]
    Record { index: i32, problem: RecordProblem },
    #[error("the batch declares {declared} records and has bytes behind them")]
    BytesBehindRecords { declared: i32 },
}

/// A record with what its batch adds to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    pub offset: Offset,
    pub timestamp: TimestampMs,
    pub key: Option<&'a [u8]>,
    pub value: Option<&'a [u8]>,
    pub headers: RecordHeaders<'a>,
}

/// Goes through the records of one batch, inflating as it goes; holds one record at a time.
pub struct RecordReader<'a> {
    header: RecordBatchHeader,
    source: Source<'a>,
    next_index: i32,
}

enum Source<'a> {
    Plain(&'a [u8]),
    Inflated {
        inflater: Box<Inflater<'a>>,
        /// The length of the next record, once it is known.
        next_length: Option<usize>,
        /// What was inflated of it, if it is larger than the inflater's buffer.
        body: Vec<u8>,
    },
}

impl<'a> RecordReader<'a> {
    /// Starts at the batch at the front of `bytes`. Its CRC is not looked at. Inflating ends with an error at `bounds`, a record that is larger than what
    /// may be held too.
    pub fn new(bytes: &'a [u8], bounds: InflateBounds) -> Result<Self, RecordsError> {
        let header = RecordBatchHeader::parse(bytes)?;
        let body = bytes
            .get(RECORD_BATCH_HEADER_BYTES..header.size_bytes())
            .ok_or(RecordsError::CutShort {
                batch_bytes: header.size_bytes(),
                have_bytes: bytes.len(),
            })?;
        let source = match header.attributes.codec()? {
            Codec::None => Source::Plain(body),
            codec => Source::Inflated {
                inflater: Box::new(Inflater::new(codec, body, bounds)?),
                next_length: None,
                body: Vec::new(),
            },
        };
        Ok(Self {
            header,
            source,
            next_index: 0,
        })
    }

    pub fn header(&self) -> &RecordBatchHeader {
        &self.header
    }

    /// Inflates some `work_bytes` of the next record; true once it can be had without more. Whoever must not hold its core for long, since a
    /// record may be as large as its batch, awaits others in between.
    pub fn inflate_ahead(&mut self, work_bytes: usize) -> Result<bool, RecordsError> {
        if self.next_index >= self.header.record_count {
            return Ok(true);
        }
        self.source.inflate(self.next_index, work_bytes)
    }

    /// The next record as it lies in the batch; `None` behind the last one.
    pub fn next_body(&mut self) -> Result<Option<RecordBody<'_>>, RecordsError> {
        Ok(self.next_encoded()?.map(|(body, _)| body))
    }

    /// The same, with the bytes that it was read from (its length is not among them).
    pub fn next_encoded(&mut self) -> Result<Option<(RecordBody<'_>, &[u8])>, RecordsError> {
        let index = self.next_index;
        if index >= self.header.record_count {
            return match self.source.is_at_end()? {
                true => Ok(None),
                false => Err(RecordsError::BytesBehindRecords {
                    declared: self.header.record_count,
                }),
            };
        }
        self.source.inflate(index, usize::MAX)?;
        self.next_index += 1;
        let problem = |problem| RecordsError::Record { index, problem };
        let body = match &mut self.source {
            Source::Plain(rest) => split_record(rest).map_err(problem)?,
            Source::Inflated {
                inflater,
                next_length,
                body,
            } => match next_length.take() {
                Some(length) if length <= INFLATE_BUFFER_BYTES => inflater.take(length)?,
                _ => body,
            },
        };
        let parsed = RecordBody::parse(body).map_err(problem)?;
        Ok(Some((parsed, body)))
    }

    /// The next record with its offset and timestamp; `None` behind the last one.
    pub fn next_record(&mut self) -> Result<Option<Record<'_>>, RecordsError> {
        let header = self.header;
        let index = self.next_index;
        let Some(body) = self.next_body()? else {
            return Ok(None);
        };
        let timestamp = match header.attributes.timestamp_type() {
            TimestampType::LogAppendTime => header.max_timestamp,
            TimestampType::CreateTime => header
                .base_timestamp
                .0
                .checked_add(body.timestamp_delta)
                .map(TimestampMs)
                .ok_or(RecordsError::Record {
                    index,
                    problem: RecordProblem::Timestamp,
                })?,
        };
        Ok(Some(Record {
            offset: Offset(
                header
                    .base_offset
                    .0
                    .saturating_add(i64::from(body.offset_delta)),
            ),
            timestamp,
            key: body.key,
            value: body.value,
            headers: body.headers,
        }))
    }
}

impl Source<'_> {
    /// Inflates the record of this index until it is there, or some `work_bytes` were done.
    fn inflate(&mut self, index: i32, work_bytes: usize) -> Result<bool, RecordsError> {
        let Self::Inflated {
            inflater,
            next_length,
            body,
        } = self
        else {
            return Ok(true);
        };
        let length = match *next_length {
            Some(length) => length,
            None => {
                let problem = RecordProblem::Length;
                let length = inflated_length(inflater)?;
                let length = length.ok_or(RecordsError::Record { index, problem })?;
                if length > INFLATE_BUFFER_BYTES {
                    inflater.check_held(length)?;
                }
                body.clear();
                *next_length.insert(length)
            }
        };
        if length <= INFLATE_BUFFER_BYTES {
            return Ok(true);
        }
        Ok(inflater.append_to(body, length, work_bytes)?)
    }

    fn is_at_end(&mut self) -> Result<bool, InflateError> {
        match self {
            Self::Plain(rest) => Ok(rest.is_empty()),
            Self::Inflated { inflater, .. } => inflater.is_at_end(),
        }
    }
}

fn inflated_length(inflater: &mut Inflater<'_>) -> Result<Option<usize>, InflateError> {
    let codec = inflater.codec();
    let inflated = inflater.peek(varint::I32_BYTES_MAX)?;
    let mut rest = inflated;
    let Some(length) = varint::read_i32(&mut rest) else {
        return match inflated.len() < varint::I32_BYTES_MAX {
            true => Err(InflateError::CutShort { codec }),
            false => Ok(None),
        };
    };
    let length_bytes = inflated.len() - rest.len();
    inflater.consume(length_bytes);
    Ok(usize::try_from(length).ok())
}

/// The first record of the batch whose timestamp is `timestamp` or later.
pub fn first_at_or_after(
    bytes: &[u8],
    timestamp: TimestampMs,
    bounds: InflateBounds,
) -> Result<Option<(Offset, TimestampMs)>, RecordsError> {
    let mut reader = RecordReader::new(bytes, bounds)?;
    while let Some(record) = reader.next_record()? {
        if record.timestamp >= timestamp {
            return Ok(Some((record.offset, record.timestamp)));
        }
    }
    Ok(None)
}

/// The record of the batch with the largest timestamp, the first of several. `None`: the batch has no records.
pub fn first_of_max_timestamp(
    bytes: &[u8],
    bounds: InflateBounds,
) -> Result<Option<(Offset, TimestampMs)>, RecordsError> {
    let mut reader = RecordReader::new(bytes, bounds)?;
    let mut found: Option<(Offset, TimestampMs)> = None;
    while let Some(record) = reader.next_record()? {
        if found.is_none_or(|(_, max)| record.timestamp > max) {
            found = Some((record.offset, record.timestamp));
        }
    }
    Ok(found)
}
