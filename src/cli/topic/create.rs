use crate::client::error::ErrorCode;
use crate::client::topics::NewTopic;

use super::super::changes::Changes;
use super::super::exit::{CliError, Outcome};
use super::CreateArguments;

pub(super) fn run(arguments: &CreateArguments) -> Result<Outcome, CliError> {
    let mut cluster = arguments.cluster.connect()?;
    let mut changes = Changes::default();
    for name in &arguments.topics {
        let topic = NewTopic {
            name: name.clone(),
            partitions: arguments.partitions,
            replication: arguments.replication,
            settings: arguments.set.clone(),
        };
        match cluster.create_topic(&topic) {
            Ok(()) => changes.done(name, "created"),
            Err(error)
                if arguments.if_not_exists
                    && error.code() == Some(ErrorCode::TOPIC_ALREADY_EXISTS) =>
            {
                changes.done(name, "exists already");
            }
            Err(error) => changes.refused(error),
        }
    }
    changes.finish(arguments.json)
}
