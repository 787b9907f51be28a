//! What an audit found.

use std::collections::BTreeMap;

use serde::Serialize;

/// How many anomalies are shown in full; all are counted.
pub(super) const FINDINGS_SHOWN_MAX: usize = 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Anomaly {
    Lost,
    Duplicated,
    Reordered,
    Corrupted,
    AckOffsetDiffers,
    RefusedButPresent,
    OffsetHole,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub anomaly: Anomaly,
    pub topic: String,
    pub partition: usize,
    /// Absent where the record is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<i64>,
    pub detail: String,
}

/// What the audit found, of one partition or of all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AuditFindings {
    pub records_sent: u64,
    pub records_acked: u64,
    pub records_read: u64,
    /// Records by anomaly; empty if all is well.
    pub anomalies: BTreeMap<Anomaly, u64>,
    /// Allowed: the ack was lost, the record was not.
    pub records_unacked_but_present: u64,
    /// Records of other runs or programs in the same topic.
    pub records_foreign: u64,
    /// Of producers whose worker was lost, and with it what they were told: nothing is proven about them.
    #[serde(skip_serializing_if = "is_zero")]
    pub records_of_lost_producers: u64,
    /// The first of the anomalies.
    pub first_findings: Vec<Finding>,
}

impl AuditFindings {
    pub fn merge(&mut self, other: Self) {
        self.records_sent += other.records_sent;
        self.records_acked += other.records_acked;
        self.records_read += other.records_read;
        self.records_unacked_but_present += other.records_unacked_but_present;
        self.records_foreign += other.records_foreign;
        self.records_of_lost_producers += other.records_of_lost_producers;
        for (anomaly, count) in other.anomalies {
            *self.anomalies.entry(anomaly).or_default() += count;
        }
        let room = FINDINGS_SHOWN_MAX - self.first_findings.len();
        self.first_findings
            .extend(other.first_findings.into_iter().take(room));
    }

    pub(super) fn add(&mut self, record_count: u64, finding: Finding) {
        *self.anomalies.entry(finding.anomaly).or_default() += record_count;
        if self.first_findings.len() < FINDINGS_SHOWN_MAX {
            self.first_findings.push(finding);
        }
    }
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}
