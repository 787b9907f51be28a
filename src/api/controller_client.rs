//! Asking the controller, on whatever thread it runs, and getting the answer back to this core.

use std::rc::Rc;
use std::time::Duration;

use crossbeam::channel::{Sender, TrySendError};

use crate::controller::{ControllerCommand, Reply};
use crate::io::executor;
use crate::io::mesh::ForeignSender;
use crate::shard::command::Message;
use crate::shard::runtime::Shard;

/// The controller has ended, and the process is about to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the controller has stopped")]
pub struct ControllerGone;

#[derive(Clone)]
pub struct ControllerClient {
    shard: Rc<Shard>,
    commands: Sender<ControllerCommand>,
    /// The lane by which the answer's wake-up comes back.
    home: ForeignSender<Message>,
}

impl ControllerClient {
    pub fn new(shard: Rc<Shard>, commands: Sender<ControllerCommand>, home: ForeignSender<Message>) -> Self {
        Self { shard, commands, home }
    }

    /// Completes when the command is done, durable, and followed by every shard.
    pub async fn ask<T: Send + 'static>(
        &self,
        command: impl FnOnce(Reply<T>) -> ControllerCommand,
    ) -> Result<T, ControllerGone> {
        let (reply, call) = self.shard.router().open_call::<T>();
        let home = self.home.clone();
        let mut command = command(Box::new(move |value| {
            if let Some((_, slot)) = reply.fill(value) {
                home.send_blocking(Message::Wake(slot));
            }
        }));
        loop {
            match self.commands.try_send(command) {
                Ok(()) => return Ok(call.await),
                Err(TrySendError::Disconnected(_)) => return Err(ControllerGone),
                Err(TrySendError::Full(back)) => command = back,
            }
            executor::sleep(Duration::from_millis(1)).await;
        }
    }
}
