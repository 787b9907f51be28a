//! Loads under the names and with the words of the OpenMessaging Benchmark: built in, or from a file.
//! `perf/WORKLOADS.md` documents what a file may say.
//!
//! Owns: what a workload says and how it is found. Must never know: the cluster that it is put on.

mod built_in;
mod file;

pub use built_in::{BUILT_IN, DEFAULT};

use std::path::Path;
use std::time::Duration;

use crate::keys::KeyDistributor;
use crate::payload::Payload;
use crate::quantity::Rate;
use crate::settings_file::FileError;
use crate::spelling::{did_you_mean, nearest};

/// Consumers begin behind what was sent while they paused.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Backlog {
    /// Of payload, over all subscriptions.
    pub bytes: u64,
    /// The share of it that must be read for it to count as drained.
    pub drain_ratio: f64,
}

impl Backlog {
    pub const DRAIN_RATIO_DEFAULT: f64 = 1.0;
}

/// A load without the cluster that it is put on.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    pub name: String,
    pub topics: u32,
    pub partitions_per_topic: u32,
    pub message_size: u64,
    pub payload: Payload,
    pub key_distributor: KeyDistributor,
    pub producers_per_topic: u32,
    pub subscriptions_per_topic: u32,
    pub consumer_per_subscription: u32,
    /// Each subscription is a consumer group. A built-in load's consumers have fixed partitions, so that it runs everywhere.
    pub in_groups: bool,
    /// Over all topics. None: the file asks for a search of the highest rate that holds.
    pub producer_rate: Option<Rate>,
    pub warmup: Option<Duration>,
    pub test_duration: Option<Duration>,
    /// What consumers begin behind, if they do.
    pub backlog: Option<Backlog>,
    /// Not the workload's but the driver's in OpenMessaging; what a built-in load is usually sent in.
    pub batch_bytes: Option<u64>,
}

#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    #[error(
        "there is no workload '{name}'{}; `corelog-perf workloads` lists them, and a path ends in .yaml or has a '/'",
        did_you_mean(*.suggestion)
    )]
    Unknown {
        name: String,
        suggestion: Option<&'static str>,
    },
    #[error(
        "'{0}' is for hundreds of gigabytes; name the load without the backlog and say its size, as in {shown} --backlog 2GB",
        shown = built_in::without_backlog(.0)
    )]
    Backlog(String),
    #[error(transparent)]
    File(#[from] FileError),
}

/// A built-in workload by its name, or a file's by its path.
pub fn find(name_or_path: &str) -> Result<Workload, WorkloadError> {
    if name_or_path.contains('/')
        || [".yaml", ".yml"]
            .iter()
            .any(|end| name_or_path.ends_with(end))
    {
        return Ok(Workload::read(Path::new(name_or_path))?);
    }
    if built_in::is_backlog(name_or_path) {
        return Err(WorkloadError::Backlog(name_or_path.to_owned()));
    }
    let by_name = BUILT_IN.iter().find(|known| known.name == name_or_path);
    by_name
        .map(built_in::BuiltIn::workload)
        .ok_or_else(|| WorkloadError::Unknown {
            name: name_or_path.to_owned(),
            suggestion: nearest(name_or_path, BUILT_IN.iter().map(|known| known.name)),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_workload_is_built_in() {
        assert_eq!(find(DEFAULT).unwrap().partitions_per_topic, 1);
    }

    #[test]
    fn a_misspelt_name_gets_a_suggestion() {
        let message = |name| find(name).unwrap_err().to_string();
        assert!(
            message("1-topic-16-partitons-1kb")
                .contains("did you mean '1-topic-16-partitions-1kb'?")
        );
        assert!(!message("nonsense").contains("did you mean"));
    }

    #[test]
    fn a_backlog_workload_is_refused_and_not_run_as_something_else() {
        let name = "1-topic-100-partitions-1kb-4p-4c-200k-backlog";
        let message = find(name).unwrap_err().to_string();
        let instead = "as in 1-topic-100-partitions-1kb-4p-4c-200k --backlog 2GB";
        assert!(message.ends_with(instead), "{message}");
    }

    #[test]
    fn a_path_is_a_file_and_a_name_is_not() {
        for path in ["no/such", "no-such.yaml", "no-such.yml"] {
            assert!(
                matches!(find(path), Err(WorkloadError::File(FileError::Read { .. }))),
                "{path}"
            );
        }
    }
}
