//! The records of the coordinators: gathered over a turn into batches, appended like any other, confirmed in the log's order.

use std::rc::Rc;

use bytes::Bytes;

use crate::group::{GroupWrite, GroupWriteId, WriteRefused};
use crate::io::executor;
use crate::model::TimestampMs;
use crate::model::limits::{GROUP_BATCH_BYTES, RECORD_OVERHEAD_BYTES_MAX};
use crate::record::InvalidBatch;
use crate::record::encode::BatchBuilder;
use crate::shard::command::PartitionError;
use crate::shard::group_host::{HostedGroups, OwnAppend};
use crate::shard::runtime::Shard;

/// What one append takes.
struct GroupBatch {
    builder: BatchBuilder,
    writes: Vec<GroupWriteId>,
}

impl Shard {
    /// Runs as long as the shard does: at the end of each turn it appends what the coordinators have to write.
    pub(super) async fn write_groups(self: Rc<Self>) {
        loop {
            self.groups().write().wait().await;
            for groups in self.groups().take_unwritten() {
                self.write_out(&groups);
            }
        }
    }

    pub(super) fn write_out(self: &Rc<Self>, groups: &Rc<HostedGroups>) {
        let writes = std::mem::take(&mut *groups.writes.borrow_mut());
        for batch in batches_of(writes, self.clock().now()) {
            let records = Bytes::from(batch.builder.build());
            let append = OwnAppend {
                writes: batch.writes,
                done: self.append_own(&groups.partition, records),
            };
            groups.appends.borrow_mut().push_back(append);
        }
        if !groups.appends.borrow().is_empty() && !groups.is_confirming.replace(true) {
            let (shard, groups) = (self.clone(), groups.clone());
            executor::spawn_local(async move { shard.confirm_writes(&groups).await }).detach();
        }
    }

    /// Tells the coordinator of its writes, one batch after the other, until none is left.
    async fn confirm_writes(self: &Rc<Self>, groups: &Rc<HostedGroups>) {
        loop {
            let Some(OwnAppend { writes, done }) = groups.appends.borrow_mut().pop_front() else {
                groups.is_confirming.set(false);
                return;
            };
            let mut replies = done.await;
            let refused = replies.remove(0).err().map(|error| {
                let (topic, index) = (&groups.partition.topic, groups.partition.partition.partition);
                tracing::warn!(%topic, partition = %index, %error, "records of groups were not written");
                refusal(&error)
            });
            for write in writes {
                self.run_groups(groups, |coordinator, now, wall| match refused {
                    None => coordinator.on_confirmed(write, now, wall),
                    Some(why) => coordinator.on_refused(write, why, now, wall),
                });
            }
        }
    }
}

/// Puts writes together, each into one batch as a whole. A write that is larger than `GROUP_BATCH_BYTES` has a batch of its own, which the
/// log refuses if it is too large for any.
fn batches_of(writes: Vec<GroupWrite>, now: TimestampMs) -> Vec<GroupBatch> {
    let mut batches: Vec<GroupBatch> = Vec::new();
    let mut room_bytes = 0;
    for write in writes {
        let record_bytes = |key: &Bytes, value: Option<&Bytes>| {
            RECORD_OVERHEAD_BYTES_MAX + key.len() + value.map_or(0, Bytes::len)
        };
        let write_bytes: usize = write
            .records
            .iter()
            .map(|record| record_bytes(&record.key, record.value.as_ref()))
            .sum();
        if batches.is_empty() || write_bytes > room_bytes {
            batches.push(GroupBatch {
                builder: BatchBuilder::new(),
                writes: Vec::new(),
            });
            room_bytes = GROUP_BATCH_BYTES.max(write_bytes);
        }
        room_bytes -= write_bytes;
        let batch = batches.last_mut().expect("a batch was begun");
        for record in &write.records {
            batch
                .builder
                .push(now, Some(&record.key), record.value.as_deref(), &[]);
        }
        batch.writes.push(write.id);
    }
    batches
}

fn refusal(error: &PartitionError) -> WriteRefused {
    match error {
        PartitionError::InvalidBatch(InvalidBatch::TooLarge { .. }) => WriteRefused::TooLarge,
        PartitionError::NotOpened(_)
        | PartitionError::NoRoom(_)
        | PartitionError::DiskFull(_)
        | PartitionError::Shortage(_)
        | PartitionError::InvalidBatch(_)
        | PartitionError::Producer(_)
        | PartitionError::NotEnoughReplicas { .. }
        | PartitionError::Read(_)
        | PartitionError::Checkpoint(_) => WriteRefused::Unavailable,
        PartitionError::Unknown(_)
        | PartitionError::FencedLeaderEpoch { .. }
        | PartitionError::UnknownLeaderEpoch { .. }
        | PartitionError::OffsetOutOfRange { .. }
        | PartitionError::OnlyCompacted
        | PartitionError::LogDirOffline(_)
        | PartitionError::Stopping => WriteRefused::NotCoordinator,
    }
}
