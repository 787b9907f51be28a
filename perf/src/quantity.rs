//! Sizes, rates and times as people write them: `1MB` is 10^6 bytes, `1MiB` is 2^20. Never guessed: a rate
//! needs its unit.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::Serialize;

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    #[error("'{0}' does not start with a number")]
    NoNumber(String),
    #[error("'{text}' has the unknown unit '{unit}'; known are {known}")]
    UnknownUnit {
        text: String,
        unit: String,
        known: &'static str,
    },
    #[error("'{text}' has no unit; write for instance {example}")]
    NoUnit { text: String, example: &'static str },
    #[error("'{0}' must be more than zero")]
    Zero(String),
    #[error("'{0}' is too large")]
    TooLarge(String),
    #[error("'{text}' is not {allowed}")]
    OutOfRange { text: String, allowed: &'static str },
}

/// Splits `1.5MiB` into 1.5 and `MiB`.
fn split(text: &str) -> Result<(f64, &str), QuantityError> {
    let text = text.trim();
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_')
        .unwrap_or(text.len());
    let number = text[..end]
        .replace('_', "")
        .parse()
        .map_err(|_| QuantityError::NoNumber(text.to_owned()))?;
    Ok((number, text[end..].trim()))
}

/// A whole number of at least 1 from a number and what its unit stands for.
fn positive(text: &str, number: f64, unit: f64) -> Result<u64, QuantityError> {
    let value = (number * unit).round();
    match value {
        v if v > 2f64.powi(53) => Err(QuantityError::TooLarge(text.to_owned())),
        v if v < 1.0 => Err(QuantityError::Zero(text.to_owned())),
        v => Ok(v as u64),
    }
}

fn byte_unit(unit: &str) -> Option<f64> {
    Some(match unit {
        "B" => 1.0,
        "kB" | "KB" => 1e3,
        "MB" => 1e6,
        "GB" => 1e9,
        "TB" => 1e12,
        "KiB" => 1024.0,
        "MiB" => 1024f64.powi(2),
        "GiB" => 1024f64.powi(3),
        "TiB" => 1024f64.powi(4),
        _ => return None,
    })
}

/// A number of bytes whose unit is not left out, as `1KB` or `20TB`.
pub fn bytes_with_unit(text: &str) -> Result<Bytes, QuantityError> {
    match split(text)? {
        (_, "") => Err(QuantityError::NoUnit {
            text: text.to_owned(),
            example: "1KB, 1GB or 20TB",
        }),
        _ => text.parse(),
    }
}

/// A number of bytes of at least 1, as `1024`, `16KiB` or `1MB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct Bytes(pub u64);

impl FromStr for Bytes {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let (number, unit) = split(text)?;
        let unit_bytes = match unit {
            "" => 1.0,
            _ => byte_unit(unit).ok_or_else(|| QuantityError::UnknownUnit {
                text: text.to_owned(),
                unit: unit.to_owned(),
                known: "B, kB, MB, GB, TB (powers of 1000) and KiB, MiB, GiB, TiB (powers of 1024)",
            })?,
        };
        positive(text, number, unit_bytes).map(Self)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            n if n >= 1 << 30 && n % (1 << 30) == 0 => write!(f, "{} GiB", n >> 30),
            n if n >= 1 << 20 && n % (1 << 20) == 0 => write!(f, "{} MiB", n >> 20),
            n if n >= 1 << 10 && n % (1 << 10) == 0 => write!(f, "{} KiB", n >> 10),
            n if n >= 1_000_000_000 => write!(f, "{:.2} GB", n as f64 / 1e9),
            n if n >= 1_000_000 => write!(f, "{:.1} MB", n as f64 / 1e6),
            n => write!(f, "{n} B"),
        }
    }
}

/// How much load one step of a run offers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rate {
    /// As fast as the requests in flight allow: a closed loop, whose latency is not comparable with a fixed rate's.
    Max,
    /// Payload bytes a second, over all producers.
    Bytes(u64),
    /// Records a second, over all producers.
    Records(u64),
    /// A share of what this run's last `max` step reached.
    PercentOfMax(f64),
}

const RATE_EXAMPLE: &str = "200MB/s, 50000msg/s, 20% (of this run's max) or max";

impl FromStr for Rate {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        if text == "max" {
            return Ok(Self::Max);
        }
        let (number, unit) = split(text)?;
        let unknown = || QuantityError::UnknownUnit {
            text: text.to_owned(),
            unit: unit.to_owned(),
            known: RATE_EXAMPLE,
        };
        match unit {
            "" => Err(QuantityError::NoUnit {
                text: text.to_owned(),
                example: RATE_EXAMPLE,
            }),
            "%" if number > 0.0 => Ok(Self::PercentOfMax(number)),
            "%" => Err(QuantityError::Zero(text.to_owned())),
            "msg/s" => positive(text, number, 1.0).map(Self::Records),
            "kmsg/s" => positive(text, number, 1e3).map(Self::Records),
            "Mmsg/s" => positive(text, number, 1e6).map(Self::Records),
            _ => {
                let unit_bytes = unit
                    .strip_suffix("/s")
                    .and_then(byte_unit)
                    .ok_or_else(unknown)?;
                positive(text, number, unit_bytes).map(Self::Bytes)
            }
        }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Max => f.write_str("max"),
            Self::Bytes(n) => write!(f, "{:.1} MB/s", *n as f64 / 1e6),
            Self::Records(n) => write!(f, "{n} msg/s"),
            Self::PercentOfMax(percent) => write!(f, "{percent}% of max"),
        }
    }
}

const BYTE_RATE_EXAMPLE: &str = "500MB/s, 1.2GB/s or 10Gbit/s";

/// Bytes a second, as `500MB/s`, or as networks are sold, `10Gbit/s`.
pub fn bytes_per_s(text: &str) -> Result<u64, QuantityError> {
    let (number, unit) = split(text)?;
    let unit_bytes = match unit {
        "" => {
            return Err(QuantityError::NoUnit {
                text: text.to_owned(),
                example: BYTE_RATE_EXAMPLE,
            });
        }
        "Mbit/s" => Some(1e6 / 8.0),
        "Gbit/s" => Some(1e9 / 8.0),
        _ => unit.strip_suffix("/s").and_then(byte_unit),
    };
    let unit_bytes = unit_bytes.ok_or_else(|| QuantityError::UnknownUnit {
        text: text.to_owned(),
        unit: unit.to_owned(),
        known: BYTE_RATE_EXAMPLE,
    })?;
    positive(text, number, unit_bytes)
}

/// A share as `70%`, more than nothing and at most all of it. Hundredths of a percent, so that counting stays exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Percent {
    pub hundredths: u16,
}

impl Percent {
    pub const ALL: Self = Self { hundredths: 10_000 };
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} %", f64::from(self.hundredths) / 100.0)
    }
}

impl Serialize for Percent {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(f64::from(self.hundredths) / 100.0)
    }
}

pub fn percent(text: &str) -> Result<Percent, QuantityError> {
    let (number, unit) = split(text)?;
    let hundredths = (number * 100.0).round();
    match unit {
        "" => Err(QuantityError::NoUnit {
            text: text.to_owned(),
            example: "70%",
        }),
        "%" if (1.0..=10_000.0).contains(&hundredths) => Ok(Percent {
            hundredths: hundredths as u16,
        }),
        "%" => Err(QuantityError::OutOfRange {
            text: text.to_owned(),
            allowed: "more than 0% and at most 100%",
        }),
        _ => Err(QuantityError::UnknownUnit {
            text: text.to_owned(),
            unit: unit.to_owned(),
            known: "%",
        }),
    }
}

/// CPU time for each GB, as `1.5s/GB`, in nanoseconds.
pub fn cpu_ns_per_gb(text: &str) -> Result<u64, QuantityError> {
    const CPU_NS_PER_GB_MAX: u64 = 1_000_000_000_000;
    let (number, unit) = split(text)?;
    let ns = match unit {
        "s/GB" => positive(text, number, 1e9)?,
        "ms/GB" => positive(text, number, 1e6)?,
        "" => {
            return Err(QuantityError::NoUnit {
                text: text.to_owned(),
                example: "1.5s/GB",
            });
        }
        _ => {
            return Err(QuantityError::UnknownUnit {
                text: text.to_owned(),
                unit: unit.to_owned(),
                known: "s/GB and ms/GB",
            });
        }
    };
    if ns > CPU_NS_PER_GB_MAX {
        return Err(QuantityError::TooLarge(text.to_owned()));
    }
    Ok(ns)
}

/// CPU time of one thing, as `40us`, in nanoseconds.
pub fn cpu_ns(text: &str) -> Result<u64, QuantityError> {
    const CPU_NS_MAX: u64 = 1_000_000_000;
    let (number, unit) = split(text)?;
    let ns = match unit {
        "ns" => positive(text, number, 1.0)?,
        "us" => positive(text, number, 1e3)?,
        "ms" => positive(text, number, 1e6)?,
        "" => {
            return Err(QuantityError::NoUnit {
                text: text.to_owned(),
                example: "40us",
            });
        }
        _ => {
            return Err(QuantityError::UnknownUnit {
                text: text.to_owned(),
                unit: unit.to_owned(),
                known: "ns, us and ms",
            });
        }
    };
    if ns > CPU_NS_MAX {
        return Err(QuantityError::TooLarge(text.to_owned()));
    }
    Ok(ns)
}

/// How many times as much, as `1.5`.
pub fn factor(text: &str) -> Result<f64, QuantityError> {
    match split(text)? {
        (number, "") if (1.0..=100.0).contains(&number) => Ok(number),
        _ => Err(QuantityError::OutOfRange {
            text: text.to_owned(),
            allowed: "a number from 1 to 100",
        }),
    }
}

impl Serialize for Rate {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A time as `20s`, `500ms`, `2m`, `1.5h` or `7d`; zero is allowed.
pub fn duration(text: &str) -> Result<Duration, QuantityError> {
    let (number, unit) = split(text)?;
    let seconds = match unit {
        "ms" => 1e-3,
        "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        "" => {
            return Err(QuantityError::NoUnit {
                text: text.to_owned(),
                example: "20s, 500ms, 2m, 1h or 7d",
            });
        }
        _ => {
            return Err(QuantityError::UnknownUnit {
                text: text.to_owned(),
                unit: unit.to_owned(),
                known: "ms, s, m, h and d",
            });
        }
    };
    Duration::try_from_secs_f64(number * seconds)
        .map_err(|_| QuantityError::TooLarge(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_megabyte_is_ten_to_the_sixth_and_a_mebibyte_two_to_the_twentieth() {
        assert_eq!("1MB".parse(), Ok(Bytes(1_000_000)));
        assert_eq!("1MiB".parse(), Ok(Bytes(1 << 20)));
        assert_eq!("16KiB".parse(), Ok(Bytes(16_384)));
        assert_eq!("1.5kB".parse(), Ok(Bytes(1_500)));
        assert_eq!("1_024".parse(), Ok(Bytes(1_024)));
    }

    #[test]
    fn a_size_with_an_unknown_unit_or_no_number_is_refused() {
        assert!(matches!(
            "1mb".parse::<Bytes>(),
            Err(QuantityError::UnknownUnit { .. })
        ));
        assert!(matches!(
            "MB".parse::<Bytes>(),
            Err(QuantityError::NoNumber(_))
        ));
        assert!(matches!(
            "-1MB".parse::<Bytes>(),
            Err(QuantityError::NoNumber(_))
        ));
        assert!(matches!("0".parse::<Bytes>(), Err(QuantityError::Zero(_))));
        assert!(matches!(
            "9999999TB".parse::<Bytes>(),
            Err(QuantityError::TooLarge(_))
        ));
    }

    #[test]
    fn a_rate_needs_its_unit() {
        assert_eq!("max".parse(), Ok(Rate::Max));
        assert_eq!("200MB/s".parse(), Ok(Rate::Bytes(200_000_000)));
        assert_eq!("50kmsg/s".parse(), Ok(Rate::Records(50_000)));
        assert_eq!("20%".parse(), Ok(Rate::PercentOfMax(20.0)));
        assert!(matches!(
            "200".parse::<Rate>(),
            Err(QuantityError::NoUnit { .. })
        ));
        assert!(matches!(
            "200MB".parse::<Rate>(),
            Err(QuantityError::UnknownUnit { .. })
        ));
        assert!(matches!("0%".parse::<Rate>(), Err(QuantityError::Zero(_))));
    }

    #[test]
    fn a_time_needs_its_unit() {
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
        assert!(matches!(duration("20"), Err(QuantityError::NoUnit { .. })));
    }
    #[test]
    fn a_byte_rate_a_share_and_a_cost_need_their_units() {
        assert_eq!(bytes_per_s("500MB/s"), Ok(500_000_000));
        assert_eq!(bytes_per_s("10Gbit/s"), Ok(1_250_000_000));
        assert_eq!(percent("70%"), Ok(Percent { hundredths: 7_000 }));
        assert_eq!(cpu_ns_per_gb("1.5s/GB"), Ok(1_500_000_000));
        assert_eq!(bytes_with_unit("20TB"), Ok(Bytes(20_000_000_000_000)));
        assert_eq!(duration("7d"), Ok(Duration::from_secs(604_800)));
        assert_eq!(cpu_ns("1.5us"), Ok(1_500));
        let no_unit = |error| matches!(error, QuantityError::NoUnit { .. });
        assert!(no_unit(bytes_per_s("500").unwrap_err()));
        assert!(no_unit(percent("70").unwrap_err()));
        assert!(no_unit(cpu_ns_per_gb("1.5").unwrap_err()));
        assert!(no_unit(cpu_ns("40").unwrap_err()));
        assert_eq!(
            cpu_ns("1001ms"),
            Err(QuantityError::TooLarge("1001ms".to_owned()))
        );
        assert!(no_unit(bytes_with_unit("1000").unwrap_err()));
    }

    #[test]
    fn a_share_is_more_than_nothing_and_at_most_all() {
        for text in ["0%", "100.01%", "150%"] {
            assert!(matches!(
                percent(text),
                Err(QuantityError::OutOfRange { .. })
            ));
        }
        assert!(percent("100%").is_ok());
    }

    #[test]
    fn a_factor_is_at_least_one() {
        assert_eq!(factor("1.5"), Ok(1.5));
        for text in ["0", "0.9", "101", "2x"] {
            assert!(matches!(
                factor(text),
                Err(QuantityError::OutOfRange { .. })
            ));
        }
        assert!(factor("-2").is_err());
    }
}
