use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use super::broker::BrokerConfig;
use super::broker_settings::{BROKER_SETTINGS, broker_setting};
use super::error::ConfigError;
use super::kafka_settings::{Meaning, kafka_setting};
use super::listener;
use super::overrides::Overrides;
use super::properties::properties_entries;
use super::setting::Setting;
use super::topic_settings::{TOPIC_SETTINGS, topic_setting};

/// The settings that name listeners.
const LISTENERS: [&str; 2] = ["listeners", "advertised.listeners"];

/// What a broker starts with.
#[derive(Debug)]
pub struct Loaded {
    pub config: BrokerConfig,
    /// Settings of Kafka's that were given and make no difference here, as they should be shown.
    pub without_effect: Vec<String>,
}

/// Everything that is wrong with what was given, in the order in which it was given.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub struct LoadError(Vec<Problem>);

#[derive(Debug, PartialEq, Eq)]
struct Problem {
    place: Place,
    error: ConfigError,
}

/// Where a setting was given.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    File(PathBuf),
    Line(PathBuf, usize),
    CommandLine,
}

impl Loaded {
    /// What the command line says: a properties file, then `--set name=value` over it, then `--data` over both. A topic's name for a
    /// setting means the default of all topics: `flush.messages` is `log.flush.interval.messages`.
    pub fn from_command_line(
        file: Option<&Path>,
        assignments: &[String],
        data: Option<&Path>,
    ) -> Result<Self, LoadError> {
        let mut given = Given::default();
        if let Some(path) = file {
            given.take_file(path);
        }
        for assignment in assignments {
            match assignment.split_once('=') {
                Some((name, value)) => given.take(Place::CommandLine, name.trim(), value.trim()),
                None => given.refuse(
                    Place::CommandLine,
                    ConfigError::NotAnAssignment(assignment.clone()),
                ),
            }
        }
        if let Some(data) = data {
            given.take(Place::CommandLine, "log.dirs", &data.to_string_lossy());
        }
        given.finish()
    }
}

/// What has been read so far.
#[derive(Default)]
struct Given {
    settings: Overrides,
    places: BTreeMap<String, Place>,
    /// `controller.listener.names`: no client is served there.
    controller_listeners: String,
    without_effect: Vec<String>,
    problems: Vec<Problem>,
}

impl Given {
    fn take_file(&mut self, path: &Path) {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) => {
                let reason = error.to_string();
                return self.refuse(Place::File(path.into()), ConfigError::Unreadable(reason));
            }
        };
        for entry in properties_entries(&text) {
            match entry {
                Ok(entry) => {
                    let place = Place::Line(path.into(), entry.line);
                    self.take(place, &entry.name, &entry.value);
                }
                Err(error) => {
                    let place = Place::Line(path.into(), error.line);
                    self.refuse(place, ConfigError::Syntax(error.reason));
                }
            }
        }
    }

    fn take(&mut self, place: Place, name: &str, value: &str) {
        let setting = match named(name) {
            Ok(Some(setting)) => setting,
            Ok(None) => return self.take_kafkas(place, name, value),
            Err(reason) => {
                return self.refuse(place, ConfigError::invalid(name, value, reason.to_owned()));
            }
        };
        if let Err(error) = setting.check_value(value) {
            return self.refuse(place, error.under_name(name));
        }
        self.settings.set(setting.name, value);
        self.places.insert(setting.name.to_owned(), place);
    }

    fn take_kafkas(&mut self, place: Place, name: &str, value: &str) {
        let refused = match kafka_setting(name) {
            None => ConfigError::unknown(name, known_names()),
            Some(Meaning::NotServed(reason)) => {
                ConfigError::invalid(name, value, reason.to_owned())
            }
            Some(Meaning::Only {
                value: only,
                reason,
            }) if !value.eq_ignore_ascii_case(only) => {
                let reason = format!("only {only:?} is served: {reason}");
                ConfigError::invalid(name, value, reason)
            }
            Some(Meaning::Only { .. } | Meaning::NoEffect) => {
                if name == "controller.listener.names" {
                    self.controller_listeners = value.to_owned();
                }
                if !self.without_effect.iter().any(|it| it == name) {
                    self.without_effect.push(name.to_owned());
                }
                return;
            }
        };
        self.refuse(place, refused);
    }

    fn refuse(&mut self, place: Place, error: ConfigError) {
        self.problems.push(Problem { place, error });
    }

    fn finish(mut self) -> Result<Loaded, LoadError> {
        for name in LISTENERS {
            if let Some(all) = self.settings.get(name) {
                let kept = listener::without(all, &self.controller_listeners);
                if kept.len() < all.len() {
                    self.without_effect
                        .push(format!("{name} of {}", self.controller_listeners));
                    self.settings.set(name, &kept);
                }
            }
        }
        let made = BrokerConfig::from_file_settings(self.settings);
        match made {
            Ok(config) if self.problems.is_empty() => Ok(Loaded {
                config,
                without_effect: self.without_effect,
            }),
            Ok(_) => Err(LoadError(self.problems)),
            Err(error) => {
                let place = error.setting_name().and_then(|name| self.places.get(name));
                let place = place.cloned().unwrap_or(Place::CommandLine);
                self.problems.push(Problem { place, error });
                Err(LoadError(self.problems))
            }
        }
    }
}

/// The broker's setting of this name, be it the broker's own name or a topic's; none if nobody here has it.
fn named(name: &str) -> Result<Option<&'static Setting>, &'static str> {
    if let Some(setting) = broker_setting(name) {
        return Ok(Some(setting));
    }
    if name == "broker.id" {
        return Ok(broker_setting("node.id"));
    }
    let Some(topic) = topic_setting(name) else {
        return Ok(None);
    };
    let default = topic.synonyms.first();
    default
        .and_then(|synonym| broker_setting(synonym.name))
        .map(Some)
        .ok_or("is set for single topics; there is no default of all topics")
}

/// Every name that means something here.
fn known_names() -> impl Iterator<Item = &'static str> {
    BROKER_SETTINGS
        .iter()
        .chain(TOPIC_SETTINGS)
        .map(|setting| setting.name)
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [problem] = self.0.as_slice() {
            return write!(f, "{problem}");
        }
        write!(f, "{} settings are wrong:", self.0.len())?;
        for problem in &self.0 {
            write!(f, "\n  {problem}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::File(path) => write!(f, "{}: ", path.display())?,
            Place::Line(path, line) => write!(f, "{}: line {line}: ", path.display())?,
            Place::CommandLine => {}
        }
        write!(f, "{}", self.error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        file
    }

    fn of_file(text: &str) -> Result<Loaded, LoadError> {
        Loaded::from_command_line(Some(file(text).path()), &[], None)
    }

    fn of_set(set: &str) -> Result<Loaded, LoadError> {
        Loaded::from_command_line(None, &[set.to_owned()], None)
    }

    #[test]
    fn the_command_line_goes_before_the_file() {
        let file = file("node.id=7\nnum.partitions=3\nlog.dirs=/file\n");
        let sets = ["num.partitions=4".to_owned(), "broker.rack = r1".to_owned()];
        let data = Some(Path::new("/data"));
        let config = Loaded::from_command_line(Some(file.path()), &sets, data)
            .unwrap()
            .config;
        assert_eq!((config.node_id.0, config.num_partitions), (7, 4));
        assert_eq!(
            (config.log_dir, config.rack.as_deref()),
            ("/data".into(), Some("r1"))
        );
    }

    #[test]
    fn a_topics_name_of_a_setting_is_the_default_of_all_topics() {
        for set in ["flush.messages=1", "log.flush.interval.messages=1"] {
            let config = of_set(set).unwrap().config;
            assert_eq!(config.topic_defaults.flush_message_count, 1, "{set}");
        }
        for topic in TOPIC_SETTINGS {
            let Some(default) = topic.default.filter(|_| !topic.synonyms.is_empty()) else {
                continue;
            };
            let loaded = of_set(&format!("{}={default}", topic.name));
            assert!(loaded.is_ok(), "{}: {loaded:?}", topic.name);
        }
        let refused = of_set("flush.messages=none").unwrap_err().to_string();
        assert!(refused.starts_with("flush.messages=none: "), "{refused}");
    }

    #[test]
    fn a_topics_setting_without_a_default_for_all_says_so() {
        let refused = of_set("remote.storage.enable=false")
            .unwrap_err()
            .to_string();
        assert!(refused.contains("single topics"), "{refused}");
    }

    #[test]
    fn everything_that_is_wrong_is_told_at_once_with_its_line() {
        let text = "num.partitions=x\n\nno.such=1\nc=\\u12\nnode.id=2\nlog.segment.bytes=1\n";
        let file = file(text);
        let sets = ["nonsense".to_owned(), "num.partitons=2".to_owned()];
        let error = Loaded::from_command_line(Some(file.path()), &sets, None).unwrap_err();
        let places: Vec<&Place> = error.0.iter().map(|problem| &problem.place).collect();
        let line = |line| Place::Line(file.path().into(), line);
        assert_eq!(
            places,
            [
                &line(1),
                &line(3),
                &line(4),
                &line(6),
                &Place::CommandLine,
                &Place::CommandLine
            ]
        );
        let told = error.to_string();
        assert!(told.starts_with("6 settings are wrong:\n  "), "{told}");
        assert!(
            told.contains(": line 6: log.segment.bytes=1: must be at least"),
            "{told}"
        );
        assert!(told.contains("did you mean num.partitions?"), "{told}");
    }

    #[test]
    fn what_settings_must_agree_on_is_told_with_the_line_of_the_wrong_one() {
        let error = |text: &str| of_file(text).unwrap_err().to_string();
        let wildcard = error(
            "listeners=PLAINTEXT://0.0.0.0:9092\nnode.id=1\nadvertised.listeners=PLAINTEXT://0.0.0.0:9092\n",
        );
        assert!(
            wildcard.contains(": line 3: advertised.listeners=PLAINTEXT://0.0.0.0:9092: "),
            "{wildcard}"
        );
        let secured = error(
            "listeners=SSL://h:9092\nlistener.security.protocol.map=PLAINTEXT:PLAINTEXT,SSL:SSL\n",
        );
        assert!(secured.contains(": line 1: listeners="), "{secured}");
        assert!(secured.contains("only PLAINTEXT is served"), "{secured}");
    }

    #[test]
    fn a_bad_file_is_named() {
        let missing = Path::new("/no/such.properties");
        let missing = Loaded::from_command_line(Some(missing), &[], None).unwrap_err();
        assert!(
            missing.to_string().starts_with("/no/such.properties: "),
            "{missing}"
        );
    }

    #[test]
    fn the_server_properties_of_kafka_start_a_broker() {
        let text = "process.roles=broker,controller\nnode.id=1\ncontroller.quorum.bootstrap.servers=localhost:9093\n\
            listeners=PLAINTEXT://:9092,CONTROLLER://:9093\ninter.broker.listener.name=PLAINTEXT\n\
            advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093\n\
            controller.listener.names=CONTROLLER\n\
            listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_SSL:SASL_SSL\n\
            num.network.threads=3\nlog.dirs=/tmp/kraft-combined-logs\noffsets.topic.replication.factor=1\n";
        let Loaded {
            config,
            without_effect,
        } = of_file(text).unwrap();
        assert_eq!(config.listeners.len(), 1);
        assert_eq!(config.listeners[0].advertised.to_string(), "localhost:9092");
        assert_eq!(
            without_effect,
            [
                "process.roles",
                "controller.quorum.bootstrap.servers",
                "inter.broker.listener.name",
                "controller.listener.names",
                "num.network.threads",
                "listeners of CONTROLLER",
                "advertised.listeners of CONTROLLER",
            ]
        );
    }

    #[test]
    fn a_setting_that_somebody_relies_on_is_refused() {
        for set in [
            "authorizer.class.name=org.example.Authorizer",
            "create.topic.policy.class.name=org.example.Policy",
            "log.cleaner.enable=false",
            "remote.log.storage.system.enable=true",
        ] {
            let refused = of_set(set).unwrap_err().to_string();
            assert!(refused.starts_with(&format!("{set}: ")), "{refused}");
        }
        assert!(of_set("log.cleaner.enable=TRUE").is_ok());
    }
}
