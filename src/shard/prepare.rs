//! Space ahead of the log's end, made in the background: the next step of the active segment, or the next segment.

use std::rc::Rc;

use crate::io::disk::{DiskError, LogFile, OpenMode};
use crate::io::{blocking, executor};
use crate::model::FilePosition;
use crate::model::limits::{PREPARE_STEP_BYTES_MAX, PREPARE_STEP_BYTES_MIN};
use crate::shard::command::PartitionError;
use crate::shard::hosted::HostedPartition;
use crate::shard::runtime::{Cached, Shard};
use crate::storage::log::{Admission, SegmentKey};
use crate::storage::segment_name;

/// What a partition needs before it can take what waits, or soon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Need {
    Step(FilePosition),
    Segment {
        first_bytes: u64,
    },
    /// The active segment is half full: the next one is made ready.
    Spare,
}

impl Shard {
    /// Starts preparing if the partition needs it and nobody does yet.
    pub(super) fn prepare(self: &Rc<Self>, partition: &Rc<HostedPartition>) {
        if partition.flags.is_preparing.get() {
            return;
        }
        let Some(need) = self.need(partition) else {
            return;
        };
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
                Need::Spare => {
                    self.prepare_spare(partition).await;
                    // Nobody else looks after the batches that came meanwhile and found no room.
                    next = self.need(partition).filter(|need| *need != Need::Spare);
                    continue;
                }
            };
            if partition.flags.is_gone.get() {
                let why = PartitionError::Unknown(partition.partition);
                self.refuse_parked(partition, &why);
                return;
            }
            if let Err(error) = prepared {
                let why = self.space_error(error);
                if !partition.flags.is_out_of_space.replace(true) {
                    let (topic, index) = (&partition.topic, partition.partition.partition);
                    tracing::warn!(%topic, partition = %index, reason = %why, "no space: batches are refused");
                }
                self.refuse_parked(partition, &why);
                return;
            }
            partition.flags.is_out_of_space.set(false);
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
            if log.admission(first.batch.header(), self.append_time()) == Admission::AfterRoll {
                return Some(Need::Segment {
                    first_bytes: batch_bytes,
                });
            }
            let end = log.active().size().plus(batch_bytes);
            return log.space().next_step(end).map(Need::Step);
        }
        let end = log.active().size();
        if let Some(to) = log.space().next_step(end) {
            return Some(Need::Step(to));
        }
        let is_half_full = end.0 >= partition.config.get().segment_bytes / 2;
        (is_half_full && partition.spare.get().is_none()).then_some(Need::Spare)
    }

    async fn prepare_step(
        &self,
        partition: &HostedPartition,
        to: FilePosition,
    ) -> Result<(), DiskError> {
        let (key, path) = {
            let leader = partition.leader.borrow();
            (
                leader.log().active_key(),
                leader.log().active().path().to_owned(),
            )
        };
        let is_new = self.files().opened(key).is_none()
            && partition.leader.borrow().log().active().size() == FilePosition::ZERO;
        let result = async {
            let file = self.files().get(key, &path, OpenMode::Create).await?;
            file.allocate(to.0).await
        }
        .await;
        partition
            .flags
            .has_new_files
            .set(partition.flags.has_new_files.get() || is_new);
        let mut leader = partition.leader.borrow_mut();
        match result {
            Ok(()) => leader.log_mut().space().on_step(),
            Err(_) => leader.log_mut().space().on_failure(),
        }
        result
    }

    /// Makes the next segment of the spare file if there is one, else of a new one, and rolls to it.
    async fn prepare_segment(
        self: &Rc<Self>,
        partition: &Rc<HostedPartition>,
        first_bytes: u64,
    ) -> Result<(), DiskError> {
        let (key, path) = {
            let leader = partition.leader.borrow();
            let base_offset = leader.log().end().offset;
            (
                SegmentKey::appended(leader.log().id(), base_offset),
                leader.log().segment_path(base_offset),
            )
        };
        if partition.spare.get().is_some() {
            let (spare, path) = (
                partition.directory().join(segment_name::spare_file()),
                path.clone(),
            );
            let renamed = blocking::run(move || std::fs::rename(&spare, &path)).await;
            if let Err(error) = renamed {
                tracing::warn!(%error, "the file prepared as the next segment is not used");
                partition.spare.set(None);
            }
        }
        let file = self.files().get(key, &path, OpenMode::Create).await?;
        let prepared = match partition.spare.take() {
            Some(prepared) if prepared.0 >= first_bytes => prepared,
            _ => {
                let prepared = segment_space(partition, first_bytes);
                if let Err(error) = file.allocate(prepared.0).await {
                    // The file may have got longer all the same; an empty one disturbs nobody.
                    let _ = file.truncate(0).await;
                    return Err(error);
                }
                prepared
            }
        };
        partition.flags.has_new_files.set(true);
        // A roll closes the tail's open chunk, which then counts among the cached ones.
        let mut leader = partition.leader.borrow_mut();
        let cached_before = Cached::of(&leader);
        leader.log_mut().roll(prepared);
        let cached = Cached::of(&leader).since(cached_before);
        drop(leader);
        self.note_cached(partition, cached);
        // What the roll closed is written, and the full segment sealed, though nothing may follow in the new one.
        self.mark_dirty(partition);
        self.seal_written(partition);
        Ok(())
    }

    /// Makes the file that will become the next segment. It is only a help: without it the roll makes one.
    async fn prepare_spare(&self, partition: &HostedPartition) {
        let path = partition.directory().join(segment_name::spare_file());
        let prepared = segment_space(partition, 0);
        let made = async {
            let file = LogFile::open(&path, OpenMode::Create).await?;
            file.allocate(prepared.0).await
        };
        match made.await {
            Ok(()) => partition.spare.set(Some(prepared)),
            Err(error) => {
                tracing::debug!(%error, "no file was prepared as the next segment");
                let _ = blocking::run(move || std::fs::remove_file(&path)).await;
            }
        }
    }
}

/// The space that a new segment starts with: one that follows a full segment is likely to fill as well.
fn segment_space(partition: &HostedPartition, first_bytes: u64) -> FilePosition {
    let prepared = partition
        .config
        .get()
        .segment_bytes
        .min(PREPARE_STEP_BYTES_MAX)
        .max(first_bytes);
    FilePosition(prepared.next_multiple_of(PREPARE_STEP_BYTES_MIN))
}
