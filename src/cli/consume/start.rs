use std::collections::BTreeMap;
use std::io::{self, Write};
use std::str::FromStr;

use crate::client::cluster::Cluster;
use crate::client::error::ClientError;
use crate::client::metadata::TopicPartition;
use crate::client::offsets::OffsetAt;
use crate::model::{Offset, TimestampMs};

/// Where in each partition reading begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    Earliest,
    Latest,
    Offset(Offset),
    /// So many before the end.
    Last(i64),
    Time(TimestampMs),
}

impl FromStr for Start {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "earliest" => Ok(Self::Earliest),
            "latest" => Ok(Self::Latest),
            _ => match text.parse::<i64>() {
                Ok(last) if text.starts_with('-') => last
                    .checked_neg()
                    .map(Self::Last)
                    .ok_or_else(|| "more records than there can be".to_owned()),
                Ok(offset) => Ok(Self::Offset(Offset(offset))),
                Err(_) => Err("not earliest, latest, an offset, or -N".to_owned()),
            },
        }
    }
}

impl Start {
    pub(super) fn positions(
        self,
        cluster: &mut Cluster,
        partitions: &[TopicPartition],
    ) -> Result<BTreeMap<TopicPartition, Offset>, ClientError> {
        let ends = cluster.offsets(partitions, OffsetAt::Latest)?;
        let found = match self {
            Self::Latest => ends.clone(),
            Self::Time(time) => cluster.offsets(partitions, OffsetAt::Time(time))?,
            Self::Earliest | Self::Offset(_) | Self::Last(_) => {
                cluster.offsets(partitions, OffsetAt::Earliest)?
            }
        };
        let position = |at: &TopicPartition| {
            let end = ends[at].unwrap_or(Offset::ZERO);
            let found = found[at].unwrap_or(end);
            match self {
                Self::Earliest | Self::Latest | Self::Time(_) => found,
                Self::Offset(offset) if offset > end => {
                    // There is nobody left to tell if stderr is closed.
                    let _ = writeln!(
                        io::stderr(),
                        "corelog: {at} ends at {end}, before {offset}; beginning at {end}"
                    );
                    end
                }
                Self::Offset(offset) => offset.max(found),
                Self::Last(count) => Offset(end.0.saturating_sub(count)).max(found),
            }
        };
        Ok(partitions
            .iter()
            .map(|at| (at.clone(), position(at)))
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_is_a_word_an_offset_or_how_many_before_the_end() {
        assert_eq!("latest".parse(), Ok(Start::Latest));
        assert_eq!("17".parse(), Ok(Start::Offset(Offset(17))));
        assert_eq!("-5".parse(), Ok(Start::Last(5)));
        for wrong in ["", "beginning", "1.5", "-9223372036854775808"] {
            assert!(wrong.parse::<Start>().is_err(), "{wrong}");
        }
    }
}
