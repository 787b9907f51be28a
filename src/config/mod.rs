//! The settings: one definition each, and every view that is made of them.
//!
//! Owns: the tables of broker and topic settings (Kafka's names), their checks, the layers from default to topic override, the
//! properties file, and the typed views `BrokerConfig` and `TopicConfig` that the rest of the broker acts by.
//! Must never know: who stores an override, who asks for a description, what a setting does.
//! Runs on: any core; everything here is plain data and pure functions, but for reading the properties file at start.
//! After a crash: file settings are read again; online settings come back from the metadata log.

mod alter;
mod broker;
mod broker_settings;
mod check;
mod cores;
mod describe;
mod error;
mod kafka_settings;
mod layers;
mod listener;
mod load;
mod overrides;
mod properties;
mod setting;
mod suggestion;
mod topic;
mod topic_settings;

pub use alter::{AlterOperation, AlterScope, Alteration, alter, check_topic_overrides};
pub use broker::{BrokerConfig, GroupConfig, LogFormat};
pub use broker_settings::BROKER_SETTINGS;
pub use cores::Cores;
pub use describe::DescribedSetting;
pub use error::ConfigError;
pub use layers::{Candidate, Source};
pub use listener::{HostPort, Listener};
pub use load::{LoadError, Loaded};
pub use overrides::Overrides;
pub use properties::parse_properties;
pub use setting::{Importance, Setting, Unit, Update, ValueType};
pub use topic::{CleanupPolicy, RecordValidation, TimestampType, TopicConfig};
pub use topic_settings::TOPIC_SETTINGS;
