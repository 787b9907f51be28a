//! Proves, from what is in the log and what the producers were told, that no record was lost, doubled,
//! reordered or changed.
//!
//! One pass over each partition in offset order, no search. Forbidden is: an acked record that is absent, a
//! record that is there twice, behind a later one of its producer, with other bytes than were sent, at another
//! offset than its ack said, or there although the broker refused it; and a hole in the offsets. Allowed is a
//! record that was sent, never acked, and is there or not.
//!
//! Owns: what is an anomaly. Must never know: how records came here. Runs on: the thread of whoever reads a partition back.

mod findings;
mod partition;
mod stream;

#[cfg(test)]
pub use findings::Anomaly;
pub use findings::AuditFindings;
pub use partition::PartitionAudit;
