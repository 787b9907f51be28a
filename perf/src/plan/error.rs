//! What flags and files together must not say.

use super::check::{IDEMPOTENT_IN_FLIGHT_MAX, ZIPF_EXPONENT_MAX};
use crate::keys::KeyDistributor;
use crate::record::STAMP_BYTES;
use crate::settings_file::FileError;
use crate::workload::WorkloadError;

#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    #[error(transparent)]
    Driver(#[from] FileError),
    #[error("{name} must be more than 0")]
    Zero { name: &'static str },
    #[error(
        "messages of {got} bytes are too small: {STAMP_BYTES} bytes carry a record's sequence and checksum"
    )]
    MessageTooSmall { got: u64 },
    #[error("{name}: {got} is too many or too large, at most {max}")]
    TooLarge {
        name: &'static str,
        got: u64,
        max: u64,
    },
    #[error("idempotence needs acks=all, as in --idempotence --acks all")]
    IdempotenceNeedsAcksAll,
    #[error(
        "idempotence allows at most {IDEMPOTENT_IN_FLIGHT_MAX} requests under way, not {got}; --in-flight sets them"
    )]
    IdempotenceInFlight { got: usize },
    #[error("--rate {percent}% needs 'max' before it, as in --rate max,{percent}%")]
    PercentWithoutMax { percent: f64 },
    #[error("--rate search stands alone: a run searches or offers rates, not both")]
    SearchNotAlone,
    #[error(
        "--{flag} has an effect only with a search, as in --rate search --hold p99:10ms; this run offers {offered}"
    )]
    WithoutSearch { flag: &'static str, offered: String },
    #[error("--{flag} has no effect with keys of kind {distributor:?}")]
    WithoutKeys {
        flag: &'static str,
        distributor: KeyDistributor,
    },
    #[error("--{flag} has no effect {reason}")]
    WithoutEffect {
        flag: &'static str,
        reason: &'static str,
    },
    #[error(
        "consumerConfig: enable.auto.commit=true needs consumers in groups; --group-assignment puts them into one"
    )]
    AutoCommitWithoutGroup,
    #[error("a backlog needs consumers that pause and then drain it; --consumers sets them")]
    BacklogWithoutConsumers,
    #[error("a backlog is built at a fixed rate, not in a search; --rate sets it")]
    BacklogWithSearch,
    #[error("--producers 0 reads a topic that is there; --topic names it")]
    ReadsWithoutTopic,
    #[error("--producers 0 needs consumers that read; --replay-consumers sets them")]
    ReadsWithoutConsumers,
    #[error("--backlog-drain-ratio must be from 0 to 1, not {0}")]
    BacklogDrainRatio(f64),
    #[error("--zipf-exponent must be more than 0 and at most {ZIPF_EXPONENT_MAX}, not {0}")]
    ZipfExponent(f64),
    #[error("the broker address '{0}' is not HOST:PORT")]
    Bootstrap(String),
    #[error("the worker address '{0}' is not HOST:PORT")]
    Worker(String),
    #[error("the worker {0} is named twice")]
    WorkerTwice(String),
    #[error(
        "{workers} workers need at least as many producers over all topics, not {producers}; --producers sets those of a topic"
    )]
    MoreWorkersThanProducers { workers: usize, producers: u64 },
    #[error("--random-bytes-ratio must be from 0 to 1, not {0}")]
    RandomBytesRatio(f64),
}
