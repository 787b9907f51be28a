//! The search for the highest rate that holds, as a state machine: an outcome in, the next trial out.
//!
//! Owns: which rate comes next, and when it is enough. Must never know: how a step is run or shown. It runs on the
//! thread that calls it and waits for nothing.
//!
//! A closed loop tells about where the limit lies. Tries rise from half of that, or fall, until one rate held and a
//! higher one did not; the gap is halved until it is narrow; the highest rate that held is then confirmed in a step
//! of full length. A short try may hold by luck: if the confirmation fails, a little less is confirmed.

#[cfg(test)]
mod tests;
mod verdict;

pub use verdict::{Judge, Miss};

use crate::offer::RateUnit;
use crate::quantity::Rate;

/// The search is over when the lowest rate that did not hold is no more than this above the highest that did.
pub const WITHIN_SHARE: f64 = 0.05;
/// The first open try, as a share of what the closed loop reached.
const FIRST_TRY_SHARE: f64 = 0.5;
/// While everything holds, each try is so much higher.
const GROWTH: f64 = 1.5;
/// While nothing holds, each try is so much lower, down to this share of the first.
const SHRINKAGE: f64 = 4.0;
const FLOOR_SHARE: f64 = 1.0 / 100.0;
/// Tries beside the closed loop and the confirmations, repeated ones included.
const TRIES_MAX: u32 = 16;
/// Steps of full length; each is lower by `WITHIN_SHARE`.
const CONFIRMATIONS_MAX: u32 = 3;
/// How often a trial is made once more that says nothing, because the generator was late.
const REPEATS_MAX: u32 = 1;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Trial {
    /// A short closed loop.
    ClosedLoop,
    /// A short open step.
    Try(Rate),
    /// An open step of full length.
    Confirm(Rate),
}

impl Trial {
    pub fn rate(self) -> Rate {
        match self {
            Self::ClosedLoop => Rate::Max,
            Self::Try(rate) | Self::Confirm(rate) => rate,
        }
    }
}

/// What a trial showed.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// In the search's unit.
    pub acked_per_s: f64,
    /// None if it held; a closed loop holds nothing and is not asked.
    pub miss: Option<Miss>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Finding {
    Found {
        rate: Rate,
        /// The lowest rate that did not hold; None if there were no tries left to come upon one.
        not_held: Option<Rate>,
    },
    NotFound {
        reason: String,
    },
}

#[derive(Clone, Debug)]
enum Stage {
    ClosedLoop,
    Trying {
        per_s: u64,
        repeats: u32,
    },
    Confirming {
        per_s: u64,
        confirmation: u32,
        repeats: u32,
    },
    Ended(Finding),
}

pub struct RateSearch {
    unit: RateUnit,
    stage: Stage,
    first_per_s: u64,
    tries: u32,
    /// The highest rate that held.
    held_per_s: Option<u64>,
    /// The lowest that did not, above all that held.
    not_held: Option<(u64, Miss)>,
}

impl RateSearch {
    /// With the first trial. `start_per_s` is in `unit`s and not 0.
    pub fn new(unit: RateUnit, start_per_s: Option<u64>) -> (Self, Trial) {
        let mut search = Self {
            unit,
            stage: Stage::ClosedLoop,
            first_per_s: 0,
            tries: 0,
            held_per_s: None,
            not_held: None,
        };
        let first = match start_per_s {
            Some(per_s) => search.first_try(per_s),
            None => Trial::ClosedLoop,
        };
        (search, first)
    }

    /// Takes what the last trial showed; None ends the search.
    pub fn next(&mut self, outcome: &Outcome) -> Option<Trial> {
        let late = matches!(outcome.miss, Some(Miss::GeneratorNotValid { .. }));
        match self.stage {
            Stage::ClosedLoop if outcome.acked_per_s < 1.0 => {
                self.end_without("not even a closed loop had anything confirmed".to_owned())
            }
            Stage::ClosedLoop => {
                let per_s = readable(outcome.acked_per_s * FIRST_TRY_SHARE);
                Some(self.first_try(per_s))
            }
            Stage::Trying { per_s, repeats } => {
                if late && repeats < REPEATS_MAX && self.tries < TRIES_MAX {
                    return Some(self.try_rate(per_s, repeats + 1));
                }
                match &outcome.miss {
                    None => self.held_per_s = Some(per_s),
                    Some(miss) => self.not_held = Some((per_s, miss.clone())),
                }
                let candidate = self.candidate_per_s().filter(|_| self.tries < TRIES_MAX);
                match (candidate, self.held_per_s) {
                    (Some(per_s), _) => Some(self.try_rate(per_s, 0)),
                    (None, Some(held)) => Some(self.confirm(held, 1, 0)),
                    (None, None) => {
                        let reason = match &self.not_held {
                            Some((per_s, miss)) => {
                                let rate = self.unit.rate(*per_s);
                                let advice = match late {
                                    true => "it needs more of this machine to itself",
                                    false => "--rate search:RATE begins elsewhere",
                                };
                                format!("not even {rate} held: {miss}; {advice}")
                            }
                            None => "nothing was tried".to_owned(),
                        };
                        self.end_without(reason)
                    }
                }
            }
            Stage::Confirming {
                per_s,
                confirmation,
                repeats,
            } => match &outcome.miss {
                None => {
                    let not_held = self.not_held.as_ref();
                    self.stage = Stage::Ended(Finding::Found {
                        rate: self.unit.rate(per_s),
                        not_held: not_held.map(|(per_s, _)| self.unit.rate(*per_s)),
                    });
                    None
                }
                Some(_) if late && repeats < REPEATS_MAX => {
                    Some(self.confirm(per_s, confirmation, repeats + 1))
                }
                Some(miss) if confirmation < CONFIRMATIONS_MAX => {
                    self.not_held = Some((per_s, miss.clone()));
                    let less = readable(per_s as f64 * (1.0 - WITHIN_SHARE));
                    Some(self.confirm(less, confirmation + 1, 0))
                }
                Some(miss) => {
                    let rate = self.unit.rate(per_s);
                    self.end_without(format!(
                        "short tries held, but not a step of full length, the last at {rate}: {miss}"
                    ))
                }
            },
            Stage::Ended(_) => None,
        }
    }

    /// None before the search has ended.
    pub fn finding(&self) -> Option<&Finding> {
        match &self.stage {
            Stage::Ended(finding) => Some(finding),
            _ => None,
        }
    }

    fn first_try(&mut self, per_s: u64) -> Trial {
        self.first_per_s = per_s;
        self.try_rate(per_s, 0)
    }

    fn try_rate(&mut self, per_s: u64, repeats: u32) -> Trial {
        self.tries += 1;
        self.stage = Stage::Trying { per_s, repeats };
        Trial::Try(self.unit.rate(per_s))
    }

    fn confirm(&mut self, per_s: u64, confirmation: u32, repeats: u32) -> Trial {
        self.stage = Stage::Confirming {
            per_s,
            confirmation,
            repeats,
        };
        Trial::Confirm(self.unit.rate(per_s))
    }

    fn end_without(&mut self, reason: String) -> Option<Trial> {
        self.stage = Stage::Ended(Finding::NotFound { reason });
        None
    }

    /// The rate that would tell most; None if the gap is narrow enough, or the floor is reached.
    fn candidate_per_s(&self) -> Option<u64> {
        match (self.held_per_s, &self.not_held) {
            (None, None) => None,
            (Some(held), None) => Some(readable(held as f64 * GROWTH).max(held + 1)),
            (None, Some((not_held, _))) => {
                let lower = readable(*not_held as f64 / SHRINKAGE);
                let floor = self.first_per_s as f64 * FLOOR_SHARE;
                (lower < *not_held && lower as f64 >= floor).then_some(lower)
            }
            (Some(held), Some((not_held, _))) => {
                let (low, high) = (held as f64, *not_held as f64);
                let between = |rate: &u64| *rate > held && *rate < *not_held;
                let middle = (low * high).sqrt();
                (high > low * (1.0 + WITHIN_SHARE))
                    .then(|| {
                        let choices = [readable(middle), middle.round() as u64];
                        choices.into_iter().find(between)
                    })
                    .flatten()
            }
        }
    }
}

/// With three digits, as the report shows it; at least 1.
fn readable(per_s: f64) -> u64 {
    let magnitude = 10f64.powi((per_s.max(1.0).log10().floor() as i32 - 2).max(0));
    ((per_s / magnitude).round() * magnitude).max(1.0) as u64
}
