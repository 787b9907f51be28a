//! What became of a step's backlog, for a reader.

use std::fmt::Write;

use super::{BacklogReport, Loop, StepReport, number};
use crate::columns::{Column, Columns};
use crate::histogram::LatencySummary;

/// One sentence.
pub fn sentence(step: &StepReport, backlog: &BacklogReport) -> String {
    let rate = step.rate;
    let size = number(backlog.asked_gb);
    match (backlog.built_gb, backlog.build_s, backlog.drain_s) {
        (Some(built_gb), Some(build_s), Some(drain_s)) => format!(
            "At {rate} a backlog of {} GB was built in {} s and drained in {} s, at {} MB/s while producers went on.",
            number(built_gb),
            number(build_s),
            number(drain_s),
            number(backlog.drain_mb_per_s.unwrap_or(0.0))
        ),
        (Some(built_gb), Some(build_s), None) => format!(
            "At {rate} a backlog of {} GB was built in {} s and NOT DRAINED{}.",
            number(built_gb),
            number(build_s),
            given_up(backlog)
        ),
        _ => format!(
            "At {rate} the backlog of {size} GB was NOT BUILT{}.",
            given_up(backlog)
        ),
    }
}

fn given_up(backlog: &BacklogReport) -> String {
    backlog.given_up_gb.map_or_else(String::new, |unread_gb| {
        let unread = number(unread_gb);
        format!(": given up with {unread} GB unread, for at its pace it would have taken more than a day")
    })
}

/// A quantile of a latency.
pub type Quantile = fn(&LatencySummary) -> f64;

pub const QUANTILES: [(&str, Quantile); 4] = [
    ("p50", |latency| latency.p50_ms),
    ("p99", |latency| latency.p99_ms),
    ("p99.9", |latency| latency.p999_ms),
    ("max", |latency| latency.max_ms),
];

/// The sentence, and each stage with its latency; that of a closed loop is left out, for it would be compared.
pub fn write(out: &mut String, step: &StepReport, columns: Columns) -> std::fmt::Result {
    let Some(backlog) = &step.backlog else {
        return Ok(());
    };
    writeln!(out, "{}", sentence(step, backlog))?;
    let head = ["  stage", "s", "produced MB/s", "consumed MB/s"].map(str::to_owned);
    let quantiles = QUANTILES.iter().map(|(name, _)| format!("{name} ms"));
    let mut rows = vec![head.into_iter().chain(quantiles).collect()];
    for stretch in &backlog.stretches {
        let mut row = vec![
            format!("  {}", stretch.stage.name()),
            number(stretch.seconds),
            number(stretch.acked_mb_per_s),
            number(stretch.consumed_mb_per_s),
        ];
        let latency = stretch.publish_latency.filter(|_| step.load == Loop::Open);
        row.extend(QUANTILES.iter().map(|(_, quantile)| {
            latency.map_or_else(|| "-".to_owned(), |it| number(quantile(&it)))
        }));
        rows.push(row);
    }
    let figures = [Column::Figure; 3 + QUANTILES.len()];
    let laid_out: Vec<Column> = std::iter::once(Column::Name).chain(figures).collect();
    write!(out, "{}", columns.table(&laid_out, rows))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load_stage::LoadStage;
    use crate::report::{StretchReport, sample};

    fn drained() -> BacklogReport {
        let stretch = |stage, seconds, consumed_mb_per_s| StretchReport {
            stage,
            at_s: 2.0,
            seconds,
            acked_mb_per_s: 50.0,
            consumed_mb_per_s,
            replay_mb_per_s: None,
            publish_latency: sample::report().0.steps[1].publish_latency,
        };
        BacklogReport {
            asked_gb: 2.0,
            built_gb: Some(2.001),
            build_s: Some(40.0),
            drain_s: Some(2.5),
            drain_mb_per_s: Some(850.0),
            given_up_gb: None,
            stretches: vec![
                stretch(LoadStage::Building, 40.0, 0.0),
                stretch(LoadStage::Draining, 2.5, 850.0),
            ],
        }
    }

    fn text(load: Loop, backlog: BacklogReport) -> String {
        let mut step = sample::report().0.steps.swap_remove(1);
        (step.load, step.backlog) = (load, Some(backlog));
        let mut out = String::new();
        write(&mut out, &step, Columns::OF_A_FILE).expect("writing to a string does not fail");
        out
    }

    #[test]
    fn each_stage_shows_its_latency_unless_the_loop_is_closed() {
        let open = text(Loop::Open, drained());
        assert!(open.contains("built in 40.0 s and drained in 2.50 s, at 850 MB/s"));
        let draining = |text: &str| {
            let line = text.lines().find(|line| line.contains("draining"));
            line.expect("the stage has a line").to_owned()
        };
        assert!(draining(&open).ends_with("10.0"), "{open}");
        assert!(draining(&text(Loop::Closed, drained())).ends_with('-'));
    }

    #[test]
    fn a_backlog_that_was_not_drained_says_so() {
        let backlog = BacklogReport {
            drain_s: None,
            given_up_gb: Some(1.5),
            ..drained()
        };
        assert!(text(Loop::Open, backlog).contains("NOT DRAINED: given up with 1.50 GB unread"));
    }
}
