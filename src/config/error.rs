use std::path::PathBuf;

use super::suggestion::nearest;

/// What is wrong with a setting. Each names the setting and the reason, as the user reads it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    #[error("unknown setting {name:?}{hint}")]
    Unknown { name: String, hint: String },
    #[error("{name}={value}: {reason}")]
    Invalid {
        name: String,
        value: String,
        reason: String,
    },
    #[error("{0} can be set only in the properties file or by --set, at start")]
    ReadOnly(String),
    #[error("{0} is no list: it can be set or deleted, not appended to or subtracted from")]
    NotAList(String),
    #[error("{0} has no value")]
    NoValue(String),
    #[error("{0} stands twice in one request")]
    Twice(String),
    #[error("{path}: line {line}: {reason}", path = .path.display())]
    Syntax {
        path: PathBuf,
        line: usize,
        reason: String,
    },
    #[error("{path}: {reason}", path = .path.display())]
    Unreadable { path: PathBuf, reason: String },
    #[error("--set {0:?} is not name=value")]
    NotAnAssignment(String),
}

impl ConfigError {
    pub(super) fn unknown<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Self {
        let hint = nearest(name, names)
            .map(|near| format!("; did you mean {near}?"))
            .unwrap_or_default();
        Self::Unknown {
            name: shown(name),
            hint,
        }
    }

    pub(super) fn invalid(name: &str, value: &str, reason: String) -> Self {
        Self::Invalid {
            name: shown(name),
            value: shown(value),
            reason,
        }
    }
}

/// A name or value that a client sent may be as long as a request; a message shows the beginning.
fn shown(text: &str) -> String {
    const CHARACTERS_MAX: usize = 100;
    match text.char_indices().nth(CHARACTERS_MAX) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.into(),
    }
}
