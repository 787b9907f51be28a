//! The proof at a run's end that what was confirmed is there.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use super::Run;
use super::topics::Stretch;
use crate::audit::{AuditFindings, PartitionAudit};
use crate::cli::AuditArg;
use crate::client::error::ClientError;
use crate::consumer::{plans, verify};
use crate::live::Live;
use crate::progress::Extent;
use crate::record::ProducerNumber;
use crate::report::{AuditOutcome, AuditReport};
use crate::worker::WorkerError;

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
        consumption: None,
    }
}

/// What the report says if it is not known what was confirmed.
pub fn unprovable(mode: AuditArg, reason: String) -> AuditReport {
    match mode {
        AuditArg::Off => not_run(mode),
        AuditArg::Full | AuditArg::Watermark => AuditReport {
            outcome: AuditOutcome::Incomplete,
            failure: Some(reason),
            ..not_run(mode)
        },
    }
}

/// A worker that was lost in the load, and what went with it.
pub struct Loss {
    pub worker: WorkerError,
    /// It is not known what they sent and were told.
    producers: BTreeSet<ProducerNumber>,
}

impl Loss {
    pub fn of(worker: WorkerError, producers: Vec<ProducerNumber>) -> Self {
        Self {
            worker,
            producers: producers.into_iter().collect(),
        }
    }
}

impl Run<'_> {
    /// With a loss, what is known is audited all the same; but it does not pass.
    pub(super) fn prove(&mut self, stretches: &[Stretch], loss: Option<&Loss>) -> AuditReport {
        let records_acked: u64 = stretches
            .iter()
            .flat_map(|stretch| &stretch.ledgers)
            .flat_map(|ledger| &ledger.streams)
            .map(|stream| stream.acked_count())
            .sum();
        let advanced: i64 = stretches.iter().map(Stretch::offsets_advanced).sum();
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
            AuditArg::Full => match self.read_back(stretches, advanced, loss) {
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
        if let (Some(loss), AuditOutcome::Passed) = (loss, report.outcome) {
            report.outcome = AuditOutcome::Incomplete;
            let producers = loss.producers.len();
            report.failure = Some(format!(
                "{}; what its {producers} producers were told is not known, and every other producer's records are as confirmed",
                loss.worker
            ));
        }
        if self.arguments.audit != AuditArg::Off && loss.is_none() {
            report.consumption = self.consumption.take();
        }
        // A log that holds everything is no help to a group that passed some of it over.
        let skipped = report.consumption.as_ref().is_some_and(|it| it.skipped > 0);
        if skipped && report.outcome == AuditOutcome::Passed {
            report.outcome = AuditOutcome::Failed;
        }
        report
    }

    /// None: ended early.
    fn read_back(
        &mut self,
        stretches: &[Stretch],
        records: i64,
        loss: Option<&Loss>,
    ) -> Result<Option<AuditFindings>, ClientError> {
        // The bar counts records where another phase counts time.
        self.progress
            .phase("audit", Some(Extent::Count(records.max(1) as u64)));
        let none_lost = BTreeSet::new();
        let lost = loss.map_or(&none_lost, |loss| &loss.producers);
        let live = Arc::new(Live::default());
        let (id, message_bytes) = (self.id, self.plan.message_bytes as u64);
        let results: Vec<_> = thread::scope(|scope| {
            let mut readers = Vec::new();
            let plans = stretches.iter().flat_map(|stretch| {
                let ranges = stretch.ranges();
                plans(&stretch.topic, self.readers(), &ranges, self.plan.fetch)
                    .into_iter()
                    .map(|plan| (&stretch.ledgers[..], plan))
            });
            for (number, (ledgers, plan)) in plans.enumerate() {
                let live = Arc::clone(&live);
                let body = move || verify(plan, id, message_bytes, ledgers, lost, &live);
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
        for stretch in stretches {
            for (partition, (start, end)) in stretch.ranges().into_iter().enumerate() {
                if start >= end {
                    let (name, ledgers) = (&stretch.topic.name, &stretch.ledgers);
                    let unread = PartitionAudit::new(id, name, partition, ledgers, start);
                    findings.merge(unread.finish());
                }
            }
        }
        Ok(Some(findings))
    }
}
