//! What keeps a series from beginning.

use std::path::PathBuf;

use crate::cli::ArgvError;
use crate::plan::PlanError;
use crate::report::OccupiedError;

#[derive(Debug, thiserror::Error)]
pub enum SeriesError {
    #[error("{path}: {source}", path = path.display())]
    Read {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("{path}: not a set of cases: {source}", path = path.display())]
    Set {
        path: PathBuf,
        source: serde_norway::Error,
    },
    #[error("{path}: there is no case in it", path = path.display())]
    NoCases { path: PathBuf },
    #[error("the case '{name}' is there twice")]
    SameName { name: String },
    #[error("there is no case '{name}'; there are {known}")]
    UnknownCase { name: String, known: String },
    #[error(
        "the name '{name}' is not one for a directory: letters, digits, '.', '_' and '-', and it begins with a letter or digit"
    )]
    Name { name: String },
    #[error("the case '{case}': its quotes do not close: {run}")]
    Quotes { case: String, run: String },
    #[error("the case '{case}': {source}")]
    Arguments { case: String, source: ArgvError },
    #[error("the case '{case}': {source}")]
    Plan { case: String, source: PlanError },
    #[error("the case '{case}' has {flag}, which the series itself decides on")]
    OwnFlag { case: String, flag: &'static str },
    #[error(transparent)]
    Occupied(#[from] OccupiedError),
    #[error("both clusters are called '{name}'")]
    SameContender { name: String },
    #[error("--runs must be from 1 to {max}, not {got}")]
    Runs { got: u32, max: u32 },
}
