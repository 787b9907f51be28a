//! What is compared, and which way is better.

use std::fmt;

use serde::Serialize;

/// A metric of one step or read of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Metric {
    Throughput,
    P50,
    P90,
    P99,
    P999,
    Max,
    EndToEndP50,
    EndToEndP99,
    BrokerCpu,
    ClientCpu,
    /// Reading what is in memory, or from the start of the log.
    Fetch,
}

impl Metric {
    const ALL: [Self; 11] = [
        Self::Throughput,
        Self::P50,
        Self::P90,
        Self::P99,
        Self::P999,
        Self::Max,
        Self::EndToEndP50,
        Self::EndToEndP99,
        Self::BrokerCpu,
        Self::ClientCpu,
        Self::Fetch,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::P50 => "p50",
            Self::P90 => "p90",
            Self::P99 => "p99",
            Self::P999 => "p99.9",
            Self::Max => "max",
            Self::EndToEndP50 => "end-to-end-p50",
            Self::EndToEndP99 => "end-to-end-p99",
            Self::BrokerCpu => "broker-cpu",
            Self::ClientCpu => "client-cpu",
            Self::Fetch => "fetch",
        }
    }

    pub fn unit(self) -> &'static str {
        match self {
            Self::Throughput | Self::Fetch => "MB/s",
            Self::BrokerCpu | Self::ClientCpu => "CPU-s/GB",
            _ => "ms",
        }
    }

    pub fn more_is_better(self) -> bool {
        matches!(self, Self::Throughput | Self::Fetch)
    }

    /// By how much `value` is worse than `base`, as a share of it; negative if it is better.
    pub fn worse_by(self, base: f64, value: f64) -> f64 {
        let change = value / base - 1.0;
        if self.more_is_better() {
            -change
        } else {
            change
        }
    }
}

impl Serialize for Metric {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// `p99:10%`: more than that much worse is a failure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FailOn {
    pub metric: Metric,
    pub worse_by_max: f64,
}

pub fn parse_fail_on(text: &str) -> Result<FailOn, String> {
    let not_one = || format!("'{text}' is not METRIC:PERCENT%, as in p99:10%");
    let (name, percent) = text.split_once(':').ok_or_else(not_one)?;
    let metric = Metric::ALL.into_iter().find(|it| it.name() == name);
    let metric = metric.ok_or_else(|| {
        let names = Metric::ALL.map(Metric::name).join(", ");
        format!("'{name}' is no metric; there are {names}")
    })?;
    let percent: f64 = percent
        .strip_suffix('%')
        .and_then(|number| number.parse().ok())
        .filter(|percent: &f64| percent.is_finite() && *percent >= 0.0)
        .ok_or_else(not_one)?;
    Ok(FailOn {
        metric,
        worse_by_max: percent / 100.0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn less_throughput_and_more_latency_are_worse() {
        assert!((Metric::Throughput.worse_by(100.0, 90.0) - 0.1).abs() < 1e-9);
        assert!((Metric::P99.worse_by(10.0, 12.0) - 0.2).abs() < 1e-9);
        assert!(Metric::BrokerCpu.worse_by(1.0, 0.5) < 0.0);
    }

    #[test]
    fn a_bound_needs_a_known_metric_and_a_percentage() {
        assert_eq!(
            parse_fail_on("p99.9:10%"),
            Ok(FailOn {
                metric: Metric::P999,
                worse_by_max: 0.1
            })
        );
        for wrong in ["p99", "p99:10", "p98:10%", "p99:-1%", "p99:x%", "p99:inf%"] {
            assert!(parse_fail_on(wrong).is_err(), "{wrong}");
        }
    }
}
