//! `--rate` and what belongs to it, over the workload's rate.

use std::time::Duration;

use super::PlanError;
use crate::cli::RunArgs;
use crate::offer::{Hold, Offer, RateTerm, RateUnit, SearchPlan, SearchStart};
use crate::quantity::Rate;

/// A try is short, for there are many, and the rate that is found is confirmed at full length.
const TRY_DURATION_DEFAULT: Duration = Duration::from_secs(5);
const TRY_WARMUP_MAX: Duration = Duration::from_secs(1);

impl RunArgs {
    /// `of_workload` is None where the workload's `producerRate: 0` asks for a search.
    pub(super) fn offer(
        &self,
        of_workload: Option<Rate>,
        warmup: Duration,
        duration: Duration,
    ) -> Result<Offer, PlanError> {
        let (unit, start_per_s) = match (self.rate.as_slice(), of_workload) {
            ([], Some(rate)) => return self.without_search(vec![rate]),
            ([], None) => (RateUnit::RecordsPerS, None),
            ([RateTerm::Search(None)], _) => (RateUnit::BytesPerS, None),
            ([RateTerm::Search(Some(SearchStart { unit, per_s }))], _) => (*unit, Some(*per_s)),
            (terms, _) => return self.without_search(rates(terms)?),
        };
        let try_duration = self
            .try_duration
            .unwrap_or(TRY_DURATION_DEFAULT.min(duration));
        if try_duration.is_zero() {
            return Err(PlanError::Zero {
                name: "try duration",
            });
        }
        let hold = self.hold.unwrap_or(Hold::KeepUp);
        Ok(Offer::Search(SearchPlan {
            hold,
            unit,
            start_per_s,
            try_warmup: warmup.min(TRY_WARMUP_MAX),
            try_duration,
        }))
    }

    fn without_search(&self, rates: Vec<Rate>) -> Result<Offer, PlanError> {
        let flags = [
            ("hold", self.hold.is_some()),
            ("try-duration", self.try_duration.is_some()),
        ];
        let offer = Offer::Rates(rates);
        match flags.into_iter().find(|(_, said)| *said) {
            Some((flag, _)) => Err(PlanError::WithoutSearch {
                flag,
                offered: offer.names().join(", "),
            }),
            None => Ok(offer),
        }
    }
}

fn rates(terms: &[RateTerm]) -> Result<Vec<Rate>, PlanError> {
    let mut rates = Vec::new();
    for term in terms {
        match term {
            RateTerm::One(rate) => rates.push(*rate),
            RateTerm::Ramp(ramp) => rates.extend(ramp.rates()),
            RateTerm::Search(_) => return Err(PlanError::SearchNotAlone),
        }
    }
    Ok(rates)
}
