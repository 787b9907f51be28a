use super::super::changes::Changes;
use super::super::exit::{CliError, Outcome};
use super::partitions::PartitionChoice;
use super::{DeleteArguments, DeleteOffsetsArguments};

pub(super) fn run(arguments: &DeleteArguments) -> Result<Outcome, CliError> {
    let mut cluster = arguments.cluster.connect()?;
    let mut changes = Changes::default();
    for group in &arguments.groups {
        match cluster.delete_group(group) {
            Ok(()) => changes.done(group, "deleted"),
            Err(error) => changes.refused(error),
        }
    }
    changes.finish(arguments.json)
}

pub(super) fn run_offsets(arguments: &DeleteOffsetsArguments) -> Result<Outcome, CliError> {
    let mut cluster = arguments.cluster.connect()?;
    let partitions = PartitionChoice::resolve(&arguments.topic, &mut cluster)?;
    let mut changes = Changes::default();
    for (at, result) in cluster.delete_offsets(&arguments.group, &partitions)? {
        match result {
            Ok(()) => changes.done(&at.to_string(), "offset deleted"),
            Err(error) => changes.refused(error),
        }
    }
    changes.finish(arguments.json)
}
