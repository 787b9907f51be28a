//! What a search of the highest rate tried and found.

use std::fmt::Write;

use serde::Serialize;

use super::{Loop, StepReport, number};
use crate::columns::{Column, Columns};
use crate::histogram::LatencySummary;
use crate::offer::Hold;
use crate::quantity::Rate;

#[derive(Clone, Debug, Serialize)]
pub struct SearchReport {
    pub hold: Hold,
    /// How far the lowest rate that did not hold may lie above the found one.
    pub within_percent: f64,
    /// Of each try but the confirmations.
    pub try_warmup_seconds: f64,
    pub try_duration_seconds: f64,
    /// None if no rate was found that holds; `reason` says why.
    pub found: Option<Rate>,
    pub found_mb_per_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The lowest rate above the found one that did not hold.
    pub not_held: Option<Rate>,
    pub tries: Vec<TryReport>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TryKind {
    /// A short closed loop, which tells where to begin.
    ClosedLoop,
    Try,
    /// Of full length; the one that held is in `steps`.
    Confirmation,
}

/// A step of the search, with the figures that decide.
#[derive(Clone, Debug, Serialize)]
pub struct TryReport {
    pub kind: TryKind,
    pub rate: Rate,
    /// None where nothing was to hold: a closed loop, or a step that was ended early.
    pub held: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    pub seconds: f64,
    pub offered_mb_per_s: Option<f64>,
    pub acked_mb_per_s: f64,
    pub consumed_mb_per_s: f64,
    pub publish_latency: Option<LatencySummary>,
    pub unsent_records: u64,
    pub generator_valid: bool,
    pub broker_cpu_s_per_gb: Option<f64>,
}

impl TryReport {
    pub fn of(
        kind: TryKind,
        step: &StepReport,
        held: Option<bool>,
        reason: Option<String>,
    ) -> Self {
        Self {
            kind,
            rate: step.rate,
            held,
            reason,
            seconds: step.seconds,
            offered_mb_per_s: step.offered_mb_per_s,
            acked_mb_per_s: step.acked_mb_per_s,
            consumed_mb_per_s: step.consumed_mb_per_s,
            // A closed loop's latency would be compared with the others.
            publish_latency: step.publish_latency.filter(|_| step.load == Loop::Open),
            unsent_records: step.unsent_records,
            generator_valid: step.generator.valid,
            broker_cpu_s_per_gb: step.cpu.broker_cpu_s_per_gb,
        }
    }

    pub fn verdict(&self) -> String {
        match (self.kind, self.held, &self.reason) {
            (TryKind::ClosedLoop, ..) => "closed loop, to know where to begin".to_owned(),
            (TryKind::Try, Some(true), _) => "held".to_owned(),
            (TryKind::Confirmation, Some(true), _) => "held, at full length".to_owned(),
            (_, Some(false), Some(reason)) => format!("did not hold: {reason}"),
            (_, Some(false), None) => "did not hold".to_owned(),
            (_, None, _) => "ended early".to_owned(),
        }
    }
}

impl SearchReport {
    pub fn title(&self) -> String {
        match self.hold {
            Hold::KeepUp => "highest rate without a growing backlog".to_owned(),
            Hold::Latency(bound) => format!("highest rate with {bound}"),
        }
    }

    /// In one sentence, for a reader.
    pub fn conclusion(&self) -> String {
        let title = self.title();
        match (self.found, self.not_held) {
            (Some(rate), Some(not_held)) => {
                let tries = self.tries.iter().rev();
                let why = tries
                    .filter(|tried| tried.rate == not_held && tried.held == Some(false))
                    .find_map(|tried| tried.reason.as_deref())
                    .map_or_else(String::new, |reason| format!(": {reason}"));
                format!("The {title} is {rate}; {not_held} did not hold{why}.")
            }
            (Some(rate), None) => format!(
                "The {title} that was tried is {rate}; no higher one was found that does not hold."
            ),
            (None, _) => format!(
                "The {title} was not found: {}.",
                self.reason
                    .as_deref()
                    .unwrap_or("the search was ended early")
            ),
        }
    }
}

pub fn write(out: &mut String, search: &SearchReport, columns: Columns) -> std::fmt::Result {
    writeln!(
        out,
        "{} Tries of {} s after {} s of warm-up:",
        search.conclusion(),
        search.try_duration_seconds,
        search.try_warmup_seconds
    )?;
    let head = [
        "  offered",
        "confirmed MB/s",
        "p50 ms",
        "p99 ms",
        "p99.9 ms",
        "",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for tried in &search.tries {
        let quantile = |of: fn(&LatencySummary) -> f64| {
            let latency = tried.publish_latency.as_ref();
            latency.map_or_else(|| "-".to_owned(), |latency| number(of(latency)))
        };
        rows.push(vec![
            format!("  {}", tried.rate),
            number(tried.acked_mb_per_s),
            quantile(|latency| latency.p50_ms),
            quantile(|latency| latency.p99_ms),
            quantile(|latency| latency.p999_ms),
            tried.verdict(),
        ]);
    }
    let figure = Column::Figure;
    let laid_out = [Column::Name, figure, figure, figure, figure, Column::Prose];
    writeln!(out, "{}", columns.table(&laid_out, rows))
}

#[cfg(test)]
mod tests {
    use crate::columns::Columns;
    use crate::report::{StoredReport, sample, text, write_json};

    #[test]
    fn the_text_names_what_was_found_and_why_each_other_try_did_not_hold() {
        let (report, _) = sample::search_report();
        let text = text(&report, Columns::WIDE);
        for line in [
            "The highest rate with p99 <= 5 ms is 10.0 MB/s; 20.0 MB/s did not hold: p99 was 9.9 ms, not <= 5 ms.",
            "held, at full length",
        ] {
            assert!(text.contains(line), "{text}");
        }
        let first = &report.headline.figures[0];
        assert_eq!(first.what, "highest rate with p99 <= 5 ms");
        assert_eq!(first.value, 10.0);
    }

    #[test]
    fn a_search_without_a_find_has_its_reason_and_no_figure() {
        let (mut report, _) = sample::search_report();
        let search = report.search.as_mut().expect("a search");
        (search.found, search.found_mb_per_s) = (None, None);
        search.reason = Some("not even 1 MB/s held".to_owned());
        let text = text(&report, Columns::WIDE);
        assert!(
            text.contains("was not found: not even 1 MB/s held."),
            "{text}"
        );
        let headline = crate::report::Headline::of(None, None, &[], report.search.as_ref(), &[]);
        assert!(headline.figures.is_empty());
    }

    #[test]
    fn a_try_whose_generator_was_late_makes_the_report_no_less_valid() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("report.json");
        let (mut report, _) = sample::search_report();
        report.search.as_mut().expect("a search").tries[1].generator_valid = false;
        write_json(&report, &path).expect("it is written");
        let stored = StoredReport::read_valid(&path).expect("a valid report");
        assert_eq!(stored.at("/search/hold/latency/quantile"), "p99");
        assert_eq!(stored.at("/search/found"), "10.0 MB/s");
        assert_eq!(
            stored.at("/search/tries/0/publish_latency"),
            &serde_json::Value::Null
        );
    }
}
