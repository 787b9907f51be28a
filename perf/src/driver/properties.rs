//! Kafka's client properties, as far as a load can follow them.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::compression::Compression;
use crate::consumer::group::Assignor;
use crate::producer::frame::Acks;
use crate::settings_file::FileError;
use crate::spelling::nearest;

/// What becomes of a property that is not among those that the load follows.
enum Otherwise {
    /// It cannot change what is measured.
    NoMatter,
    /// Only with these values the load does what the property says.
    Only(&'static [&'static str]),
    /// Known to Kafka, and not to this tool.
    NotSupported,
}

use Otherwise::{NoMatter, NotSupported, Only};

const COMMON: &[(&str, Otherwise)] = &[
    ("client.id", NoMatter),
    ("default.api.timeout.ms", NoMatter),
    ("metadata.max.age.ms", NoMatter),
    ("security.protocol", Only(&["PLAINTEXT"])),
    ("request.timeout.ms", NotSupported),
    ("send.buffer.bytes", NotSupported),
    ("receive.buffer.bytes", NotSupported),
    ("sasl.mechanism", NotSupported),
    ("sasl.jaas.config", NotSupported),
];

const PRODUCER: &[(&str, Otherwise)] = &[
    ("key.serializer", NoMatter),
    ("value.serializer", NoMatter),
    // Of a schedule that never waits, nothing ever blocks for room.
    ("max.block.ms", NoMatter),
    ("buffer.memory", NotSupported),
    ("delivery.timeout.ms", NotSupported),
    // What may be in the log already is sent again by an idempotent producer alone: the audit counts doubles.
    ("retries", Only(&["2147483647"])),
    ("partitioner.class", NotSupported),
    ("transactional.id", NotSupported),
];

const CONSUMER: &[(&str, Otherwise)] = &[
    ("key.deserializer", NoMatter),
    ("value.deserializer", NoMatter),
    // A consumer is there before the first record, so both its ends are the same.
    ("auto.offset.reset", Only(&["earliest", "latest"])),
    // An answer is handed on whole.
    ("max.poll.records", NoMatter),
    ("isolation.level", Only(&["read_uncommitted"])),
    // One cluster for both sides, named in the commonConfig.
    ("bootstrap.servers", NotSupported),
    ("group.id", NotSupported),
    ("group.instance.id", NotSupported),
    ("group.protocol", Only(&["classic"])),
    ("check.crcs", NotSupported),
];

/// One of a driver file's blocks of properties, of which each is taken once.
pub struct Properties<'a> {
    file: &'a str,
    block: &'static str,
    entries: BTreeMap<String, String>,
    taken: Vec<&'static str>,
}

impl<'a> Properties<'a> {
    /// `common` lies below `own`, as the commonConfig does below the producerConfig.
    pub fn new(
        file: &'a str,
        block: &'static str,
        common: &BTreeMap<String, String>,
        own: BTreeMap<String, String>,
    ) -> Self {
        let mut entries = common.clone();
        entries.extend(own);
        Self {
            file,
            block,
            entries,
            taken: Vec::new(),
        }
    }

    fn take<T>(
        &mut self,
        name: &'static str,
        expected: &'static str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, FileError> {
        self.taken.push(name);
        let Some(value) = self.entries.remove(name) else {
            return Ok(None);
        };
        read(&value).map(Some).ok_or_else(|| FileError::Value {
            file: self.file.to_owned(),
            key: format!("{}: {name}", self.block),
            expected,
            got: value,
        })
    }

    pub fn text(&mut self, name: &'static str) -> Result<Option<String>, FileError> {
        self.take(name, "a text", |value| Some(value.to_owned()))
    }

    pub fn whole(&mut self, name: &'static str) -> Result<Option<u64>, FileError> {
        self.take(name, "a whole number", |value| value.parse().ok())
    }

    pub fn switch(&mut self, name: &'static str) -> Result<Option<bool>, FileError> {
        self.take(name, "true or false", |value| value.parse().ok())
    }

    pub fn milliseconds(&mut self, name: &'static str) -> Result<Option<Duration>, FileError> {
        Ok(self.whole(name)?.map(Duration::from_millis))
    }

    /// By its name in the protocol, or by Kafka's class.
    pub fn assignor(&mut self) -> Result<Option<Assignor>, FileError> {
        let expected = "range or roundrobin (RangeAssignor, RoundRobinAssignor)";
        self.take(
            "partition.assignment.strategy",
            expected,
            |value| match value.rsplit('.').next()? {
                "range" | "RangeAssignor" => Some(Assignor::Range),
                "roundrobin" | "RoundRobinAssignor" => Some(Assignor::RoundRobin),
                _ => None,
            },
        )
    }

    pub fn acks(&mut self) -> Result<Option<Acks>, FileError> {
        self.take("acks", "0, 1, all or -1", |value| match value {
            "0" => Some(Acks::None),
            "1" => Some(Acks::Leader),
            "all" | "-1" => Some(Acks::All),
            _ => None,
        })
    }

    pub fn compression(&mut self) -> Result<Option<Compression>, FileError> {
        self.take("compression.type", Compression::NAMES, Compression::named)
    }

    /// Accounts for what is left: without effect here, not supported, or not known.
    pub fn finish(self, side: Side) -> Result<(), FileError> {
        let lists: &[&[(&str, Otherwise)]] = match side {
            Side::Producer => &[COMMON, PRODUCER],
            Side::Consumer => &[COMMON, CONSUMER],
        };
        let listed = || lists.iter().copied().flatten();
        for (name, value) in &self.entries {
            let key = format!("{}: {name}", self.block);
            match listed()
                .find(|(known, _)| known == name)
                .map(|(_, otherwise)| otherwise)
            {
                Some(NoMatter) => {}
                Some(Only(values)) if values.contains(&value.as_str()) => {}
                Some(Only(values)) => {
                    let values = values.join(" or ");
                    let reason = format!("is '{value}'; corelog-perf supports {values} only");
                    return Err(self.not_supported(key, reason));
                }
                Some(NotSupported) => {
                    let reason =
                        "is a Kafka property that corelog-perf does not support".to_owned();
                    return Err(self.not_supported(key, reason));
                }
                None => {
                    let known = self.taken.iter().copied();
                    return Err(FileError::UnknownKey {
                        file: self.file.to_owned(),
                        suggestion: nearest(name, known.chain(listed().map(|(name, _)| *name))),
                        key,
                    });
                }
            }
        }
        Ok(())
    }

    fn not_supported(&self, key: String, reason: String) -> FileError {
        FileError::NotSupported {
            file: self.file.to_owned(),
            key,
            reason,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub enum Side {
    Producer,
    Consumer,
}
