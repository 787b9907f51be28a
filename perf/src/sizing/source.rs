//! Where a value comes from: an estimate is worth as much as its weakest input.

use std::fmt;
use std::path::PathBuf;

use serde::Serialize;

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "source")]
pub enum Source {
    Flag,
    /// Assumed, because nobody said otherwise.
    Default,
    /// Follows from other inputs.
    Derived,
    /// Said by the walkthrough.
    Text,
    Report(Reports),
}

/// What was measured, over one or several runs of the same load.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Reports {
    pub what: String,
    pub files: Vec<PathBuf>,
    /// The smallest and the largest of the runs; the value itself is their median.
    pub least: f64,
    pub most: f64,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag => f.write_str("flag"),
            Self::Default => f.write_str("default, assumed"),
            Self::Derived => f.write_str("from the other inputs"),
            Self::Text => f.write_str("the text"),
            Self::Report(reports) => match reports.files.as_slice() {
                [file] => write!(f, "measured: {}, {}", reports.what, file.display()),
                files => write!(
                    f,
                    "measured: {}, median of {} runs ({:.3} to {:.3}), {} ...",
                    reports.what,
                    files.len(),
                    reports.least,
                    reports.most,
                    files
                        .first()
                        .map_or_else(String::new, |file| file.display().to_string()),
                ),
            },
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sourced<T> {
    pub value: T,
    #[serde(flatten)]
    pub source: Source,
}

impl<T> Sourced<T> {
    pub fn new(value: T, source: Source) -> Self {
        Self { value, source }
    }

    pub fn text(value: T) -> Self {
        Self::new(value, Source::Text)
    }

    /// The flag's value, or else what is assumed.
    pub fn flag_or(flag: Option<T>, default: T) -> Self {
        match flag {
            Some(value) => Self::new(value, Source::Flag),
            None => Self::new(default, Source::Default),
        }
    }
}
