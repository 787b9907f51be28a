//! The check of batches that takes long: in steps, after which others have their turn, one batch of a partition after the other.

use std::rc::Rc;

use bytes::Bytes;

use crate::config::{self, TopicConfig};
use crate::io::executor;
use crate::model::limits::{CHECK_FIRST_STEP_BYTES, CHECK_STEP_BYTES, OWN_BATCH_BYTES_MAX};
use crate::partition::leader::CheckedBatch;
use crate::record::validate::Validation;
use crate::record::{RecordValidation, TimestampType, ValidationRules};
use crate::shard::command::PartitionError;
use crate::shard::hosted::HostedPartition;
use crate::shard::parked::{BatchSource, UncheckedBatch};
use crate::shard::runtime::Shard;

/// What is asked of a batch that the broker wrote: nothing but that it is one.
const OWN_BATCHES: ValidationRules = ValidationRules {
    batch_bytes_max: OWN_BATCH_BYTES_MAX,
    timestamp_type: TimestampType::CreateTime,
    timestamp_before_max_ms: i64::MAX,
    timestamp_after_max_ms: i64::MAX,
    is_compacted: true,
    records: RecordValidation::Full,
};

impl Shard {
    /// Has the batches checked that wait for it, if nobody does yet. What takes no longer than a step is appended within this call.
    pub(super) fn check_parked(self: &Rc<Self>, partition: &Rc<HostedPartition>) {
        if !partition.parked.begin_check() {
            return;
        }
        let (shard, partition) = (self.clone(), partition.clone());
        executor::spawn_local(async move {
            while let Some(UncheckedBatch {
                records,
                source,
                token,
            }) = partition.parked.next_unchecked()
            {
                match shard.check_in_steps(&partition, records, source).await {
                    Ok(batch) => shard.append_or_put_back(&partition, batch, token),
                    Err(why) => {
                        shard.refuse_append(token, why.clone());
                        // It passes: what came later must not be appended before this one is sent again.
                        if matches!(why, PartitionError::NoRoom(_)) {
                            shard.refuse_parked(&partition, &why);
                        }
                    }
                }
            }
            shard.prepare(&partition);
        })
        .detach();
    }

    /// The batch, if it passed and may be appended now.
    async fn check_in_steps(
        &self,
        partition: &HostedPartition,
        records: Bytes,
        source: BatchSource,
    ) -> Result<CheckedBatch, PartitionError> {
        let mut slot = None;
        loop {
            let rules = rules_for(&partition.config.get(), source);
            let mut validation =
                Validation::begin(&records, rules, self.inflate_bounds(), self.clock().now())
                    .map_err(PartitionError::InvalidBatch)?;
            let mut step_bytes = CHECK_FIRST_STEP_BYTES;
            loop {
                executor::yield_if_needed().await;
                self.check_takes(partition, source)?;
                let passed = validation
                    .step(step_bytes)
                    .map_err(PartitionError::InvalidBatch)?;
                if let Some(valid) = passed {
                    return Ok(CheckedBatch::of(valid, records.clone()));
                }
                step_bytes = CHECK_STEP_BYTES;
                if slot.is_none() {
                    slot = self.check_slots().try_take();
                }
                if slot.is_none() {
                    break;
                }
            }
            // What waits for a slot holds nothing meanwhile: it begins anew.
            drop(validation);
            slot = Some(self.check_slots().take().await);
        }
    }
}

pub(super) fn rules_for(config: &TopicConfig, source: BatchSource) -> ValidationRules {
    if source == BatchSource::Broker {
        return OWN_BATCHES;
    }
    let limit_ms = |ms: u64| i64::try_from(ms).unwrap_or(i64::MAX);
    ValidationRules {
        batch_bytes_max: config.max_message_bytes,
        timestamp_type: match config.message_timestamp_type {
            config::TimestampType::CreateTime => TimestampType::CreateTime,
            config::TimestampType::LogAppendTime => TimestampType::LogAppendTime,
        },
        timestamp_before_max_ms: limit_ms(config.message_timestamp_before_max_ms),
        timestamp_after_max_ms: limit_ms(config.message_timestamp_after_max_ms),
        is_compacted: config.cleanup_policy.compact,
        records: match config.record_validation {
            config::RecordValidation::Full => RecordValidation::Full,
            config::RecordValidation::Header => RecordValidation::Header,
        },
    }
}
