//! Rates that rise in equal steps: `ramp:50MB/s..400MB/s:8`.

use std::str::FromStr;

use crate::quantity::{QuantityError, Rate};

/// Where a ramp does not say how many rates it has.
const STEPS_DEFAULT: u32 = 8;
/// Each is measured for the run's whole duration.
pub const STEPS_MAX: u32 = 100;

#[derive(Debug, PartialEq, thiserror::Error)]
pub enum RampError {
    #[error("'ramp:{0}' is not ramp:FROM..TO or ramp:FROM..TO:STEPS, as in ramp:50MB/s..400MB/s:8")]
    Form(String),
    #[error(
        "'ramp:{0}': both ends of a ramp are in bytes a second, in messages a second, or in percent of max"
    )]
    Units(String),
    #[error("'ramp:{0}' does not rise")]
    Falls(String),
    #[error("'ramp:{0}': the number of rates is not from 2 to {STEPS_MAX}")]
    Steps(String),
    #[error("'ramp:{0}': there are not so many different rates between its ends")]
    TooFine(String),
    #[error(transparent)]
    Quantity(#[from] QuantityError),
}

/// At least two rates of one unit, each higher than the one before.
#[derive(Clone, Debug, PartialEq)]
pub struct Ramp(Vec<Rate>);

impl Ramp {
    pub fn rates(&self) -> &[Rate] {
        &self.0
    }
}

impl FromStr for Ramp {
    type Err = RampError;

    /// What stands behind `ramp:`.
    fn from_str(text: &str) -> Result<Self, RampError> {
        let form = || RampError::Form(text.to_owned());
        let (from, rest) = text.split_once("..").ok_or_else(form)?;
        let (to, steps) = match rest.split_once(':') {
            Some((to, steps)) => {
                let steps: u32 = steps.parse().map_err(|_| form())?;
                if !(2..=STEPS_MAX).contains(&steps) {
                    return Err(RampError::Steps(text.to_owned()));
                }
                (to, steps)
            }
            None => (rest, STEPS_DEFAULT),
        };
        if from.is_empty() || to.is_empty() {
            return Err(form());
        }
        let (from, to): (Rate, Rate) = (from.parse()?, to.parse()?);
        let share = |step: u32| f64::from(step) / f64::from(steps - 1);
        let between = |from: f64, to: f64| {
            let rates = (0..steps).map(move |step| from + (to - from) * share(step));
            (from < to)
                .then_some(rates)
                .ok_or_else(|| RampError::Falls(text.to_owned()))
        };
        let whole = |rate: f64| rate.round() as u64;
        let rates: Vec<Rate> = match (from, to) {
            (Rate::Bytes(from), Rate::Bytes(to)) => between(from as f64, to as f64)?
                .map(|rate| Rate::Bytes(whole(rate)))
                .collect(),
            (Rate::Records(from), Rate::Records(to)) => between(from as f64, to as f64)?
                .map(|rate| Rate::Records(whole(rate)))
                .collect(),
            (Rate::PercentOfMax(from), Rate::PercentOfMax(to)) => {
                between(from, to)?.map(Rate::PercentOfMax).collect()
            }
            _ => return Err(RampError::Units(text.to_owned())),
        };
        if rates.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(RampError::TooFine(text.to_owned()));
        }
        Ok(Self(rates))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(text: &str) -> Vec<Rate> {
        text.parse::<Ramp>().expect("a ramp").0
    }

    fn message(text: &str) -> String {
        text.parse::<Ramp>().unwrap_err().to_string()
    }

    #[test]
    fn a_ramp_rises_in_equal_steps_and_has_both_its_ends() {
        assert_eq!(
            rates("50MB/s..200MB/s:4"),
            [50, 100, 150, 200].map(|mb| Rate::Bytes(mb * 1_000_000))
        );
        assert_eq!(
            rates("1kmsg/s..2kmsg/s:3"),
            [1000, 1500, 2000].map(Rate::Records)
        );
        assert_eq!(
            rates("10%..90%:5"),
            [10.0, 30.0, 50.0, 70.0, 90.0].map(Rate::PercentOfMax)
        );
        assert_eq!(rates("1MB/s..8MB/s").len(), STEPS_DEFAULT as usize);
    }

    #[test]
    fn a_ramp_that_falls_mixes_units_or_lacks_one_is_refused() {
        assert!(message("400MB/s..50MB/s").contains("does not rise"));
        assert!(message("50MB/s..50MB/s").contains("does not rise"));
        assert!(message("50MB/s..4000msg/s").contains("both ends"));
        assert!(message("50MB/s..max").contains("both ends"));
        assert!(message("50..400MB/s").contains("no unit"));
        assert!(message("0MB/s..400MB/s").contains("more than zero"));
        for form in [
            "50MB/s",
            "50MB/s..",
            "..50MB/s",
            "1MB/s..2MB/s:x",
            "1MB/s..2MB/s:",
        ] {
            assert!(message(form).contains("ramp:FROM..TO"), "{form}");
        }
        for steps in ["0", "1", "101"] {
            let message = message(&format!("1MB/s..2MB/s:{steps}"));
            assert!(message.contains("from 2 to 100"), "{message}");
        }
        assert!(message("1msg/s..3msg/s:8").contains("not so many"));
    }
}
