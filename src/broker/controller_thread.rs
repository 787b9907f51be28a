//! The controller's thread: one command after the other; every shard has followed a change before its caller is answered.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crossbeam::channel::Receiver;

use crate::controller::{Controller, ControllerCommand, Execution, MetadataUpdate};
use crate::io::mesh::ForeignSender;
use crate::model::limits::FOLLOW_METADATA_MS;
use crate::shard::call::ReplyTo;
use crate::shard::command::{Command, Message};

/// Runs until every sender of commands is gone. With a `core` of its own it is pinned to it.
pub fn start(
    mut controller: Controller,
    commands: Receiver<ControllerCommand>,
    shards: Vec<ForeignSender<Message>>,
    core: Option<usize>,
) -> std::io::Result<()> {
    let thread = thread::Builder::new()
        .name("controller".to_owned())
        .spawn(move || {
            if let Some(id) = core
                && !core_affinity::set_for_current(core_affinity::CoreId { id })
            {
                tracing::warn!(core = id, "the controller could not be pinned to its core");
            }
            for command in commands {
                let Execution { update, reply } = controller.execute(command);
                if let Some(update) = update {
                    tell_shards(&shards, &update);
                }
                reply();
            }
        });
    thread.map(drop)
}

/// Returns when every shard has followed the update. One that cannot (a disk error) has logged why; its partitions are then answered
/// for by their state, not by this.
fn tell_shards(shards: &[ForeignSender<Message>], update: &MetadataUpdate) {
    let mut followed = Vec::with_capacity(shards.len());
    for shard in shards {
        let (reply, receiver) = ReplyTo::thread();
        let command =
            Command::ApplyMetadata(Arc::clone(&update.image), Arc::clone(&update.delta), reply);
        shard.send_blocking(Message::Command(command));
        followed.push(receiver);
    }
    for receiver in followed {
        match receiver.recv_timeout(Duration::from_millis(FOLLOW_METADATA_MS)) {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::error!(error, "a shard did not follow the metadata"),
            Err(_) => tracing::error!(
                "a shard takes longer than {FOLLOW_METADATA_MS} ms to follow the metadata"
            ),
        }
    }
}
