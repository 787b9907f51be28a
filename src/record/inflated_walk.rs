//! Walking the records of a compressed batch without keeping them: keys and values are passed over as they are inflated.

use crate::model::limits::INFLATE_BUFFER_BYTES;

use super::compression::Codec;
use super::inflate_bounds::InflateBounds;
use super::inflater::{InflateError, Inflater};
use super::invalid_batch::InvalidBatch;
use super::record_checks::{RecordChecks, RecordFacts};
use super::records::{RECORD_HEADER_BYTES_MIN, RecordBody, RecordProblem, check_header_count};
use super::varint;

/// Attributes, timestamp delta, offset delta and length of the key, at their longest.
const RECORD_PREFIX_BYTES_MAX: usize =
    1 + varint::I64_BYTES_MAX + varint::I32_BYTES_MAX + varint::I32_BYTES_MAX;

/// Inflates the records of a batch and has each of them checked. A record that fits into the inflater's buffer is looked at there; of a
/// larger one the fields are read and the rest is skipped. Can stop after any buffer.
pub(super) struct InflatedWalk<'a> {
    inflater: Inflater<'a>,
    /// The record in whose middle the walk is.
    large: Option<LargeRecord>,
}

struct LargeRecord {
    facts: RecordFacts,
    /// What is left of the record.
    left_bytes: usize,
    /// What of that belongs to the field that is passed over.
    skipped_bytes: usize,
    next: Field,
}

/// The field behind the one that is passed over.
#[derive(Clone, Copy)]
enum Field {
    Value,
    HeaderCount,
    HeaderKey { left_count: usize },
    HeaderValue { left_count: usize },
    End,
}

/// Whether a walk has come to the end of the batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Walked {
    Everything,
    SoFar,
}

impl<'a> InflatedWalk<'a> {
    pub fn new(
        codec: Codec,
        compressed: &'a [u8],
        bounds: InflateBounds,
    ) -> Result<Self, InvalidBatch> {
        let inflater = Inflater::new(codec, compressed, bounds).map_err(refused)?;
        Ok(Self {
            inflater,
            large: None,
        })
    }

    /// Goes on until the inflater has done some `work_bytes` more, or to the end.
    pub fn step(
        &mut self,
        checks: &mut RecordChecks,
        work_bytes: usize,
    ) -> Result<Walked, InvalidBatch> {
        let stop_at_bytes = self.inflater.work_bytes().saturating_add(work_bytes);
        loop {
            if let Some(large) = &mut self.large {
                if large.pass(&mut self.inflater, checks)? {
                    checks.check(large.facts)?;
                    self.large = None;
                }
            } else if checks.is_done() {
                return Ok(Walked::Everything);
            } else {
                self.next_record(checks)?;
            }
            if self.inflater.work_bytes() >= stop_at_bytes {
                return Ok(Walked::SoFar);
            }
        }
    }

    /// To be called after everything was walked over: nothing may stand there that no consumer would see.
    pub fn finish(mut self, record_count: i32) -> Result<(), InvalidBatch> {
        if !self.inflater.is_at_end().map_err(refused)? {
            return Err(InvalidBatch::RecordsBehindLast { record_count });
        }
        match self.inflater.bytes_after_stream().map_err(refused)? {
            0 => Ok(()),
            behind_bytes => Err(InvalidBatch::BytesBehindStream { behind_bytes }),
        }
    }

    fn next_record(&mut self, checks: &mut RecordChecks) -> Result<(), InvalidBatch> {
        let inflated = self.inflater.peek(varint::I32_BYTES_MAX).map_err(refused)?;
        let mut rest = inflated;
        let length = varint::read_i32(&mut rest).and_then(|length| usize::try_from(length).ok());
        let length = length.ok_or_else(|| checks.refused(RecordProblem::Length))?;
        let length_bytes = inflated.len() - rest.len();
        self.inflater.consume(length_bytes);
        if length > INFLATE_BUFFER_BYTES {
            self.large = Some(LargeRecord::begin(&mut self.inflater, length, checks)?);
            return Ok(());
        }
        let inflated = self.inflater.peek(length).map_err(refused)?;
        let body = inflated.get(..length);
        let body = body.ok_or_else(|| checks.refused(RecordProblem::Length))?;
        let record = RecordBody::parse(body).map_err(|problem| checks.refused(problem))?;
        checks.check(RecordFacts {
            timestamp_delta: record.timestamp_delta,
            offset_delta: record.offset_delta,
            has_key: record.key.is_some(),
        })?;
        self.inflater.consume(length);
        Ok(())
    }
}

impl LargeRecord {
    fn begin(
        inflater: &mut Inflater<'_>,
        length: usize,
        checks: &RecordChecks,
    ) -> Result<Self, InvalidBatch> {
        let problem = |problem| checks.refused(problem);
        let prefix = inflater.peek(RECORD_PREFIX_BYTES_MAX).map_err(refused)?;
        let (_attributes, mut rest) = prefix
            .split_first()
            .ok_or_else(|| problem(RecordProblem::Prefix))?;
        let timestamp_delta =
            varint::read_i64(&mut rest).ok_or_else(|| problem(RecordProblem::Prefix))?;
        let offset_delta =
            varint::read_i32(&mut rest).ok_or_else(|| problem(RecordProblem::Prefix))?;
        let key_length = varint::read_i32(&mut rest).ok_or_else(|| problem(RecordProblem::Key))?;
        let prefix_bytes = prefix.len() - rest.len();
        inflater.consume(prefix_bytes);
        let left_bytes = length - prefix_bytes;
        Ok(Self {
            facts: RecordFacts {
                timestamp_delta,
                offset_delta,
                has_key: key_length != NULL,
            },
            left_bytes,
            skipped_bytes: nullable(key_length, left_bytes)
                .ok_or_else(|| problem(RecordProblem::Key))?,
            next: Field::Value,
        })
    }

    /// Passes over one buffer at most; true at the record's end.
    fn pass(
        &mut self,
        inflater: &mut Inflater<'_>,
        checks: &RecordChecks,
    ) -> Result<bool, InvalidBatch> {
        if self.skipped_bytes > 0 {
            let inflated_bytes = inflater.peek(1).map_err(refused)?.len();
            if inflated_bytes == 0 {
                return Err(checks.refused(RecordProblem::Length));
            }
            let bytes = inflated_bytes.min(self.skipped_bytes);
            inflater.consume(bytes);
            self.skipped_bytes -= bytes;
            self.left_bytes -= bytes;
            return Ok(false);
        }
        let (problem, next) = match self.next {
            Field::Value => (RecordProblem::Value, Field::HeaderCount),
            Field::HeaderCount => {
                let count = self.read_i32(inflater)?;
                let count = count.and_then(|count| usize::try_from(count).ok());
                let left_count = count
                    .filter(|count| *count <= self.left_bytes / RECORD_HEADER_BYTES_MIN)
                    .ok_or_else(|| checks.refused(RecordProblem::Headers))?;
                check_header_count(left_count).map_err(|problem| checks.refused(problem))?;
                self.next = Field::headers(left_count);
                return Ok(false);
            }
            Field::HeaderKey { left_count } => {
                (RecordProblem::Headers, Field::HeaderValue { left_count })
            }
            Field::HeaderValue { left_count } => {
                (RecordProblem::Headers, Field::headers(left_count - 1))
            }
            Field::End => {
                let left_bytes = self.left_bytes;
                return match left_bytes {
                    0 => Ok(true),
                    _ => Err(checks.refused(RecordProblem::BytesLeft { left_bytes })),
                };
            }
        };
        let may_be_null = !matches!(self.next, Field::HeaderKey { .. });
        let length = self.read_i32(inflater)?;
        let length = length.filter(|length| may_be_null || *length != NULL);
        self.skipped_bytes = length
            .and_then(|length| nullable(length, self.left_bytes))
            .ok_or_else(|| checks.refused(problem))?;
        self.next = next;
        Ok(false)
    }

    /// The next number of the record, if it lies in it whole.
    fn read_i32(&mut self, inflater: &mut Inflater<'_>) -> Result<Option<i32>, InvalidBatch> {
        let inflated = inflater.peek(varint::I32_BYTES_MAX).map_err(refused)?;
        let number = &inflated[..inflated.len().min(self.left_bytes)];
        let mut rest = number;
        let value = varint::read_i32(&mut rest);
        let value_bytes = number.len() - rest.len();
        inflater.consume(value_bytes);
        self.left_bytes -= value_bytes;
        Ok(value)
    }
}

impl Field {
    fn headers(left_count: usize) -> Self {
        match left_count {
            0 => Self::End,
            left_count => Self::HeaderKey { left_count },
        }
    }
}

/// The length of a key or value that is null.
const NULL: i32 = -1;

/// How many bytes a field of this length takes, if there are as many.
fn nullable(length: i32, left_bytes: usize) -> Option<usize> {
    match length {
        NULL => Some(0),
        length => usize::try_from(length).ok().filter(|it| *it <= left_bytes),
    }
}

fn refused(error: InflateError) -> InvalidBatch {
    match error {
        InflateError::TooLarge {
            inflated_bytes_max, ..
        } => InvalidBatch::InflatesTooLarge { inflated_bytes_max },
        InflateError::WindowTooLarge {
            window_bytes_max, ..
        } => InvalidBatch::InflatingTakesTooMuch { window_bytes_max },
        error => InvalidBatch::Inflate(error),
    }
}
