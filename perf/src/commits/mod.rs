//! How many offset commits a second a broker confirms, how long each takes, what it costs the broker, and whether what was confirmed is there.
//!
//! Owns: the load of commits and its report. Must never know: records; what consumers do. Runs on: a thread for each connection; the
//! main thread watches.

mod committer;
mod error;
mod flags;
mod measure;
mod report;
mod text;

pub use self::flags::CommitsArgs;
pub use self::measure::measure;
pub use self::text::text;
