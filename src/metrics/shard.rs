use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::{Arc, OnceLock};
use std::thread::{self, ThreadId};

use super::api::ApiFigures;
use super::catalogue::{Counter, Deletion, Gauge, Latency, Stage};
use super::directory::{DirectoryFigures, DirectorySpace};
use super::histogram::LatencyHistogram;
use super::single_writer::SingleWriterU64;
use crate::model::ShardId;
use crate::model::limits::API_KEYS_COUNTED_MAX;

/// The figures of one shard, as any thread may read them.
#[derive(Debug)]
pub struct ShardFigures {
    shard: ShardId,
    writer: OnceLock<ThreadId>,
    counters: [SingleWriterU64; Counter::COUNT],
    gauges: [SingleWriterU64; Gauge::COUNT],
    deleted_segments: [SingleWriterU64; Deletion::COUNT],
    deleted_bytes: [SingleWriterU64; Deletion::COUNT],
    latencies: [LatencyHistogram; Latency::COUNT],
    /// By API key; the last slot also takes every key beyond it.
    apis: [OnceLock<Box<ApiFigures>>; API_KEYS_COUNTED_MAX],
}

impl ShardFigures {
    pub(super) fn new(shard: ShardId) -> Self {
        Self {
            shard,
            writer: OnceLock::new(),
            counters: Default::default(),
            gauges: Default::default(),
            deleted_segments: Default::default(),
            deleted_bytes: Default::default(),
            latencies: Default::default(),
            apis: std::array::from_fn(|_| OnceLock::new()),
        }
    }

    pub fn shard(&self) -> ShardId {
        self.shard
    }

    pub fn counter(&self, counter: Counter) -> u64 {
        self.counters[counter.index()].get()
    }

    pub fn gauge(&self, gauge: Gauge) -> u64 {
        self.gauges[gauge.index()].get()
    }

    pub fn deleted_segments(&self, why: Deletion) -> u64 {
        self.deleted_segments[why.index()].get()
    }

    pub fn deleted_bytes(&self, why: Deletion) -> u64 {
        self.deleted_bytes[why.index()].get()
    }

    pub fn latency(&self, latency: Latency) -> &LatencyHistogram {
        &self.latencies[latency.index()]
    }

    /// The APIs that were asked for at least once, each with its key.
    pub fn apis(&self) -> impl Iterator<Item = (i16, &ApiFigures)> {
        (0i16..)
            .zip(&self.apis)
            .filter_map(|(key, slot)| Some((key, slot.get()?.as_ref())))
    }
}

/// The pen of one shard: the only way to write its figures. It clones for a reference count and stays on its thread.
///
/// Every method costs a few nanoseconds and none allocates, but for the first request of each API.
#[derive(Clone, Debug)]
pub struct ShardMetrics {
    figures: Arc<ShardFigures>,
    directory: Arc<DirectoryFigures>,
    /// Not `Send`: the figures have one writing thread.
    thread_bound: PhantomData<Rc<()>>,
}

impl ShardMetrics {
    /// Panics if another thread already writes these figures: then counts would get lost.
    pub(super) fn new(figures: Arc<ShardFigures>, directory: Arc<DirectoryFigures>) -> Self {
        let here = thread::current().id();
        let writer = *figures.writer.get_or_init(|| here);
        assert_eq!(
            writer, here,
            "the figures of shard {} are written by one thread only",
            figures.shard
        );
        Self {
            figures,
            directory,
            thread_bound: PhantomData,
        }
    }

    /// A request whose reply was handed to the socket. `bytes_in` and `bytes_out` count the frames with their length field.
    #[inline]
    pub fn record_request(&self, api_key: i16, bytes_in: usize, bytes_out: usize, total_ns: u64) {
        self.api(api_key)
            .record_request(bytes_in, bytes_out, total_ns);
    }

    /// A part of a request's time; the total is recorded by `record_request`.
    #[inline]
    pub fn record_stage(&self, api_key: i16, stage: Stage, ns: u64) {
        self.api(api_key).record_stage(stage, ns);
    }

    /// An error code in a reply, once for each place where it stands (such as each partition).
    pub fn record_error(&self, api_key: i16, error_code: i16) {
        self.api(api_key).record_error(error_code);
    }

    #[inline]
    pub fn record_disk_write(&self, bytes: usize, ns: u64) {
        self.count(Counter::DiskWriteBytes, bytes as u64);
        self.record_latency(Latency::DiskWrite, ns);
    }

    #[inline]
    pub fn record_disk_read(&self, bytes: usize, ns: u64) {
        self.count(Counter::DiskReadBytes, bytes as u64);
        self.record_latency(Latency::DiskRead, ns);
    }

    #[inline]
    pub fn record_fdatasync(&self, ns: u64) {
        self.record_latency(Latency::Fdatasync, ns);
    }

    #[inline]
    pub fn record_latency(&self, latency: Latency, ns: u64) {
        self.figures.latencies[latency.index()].record(ns);
    }

    #[inline]
    pub fn count(&self, counter: Counter, amount: u64) {
        self.figures.counters[counter.index()].add(amount);
    }

    pub fn count_deleted(&self, why: Deletion, segments: u64, bytes: u64) {
        self.figures.deleted_segments[why.index()].add(segments);
        self.figures.deleted_bytes[why.index()].add(bytes);
    }

    /// What the log directory's file system holds. One shard only may say so.
    pub fn record_directory(&self, space: DirectorySpace) {
        self.directory.record(space);
    }

    #[inline]
    pub fn set_gauge(&self, gauge: Gauge, value: u64) {
        self.figures.gauges[gauge.index()].set(value);
    }

    #[inline]
    pub fn raise_gauge(&self, gauge: Gauge, amount: u64) {
        self.figures.gauges[gauge.index()].add(amount);
    }

    #[inline]
    pub fn lower_gauge(&self, gauge: Gauge, amount: u64) {
        self.figures.gauges[gauge.index()].subtract(amount);
    }

    /// What was written so far.
    pub fn figures(&self) -> &ShardFigures {
        &self.figures
    }

    #[inline]
    fn api(&self, api_key: i16) -> &ApiFigures {
        let slot = usize::try_from(api_key)
            .unwrap_or(usize::MAX)
            .min(API_KEYS_COUNTED_MAX - 1);
        self.figures.apis[slot].get_or_init(Box::default)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::MetricsRegistry;

    const PRODUCE: i16 = 0;

    #[test]
    fn a_request_counts_under_its_api_and_nowhere_else() {
        let registry = MetricsRegistry::new(1);
        let metrics = registry.shard(ShardId(0));
        metrics.record_request(PRODUCE, 1000, 50, 2_000_000);
        metrics.record_request(PRODUCE, 500, 50, 3_000_000);
        metrics.record_stage(PRODUCE, Stage::Disk, 1_000_000);
        let apis: Vec<_> = metrics.figures().apis().collect();
        assert_eq!(apis.len(), 1);
        let (key, produce) = apis[0];
        assert_eq!(
            (
                key,
                produce.requests(),
                produce.bytes_in(),
                produce.bytes_out()
            ),
            (PRODUCE, 2, 1500, 100)
        );
        assert_eq!(produce.stage(Stage::Total).sum_ns(), 5_000_000);
        assert_eq!(produce.stage(Stage::Disk).count(), 1);
        assert_eq!(produce.stage(Stage::Queue).count(), 0);
    }

    #[test]
    fn keys_and_error_codes_out_of_range_are_counted_in_the_last_slot() {
        let registry = MetricsRegistry::new(1);
        let metrics = registry.shard(ShardId(0));
        for key in [i16::MIN, -1, 127, i16::MAX] {
            metrics.record_request(key, 1, 1, 1);
        }
        for code in [-1, 0, 35, i16::MAX, i16::MIN] {
            metrics.record_error(PRODUCE, code);
        }
        let by_key: Vec<_> = metrics
            .figures()
            .apis()
            .map(|(key, api)| (key, api.requests()))
            .collect();
        assert_eq!(by_key, [(0, 0), (127, 4)]);
        let errors: Vec<_> = metrics
            .figures()
            .apis()
            .next()
            .unwrap()
            .1
            .errors()
            .collect();
        assert_eq!(errors, [(-1, 2), (0, 1), (35, 1), (158, 1)]);
    }

    #[test]
    fn a_gauge_never_goes_below_zero() {
        let registry = MetricsRegistry::new(1);
        let metrics = registry.shard(ShardId(0));
        metrics.raise_gauge(Gauge::Connections, 2);
        metrics.lower_gauge(Gauge::Connections, 5);
        assert_eq!(metrics.figures().gauge(Gauge::Connections), 0);
        metrics.set_gauge(Gauge::Partitions, 7);
        assert_eq!(metrics.figures().gauge(Gauge::Partitions), 7);
    }

    #[test]
    fn a_second_thread_may_not_write_a_shards_figures() {
        let registry = MetricsRegistry::new(2);
        let _here = registry.shard(ShardId(0));
        let elsewhere = registry.clone();
        let second = thread::spawn(move || {
            elsewhere.shard(ShardId(1)).count(Counter::DiskErrors, 1);
            elsewhere.shard(ShardId(0));
        });
        assert!(second.join().is_err());
        assert_eq!(registry.shards()[1].counter(Counter::DiskErrors), 1);
    }
}
