use std::sync::{Arc, OnceLock};

use super::directory::DirectoryFigures;
use super::shard::{ShardFigures, ShardMetrics};
use crate::model::ShardId;

/// The figures of all shards. Cheap to clone; made before the shards start.
#[derive(Clone, Debug)]
pub struct MetricsRegistry {
    shards: Arc<[Arc<ShardFigures>]>,
    directory: Arc<DirectoryFigures>,
    budgets: Arc<Budgets>,
}

/// One part of a budget: what it is for, and how much it may take.
pub type BudgetPart = (&'static str, u64);

/// How what the process may use was divided at its start.
#[derive(Debug, Default)]
struct Budgets {
    descriptors: OnceLock<Vec<BudgetPart>>,
    memory: OnceLock<Vec<BudgetPart>>,
}

impl MetricsRegistry {
    pub fn new(shard_count: u16) -> Self {
        Self {
            shards: (0..shard_count)
                .map(|shard| Arc::new(ShardFigures::new(ShardId(shard))))
                .collect(),
            directory: Arc::default(),
            budgets: Arc::default(),
        }
    }

    /// Once, at the start.
    pub fn set_descriptor_budget(&self, parts: Vec<BudgetPart>) {
        let is_first = self.budgets.descriptors.set(parts).is_ok();
        assert!(is_first, "descriptors are divided once");
    }

    /// Once, at the start.
    pub fn set_memory_budget(&self, parts: Vec<BudgetPart>) {
        let is_first = self.budgets.memory.set(parts).is_ok();
        assert!(is_first, "memory is divided once");
    }

    pub fn memory_budget(&self) -> &[BudgetPart] {
        self.budgets.memory.get().map_or(&[], Vec::as_slice)
    }

    pub fn descriptor_budget(&self) -> &[BudgetPart] {
        self.budgets.descriptors.get().map_or(&[], Vec::as_slice)
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
