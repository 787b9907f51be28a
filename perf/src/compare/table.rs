//! The comparison as text.

use std::fmt::Write;

use super::comparison::{Comparison, Verdict};
use crate::report::number;

/// A bar of this many characters is as much as the first side.
const BAR_CHARACTERS: f64 = 20.0;
const BAR_CHARACTERS_MAX: f64 = 40.0;

pub fn text(comparison: &Comparison) -> String {
    let mut out = String::new();
    write_all(&mut out, comparison).expect("writing to a string does not fail");
    out
}

fn write_all(out: &mut String, comparison: &Comparison) -> std::fmt::Result {
    for (number, side) in comparison.sides.iter().enumerate() {
        let runs = match side.run_count {
            1 => "one run".to_owned(),
            count => format!("the median of {count} runs"),
        };
        writeln!(out, "{}: {} ({runs})", letter(number), side.name)?;
    }
    writeln!(
        out,
        "\n{:<18} {:<15} {:<8} {:>9} {:>9}     {:>8}  {:<22} A is {}",
        "",
        "metric",
        "unit",
        "A",
        "other",
        "change",
        "verdict",
        "=".repeat(BAR_CHARACTERS as usize)
    )?;
    let mut last = None;
    for difference in &comparison.differences {
        let stretch = &difference.stretch;
        let name = if last.replace(stretch) == Some(stretch) {
            ""
        } else {
            &stretch.name
        };
        let ratio = difference.value / difference.base;
        let bar = (ratio * BAR_CHARACTERS).round().min(BAR_CHARACTERS_MAX) as usize;
        let verdict = match difference.verdict {
            Verdict::WithinSpread => "within the spread",
            Verdict::Better => "better",
            Verdict::Worse => "WORSE",
            Verdict::SpreadUnknown => "? (needs more runs)",
        };
        writeln!(
            out,
            "{name:<18} {:<15} {:<8} {:>9} {:>9} {}  {:>+7.1} %  {verdict:<22}      {}",
            difference.metric,
            difference.metric.unit(),
            number(difference.base),
            number(difference.value),
            letter(difference.side),
            (ratio - 1.0) * 100.0,
            "=".repeat(bar)
        )?;
    }
    Ok(())
}

/// A, B, C ...; numbers beyond the alphabet.
fn letter(side: usize) -> String {
    match u8::try_from(side).ok().filter(|side| *side < 26) {
        Some(side) => char::from(b'A' + side).to_string(),
        None => side.to_string(),
    }
}
