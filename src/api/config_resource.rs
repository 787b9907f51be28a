use crate::controller::ConfigResource;
use crate::model::NodeId;

/// Kafka's numbers of what can have settings.
pub const TOPIC: i8 = 2;
pub const BROKER: i8 = 4;
pub const BROKER_LOGGER: i8 = 8;
pub const CLIENT_METRICS: i8 = 16;
pub const GROUP: i8 = 32;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigResourceError {
    #[error("this broker has no settings of resource type {0}")]
    Type(i8),
    #[error("{0:?} is no broker id")]
    BrokerId(String),
}

/// The resource that a request names. The broker named "" stands for all of them.
pub fn config_resource(
    resource_type: i8,
    name: &str,
) -> Result<ConfigResource, ConfigResourceError> {
    match resource_type {
        TOPIC => Ok(ConfigResource::Topic(name.into())),
        BROKER if name.is_empty() => Ok(ConfigResource::AllBrokers),
        BROKER => match name.parse() {
            Ok(id) => Ok(ConfigResource::Broker(NodeId(id))),
            Err(_) => Err(ConfigResourceError::BrokerId(name.into())),
        },
        other => Err(ConfigResourceError::Type(other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_and_brokers_have_settings() {
        assert_eq!(
            config_resource(TOPIC, "t"),
            Ok(ConfigResource::Topic("t".into()))
        );
        assert_eq!(
            config_resource(BROKER, "3"),
            Ok(ConfigResource::Broker(NodeId(3)))
        );
        assert_eq!(config_resource(BROKER, ""), Ok(ConfigResource::AllBrokers));
        assert_eq!(
            config_resource(BROKER, "x"),
            Err(ConfigResourceError::BrokerId("x".into()))
        );
        assert_eq!(
            config_resource(BROKER_LOGGER, "1"),
            Err(ConfigResourceError::Type(BROKER_LOGGER))
        );
        assert_eq!(config_resource(-1, "1"), Err(ConfigResourceError::Type(-1)));
    }
}
