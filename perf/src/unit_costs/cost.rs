//! The model: a broker's CPU is what it does times what each unit costs.

use serde::Serialize;

/// What a broker does.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    pub partitions: f64,
    pub produced_gb_per_s: f64,
    pub produce_requests_per_s: f64,
    pub consumed_gb_per_s: f64,
}

impl Load {
    pub fn bytes_per_request(&self) -> f64 {
        self.produced_gb_per_s * 1e9 / self.produce_requests_per_s
    }

    /// Produce requests whose records consumers read, each as often as it is read.
    pub fn requests_read_per_s(&self) -> f64 {
        self.produce_requests_per_s * self.consumed_gb_per_s / self.produced_gb_per_s
    }
}

/// What a GB and a request cost among requests from this size on, up to that of the segment before. A request costs less
/// the more there are of them, so that one line does not hold for all sizes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Segment {
    pub request_bytes_min: u64,
    pub cpu_s_per_gb: f64,
    pub request_cpu_s: f64,
}

/// What each unit costs, in CPU-seconds; of what goes on all the time, in cores.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Costs {
    /// Of the broker without a load.
    pub idle_cores: f64,
    pub partition_cores: f64,
    /// Taking what producers send, from large requests to small ones.
    pub produce: Vec<Segment>,
    /// Sending it to consumers at the log's end, by the requests that it came in.
    pub fetch: Vec<Segment>,
}

/// The segment that requests of this size belong to; beyond the ends it is the nearest.
fn segment_of(segments: &[Segment], bytes_per_request: f64) -> Segment {
    let within = segments
        .iter()
        .find(|segment| bytes_per_request >= segment.request_bytes_min as f64);
    within.or(segments.last()).copied().unwrap_or(Segment {
        request_bytes_min: 0,
        cpu_s_per_gb: 0.0,
        request_cpu_s: 0.0,
    })
}

/// One term of a prediction.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Part {
    pub what: &'static str,
    pub cores: f64,
}

impl Costs {
    /// What the load costs, in cores, term by term.
    pub fn parts(&self, load: &Load) -> Vec<Part> {
        let part = |what, cores| Part { what, cores };
        let produce = segment_of(&self.produce, load.bytes_per_request());
        let fetch = segment_of(&self.fetch, load.bytes_per_request());
        vec![
            part("idle", self.idle_cores),
            part("partitions", load.partitions * self.partition_cores),
            part(
                "bytes produced",
                load.produced_gb_per_s * produce.cpu_s_per_gb,
            ),
            part(
                "Produce requests",
                load.produce_requests_per_s * produce.request_cpu_s,
            ),
            part("bytes read", load.consumed_gb_per_s * fetch.cpu_s_per_gb),
            part(
                "requests read",
                load.requests_read_per_s() * fetch.request_cpu_s,
            ),
        ]
    }

    pub fn cores(&self, load: &Load) -> f64 {
        self.parts(load).iter().map(|part| part.cores).sum()
    }
}

/// How far a measured load may be from its prediction.
pub const DIFFERENCE_ALLOWED: f64 = 0.15;

/// A load that was in no fit, predicted and measured.
#[derive(Clone, Debug, Serialize)]
pub struct Check {
    pub predicted_cores: f64,
    pub parts: Vec<Part>,
    pub measured_cores: f64,
    /// Measured against predicted: 0.1 is 10 % more.
    pub difference: f64,
    pub difference_allowed: f64,
    pub holds: bool,
}

impl Check {
    pub fn of(costs: &Costs, load: &Load, measured_cores: f64) -> Self {
        let parts = costs.parts(load);
        let predicted_cores = costs.cores(load);
        let difference = measured_cores / predicted_cores - 1.0;
        Self {
            predicted_cores,
            parts,
            measured_cores,
            difference,
            difference_allowed: DIFFERENCE_ALLOWED,
            holds: difference.abs() <= DIFFERENCE_ALLOWED,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn costs() -> Costs {
        let segment = |request_bytes_min, cpu_s_per_gb, request_cpu_s| Segment {
            request_bytes_min,
            cpu_s_per_gb,
            request_cpu_s,
        };
        Costs {
            idle_cores: 0.01,
            partition_cores: 1e-5,
            produce: vec![segment(200_000, 1.0, 9e-4), segment(50_000, 2.0, 1e-4)],
            fetch: vec![segment(50_000, 0.5, 5e-5)],
        }
    }

    const LOAD: Load = Load {
        partitions: 1_000.0,
        produced_gb_per_s: 0.1,
        produce_requests_per_s: 1_000.0,
        consumed_gb_per_s: 0.2,
    };

    #[test]
    fn a_load_costs_what_its_units_add_up_to() {
        // 0.01 + 0.01 + 0.2 + 0.1 + 0.1, and each request is read twice: 0.1.
        assert!((costs().cores(&LOAD) - 0.52).abs() < 1e-12);
    }

    #[test]
    fn requests_cost_what_those_of_their_size_do_and_beyond_the_ends_the_nearest() {
        let of = |bytes_per_request| segment_of(&costs().produce, bytes_per_request).request_cpu_s;
        assert_eq!(
            [1e6, 200e3, 199e3, 50e3, 1e3].map(of),
            [9e-4, 9e-4, 1e-4, 1e-4, 1e-4]
        );
    }

    #[test]
    fn a_prediction_holds_within_15_percent_of_it_to_either_side() {
        for (measured, holds) in [
            (0.52, true),
            (0.59, true),
            (0.45, true),
            (0.60, false),
            (0.44, false),
        ] {
            assert_eq!(
                Check::of(&costs(), &LOAD, measured).holds,
                holds,
                "{measured}"
            );
        }
        assert!((Check::of(&costs(), &LOAD, 0.572).difference - 0.1).abs() < 1e-9);
    }
}
