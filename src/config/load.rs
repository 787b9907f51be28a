use std::path::Path;

use super::alter::check_broker_value;
use super::broker::BrokerConfig;
use super::error::ConfigError;
use super::overrides::Overrides;
use super::properties;

impl BrokerConfig {
    /// What the command line says: a properties file, then `--set name=value` over it, then `--data` over both.
    pub fn load(
        file: Option<&Path>,
        assignments: &[String],
        data: Option<&Path>,
    ) -> Result<Self, ConfigError> {
        let mut settings = Overrides::default();
        if let Some(path) = file {
            read_file(path, &mut settings)?;
        }
        for assignment in assignments {
            let (name, value) = assignment
                .split_once('=')
                .ok_or_else(|| ConfigError::NotAnAssignment(assignment.clone()))?;
            check_broker_value(name.trim(), value)?;
            settings.set(name.trim(), value.trim());
        }
        if let Some(data) = data {
            settings.set("log.dirs", &data.to_string_lossy());
        }
        Self::from_file_settings(settings)
    }
}

fn read_file(path: &Path, settings: &mut Overrides) -> Result<(), ConfigError> {
    let text = std::fs::read_to_string(path).map_err(|error| ConfigError::Unreadable {
        path: path.into(),
        reason: error.to_string(),
    })?;
    let entries = properties::parse(&text).map_err(|error| ConfigError::Syntax {
        path: path.into(),
        line: error.line,
        reason: error.reason,
    })?;
    for (name, value) in entries {
        check_broker_value(&name, &value)?;
        settings.set(&name, &value);
    }
    Ok(())
}
