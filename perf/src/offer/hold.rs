//! What a rate must hold to count: the broker keeps up, or does so within a latency.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Serialize, Serializer};

use crate::histogram::LatencySummary;
use crate::quantity::{self, QuantityError};

/// A longer one bounds nothing.
const LATENCY_MAX_S: u64 = 60;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantile {
    P50,
    P90,
    P99,
    P999,
    Max,
}

impl Quantile {
    const ALL: [Self; 5] = [Self::P50, Self::P90, Self::P99, Self::P999, Self::Max];

    pub fn name(self) -> &'static str {
        match self {
            Self::P50 => "p50",
            Self::P90 => "p90",
            Self::P99 => "p99",
            Self::P999 => "p99.9",
            Self::Max => "max",
        }
    }

    pub fn of_ms(self, latency: &LatencySummary) -> f64 {
        match self {
            Self::P50 => latency.p50_ms,
            Self::P90 => latency.p90_ms,
            Self::P99 => latency.p99_ms,
            Self::P999 => latency.p999_ms,
            Self::Max => latency.max_ms,
        }
    }
}

/// From a record's intended send time to its ack.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LatencyBound {
    pub quantile: Quantile,
    pub latency_max: Duration,
}

impl LatencyBound {
    pub fn max_ms(self) -> f64 {
        self.latency_max.as_secs_f64() * 1e3
    }
}

impl fmt::Display for LatencyBound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} <= {} ms", self.quantile.name(), self.max_ms())
    }
}

impl Serialize for LatencyBound {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Fields {
            quantile: &'static str,
            max_ms: f64,
        }
        let fields = Fields {
            quantile: self.quantile.name(),
            max_ms: self.max_ms(),
        };
        fields.serialize(serializer)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Hold {
    /// No backlog grows, at the producers or at the consumers.
    KeepUp,
    /// The same, within a latency.
    Latency(LatencyBound),
}

impl fmt::Display for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::KeepUp => f.write_str("no growing backlog"),
            Self::Latency(bound) => bound.fmt(f),
        }
    }
}

#[derive(Debug, PartialEq, thiserror::Error)]
pub enum HoldError {
    #[error("'{0}' is not keep-up or QUANTILE:TIME, as in p99:10ms")]
    Form(String),
    #[error("'{0}' is no quantile that can be held; there are p50, p90, p99, p99.9 and max")]
    Quantile(String),
    #[error("the latency in '{0}' must be more than 0 and at most {LATENCY_MAX_S} s")]
    Latency(String),
    #[error(transparent)]
    Quantity(#[from] QuantityError),
}

impl FromStr for Hold {
    type Err = HoldError;

    fn from_str(text: &str) -> Result<Self, HoldError> {
        if text == "keep-up" {
            return Ok(Self::KeepUp);
        }
        let (name, time) = text
            .split_once(':')
            .ok_or_else(|| HoldError::Form(text.to_owned()))?;
        let quantile = Quantile::ALL
            .into_iter()
            .find(|quantile| quantile.name() == name)
            .ok_or_else(|| HoldError::Quantile(name.to_owned()))?;
        let latency_max = quantity::duration(time)?;
        if latency_max.is_zero() || latency_max > Duration::from_secs(LATENCY_MAX_S) {
            return Err(HoldError::Latency(text.to_owned()));
        }
        Ok(Self::Latency(LatencyBound {
            quantile,
            latency_max,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_is_a_quantile_and_a_time_with_its_unit() {
        let bound = "p99.9:2.5ms".parse::<Hold>().expect("a bound");
        assert_eq!(bound.to_string(), "p99.9 <= 2.5 ms");
        assert_eq!("keep-up".parse(), Ok(Hold::KeepUp));
        let message = |text: &str| text.parse::<Hold>().unwrap_err().to_string();
        assert!(message("p98:10ms").contains("there are p50, p90, p99, p99.9 and max"));
        assert!(message("p99:10").contains("no unit"));
        assert!(message("p99:0ms").contains("more than 0"));
        assert!(message("p99:2h").contains("at most 60 s"));
        assert!(message("p99:ms").contains("number"));
        for form in ["p99", "10ms", ""] {
            assert!(message(form).contains("as in p99:10ms"), "{form}");
        }
    }
}
