use super::command::{ConfigChange, ConfigResource, SettingsChange};
use super::error::AlterConfigError;
use crate::config::{AlterOperation, AlterScope, Alteration, BrokerConfig, Overrides, alter};
use crate::metadata::{MetadataImage, MetadataRecord};

/// The record that makes each change (`None` where nothing changes), or why it cannot be made.
pub(super) fn plan(
    image: &MetadataImage,
    config: &BrokerConfig,
    changes: &[ConfigChange],
) -> Vec<Result<Option<MetadataRecord>, AlterConfigError>> {
    let plan_one = |change: &ConfigChange| {
        if changes
            .iter()
            .filter(|other| other.resource == change.resource)
            .count()
            > 1
        {
            return Err(AlterConfigError::Twice);
        }
        plan_change(image, config, change)
    };
    changes.iter().map(plan_one).collect()
}

fn plan_change(
    image: &MetadataImage,
    config: &BrokerConfig,
    change: &ConfigChange,
) -> Result<Option<MetadataRecord>, AlterConfigError> {
    match &change.resource {
        ConfigResource::Topic(name) => {
            let topic = image
                .topic(name)
                .ok_or_else(|| AlterConfigError::UnknownTopic(name.clone()))?;
            let changed = changed(
                AlterScope::Topic,
                config,
                &topic.overrides,
                &change.settings,
            )?;
            let topic_id = topic.id.0.as_u128();
            Ok(
                changed
                    .map(|settings| MetadataRecord::TopicSettingsReplaced { topic_id, settings }),
            )
        }
        ConfigResource::Broker(node) if *node != config.node_id => {
            Err(AlterConfigError::UnknownBroker(*node))
        }
        ConfigResource::Broker(node) => {
            let changed = changed(
                AlterScope::Broker,
                config,
                &image.broker_settings(Some(*node)),
                &change.settings,
            )?;
            Ok(
                changed.map(|settings| MetadataRecord::BrokerSettingsReplaced {
                    node_id: Some(node.0),
                    settings,
                }),
            )
        }
        ConfigResource::AllBrokers => {
            let changed = changed(
                AlterScope::Broker,
                config,
                &image.broker_settings(None),
                &change.settings,
            )?;
            Ok(
                changed.map(|settings| MetadataRecord::BrokerSettingsReplaced {
                    node_id: None,
                    settings,
                }),
            )
        }
    }
}

/// What is set after the change; `None` if that is what was set before.
fn changed(
    scope: AlterScope,
    config: &BrokerConfig,
    before: &Overrides,
    change: &SettingsChange,
) -> Result<Option<Vec<(String, String)>>, AlterConfigError> {
    let after = match change {
        SettingsChange::Incremental(alterations) => alter(scope, before, alterations, config)?,
        SettingsChange::ReplaceAll(settings) => {
            let sets: Vec<Alteration> = settings
                .iter()
                .map(|(name, value)| Alteration {
                    name: name.clone(),
                    operation: AlterOperation::Set,
                    value: value.clone(),
                })
                .collect();
            alter(scope, &Overrides::default(), &sets, config)?
        }
    };
    Ok((after != *before).then(|| {
        after
            .iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect()
    }))
}
