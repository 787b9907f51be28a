//! The comparison as a page, or as a part of one.

use maud::{Markup, PreEscaped, html};

use super::chart::ratios;
use super::comparison::{Cell, Comparison, Row, Verdict};
use super::table::letter;
use crate::page;
use crate::report::number;

pub fn page(comparison: &Comparison) -> String {
    let names: Vec<_> = comparison.sides.iter().map(|it| it.name.as_str()).collect();
    page::page(&names.join(" and "), &section(comparison))
}

/// What is compared, the table, the bars.
pub fn section(comparison: &Comparison) -> Markup {
    html! {
        @for (number, side) in comparison.sides.iter().enumerate() {
            p { b { (letter(number)) ": " (side.name) } ", "
                @match side.runs { 1 => "one run", runs => { (runs) " runs: the median, with the least and the most" } }
            }
            @for left_out in &side.left_out { p class="bad" { "Left out: " (left_out) } }
        }
        @for differing in &comparison.differing { p class="soft" { "Not the same: " (differing) } }
        div class="wide" { table {
            tr {
                th { "stretch" } th { "metric" } th { "unit" }
                @for side in 0..comparison.sides.len() {
                    th class="number" { (letter(side)) }
                    @if side > 0 { th class="number" { (letter(side)) "/A" } th { "verdict" } }
                }
            }
            @for row in &comparison.rows { (table_row(row)) }
        } }
        @for side in 1..comparison.sides.len() {
            @if let Some(svg) = ratios(comparison, side) {
                figure {
                    h3 { (letter(side)) " by A, beyond the runs' own spread green where better and red where worse" }
                    (PreEscaped(svg))
                }
            }
        }
    }
}

fn table_row(row: &Row) -> Markup {
    html! {
        tr {
            td { (row.stretch) } td { (row.metric) } td class="soft" { (row.unit) }
            @for (side, cell) in row.cells.iter().enumerate() {
                td class="number" { @if let Some(cell) = cell { (value(cell)) } @else { "-" } }
                @if side > 0 {
                    @match cell.as_ref().and_then(|cell| cell.against_first) {
                        Some(difference) => {
                            td class="number" { (format!("{:.2}", difference.ratio)) }
                            td class=(if difference.verdict == Verdict::Worse { "bad" } else { "" }) {
                                (difference.verdict.in_words())
                            }
                        }
                        None => { td {} td {} }
                    }
                }
            }
        }
    }
}

fn value(cell: &Cell) -> String {
    match cell.values.len() {
        1 => number(cell.median),
        _ => format!(
            "{} ({} to {})",
            number(cell.median),
            number(cell.min),
            number(cell.max)
        ),
    }
}
