use std::sync::Arc;

use super::directory::DirectoryFigures;
use super::shard::{ShardFigures, ShardMetrics};
use crate::model::ShardId;

/// The figures of all shards. Cheap to clone; made before the shards start.
#[derive(Clone, Debug)]
pub struct MetricsRegistry {
    shards: Arc<[Arc<ShardFigures>]>,
    directory: Arc<DirectoryFigures>,
}

impl MetricsRegistry {
    pub fn new(shard_count: u16) -> Self {
        Self {
            shards: (0..shard_count)
                .map(|shard| Arc::new(ShardFigures::new(ShardId(shard))))
                .collect(),
            directory: Arc::default(),
        }
    }

    /// The pen of one shard. To be called on that shard's own thread: the first caller's thread is the only one that may
    /// write, and a call from another panics.
    pub fn shard(&self, shard: ShardId) -> ShardMetrics {
        ShardMetrics::new(self.shards[shard.index()].clone(), self.directory.clone())
    }

    pub fn directory(&self) -> &DirectoryFigures {
        &self.directory
    }

    pub fn shards(&self) -> &[Arc<ShardFigures>] {
        &self.shards
    }
}
