//! The checks that a producer's batch must pass before it is appended.

use crate::model::limits::RECORD_BATCH_HEADER_BYTES;
use crate::model::{LeaderEpoch, Offset, ProducerEpoch, ProducerId, Sequence, TimestampMs};

use super::compression::Codec;
use super::crc::crc32c_append;
use super::header::{self, CRC_COVERS_FROM, HeaderError, RecordBatchHeader, TimestampType};
use super::inflate_bounds::InflateBounds;
use super::inflated_walk::{InflatedWalk, Walked};
use super::invalid_batch::InvalidBatch;
use super::record_checks::{RecordChecks, RecordFacts, check_timestamp};
use super::records::{RecordBody, split_record};

/// How far the broker looks into batches that are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordValidation {
    /// Their records are inflated and looked at one by one, as those of other batches are.
    Full,
    /// Only their headers are looked at, but for batches of compacted topics: what the records are is left to the producers.
    Header,
}

/// What a topic asks of the batches that it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValidationRules {
    /// `max.message.bytes`: the largest batch, header included.
    pub batch_bytes_max: usize,
    /// `message.timestamp.type`
    pub timestamp_type: TimestampType,
    /// `message.timestamp.before.max.ms`
    pub timestamp_before_max_ms: i64,
    /// `message.timestamp.after.max.ms`
    pub timestamp_after_max_ms: i64,
    /// `cleanup.policy` has `compact`: a record without a key could never be compacted.
    pub is_compacted: bool,
    /// `corelog.record.validation`
    pub records: RecordValidation,
}

/// Who sent a batch, where it came from an idempotent producer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchProducer {
    pub id: ProducerId,
    pub epoch: ProducerEpoch,
    pub base_sequence: Sequence,
}

/// A batch that passed. The bytes themselves stay where they are; the header here is the one to store in front of the records, once
/// [`ValidBatch::stamped_header`] has put in what the broker decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValidBatch {
    /// As it will be stored, but for base offset and leader epoch, which are still the producer's.
    pub header: RecordBatchHeader,
    pub codec: Codec,
    pub producer: Option<BatchProducer>,
    bytes: [u8; RECORD_BATCH_HEADER_BYTES],
}

impl ValidBatch {
    pub fn size_bytes(&self) -> usize {
        self.header.size_bytes()
    }

    pub fn record_count(&self) -> i32 {
        self.header.record_count
    }

    pub fn max_timestamp(&self) -> TimestampMs {
        self.header.max_timestamp
    }

    /// The time that the broker stamped, if the topic stamps: what a produce response calls its log append time.
    pub fn log_append_time(&self) -> Option<TimestampMs> {
        (self.header.attributes.timestamp_type() == TimestampType::LogAppendTime)
            .then_some(self.header.max_timestamp)
    }

    /// The header to store: it replaces the first 61 bytes of the batch.
    pub fn stamped_header(
        &self,
        base_offset: Offset,
        leader_epoch: LeaderEpoch,
    ) -> [u8; RECORD_BATCH_HEADER_BYTES] {
        let mut bytes = self.bytes;
        header::stamp(&mut bytes, base_offset, leader_epoch);
        bytes
    }
}

/// Checks `field`, the whole `records` field of one partition in a produce request: it must be one batch that `rules` allow.
///
/// Costs one pass of the CRC and a walk over the records, which are inflated for it where they are compressed. [`Validation`] does the
/// same in steps.
pub fn validate(
    field: &[u8],
    rules: &ValidationRules,
    now: TimestampMs,
) -> Result<ValidBatch, InvalidBatch> {
    let mut validation = Validation::begin(field, *rules, InflateBounds::WIDEST, now)?;
    loop {
        if let Some(valid) = validation.step(usize::MAX)? {
            return Ok(valid);
        }
    }
}

/// The same, if it costs no more than `work_bytes`, of which what was done is taken off; else `None`.
pub fn validate_within(
    field: &[u8],
    rules: ValidationRules,
    now: TimestampMs,
    work_bytes: &mut usize,
) -> Result<Option<ValidBatch>, InvalidBatch> {
    if needed_bytes(field).is_none_or(|needed_bytes| needed_bytes > *work_bytes) {
        return Ok(None);
    }
    // Nothing is inflated here.
    let mut validation = Validation::begin(field, rules, InflateBounds::WIDEST, now)?;
    let valid = validation.step(*work_bytes)?;
    *work_bytes = work_bytes.saturating_sub(validation.done_bytes);
    Ok(valid)
}

/// What [`validate`] will cost at the least for this field, in bytes of its CRC: what headers its records have is not known before. `None`
/// where the records are compressed, since nothing tells what they inflate to.
fn needed_bytes(field: &[u8]) -> Option<usize> {
    match RecordBatchHeader::parse(field) {
        Ok(header) if header.attributes.codec() == Ok(Codec::None) => {
            let record_count = usize::try_from(header.record_count).unwrap_or(0);
            // There cannot be more than bytes.
            let record_count = record_count.min(field.len());
            Some(field.len() + record_count * RECORD_WORK_BYTES)
        }
        Ok(header) if header.attributes.codec().is_ok() => None,
        _ => Some(field.len()),
    }
}

/// What a look at one record costs, in bytes of a CRC: some 8 ns against 0.2.
const RECORD_WORK_BYTES: usize = 32;

/// And one at a header of it.
const RECORD_HEADER_WORK_BYTES: usize = 16;

/// The check of one batch in steps, so that a large one does not keep others waiting. Holds no more than a codec and its buffer.
pub struct Validation<'a> {
    field: &'a [u8],
    rules: ValidationRules,
    bounds: InflateBounds,
    now: TimestampMs,
    header: RecordBatchHeader,
    stage: Stage<'a>,
    /// What was done of the work, but for what was inflated.
    done_bytes: usize,
}

enum Stage<'a> {
    /// The CRC of the first `summed_bytes` that it covers.
    Crc {
        crc: u32,
        summed_bytes: usize,
    },
    Plain {
        batch: ValidBatch,
        checks: RecordChecks,
        rest: &'a [u8],
    },
    Inflated {
        batch: ValidBatch,
        checks: RecordChecks,
        walk: Box<InflatedWalk<'a>>,
    },
    Ended,
}

impl<'a> Validation<'a> {
    pub fn begin(
        field: &'a [u8],
        rules: ValidationRules,
        bounds: InflateBounds,
        now: TimestampMs,
    ) -> Result<Self, InvalidBatch> {
        let header = check_length(field, &rules)?;
        let stage = Stage::Crc {
            crc: 0,
            summed_bytes: 0,
        };
        Ok(Self {
            field,
            rules,
            bounds,
            now,
            header,
            stage,
            done_bytes: 0,
        })
    }

    /// Does the next `work_bytes` of the work, about, where a byte is one of the CRC or of what is inflated; gives the batch once it has passed.
    pub fn step(&mut self, work_bytes: usize) -> Result<Option<ValidBatch>, InvalidBatch> {
        match std::mem::replace(&mut self.stage, Stage::Ended) {
            Stage::Crc { crc, summed_bytes } => self.step_crc(crc, summed_bytes, work_bytes),
            Stage::Plain {
                batch,
                mut checks,
                mut rest,
            } => match self.hop_over_records(&mut rest, &mut checks, work_bytes)? {
                Walked::SoFar => {
                    self.stage = Stage::Plain {
                        batch,
                        checks,
                        rest,
                    };
                    Ok(None)
                }
                Walked::Everything if !rest.is_empty() => Err(InvalidBatch::BytesBehindRecords {
                    record_count: batch.header.record_count,
                    behind_bytes: rest.len(),
                }),
                Walked::Everything => Ok(Some(self.stamped(batch, checks.finish()?))),
            },
            Stage::Inflated {
                batch,
                mut checks,
                mut walk,
            } => match walk.step(&mut checks, work_bytes)? {
                Walked::SoFar => {
                    self.stage = Stage::Inflated {
                        batch,
                        checks,
                        walk,
                    };
                    Ok(None)
                }
                Walked::Everything => {
                    walk.finish(checks.record_count())?;
                    Ok(Some(self.stamped(batch, checks.finish()?)))
                }
            },
            Stage::Ended => panic!("a check that has ended is not continued"),
        }
    }

    fn step_crc(
        &mut self,
        crc: u32,
        summed_bytes: usize,
        work_bytes: usize,
    ) -> Result<Option<ValidBatch>, InvalidBatch> {
        let covered = &self.field[CRC_COVERS_FROM..self.header.size_bytes()];
        let to = covered.len().min(summed_bytes.saturating_add(work_bytes));
        let crc = crc32c_append(crc, &covered[summed_bytes..to]);
        self.done_bytes += to - summed_bytes;
        if to < covered.len() {
            self.stage = Stage::Crc {
                crc,
                summed_bytes: to,
            };
            return Ok(None);
        }
        let batch = check_header(self.field, self.header, crc)?;
        let rest = &self.field[RECORD_BATCH_HEADER_BYTES..];
        let checks = RecordChecks::new(&batch.header, self.rules, self.now);
        self.stage = match batch.codec {
            Codec::None => Stage::Plain {
                batch,
                checks,
                rest,
            },
            // A record of a compacted topic must have a key, so somebody must look.
            codec if self.rules.records == RecordValidation::Full || self.rules.is_compacted => {
                Stage::Inflated {
                    batch,
                    checks,
                    walk: Box::new(InflatedWalk::new(codec, rest, self.bounds)?),
                }
            }
            _ => {
                let max_timestamp = self.header.max_timestamp;
                if self.rules.timestamp_type == TimestampType::CreateTime {
                    check_timestamp(max_timestamp, None, &self.rules, self.now)?;
                }
                return Ok(Some(self.stamped(batch, max_timestamp)));
            }
        };
        match work_bytes - (to - summed_bytes) {
            0 => Ok(None),
            left_bytes => self.step(left_bytes),
        }
    }

    /// Checks records of an uncompressed batch, at least one, as many as some `work_bytes` do for.
    fn hop_over_records(
        &mut self,
        rest: &mut &[u8],
        checks: &mut RecordChecks,
        work_bytes: usize,
    ) -> Result<Walked, InvalidBatch> {
        let mut done_bytes = 0;
        let walked = loop {
            if checks.is_done() {
                break Walked::Everything;
            }
            if done_bytes > 0 && done_bytes + RECORD_WORK_BYTES > work_bytes {
                break Walked::SoFar;
            }
            let body = split_record(rest).map_err(|problem| checks.refused(problem))?;
            let record = RecordBody::parse(body).map_err(|problem| checks.refused(problem))?;
            checks.check(RecordFacts {
                timestamp_delta: record.timestamp_delta,
                offset_delta: record.offset_delta,
                has_key: record.key.is_some(),
            })?;
            done_bytes += RECORD_WORK_BYTES + record.headers.len() * RECORD_HEADER_WORK_BYTES;
        };
        self.done_bytes += done_bytes;
        Ok(walked)
    }

    /// With what the broker decides of its timestamps. A wrong max timestamp is put right, as Kafka does: the time index is built on it.
    fn stamped(&self, mut batch: ValidBatch, max_timestamp: TimestampMs) -> ValidBatch {
        let timestamp_type = self.rules.timestamp_type;
        let stored_max = match timestamp_type {
            TimestampType::CreateTime => max_timestamp,
            TimestampType::LogAppendTime => self.now,
        };
        if stored_max != batch.header.max_timestamp
            || timestamp_type == TimestampType::LogAppendTime
        {
            header::stamp_timestamps(&mut batch.bytes, timestamp_type, stored_max);
            batch.header = RecordBatchHeader::from_array(&batch.bytes)
                .expect("a stamp leaves the shape of a header");
        }
        batch
    }
}

/// The header, if the field is as long as it says, and no longer than is allowed.
fn check_length(field: &[u8], rules: &ValidationRules) -> Result<RecordBatchHeader, InvalidBatch> {
    if field.is_empty() {
        return Err(InvalidBatch::Empty);
    }
    let header = RecordBatchHeader::parse(field).map_err(|error| match error {
        HeaderError::TooShort { .. } => InvalidBatch::TooShort {
            field_bytes: field.len(),
        },
        HeaderError::Length { batch_length } => InvalidBatch::Length {
            batch_length,
            field_bytes: field.len(),
        },
        HeaderError::Magic {
            magic: magic @ (0 | 1),
        } => InvalidBatch::OldMagic { magic },
        HeaderError::Magic { magic } => InvalidBatch::UnknownMagic { magic },
    })?;
    let batch_bytes = header.size_bytes();
    if batch_bytes > field.len() {
        return Err(InvalidBatch::Length {
            batch_length: header.batch_length,
            field_bytes: field.len(),
        });
    }
    if batch_bytes > rules.batch_bytes_max {
        return Err(InvalidBatch::TooLarge {
            batch_bytes,
            batch_bytes_max: rules.batch_bytes_max,
        });
    }
    Ok(header)
}

/// Everything else that needs no look at the single records.
fn check_header(
    field: &[u8],
    header: RecordBatchHeader,
    computed: u32,
) -> Result<ValidBatch, InvalidBatch> {
    let batch_bytes = header.size_bytes();
    // The CRC before everything that believes the bytes: a length that lies comes out here, not as a second batch.
    if computed != header.crc {
        return Err(InvalidBatch::Crc {
            declared: header.crc,
            computed,
        });
    }
    if field.len() > batch_bytes {
        return Err(InvalidBatch::BytesBehindBatch {
            batch_bytes,
            behind_bytes: field.len() - batch_bytes,
        });
    }
    let codec = header.attributes.codec()?;
    if header.attributes.is_control() {
        return Err(InvalidBatch::Control);
    }
    if header.attributes.is_transactional() {
        return Err(InvalidBatch::Transactional);
    }
    if header.attributes.has_delete_horizon() {
        return Err(InvalidBatch::DeleteHorizon);
    }
    if header.attributes.timestamp_type() == TimestampType::LogAppendTime {
        return Err(InvalidBatch::LogAppendTimeFromClient);
    }
    let RecordBatchHeader {
        record_count,
        last_offset_delta,
        ..
    } = header;
    if record_count < 1 || record_count - 1 != last_offset_delta {
        return Err(InvalidBatch::Count {
            record_count,
            last_offset_delta,
        });
    }
    let producer = check_producer(&header)?;
    let bytes = *field
        .first_chunk()
        .expect("a header was parsed from these bytes");
    Ok(ValidBatch {
        header,
        codec,
        producer,
        bytes,
    })
}

/// Without a producer id, epoch and sequence mean nothing: KafkaJS sends 0 for both, librdkafka and Java -1.
fn check_producer(header: &RecordBatchHeader) -> Result<Option<BatchProducer>, InvalidBatch> {
    let RecordBatchHeader {
        producer_id: id,
        producer_epoch: epoch,
        base_sequence,
        ..
    } = *header;
    if id == ProducerId::NONE {
        return Ok(None);
    }
    if id.0 < 0 || epoch.0 < 0 || base_sequence.0 < 0 {
        return Err(InvalidBatch::Producer {
            id,
            epoch,
            base_sequence,
        });
    }
    Ok(Some(BatchProducer {
        id,
        epoch,
        base_sequence,
    }))
}
