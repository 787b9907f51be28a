//! The seconds of several crews, put together as those of one load.

use std::collections::VecDeque;

use crate::crew::Sample;

/// What one crew has told.
#[derive(Default)]
struct Told {
    /// Not put together yet.
    waiting: VecDeque<Sample>,
    last: Option<Sample>,
    has_ended: bool,
}

/// A second is complete when every crew that still works has told it.
pub struct CrewSeconds(Vec<Told>);

impl CrewSeconds {
    pub fn new(crews: usize) -> Self {
        Self((0..crews).map(|_| Told::default()).collect())
    }

    pub fn told(&mut self, crew: usize, sample: Sample) {
        self.0[crew].waiting.push_back(sample);
    }

    /// Nothing more comes from this crew. What it counted stays counted.
    pub fn ended(&mut self, crew: usize) {
        self.0[crew].has_ended = true;
    }

    /// The next complete second.
    pub fn next(&mut self) -> Option<Sample> {
        let is_missing = |told: &Told| told.waiting.is_empty() && !told.has_ended;
        if self.0.iter().any(is_missing) || self.0.iter().all(|told| told.waiting.is_empty()) {
            return None;
        }
        let mut all: Option<Sample> = None;
        for told in &mut self.0 {
            let sample = match told.waiting.pop_front() {
                Some(sample) => {
                    told.last = Some(sample.standing());
                    sample
                }
                None => match &told.last {
                    Some(last) => last.clone(),
                    None => continue,
                },
            };
            match &mut all {
                None => all = Some(sample),
                Some(all) => all.merge(&sample),
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::Live;

    fn sample(elapsed_ns: u64, acked_records: u64) -> Sample {
        let live = Live::default();
        Live::add(&live.acked_records, acked_records);
        let mut latency = crate::histogram::LatencyHistogram::new();
        latency.record_ns(acked_records);
        live.publish(&mut latency);
        Sample::take(0, elapsed_ns, &live)
    }

    #[test]
    fn a_second_waits_for_every_crew_and_adds_them_up() {
        let mut seconds = CrewSeconds::new(2);
        seconds.told(0, sample(1000, 5));
        assert!(seconds.next().is_none());
        seconds.told(1, sample(1010, 7));
        let second = seconds.next().expect("both have told");
        assert_eq!((second.elapsed_ns, second.totals.acked_records), (1010, 12));
        assert_eq!(second.latency.summary().expect("two latencies").count, 2);
        assert!(seconds.next().is_none());
    }

    #[test]
    fn what_an_ended_crew_counted_stays_counted_and_its_latencies_come_once() {
        let mut seconds = CrewSeconds::new(2);
        seconds.told(0, sample(1000, 5));
        seconds.ended(0);
        seconds.told(1, sample(1000, 7));
        seconds.told(1, sample(2000, 9));
        assert_eq!(seconds.next().expect("a second").totals.acked_records, 12);
        let second = seconds.next().expect("another");
        assert_eq!((second.elapsed_ns, second.totals.acked_records), (2000, 14));
        assert_eq!(second.latency.summary().expect("a latency").count, 1);
        assert!(seconds.next().is_none());
    }
}
