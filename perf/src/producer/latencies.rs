//! The latencies of a producer's records: those of the window for the result, all of them for the timeline.

use super::Window;
use crate::histogram::LatencyHistogram;
use crate::live::Live;

/// A latency is recorded once, on its side of the window's edges; what is within is added to the result whenever
/// the timeline gets its part.
pub struct Latencies {
    window: Window,
    within: LatencyHistogram,
    within_since_published: LatencyHistogram,
    outside_since_published: LatencyHistogram,
}

impl Latencies {
    pub fn new(window: Window) -> Self {
        Self {
            window,
            within: LatencyHistogram::new(),
            within_since_published: LatencyHistogram::new(),
            outside_since_published: LatencyHistogram::new(),
        }
    }

    /// Of `record_count` records with one intended time.
    pub fn record(&mut self, intended_ns: u64, acked_ns: u64, record_count: u64) {
        let side = match self.window.contains(intended_ns) {
            true => &mut self.within_since_published,
            false => &mut self.outside_since_published,
        };
        side.record_many_ns(acked_ns.saturating_sub(intended_ns), record_count);
    }

    /// Of records without an ack, which the timeline does not show.
    pub fn record_in_vain(&mut self, intended_ns: u64, ended_ns: u64, record_count: u64) {
        if self.window.contains(intended_ns) {
            self.within
                .record_many_ns(ended_ns.saturating_sub(intended_ns), record_count);
        }
    }

    pub fn publish(&mut self, live: &Live) {
        if !self.within_since_published.is_empty() {
            self.within.merge(&self.within_since_published);
        }
        live.publish(&mut self.within_since_published);
        live.publish(&mut self.outside_since_published);
    }

    /// Of the window.
    pub fn into_histogram(mut self) -> LatencyHistogram {
        self.within.merge(&self.within_since_published);
        self.within
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn latencies() -> Latencies {
        Latencies::new(Window {
            start_ns: 1000,
            end_ns: 2000,
        })
    }

    fn count_of(live: &Live) -> u64 {
        let latencies = live.take_interval().latencies;
        latencies.map_or(0, |latencies| latencies.inner().len())
    }

    #[test]
    fn the_timeline_gets_every_latency_once_and_the_result_those_of_the_window() {
        let (mut latencies, live) = (latencies(), Live::default());
        for (intended_ns, record_count) in [(999, 1), (1000, 10), (1999, 100), (2000, 1000)] {
            latencies.record(intended_ns, 5000, record_count);
            latencies.publish(&live);
        }
        assert_eq!(count_of(&live), 1111);
        latencies.publish(&live);
        assert_eq!(count_of(&live), 0);
        let within = latencies.into_histogram();
        assert_eq!(within.summary().unwrap().count, 110);
        assert_eq!(within.inner().count_at(3001), 100);
    }

    #[test]
    fn what_was_not_published_and_what_waited_in_vain_is_in_the_result_too() {
        let mut latencies = latencies();
        latencies.record(1500, 5000, 3);
        latencies.record_in_vain(1500, 6000, 1);
        latencies.record_in_vain(2000, 6000, 1);
        assert_eq!(latencies.into_histogram().summary().unwrap().count, 4);
    }
}
