use super::single_writer::SingleWriterU64;
use hdrhistogram::Histogram;

/// Buckets per power of two: a value is known to within 1/32 of itself.
const SUB_BUCKETS: u64 = 32;
const SUB_BUCKET_BITS: u32 = SUB_BUCKETS.trailing_zeros();

/// The largest power of two that is told apart: 2^37 ns are 137 s. Longer values count in the last bucket.
const OCTAVE_MAX: u32 = 37;
const BUCKET_COUNT: usize = (OCTAVE_MAX - SUB_BUCKET_BITS + 1) as usize * SUB_BUCKETS as usize;

/// What is told apart at most, in nanoseconds.
const LATENCY_NS_MAX: u64 = (1 << OCTAVE_MAX) - 1;

/// Durations in nanoseconds, counted in fixed log-linear buckets: 8 KiB, no allocation and no lock when recording.
///
/// Values below 32 have a bucket each; from there every power of two is cut in 32. Recording touches two cache lines.
/// Reading turns the buckets into an `hdrhistogram::Histogram`, which merges over shards and knows the percentiles.
#[derive(Debug)]
pub struct LatencyHistogram {
    sum_ns: SingleWriterU64,
    max_ns: SingleWriterU64,
    buckets: Box<[SingleWriterU64]>,
}

impl Default for LatencyHistogram {
    fn default() -> Self {
        Self {
            sum_ns: SingleWriterU64::default(),
            max_ns: SingleWriterU64::default(),
            buckets: (0..BUCKET_COUNT)
                .map(|_| SingleWriterU64::default())
                .collect(),
        }
    }
}

impl LatencyHistogram {
    #[inline]
    pub(super) fn record(&self, ns: u64) {
        self.buckets[bucket_of(ns)].add(1);
        self.sum_ns.add(ns);
        if ns > self.max_ns.get() {
            self.max_ns.set(ns);
        }
    }

    pub fn sum_ns(&self) -> u64 {
        self.sum_ns.get()
    }

    pub fn max_ns(&self) -> u64 {
        self.max_ns.get()
    }

    pub fn count(&self) -> u64 {
        self.buckets.iter().map(SingleWriterU64::get).sum()
    }

    /// How many values each power of two holds: `(2^k, count of values in [2^(k-1), 2^k))` for each `k` up to and with
    /// `octave_last`, the first holding everything below it; then the rest, which lies at or above `2^octave_last`.
    pub fn octaves(&self, octave_first: u32, octave_last: u32) -> (Vec<(u64, u64)>, u64) {
        debug_assert!(
            SUB_BUCKET_BITS <= octave_first
                && octave_first <= octave_last
                && octave_last <= OCTAVE_MAX
        );
        let mut start = 0;
        let mut octaves = Vec::with_capacity((octave_last - octave_first + 1) as usize);
        for octave in octave_first..=octave_last {
            let end = ((octave - SUB_BUCKET_BITS + 1) as usize) * SUB_BUCKETS as usize;
            octaves.push((
                1 << octave,
                self.buckets[start..end]
                    .iter()
                    .map(SingleWriterU64::get)
                    .sum(),
            ));
            start = end;
        }
        (
            octaves,
            self.buckets[start..].iter().map(SingleWriterU64::get).sum(),
        )
    }

    /// Adds what was recorded here to `merged`, which must reach 2^37 (see `empty_merged`).
    pub fn add_to(&self, merged: &mut Histogram<u64>) {
        for (index, bucket) in self.buckets.iter().enumerate() {
            let count = bucket.get();
            if count > 0 {
                merged.saturating_record_n(highest_of(index).min(self.max_ns().max(1)), count);
            }
        }
    }

    /// What `add_to` adds to: two significant digits, which is as much as the buckets know.
    pub fn empty_merged() -> Histogram<u64> {
        Histogram::new_with_bounds(1, LATENCY_NS_MAX, 2)
            .expect("the bounds are constants that hdrhistogram accepts")
    }
}

#[inline]
fn bucket_of(ns: u64) -> usize {
    let ns = ns.min(LATENCY_NS_MAX);
    if ns < SUB_BUCKETS {
        return ns as usize;
    }
    let shift = ns.ilog2() - SUB_BUCKET_BITS;
    // (ns >> shift) lies in 32..64, so octave `shift + 5` starts at bucket 32 * (shift + 1).
    (u64::from(shift) * SUB_BUCKETS + (ns >> shift)) as usize
}

/// The largest value that the bucket holds.
fn highest_of(index: usize) -> u64 {
    let index = index as u64;
    if index < SUB_BUCKETS {
        return index;
    }
    let shift = index / SUB_BUCKETS - 1;
    ((index % SUB_BUCKETS + SUB_BUCKETS + 1) << shift) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_falls_in_a_bucket_whose_bounds_hold_it_within_a_32nd() {
        let mut previous = 0;
        for ns in (0..100_000u64)
            .chain((17..37).flat_map(|k| [(1 << k) - 1, 1 << k, (1 << k) + (1 << (k - 3))]))
        {
            let index = bucket_of(ns);
            let highest = highest_of(index);
            assert!(
                highest >= ns && highest - ns <= ns / SUB_BUCKETS,
                "{ns}: bucket {index} up to {highest}"
            );
            assert!(
                index >= previous || ns < 1 << 17,
                "{ns}: buckets go up with the value"
            );
            previous = index;
        }
        assert_eq!(bucket_of(u64::MAX), BUCKET_COUNT - 1);
        assert_eq!(highest_of(BUCKET_COUNT - 1), LATENCY_NS_MAX);
    }

    #[test]
    fn octaves_split_exactly_at_powers_of_two_and_lose_nothing() {
        let histogram = LatencyHistogram::default();
        for ns in [0, 31, 32, 1023, 1024, 2047, 2048, u64::MAX] {
            histogram.record(ns);
        }
        let (octaves, rest) = histogram.octaves(10, 12);
        assert_eq!(octaves, [(1024, 4), (2048, 2), (4096, 1)]);
        assert_eq!(rest, 1);
        assert_eq!(histogram.count(), 8);
    }

    #[test]
    fn percentiles_after_merging_are_within_the_buckets_precision() {
        let (low, high) = (LatencyHistogram::default(), LatencyHistogram::default());
        (1..=500u64).for_each(|us| low.record(us * 1000));
        (501..=1000u64).for_each(|us| high.record(us * 1000));
        let mut merged = LatencyHistogram::empty_merged();
        low.add_to(&mut merged);
        high.add_to(&mut merged);
        assert_eq!(merged.len(), 1000);
        let p50 = merged.value_at_quantile(0.5) as f64;
        assert!((p50 / 500_000.0 - 1.0).abs() < 0.04, "{p50}");
        assert_eq!(low.sum_ns() + high.sum_ns(), 500_500_000);
        assert_eq!(high.max_ns(), 1_000_000);
    }
}
