//! Following the cluster's metadata: partitions come, go and are reconfigured.

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use crate::config::{BrokerConfig, TopicConfig};
use crate::io::{blocking, dir, executor};
use crate::metadata::{MetadataDelta, MetadataImage, Topic};
use crate::metrics::Deletion;
use crate::model::limits::PAGE_BYTES;
use crate::model::{LeaderEpoch, TopicName, TopicPartition};
use crate::partition::leader::Leader;
use crate::shard::call::ReplyTo;
use crate::shard::checkpoint::CheckpointTurn;
use crate::shard::command::PartitionError;
use crate::shard::disk_guard::Room;
use crate::shard::hosted::{Checkpointed, HostedPartition};
use crate::shard::runtime::{Cached, Shard};
use crate::shard::slow_removal;
use crate::storage::active_segment::RollRules;
use crate::storage::file_error::FileError;
use crate::storage::log::{Log, LogSettings};
use crate::storage::offset_index::OFFSET_INDEX_ENTRY_BYTES;
use crate::storage::partition_dir::{DeletedDirName, PartitionDirName};
use crate::storage::recovery::{FoundLog, Recovered, RecoveryError, RecoveryRules, recover};
use crate::storage::retired_files::Retired;
use crate::storage::segment_name::{SegmentFileKind, SegmentFileName};
use crate::storage::segment_times::SegmentTimes;

/// A partition that recovery has read, on its way to the shard that will host it.
pub struct RecoveredPartition {
    partition: TopicPartition,
    topic: TopicName,
    epoch: LeaderEpoch,
    in_sync_count: u32,
    config: TopicConfig,
    directory: PathBuf,
    recovered: Recovered,
    active_times: SegmentTimes,
    tail_page: Box<[u8]>,
}

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(transparent)]
    Recovery(#[from] RecoveryError),
    #[error(transparent)]
    File(#[from] FileError),
}

impl RecoveredPartition {
    /// Recovers one partition's directory. Blocks, and may read much after a crash.
    pub fn recover(
        log_dir: &Path,
        topic: &Topic,
        partition: TopicPartition,
        config: TopicConfig,
        now_ns: u64,
    ) -> Result<Self, OpenError> {
        let state = topic
            .partition(partition.partition)
            .expect("a topic has its partitions");
        let in_sync_count = u32::try_from(state.isr.len()).expect("replicas are few");
        let directory = partition_directory(log_dir, &topic.name, partition);
        std::fs::create_dir_all(&directory).map_err(FileError::of("create", &directory))?;
        let rules = RecoveryRules {
            index_interval_bytes: config.index_interval_bytes,
            now_ns,
        };
        let recovered = recover(&directory, partition, &rules)?;
        let tail_page = read_tail_page(&directory, &recovered)?;
        let active = &recovered.active;
        let active_times =
            SegmentTimes::read(&active_path(&directory, &recovered), active.size_bytes)?;
        Ok(Self {
            partition,
            topic: topic.name.clone(),
            epoch: state.leader_epoch,
            in_sync_count,
            config,
            directory,
            recovered,
            active_times,
            tail_page,
        })
    }

    pub fn partition(&self) -> TopicPartition {
        self.partition
    }

    /// What recovery did, for the log.
    pub fn recovered(&self) -> &Recovered {
        &self.recovered
    }
}

impl Shard {
    /// Hosts what recovery found.
    pub fn host_recovered(&self, found: RecoveredPartition) {
        let RecoveredPartition {
            partition,
            topic,
            epoch,
            in_sync_count,
            config,
            directory,
            recovered,
            active_times,
            tail_page,
        } = found;
        let checkpointed = Checkpointed {
            offset: recovered.recovery_point.offset,
            at: self.clock().monotonic(),
            size_bytes: 0,
        };
        let found = FoundLog {
            start: recovered.log_start_offset,
            end: recovered.log_end_offset,
            sealed: recovered.sealed,
            active: recovered.active,
            active_times,
            epochs: recovered.leader_epochs,
            tail_page,
        };
        let log = Log::open(
            self.next_log_id(),
            directory,
            log_settings(&config),
            self.pool().clone(),
            found,
        );
        let checkpointed = Checkpointed {
            size_bytes: log.size_bytes(),
            ..checkpointed
        };
        let leader = Leader::new(epoch, log, recovered.producers, config.flush_message_count);
        let hosted = Rc::new(HostedPartition::new(
            partition,
            topic,
            config,
            in_sync_count,
            leader,
            checkpointed,
        ));
        if hosted.is_behind() {
            self.mark_active(&hosted);
        }
        self.host(hosted);
    }

    /// Answers once every partition of the new image that belongs here is there, and the deleted ones are gone.
    pub(super) fn apply_metadata(
        self: &Rc<Self>,
        image: Arc<MetadataImage>,
        delta: Arc<MetadataDelta>,
        reply: ReplyTo<Result<(), String>>,
    ) {
        let shard = self.clone();
        executor::spawn_local(async move {
            let applied = shard.follow(image, &delta).await;
            shard.answer(reply, applied);
        })
        .detach();
    }

    async fn follow(
        self: &Rc<Self>,
        image: Arc<MetadataImage>,
        delta: &MetadataDelta,
    ) -> Result<(), String> {
        let config = match delta.broker_settings_changed {
            true => Arc::new(online_config(&self.config(), &image)?),
            false => self.config(),
        };
        for change in &delta.topics {
            if let Some(topic) = change.deleted() {
                self.delete_topic(topic).await;
            }
        }
        self.create_partitions(delta, &config).await?;
        self.set_image(image.clone(), config.clone());
        self.open_groups();
        self.forget_offsets_of(delta);
        if delta.broker_settings_changed {
            self.set_group_rules();
        }
        for partition in self.partitions() {
            let Some(topic) = image.topic_by_id(partition.partition.topic) else {
                continue;
            };
            let is_changed = delta.broker_settings_changed
                || delta
                    .topics
                    .iter()
                    .any(|change| change.reconfigured().is_some_and(|it| it.id == topic.id));
            if is_changed {
                let topic_config = config
                    .topic_config(&topic.overrides)
                    .map_err(|error| error.to_string())?;
                self.reconfigure(&partition, topic_config);
            }
        }
        Ok(())
    }

    async fn create_partitions(
        &self,
        delta: &MetadataDelta,
        config: &BrokerConfig,
    ) -> Result<(), String> {
        let mut new = Vec::new();
        for change in &delta.topics {
            for (topic, id, _) in change.created_partitions() {
                if self.router().owner_of(id) == self.router().me() {
                    let topic_config = config
                        .topic_config(&topic.overrides)
                        .map_err(|error| error.to_string())?;
                    new.push((topic.clone(), id, topic_config));
                }
            }
        }
        if new.is_empty() {
            return Ok(());
        }
        let log_dir = self.log_dir().path().to_owned();
        let now_ns = self.clock().monotonic().as_ns();
        let opened = blocking::run(move || {
            let mut opened = Vec::with_capacity(new.len());
            for (topic, id, config) in new {
                opened.push(RecoveredPartition::recover(
                    &log_dir, &topic, id, config, now_ns,
                )?);
            }
            dir::sync_dir(&log_dir).map_err(|error| FileError {
                operation: "sync",
                path: log_dir.clone(),
                source: std::io::Error::other(error),
            })?;
            Ok::<_, OpenError>(opened)
        });
        let opened = opened.await.map_err(|error| {
            tracing::error!(%error, "a new partition could not be opened");
            error.to_string()
        })?;
        for partition in opened {
            self.host_recovered(partition);
        }
        Ok(())
    }

    fn reconfigure(&self, partition: &HostedPartition, config: TopicConfig) {
        partition.config.set(config);
        let mut leader = partition.leader.borrow_mut();
        leader.set_flush_messages(config.flush_message_count);
        leader.log_mut().set_settings(log_settings(&config));
    }

    /// Lets go of the partitions of a deleted topic; their files go in the background.
    async fn delete_topic(self: &Rc<Self>, topic: &Topic) {
        for (id, _) in topic.partitions_from(0) {
            let Some(partition) = self.unhost(id) else {
                continue;
            };
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
            let from = partition.directory();
            let to = self
                .log_dir()
                .path()
                .join(DeletedDirName::new(&topic.name, topic.id, id.partition).to_string());
            let renamed = blocking::run(move || std::fs::rename(&from, &to).map(|()| to)).await;
            drop(turn);
            self.deleted_files()
                .borrow_mut()
                .forget(&partition.directory());
            let log_dir = self.log_dir().clone();
            match renamed {
                Ok(to) => executor::spawn_background(async move {
                    let shown = to.display().to_string();
                    let is_space_short = || log_dir.room() != Room::Free;
                    if let Err(error) = slow_removal::shrink_all(to.clone(), is_space_short).await {
                        tracing::warn!(path = shown, %error, "a deleted partition's files were not cut");
                    }
                    if let Err(error) = blocking::run(move || std::fs::remove_dir_all(&to)).await {
                        tracing::warn!(path = shown, %error, "a deleted partition's files stay until the next start");
                    }
                })
                .detach(),
                Err(error) => tracing::warn!(partition = %id, %error, "a deleted partition's directory was not renamed"),
            }
        }
    }
}

/// The broker's settings with what was set online.
pub fn online_config(config: &BrokerConfig, image: &MetadataImage) -> Result<BrokerConfig, String> {
    let cluster = image.broker_settings(None);
    let node = image.broker_settings(Some(config.node_id));
    config
        .with_online(&cluster, &node)
        .map_err(|error| error.to_string())
}

fn partition_directory(log_dir: &Path, topic: &TopicName, partition: TopicPartition) -> PathBuf {
    let name = PartitionDirName {
        topic: topic.clone(),
        partition: partition.partition,
    };
    log_dir.join(name.to_string())
}

fn log_settings(config: &TopicConfig) -> LogSettings {
    LogSettings {
        roll: RollRules {
            segment_bytes: config.segment_bytes,
            segment_ms: config.roll_ms(),
            index_entries_max: config.segment_index_bytes as usize / OFFSET_INDEX_ENTRY_BYTES,
        },
        index_interval_bytes: config.index_interval_bytes,
    }
}

fn active_path(directory: &Path, recovered: &Recovered) -> PathBuf {
    let name = SegmentFileName::new(recovered.active.base_offset, SegmentFileKind::Log);
    directory.join(name.to_string())
}

/// The bytes from the start of the active segment's last page to its end, which the next write covers again.
fn read_tail_page(directory: &Path, recovered: &Recovered) -> Result<Box<[u8]>, FileError> {
    use std::os::unix::fs::FileExt;

    let partial_bytes = recovered.active.size_bytes as usize % PAGE_BYTES;
    let mut page = vec![0; partial_bytes].into_boxed_slice();
    if partial_bytes > 0 {
        let path = active_path(directory, recovered);
        let file = std::fs::File::open(&path).map_err(FileError::of("open", &path))?;
        let position = recovered.active.size_bytes - partial_bytes as u64;
        file.read_exact_at(&mut page, position)
            .map_err(FileError::of("read", &path))?;
    }
    Ok(page)
}
