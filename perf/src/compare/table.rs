//! The comparison as text.

use std::fmt::Write;

use super::comparison::{Cell, Comparison};
use crate::columns::{Column, Columns};
use crate::report::number;

pub fn text(comparison: &Comparison, columns: Columns) -> String {
    let mut out = String::new();
    write_all(&mut out, comparison, columns).expect("writing to a string does not fail");
    columns.fit(&out)
}

fn write_all(out: &mut String, comparison: &Comparison, columns: Columns) -> std::fmt::Result {
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
    writeln!(out)?;
    let of_a_side = [Column::Range, Column::Figure, Column::Prose];
    let laid_out: Vec<Column> = [Column::Name, Column::Name]
        .into_iter()
        .chain(comparison.sides.iter().flat_map(|_| of_a_side))
        .collect();
    write!(out, "{}", columns.table(&laid_out, rows(comparison)))
}

/// Each stretch by its name, then its metrics: for each side value, ratio and verdict.
fn rows(comparison: &Comparison) -> Vec<Vec<String>> {
    let mut head: Vec<String> = vec![String::new(), "unit".to_owned()];
    for side in 0..comparison.sides.len() {
        let ratio = match side {
            0 => String::new(),
            _ => format!("{}/A", letter(side)),
        };
        head.extend([letter(side), ratio, String::new()]);
    }
    let mut rows = vec![head];
    let mut last = None;
    for row in &comparison.rows {
        if last.replace(&row.stretch) != Some(&row.stretch) {
            rows.push(vec![row.stretch.clone()]);
        }
        let mut line = vec![format!("  {}", row.metric), row.unit.to_owned()];
        line.extend(row.cells.iter().flat_map(side_cells));
        rows.push(line);
    }
    rows
}

fn side_cells(cell: &Option<Cell>) -> [String; 3] {
    let Some(cell) = cell else {
        return ["-".to_owned(), String::new(), String::new()];
    };
    let value = match cell.values.len() {
        1 => number(cell.median),
        _ => format!(
            "{} ({}-{})",
            number(cell.median),
            number(cell.min),
            number(cell.max)
        ),
    };
    match cell.against_first {
        None => [value, String::new(), String::new()],
        Some(difference) => [
            value,
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
