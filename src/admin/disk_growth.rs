use std::collections::VecDeque;
use std::time::Duration;

use crate::metrics::{Counter, Gauge, MetricsRegistry};

/// How far back the growth looks.
const WINDOW: Duration = Duration::from_secs(300);

/// Ticks of a shard from which on it has added up its partitions at least once.
const TICKS_UNTIL_KNOWN: u64 = 2;

/// What the logs have grown by over the last minutes: bytes appended less bytes deleted.
#[derive(Debug, Default)]
pub(super) struct DiskGrowth {
    /// When, and how many bytes all logs had; oldest first.
    samples: VecDeque<(Duration, u64)>,
}

impl DiskGrowth {
    /// `at` is the time since the process started.
    pub(super) fn sample(&mut self, at: Duration, metrics: &MetricsRegistry) {
        let mut shards = metrics.shards().iter();
        if shards.any(|shard| shard.counter(Counter::Ticks) < TICKS_UNTIL_KNOWN) {
            return;
        }
        let shards = metrics.shards().iter();
        let bytes = shards.map(|shard| shard.gauge(Gauge::DiskBytes)).sum();
        self.samples.push_back((at, bytes));
        while let Some((oldest, _)) = self.samples.front()
            && at.saturating_sub(*oldest) > WINDOW
        {
            self.samples.pop_front();
        }
    }

    /// Negative where more is deleted than appended; 0 until there are two samples.
    pub(super) fn bytes_per_second(&self) -> f64 {
        let (Some(first), Some(last)) = (self.samples.front(), self.samples.back()) else {
            return 0.0;
        };
        let seconds = (last.0 - first.0).as_secs_f64();
        if seconds == 0.0 {
            return 0.0;
        }
        (last.1 as f64 - first.1 as f64) / seconds
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ShardId;

    #[test]
    fn the_growth_covers_the_last_minutes_and_starts_when_every_shard_has_counted() {
        let registry = MetricsRegistry::new(1);
        let metrics = registry.shard(ShardId(0));
        let mut growth = DiskGrowth::default();
        growth.sample(Duration::from_secs(0), &registry);
        metrics.count(Counter::Ticks, TICKS_UNTIL_KNOWN);
        // What was there at the start has not grown.
        for second in 1..1_000_u64 {
            let bytes = 1_000_000 + if second < 500 { second * 10 } else { 5_000 };
            metrics.set_gauge(Gauge::DiskBytes, bytes);
            growth.sample(Duration::from_secs(second), &registry);
            if second == 400 {
                assert_eq!(growth.bytes_per_second(), 10.0);
            }
        }
        assert_eq!(growth.bytes_per_second(), 0.0);
        metrics.set_gauge(Gauge::DiskBytes, 705_000);
        growth.sample(Duration::from_secs(1_000), &registry);
        assert_eq!(growth.bytes_per_second(), -1_000.0);
    }
}
