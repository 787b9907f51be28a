//! What a shard does when a topic is deleted.
//!
//! ```text
//! TopicDeleted is stored                                a start renames the directories to -stray: no topic has their id
//!   -> nobody is served any more, the files are closed
//!     -> the directories are renamed to -delete         a start removes those
//!       -> the log directory is synced: the names are free for good, and the client is told
//!         -> the files are removed, bit by bit
//! ```

use std::path::PathBuf;
use std::rc::Rc;
use std::thread;
use std::time::Duration;

use crate::io::{blocking, dir, executor};
use crate::metadata::MetadataDelta;
use crate::metrics::Deletion;
use crate::model::TopicPartition;
use crate::model::limits::SHORTAGE_RETRY_MS;
use crate::shard::checkpoint::CheckpointTurn;
use crate::shard::command::PartitionError;
use crate::shard::runtime::{Cached, Shard};
use crate::shard::slow_removal;
use crate::storage::partition_directory::PartitionDirectory;
use crate::storage::retired_files::Retired;

impl Shard {
    /// Lets go of the partitions of deleted topics. Completes when their names are free; their files go in the background.
    pub(super) async fn delete_topics(self: &Rc<Self>, delta: &MetadataDelta) {
        let mut directories = Vec::new();
        let mut turns = Vec::new();
        for topic in delta.topics.iter().filter_map(|change| change.deleted()) {
            for (id, _) in topic.partitions_from(0) {
                let turn = self.let_go(id).await;
                if turn.is_some() || self.pending().remove(id) {
                    let log_dir = self.log_dir().path();
                    directories.push(PartitionDirectory::new(log_dir, &topic.name, id));
                    turns.extend(turn);
                }
            }
        }
        if directories.is_empty() {
            return;
        }
        let paths: Vec<PathBuf> = directories.iter().map(|it| it.path().to_owned()).collect();
        let log_dir = self.log_dir().clone();
        let set_aside = blocking::run(move || {
            let set_aside: Vec<PathBuf> = directories
                .iter()
                .filter_map(|directory| {
                    directory.set_aside().unwrap_or_else(|error| {
                        tracing::warn!(%error, "a deleted partition's directory keeps its name until the next start, or until another partition needs it");
                        None
                    })
                })
                .collect();
            while let Err(error) = dir::sync_dir(log_dir.path()) {
                if error.shortage().is_none() || log_dir.failure().is_some() {
                    log_dir.fail(&error);
                    break;
                }
                // Nothing was asked of the disk yet.
                thread::sleep(Duration::from_millis(SHORTAGE_RETRY_MS));
            }
            set_aside
        });
        let set_aside = set_aside.await;
        drop(turns);
        for path in &paths {
            self.deleted_files().borrow_mut().forget(path);
        }
        let log_dir = self.log_dir().clone();
        executor::spawn_background(async move {
            for path in set_aside {
                slow_removal::remove_directory(path, &log_dir).await;
            }
        })
        .detach();
    }

    /// The partition is served no more and its files are closed. As long as the turn is held nobody changes anything in its directory.
    /// `None`: it is not hosted.
    async fn let_go(self: &Rc<Self>, id: TopicPartition) -> Option<CheckpointTurn> {
        let partition = self.unhost(id)?;
        partition.flags.is_gone.set(true);
        self.set_inactive(&partition);
        let why = PartitionError::Unknown(id);
        self.refuse_parked(&partition, &why);
        let (cached, progress) = {
            let mut leader = partition.leader.borrow_mut();
            let (segments, bytes) = (leader.log().segment_count(), leader.log().size_bytes());
            self.metrics()
                .count_deleted(Deletion::DeletedTopic, segments as u64, bytes);
            let cached = Cached::of(&leader);
            leader.log_mut().drop_cache();
            (cached, leader.fail())
        };
        self.note_uncached(cached);
        self.give_up(progress, &why);
        self.files().retire(Retired::Log(partition.log_id())).await;
        partition.retire_indexes().await;
        self.read_ahead().forget(partition.log_id());
        // What is under way in its directory goes by names, and the next topic may have the same.
        let turn = CheckpointTurn::wait_for_last(&partition).await;
        while partition.flags.is_preparing.get() {
            executor::sleep(Duration::from_millis(1)).await;
        }
        Some(turn)
    }
}
