use std::collections::VecDeque;
use std::time::Duration;

use crate::metrics::MetricsRegistry;

/// How far back the status page's rates look.
const SAMPLES_MAX: usize = 11;

/// Bytes of all requests and replies at one moment.
#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    at: Duration,
    bytes_in: u64,
    bytes_out: u64,
}

/// The last ten seconds of traffic, so that the status page can tell a rate where the figures only count.
#[derive(Debug, Default)]
pub(super) struct Throughput {
    samples: VecDeque<Sample>,
}

impl Throughput {
    /// `at` is the time since the process started.
    pub(super) fn sample(&mut self, at: Duration, metrics: &MetricsRegistry) {
        let mut sample = Sample {
            at,
            ..Sample::default()
        };
        for (_, api) in metrics.shards().iter().flat_map(|shard| shard.apis()) {
            sample.bytes_in += api.bytes_in();
            sample.bytes_out += api.bytes_out();
        }
        if self.samples.len() == SAMPLES_MAX {
            self.samples.pop_front();
        }
        self.samples.push_back(sample);
    }

    /// Bytes per second in and out over the samples that are held; 0 until there are two.
    pub(super) fn bytes_per_second(&self) -> (f64, f64) {
        let (Some(first), Some(last)) = (self.samples.front(), self.samples.back()) else {
            return (0.0, 0.0);
        };
        let seconds = (last.at - first.at).as_secs_f64();
        if seconds == 0.0 {
            return (0.0, 0.0);
        }
        (
            (last.bytes_in - first.bytes_in) as f64 / seconds,
            (last.bytes_out - first.bytes_out) as f64 / seconds,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ShardId;

    #[test]
    fn the_rate_covers_the_last_ten_seconds_only() {
        let registry = MetricsRegistry::new(1);
        let metrics = registry.shard(ShardId(0));
        let mut throughput = Throughput::default();
        assert_eq!(throughput.bytes_per_second(), (0.0, 0.0));
        for second in 0..30u64 {
            throughput.sample(Duration::from_secs(second), &registry);
            let bytes = if second < 15 { 1_000_000 } else { 500 };
            metrics.record_request(0, bytes, 10, 1);
        }
        assert_eq!(throughput.bytes_per_second(), (500.0, 10.0));
    }
}
