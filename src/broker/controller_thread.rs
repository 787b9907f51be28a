//! The controller's thread: one command after the other; every shard has followed a change before its caller is answered.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crossbeam::channel::{Receiver, RecvTimeoutError};

use crate::controller::{Controller, ControllerCommand, Execution, Followed, MetadataUpdate};
use crate::io::mesh::ForeignSender;
use crate::model::limits::{FOLLOW_METADATA_MS, FOLLOW_METADATA_TELL_MS};
use crate::shard::call::ReplyTo;
use crate::shard::command::{Command, Message, UnopenedPartition};
use crate::shard::metadata::MetadataChange;

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
                reply(
                    update.map_or_else(Followed::default, |update| tell_shards(&shards, &update)),
                );
            }
        });
    thread.map(drop)
}

/// Returns when every shard has followed the update, or after `FOLLOW_METADATA_MS`. A shard that is late has the update in its queue, and
/// follows it before any later one.
fn tell_shards(shards: &[ForeignSender<Message>], update: &MetadataUpdate) -> Followed {
    let mut followings = Vec::with_capacity(shards.len());
    for shard in shards {
        let (reply, receiver) = ReplyTo::thread();
        shard.send_blocking(Message::Command(Command::ApplyMetadata(MetadataChange {
            image: Arc::clone(&update.image),
            delta: Arc::clone(&update.delta),
            reply,
        })));
        followings.push(receiver);
    }
    let until = Instant::now() + Duration::from_millis(FOLLOW_METADATA_MS);
    let mut followed = Followed::default();
    for (shard, following) in followings.iter().enumerate() {
        match wait_for(shard, following, until) {
            Some(unopened) => {
                for UnopenedPartition { partition, why } in unopened {
                    followed.note_unopened(partition.topic, why);
                }
            }
            None => followed.note_late(),
        }
    }
    followed
}

/// `None`: it has not followed yet.
fn wait_for(
    shard: usize,
    following: &Receiver<Vec<UnopenedPartition>>,
    until: Instant,
) -> Option<Vec<UnopenedPartition>> {
    let tell_after = Duration::from_millis(FOLLOW_METADATA_TELL_MS);
    loop {
        let left = until.saturating_duration_since(Instant::now());
        match following.recv_timeout(left.min(tell_after)) {
            Ok(unopened) => return Some(unopened),
            Err(RecvTimeoutError::Timeout) if left > tell_after => {
                tracing::warn!(
                    shard,
                    "a shard has not followed a change of the metadata yet; other changes wait"
                );
            }
            Err(_) => {
                tracing::error!(
                    shard,
                    "a shard has not followed a change of the metadata within {FOLLOW_METADATA_MS} ms: the client is told that it timed out"
                );
                return None;
            }
        }
    }
}
