//! The settings of topics and brokers, as a cluster reports and changes them.

use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
use kafka_protocol::messages::describe_configs_response::DescribeConfigsResourceResult;
use kafka_protocol::messages::incremental_alter_configs_request::{
    AlterConfigsResource, AlterableConfig,
};
use kafka_protocol::messages::{ApiKey, DescribeConfigsRequest, IncrementalAlterConfigsRequest};

use crate::model::NodeId;

use super::cluster::Cluster;
use super::error::ClientError;
use super::metadata::text;

/// Whose settings they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resource {
    Topic(String),
    Broker(NodeId),
}

impl Resource {
    fn type_id(&self) -> i8 {
        match self {
            Self::Topic(_) => 2,
            Self::Broker(_) => 4,
        }
    }

    fn name(&self) -> String {
        match self {
            Self::Topic(name) => name.clone(),
            Self::Broker(node) => node.to_string(),
        }
    }
}

impl std::fmt::Display for Resource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Topic(name) => write!(f, "topic '{name}'"),
            Self::Broker(node) => write!(f, "broker {node}"),
        }
    }
}

/// Where a value comes from, under the name of Kafka's ConfigSource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigSource {
    Topic,
    Broker,
    AllBrokers,
    StaticBroker,
    Default,
    Other(i8),
}

impl ConfigSource {
    fn of(source: i8) -> Self {
        match source {
            1 => Self::Topic,
            2 => Self::Broker,
            3 => Self::AllBrokers,
            4 => Self::StaticBroker,
            5 => Self::Default,
            other => Self::Other(other),
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Topic => "DYNAMIC_TOPIC_CONFIG",
            Self::Broker => "DYNAMIC_BROKER_CONFIG",
            Self::AllBrokers => "DYNAMIC_DEFAULT_BROKER_CONFIG",
            Self::StaticBroker => "STATIC_BROKER_CONFIG",
            Self::Default => "DEFAULT_CONFIG",
            Self::Other(_) => "UNKNOWN",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigEntry {
    pub name: String,
    /// None: unset, or kept secret.
    pub value: Option<String>,
    pub source: ConfigSource,
    pub is_read_only: bool,
    pub is_sensitive: bool,
}

impl ConfigEntry {
    fn read(entry: &DescribeConfigsResourceResult) -> Self {
        Self {
            name: entry.name.to_string(),
            value: entry.value.as_ref().map(|value| value.to_string()),
            source: ConfigSource::of(entry.config_source),
            is_read_only: entry.read_only,
            is_sensitive: entry.is_sensitive,
        }
    }
}

/// One setting that is given a value, or its default back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigChange {
    Set { name: String, value: String },
    Delete { name: String },
}

impl ConfigChange {
    fn to_wire(&self) -> AlterableConfig {
        let (name, operation, value) = match self {
            Self::Set { name, value } => (name, 0, Some(text(value))),
            Self::Delete { name } => (name, 1, None),
        };
        AlterableConfig::default()
            .with_name(text(name))
            .with_config_operation(operation)
            .with_value(value)
    }
}

impl Cluster {
    /// All settings of a resource, by name.
    pub fn describe_configs(
        &mut self,
        resource: &Resource,
    ) -> Result<Vec<ConfigEntry>, ClientError> {
        let wanted = DescribeConfigsResource::default()
            .with_resource_type(resource.type_id())
            .with_resource_name(text(&resource.name()))
            .with_configuration_keys(None);
        let request = DescribeConfigsRequest::default().with_resources(vec![wanted]);
        let about = format!("settings of {resource}");
        let address = self.broker_for(resource)?;
        self.ask(&address, |broker| {
            let response = broker.call(&request)?;
            let mut entries = Vec::new();
            for result in &response.results {
                let message = result.error_message.as_deref();
                broker.refuse_error(ApiKey::DescribeConfigs, &about, result.error_code, message)?;
                entries.extend(result.configs.iter().map(ConfigEntry::read));
            }
            entries.sort_by(|a, b| a.name.cmp(&b.name));
            Ok(entries)
        })
    }

    /// Carries out all changes or none.
    pub fn alter_configs(
        &mut self,
        resource: &Resource,
        changes: &[ConfigChange],
    ) -> Result<(), ClientError> {
        let wanted = AlterConfigsResource::default()
            .with_resource_type(resource.type_id())
            .with_resource_name(text(&resource.name()))
            .with_configs(changes.iter().map(ConfigChange::to_wire).collect());
        let request = IncrementalAlterConfigsRequest::default().with_resources(vec![wanted]);
        let about = format!("settings of {resource}");
        self.until_ready(|cluster| {
            let address = cluster.broker_for(resource)?;
            cluster.ask(&address, |broker| {
                let response = broker.call(&request)?;
                response.responses.iter().try_for_each(|result| {
                    let message = result.error_message.as_deref();
                    let code = result.error_code;
                    broker.refuse_error(ApiKey::IncrementalAlterConfigs, &about, code, message)
                })
            })
        })
    }

    /// A broker's own settings are known to itself alone.
    fn broker_for(&mut self, resource: &Resource) -> Result<String, ClientError> {
        match resource {
            Resource::Topic(_) => Ok(self.contact()),
            Resource::Broker(node) => self.node(*node),
        }
    }
}
