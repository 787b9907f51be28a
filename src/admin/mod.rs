//! The operator's HTTP door: figures for Prometheus, liveness, readiness and a page for people.
//!
//! Owns: the admin listener with its thread, the readiness of the process, how figures look outside.
//! Must never know: partitions, clients or the log; it reads figures and the readiness, and changes nothing.
//! Runs on: a thread of its own that is pinned to no core, so that a scrape never takes a shard's turn.
//! After a crash: nothing survives; it starts not ready.

mod connection_limit;
mod disk_growth;
mod liveness;
mod metrics_page;
mod process;
mod readiness;
mod server;
mod status_page;
mod throughput;

pub use readiness::{Phase, Readiness};
pub use server::{AdminError, AdminServer};
