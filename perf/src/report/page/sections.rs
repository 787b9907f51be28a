//! The parts of the page, from what everybody wants to know to what is needed to repeat the run.

use std::ops::Range;

use maud::{Markup, html};

use crate::client::cluster::Settings;
use crate::columns::Columns;
use crate::histogram::LatencySummary;
use crate::page::charts::{self, Axes, Line};
use crate::report::groups;
use crate::report::headline::HeadlineRow;
use crate::report::limit::Limit;
use crate::report::{
    AuditOutcome, BaselineLines, Loop, RawHistogram, Report, StepReport, TryReport, number, text,
};
use crate::timeline::Second;

/// The quantiles of the latency curve: as fine as the nines need, up to one in a million.
const CURVE_POINTS: u32 = 60;
const CURVE_NINES_MAX: f64 = 6.0;

/// A thread that samples once a second may come a little early.
const WHOLE_SECOND_MIN: f64 = 0.95;

/// In plain words: may this run be believed, what was reached, what held it back.
pub fn summary(report: &Report) -> Markup {
    let baselines: Vec<_> = [&report.baseline_before, &report.baseline_after]
        .into_iter()
        .flatten()
        .collect();
    let audit = &report.audit;
    html! {
        @if !report.complete {
            p class="bad" {
                "Partial: " (report.failure.as_deref().unwrap_or("the run was ended early")) "."
            }
        }
        @for step in report.steps.iter().filter(|step| !step.generator.valid) {
            p class="bad" {
                "Not valid at " (step.rate) ": "
                (step.generator.reason.as_deref().unwrap_or("the generator's own lag distorts the result")) "."
            }
            @if let Some(advice) = &step.generator.advice { p class="remark" { "What to do: " (advice) "." } }
        }
        @for step in &report.steps {
            @if let Some(ramp) = &step.ramp { p class="remark" { "At " (step.rate) " " (ramp) "." } }
            @for outage in &step.outages {
                p class="bad" { "At " (step.rate) " " (outage) "." }
            }
        }
        @match audit.outcome {
            AuditOutcome::Passed if audit.findings.is_some() => p {
                "Audit passed: " (audit.records_acked)
                " records confirmed and read back, none lost, doubled, reordered or changed."
            },
            AuditOutcome::Passed => p {
                (audit.records_acked) " records confirmed, and the logs grew by at least as many; they were not read back."
            },
            AuditOutcome::NotRun if report.workload.producers_per_topic == 0 => p class="soft" { "Nothing was produced; there is nothing to audit." },
            AuditOutcome::NotRun => p class="soft" { "No audit: nothing is proven about loss." },
            AuditOutcome::Incomplete if audit.findings.is_some() => p class="bad" {
                "The audit is not complete: " (audit.failure.as_deref().unwrap_or("ended early")) "."
            },
            AuditOutcome::Incomplete => p class="bad" { "The audit did not end: nothing is proven about loss." },
            AuditOutcome::Failed => p class="bad" { "The audit failed: see the text of the report below." },
        }
        @if let Some(consumption) = &audit.consumption {
            p class=[(consumption.skipped > 0).then_some("bad")] { (groups::sentence(consumption)) "." }
        }
        @if let Some(search) = &report.search {
            p { b { (search.conclusion()) } }
        }
        @for step in &report.steps {
            p {
                b { (step.rate) ": " (number(step.acked_mb_per_s)) " MB/s confirmed" }
                @if let (Loop::Open, Some(latency)) = (step.load, &step.publish_latency) {
                    ", p50 " (number(latency.p50_ms)) " ms, p99 " (number(latency.p99_ms)) " ms, p99.9 "
                    (number(latency.p999_ms)) " ms"
                }
                @if let Some(rate) = step.replay_mb_per_s { ", " (number(rate)) " MB/s replayed beside it" }
                "; " (Limit::of(step, &baselines)) "."
            }
        }
        p class="soft" {
            "Broker " (report.provenance.broker.bootstrap) ", "
            (report.workload.partitions_per_topic) " partitions, " (report.workload.message_size) "-byte records, acks="
            (report.workload.durability.acks) ", "
            @match report.workload.durability.synced_before_ack {
                Some(true) => "synced (fdatasync) before the ack",
                Some(false) => "not synced before the ack",
                None => "unknown whether synced before the ack",
            }
            "; " (report.provenance.machine.cores) " cores, kernel " (report.provenance.machine.kernel) "."
        }
    }
}

/// The figures to quote, each beside its baseline.
pub fn figures(report: &Report) -> Markup {
    html! {
        h2 { "Figures" }
        div class="wide" { table class="figures" {
            tr { th { "what" } th class="number" { "value" } th class="number" { "ratio" } th class="against" { "against" } }
            @for HeadlineRow { stretch, figure, ratio } in report.headline.rows() {
                @if let Some(stretch) = stretch { tr { th class="stretch" colspan="4" { (stretch) } } }
                @let against = ratio.against();
                tr {
                    td class="inner" { @if let Some(figure) = &figure { (figure.trim_start()) } }
                    td class="number" { @if figure.is_some() { (number(ratio.value)) " " (ratio.unit) } }
                    td class="number" { @if let Some((factor, _)) = &against { (number(*factor)) } }
                    td class="soft" { @if let Some((_, against)) = against { (against) } }
                }
            }
        } }
        @for (name, drift) in [("disk", report.headline.disk_drift), ("loopback", report.headline.network_drift)] {
            @if let Some(drift) = drift {
                p class="soft" { "The " (name) " baseline moved by " (format!("{:+.0}", drift * 100.0)) " % over the run." }
            }
        }
    }
}

pub fn throughput(report: &Report) -> Markup {
    let throughput = report.steps.iter().map(|step| {
        let consumed =
            |second: &Second| (second.consumed_mb_per_s > 0.0).then_some(second.consumed_mb_per_s);
        let lines = [
            over_time(step, "offered", |second| second.offered_mb_per_s),
            over_time(step, "confirmed", |second| Some(second.acked_mb_per_s)),
            over_time(step, "consumed", consumed),
            over_time(step, "replayed", |second| second.replay_mb_per_s),
        ];
        second_by_second(&format!("Throughput at {}", step.rate), "MB/s", step, lines)
    });
    // A closed loop hides the waiting.
    let open = report.steps.iter().filter(|step| step.load == Loop::Open);
    let latency = open.map(|step| {
        let lines = [
            over_time(step, "p50", |second| second.p50_ms),
            over_time(step, "p99", |second| second.p99_ms),
            over_time(step, "max", |second| second.max_ms),
        ];
        second_by_second(&format!("Latency at {}", step.rate), "ms", step, lines)
    });
    let replays = report.reads.iter().filter_map(|read| {
        let replay = read.replay.as_ref()?;
        let seconds = whole_seconds(&replay.timeline, |second| second.seconds).iter();
        let read = Line {
            name: "read".to_owned(),
            points: seconds.map(|it| (it.at_s, it.mb_per_s)).collect(),
        };
        let axes = Axes {
            x: "s since the start, warm-up included",
            y: "MB/s",
            shaded: &[],
        };
        Some(charts::lines(
            &format!("Reading from {}", replay.from),
            axes,
            &[read],
        ))
    });
    let charts = throughput.chain(latency).chain(replays);
    html! {
        h2 { "Second by second" }
        div class="charts" { @for chart in charts { (chart) } }
        @if report.steps.iter().any(|step| !step.outages.is_empty()) {
            p class="soft" { "Shaded: no acks, or errors." }
            (outages(report))
        }
        @if !report.reads.is_empty() {
            div class="wide" { table {
                tr { th { "read" } th class="number" { "MB/s" } th class="number" { "records" } th class="number" { "broker CPU-s/GB" } }
                @for read in &report.reads {
                    tr {
                        td { (read.kind.name()) @if !read.reached_end { " (not to the end)" } }
                        td class="number" { (number(read.mb_per_s)) }
                        td class="number" { (read.records) }
                        td class="number" { @if let Some(cost) = read.cpu.broker_cpu_s_per_gb { (number(cost)) } }
                    }
                }
            } }
        }
    }
}

/// What is left of a second at the load's end, when most of it is over, would look like a fall.
fn whole_seconds<S>(timeline: &[S], length_s: impl Fn(&S) -> f64) -> &[S] {
    match timeline {
        [before @ .., last] if !before.is_empty() && length_s(last) < WHOLE_SECOND_MIN => before,
        all => all,
    }
}

fn over_time(step: &StepReport, name: &str, of: impl Fn(&Second) -> Option<f64>) -> Line {
    let seconds = whole_seconds(&step.timeline, |second| second.seconds).iter();
    Line {
        name: name.to_owned(),
        points: seconds
            .filter_map(|second| Some((second.at_s, of(second)?)))
            .collect(),
    }
}

fn second_by_second(
    caption: &str,
    unit: &str,
    step: &StepReport,
    lines: impl IntoIterator<Item = Line>,
) -> Markup {
    let axes = Axes {
        x: "s since the start, warm-up included",
        y: unit,
        shaded: &shaded(step),
    };
    let lines: Vec<Line> = lines
        .into_iter()
        .filter(|line| !line.points.is_empty())
        .collect();
    charts::lines(caption, axes, &lines)
}

fn shaded(step: &StepReport) -> Vec<Range<f64>> {
    let stretches = step.outages.iter();
    stretches
        .map(|outage| outage.start_s..outage.end_s())
        .collect()
}

/// Every second with errors or without acks, by stretches.
fn outages(report: &Report) -> Markup {
    html! {
        div class="wide" { table {
            tr { th { "rate" } th class="number" { "from s" } th class="number" { "for s" } th { "what" } }
            @for step in &report.steps {
                @for outage in &step.outages {
                    tr {
                        td { (step.rate) }
                        td class="number" { (format!("{:.1}", outage.start_s)) }
                        td class="number" { (format!("{:.1}", outage.seconds)) }
                        td class="long" { (outage) }
                    }
                }
            }
        } }
    }
}

/// Percentiles of the open steps, and how they grow with the load. A closed loop hides the waiting, so it has no place here.
pub fn latency(report: &Report, histograms: &[RawHistogram]) -> Markup {
    let open: Vec<(usize, &StepReport)> = report
        .steps
        .iter()
        .enumerate()
        .filter(|(_, step)| step.load == Loop::Open)
        .collect();
    if report.steps.is_empty() {
        return html! {};
    }
    let by_load = load_points(report);
    if by_load.is_empty() {
        return html! {
            h2 { "Latency" }
            p class="soft" { "No rate was fixed: a closed loop hides the waiting, and its latency is not shown." }
        };
    }
    let line = |index: usize, kind: &str, name: String| {
        let tag = RawHistogram::tag_of(index, kind);
        let raw = histograms.iter().find(|raw| raw.tag == tag)?;
        let points = curve(raw);
        Some(Line { name, points })
    };
    // A backlog's stages have a curve each, where the whole step would blur them.
    let curves: Vec<Line> = open
        .iter()
        .flat_map(|(index, step)| match &step.backlog {
            None => vec![line(*index, "publish", step.rate.to_string())],
            Some(backlog) => {
                let stages = backlog.stretches.iter().map(|it| it.stage.name());
                stages
                    .map(|stage| {
                        let name = format!("{}, {stage}", step.rate);
                        line(*index, &format!("publish-{stage}"), name)
                    })
                    .collect()
            }
        })
        .flatten()
        .collect();
    let against_load = |name: &str, of: fn(&LatencySummary) -> f64| {
        let points = by_load
            .iter()
            .map(|(mb_per_s, latency)| (*mb_per_s, of(latency)));
        Line {
            name: name.to_owned(),
            points: points.collect(),
        }
    };
    let axes = Axes {
        x: "MB/s offered",
        y: "ms",
        shaded: &[],
    };
    let over_load = [
        against_load("p50", |latency| latency.p50_ms),
        against_load("p99", |latency| latency.p99_ms),
        against_load("p99.9", |latency| latency.p999_ms),
    ];
    html! {
        h2 { "Latency" }
        p class="soft" { "From the moment a record was meant to be sent to its confirmation; waiting in the generator counts." }
        div class="charts" {
            (charts::percentiles("Latency by percentile", &curves))
            (charts::lines_log_y("Latency against load", axes, &over_load))
        }
    }
}

/// What was offered and how long it took, from the lowest rate on; a search's tries among them.
fn load_points(report: &Report) -> Vec<(f64, LatencySummary)> {
    let mut points: Vec<(f64, LatencySummary)> = match &report.search {
        // The confirmed step is the last of the tries.
        Some(search) => {
            let tries = search.tries.iter();
            let point = |tried: &TryReport| Some((tried.offered_mb_per_s?, tried.publish_latency?));
            tries.filter_map(point).collect()
        }
        None => {
            let open = report.steps.iter().filter(|step| step.load == Loop::Open);
            let point = |step: &StepReport| Some((step.offered_mb_per_s?, step.publish_latency?));
            open.filter_map(point).collect()
        }
    };
    points.sort_by(|one, other| one.0.total_cmp(&other.0));
    points
}

fn curve(raw: &RawHistogram) -> Vec<(f64, f64)> {
    // One more nine than the count can fill would repeat the maximum.
    let nines_max = (raw.histogram.inner().len().max(1) as f64)
        .log10()
        .min(CURVE_NINES_MAX);
    (0..=CURVE_POINTS)
        .map(|point| {
            let nines = nines_max * f64::from(point) / f64::from(CURVE_POINTS);
            let quantile = 1.0 - 10f64.powf(-nines);
            (quantile, raw.histogram.quantile_ms(quantile))
        })
        .collect()
}

pub fn baselines(report: &Report) -> Markup {
    html! {
        h2 { "Baselines of this machine" }
        @for (when, baseline) in [("before", &report.baseline_before), ("after", &report.baseline_after)] {
            @if let Some(baseline) = baseline {
                h3 { (when) " the load" }
                pre { (BaselineLines::of(baseline)) }
            }
        }
    }
}

/// All that is needed to run it again, and the text that the terminal showed.
pub fn settings(report: &Report) -> Markup {
    let provenance = &report.provenance;
    let machine = &provenance.machine;
    let tool = &provenance.tool;
    let load = &report.workload;
    html! {
        h2 { "Settings" }
        pre { (provenance.argv.join(" ")) }
        div class="wide" { table {
            (row("corelog-perf", &format!("{} {}, {} build, opt-level {}, {} {}", tool.version, tool.commit, tool.profile, tool.opt_level, tool.target, tool.rustflags)))
            (row("machine", &format!("{}, {} cores, {:.1} GiB, kernel {}, congestion control {}", machine.cpu_model, machine.cores, machine.memory_bytes as f64 / f64::from(1 << 30), machine.kernel, machine.congestion_control)))
            @if let Some(storage) = &provenance.storage {
                (row("storage", &format!("{} on {} ({}), device {}, scheduler {}", storage.file_system, storage.mount_point, storage.mount_options, storage.device, storage.scheduler)))
            }
            @if let Some(process) = &provenance.broker.process {
                (row("broker process", &format!("{}, cores {}", process.argv.join(" "), process.cores)))
            }
            @for (name, value) in &load.producer_config { (row(name, value)) }
            @for (name, value) in &load.topic_config { (row(&format!("topic: {name}"), value)) }
        } }
        @for (title, settings) in [("Settings of the broker", &provenance.broker.settings), ("Settings of the topic", &provenance.broker.topic_settings)] {
            @if let Some(settings) = settings { (details(title, settings)) }
        }
        details { summary { "The report as text" } pre { (text(report, Columns::OF_A_FILE)) } }
    }
}

fn details(title: &str, settings: &Settings) -> Markup {
    html! {
        details {
            summary { (title) }
            div class="wide" { table {
                @for (name, value) in settings { (row(name, value.as_deref().unwrap_or("not told"))) }
            } }
        }
    }
}

fn row(name: &str, value: &str) -> Markup {
    html! { tr { td class="soft" { (name) } td class="long" { (value) } } }
}
