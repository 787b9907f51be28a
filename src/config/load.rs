use std::path::Path;

use super::alter::check_broker_value;
use super::broker::BrokerConfig;
use super::error::ConfigError;
use super::overrides::Overrides;
use super::properties::parse_properties;

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
    let entries = parse_properties(&text).map_err(|error| ConfigError::Syntax {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        file
    }

    #[test]
    fn the_command_line_goes_before_the_file() {
        let file = file("node.id=7\nnum.partitions=3\nlog.dirs=/file\n");
        let sets = ["num.partitions=4".to_owned(), "broker.rack = r1".to_owned()];
        let config =
            BrokerConfig::load(Some(file.path()), &sets, Some(Path::new("/data"))).unwrap();
        assert_eq!((config.node_id.0, config.num_partitions), (7, 4));
        assert_eq!(
            (config.log_dir, config.rack.as_deref()),
            ("/data".into(), Some("r1"))
        );
    }

    #[test]
    fn a_bad_file_is_named() {
        let missing =
            BrokerConfig::load(Some(Path::new("/no/such.properties")), &[], None).unwrap_err();
        assert!(
            missing.to_string().starts_with("/no/such.properties: "),
            "{missing}"
        );
        let file = file("a=b\n\nc=\\u12\n");
        let syntax = BrokerConfig::load(Some(file.path()), &[], None).unwrap_err();
        assert!(syntax.to_string().contains(": line 3: "), "{syntax}");
    }

    #[test]
    fn a_bad_assignment_is_named() {
        let error = |set: &str| BrokerConfig::load(None, &[set.to_owned()], None).unwrap_err();
        assert_eq!(
            error("nonsense"),
            ConfigError::NotAnAssignment("nonsense".into())
        );
        assert!(matches!(
            error("num.partitons=2"),
            ConfigError::Unknown { .. }
        ));
    }
}
