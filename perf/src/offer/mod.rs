//! What a run offers, as `--rate` says it: rates one after the other, rising ones among them, or a search.
//!
//! Owns: the notation and what may stand together. Must never know: how a rate is put on a broker.

mod hold;
mod ramp;

#[cfg(test)]
pub use hold::Quantile;
pub use hold::{Hold, LatencyBound};
pub use ramp::{Ramp, RampError};

use std::str::FromStr;
use std::time::Duration;

use crate::quantity::{QuantityError, Rate};

const TERM_EXAMPLES: &str =
    "200MB/s, 50000msg/s, max, 20% (of this run's max), ramp:50MB/s..400MB/s:8 or search";

/// One of the things that commas part in `--rate`.
#[derive(Clone, Debug, PartialEq)]
pub enum RateTerm {
    One(Rate),
    Ramp(Ramp),
    /// Begins there; without a start, from what a closed loop reaches.
    Search(Option<SearchStart>),
}

#[derive(Debug, PartialEq, thiserror::Error)]
pub enum RateTermError {
    #[error("'{0}' is no rate; there are {TERM_EXAMPLES}")]
    Unknown(String),
    #[error(
        "'search:{0}': a search begins at a rate in bytes or messages a second, as in search:50MB/s"
    )]
    SearchStart(String),
    #[error(transparent)]
    Ramp(#[from] RampError),
    #[error(transparent)]
    Quantity(#[from] QuantityError),
}

impl FromStr for RateTerm {
    type Err = RateTermError;

    fn from_str(text: &str) -> Result<Self, RateTermError> {
        match text.split_once(':') {
            Some(("ramp", range)) => return Ok(Self::Ramp(range.parse()?)),
            Some(("search", start)) => {
                let start_rate = start.parse()?;
                let start = SearchStart::of(start_rate)
                    .ok_or_else(|| RateTermError::SearchStart(start.to_owned()))?;
                return Ok(Self::Search(Some(start)));
            }
            _ => {}
        }
        match text {
            "search" => Ok(Self::Search(None)),
            "max" => Ok(Self::One(Rate::Max)),
            word if word.starts_with(char::is_alphabetic) => {
                Err(RateTermError::Unknown(text.to_owned()))
            }
            rate => Ok(Self::One(rate.parse()?)),
        }
    }
}

/// What a search counts in: it offers whole ones of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateUnit {
    BytesPerS,
    RecordsPerS,
}

impl RateUnit {
    pub fn rate(self, per_s: u64) -> Rate {
        match self {
            Self::BytesPerS => Rate::Bytes(per_s),
            Self::RecordsPerS => Rate::Records(per_s),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SearchStart {
    pub unit: RateUnit,
    pub per_s: u64,
}

impl SearchStart {
    fn of(rate: Rate) -> Option<Self> {
        match rate {
            Rate::Bytes(per_s) => Some(Self {
                unit: RateUnit::BytesPerS,
                per_s,
            }),
            Rate::Records(per_s) => Some(Self {
                unit: RateUnit::RecordsPerS,
                per_s,
            }),
            Rate::Max | Rate::PercentOfMax(_) => None,
        }
    }
}

/// All that a run offers.
#[derive(Clone, Debug, PartialEq)]
pub enum Offer {
    Rates(Vec<Rate>),
    Search(SearchPlan),
}

/// A search for the highest rate that holds something.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SearchPlan {
    pub hold: Hold,
    pub unit: RateUnit,
    /// In `unit`s; None asks a closed loop first.
    pub start_per_s: Option<u64>,
    /// Of each try; the rate that is found is confirmed with the run's own times.
    pub try_warmup: Duration,
    pub try_duration: Duration,
}

impl Offer {
    /// The rates that are known before the run, in order.
    pub fn rates(&self) -> &[Rate] {
        match self {
            Self::Rates(rates) => rates,
            Self::Search(_) => &[],
        }
    }

    pub fn search(&self) -> Option<SearchPlan> {
        match self {
            Self::Rates(_) => None,
            Self::Search(plan) => Some(*plan),
        }
    }

    /// What was asked for, as the report tells it.
    pub fn names(&self) -> Vec<String> {
        match self {
            Self::Rates(rates) => rates.iter().map(ToString::to_string).collect(),
            Self::Search(plan) => vec![format!("search ({})", plan.hold)],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> String {
        text.parse::<RateTerm>().unwrap_err().to_string()
    }

    #[test]
    fn a_search_begins_with_a_closed_loop_or_at_a_rate_with_its_unit() {
        assert_eq!("search".parse(), Ok(RateTerm::Search(None)));
        let start = SearchStart {
            unit: RateUnit::RecordsPerS,
            per_s: 50_000,
        };
        assert_eq!("search:50kmsg/s".parse(), Ok(RateTerm::Search(Some(start))));
        assert!(message("search:20%").contains("as in search:50MB/s"));
        assert!(message("search:max").contains("as in search:50MB/s"));
        assert!(message("search:200").contains("no unit"));
        assert!(message("search:0MB/s").contains("more than zero"));
    }

    #[test]
    fn a_word_that_is_no_rate_gets_the_list_of_those_that_are() {
        for text in ["serach", "Max", "ramp", "rampe:1MB/s..2MB/s"] {
            assert!(message(text).contains("ramp:50MB/s..400MB/s:8"), "{text}");
        }
        assert!(message("200").contains("no unit"));
    }
}
