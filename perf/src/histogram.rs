//! Latency in nanoseconds with three digits. One histogram per thread; they are merged, never averaged.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer as HistogramReader, Serializer as _, V2Serializer};
use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Longer latencies are counted as this one: an hour.
const LATENCY_NS_MAX: u64 = 3_600_000_000_000;

#[derive(Clone, Debug)]
pub struct LatencyHistogram(Histogram<u64>);

impl LatencyHistogram {
    pub fn new() -> Self {
        Self(
            Histogram::new_with_bounds(1, LATENCY_NS_MAX, 3)
                .expect("the bounds are constants that fit three digits"),
        )
    }

    pub fn record_ns(&mut self, latency_ns: u64) {
        self.record_many_ns(latency_ns, 1);
    }

    pub fn record_many_ns(&mut self, latency_ns: u64, count: u64) {
        let clamped = latency_ns.clamp(1, LATENCY_NS_MAX);
        self.0
            .record_n(clamped, count)
            .expect("a clamped value is in range");
    }

    pub fn merge(&mut self, other: &Self) {
        self.0
            .add(&other.0)
            .expect("all latency histograms have the same bounds");
    }

    pub fn clear(&mut self) {
        self.0.reset();
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn quantile_ms(&self, quantile: f64) -> f64 {
        self.0.value_at_quantile(quantile) as f64 / 1e6
    }

    /// For the raw histogram files.
    pub fn inner(&self) -> &Histogram<u64> {
        &self.0
    }

    /// None where nothing was measured: a latency of zero would be a lie.
    pub fn summary(&self) -> Option<LatencySummary> {
        if self.0.is_empty() {
            return None;
        }
        Some(LatencySummary {
            count: self.0.len(),
            mean_ms: self.0.mean() / 1e6,
            p50_ms: self.quantile_ms(0.5),
            p75_ms: self.quantile_ms(0.75),
            p90_ms: self.quantile_ms(0.9),
            p95_ms: self.quantile_ms(0.95),
            p99_ms: self.quantile_ms(0.99),
            p999_ms: self.quantile_ms(0.999),
            p9999_ms: self.quantile_ms(0.9999),
            max_ms: self.0.max() as f64 / 1e6,
        })
    }
}

/// As HdrHistogram's V2 form in base64.
impl Serialize for LatencyHistogram {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut bytes = Vec::new();
        V2Serializer::new()
            .serialize(&self.0, &mut bytes)
            .map_err(S::Error::custom)?;
        serializer.serialize_str(&BASE64_STANDARD.encode(bytes))
    }
}

impl<'de> Deserialize<'de> for LatencyHistogram {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes = BASE64_STANDARD.decode(text).map_err(D::Error::custom)?;
        let read: Histogram<u64> = HistogramReader::new()
            .deserialize(&mut &bytes[..])
            .map_err(D::Error::custom)?;
        let mut histogram = Self::new();
        histogram.0.add(&read).map_err(D::Error::custom)?;
        Ok(histogram)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LatencySummary {
    pub count: u64,
    pub mean_ms: f64,
    pub p50_ms: f64,
    pub p75_ms: f64,
    pub p90_ms: f64,
    pub p95_ms: f64,
    pub p99_ms: f64,
    pub p999_ms: f64,
    pub p9999_ms: f64,
    pub max_ms: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merging_keeps_every_sample_and_does_not_average_percentiles() {
        let (mut fast, mut slow) = (LatencyHistogram::new(), LatencyHistogram::new());
        fast.record_many_ns(1_000_000, 990);
        slow.record_many_ns(100_000_000, 10);
        fast.merge(&slow);
        let merged = fast.summary().unwrap();
        assert_eq!(merged.count, 1000);
        assert!((merged.p50_ms - 1.0).abs() < 0.01, "{merged:?}");
        assert!((merged.p999_ms - 100.0).abs() < 0.2, "{merged:?}");
    }

    #[test]
    fn a_histogram_is_the_same_after_a_way_over_the_wire() {
        let mut histogram = LatencyHistogram::new();
        for latency_ns in [1, 999, 1_234_567, LATENCY_NS_MAX] {
            histogram.record_many_ns(latency_ns, latency_ns % 7 + 1);
        }
        let text = serde_json::to_string(&histogram).unwrap();
        let read: LatencyHistogram = serde_json::from_str(&text).unwrap();
        assert_eq!(read.0, histogram.0);
        assert!(serde_json::from_str::<LatencyHistogram>("\"AAAA\"").is_err());
        assert!(serde_json::from_str::<LatencyHistogram>("\"no base64\"").is_err());
    }

    #[test]
    fn nothing_measured_has_no_summary() {
        assert_eq!(LatencyHistogram::new().summary(), None);
    }

    #[test]
    fn a_latency_beyond_the_range_counts_as_the_largest() {
        let mut histogram = LatencyHistogram::new();
        histogram.record_ns(u64::MAX);
        histogram.record_ns(0);
        let summary = histogram.summary().unwrap();
        assert_eq!(summary.count, 2);
        assert!(summary.max_ms >= 3_599_000.0);
    }
}
