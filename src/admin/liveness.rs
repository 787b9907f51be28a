use std::time::Duration;

use crate::metrics::{Counter, MetricsRegistry};
use crate::model::ShardId;

/// How often the figures are looked at.
pub(super) const SAMPLE_INTERVAL: Duration = Duration::from_secs(1);

/// A shard ticks every few milliseconds. After this many looks without a tick it is stuck.
const LOOKS_WITHOUT_TICK_MAX: u32 = 10;

#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    ticks: u64,
    looks_without_tick: u32,
}

/// Whether every shard that has begun to tick still does.
///
/// It counts looks and not seconds: a process that was stopped as a whole, or a machine that slept, has no stuck shard.
#[derive(Debug, Default)]
pub(super) struct Liveness {
    shards: Vec<Seen>,
}

impl Liveness {
    pub(super) fn sample(&mut self, metrics: &MetricsRegistry) {
        self.shards.resize(metrics.shards().len(), Seen::default());
        for (seen, shard) in self.shards.iter_mut().zip(metrics.shards()) {
            let ticks = shard.counter(Counter::Ticks);
            let stands_still = ticks == seen.ticks && ticks > 0;
            seen.looks_without_tick = if stands_still {
                seen.looks_without_tick + 1
            } else {
                0
            };
            seen.ticks = ticks;
        }
    }

    /// The first shard that has stood still for too long.
    pub(super) fn stuck_shard(&self) -> Option<ShardId> {
        let stuck = |seen: &Seen| seen.looks_without_tick >= LOOKS_WITHOUT_TICK_MAX;
        (0..)
            .map(ShardId)
            .zip(&self.shards)
            .find(|(_, seen)| stuck(seen))
            .map(|(shard, _)| shard)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shard_that_stops_ticking_is_stuck_and_one_that_never_began_is_not() {
        let registry = MetricsRegistry::new(3);
        let [_never, always, once] = [0, 1, 2].map(|shard| registry.shard(ShardId(shard)));
        let mut liveness = Liveness::default();
        once.count(Counter::Ticks, 1);
        for _ in 0..=LOOKS_WITHOUT_TICK_MAX {
            assert_eq!(liveness.stuck_shard(), None);
            always.count(Counter::Ticks, 1);
            liveness.sample(&registry);
        }
        assert_eq!(liveness.stuck_shard(), Some(ShardId(2)));
        once.count(Counter::Ticks, 1);
        liveness.sample(&registry);
        assert_eq!(liveness.stuck_shard(), None);
    }
}
