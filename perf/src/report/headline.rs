//! The few figures that are quoted, each beside what the machine could do in the same minutes.

use serde::Serialize;

use super::{Loop, ReadKind, ReadReport, SearchReport, StepReport};
use crate::baseline::Baseline;
use crate::baseline::null_load::NullLoadBaseline;
use crate::histogram::LatencySummary;

/// The same requests to a broker that keeps nothing.
const NULL_BROKER: &str = "null broker, same requests";

/// What a broker that only wrote would take.
const APPEND: &str = "a 16 KiB append to the disk, same quantile";

type Quantile = fn(&LatencySummary) -> f64;

/// A figure and what it is measured against. A bare figure of a shared machine says little.
#[derive(Clone, Debug, Serialize)]
pub struct Ratio {
    pub what: String,
    pub value: f64,
    pub unit: &'static str,
    pub baseline: Option<f64>,
    pub baseline_name: &'static str,
    pub ratio: Option<f64>,
}

impl Ratio {
    fn new(
        what: String,
        value: f64,
        unit: &'static str,
        baseline_name: &'static str,
        baseline: Option<f64>,
    ) -> Self {
        let ratio = baseline
            .filter(|baseline| *baseline > 0.0)
            .map(|baseline| value / baseline);
        Self {
            what,
            value,
            unit,
            baseline,
            baseline_name,
            ratio,
        }
    }
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct Headline {
    pub figures: Vec<Ratio>,
    /// How much the disk's write baseline changed over the run: 0.1 is 10 % faster afterwards.
    pub disk_drift: Option<f64>,
    pub network_drift: Option<f64>,
}

/// The mean of a baseline before and after; one of them if only one was taken.
struct Baselines<'a> {
    before: Option<&'a Baseline>,
    after: Option<&'a Baseline>,
}

impl Baselines<'_> {
    fn mean(&self, figure: impl Fn(&Baseline) -> Option<f64>) -> Option<f64> {
        let taken: Vec<f64> = [self.before, self.after]
            .into_iter()
            .flatten()
            .filter_map(figure)
            .collect();
        (!taken.is_empty()).then(|| taken.iter().sum::<f64>() / taken.len() as f64)
    }

    fn drift(&self, figure: impl Fn(&Baseline) -> Option<f64>) -> Option<f64> {
        let (before, after) = (figure(self.before?)?, figure(self.after?)?);
        (before > 0.0).then(|| after / before - 1.0)
    }
}

fn disk_write(baseline: &Baseline) -> Option<f64> {
    baseline.disk.measured().map(|disk| disk.write_mb_per_s())
}

fn loopback(baseline: &Baseline) -> Option<f64> {
    baseline
        .network
        .as_ref()?
        .one_stream()
        .map(|rate| rate.mb_per_s)
}

impl Headline {
    pub fn of(
        before: Option<&Baseline>,
        after: Option<&Baseline>,
        steps: &[StepReport],
        search: Option<&SearchReport>,
        reads: &[ReadReport],
    ) -> Self {
        let baselines = Baselines { before, after };
        let wire_cpu = baselines.mean(|baseline| {
            baseline
                .network
                .as_ref()?
                .one_stream()
                .map(|rate| rate.cpu_s_per_gb)
        });
        let append = |quantile: Quantile| {
            baselines.mean(|baseline| Some(quantile(&baseline.disk.measured()?.appends.latency)))
        };
        let wake_up = |quantile: Quantile| {
            baselines.mean(|baseline| {
                let wake_up = baseline.disk.measured()?.appends.wake_up.as_ref();
                wake_up.map(quantile)
            })
        };
        let null_broker = |figure: fn(&NullLoadBaseline) -> f64| {
            baselines.mean(|baseline| baseline.null_load().map(figure))
        };
        let null_cost = null_broker(|null| null.null_broker_cpu_s_per_gb);
        let mut figures = Vec::new();
        if let Some(search) = search
            && let Some(found_mb_per_s) = search.found_mb_per_s
        {
            figures.push(Ratio::new(
                search.title(),
                found_mb_per_s,
                "MB/s",
                "disk, best O_DIRECT write",
                baselines.mean(disk_write),
            ));
        }
        for step in steps {
            let name = format!("produce, {}", step.rate);
            figures.push(match step.offered_mb_per_s {
                Some(offered) => Ratio::new(
                    name.clone(),
                    step.acked_mb_per_s,
                    "MB/s",
                    "offered",
                    Some(offered),
                ),
                None => Ratio::new(
                    name.clone(),
                    step.acked_mb_per_s,
                    "MB/s",
                    "disk, best O_DIRECT write",
                    baselines.mean(disk_write),
                ),
            });
            if step.load == Loop::Closed {
                figures.push(Ratio::new(
                    name.clone(),
                    step.acked_mb_per_s,
                    "MB/s",
                    NULL_BROKER,
                    null_broker(|null| null.mb_per_s),
                ));
            }
            // A closed loop's latency is left out: it would be compared.
            if let (Loop::Open, Some(latency)) = (step.load, &step.publish_latency) {
                let quantiles: [(&str, Quantile); 5] = [
                    ("p50", |of| of.p50_ms),
                    ("p90", |of| of.p90_ms),
                    ("p99", |of| of.p99_ms),
                    ("p99.9", |of| of.p999_ms),
                    ("max", |of| of.max_ms),
                ];
                for (quantile, of) in quantiles {
                    let what = format!("{name}: latency {quantile}");
                    figures.push(Ratio::new(what, of(latency), "ms", APPEND, append(of)));
                }
                if let Some(lag) = &step.generator.lag {
                    figures.push(Ratio::new(
                        format!("{name}: generator lag p99"),
                        lag.p99_ms,
                        "ms",
                        "wake-up of a sleeping thread, same quantile",
                        wake_up(|of| of.p99_ms),
                    ));
                }
            }
            let beside = [
                (
                    "backlog drain",
                    step.backlog.as_ref().and_then(|it| it.drain_mb_per_s),
                ),
                ("replay beside it", step.replay_mb_per_s),
            ];
            for (what, mb_per_s) in beside {
                if let Some(mb_per_s) = mb_per_s {
                    let what = format!("{name}: {what}");
                    let one_stream = baselines.mean(loopback);
                    figures.push(Ratio::new(
                        what,
                        mb_per_s,
                        "MB/s",
                        "loopback, one stream",
                        one_stream,
                    ));
                }
            }
            for (who, cost) in [
                ("broker", step.cpu.broker_cpu_s_per_gb),
                ("client", step.cpu.client_cpu_s_per_gb),
            ] {
                if let Some(cost) = cost {
                    figures.push(Ratio::new(
                        format!("{name}: {who} CPU"),
                        cost,
                        "s/GB",
                        "loopback, both ends",
                        wire_cpu,
                    ));
                }
            }
            if let (Some(cost), Some(null_cost)) = (step.cpu.broker_cpu_s_per_gb, null_cost) {
                figures.push(Ratio::new(
                    format!("{name}: broker CPU beyond the null broker"),
                    cost - null_cost,
                    "s/GB",
                    NULL_BROKER,
                    Some(null_cost),
                ));
            }
            if let (Some(cost), Some(null_client)) = (
                step.cpu.client_cpu_s_per_gb,
                null_broker(|null| null.client_cpu_s_per_gb),
            ) {
                figures.push(Ratio::new(
                    format!("{name}: client CPU"),
                    cost,
                    "s/GB",
                    "client of the null broker",
                    Some(null_client),
                ));
            }
        }
        for read in reads.iter().filter(|read| read.records > 0) {
            let (name, baseline_name, baseline) = match read.kind {
                ReadKind::Recent => (
                    "fetch, newest records".to_owned(),
                    "loopback, one stream",
                    baselines.mean(loopback),
                ),
                ReadKind::Backlog | ReadKind::Replay => {
                    let disk_read = baselines
                        .mean(|baseline| baseline.disk.measured().map(|disk| disk.read_mb_per_s()));
                    let from = match &read.replay {
                        Some(replay) => replay.from.to_string(),
                        None => "the start".to_owned(),
                    };
                    (
                        format!("fetch, from {from}"),
                        "disk, best O_DIRECT read",
                        disk_read,
                    )
                }
            };
            figures.push(Ratio::new(
                name.clone(),
                read.mb_per_s,
                "MB/s",
                baseline_name,
                baseline,
            ));
            if let Some(cost) = read.cpu.broker_cpu_s_per_gb {
                figures.push(Ratio::new(
                    format!("{name}: broker CPU"),
                    cost,
                    "s/GB",
                    "loopback, both ends",
                    wire_cpu,
                ));
            }
        }
        Self {
            figures,
            disk_drift: baselines.drift(disk_write),
            network_drift: baselines.drift(loopback),
        }
    }
}
