//! A YAML file of settings under known names. A key that is not known is an error, never ignored: a misspelt
//! setting would otherwise measure something else than its author meant.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use serde_norway::{Mapping, Value};

use crate::spelling::{did_you_mean, nearest};

/// What is wrong with a file; the message names the file and the key.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error("{file}: {source}")]
    Read { file: String, source: io::Error },
    #[error("{file}: not a YAML mapping of settings: {reason}")]
    Syntax { file: String, reason: String },
    #[error("{file}: '{key}' is not known{}", did_you_mean(*.suggestion))]
    UnknownKey {
        file: String,
        key: String,
        suggestion: Option<&'static str>,
    },
    #[error("{file}: {key} must be {expected}, not '{got}'")]
    Value {
        file: String,
        key: String,
        expected: &'static str,
        got: String,
    },
    #[error("{file}: {key} is missing")]
    Missing { file: String, key: &'static str },
    #[error("{file}: {key} {reason}")]
    NotSupported {
        file: String,
        key: String,
        reason: String,
    },
}

pub struct SettingsFile {
    file: String,
    entries: BTreeMap<String, Value>,
}

impl SettingsFile {
    pub fn read(path: &Path, known: &[&'static str]) -> Result<Self, FileError> {
        let file = path.display().to_string();
        match fs::read_to_string(path) {
            Ok(text) => Self::parse(file, &text, known),
            Err(source) => Err(FileError::Read { file, source }),
        }
    }

    pub fn parse(file: String, text: &str, known: &[&'static str]) -> Result<Self, FileError> {
        let syntax = |reason: String| FileError::Syntax {
            file: file.clone(),
            reason,
        };
        // A map of the standard library would keep the last of two equal keys and say nothing.
        let mapping: Mapping =
            serde_norway::from_str(text).map_err(|error| syntax(error.to_string()))?;
        let entries = mapping
            .into_iter()
            .map(|(key, value)| match key {
                Value::String(key) => Ok((key, value)),
                key => Err(syntax(format!("{} is not a name", shown(&key)))),
            })
            .collect::<Result<BTreeMap<_, _>, _>>()?;
        match entries.keys().find(|key| !known.contains(&key.as_str())) {
            Some(key) => Err(FileError::UnknownKey {
                suggestion: nearest(key, known.iter().copied()),
                key: key.clone(),
                file,
            }),
            None => Ok(Self { file, entries }),
        }
    }

    pub fn file(&self) -> &str {
        &self.file
    }

    /// What `read` makes of a key's value; a key without a value counts as absent.
    fn get<T>(
        &self,
        key: &str,
        expected: &'static str,
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> Result<Option<T>, FileError> {
        match self.entries.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => read(value).map(Some).ok_or_else(|| FileError::Value {
                file: self.file.clone(),
                key: key.to_owned(),
                expected,
                got: shown(value),
            }),
        }
    }

    pub fn text(&self, key: &str) -> Result<Option<String>, FileError> {
        self.get(key, "a text", |value| value.as_str().map(str::to_owned))
    }

    pub fn count(&self, key: &str) -> Result<Option<u32>, FileError> {
        self.get(key, "a whole number", |value| {
            u32::try_from(value.as_u64()?).ok()
        })
    }

    /// Zero or more.
    pub fn number(&self, key: &str) -> Result<Option<f64>, FileError> {
        self.get(key, "a number", |value| {
            value
                .as_f64()
                .filter(|number| number.is_finite() && *number >= 0.0)
        })
    }

    pub fn switch(&self, key: &str) -> Result<Option<bool>, FileError> {
        self.get(key, "true or false", Value::as_bool)
    }

    /// Kafka properties: a block of `name=value` lines, or a mapping.
    pub fn properties(&self, key: &str) -> Result<BTreeMap<String, String>, FileError> {
        let expected = "lines of name=value or a mapping";
        self.get(key, expected, |value| match value {
            Value::String(block) => property_lines(block),
            Value::Mapping(mapping) => mapping
                .iter()
                .map(|(name, value)| Some((name.as_str()?.to_owned(), scalar(value)?)))
                .collect(),
            _ => None,
        })
        .map(Option::unwrap_or_default)
    }
}

fn property_lines(block: &str) -> Option<BTreeMap<String, String>> {
    block
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with(['#', '!']))
        .map(|line| {
            let (name, value) = line.split_once(['=', ':'])?;
            Some((name.trim().to_owned(), value.trim().to_owned()))
        })
        .collect()
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(switch) => Some(switch.to_string()),
        _ => None,
    }
}

fn shown(value: &Value) -> String {
    scalar(value).unwrap_or_else(|| "a list or mapping".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<SettingsFile, FileError> {
        let known = ["messageSize", "producerConfig", "name"];
        SettingsFile::parse("load.yaml".to_owned(), text, &known)
    }

    #[test]
    fn an_unknown_key_is_refused_with_the_nearest_known_one() {
        let error = parse("mesageSize: 1024").err().unwrap();
        assert_eq!(
            error.to_string(),
            "load.yaml: 'mesageSize' is not known, did you mean 'messageSize'?"
        );
        let error = parse("colour: red").err().unwrap();
        assert_eq!(error.to_string(), "load.yaml: 'colour' is not known");
    }

    #[test]
    fn a_key_that_is_there_twice_is_refused() {
        assert!(matches!(
            parse("name: a\nname: b"),
            Err(FileError::Syntax { .. })
        ));
    }

    #[test]
    fn a_value_of_another_kind_is_refused_with_file_and_key() {
        let error = parse("messageSize: 1kb")
            .unwrap()
            .count("messageSize")
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "load.yaml: messageSize must be a whole number, not '1kb'"
        );
    }

    #[test]
    fn properties_are_the_same_as_a_block_of_lines_and_as_a_mapping() {
        let block = "producerConfig: |\n  # as Kafka has it\n  acks=all\n  linger.ms = 1\n";
        let mapping = "producerConfig:\n  acks: all\n  linger.ms: 1\n";
        let [block, mapping] =
            [block, mapping].map(|text| parse(text).unwrap().properties("producerConfig").unwrap());
        assert_eq!(block, mapping);
        assert_eq!(block["linger.ms"], "1");
    }

    #[test]
    fn a_property_line_without_a_value_is_refused() {
        let file = parse("producerConfig: |\n  acks\n").unwrap();
        assert!(file.properties("producerConfig").is_err());
    }
}
