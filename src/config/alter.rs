use super::broker::BrokerConfig;
use super::broker_settings::{BROKER_SETTINGS, broker_setting};
use super::check::parse_list;
use super::error::ConfigError;
use super::overrides::Overrides;
use super::setting::{Setting, ValueType};
use super::topic::check_topic_value;
use super::topic_settings::{TOPIC_SETTINGS, topic_setting};

/// What IncrementalAlterConfigs does with one setting, with Kafka's wire numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AlterOperation {
    Set,
    /// Back to what the layers below say.
    Delete,
    /// Adds elements to a list.
    Append,
    /// Takes elements out of a list.
    Subtract,
}

impl AlterOperation {
    pub fn from_wire_code(code: i8) -> Option<Self> {
        match code {
            0 => Some(Self::Set),
            1 => Some(Self::Delete),
            2 => Some(Self::Append),
            3 => Some(Self::Subtract),
            _ => None,
        }
    }
}

/// One change of one setting as a client asked for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alteration {
    pub name: String,
    pub operation: AlterOperation,
    pub value: Option<String>,
}

/// Whose settings are altered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AlterScope {
    Topic,
    Broker,
}

/// What the overrides become, or the first thing that is wrong; nothing is half done.
pub fn alter(
    scope: AlterScope,
    current: &Overrides,
    alterations: &[Alteration],
    broker: &BrokerConfig,
) -> Result<Overrides, ConfigError> {
    let mut result = current.clone();
    for (index, alteration) in alterations.iter().enumerate() {
        let Alteration {
            name,
            operation,
            value,
        } = alteration;
        if alterations[..index]
            .iter()
            .any(|earlier| earlier.name == *name)
        {
            return Err(ConfigError::Twice(name.clone()));
        }
        let setting = scope.setting(name)?;
        if setting.is_read_only() {
            return Err(ConfigError::ReadOnly(name.clone()));
        }
        if *operation == AlterOperation::Delete {
            result.remove(name);
            continue;
        }
        let value = value
            .as_deref()
            .ok_or_else(|| ConfigError::NoValue(name.clone()))?;
        let value = match operation {
            AlterOperation::Append => edited_list(scope, setting, current, value, broker, true)?,
            AlterOperation::Subtract => edited_list(scope, setting, current, value, broker, false)?,
            AlterOperation::Set | AlterOperation::Delete => value.to_owned(),
        };
        setting.check_value(&value)?;
        result.set(name, &value);
    }
    Ok(result)
}

impl AlterScope {
    fn setting(self, name: &str) -> Result<&'static Setting, ConfigError> {
        let (setting, table) = match self {
            Self::Topic => (topic_setting(name), TOPIC_SETTINGS),
            Self::Broker => (broker_setting(name), BROKER_SETTINGS),
        };
        setting.ok_or_else(|| ConfigError::unknown(name, table.iter().map(|setting| setting.name)))
    }
}

/// The list that is in effect (set here, or given by the layers below) with the elements of `value` added or taken out.
fn edited_list(
    scope: AlterScope,
    setting: &Setting,
    current: &Overrides,
    value: &str,
    broker: &BrokerConfig,
    append: bool,
) -> Result<String, ConfigError> {
    if setting.value_type != ValueType::List {
        return Err(ConfigError::NotAList(setting.name.into()));
    }
    let inherited = || match scope {
        AlterScope::Topic => broker.layers().topic_effective(setting),
        AlterScope::Broker => broker.layers().effective(setting),
    };
    let base = current
        .get(setting.name)
        .map(str::to_owned)
        .or_else(inherited)
        .unwrap_or_default();
    let mut elements: Vec<&str> = parse_list(&base).collect();
    for element in parse_list(value) {
        elements.retain(|present| append || *present != element);
        if append && !elements.contains(&element) {
            elements.push(element);
        }
    }
    Ok(elements.join(","))
}

/// Whether a new topic may have these overrides.
pub fn check_topic_overrides(overrides: &Overrides) -> Result<(), ConfigError> {
    overrides
        .iter()
        .try_for_each(|(name, value)| check_topic_value(name, value))
}

/// Whether the properties file or `--set` may say this.
pub fn check_broker_value(name: &str, value: &str) -> Result<(), ConfigError> {
    AlterScope::Broker.setting(name)?.check_value(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alteration(name: &str, operation: AlterOperation, value: Option<&str>) -> Alteration {
        Alteration {
            name: name.into(),
            operation,
            value: value.map(str::to_owned),
        }
    }

    fn altered(
        scope: AlterScope,
        current: &[(&str, &str)],
        change: Alteration,
    ) -> Result<Overrides, ConfigError> {
        alter(
            scope,
            &current.iter().copied().collect(),
            &[change],
            &BrokerConfig::default(),
        )
    }

    #[test]
    fn set_and_delete_change_one_override() {
        let set = alteration("retention.ms", AlterOperation::Set, Some("5"));
        let result = altered(AlterScope::Topic, &[("segment.ms", "9")], set).unwrap();
        assert_eq!(
            result,
            [("retention.ms", "5"), ("segment.ms", "9")]
                .into_iter()
                .collect()
        );
        let delete = alteration("segment.ms", AlterOperation::Delete, None);
        assert!(
            altered(AlterScope::Topic, &[("segment.ms", "9")], delete)
                .unwrap()
                .is_empty()
        );
    }

    #[test]
    fn append_and_subtract_start_from_the_value_in_effect() {
        let append = alteration("cleanup.policy", AlterOperation::Append, Some("compact"));
        let result = altered(AlterScope::Topic, &[], append.clone()).unwrap();
        assert_eq!(
            result.get("cleanup.policy"),
            Some("delete,compact"),
            "the default was delete"
        );
        let again = altered(AlterScope::Topic, &[("cleanup.policy", "compact")], append).unwrap();
        assert_eq!(
            again.get("cleanup.policy"),
            Some("compact"),
            "what is there is not added twice"
        );
        let subtract = alteration("cleanup.policy", AlterOperation::Subtract, Some("delete"));
        let result = altered(
            AlterScope::Topic,
            &[("cleanup.policy", "delete,compact")],
            subtract,
        )
        .unwrap();
        assert_eq!(result.get("cleanup.policy"), Some("compact"));
    }

    #[test]
    fn what_cannot_be_altered_is_refused() {
        let refused = |scope, name, operation, value| {
            altered(scope, &[], alteration(name, operation, value)).unwrap_err()
        };
        use AlterOperation::{Append, Set};
        use AlterScope::{Broker, Topic};
        let error = refused(Topic, "retention.ms", Append, Some("5"));
        assert_eq!(error, ConfigError::NotAList("retention.ms".into()));
        assert_eq!(
            refused(Topic, "retention.ms", Set, None),
            ConfigError::NoValue("retention.ms".into())
        );
        assert_eq!(
            refused(Broker, "node.id", Set, Some("2")),
            ConfigError::ReadOnly("node.id".into())
        );
        assert!(matches!(
            refused(Broker, "retention.ms", Set, Some("2")),
            ConfigError::Unknown { .. }
        ));
        assert!(matches!(
            refused(Topic, "retention.ms", Set, Some("x")),
            ConfigError::Invalid { .. }
        ));
        assert!(matches!(
            refused(Topic, "cleanup.policy", Append, Some("x")),
            ConfigError::Invalid { .. }
        ));
    }

    #[test]
    fn a_setting_stands_once_in_a_request() {
        let twice = [
            alteration("retention.ms", AlterOperation::Set, Some("1")),
            alteration("retention.ms", AlterOperation::Delete, None),
        ];
        let error = alter(
            AlterScope::Topic,
            &Overrides::default(),
            &twice,
            &BrokerConfig::default(),
        );
        assert_eq!(error, Err(ConfigError::Twice("retention.ms".into())));
    }
}
