//! The series in the terminal.

use std::fmt::Write;

use super::SeriesReport;
use crate::columns::Columns;
use crate::compare;

pub fn text(report: &SeriesReport, columns: Columns) -> String {
    let mut out = String::new();
    write_all(&mut out, report, columns).expect("writing to a string does not fail");
    out
}

fn write_all(out: &mut String, report: &SeriesReport, columns: Columns) -> std::fmt::Result {
    if !report.complete {
        writeln!(out, "Partial: the series was ended early.")?;
    }
    for case in &report.cases {
        writeln!(out, "\n{}", case.name)?;
        if !case.what.is_empty() {
            writeln!(out, "{}", case.what)?;
        }
        writeln!(out, "corelog-perf run {}", case.run.join(" "))?;
        for failure in &case.failures {
            writeln!(out, "FAILED {failure}")?;
        }
        out.write_str(&compare::text(&case.comparison, columns))?;
    }
    Ok(())
}
