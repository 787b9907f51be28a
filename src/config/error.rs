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
    #[error("{0}")]
    Syntax(String),
    #[error("{0}")]
    Unreadable(String),
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

    /// The same of a setting that was given under this name.
    pub(super) fn under_name(self, name: &str) -> Self {
        match self {
            Self::Invalid { value, reason, .. } => Self::Invalid {
                name: shown(name),
                value,
                reason,
            },
            other => other,
        }
    }

    /// The setting that is wrong, where it is one.
    pub(super) fn setting_name(&self) -> Option<&str> {
        match self {
            Self::Unknown { name, .. }
            | Self::Invalid { name, .. }
            | Self::ReadOnly(name)
            | Self::NotAList(name)
            | Self::NoValue(name)
            | Self::Twice(name) => Some(name),
            Self::Syntax(_) | Self::Unreadable(_) | Self::NotAnAssignment(_) => None,
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
