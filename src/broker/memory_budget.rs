//! Who may take how much of the memory that the process may use. It is one budget, divided here and nowhere else:
//!
//! ```text
//! limit in force (the machine's memory, or less by a control group)
//! | margin: page cache, sockets, heap | process, executors | tail cache | requests | replies | ... | unused |
//! ```
//!
//! Every part that grows with the load has what it takes where memory is plenty, and the least with which a broker works. Where not all get
//! what they would take, what is left above the least is divided in proportion; so on a large machine nothing changes, and in a small
//! container everything is smaller.

use std::path::PathBuf;

use crate::config::BrokerConfig;
use crate::io::memory_limit::MemoryLimit;
use crate::metrics::BudgetPart;
use crate::model::limits::{
    CHUNK_POOL_FREE_BYTES_MAX, GROUP_BYTES_PER_PARTITION_MAX, INFLATE_WINDOWS_PER_SHARD,
    INFLATED_BATCH_BYTES_MAX, READ_BLOCKS_BYTES_MAX_PER_SHARD, READ_MEMORY_BYTES_PER_EXECUTOR,
    RECV_BUF_BYTES_MIN, RECV_POOL_BYTES_PER_SHARD, REPLY_BYTES_PER_SHARD_MAX,
    REQUEST_BYTES_IN_FLIGHT_PER_SHARD_MAX, TOUCHED_AHEAD_BYTES_MAX,
};
use crate::shard::memory_share::MemoryShare;

const MIB: u64 = 1024 * 1024;

/// What nobody here counts: page cache of small files, buffers of sockets, what the heap loses between its blocks, the metadata image.
const MARGIN_PART: u64 = 8;
const MARGIN_BYTES_MIN: u64 = 32 * MIB;
const MARGIN_BYTES_MAX: u64 = 1024 * MIB;

/// The program itself, the controller, the admin listener.
const PROCESS_BYTES: u64 = 48 * MIB;

/// Rings, lanes, touched stacks and small things of one shard, beside the memory that it registers for reads.
const EXECUTOR_BYTES: u64 = 16 * MIB;

/// The window of a codec that every broker has: what zstd uses by default. Where memory is plenty, as much as a batch may inflate to.
const INFLATE_WINDOW_BYTES_MIN: u64 = 2 * MIB;

/// What inflating may take of all memory at the most.
const INFLATE_PART: u64 = 8;

/// A received request is in a buffer of up to twice its size, and its batches are copied once before they are written.
const REQUEST_COST: u64 = 2;

/// The parts as they are where there is enough, and where there is least.
#[derive(Clone, Copy, Debug)]
struct Elastic {
    least_bytes: u64,
    wanted_bytes: u64,
}

/// What all parts would take, within a limit.
struct Wishes {
    margin_bytes: u64,
    fixed_bytes: u64,
    elastic: [Elastic; 11],
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryBudget {
    pub limit: MemoryLimit,
    margin_bytes: u64,
    fixed_bytes: u64,
    /// The tails of all logs.
    pub tail_cache_bytes: usize,
    /// Memory made resident in advance.
    pub touched_ahead_bytes: usize,
    /// What each shard has.
    pub share: MemoryShare,
    /// Connections, for which each has a receive buffer.
    pub connections: usize,
    /// Whether every part has what it takes where memory is plenty.
    pub is_plenty: bool,
    shard_count: usize,
}

/// The limit leaves too little for a broker.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{} MiB of memory{} are too little; with {shard_count} shards at least {} MiB are needed: raise the limit or use fewer cores (cores)",
    limit.bytes / MIB,
    told_source(limit),
    needed_bytes.div_ceil(MIB)
)]
pub struct TooLittleMemory {
    pub limit: MemoryLimit,
    pub needed_bytes: u64,
    pub shard_count: usize,
}

/// What a budget is made from.
#[derive(Clone, Copy, Debug)]
pub struct Demand {
    pub shard_count: usize,
    /// `log.tail.cache.bytes`.
    pub tail_cache_bytes: Option<u64>,
    pub connections_max: u64,
    pub offsets_partition_count: u64,
    /// `log.cleaner.dedupe.buffer.size`.
    pub cleaner_key_bytes: u64,
}

impl MemoryBudget {
    /// Divides what this process may use. `connections_max` is what other limits leave of them.
    pub fn of_process(
        config: &BrokerConfig,
        shard_count: usize,
        connections_max: usize,
    ) -> Result<Self, TooLittleMemory> {
        let demand = Demand {
            shard_count,
            tail_cache_bytes: config.log_tail_cache_bytes,
            connections_max: connections_max as u64,
            cleaner_key_bytes: config.cleaner_dedupe_buffer_bytes as u64,
            offsets_partition_count: config.groups.offsets_partition_count.max(0) as u64,
        };
        Self::divide(MemoryLimit::in_force(), demand)
    }

    pub fn divide(limit: MemoryLimit, demand: Demand) -> Result<Self, TooLittleMemory> {
        let wishes = Wishes::of(limit.bytes, demand);
        let Some(above_least) = limit.bytes.checked_sub(wishes.needed_bytes()) else {
            return Err(TooLittleMemory {
                limit,
                needed_bytes: Wishes::needed_at_all(demand),
                shard_count: demand.shard_count,
            });
        };
        let Wishes {
            margin_bytes,
            fixed_bytes,
            elastic,
        } = wishes;
        let least_bytes: u64 = elastic.iter().map(|it| it.least_bytes).sum();
        let wanted_bytes: u64 = elastic.iter().map(|it| it.wanted_bytes).sum();
        let wanted_above = wanted_bytes - least_bytes;
        let given = elastic.map(|part| part.given(above_least, wanted_above));
        let [
            tail_cache,
            read_blocks,
            free_chunks,
            free_buffers,
            requests,
            replies,
            touched_ahead,
            groups,
            cleaner_keys,
            inflating,
            connections,
        ] = given.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
        let shard_count = demand.shard_count;
        Ok(Self {
            limit,
            margin_bytes,
            fixed_bytes,
            tail_cache_bytes: tail_cache,
            touched_ahead_bytes: touched_ahead,
            share: MemoryShare {
                read_blocks_bytes: read_blocks / shard_count,
                free_chunks_bytes: free_chunks / shard_count,
                free_buffers_bytes: free_buffers / shard_count,
                request_bytes: requests / shard_count / REQUEST_COST as usize,
                reply_bytes: replies / shard_count,
                group_bytes: groups / shard_count,
                cleaner_key_bytes: cleaner_keys / shard_count,
                inflate_window_bytes: inflating / shard_count / INFLATE_WINDOWS_PER_SHARD,
            },
            connections: connections / RECV_BUF_BYTES_MIN,
            is_plenty: above_least >= wanted_above,
            shard_count,
        })
    }

    /// What each part may take in the whole process; their sum is at most the limit.
    pub fn parts(&self) -> Vec<BudgetPart> {
        let of_shards = |bytes: usize| (bytes * self.shard_count) as u64;
        vec![
            ("margin", self.margin_bytes),
            ("process", self.fixed_bytes),
            ("tail_cache", self.tail_cache_bytes as u64),
            ("read_blocks", of_shards(self.share.read_blocks_bytes)),
            ("free_chunks", of_shards(self.share.free_chunks_bytes)),
            ("free_buffers", of_shards(self.share.free_buffers_bytes)),
            (
                "requests",
                REQUEST_COST * of_shards(self.share.request_bytes),
            ),
            ("replies", of_shards(self.share.reply_bytes)),
            ("touched_ahead", self.touched_ahead_bytes as u64),
            ("groups", of_shards(self.share.group_bytes)),
            ("cleaner_keys", of_shards(self.share.cleaner_key_bytes)),
            (
                "inflating",
                of_shards(INFLATE_WINDOWS_PER_SHARD * self.share.inflate_window_bytes),
            ),
            (
                "connections",
                (self.connections * RECV_BUF_BYTES_MIN) as u64,
            ),
        ]
    }

    /// In one line, for people.
    pub fn told(&self) -> String {
        let parts = self.parts();
        let parts = parts.iter().map(|(name, bytes)| {
            let name = name.replace('_', " ");
            format!("{name} {}", bytes / MIB)
        });
        let parts: Vec<_> = parts.collect();
        format!(
            "{} MiB{}: {}",
            self.limit.bytes / MIB,
            told_source(&self.limit),
            parts.join(", ")
        )
    }

    /// What to say of a setting that does not fit.
    pub fn too_large_setting(&self, config: &BrokerConfig) -> Option<String> {
        let asked_bytes = config.log_tail_cache_bytes?;
        let got_bytes = self.tail_cache_bytes as u64;
        (asked_bytes > got_bytes).then(|| {
            format!(
                "log.tail.cache.bytes={asked_bytes} does not fit into {} MiB of memory{}: {got_bytes} are used",
                self.limit.bytes / MIB,
                told_source(&self.limit)
            )
        })
    }
}

impl Wishes {
    fn of(limit_bytes: u64, demand: Demand) -> Self {
        let shards = demand.shard_count as u64;
        let margin_bytes = (limit_bytes / MARGIN_PART).clamp(MARGIN_BYTES_MIN, MARGIN_BYTES_MAX);
        let executor_bytes = EXECUTOR_BYTES + READ_MEMORY_BYTES_PER_EXECUTOR as u64;
        let fixed_bytes = PROCESS_BYTES + shards * executor_bytes;
        let of_shards = |least_bytes: u64, wanted_bytes: usize| Elastic {
            least_bytes: shards * least_bytes,
            wanted_bytes: shards * wanted_bytes as u64,
        };
        let of_process = |least_bytes, wanted_bytes| Elastic {
            least_bytes,
            wanted_bytes,
        };
        let tail_cache_wanted = demand.tail_cache_bytes.unwrap_or(limit_bytes / 16);
        let group_bytes = GROUP_BYTES_PER_PARTITION_MAX as u64 * demand.offsets_partition_count;
        let windows = INFLATE_WINDOWS_PER_SHARD as u64;
        let inflating_wanted = (shards * windows * INFLATED_BATCH_BYTES_MAX as u64)
            .min(limit_bytes / INFLATE_PART)
            .max(shards * windows * INFLATE_WINDOW_BYTES_MIN);
        let connection_bytes = demand.connections_max * RECV_BUF_BYTES_MIN as u64;
        let elastic = [
            // A setting may take half of everything.
            of_process(16 * MIB, tail_cache_wanted.min(limit_bytes / 2)),
            of_shards(4 * MIB, READ_BLOCKS_BYTES_MAX_PER_SHARD),
            of_shards(2 * MIB, CHUNK_POOL_FREE_BYTES_MAX),
            of_shards(4 * MIB, RECV_POOL_BYTES_PER_SHARD),
            of_shards(
                REQUEST_COST * 8 * MIB,
                REQUEST_COST as usize * REQUEST_BYTES_IN_FLIGHT_PER_SHARD_MAX,
            ),
            of_shards(8 * MIB, REPLY_BYTES_PER_SHARD_MAX),
            of_process(8 * MIB, TOUCHED_AHEAD_BYTES_MAX as u64),
            of_shards(8 * MIB, 0).up_to(group_bytes.min(limit_bytes / 8)),
            // It may be set to more while the broker runs.
            of_shards(2 * MIB, 0).up_to(demand.cleaner_key_bytes.max(limit_bytes / 16)),
            of_shards(windows * INFLATE_WINDOW_BYTES_MIN, 0).up_to(inflating_wanted),
            of_process(4 * MIB, connection_bytes),
        ]
        .map(Elastic::sound);
        Self {
            margin_bytes,
            fixed_bytes,
            elastic,
        }
    }

    fn needed_bytes(&self) -> u64 {
        let least_bytes: u64 = self.elastic.iter().map(|it| it.least_bytes).sum();
        self.margin_bytes + self.fixed_bytes + least_bytes
    }

    /// The least limit that does. The margin grows with it, by less.
    fn needed_at_all(demand: Demand) -> u64 {
        let mut limit_bytes = 0;
        loop {
            let needed_bytes = Self::of(limit_bytes, demand).needed_bytes();
            if needed_bytes <= limit_bytes {
                return limit_bytes;
            }
            limit_bytes = needed_bytes;
        }
    }
}

impl Elastic {
    fn up_to(self, wanted_bytes: u64) -> Self {
        Self {
            wanted_bytes,
            ..self
        }
    }

    /// Whoever wants less than the least has what it wants.
    fn sound(self) -> Self {
        Self {
            least_bytes: self.least_bytes.min(self.wanted_bytes),
            ..self
        }
    }

    /// Its part, where all together want `wanted_above` more than the least, and there is `above_least`.
    fn given(self, above_least: u64, wanted_above: u64) -> u64 {
        if above_least >= wanted_above {
            return self.wanted_bytes;
        }
        let own_above = u128::from(self.wanted_bytes - self.least_bytes);
        let given_above = own_above * u128::from(above_least) / u128::from(wanted_above);
        self.least_bytes + u64::try_from(given_above).expect("it is a part of what is there")
    }
}

fn told_source(limit: &MemoryLimit) -> String {
    let path: Option<&PathBuf> = limit.source.as_ref();
    path.map_or_else(String::new, |path| format!(" (by {})", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1024 * MIB;

    fn limit(bytes: u64) -> MemoryLimit {
        MemoryLimit {
            bytes,
            source: None,
        }
    }

    fn demand(shard_count: usize) -> Demand {
        Demand {
            shard_count,
            tail_cache_bytes: None,
            connections_max: 8_000,
            offsets_partition_count: 50,
            cleaner_key_bytes: 128 * MIB,
        }
    }

    fn sum(budget: &MemoryBudget) -> u64 {
        budget.parts().iter().map(|(_, bytes)| bytes).sum()
    }

    #[test]
    fn on_a_large_machine_every_part_has_what_it_always_had() {
        let budget = MemoryBudget::divide(limit(24 * GIB), demand(2)).unwrap();
        assert!(budget.is_plenty);
        assert_eq!(budget.tail_cache_bytes as u64, 24 * GIB / 16);
        assert_eq!(
            budget.share.read_blocks_bytes,
            READ_BLOCKS_BYTES_MAX_PER_SHARD
        );
        assert_eq!(budget.share.free_chunks_bytes, CHUNK_POOL_FREE_BYTES_MAX);
        assert_eq!(budget.share.free_buffers_bytes, RECV_POOL_BYTES_PER_SHARD);
        assert_eq!(
            budget.share.request_bytes,
            REQUEST_BYTES_IN_FLIGHT_PER_SHARD_MAX
        );
        assert_eq!(budget.share.reply_bytes, REPLY_BYTES_PER_SHARD_MAX);
        assert_eq!(budget.touched_ahead_bytes, TOUCHED_AHEAD_BYTES_MAX);
        assert_eq!(budget.share.inflate_window_bytes, INFLATED_BATCH_BYTES_MAX);
        assert_eq!(budget.connections, 8_000);
        assert!(sum(&budget) < 24 * GIB);
    }

    #[test]
    fn the_parts_never_exceed_the_limit_and_shrink_with_it() {
        for shard_count in [1, 2, 8, 64] {
            let refused = MemoryBudget::divide(limit(0), demand(shard_count)).unwrap_err();
            let mut larger = None;
            let needed_mib = refused.needed_bytes.div_ceil(MIB);
            MemoryBudget::divide(limit((needed_mib - 2) * MIB), demand(shard_count)).unwrap_err();
            let limits_mib: Vec<u64> = (needed_mib..64 * 1024).step_by(97).collect();
            for mib in limits_mib.into_iter().rev() {
                let budget = MemoryBudget::divide(limit(mib * MIB), demand(shard_count)).unwrap();
                assert!(sum(&budget) <= mib * MIB, "{budget:?}");
                if let Some(larger) = larger {
                    for (part, more) in budget.parts().iter().zip(MemoryBudget::parts(&larger)) {
                        assert!(part.1 <= more.1, "{} at {mib} MiB", part.0);
                    }
                }
                larger = Some(budget);
            }
        }
    }

    #[test]
    fn too_little_is_refused_with_what_is_needed() {
        let refused = MemoryBudget::divide(limit(100 * MIB), demand(2)).unwrap_err();
        let told = refused.to_string();
        assert!(
            told.starts_with("100 MiB of memory are too little"),
            "{told}"
        );
        let needed = refused.needed_bytes.div_ceil(MIB);
        assert!(told.contains(&format!("at least {needed} MiB")), "{told}");
        assert!(needed < 300, "a container of 300 MiB does for two shards");
        MemoryBudget::divide(limit(needed * MIB), demand(2)).unwrap();
    }

    #[test]
    fn what_inflates_has_its_part_also_where_there_is_least() {
        let needed = MemoryBudget::divide(limit(0), demand(2)).unwrap_err();
        let least = MemoryBudget::divide(limit(needed.needed_bytes), demand(2)).unwrap();
        let window_bytes = least.share.inflate_window_bytes as u64;
        assert!(window_bytes >= INFLATE_WINDOW_BYTES_MIN, "{window_bytes}");
        let small = MemoryBudget::divide(limit(600 * MIB), demand(2)).unwrap();
        let window_bytes = small.share.inflate_window_bytes;
        assert!(window_bytes < INFLATED_BATCH_BYTES_MAX, "{window_bytes}");
        let parts = small.parts();
        let part = parts.iter().find(|(name, _)| *name == "inflating").unwrap();
        assert!(part.1 >= (2 * INFLATE_WINDOWS_PER_SHARD * window_bytes) as u64);
    }

    #[test]
    fn a_tail_cache_that_does_not_fit_is_cut_and_told() {
        let mut config = BrokerConfig::default();
        config.log_tail_cache_bytes = Some(2 * GIB);
        let asking = Demand {
            tail_cache_bytes: config.log_tail_cache_bytes,
            ..demand(2)
        };
        let small = MemoryBudget::divide(limit(600 * MIB), asking).unwrap();
        assert!(sum(&small) <= 600 * MIB);
        let told = small.too_large_setting(&config).unwrap();
        assert!(told.contains("log.tail.cache.bytes=2147483648"), "{told}");
        assert!(told.contains(&small.tail_cache_bytes.to_string()), "{told}");
        let large = MemoryBudget::divide(limit(24 * GIB), asking).unwrap();
        assert_eq!(large.tail_cache_bytes as u64, 2 * GIB);
        assert_eq!(large.too_large_setting(&config), None);
    }
}
