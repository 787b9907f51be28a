//! Following the cluster's metadata: partitions come, go and are reconfigured.

use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use crate::config::{BrokerConfig, TopicConfig};
use crate::io::{blocking, executor};
use crate::metadata::{MetadataDelta, MetadataImage, Topic};
use crate::model::{LeaderEpoch, PartitionIndex, TopicName, TopicPartition};
use crate::partition::leader::Leader;
use crate::shard::call::ReplyTo;
use crate::shard::command::PartitionError;
use crate::shard::hosted::{Flags, HostedPartition};
use crate::shard::housekeeping::partition_directory;
use crate::shard::runtime::Shard;
use crate::storage::log::Log;
use crate::storage::partition_dir;
use crate::storage::recovery::Recovered;

/// A partition that recovery has read, on its way to the shard that will host it.
pub struct RecoveredPartition {
    pub partition: TopicPartition,
    pub topic: TopicName,
    pub epoch: LeaderEpoch,
    pub config: TopicConfig,
    pub directory: PathBuf,
    pub recovered: Recovered,
}

impl Shard {
    /// Hosts what recovery found, at start.
    pub fn host_recovered(&self, found: RecoveredPartition) {
        let RecoveredPartition { partition, topic, epoch, config, directory, recovered } = found;
        let Recovered { log, producers, checkpointed, .. } = recovered;
        let log = Log::open(self.next_log_id(), directory, config.into(), self.pool().clone(), log);
        let leader = Leader::new(epoch, log, producers, config.flush_message_count);
        self.host(Rc::new(HostedPartition::new(partition, topic, config, leader, checkpointed)));
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
}
