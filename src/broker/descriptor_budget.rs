//! Who may have how many of the process's file descriptors. They are one budget, divided here and nowhere else:
//!
//! ```text
//! limit in force (RLIMIT_NOFILE, the soft one raised to the hard one)
//! | open at the start | reserve: metadata, rings, listeners, indexes, recovery | admin | connections | segment files, for each shard |
//! ```
//!
//! Connections and segment files keep to their parts by counting, so that neither takes from the other; the reserve is sized for the most
//! that everything else has open at a time.

use crate::config::BrokerConfig;
use crate::io::descriptors::{self, OpenDescriptors};
use crate::metrics::BudgetPart;
use crate::model::limits::{
    ADMIN_CONNECTIONS_MAX, BLOCKING_THREADS_PER_EXECUTOR, CONNECTION_DESCRIPTORS_PERCENT_MAX,
};

/// For the whole process: the lock, the metadata log with its snapshot and directory, the admin listener with its runtime, figures of the
/// process, signals, a log file, and a few that libraries open for a moment.
const PROCESS_RESERVE: u64 = 32;

/// Of one executor: three rings and what wakes it.
const EXECUTOR_DESCRIPTORS: u64 = 6;

/// What a call on a blocking thread has open at a time: a segment, an index, a directory.
const BLOCKING_CALL_DESCRIPTORS: u64 = 3;

/// Of one shard: a connection on its way in has two for a moment, a refused one is being closed, and a file that a reader held longer than
/// its log is closed a turn later.
const TURNOVER_DESCRIPTORS: u64 = 8;

/// A cleaner holds two files at a time while clients read and write.
const SEGMENTS_PER_SHARD_MIN: u64 = 8;
const CONNECTIONS_MIN: u64 = 8;
const ADMIN_MIN: u64 = 4;

/// The admin listener has this part of what is to be divided, up to `ADMIN_CONNECTIONS_MAX`.
const ADMIN_PART: u64 = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DescriptorBudget {
    pub limit: u64,
    /// Open when the budget was made, and what is kept for everything that is not named below.
    pub reserve: u64,
    pub admin: usize,
    /// Of all shards together.
    pub connections: usize,
    pub segments_per_shard: usize,
    shard_count: usize,
}

/// The limit leaves too few for a broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the limit of open files is {limit}; with {shard_count} shards at least {needed} are needed: raise it (ulimit -n; for a systemd service: \
     LimitNOFILE) or use fewer cores (cores)"
)]
pub struct TooFewDescriptors {
    pub limit: u64,
    pub needed: u64,
    pub shard_count: usize,
}

/// What a budget is made from.
#[derive(Clone, Copy, Debug)]
pub struct Demand {
    pub already_open: u64,
    pub shard_count: usize,
    pub listener_count: usize,
    pub connections_max: u64,
}

impl DescriptorBudget {
    /// Raises this process's limit as far as it may and divides it. To be called before anything large is opened.
    pub fn of_process(
        config: &BrokerConfig,
        shard_count: usize,
    ) -> Result<Self, TooFewDescriptors> {
        let limit = descriptors::raise_limit();
        // Where /proc is not there to tell, the reserve has room for what a shell hands on.
        let already_open = OpenDescriptors::new().and_then(|open| open.count());
        let demand = Demand {
            already_open: already_open.unwrap_or_default(),
            shard_count,
            listener_count: config.listeners.len(),
            connections_max: u64::from(config.connections_max),
        };
        let budget = Self::divide(limit, demand)?;
        tracing::debug!(
            limit,
            reserve = budget.reserve,
            admin = budget.admin,
            connections = budget.connections,
            segments_per_shard = budget.segments_per_shard,
            "file descriptors"
        );
        Ok(budget)
    }

    pub fn divide(limit: u64, demand: Demand) -> Result<Self, TooFewDescriptors> {
        let shards = demand.shard_count as u64;
        let per_shard = EXECUTOR_DESCRIPTORS
            + demand.listener_count as u64
            + BLOCKING_THREADS_PER_EXECUTOR as u64 * BLOCKING_CALL_DESCRIPTORS
            + TURNOVER_DESCRIPTORS;
        let reserve = demand.already_open + PROCESS_RESERVE + shards * per_shard;
        let needed = reserve + ADMIN_MIN + CONNECTIONS_MIN + shards * SEGMENTS_PER_SHARD_MIN;
        if limit < needed {
            return Err(TooFewDescriptors {
                limit,
                needed,
                shard_count: demand.shard_count,
            });
        }
        let divided = limit - reserve;
        let least_of_others = CONNECTIONS_MIN + shards * SEGMENTS_PER_SHARD_MIN;
        let admin = (divided / ADMIN_PART)
            .clamp(ADMIN_MIN, ADMIN_CONNECTIONS_MAX as u64)
            .min(divided - least_of_others);
        let rest = divided - admin;
        let connections = (rest * CONNECTION_DESCRIPTORS_PERCENT_MAX / 100)
            .min(demand.connections_max)
            .clamp(CONNECTIONS_MIN, rest - shards * SEGMENTS_PER_SHARD_MIN);
        Ok(Self {
            limit,
            reserve,
            admin: admin as usize,
            connections: connections as usize,
            segments_per_shard: ((rest - connections) / shards) as usize,
            shard_count: demand.shard_count,
        })
    }

    /// For the figures: their sum is at most the limit.
    pub fn parts(&self) -> Vec<BudgetPart> {
        vec![
            ("reserve", self.reserve),
            ("admin", self.admin as u64),
            ("connections", self.connections as u64),
            ("segments", self.segments()),
        ]
    }

    /// Segment files of all shards together.
    pub fn segments(&self) -> u64 {
        (self.segments_per_shard * self.shard_count) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn demand(shard_count: usize) -> Demand {
        Demand {
            already_open: 5,
            shard_count,
            listener_count: 1,
            connections_max: 10_000,
        }
    }

    #[test]
    fn the_parts_never_exceed_the_limit_and_nobody_gets_less_than_the_least() {
        for shard_count in [1, 2, 7, 64] {
            let needed = DescriptorBudget::divide(0, demand(shard_count))
                .unwrap_err()
                .needed;
            for limit in (needed..needed + 300).chain([4_096, 20_000, 1 << 20]) {
                let Ok(budget) = DescriptorBudget::divide(limit, demand(shard_count)) else {
                    assert!(limit < needed, "{limit}");
                    continue;
                };
                let sum: u64 = budget.parts().iter().map(|(_, count)| count).sum();
                assert!(sum <= limit, "{budget:?}");
                assert!(
                    sum + shard_count as u64 > limit,
                    "{budget:?} leaves some unused"
                );
                assert!(budget.admin as u64 >= ADMIN_MIN);
                assert!(budget.connections as u64 >= CONNECTIONS_MIN);
                assert!(budget.segments_per_shard as u64 >= SEGMENTS_PER_SHARD_MIN);
            }
            let refused = DescriptorBudget::divide(needed - 1, demand(shard_count)).unwrap_err();
            assert_eq!((refused.limit, refused.needed), (needed - 1, needed));
        }
    }

    #[test]
    fn what_connections_may_not_have_segments_get() {
        let many = DescriptorBudget::divide(20_000, demand(2)).unwrap();
        let few = Demand {
            connections_max: 100,
            ..demand(2)
        };
        let few = DescriptorBudget::divide(20_000, few).unwrap();
        assert_eq!(few.connections, 100);
        assert!(few.segments_per_shard > many.segments_per_shard + 3_000);
    }

    #[test]
    fn what_is_open_already_is_nobodys() {
        let budget = |already_open| {
            let demand = Demand {
                already_open,
                ..demand(2)
            };
            DescriptorBudget::divide(1_024, demand).unwrap()
        };
        let (few, many) = (budget(3), budget(503));
        assert_eq!(many.reserve, few.reserve + 500);
        assert!(many.connections < few.connections);
    }
}
