//! Where in the log a replay begins, as people write it: `earliest`, an offset, a time, or how long ago.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;

use crate::quantity;

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{text}' is not a place in the log: earliest, an offset as 1000, a time as 2026-11-30T08:00:00Z, or how long ago as -10m{}",
    reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default()
)]
pub struct ReplayFromError {
    text: String,
    reason: Option<String>,
}

/// The same place in every partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplayFrom {
    /// The first record that is still there.
    Earliest,
    /// This offset, or the first that is still there if that is behind it.
    Offset(i64),
    /// The first record whose timestamp is not before this one.
    Time(Timestamp),
    /// The same, counted from when a pass begins.
    Ago(Duration),
}

impl FromStr for ReplayFrom {
    type Err = ReplayFromError;

    fn from_str(text: &str) -> Result<Self, ReplayFromError> {
        let wrong = |reason: Option<String>| ReplayFromError {
            text: text.to_owned(),
            reason,
        };
        if text == "earliest" {
            return Ok(Self::Earliest);
        }
        if let Some(ago) = text.strip_prefix('-') {
            return quantity::duration(ago)
                .map(Self::Ago)
                .map_err(|error| wrong(Some(error.to_string())));
        }
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
            return text.parse().map(Self::Offset).map_err(|_| wrong(None));
        }
        match text.parse::<Timestamp>() {
            Ok(time) => Ok(Self::Time(time)),
            Err(error) if text.contains('T') => Err(wrong(Some(error.to_string()))),
            Err(_) => Err(wrong(None)),
        }
    }
}

impl fmt::Display for ReplayFrom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Earliest => f.write_str("earliest"),
            Self::Offset(offset) => write!(f, "offset {offset}"),
            Self::Time(time) => write!(f, "{time}"),
            Self::Ago(ago) => write!(f, "{} s ago", ago.as_secs_f64()),
        }
    }
}

impl Serialize for ReplayFrom {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// As people write it, which is what can be read again; what people are shown is not.
pub mod as_written {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    use super::ReplayFrom;

    pub fn serialize<S: Serializer>(from: &ReplayFrom, serializer: S) -> Result<S::Ok, S::Error> {
        match from {
            ReplayFrom::Earliest => serializer.serialize_str("earliest"),
            ReplayFrom::Offset(offset) => serializer.collect_str(offset),
            ReplayFrom::Time(time) => serializer.collect_str(time),
            ReplayFrom::Ago(ago) => {
                serializer.collect_str(&format_args!("-{}s", ago.as_secs_f64()))
            }
        }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ReplayFrom, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_as_written_is_read_as_the_same_place() {
        for text in ["earliest", "1000", "-90500ms", "2025-11-30T12:00:00Z"] {
            let from: ReplayFrom = text.parse().expect("a place");
            let mut written = Vec::new();
            as_written::serialize(&from, &mut serde_json::Serializer::new(&mut written))
                .expect("it is text");
            let mut reader = serde_json::Deserializer::from_slice(&written);
            assert_eq!(as_written::deserialize(&mut reader).expect("a place"), from);
        }
    }

    #[test]
    fn a_place_is_the_earliest_an_offset_a_time_or_how_long_ago() {
        assert_eq!("earliest".parse(), Ok(ReplayFrom::Earliest));
        assert_eq!("1000".parse(), Ok(ReplayFrom::Offset(1000)));
        assert_eq!(
            "-10m".parse(),
            Ok(ReplayFrom::Ago(Duration::from_secs(600)))
        );
        let noon = Timestamp::from_second(1_764_504_000).expect("it is in range");
        for text in ["2025-11-30T12:00:00Z", "2025-11-30T13:00:00+01:00"] {
            assert_eq!(text.parse(), Ok(ReplayFrom::Time(noon)), "{text}");
        }
    }

    #[test]
    fn a_time_without_its_zone_and_what_is_no_place_are_refused() {
        for text in [
            "",
            "latest",
            "-10",
            "-",
            "2025-11-30T12:00:00",
            "1e3",
            "99999999999999999999",
        ] {
            let error = text.parse::<ReplayFrom>().unwrap_err().to_string();
            assert!(error.contains("earliest, an offset"), "{error}");
        }
    }
}
