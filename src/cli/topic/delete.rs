use crate::client::error::ErrorCode;

use super::super::changes::Changes;
use super::super::exit::{CliError, Outcome};
use super::DeleteArguments;

pub(super) fn run(arguments: &DeleteArguments) -> Result<Outcome, CliError> {
    let mut cluster = arguments.cluster.connect()?;
    let mut changes = Changes::default();
    for name in &arguments.topics {
        match cluster.delete_topic(name) {
            Ok(()) => changes.done(name, "deleted"),
            Err(error)
                if arguments.if_exists
                    && error.code() == Some(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION) =>
            {
                changes.done(name, "does not exist");
            }
            Err(error) => changes.refused(error),
        }
    }
    changes.finish(arguments.json)
}
