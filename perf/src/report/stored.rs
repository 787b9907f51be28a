//! A report, read back.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{SCHEMA, SCHEMA_VERSION};

#[derive(Debug, thiserror::Error)]
pub enum StoredError {
    #[error("{path}: {source}", path = path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{path}: not JSON of a report: {source}", path = path.display())]
    Json {
        path: PathBuf,
        source: serde_json::Error,
    },
    #[error("{path}: its schema is {found}, not {wanted}", path = path.display())]
    Schema {
        path: PathBuf,
        found: String,
        wanted: String,
    },
    #[error("{path}: the run is not valid: {reason}", path = path.display())]
    NotValid { path: PathBuf, reason: String },
}

/// What a report is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schema {
    pub name: &'static str,
    pub version: u32,
}

impl Schema {
    pub const RUN: Self = Self {
        name: SCHEMA,
        version: SCHEMA_VERSION,
    };
}

impl fmt::Display for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} version {}", self.name, self.version)
    }
}

#[derive(Clone, Debug)]
pub struct StoredReport {
    schema: Schema,
    path: PathBuf,
    value: Value,
}

impl StoredReport {
    /// The report of a run in a file, or the `report.json` of a directory.
    pub fn read(path: &Path) -> Result<Self, StoredError> {
        Self::read_one_of(path, &[Schema::RUN])
    }

    fn read_one_of(path: &Path, wanted: &[Schema]) -> Result<Self, StoredError> {
        let path = match path.is_dir() {
            true => path.join("report.json"),
            false => path.to_owned(),
        };
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(source) => return Err(StoredError::Io { path, source }),
        };
        let value: Value = match serde_json::from_slice(&text) {
            Ok(value) => value,
            Err(source) => return Err(StoredError::Json { path, source }),
        };
        let schema = value.get("schema").and_then(Value::as_str);
        let version = value.get("schema_version").and_then(Value::as_u64);
        let known = wanted.iter().find(|wanted| {
            schema == Some(wanted.name) && version == Some(u64::from(wanted.version))
        });
        let Some(known) = known else {
            let version =
                version.map_or_else(|| "no version".to_owned(), |n| format!("version {n}"));
            let found = format!("{}, {version}", schema.unwrap_or("none"));
            let wanted: Vec<String> = wanted.iter().map(Schema::to_string).collect();
            return Err(StoredError::Schema {
                path,
                found,
                wanted: wanted.join(" or "),
            });
        };
        Ok(Self {
            schema: *known,
            path,
            value,
        })
    }

    /// The same, unless its figures must not be used: the run ended early, its audit found or proved nothing that it
    /// should, or the generator was late.
    pub fn read_valid(path: &Path) -> Result<Self, StoredError> {
        Self::read_valid_one_of(path, &[Schema::RUN])
    }

    /// The same of any report of these schemas.
    pub fn read_valid_one_of(path: &Path, wanted: &[Schema]) -> Result<Self, StoredError> {
        let report = Self::read_one_of(path, wanted)?;
        let reason = report.why_not_whole().or_else(|| report.why_late());
        report.unless(reason)
    }

    /// The same, unless the run ended early or its audit failed. Where the generator was late, the latencies of that
    /// step are not the broker's; everything else is.
    pub fn read_whole(path: &Path) -> Result<Self, StoredError> {
        let report = Self::read(path)?;
        let reason = report.why_not_whole();
        report.unless(reason)
    }

    fn unless(self, reason: Option<String>) -> Result<Self, StoredError> {
        match reason {
            None => Ok(self),
            Some(reason) => Err(StoredError::NotValid {
                path: self.path,
                reason,
            }),
        }
    }

    pub fn schema(&self) -> Schema {
        self.schema
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What stands at a JSON pointer; null if nothing does.
    pub fn at(&self, pointer: &str) -> &Value {
        self.value.pointer(pointer).unwrap_or(&Value::Null)
    }

    /// The fields that `T` has.
    pub fn fields<T: DeserializeOwned>(&self) -> Result<T, StoredError> {
        T::deserialize(&self.value).map_err(|source| StoredError::Json {
            path: self.path.clone(),
            source,
        })
    }

    fn why_not_whole(&self) -> Option<String> {
        let text = |pointer: &str| self.at(pointer).as_str();
        let failure = text("/failure");
        if self.at("/complete") != true || failure.is_some() {
            return Some(failure.unwrap_or("it was ended early").to_owned());
        }
        if self.at("/valid") == false {
            return Some(text("/reason").unwrap_or("it says so").to_owned());
        }
        match text("/audit/outcome") {
            Some(outcome @ ("failed" | "incomplete")) => Some(format!("its audit is {outcome}")),
            _ => None,
        }
    }

    fn why_late(&self) -> Option<String> {
        let steps = self.at("/steps").as_array()?;
        let late = steps
            .iter()
            .find(|step| step.pointer("/generator/valid") == Some(&Value::Bool(false)))?;
        let reason = late.pointer("/generator/reason").and_then(Value::as_str);
        Some(reason.unwrap_or("the generator was late").to_owned())
    }
}
