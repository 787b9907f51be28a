use std::fmt::Write;
use std::time::Duration;

use super::metrics_page::api_name;
use super::process::ProcessFigures;
use super::readiness::Phase;
use crate::metrics::{
    ApiFigures, DirectorySpace, Gauge, Latency, LatencyHistogram, MetricsRegistry, Stage,
};

/// One page with no outside part: it works without a network and reloads itself. Every value on it is a number or a name
/// from a fixed list, so nothing needs escaping.
const HEAD: &str = r#"<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="refresh" content="5">
<title>Corelog</title>
<style>
:root { color-scheme: light dark; --line: #8884; --soft: light-dark(#555, #aaa); }
body { font: 16px/1.4 system-ui, sans-serif; margin: 0 auto; padding: 1rem; max-width: 64rem; }
h1 { font-size: 1.4rem; margin: 0 0 .2rem; }
h2 { font-size: 1.1rem; margin: 1.5rem 0 .4rem; }
p { margin: 0 0 .8rem; color: var(--soft); }
dl { display: grid; grid-template-columns: repeat(auto-fit, minmax(9rem, 1fr)); gap: .6rem; margin: 0; }
dt { color: var(--soft); font-size: .85rem; }
dd { margin: 0; font-size: 1.15rem; font-variant-numeric: tabular-nums; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; width: 100%; }
th, td { text-align: right; padding: .25rem .6rem; border-bottom: 1px solid var(--line); white-space: nowrap; }
th:first-child, td:first-child { text-align: left; padding-left: 0; position: sticky; left: 0; background: Canvas; }
th { color: var(--soft); font-weight: 500; white-space: normal; vertical-align: bottom; }
</style>
</head>
<body>
"#;

/// Bytes per second: of requests, of replies, and by which the logs grow.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rates {
    pub(super) bytes_in: f64,
    pub(super) bytes_out: f64,
    pub(super) growth: f64,
}

pub(super) fn render(
    metrics: &MetricsRegistry,
    phase: Phase,
    uptime: Duration,
    rates: Rates,
) -> String {
    let mut page = String::from(HEAD);
    write_page(&mut page, metrics, phase, uptime, rates)
        .expect("writing to a String does not fail");
    page
}

fn write_page(
    page: &mut String,
    metrics: &MetricsRegistry,
    phase: Phase,
    uptime: Duration,
    rates: Rates,
) -> std::fmt::Result {
    let process = ProcessFigures::read();
    let all = |gauge| {
        metrics
            .shards()
            .iter()
            .map(|shard| shard.gauge(gauge))
            .sum::<u64>()
    };
    let version = env!("CARGO_PKG_VERSION");
    writeln!(page, "<h1>Corelog {version}: {phase}</h1>")?;
    writeln!(
        page,
        "<p>up {} · <a href=\"/metrics\">metrics</a></p>",
        duration(uptime)
    )?;

    let shards_with_direct_io = all(Gauge::DirectIo);
    let direct_io = match metrics.shards().len() as u64 {
        shards if shards == shards_with_direct_io => "on".to_owned(),
        shards => format!("on {shards_with_direct_io} of {shards} shards"),
    };
    let space = metrics.directory().space();
    page.push_str("<dl>\n");
    for (name, value) in [
        ("in, last 10 s", format!("{}/s", bytes(rates.bytes_in))),
        ("out, last 10 s", format!("{}/s", bytes(rates.bytes_out))),
        ("connections", all(Gauge::Connections).to_string()),
        ("partitions", all(Gauge::Partitions).to_string()),
        ("groups", all(Gauge::Groups).to_string()),
        ("group members", all(Gauge::GroupMembers).to_string()),
        ("on disk", bytes(all(Gauge::DiskBytes) as f64)),
        ("disk used", format!("{:.1} %", space.used_ratio() * 100.0)),
        ("full at this rate", time_left(space, rates.growth)),
        ("tail cache", bytes(all(Gauge::TailCacheBytes) as f64)),
        ("O_DIRECT", direct_io),
        (
            "log directories offline",
            all(Gauge::LogDirectoriesOffline).to_string(),
        ),
        ("memory", bytes(process.resident_memory_bytes as f64)),
        ("CPU time", format!("{:.1} s", process.cpu_seconds)),
        ("open files", process.open_fds.to_string()),
    ] {
        writeln!(page, "<div><dt>{name}</dt><dd>{value}</dd></div>")?;
    }
    page.push_str("</dl>\n");
    write_apis(page, metrics)?;
    write_disk(page, metrics)?;
    write_shards(page, metrics)?;
    page.push_str("</body>\n</html>\n");
    Ok(())
}

fn write_apis(page: &mut String, metrics: &MetricsRegistry) -> std::fmt::Result {
    let columns = [
        "API", "requests", "in", "out", "errors", "p50", "p99", "p99.9", "max",
    ];
    table(page, "Requests since the start", &columns, |page| {
        let mut keys: Vec<i16> = metrics
            .shards()
            .iter()
            .flat_map(|shard| shard.apis().map(|(key, _)| key))
            .collect();
        keys.sort_unstable();
        keys.dedup();
        for key in keys {
            let shards: Vec<&ApiFigures> = metrics
                .shards()
                .iter()
                .flat_map(|shard| {
                    shard
                        .apis()
                        .filter(|&(found, _)| found == key)
                        .map(|(_, api)| api)
                })
                .collect();
            let sum =
                |read: fn(&ApiFigures) -> u64| shards.iter().map(|api| read(api)).sum::<u64>();
            let errors = sum(|api| api.errors().map(|(_, count)| count).sum());
            let [p50, p99, p999, max] =
                percentiles(shards.iter().map(|api| api.stage(Stage::Total)));
            row(
                page,
                &[
                    api_name(key),
                    sum(ApiFigures::requests).to_string(),
                    bytes(sum(ApiFigures::bytes_in) as f64),
                    bytes(sum(ApiFigures::bytes_out) as f64),
                    errors.to_string(),
                    p50,
                    p99,
                    p999,
                    max,
                ],
            )?;
        }
        Ok(())
    })
}

fn write_disk(page: &mut String, metrics: &MetricsRegistry) -> std::fmt::Result {
    table(
        page,
        "Disk",
        &["operation", "count", "p50", "p99", "p99.9", "max"],
        |page| {
            for &latency in Latency::ALL {
                let shards = || metrics.shards().iter().map(|shard| shard.latency(latency));
                let [p50, p99, p999, max] = percentiles(shards());
                let count: u64 = shards().map(LatencyHistogram::count).sum();
                let name = latency.name().replace('_', " ");
                row(page, &[name, count.to_string(), p50, p99, p999, max])?;
            }
            Ok(())
        },
    )
}

fn write_shards(page: &mut String, metrics: &MetricsRegistry) -> std::fmt::Result {
    let columns = [
        "shard",
        "connections",
        "partitions",
        "in flight",
        "mesh queue",
        "fetches waiting",
        "acks waiting",
        "tail cache",
    ];
    table(page, "Shards", &columns, |page| {
        for shard in metrics.shards() {
            row(
                page,
                &[
                    shard.shard().to_string(),
                    shard.gauge(Gauge::Connections).to_string(),
                    shard.gauge(Gauge::Partitions).to_string(),
                    bytes(shard.gauge(Gauge::RequestBytesInFlight) as f64),
                    shard.gauge(Gauge::MeshQueueMessages).to_string(),
                    shard.gauge(Gauge::FetchesWaiting).to_string(),
                    shard.gauge(Gauge::AcksWaiting).to_string(),
                    bytes(shard.gauge(Gauge::TailCacheBytes) as f64),
                ],
            )?;
        }
        Ok(())
    })
}

fn table(
    page: &mut String,
    title: &str,
    columns: &[&str],
    rows: impl FnOnce(&mut String) -> std::fmt::Result,
) -> std::fmt::Result {
    writeln!(page, "<h2>{title}</h2>\n<div class=\"scroll\"><table>")?;
    page.push_str("<tr>");
    for column in columns {
        write!(page, "<th>{column}</th>")?;
    }
    page.push_str("</tr>\n");
    rows(page)?;
    page.push_str("</table></div>\n");
    Ok(())
}

fn row(page: &mut String, cells: &[String]) -> std::fmt::Result {
    page.push_str("<tr>");
    for cell in cells {
        write!(page, "<td>{cell}</td>")?;
    }
    page.push_str("</tr>\n");
    Ok(())
}

/// p50, p99, p99.9 and the maximum over all shards; a dash each where nothing was recorded.
fn percentiles<'a>(shards: impl Iterator<Item = &'a LatencyHistogram>) -> [String; 4] {
    let mut merged = LatencyHistogram::empty_merged();
    shards.for_each(|shard| shard.add_to(&mut merged));
    if merged.is_empty() {
        return std::array::from_fn(|_| "–".to_owned());
    }
    [0.5, 0.99, 0.999, 1.0].map(|quantile| latency(merged.value_at_quantile(quantile)))
}

fn latency(ns: u64) -> String {
    match ns as f64 {
        ns if ns < 1e6 => format!("{:.0} µs", ns / 1e3),
        ns if ns < 1e9 => format!("{:.1} ms", ns / 1e6),
        ns => format!("{:.1} s", ns / 1e9),
    }
}

/// When produce is refused for want of space, if everything goes on as in the last minutes.
fn time_left(space: DirectorySpace, growth: f64) -> String {
    match space.seconds_until_full(growth) {
        _ if space.guard_level > 0 => "produce is refused".to_owned(),
        seconds if seconds.is_finite() => {
            format!("in {}", duration(Duration::from_secs_f64(seconds.min(1e9))))
        }
        _ => "never".to_owned(),
    }
}

fn bytes(count: f64) -> String {
    const STEPS: [(f64, &str); 4] = [(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")];
    match STEPS.iter().find(|(size, _)| count >= *size) {
        Some((size, unit)) => format!("{:.1} {unit}", count / size),
        None => format!("{count:.0} B"),
    }
}

fn duration(time: Duration) -> String {
    let seconds = time.as_secs();
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, _) => format!("{minutes} min"),
        (0, _, _) => format!("{hours} h {minutes} min"),
        _ => format!("{days} d {hours} h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ShardId;

    #[test]
    fn the_page_adds_up_the_shards_and_needs_nothing_from_outside() {
        let registry = MetricsRegistry::new(1);
        let metrics = registry.shard(ShardId(0));
        metrics.record_request(0, 2_000_000, 60, 2_500_000);
        metrics.set_gauge(Gauge::Partitions, 16);
        metrics.record_directory(DirectorySpace {
            used_bytes: 80_000_000,
            free_bytes: 920_000_000,
            refused_from_bytes: 950_000_000,
            guard_level: 0,
        });
        let page = render(
            &registry,
            Phase::Ready,
            Duration::from_secs(3700),
            Rates {
                bytes_in: 5e8,
                bytes_out: 1.0,
                growth: 1e6,
            },
        );
        for part in [
            "ready",
            "500.0 MB/s",
            "<td>Produce</td><td>1</td><td>2.0 MB</td>",
            "1 h 1 min",
            "8.0 %",
            "in 14 min",
            "2.5 ms",
        ] {
            assert!(page.contains(part), "{part} is missing in:\n{page}");
        }
        assert!(
            !page.contains("://"),
            "a page that loads something from outside fails without a network"
        );
    }

    #[test]
    fn a_disk_that_refuses_produce_says_so() {
        let space = DirectorySpace {
            guard_level: 1,
            ..DirectorySpace::default()
        };
        assert_eq!(time_left(space, 1.0), "produce is refused");
        assert_eq!(time_left(DirectorySpace::default(), 0.0), "never");
    }

    #[test]
    fn numbers_carry_the_unit_that_fits() {
        assert_eq!(
            [bytes(999.0), bytes(1e3), bytes(2.5e9)],
            ["999 B", "1.0 kB", "2.5 GB"]
        );
        assert_eq!(
            [latency(900), latency(1_500_000), latency(2_000_000_000)],
            ["1 µs", "1.5 ms", "2.0 s"]
        );
        let times = [59, 3599, 3600, 90_000].map(|seconds| duration(Duration::from_secs(seconds)));
        assert_eq!(times, ["59 s", "59 min", "1 h 0 min", "1 d 1 h"]);
    }
}
