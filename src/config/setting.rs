use super::check::{Check, check};
use super::error::ConfigError;

/// Kafka's types of a value, with the numbers that DescribeConfigs puts on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueType {
    Boolean,
    String,
    Int,
    Long,
    Double,
    List,
}

impl ValueType {
    pub fn wire_code(self) -> i8 {
        match self {
            Self::Boolean => 1,
            Self::String => 2,
            Self::Int => 3,
            Self::Long => 5,
            Self::Double => 6,
            Self::List => 7,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Boolean => "boolean",
            Self::String => "string",
            Self::Int => "int",
            Self::Long => "long",
            Self::Double => "double",
            Self::List => "list",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Importance {
    High,
    Medium,
    Low,
}

/// What a number counts; `corelog config` prints it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    None,
    Bytes,
    Milliseconds,
    Minutes,
    Hours,
}

impl Unit {
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Bytes => "bytes",
            Self::Milliseconds => "ms",
            Self::Minutes => "minutes",
            Self::Hours => "hours",
        }
    }
}

/// When a change of a setting takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Update {
    /// Only from the properties file or `--set`, at start.
    ReadOnly,
    /// Online: for one topic, for one broker, or as the default of all brokers.
    Online,
}

/// A broker setting that supplies the value of another one where that is unset: `log.retention.hours` times 3,600,000 is
/// `log.retention.ms`.
#[derive(Clone, Copy, Debug)]
pub struct Synonym {
    pub name: &'static str,
    /// How many of the other setting's units one of this setting's units is.
    pub factor: i64,
}

impl Synonym {
    pub const fn of(name: &'static str) -> Self {
        Self { name, factor: 1 }
    }

    pub const fn in_minutes(name: &'static str) -> Self {
        Self {
            name,
            factor: 60_000,
        }
    }

    pub const fn in_hours(name: &'static str) -> Self {
        Self {
            name,
            factor: 3_600_000,
        }
    }
}

/// Everything there is to say about one setting. The tables in `broker_settings` and `topic_settings` are the only place that
/// says it: parsing, the checks on entry, DescribeConfigs and `corelog config` all read it from here.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    pub name: &'static str,
    pub value_type: ValueType,
    /// As it would stand in a file; `None` is Kafka's null: unset, and a synonym or the rule in the doc decides.
    pub default: Option<&'static str>,
    pub check: Check,
    pub unit: Unit,
    pub importance: Importance,
    pub update: Update,
    /// In the order of precedence. For a topic setting they name broker settings.
    pub synonyms: &'static [Synonym],
    pub doc: &'static str,
}

impl Setting {
    const fn new(name: &'static str, value_type: ValueType, default: &'static str) -> Self {
        Self {
            name,
            value_type,
            default: Some(default),
            check: Check::Any,
            unit: Unit::None,
            importance: Importance::Medium,
            update: Update::ReadOnly,
            synonyms: &[],
            doc: "",
        }
    }

    pub(super) const fn boolean(name: &'static str, default: &'static str) -> Self {
        Self::new(name, ValueType::Boolean, default)
    }

    pub(super) const fn string(name: &'static str, default: &'static str) -> Self {
        Self::new(name, ValueType::String, default)
    }

    pub(super) const fn int(name: &'static str, default: &'static str) -> Self {
        Self::new(name, ValueType::Int, default)
    }

    pub(super) const fn long(name: &'static str, default: &'static str) -> Self {
        Self::new(name, ValueType::Long, default)
    }

    pub(super) const fn double(name: &'static str, default: &'static str) -> Self {
        Self::new(name, ValueType::Double, default)
    }

    pub(super) const fn list(name: &'static str, default: &'static str) -> Self {
        Self::new(name, ValueType::List, default)
    }

    pub(super) const fn unset(mut self) -> Self {
        self.default = None;
        self
    }

    pub(super) const fn check(mut self, check: Check) -> Self {
        self.check = check;
        self
    }

    pub(super) const fn at_least(self, min: i64) -> Self {
        self.check(Check::AtLeast(min))
    }

    /// The default is the only value that is served; `reason` completes "because".
    pub(super) const fn fixed(self, reason: &'static str) -> Self {
        match self.default {
            Some(value) => self.check(Check::Only { value, reason }),
            None => self,
        }
    }

    pub(super) const fn unit(mut self, unit: Unit) -> Self {
        self.unit = unit;
        self
    }

    pub(super) const fn bytes(self) -> Self {
        self.unit(Unit::Bytes)
    }

    pub(super) const fn ms(self) -> Self {
        self.unit(Unit::Milliseconds)
    }

    pub(super) const fn high(mut self) -> Self {
        self.importance = Importance::High;
        self
    }

    pub(super) const fn low(mut self) -> Self {
        self.importance = Importance::Low;
        self
    }

    pub(super) const fn online(mut self) -> Self {
        self.update = Update::Online;
        self
    }

    pub(super) const fn synonyms(mut self, synonyms: &'static [Synonym]) -> Self {
        self.synonyms = synonyms;
        self
    }

    pub(super) const fn doc(mut self, doc: &'static str) -> Self {
        self.doc = doc;
        self
    }

    pub fn check_value(&self, value: &str) -> Result<(), ConfigError> {
        check(self.value_type, &self.check, value)
            .map_err(|reason| ConfigError::invalid(self.name, value, reason))
    }

    pub fn is_read_only(&self) -> bool {
        self.update == Update::ReadOnly
    }
}
