//! The comparison as text.

use std::fmt::Write;

use super::comparison::{Cell, Comparison};
use crate::report::number;

/// A bar of this many characters is as much as the first side.
const BAR_CHARACTERS: f64 = 16.0;
const BAR_CHARACTERS_MAX: f64 = 40.0;

pub fn text(comparison: &Comparison) -> String {
    let mut out = String::new();
    write_all(&mut out, comparison).expect("writing to a string does not fail");
    out
}

fn write_all(out: &mut String, comparison: &Comparison) -> std::fmt::Result {
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
    let rows = cells(comparison);
    let widths: Vec<usize> = (0..rows[0].len())
        .map(|column| {
            let lengths = rows.iter().map(|row| row[column].chars().count());
            lengths.max().unwrap_or(0)
        })
        .collect();
    for row in rows {
        let mut line = String::new();
        for (column, (text, &width)) in row.iter().zip(&widths).enumerate() {
            // Names to the left, figures to the right; verdicts and bars are names.
            match column < 3 || (column - 3) % COLUMNS_OF_A_SIDE > 1 {
                true => write!(line, "{text:<width$}  ")?,
                false => write!(line, "{text:>width$}  ")?,
            }
        }
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

/// Value, ratio, verdict, bar.
const COLUMNS_OF_A_SIDE: usize = 4;

fn cells(comparison: &Comparison) -> Vec<Vec<String>> {
    let mut head: Vec<String> = ["", "metric", "unit"].map(str::to_owned).into();
    for side in 0..comparison.sides.len() {
        let ratio = match side {
            0 => String::new(),
            _ => format!("{}/A", letter(side)),
        };
        head.extend([letter(side), ratio, String::new(), String::new()]);
    }
    let mut rows = vec![head];
    let mut last = None;
    for row in &comparison.rows {
        let is_new = last.replace(&row.stretch) != Some(&row.stretch);
        let mut line = vec![
            if is_new {
                row.stretch.clone()
            } else {
                String::new()
            },
            row.metric.name().to_owned(),
            row.unit.to_owned(),
        ];
        row.cells
            .iter()
            .for_each(|cell| line.extend(side_cells(cell)));
        rows.push(line);
    }
    rows
}

fn side_cells(cell: &Option<Cell>) -> [String; COLUMNS_OF_A_SIDE] {
    let Some(cell) = cell else {
        return ["-".to_owned(), String::new(), String::new(), String::new()];
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
        None => [value, String::new(), String::new(), String::new()],
        Some(difference) => {
            let length = (difference.ratio * BAR_CHARACTERS).round();
            [
                value,
                format!("{:.2}", difference.ratio),
                difference.verdict.in_words().to_owned(),
                "=".repeat(length.min(BAR_CHARACTERS_MAX) as usize),
            ]
        }
    }
}

/// A, B, C ...; numbers beyond the alphabet.
pub fn letter(side: usize) -> String {
    match u8::try_from(side).ok().filter(|side| *side < 26) {
        Some(side) => char::from(b'A' + side).to_string(),
        None => side.to_string(),
    }
}
