//! The comparison as text.

use std::fmt::Write;

use super::comparison::{Cell, Comparison};
use crate::columns::{Column, Columns};
use crate::report::number;

pub fn text(comparison: &Comparison, columns: Columns) -> String {
    let mut head = String::new();
    write_head(&mut head, comparison).expect("writing to a string does not fail");
    let first = [Column::Name, Column::Name, Column::Range];
    let other = [Column::Range, Column::Figure, Column::Prose];
    let others = comparison.sides.iter().skip(1).flat_map(|_| other);
    let laid_out: Vec<Column> = first.into_iter().chain(others).collect();
    let table = columns.table(&laid_out, rows(comparison));
    format!("{}{table}", columns.fit(&head))
}

fn write_head(out: &mut String, comparison: &Comparison) -> std::fmt::Result {
    for (number, side) in comparison.sides.iter().enumerate() {
        let runs = match side.runs {
            0 => "no run that counts".to_owned(),
            1 => "one run".to_owned(),
            count => format!("the median of {count} runs, with the least and the most"),
        };
        writeln!(out, "{}: {} ({runs})", letter(number), side.name)?;
    }
    for left_out in comparison.sides.iter().flat_map(|side| &side.left_out) {
        writeln!(out, "left out: {left_out}")?;
    }
    for differing in &comparison.differing {
        writeln!(out, "not the same: {differing}")?;
    }
    writeln!(out)
}

/// Each stretch by its name, then its metrics: the first side's value, and for each other side value, ratio and verdict.
fn rows(comparison: &Comparison) -> Vec<Vec<String>> {
    let mut head = vec![String::new(), "unit".to_owned(), letter(0)];
    for side in 1..comparison.sides.len() {
        head.extend([letter(side), format!("{}/A", letter(side)), String::new()]);
    }
    let mut rows = vec![head];
    let mut last = None;
    for row in &comparison.rows {
        if last.replace(&row.stretch) != Some(&row.stretch) {
            rows.push(vec![row.stretch.clone()]);
        }
        let mut line = vec![format!("  {}", row.metric), row.unit.to_owned()];
        for (side, cell) in row.cells.iter().enumerate() {
            line.push(value(cell));
            if side > 0 {
                line.extend(against_first(cell));
            }
        }
        rows.push(line);
    }
    rows
}

fn value(cell: &Option<Cell>) -> String {
    match cell {
        None => "-".to_owned(),
        Some(cell) if cell.values.len() == 1 => number(cell.median),
        Some(cell) => format!(
            "{} ({}-{})",
            number(cell.median),
            number(cell.min),
            number(cell.max)
        ),
    }
}

/// Ratio and verdict.
fn against_first(cell: &Option<Cell>) -> [String; 2] {
    match cell.as_ref().and_then(|cell| cell.against_first) {
        None => Default::default(),
        Some(difference) => [
            format!("{:.2}", difference.ratio),
            difference.verdict.in_words().to_owned(),
        ],
    }
}

/// A, B, C ...; numbers beyond the alphabet.
pub fn letter(side: usize) -> String {
    match u8::try_from(side).ok().filter(|side| *side < 26) {
        Some(side) => char::from(b'A' + side).to_string(),
        None => side.to_string(),
    }
}
