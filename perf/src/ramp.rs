//! Rates that still rise within the measured part: its mean is then neither that of the begin nor that of the rest.

use std::fmt;

use serde::Serialize;

use crate::timeline::Second;

/// A second below this share of the later rate belongs to the ramp.
const RISEN_SHARE: f64 = 0.75;

/// One slow second alone is noise.
const RAMP_SECONDS_MIN: usize = 2;

/// Fewer seconds do not tell a ramp from noise.
const SECONDS_MIN: usize = 6;

/// Of the seconds after the ramp so many may be as slow as the ramp; more of them, and the rate only varies.
const SLOW_LATER_SHARE: f64 = 0.2;

/// What is left of the last second is no second.
const WHOLE_SECOND_MIN: f64 = 0.95;

/// The begin of the measured part of a step, slower than the rest.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Ramp {
    pub seconds: f64,
    /// Confirmed meanwhile, and after that.
    pub mb_per_s: f64,
    pub later_mb_per_s: f64,
    /// A warm-up that would have held the ramp.
    pub warmup_s: f64,
}

/// Finds the ramp in a step's whole seconds from `warmup_s` to `end_s`, both since the step's start.
pub fn ramp(timeline: &[Second], warmup_s: f64, end_s: f64) -> Option<Ramp> {
    let is_measured = |second: &&Second| {
        let middle_s = second.at_s + second.seconds / 2.0;
        second.seconds >= WHOLE_SECOND_MIN && (warmup_s..end_s).contains(&middle_s)
    };
    let rates: Vec<f64> = timeline
        .iter()
        .filter(is_measured)
        .map(|second| second.acked_mb_per_s)
        .collect();
    if rates.len() < SECONDS_MIN {
        return None;
    }
    let later = median(&rates[rates.len() / 2..]);
    let is_slow = |rate: &&f64| **rate < later * RISEN_SHARE;
    let count = rates.iter().take_while(is_slow).count();
    let (begin, rest) = rates.split_at(count);
    let slow_later = rest.iter().filter(is_slow).count();
    let varies = slow_later as f64 > rest.len() as f64 * SLOW_LATER_SHARE;
    if count < RAMP_SECONDS_MIN || varies {
        return None;
    }
    let mean = |rates: &[f64]| rates.iter().sum::<f64>() / rates.len() as f64;
    Some(Ramp {
        seconds: count as f64,
        mb_per_s: mean(begin),
        later_mb_per_s: mean(rest),
        warmup_s: (warmup_s + count as f64 + 1.0).ceil(),
    })
}

/// Of at least one.
fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

impl fmt::Display for Ramp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            seconds,
            mb_per_s,
            later_mb_per_s,
            warmup_s,
        } = self;
        write!(
            f,
            "the load was still rising in the measured part: {mb_per_s:.0} MB/s for {seconds:.0} s, then {later_mb_per_s:.0} MB/s, \
             and the figures hold both; --warmup {warmup_s:.0}s leaves the rise out"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    fn seconds(rates: &[f64]) -> Vec<Second> {
        let any = sample::report().0.steps[0].timeline[0].clone();
        let second = |(at, rate): (usize, &f64)| Second {
            at_s: at as f64,
            acked_mb_per_s: *rate,
            ..any.clone()
        };
        rates.iter().enumerate().map(second).collect()
    }

    #[test]
    fn a_slow_begin_of_the_measured_part_is_found_with_the_warm_up_that_would_hold_it() {
        let mut rates = vec![280.0; 7];
        rates.extend([900.0; 15]);
        let found = ramp(&seconds(&rates), 2.0, 22.0).expect("a ramp");
        let expected = Ramp {
            seconds: 5.0,
            mb_per_s: 280.0,
            later_mb_per_s: 900.0,
            warmup_s: 8.0,
        };
        assert_eq!(found, expected);
        assert!(found.to_string().contains("--warmup 8s"), "{found}");
    }

    #[test]
    fn a_rise_within_the_warm_up_is_none() {
        let mut rates = vec![280.0; 2];
        rates.extend([900.0; 20]);
        assert_eq!(ramp(&seconds(&rates), 2.0, 22.0), None);
    }

    #[test]
    fn a_rate_that_varies_is_no_ramp() {
        let rates: Vec<f64> = (0..20)
            .map(|at| if at % 4 < 2 { 300.0 } else { 900.0 })
            .collect();
        assert_eq!(ramp(&seconds(&rates), 0.0, 20.0), None);
        let mut one_slow_second = vec![900.0; 20];
        one_slow_second[0] = 10.0;
        assert_eq!(ramp(&seconds(&one_slow_second), 0.0, 20.0), None);
        assert_eq!(
            ramp(&seconds(&[100.0, 100.0, 900.0, 900.0]), 0.0, 4.0),
            None
        );
    }

    #[test]
    fn what_comes_after_the_load_does_not_count() {
        let mut rates = vec![500.0; 10];
        rates.extend([0.0; 10]);
        assert_eq!(ramp(&seconds(&rates), 0.0, 10.0), None);
    }
}
