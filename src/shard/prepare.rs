//! Space ahead of the log's end, made in the background: the next step of the active segment, or the next segment.

use std::rc::Rc;

use crate::io::disk::{DiskError, OpenMode};
use crate::io::executor;
use crate::model::FilePosition;
use crate::model::limits::PREPARE_STEP_BYTES_MIN;
use crate::shard::hosted::HostedPartition;
use crate::shard::runtime::Shard;
use crate::storage::log::{Admission, SegmentKey};

/// What a partition needs before it can take what waits, or soon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Need {
    Step(FilePosition),
    Segment { first_bytes: u64 },
}

impl Shard {
    /// Starts preparing if the partition needs it and nobody does yet.
    pub(super) fn prepare(self: &Rc<Self>, partition: &Rc<HostedPartition>) {
        if partition.flags.is_preparing.get() {
            return;
        }
        let Some(need) = self.need(partition) else { return };
        partition.flags.is_preparing.set(true);
        let (shard, partition) = (self.clone(), partition.clone());
        executor::spawn_local(async move {
            shard.prepare_all(&partition, need).await;
            partition.flags.is_preparing.set(false);
        })
        .detach();
    }

    async fn prepare_all(self: &Rc<Self>, partition: &Rc<HostedPartition>, first: Need) {
        let mut next = Some(first);
        while let Some(need) = next {
            let prepared = match need {
                Need::Step(to) => self.prepare_step(partition, to).await,
                Need::Segment { first_bytes } => self.prepare_segment(partition, first_bytes).await,
            };
            if let Err(error) = prepared {
                let why = self.space_error(error);
                tracing::warn!(topic = %partition.topic, partition = %partition.partition.partition, reason = %why, "no room");
                self.refuse_parked(partition, &why);
                return;
            }
            self.append_parked(partition);
            next = self.need(partition);
        }
    }

    fn need(&self, partition: &HostedPartition) -> Option<Need> {
        let mut leader = partition.leader.borrow_mut();
        let parked = partition.parked.borrow();
        let log = leader.log_mut();
        if let Some(first) = parked.front() {
            let batch_bytes = first.batch.size_bytes() as u64;
            if log.admission(first.batch.header(), self.clock().now()) == Admission::AfterRoll {
                return Some(Need::Segment { first_bytes: batch_bytes });
            }
            let end = log.active().size().plus(batch_bytes);
            return log.space().next_step(end).map(Need::Step);
        }
        let end = log.active().size();
        log.space().next_step(end).map(Need::Step)
    }

    async fn prepare_step(&self, partition: &HostedPartition, to: FilePosition) -> Result<(), DiskError> {
        let (key, path) = {
            let leader = partition.leader.borrow();
            (leader.log().active_key(), leader.log().active().path().to_owned())
        };
        let is_new = self.files().opened(key).is_none() && partition.leader.borrow().log().active().size() == FilePosition::ZERO;
        let result = async {
            let file = self.files().get(key, &path, OpenMode::Create).await?;
            file.allocate(to.0).await
        }
        .await;
        partition.flags.has_new_files.set(partition.flags.has_new_files.get() || is_new);
        let mut leader = partition.leader.borrow_mut();
        match result {
            Ok(()) => leader.log_mut().space().on_step(),
            Err(_) => leader.log_mut().space().on_failure(),
        }
        result
    }

    async fn prepare_segment(&self, partition: &HostedPartition, first_bytes: u64) -> Result<(), DiskError> {
        let (key, path, segment_bytes) = {
            let leader = partition.leader.borrow();
            let base_offset = leader.log().end().offset;
            let path = leader.log().segment_path(base_offset);
            (SegmentKey { log: leader.log().id(), segment: base_offset }, path, partition.config.get().segment_bytes)
        };
        // A segment that follows a full one is likely to fill as well.
        let prepared = segment_bytes.min(crate::model::limits::PREPARE_STEP_BYTES_MAX).max(first_bytes);
        let prepared = FilePosition(prepared.next_multiple_of(PREPARE_STEP_BYTES_MIN));
        let file = self.files().get(key, &path, OpenMode::Create).await?;
        let allocated = file.allocate(prepared.0).await;
        partition.flags.has_new_files.set(true);
        match allocated {
            Ok(()) => {
                partition.leader.borrow_mut().log_mut().roll(prepared);
                Ok(())
            }
            Err(error) => {
                // The file may have got longer all the same; an empty one disturbs nobody.
                self.files().close(key);
                let _ = file.truncate(0).await;
                Err(error)
            }
        }
    }
}
