//! A workload file in the OpenMessaging Benchmark's form.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{Backlog, Workload};
use crate::keys::KeyDistributor;
use crate::payload::Payload;
use crate::quantity::Rate;
use crate::settings_file::{FileError, SettingsFile};

const KEYS: &[&str] = &[
    "name",
    "topics",
    "partitionsPerTopic",
    "messageSize",
    "payloadFile",
    "useRandomizedPayloads",
    "randomBytesRatio",
    "randomizedPayloadPoolSize",
    "keyDistributor",
    "producersPerTopic",
    "subscriptionsPerTopic",
    "consumerPerSubscription",
    "producerRate",
    "consumerBacklogSizeGB",
    "backlogDrainRatio",
    "warmupDurationMinutes",
    "testDurationMinutes",
];

/// Where a file says nothing about the warm-up, as in the OpenMessaging Benchmark.
const WARMUP_DEFAULT: Duration = Duration::from_secs(60);

impl Workload {
    pub fn read(path: &Path) -> Result<Self, FileError> {
        Self::of(&SettingsFile::read(path, KEYS)?, path)
    }

    fn of(file: &SettingsFile, path: &Path) -> Result<Self, FileError> {
        let needed = |key: &'static str| {
            file.count(key)?.ok_or_else(|| FileError::Missing {
                file: file.file().to_owned(),
                key,
            })
        };
        let minutes = |key| {
            let minutes = file.number(key)?;
            Ok(minutes.map(|minutes| Duration::from_secs_f64(minutes.min(1e6) * 60.0)))
        };
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        Ok(Self {
            name: file.text("name")?.unwrap_or_else(|| stem.into_owned()),
            topics: needed("topics")?,
            partitions_per_topic: needed("partitionsPerTopic")?,
            message_size: u64::from(needed("messageSize")?),
            payload: payload(file, path)?,
            key_distributor: key_distributor(file)?,
            producers_per_topic: needed("producersPerTopic")?,
            subscriptions_per_topic: needed("subscriptionsPerTopic")?,
            consumer_per_subscription: file.count("consumerPerSubscription")?.unwrap_or(1),
            in_groups: true,
            producer_rate: match file.count("producerRate")?.unwrap_or(0) {
                0 => None,
                rate => Some(Rate::Records(u64::from(rate))),
            },
            warmup: Some(minutes("warmupDurationMinutes")?.unwrap_or(WARMUP_DEFAULT)),
            test_duration: minutes("testDurationMinutes")?,
            backlog: backlog(file)?,
            batch_bytes: None,
        })
    }
}

/// The benchmark counts 2^30 bytes as a GB, over all subscriptions.
fn backlog(file: &SettingsFile) -> Result<Option<Backlog>, FileError> {
    let size_gb = file.number("consumerBacklogSizeGB")?.unwrap_or(0.0);
    let drain_ratio = file
        .number("backlogDrainRatio")?
        .unwrap_or(Backlog::DRAIN_RATIO_DEFAULT);
    if drain_ratio > 1.0 {
        return Err(FileError::Value {
            file: file.file().to_owned(),
            key: "backlogDrainRatio".to_owned(),
            expected: "from 0 to 1",
            got: drain_ratio.to_string(),
        });
    }
    let bytes = (size_gb * f64::from(1 << 30)).round() as u64;
    Ok((bytes > 0).then_some(Backlog { bytes, drain_ratio }))
}

fn payload(file: &SettingsFile, path: &Path) -> Result<Payload, FileError> {
    let pool_size = file.count("randomizedPayloadPoolSize")?;
    let random_bytes_ratio = file.number("randomBytesRatio")?;
    if let Some(ratio) = random_bytes_ratio.filter(|ratio| *ratio > 1.0) {
        return Err(FileError::Value {
            file: file.file().to_owned(),
            key: "randomBytesRatio".to_owned(),
            expected: "from 0 to 1",
            got: ratio.to_string(),
        });
    }
    let randomized = file.switch("useRandomizedPayloads")?.unwrap_or(false);
    Ok(match file.text("payloadFile")? {
        Some(payload_file) if !randomized => Payload::File(beside(Path::new(&payload_file), path)),
        _ => Payload::Random {
            random_bytes_ratio: random_bytes_ratio.unwrap_or(Payload::RANDOM_BYTES_RATIO_DEFAULT),
            pool_size: pool_size.unwrap_or(Payload::POOL_SIZE_DEFAULT),
        },
    })
}

/// A payload file's path counts from the working directory, or, as the benchmark lays its files, from the
/// workload's directory or the one above it.
fn beside(payload_file: &Path, workload: &Path) -> PathBuf {
    let near = workload
        .ancestors()
        .skip(1)
        .take(2)
        .map(|directory| directory.join(payload_file));
    std::iter::once(payload_file.to_owned())
        .chain(near)
        .find(|candidate| candidate.is_file())
        .unwrap_or_else(|| payload_file.to_owned())
}

fn key_distributor(file: &SettingsFile) -> Result<KeyDistributor, FileError> {
    let Some(name) = file.text("keyDistributor")? else {
        return Ok(KeyDistributor::NoKey);
    };
    KeyDistributor::named(&name).ok_or_else(|| FileError::Value {
        file: file.file().to_owned(),
        key: "keyDistributor".to_owned(),
        expected: KeyDistributor::NAMES,
        got: name,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workload(text: &str) -> Result<Workload, FileError> {
        let file = SettingsFile::parse("load.yaml".to_owned(), text, KEYS)?;
        Workload::of(&file, Path::new("load.yaml"))
    }

    const SHAPE: &str = "topics: 1\npartitionsPerTopic: 100\nmessageSize: 1024\nsubscriptionsPerTopic: 1\n\
                         producersPerTopic: 4\n";

    #[test]
    fn a_workload_file_of_the_openmessaging_benchmark_is_read_whole() {
        let text = format!(
            "name: 200k rate\n{SHAPE}useRandomizedPayloads: true\nrandomBytesRatio: 0.25\n\
             randomizedPayloadPoolSize: 100\nconsumerPerSubscription: 4\nproducerRate: 200000\n\
             consumerBacklogSizeGB: 0\ntestDurationMinutes: 5\nkeyDistributor: \"NO_KEY\"\n"
        );
        let load = workload(&text).unwrap();
        assert_eq!((load.name.as_str(), load.topics), ("200k rate", 1));
        assert_eq!((load.partitions_per_topic, load.message_size), (100, 1024));
        assert_eq!(
            load.payload,
            Payload::Random {
                random_bytes_ratio: 0.25,
                pool_size: 100
            }
        );
        assert_eq!(
            (load.producers_per_topic, load.consumer_per_subscription),
            (4, 4)
        );
        assert!(load.in_groups);
        assert_eq!(load.producer_rate, Some(Rate::Records(200_000)));
        assert_eq!(load.test_duration, Some(Duration::from_secs(300)));
        assert_eq!(load.warmup, Some(Duration::from_secs(60)));
    }

    #[test]
    fn a_name_that_is_missing_is_the_files() {
        assert_eq!(workload(SHAPE).unwrap().name, "load");
    }

    #[test]
    fn a_rate_of_zero_asks_for_a_search() {
        let text = format!("{SHAPE}producerRate: 0\n");
        assert_eq!(workload(&text).unwrap().producer_rate, None);
    }

    #[test]
    fn a_backlog_is_counted_in_powers_of_two_and_drained_whole_unless_the_file_says_otherwise() {
        let backlog = |lines: &str| workload(&format!("{SHAPE}{lines}")).unwrap().backlog;
        assert_eq!(backlog("consumerBacklogSizeGB: 0\n"), None);
        let expected = |drain_ratio| {
            Some(Backlog {
                bytes: 2 << 30,
                drain_ratio,
            })
        };
        assert_eq!(backlog("consumerBacklogSizeGB: 2\n"), expected(1.0));
        let ratio = "consumerBacklogSizeGB: 2\nbacklogDrainRatio: 0.9\n";
        assert_eq!(backlog(ratio), expected(0.9));
    }

    #[test]
    fn what_the_load_cannot_follow_is_refused_and_not_ignored() {
        let message = |line: &str| {
            workload(&format!("{SHAPE}{line}\n"))
                .unwrap_err()
                .to_string()
        };
        assert!(message("backlogDrainRatio: 2").contains("from 0 to 1"));
        assert!(message("keyDistributor: HOT").contains("NO_KEY"));
        assert!(message("randomBytesRatio: 50").contains("from 0 to 1"));
        assert!(message("partitionPerTopic: 1").contains("did you mean 'partitionsPerTopic'?"));
        assert_eq!(
            workload("topics: 1").unwrap_err().to_string(),
            "load.yaml: partitionsPerTopic is missing"
        );
    }
}
