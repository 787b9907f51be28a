use std::collections::HashMap;
use std::sync::Arc;

use super::command::TopicSelector;
use super::error::DeleteTopicError;
use crate::config::BrokerConfig;
use crate::metadata::{MetadataImage, Topic};
use crate::model::TopicId;
use crate::model::internal_topic::is_internal;

/// The topic that each selector means and that will go, or why not.
pub(super) fn plan(
    image: &MetadataImage,
    config: &BrokerConfig,
    selectors: &[TopicSelector],
) -> Vec<Result<Arc<Topic>, DeleteTopicError>> {
    let found: Vec<_> = selectors
        .iter()
        .map(|selector| find(image, selector))
        .collect();
    let mut meant: HashMap<TopicId, usize> = HashMap::new();
    for topic in found.iter().flatten() {
        *meant.entry(topic.id).or_default() += 1;
    }
    found
        .into_iter()
        .map(|topic| match topic {
            _ if !config.delete_topics => Err(DeleteTopicError::Disabled),
            Ok(topic) if is_internal(topic.name.as_str()) => {
                Err(DeleteTopicError::Internal(topic.name.clone()))
            }
            Ok(topic) if meant[&topic.id] > 1 => Err(DeleteTopicError::Twice),
            topic => topic,
        })
        .collect()
}

fn find(image: &MetadataImage, selector: &TopicSelector) -> Result<Arc<Topic>, DeleteTopicError> {
    match selector {
        TopicSelector::Name(name) => image
            .topic(name)
            .cloned()
            .ok_or_else(|| DeleteTopicError::UnknownName(name.clone())),
        TopicSelector::Id(id) => image
            .topic_by_id(*id)
            .cloned()
            .ok_or(DeleteTopicError::UnknownId(*id)),
    }
}
