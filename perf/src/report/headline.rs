//! The few figures that are quoted, each beside what the machine could do in the same minutes.

use serde::Serialize;

use super::{Loop, ReadKind, ReadReport, SearchReport, StepReport, number};
use crate::baseline::Baseline;
use crate::baseline::null_load::NullLoadBaseline;
use crate::histogram::LatencySummary;

/// The same requests to a broker that keeps nothing.
const NULL_BROKER: &str = "null broker, same requests";

/// What a broker that only wrote would take.
const APPEND: &str = "a 16 KiB disk append";

/// What a stretch reached is called by the stretch itself in `what`.
const THROUGHPUT: &str = "throughput";

const BROKER_CPU: &str = "broker CPU";
const BROKER_CPU_BEYOND: &str = "broker CPU beyond the null broker";

type Quantile = fn(&LatencySummary) -> f64;

/// A figure and what it is measured against. A bare figure of a shared machine says little.
#[derive(Clone, Debug, Serialize)]
pub struct Ratio {
    pub what: String,
    /// The step or read, and what of it: `what` in two parts.
    #[serde(skip)]
    pub stretch: String,
    #[serde(skip)]
    pub figure: String,
    pub value: f64,
    pub unit: &'static str,
    pub baseline: Option<f64>,
    pub baseline_name: &'static str,
    pub ratio: Option<f64>,
}

impl Ratio {
    /// What a stretch reached.
    fn throughput(
        stretch: &str,
        value: f64,
        baseline_name: &'static str,
        baseline: Option<f64>,
    ) -> Self {
        Self {
            what: stretch.to_owned(),
            ..Self::new(stretch, THROUGHPUT, value, "MB/s", baseline_name, baseline)
        }
    }

    fn new(
        stretch: &str,
        figure: &str,
        value: f64,
        unit: &'static str,
        baseline_name: &'static str,
        baseline: Option<f64>,
    ) -> Self {
        let ratio = baseline
            .filter(|baseline| *baseline > 0.0)
            .map(|baseline| value / baseline);
        Self {
            what: format!("{stretch}: {figure}"),
            stretch: stretch.to_owned(),
            figure: figure.to_owned(),
            value,
            unit,
            baseline,
            baseline_name,
            ratio,
        }
    }
}

impl Ratio {
    /// How many times the baseline, and the baseline in words; None where it was not measured.
    pub fn against(&self) -> Option<(f64, String)> {
        let (ratio, baseline) = self.ratio.zip(self.baseline)?;
        let against = format!(
            "{} ({} {})",
            self.baseline_name,
            number(baseline),
            self.unit
        );
        Some((ratio, against))
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

/// A figure among the others of a report.
pub struct HeadlineRow<'a> {
    /// Of the first figure of a step or read.
    pub stretch: Option<&'a str>,
    /// None: the figure above, against another baseline. What the figure above is the begin of is not said again.
    pub figure: Option<String>,
    pub ratio: &'a Ratio,
}

impl Headline {
    /// For a reader: each step or read by its name, then its figures, each of them once.
    pub fn rows(&self) -> impl Iterator<Item = HeadlineRow<'_>> {
        let above = std::iter::once(None).chain(self.figures.iter().map(Some));
        self.figures.iter().zip(above).map(|(ratio, above)| {
            let above = above.filter(|above| above.stretch == ratio.stretch);
            let rest = above
                .and_then(|above| ratio.figure.strip_prefix(&above.figure))
                .filter(|rest| rest.is_empty() || rest.starts_with(' '));
            HeadlineRow {
                stretch: above.is_none().then_some(&ratio.stretch),
                figure: match rest {
                    None => Some(ratio.figure.clone()),
                    Some("") => None,
                    Some(rest) => Some(format!(" {rest}")),
                },
                ratio,
            }
        })
    }

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
            figures.push(Ratio::throughput(
                &search.title(),
                found_mb_per_s,
                "disk, best O_DIRECT write",
                baselines.mean(disk_write),
            ));
        }
        for step in steps {
            let name = format!("produce, {}", step.rate);
            figures.push(match step.offered_mb_per_s {
                Some(offered) => {
                    Ratio::throughput(&name, step.acked_mb_per_s, "offered", Some(offered))
                }
                None => Ratio::throughput(
                    &name,
                    step.acked_mb_per_s,
                    "disk, best O_DIRECT write",
                    baselines.mean(disk_write),
                ),
            });
            if step.load == Loop::Closed {
                figures.push(Ratio::throughput(
                    &name,
                    step.acked_mb_per_s,
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
                    let figure = format!("latency {quantile}");
                    let (value, baseline) = (of(latency), append(of));
                    figures.push(Ratio::new(&name, &figure, value, "ms", APPEND, baseline));
                }
                if let Some(lag) = &step.generator.lag {
                    figures.push(Ratio::new(
                        &name,
                        "generator lag p99",
                        lag.p99_ms,
                        "ms",
                        "wake-up of a sleeping thread",
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
                    let one_stream = baselines.mean(loopback);
                    figures.push(Ratio::new(
                        &name,
                        what,
                        mb_per_s,
                        "MB/s",
                        "loopback, one stream",
                        one_stream,
                    ));
                }
            }
            let wire = ("loopback, both ends", wire_cpu);
            let mut cpu = |figure: &str, cost: Option<f64>, (against, baseline)| {
                if let Some(cost) = cost {
                    figures.push(Ratio::new(&name, figure, cost, "s/GB", against, baseline));
                }
            };
            let (broker, client) = (step.cpu.broker_cpu_s_per_gb, step.cpu.client_cpu_s_per_gb);
            let null_client = null_broker(|null| null.client_cpu_s_per_gb);
            cpu(BROKER_CPU, broker, wire);
            let beyond = broker.zip(null_cost).map(|(cost, null)| cost - null);
            cpu(BROKER_CPU_BEYOND, beyond, (NULL_BROKER, null_cost));
            // Two baselines of one figure stand below each other.
            cpu("client CPU", client, wire);
            if null_client.is_some() {
                cpu(
                    "client CPU",
                    client,
                    ("client of the null broker", null_client),
                );
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
            figures.push(Ratio::throughput(
                &name,
                read.mb_per_s,
                baseline_name,
                baseline,
            ));
            if let Some(cost) = read.cpu.broker_cpu_s_per_gb {
                figures.push(Ratio::new(
                    &name,
                    BROKER_CPU,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_figure_stands_once_with_all_its_baselines_below_it() {
        let cpu =
            |figure, against| Ratio::new("produce, max", figure, 2.0, "s/GB", against, Some(1.0));
        let latency = |figure| Ratio::new("produce, 1.0 MB/s", figure, 3.0, "ms", APPEND, None);
        let headline = Headline {
            figures: vec![
                Ratio::throughput("produce, max", 90.0, "disk", Some(100.0)),
                Ratio::throughput("produce, max", 90.0, NULL_BROKER, Some(900.0)),
                cpu(BROKER_CPU, "loopback"),
                cpu(BROKER_CPU_BEYOND, NULL_BROKER),
                cpu("client CPU", "loopback"),
                cpu("client CPU", "client of the null broker"),
                latency("latency p99"),
                latency("latency p99.9"),
            ],
            ..Headline::default()
        };
        let rows: Vec<(Option<&str>, Option<String>)> = headline
            .rows()
            .map(|row| (row.stretch, row.figure))
            .collect();
        let figure = |text: &str| Some(text.to_owned());
        assert_eq!(
            rows,
            [
                (Some("produce, max"), figure("throughput")),
                (None, None),
                (None, figure("broker CPU")),
                (None, figure("  beyond the null broker")),
                (None, figure("client CPU")),
                (None, None),
                (Some("produce, 1.0 MB/s"), figure("latency p99")),
                (None, figure("latency p99.9")),
            ]
        );
    }
}
