//! The proof at a run's end that what was confirmed is there.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use super::Run;
use crate::audit::AuditFindings;
use crate::cli::AuditArg;
use crate::client::error::ClientError;
use crate::consumer::{plans, verify};
use crate::live::Live;
use crate::producer::ledger::Ledger;
use crate::progress::Extent;
use crate::report::{AuditOutcome, AuditReport};

const TICK: Duration = Duration::from_millis(50);

fn name(mode: AuditArg) -> &'static str {
    match mode {
        AuditArg::Full => "full",
        AuditArg::Watermark => "watermark",
        AuditArg::Off => "off",
    }
}

/// What the report says if the run did not get as far as its audit.
pub fn not_run(mode: AuditArg) -> AuditReport {
    AuditReport {
        mode: name(mode),
        outcome: AuditOutcome::NotRun,
        records_acked: 0,
        offsets_advanced: None,
        failure: None,
        findings: None,
    }
}

impl Run<'_> {
    /// `starts` and `ends`: this run's stretch of each partition.
    pub(super) fn prove(
        &mut self,
        ledgers: &[Ledger],
        starts: &[i64],
        ends: &[i64],
    ) -> AuditReport {
        let records_acked: u64 = ledgers
            .iter()
            .flat_map(|ledger| &ledger.streams)
            .map(|stream| stream.acked_count())
            .sum();
        let advanced: i64 = starts
            .iter()
            .zip(ends)
            .map(|(start, end)| end - start)
            .sum();
        let mut report = AuditReport {
            records_acked,
            offsets_advanced: Some(advanced),
            ..not_run(self.arguments.audit)
        };
        match self.arguments.audit {
            AuditArg::Off => {}
            AuditArg::Watermark if advanced >= records_acked as i64 => {
                report.outcome = AuditOutcome::Passed
            }
            AuditArg::Watermark => report.outcome = AuditOutcome::Failed,
            AuditArg::Full => match self.read_back(ledgers, starts, ends, advanced) {
                Ok(Some(findings)) => {
                    report.outcome = if findings.anomalies.is_empty() {
                        AuditOutcome::Passed
                    } else {
                        AuditOutcome::Failed
                    };
                    report.findings = Some(findings);
                }
                Ok(None) => report.outcome = AuditOutcome::Incomplete,
                Err(error) => {
                    report.outcome = AuditOutcome::Incomplete;
                    report.failure = Some(error.to_string());
                }
            },
        }
        report
    }

    /// None: ended early.
    fn read_back(
        &mut self,
        ledgers: &[Ledger],
        starts: &[i64],
        ends: &[i64],
        records: i64,
    ) -> Result<Option<AuditFindings>, ClientError> {
        let ranges: Vec<_> = starts.iter().copied().zip(ends.iter().copied()).collect();
        // The bar counts records where another phase counts time.
        self.progress
            .phase("audit", Some(Extent::Count(records.max(1) as u64)));
        let live = Arc::new(Live::default());
        let (id, message_bytes) = (self.id, self.plan.message_bytes as u64);
        let results: Vec<_> = thread::scope(|scope| {
            let mut readers = Vec::new();
            for (number, plan) in plans(&self.topic, self.readers(), &ranges, self.plan.fetch)
                .into_iter()
                .enumerate()
            {
                let live = Arc::clone(&live);
                let body = move || verify(plan, id, message_bytes, ledgers, &live);
                let thread = thread::Builder::new()
                    .name(format!("audit-{number}"))
                    .spawn_scoped(scope, body);
                readers.push(thread.expect("the system has room for a thread"));
            }
            while !readers.iter().all(|reader| reader.is_finished()) {
                thread::sleep(TICK);
                if self.interrupt.is_asked() {
                    live.stop();
                }
                let read = live.totals().consumed_records;
                self.progress.at(
                    Extent::Count(read),
                    &format!("{read} of {records} records read back"),
                );
            }
            readers
                .into_iter()
                .map(|reader| reader.join().expect("an auditor does not panic"))
                .collect()
        });
        let mut findings = AuditFindings::default();
        for result in results {
            match result? {
                Some(part) => findings.merge(part),
                None => return Ok(None),
            }
        }
        // A partition that holds nothing is not read, but what was confirmed for it must be there all the same.
        for (partition, (start, end)) in ranges.into_iter().enumerate() {
            if start >= end {
                findings.merge(
                    crate::audit::PartitionAudit::new(id, partition, ledgers, start).finish(),
                );
            }
        }
        Ok(Some(findings))
    }
}
