//! Several runs in turn: of one load on one cluster (`run --runs N`), or of several loads on two clusters alternately (`versus`).
//!
//! Owns: whose turn it is, where each run's report goes, what all of them say together. Must never know: what a run does. Runs on: the
//! main thread. A turn that fails is reported and the others go on; Ctrl-C ends the series after the run under way.

mod case;
mod error;
mod page;
mod report;
#[cfg(test)]
mod tests;
mod text;
mod turns;

pub use error::SeriesError;
pub use report::SeriesReport;
pub use text::text;
pub use turns::{Contender, Series};

use std::path::Path;

use crate::columns::Columns;
use crate::report::{WriteError, make_directory, write_json, write_text};

/// Writes `report.json`, `report.txt` and `report.html` beside the directories of the runs.
fn write_directory(report: &SeriesReport, directory: &Path) -> Result<(), WriteError> {
    make_directory(directory)?;
    write_json(report, &directory.join("report.json"))?;
    write_text(
        &text(report, Columns::OF_A_FILE),
        &directory.join("report.txt"),
    )?;
    write_text(&page::html(report), &directory.join("report.html"))
}
