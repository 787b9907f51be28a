//! What a shard counts, and how the admin thread reads it.
//!
//! Owns: the catalogue of every counter, gauge and latency; the memory they are counted in; the registry over all shards.
//! Must never know: what a request, a partition or a socket is; nor the text format in which figures leave (`admin` does).
//! Runs on: recording on the shard's own thread, which is the only writer of its figures (a plain load, add and store: no
//! locked instruction); reading on any thread. After a crash: nothing survives; every figure starts at 0.

mod api;
mod catalogue;
mod directory;
mod histogram;
mod registry;
mod shard;
mod single_writer;

pub use api::ApiFigures;
pub use catalogue::{Counter, Deletion, Gauge, Latency, Stage};
pub use directory::{DirectoryFigures, DirectorySpace};
pub use histogram::LatencyHistogram;
pub use registry::{BudgetPart, MetricsRegistry};
pub use shard::{ShardFigures, ShardMetrics};
