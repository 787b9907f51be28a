//! The series as a page: what came of all cases first, then each with its runs.

use maud::{Markup, html};

use super::SeriesReport;
use super::report::CaseReport;
use crate::compare::{Cell, Metric, section};
use crate::page::charts::{Axes, Line, lines};
use crate::page::page;
use crate::report::number;

/// Fewer points make no curve.
const CURVE_POINTS_MIN: usize = 3;

/// What the overview shows of each stretch.
const OVERVIEW: [Metric; 5] = [
    Metric::Throughput,
    Metric::Fetch,
    Metric::BrokerCpu,
    Metric::P99,
    Metric::P999,
];

pub fn html(report: &SeriesReport) -> String {
    let heading = match &report.cases[..] {
        [only] => only.name.clone(),
        cases => format!("{} cases", cases.len()),
    };
    let body = html! {
        @if !report.complete { p class="bad" { "Partial: the series was ended early." } }
        @for case in &report.cases {
            @for failure in &case.failures { p class="bad" { (case.name) ": " (failure) } }
        }
        p class="soft" {
            (report.runs) " runs of each case on each cluster, by turns; " (report.machine.cores) " cores, kernel "
            (report.machine.kernel) ". "
            code { (report.argv.join(" ")) }
        }
        @if report.cases.len() > 1 { (overview(report)) }
        @for case in &report.cases { (case_section(case)) }
    };
    page(&heading, &body)
}

/// Medians of both clusters and their ratio.
fn overview(report: &SeriesReport) -> Markup {
    html! {
        h2 { "Overview" }
        div class="wide" { table {
            tr {
                th { "case" } th { "stretch" } th { "metric" }
                @if let Some(case) = report.cases.first() {
                    @for contender in &case.contenders { th class="number" { (contender.name) } }
                }
                th class="number" { "ratio" } th { "verdict" }
            }
            @for case in &report.cases {
                @for row in case.comparison.rows.iter().filter(|row| OVERVIEW.contains(&row.metric)) {
                    tr {
                        td { (case.name) } td { (row.stretch) } td { (row.metric) ", " (row.unit) }
                        @for cell in &row.cells { td class="number" { (median(cell)) } }
                        @match row.cells.last().and_then(|cell| cell.as_ref()?.against_first) {
                            Some(difference) => {
                                td class="number" { b { (format!("{:.2}", difference.ratio)) } }
                                td { (difference.verdict.in_words()) }
                            }
                            None => { td {} td {} }
                        }
                    }
                }
            }
        } }
    }
}

fn median(cell: &Option<Cell>) -> String {
    cell.as_ref()
        .map_or_else(|| "-".to_owned(), |cell| number(cell.median))
}

fn case_section(case: &CaseReport) -> Markup {
    html! {
        h2 { (case.name) }
        @if !case.what.is_empty() { p { (case.what) } }
        p { code { "corelog-perf run " (case.run.join(" ")) } }
        @for contender in &case.contenders {
            p class="soft" {
                (contender.name)
                @if let Some(bootstrap) = &contender.bootstrap { ", " (bootstrap) }
                ":"
                @for (number, run) in contender.reports.iter().enumerate() {
                    " " a href=(run.join("report.html").display()) { "run " (number + 1) }
                }
            }
        }
        div class="charts" {
            (latency_against_load(case, Metric::P50))
            (latency_against_load(case, Metric::P99))
            (latency_against_load(case, Metric::P999))
        }
        (section(&case.comparison))
    }
}

/// One line for each cluster, of the medians.
fn latency_against_load(case: &CaseReport, metric: Metric) -> Markup {
    let rows = &case.comparison.rows;
    let curve = |side: usize| {
        let mut points: Vec<(f64, f64)> = rows
            .iter()
            .filter(|row| row.metric == metric)
            .filter_map(|row| {
                let load = rows
                    .iter()
                    .find(|it| it.metric == Metric::Throughput && it.stretch == row.stretch)?;
                let load = load.cells[side].as_ref()?.median;
                Some((load, row.cells[side].as_ref()?.median))
            })
            .collect();
        points.sort_by(|one, other| one.0.total_cmp(&other.0));
        points
    };
    let curves: Vec<Line> = case
        .contenders
        .iter()
        .enumerate()
        .map(|(side, contender)| Line {
            name: contender.name.clone(),
            points: curve(side),
        })
        .collect();
    if curves
        .iter()
        .all(|line| line.points.len() < CURVE_POINTS_MIN)
    {
        return html! {};
    }
    let axes = Axes {
        x: "confirmed MB/s",
        y: "ms",
        shaded: &[],
    };
    lines(&format!("{metric} against load"), axes, &curves)
}
