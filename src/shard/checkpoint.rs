//! Checkpoints: what a recovery needs to start where the log was when they were taken.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use crate::io::{blocking, executor};
use crate::model::limits::{CHECKPOINT_AWAITS_FLUSH_MS, CHECKPOINT_RETRY_MS, HOUSEKEEPING_MS};
use crate::shard::command::PartitionError;
use crate::shard::hosted::{Checkpointed, HostedPartition};
use crate::shard::runtime::Shard;
use crate::storage::snapshot::Snapshot;

/// Where the fdatasync comes from that a checkpoint needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SyncBy {
    /// It is asked for now: somebody waits.
    Request,
    /// The next one that `flush.ms` brings will do; asked for only when that is far away or somebody waits for the turn.
    FlushMs,
}

impl Shard {
    /// Completes when a checkpoint of everything appended so far is on disk. One at a time for each partition.
    pub(super) async fn checkpoint(
        self: &Rc<Self>,
        partition: &Rc<HostedPartition>,
        sync_by: SyncBy,
    ) -> Result<(), PartitionError> {
        let (turn, snapshot) = loop {
            self.check_usable(partition)?;
            let Some(turn) = CheckpointTurn::wait(partition).await else {
                return Err(PartitionError::Unknown(partition.partition));
            };
            if let Some(snapshot) = snapshot_of(partition) {
                break (turn, snapshot);
            }
            drop(turn);
            executor::sleep(Duration::from_millis(1)).await;
        };
        // Of the moment of the snapshot: what is appended while it waits for its fdatasync, it does not cover.
        let checkpointed = Checkpointed {
            offset: snapshot.offset(),
            at: self.clock().monotonic(),
            size_bytes: partition.leader.borrow().log().size_bytes(),
        };
        let (wait_ms, poll_ms) = match sync_by {
            SyncBy::Request => (0, 1),
            SyncBy::FlushMs => (CHECKPOINT_AWAITS_FLUSH_MS, HOUSEKEEPING_MS),
        };
        let ask_at = self.clock().monotonic() + Duration::from_millis(wait_ms);
        while partition.leader.borrow().log().synced().offset < snapshot.offset() {
            self.check_usable(partition)?;
            if turn.is_awaited() || self.clock().monotonic() >= ask_at {
                self.request_sync(partition);
            }
            executor::sleep(Duration::from_millis(poll_ms)).await;
        }
        self.check_usable(partition)?;
        let (segment, saved) = snapshot.saves();
        let directory = partition.directory();
        let written = blocking::run(move || snapshot.write(&directory)).await;
        drop(turn);
        match written {
            Ok(()) => {
                partition
                    .leader
                    .borrow_mut()
                    .log_mut()
                    .on_indexes_saved(segment, saved);
                partition.checkpointed.set(checkpointed);
                Ok(())
            }
            Err(_) if partition.flags.is_gone.get() => {
                Err(PartitionError::Unknown(partition.partition))
            }
            Err(error) => {
                if error.shortage().is_none() {
                    self.log_dir().fail(&error);
                }
                let retry_at =
                    self.clock().monotonic() + Duration::from_millis(CHECKPOINT_RETRY_MS);
                partition.checkpoint_not_before.set(retry_at);
                Err(PartitionError::Checkpoint(Arc::new(error)))
            }
        }
    }

    fn check_usable(&self, partition: &HostedPartition) -> Result<(), PartitionError> {
        if partition.flags.is_gone.get() {
            return Err(PartitionError::Unknown(partition.partition));
        }
        match self.log_dir().failure() {
            Some(why) => Err(PartitionError::LogDirOffline(why)),
            None => Ok(()),
        }
    }
}

/// A snapshot, unless a segment is still to be sealed.
fn snapshot_of(partition: &HostedPartition) -> Option<Snapshot> {
    let leader = partition.leader.borrow();
    let (log, before) = (leader.log(), partition.checkpointed.get().offset);
    log.is_sealed_up()
        .then(|| Snapshot::take(partition.partition, log, leader.producers(), before))
}

/// The right to change files in a partition's directory by their names, other than those being appended to; dropped when done.
pub(super) struct CheckpointTurn(Rc<HostedPartition>);

impl CheckpointTurn {
    /// `None` once the partition is deleted: the directory of that name may be another's.
    pub(super) async fn wait(partition: &Rc<HostedPartition>) -> Option<Self> {
        let turn = Self::wait_for_last(partition).await;
        (!partition.flags.is_gone.get()).then_some(turn)
    }

    /// The turn of the partition's deletion, after which nobody else gets one.
    pub(super) async fn wait_for_last(partition: &Rc<HostedPartition>) -> Self {
        let waiting = &partition.flags.waiting_for_turn;
        waiting.set(waiting.get() + 1);
        while partition.flags.is_checkpointing.replace(true) {
            executor::sleep(Duration::from_millis(1)).await;
        }
        waiting.set(waiting.get() - 1);
        Self(partition.clone())
    }

    /// Whether somebody waits for this turn to end.
    fn is_awaited(&self) -> bool {
        self.0.flags.waiting_for_turn.get() > 0
    }
}

impl Drop for CheckpointTurn {
    fn drop(&mut self) {
        self.0.flags.is_checkpointing.set(false);
    }
}
