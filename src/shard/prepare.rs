//! Space ahead of the log's end, made in the background: the next step of the active segment, or the next segment.

use std::rc::Rc;

use crate::io::disk::{DiskError, DiskOperation, OpenMode};
use crate::io::fs;
use crate::io::{blocking, executor};
use crate::model::FilePosition;
use crate::model::limits::{PREPARE_STEP_BYTES_MAX, PREPARE_STEP_BYTES_MIN};
use crate::shard::command::PartitionError;
use crate::shard::hosted::HostedPartition;
use crate::shard::runtime::{Cached, Shard};
use crate::storage::file_error::FileError;
use crate::storage::log::{Admission, SegmentKey};
use crate::storage::next_segment::NextSegment;
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
        if partition.flags.is_preparing.get() || partition.flags.is_gone.get() {
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
                let is_told = matches!(why, PartitionError::Shortage(_));
                if !is_told && !partition.flags.is_out_of_space.replace(true) {
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
        let log = leader.log_mut();
        if let Some(first) = partition.parked.first_checked() {
            let batch_bytes = first.size_bytes() as u64;
            if log.admission(first.header(), self.append_time()) == Admission::AfterRoll {
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
        let may_be_made = !partition.flags.has_no_space_for_spare.get();
        (is_half_full && may_be_made && partition.spare.get().is_none()).then_some(Need::Spare)
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
        let before = partition.leader.borrow_mut().log_mut().space().prepared();
        let result = async {
            let file = self.files().get(key, &path, OpenMode::Create).await?;
            let allocated = file.allocate(to.0).await;
            if allocated.is_err() {
                // The file may have got longer all the same, up to the last block of the disk. Nothing was appended there.
                let _ = file.truncate(before.0).await;
            }
            allocated
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

    /// Makes the next segment, of the spare file if there is one, and rolls to it. Its file has a segment's name only once nothing more can
    /// fail: else the name would stay where the log goes on in the segment before, see [`NextSegment`].
    async fn prepare_segment(
        self: &Rc<Self>,
        partition: &Rc<HostedPartition>,
        first_bytes: u64,
    ) -> Result<(), DiskError> {
        let (key, next) = {
            let leader = partition.leader.borrow();
            let (log, base_offset) = (leader.log(), leader.log().end().offset);
            (
                SegmentKey::appended(log.id(), base_offset),
                NextSegment::new(log.directory(), base_offset),
            )
        };
        let prepared = match self.make_next(partition, key, &next, first_bytes).await {
            Ok(prepared) => prepared,
            Err(error) => {
                self.files().close(key);
                blocking::run(move || next.give_up()).await;
                return Err(error);
            }
        };
        if partition.flags.is_gone.get() {
            // Deleted meanwhile: the file goes with its directory.
            return Ok(());
        }
        partition.flags.has_new_files.set(true);
        // A roll closes the tail's open chunk, which then counts among the cached ones.
        let mut leader = partition.leader.borrow_mut();
        let cached_before = Cached::of(&leader);
        assert_eq!(
            leader.log().end().offset,
            key.segment,
            "what comes while the next segment is made waits for it"
        );
        leader.log_mut().roll(prepared);
        let cached = Cached::of(&leader).since(cached_before);
        drop(leader);
        self.note_cached(partition, cached);
        // What the roll closed is written, and the full segment sealed, though nothing may follow in the new one.
        self.mark_dirty(partition);
        self.seal_written(partition);
        Ok(())
    }

    /// The next segment's file: open, with space, under its name. The space it has.
    async fn make_next(
        &self,
        partition: &HostedPartition,
        key: SegmentKey,
        next: &NextSegment,
        first_bytes: u64,
    ) -> Result<FilePosition, DiskError> {
        let spare = partition.spare.take();
        let file = self.files().get(key, next.spare_path(), OpenMode::Create);
        let file = file.await?;
        let prepared = match spare {
            Some(prepared) if prepared.0 >= first_bytes => prepared,
            _ => {
                let prepared = segment_space(partition, first_bytes);
                file.allocate(prepared.0).await?;
                prepared
            }
        };
        let names = next.clone();
        let renamed = blocking::run(move || names.put_in_place()).await;
        renamed.map_err(|FileError { path, source, .. }| DiskError::File {
            operation: DiskOperation::Rename,
            path,
            source,
        })?;
        file.note_renamed(next.segment_path());
        partition.flags.has_no_space_for_spare.set(false);
        Ok(prepared)
    }

    /// Makes the file that will become the next segment. It is only a help: without it the roll makes one.
    async fn prepare_spare(&self, partition: &HostedPartition) {
        let path = partition.directory().join(segment_name::spare_file());
        let prepared = segment_space(partition, 0);
        let made = async {
            let file = self.files().open_apart(&path, OpenMode::Create).await?;
            file.allocate(prepared.0).await
        };
        match made.await {
            Ok(()) => partition.spare.set(Some(prepared)),
            Err(error) => {
                tracing::debug!(%error, "no file was prepared as the next segment");
                partition.flags.has_no_space_for_spare.set(true);
                let _ = blocking::run(move || fs::remove_file(&path)).await;
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
