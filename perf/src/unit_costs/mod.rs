//! Unit costs: what a byte, a request and a partition cost a broker in CPU and memory, from short runs of known loads, and whether
//! a mixed load costs what they add up to.
//!
//! Owns: which loads are run, the model fitted to them, and its check. Must never know: how a run measures. Runs on: the main
//! thread; the runs' load has its own.

mod cost;
mod error;
mod fit;
mod flags;
mod measure;
mod page;
mod partitions;
mod print;
mod report;
mod stretch;

pub use self::flags::UnitCostsArgs;
pub use self::measure::measure;
pub use self::page::page;
pub use self::print::text;
pub use self::report::{SCHEMA, SCHEMA_VERSION};
