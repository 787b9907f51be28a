//! Creating, growing and deleting topics.

use kafka_protocol::messages::create_partitions_request::CreatePartitionsTopic;
use kafka_protocol::messages::create_topics_request::{CreatableTopic, CreatableTopicConfig};
use kafka_protocol::messages::{
    ApiKey, CreatePartitionsRequest, CreateTopicsRequest, DeleteTopicsRequest,
};

use super::cluster::Cluster;
use super::error::ClientError;
use super::metadata::{text, topic_name};

/// A topic as it is to be made.
#[derive(Clone, Debug, Default)]
pub struct NewTopic {
    pub name: String,
    /// None: as many as the broker gives (`num.partitions`).
    pub partitions: Option<i32>,
    /// None: as many as the broker gives (`default.replication.factor`).
    pub replication: Option<i16>,
    pub settings: Vec<(String, String)>,
}

impl Cluster {
    pub fn create_topic(&mut self, topic: &NewTopic) -> Result<(), ClientError> {
        let setting = |(name, value): &(String, String)| {
            CreatableTopicConfig::default()
                .with_name(text(name))
                .with_value(Some(text(value)))
        };
        let wanted = CreatableTopic::default()
            .with_name(topic_name(&topic.name))
            .with_num_partitions(topic.partitions.unwrap_or(-1))
            .with_replication_factor(topic.replication.unwrap_or(-1))
            .with_configs(topic.settings.iter().map(setting).collect());
        let request = CreateTopicsRequest::default()
            .with_topics(vec![wanted])
            .with_timeout_ms(self.change_timeout_ms());
        let about = format!("topic '{}'", topic.name);
        self.until_ready(|cluster| {
            let controller = cluster.controller()?;
            cluster.ask(&controller, |broker| {
                let response = broker.call(&request)?;
                response.topics.iter().try_for_each(|result| {
                    let message = result.error_message.as_deref();
                    broker.refuse_error(ApiKey::CreateTopics, &about, result.error_code, message)
                })
            })
        })
    }

    /// Makes it a topic of `partitions` partitions, which must be more than it has.
    pub fn grow_topic(&mut self, name: &str, partitions: i32) -> Result<(), ClientError> {
        let wanted = CreatePartitionsTopic::default()
            .with_name(topic_name(name))
            .with_count(partitions)
            .with_assignments(None);
        let request = CreatePartitionsRequest::default()
            .with_topics(vec![wanted])
            .with_timeout_ms(self.change_timeout_ms());
        let about = format!("topic '{name}'");
        self.until_ready(|cluster| {
            let controller = cluster.controller()?;
            cluster.ask(&controller, |broker| {
                let response = broker.call(&request)?;
                response.results.iter().try_for_each(|result| {
                    let message = result.error_message.as_deref();
                    let code = result.error_code;
                    broker.refuse_error(ApiKey::CreatePartitions, &about, code, message)
                })
            })
        })
    }

    pub fn delete_topic(&mut self, name: &str) -> Result<(), ClientError> {
        let request = DeleteTopicsRequest::default()
            .with_topic_names(vec![topic_name(name)])
            .with_timeout_ms(self.change_timeout_ms());
        let about = format!("topic '{name}'");
        self.until_ready(|cluster| {
            let controller = cluster.controller()?;
            cluster.ask(&controller, |broker| {
                let response = broker.call(&request)?;
                response.responses.iter().try_for_each(|result| {
                    let message = result.error_message.as_deref();
                    broker.refuse_error(ApiKey::DeleteTopics, &about, result.error_code, message)
                })
            })
        })
    }

    /// What the broker may take to carry out a change.
    fn change_timeout_ms(&self) -> i32 {
        i32::try_from(self.options().response_timeout.as_millis()).unwrap_or(i32::MAX)
    }
}
