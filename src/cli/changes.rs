use std::fmt;

use serde::Serialize;

use crate::client::error::ClientError;

use super::exit::{CliError, Outcome};
use super::table::printable;

/// What became of each thing that was to be changed. One that is refused does not keep the others from being tried.
#[derive(Debug, Default)]
pub(super) struct Changes {
    done: Vec<Change>,
    refused: Vec<ClientError>,
}

#[derive(Debug, Serialize)]
struct Change {
    name: String,
    result: String,
}

impl Changes {
    pub(super) fn done(&mut self, name: &str, result: impl Into<String>) {
        self.done.push(Change {
            name: name.to_owned(),
            result: result.into(),
        });
    }

    pub(super) fn refused(&mut self, error: ClientError) {
        self.refused.push(error);
    }

    /// Prints what was done; the rest is the error.
    pub(super) fn finish(self, json: bool) -> Result<Outcome, CliError> {
        if json {
            super::print(&super::to_json(&self.done))?;
        } else if !self.done.is_empty() {
            super::print(&self.to_string())?;
        }
        match self.refused.is_empty() {
            true => Ok(Outcome::Done),
            false => Err(CliError::Refused(self.refused)),
        }
    }
}

impl fmt::Display for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, change) in self.done.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{}: {}", printable(&change.name), change.result)?;
        }
        Ok(())
    }
}
