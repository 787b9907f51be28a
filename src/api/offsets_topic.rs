//! The topic of committed offsets: created when it is first needed.

use std::sync::Arc;

use kafka_protocol::ResponseError;

use crate::api::admin_context::AdminContext;
use crate::api::error_code;
use crate::config::BrokerConfig;
use crate::controller::{ControllerCommand, CreateTopicError, NewTopic, NewTopicLayout};
use crate::metadata::Topic;
use crate::model::internal_topic::OFFSETS_TOPIC;

/// The topic as the broker creates it.
pub fn as_created(config: &BrokerConfig) -> NewTopic {
    let settings = [
        ("cleanup.policy", "compact".to_owned()),
        ("compression.type", "producer".to_owned()),
        (
            "segment.bytes",
            config.groups.offsets_segment_bytes.to_string(),
        ),
    ];
    NewTopic {
        name: OFFSETS_TOPIC.to_owned(),
        layout: NewTopicLayout::Counts {
            partition_count: config.groups.offsets_partition_count,
            replication_factor: -1,
        },
        settings: settings
            .into_iter()
            .map(|(name, value)| (name.to_owned(), Some(value)))
            .collect(),
    }
}

/// Completes when the topic is there and every shard has followed.
pub async fn ensure(context: &impl AdminContext) -> Result<Arc<Topic>, ResponseError> {
    if let Some(topic) = context.image().topic(OFFSETS_TOPIC) {
        return Ok(topic.clone());
    }
    let topics = vec![as_created(&context.config())];
    let command = |reply| ControllerCommand::CreateTopics {
        topics,
        validate_only: false,
        reply,
    };
    match context.controller().ask(command).await {
        Ok(mut results) => match results.remove(0) {
            Ok(topic) => Ok(topic),
            // Somebody else was faster, or partitions of it are not open yet, which say so themselves; the client asks again where this
            // shard has not followed yet.
            Err(CreateTopicError::Exists(_) | CreateTopicError::NotFollowed(_)) => context
                .image()
                .topic(OFFSETS_TOPIC)
                .cloned()
                .ok_or(ResponseError::CoordinatorNotAvailable),
            Err(error) => {
                let code = error_code::of_create_topic(&error);
                tracing::error!(topic = OFFSETS_TOPIC, %error, ?code, "the topic of committed offsets could not be created");
                Err(ResponseError::CoordinatorNotAvailable)
            }
        },
        Err(_gone) => Err(ResponseError::CoordinatorNotAvailable),
    }
}
