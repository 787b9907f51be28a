//! Reads partitions back whole and audits every record.

use std::collections::{BTreeMap, BTreeSet};

use super::reader::{ReadPlan, Reader};
use crate::audit::{AuditFindings, PartitionAudit};
use crate::client::batches::whole_batches;
use crate::client::error::ClientError;
use crate::live::Live;
use crate::producer::ledger::Ledger;
use crate::record::{ProducerNumber, RunId};

/// Audits the partitions of `plan`, each from its position to its end; of `lost` producers there are no ledgers. None: stopped before the end.
pub fn verify(
    plan: ReadPlan,
    run: RunId,
    message_bytes: u64,
    ledgers: &[Ledger],
    lost: &BTreeSet<ProducerNumber>,
    live: &Live,
) -> Result<Option<AuditFindings>, ClientError> {
    let topic = plan.topic.clone();
    let mut audits: BTreeMap<usize, PartitionAudit> = plan
        .positions
        .iter()
        .map(|position| {
            (
                position.partition,
                PartitionAudit::new(
                    run,
                    &topic,
                    position.partition,
                    ledgers,
                    position.next_offset,
                )
                .without(lost),
            )
        })
        .collect();
    let mut reader = Reader::open(plan)?;
    loop {
        if live.is_stopped() {
            return Ok(None);
        }
        let step = reader.step(|fetched| {
            let Some(audit) = audits.get_mut(&fetched.partition) else {
                return;
            };
            for batch in whole_batches(fetched.records) {
                audit.batch(&batch);
                Live::add(&live.consumed_records, batch.record_count.max(0) as u64);
                Live::add(
                    &live.consumed_bytes,
                    batch.record_count.max(0) as u64 * message_bytes,
                );
            }
        });
        match step {
            Ok(true) => {}
            Ok(false) => break,
            // What the broker answers but nobody can read is the log's fault, not the connection's.
            Err(error @ (ClientError::Protocol { .. } | ClientError::Refused { .. })) => {
                audits
                    .values_mut()
                    .for_each(|audit| audit.unreadable(error.to_string()));
                break;
            }
            Err(error) => return Err(error),
        }
    }
    let mut findings = AuditFindings::default();
    audits
        .into_values()
        .for_each(|audit| findings.merge(audit.finish()));
    Ok(Some(findings))
}
