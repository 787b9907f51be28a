//! A search's trials as steps: a step for each, a verdict, the next one.

use super::error::RunError;
use super::generator::judged_by;
use super::proof::Loss;
use super::step::StepPlan;
use super::{Measured, Run};
use crate::offer::{Hold, RateUnit, SearchPlan};
use crate::producer::ledger::Ledger;
use crate::report::{RawHistogram, SearchReport, StepReport, TryKind, TryReport};
use crate::search::{Finding, Judge, Outcome, RateSearch, Trial, WITHIN_SHARE};

impl Run<'_> {
    /// Only the rate that is found becomes a step of the report; all tries stand in its `search`. A loss of a worker ends it.
    pub(super) fn search(
        &mut self,
        plan: SearchPlan,
        measured: &mut Measured,
        ledgers: &mut [Vec<Ledger>],
    ) -> Result<Option<Loss>, RunError> {
        let judge = Judge {
            hold: plan.hold,
            linger: self.plan.linger,
            subscriptions: match self.plan.consumers {
                0 => 0,
                _ => self.plan.subscriptions,
            },
        };
        let report = measured.search.insert(nothing_yet(&plan));
        let (mut search, first) = RateSearch::new(plan.unit, plan.start_per_s);
        let mut next = Some(first);
        while let Some(trial) = next {
            let number = report.tries.len();
            let step = self.step(self.step_of(trial, number, plan))?;
            for (of_topic, more) in ledgers.iter_mut().zip(step.ledgers) {
                of_topic.extend(more);
            }
            if let Some(lost) = step.lost {
                return Ok(Some(Loss::of(lost, step.lost_producers)));
            }
            let early = self.interrupt.is_asked();
            let kind = kind(trial);
            let judged = kind != TryKind::ClosedLoop && !early;
            let miss = judged.then(|| judge.miss(&step.report)).flatten();
            let tried = TryReport::of(
                kind,
                &step.report,
                judged.then_some(miss.is_none()),
                miss.as_ref().map(ToString::to_string),
            );
            self.progress.note(&format!("  {}", tried.verdict()));
            let confirmed = kind == TryKind::Confirmation && tried.held == Some(true);
            report.tries.push(tried);
            let outcome = Outcome {
                acked_per_s: acked_per_s(plan.unit, &step.report),
                miss,
            };
            let place = measured.steps.len();
            let histograms = step.histograms.tagged(|name| match confirmed {
                true => RawHistogram::tag_of(place, name),
                false => RawHistogram::tag_of_try(number, name),
            });
            measured.histograms.extend(histograms);
            if confirmed {
                report.found_mb_per_s = step.report.offered_mb_per_s;
                let mut found = step.report;
                if let Hold::Latency(bound) = plan.hold {
                    found.generator = judged_by(bound, found.generator);
                }
                measured.steps.push(found);
            }
            if early {
                return Ok(None);
            }
            next = search.next(&outcome);
        }
        match search.finding() {
            Some(Finding::Found { rate, not_held }) => {
                report.found = Some(*rate);
                report.not_held = *not_held;
            }
            Some(Finding::NotFound { reason }) => report.reason = Some(reason.clone()),
            None => {}
        }
        Ok(None)
    }

    fn step_of(&self, trial: Trial, number: usize, plan: SearchPlan) -> StepPlan {
        let (warmup, duration) = match trial {
            Trial::ClosedLoop | Trial::Try(_) => (plan.try_warmup, plan.try_duration),
            Trial::Confirm(_) => (self.plan.warmup, self.plan.duration),
        };
        StepPlan {
            number,
            rate: trial.rate(),
            warmup,
            duration,
        }
    }
}

fn kind(trial: Trial) -> TryKind {
    match trial {
        Trial::ClosedLoop => TryKind::ClosedLoop,
        Trial::Try(_) => TryKind::Try,
        Trial::Confirm(_) => TryKind::Confirmation,
    }
}

fn acked_per_s(unit: RateUnit, step: &StepReport) -> f64 {
    match unit {
        RateUnit::BytesPerS => step.acked_mb_per_s * 1e6,
        RateUnit::RecordsPerS => step.acked_records_per_s,
    }
}

fn nothing_yet(plan: &SearchPlan) -> SearchReport {
    SearchReport {
        hold: plan.hold,
        within_percent: WITHIN_SHARE * 100.0,
        try_warmup_seconds: plan.try_warmup.as_secs_f64(),
        try_duration_seconds: plan.try_duration.as_secs_f64(),
        found: None,
        found_mb_per_s: None,
        reason: None,
        not_held: None,
        tries: Vec::new(),
    }
}
