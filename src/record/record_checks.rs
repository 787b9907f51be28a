//! What each record of a produced batch must satisfy, whether the batch is compressed or not.

use crate::model::TimestampMs;
use crate::model::limits::RECORD_ERRORS_MAX;

use super::header::{RecordBatchHeader, TimestampType};
use super::invalid_batch::InvalidBatch;
use super::records::RecordProblem;
use super::validate::ValidationRules;

/// What is asked of a record beside that it is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecordFacts {
    pub timestamp_delta: i64,
    pub offset_delta: i32,
    pub has_key: bool,
}

/// Judges the records of one batch in their order.
pub(super) struct RecordChecks {
    rules: ValidationRules,
    now: TimestampMs,
    base_timestamp: TimestampMs,
    record_count: i32,
    next_index: i32,
    max_timestamp: TimestampMs,
    null_keys: Vec<i32>,
}

impl RecordChecks {
    pub fn new(header: &RecordBatchHeader, rules: ValidationRules, now: TimestampMs) -> Self {
        Self {
            rules,
            now,
            base_timestamp: header.base_timestamp,
            record_count: header.record_count,
            next_index: 0,
            max_timestamp: TimestampMs(i64::MIN),
            null_keys: Vec::new(),
        }
    }

    pub fn record_count(&self) -> i32 {
        self.record_count
    }

    /// Whether all records were seen that the batch declares.
    #[inline]
    pub fn is_done(&self) -> bool {
        self.next_index >= self.record_count
    }

    #[cold]
    pub fn refused(&self, problem: RecordProblem) -> InvalidBatch {
        InvalidBatch::Record {
            index: self.next_index,
            problem,
        }
    }

    /// Takes the next record.
    #[inline]
    pub fn check(&mut self, record: RecordFacts) -> Result<(), InvalidBatch> {
        let index = self.next_index;
        let RecordFacts {
            timestamp_delta,
            offset_delta,
            has_key,
        } = record;
        if offset_delta != index {
            return Err(self.refused(RecordProblem::OffsetDelta { offset_delta }));
        }
        // The walk continues after a record without a key, since the answer names them all.
        if self.rules.is_compacted && !has_key && self.null_keys.len() < RECORD_ERRORS_MAX {
            self.null_keys.push(index);
        }
        let timestamp = self.base_timestamp.0.checked_add(timestamp_delta);
        let timestamp = timestamp.map(TimestampMs);
        let timestamp = timestamp.ok_or_else(|| self.refused(RecordProblem::Timestamp))?;
        if self.rules.timestamp_type == TimestampType::CreateTime {
            check_timestamp(timestamp, Some(index), &self.rules, self.now)?;
        }
        self.max_timestamp = self.max_timestamp.max(timestamp);
        self.next_index += 1;
        Ok(())
    }

    /// The largest timestamp, once all records have passed.
    pub fn finish(self) -> Result<TimestampMs, InvalidBatch> {
        match self.null_keys {
            indexes if indexes.is_empty() => Ok(self.max_timestamp),
            indexes => Err(InvalidBatch::NullKeys { indexes }),
        }
    }
}

pub(super) fn check_timestamp(
    timestamp: TimestampMs,
    index: Option<i32>,
    rules: &ValidationRules,
    now: TimestampMs,
) -> Result<(), InvalidBatch> {
    let ahead_ms = timestamp.0.saturating_sub(now.0);
    let behind_ms = now.0.saturating_sub(timestamp.0);
    let is_in_range =
        ahead_ms <= rules.timestamp_after_max_ms && behind_ms <= rules.timestamp_before_max_ms;
    if timestamp == TimestampMs::NONE || is_in_range {
        return Ok(());
    }
    Err(InvalidBatch::Timestamp {
        index,
        timestamp,
        now,
        before_max_ms: rules.timestamp_before_max_ms,
        after_max_ms: rules.timestamp_after_max_ms,
    })
}
