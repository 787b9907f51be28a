use crate::client::configs::Resource;

use super::super::changes::Changes;
use super::super::config::changes_of;
use super::super::exit::{CliError, Outcome};
use super::AlterArguments;

pub(super) fn run(arguments: &AlterArguments) -> Result<Outcome, CliError> {
    let settings = changes_of(&arguments.set, &arguments.unset);
    if settings.is_empty() && arguments.partitions.is_none() {
        return Err(CliError::Usage(
            "nothing to change: give --partitions, --set or --unset".to_owned(),
        ));
    }
    let topic = &arguments.topic;
    let mut cluster = arguments.cluster.connect()?;
    let mut changes = Changes::default();
    // What can still be refused comes first: partitions cannot be taken away again.
    if !settings.is_empty() {
        match cluster.alter_configs(&Resource::Topic(topic.clone()), &settings) {
            Ok(()) => changes.done(topic, "settings changed"),
            Err(error) => {
                changes.refused(error);
                return changes.finish(arguments.json);
            }
        }
    }
    if let Some(partitions) = arguments.partitions {
        match cluster.grow_topic(topic, partitions) {
            Ok(()) => changes.done(topic, format!("has {partitions} partitions")),
            Err(error) => changes.refused(error),
        }
    }
    changes.finish(arguments.json)
}
