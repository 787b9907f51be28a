use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use kafka_protocol::ResponseError;
use kafka_protocol::messages::ApiKey;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeLabelSet, EncodeMetric, MetricEncoder, NoLabelSet,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use super::disk_growth::DiskGrowth;
use super::process::ProcessFigures;
use crate::metrics::{
    ApiFigures, Counter, Deletion, Gauge, Latency, LatencyHistogram, MetricsRegistry, ShardFigures,
    Stage,
};

/// The buckets of every latency: powers of two of a nanosecond, 16 us to 69 s, where the counts are exact.
const OCTAVE_FIRST: u32 = 14;
const OCTAVE_LAST: u32 = 36;

/// Turns the figures of all shards into Prometheus' families on each scrape; it keeps none itself.
#[derive(Debug)]
pub(super) struct Figures {
    pub(super) metrics: MetricsRegistry,
    pub(super) started: SystemTime,
    pub(super) growth: Arc<Mutex<DiskGrowth>>,
}

impl Collector for Figures {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.encode_process(&mut encoder)?;
        self.encode_budgets(&mut encoder)?;
        self.encode_directory(&mut encoder)?;
        self.encode_shards(&mut encoder)?;
        self.encode_apis(&mut encoder)
    }
}

impl Figures {
    fn encode_process(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let process = ProcessFigures::read();
        let started = self
            .started
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default()
            .as_secs_f64();
        let build = [("version", env!("CARGO_PKG_VERSION"))];
        let info = encoder.encode_descriptor(
            "corelog_build_info",
            "Which build this is",
            None,
            MetricType::Gauge,
        )?;
        write_gauge(info, &build, 1)?;

        let cpu = ConstCounter::new(process.cpu_seconds);
        cpu.encode(encoder.encode_descriptor(
            "process_cpu_seconds",
            "User and system CPU time",
            None,
            MetricType::Counter,
        )?)?;
        let mut gauge = |name, help, value: f64| {
            ConstGauge::new(value).encode(encoder.encode_descriptor(
                name,
                help,
                None,
                MetricType::Gauge,
            )?)
        };
        gauge(
            "process_resident_memory_bytes",
            "Memory that is resident",
            process.resident_memory_bytes as f64,
        )?;
        gauge(
            "process_open_fds",
            "Open file descriptors",
            process.open_fds as f64,
        )?;
        gauge(
            "process_max_fds",
            "How many file descriptors may be open",
            process.max_fds as f64,
        )?;
        gauge(
            "process_start_time_seconds",
            "When the process started, since 1970",
            started,
        )
    }

    fn encode_budgets(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let budgets = [
            (
                "corelog_descriptor_budget",
                "File descriptors that each part of the broker may have, as divided at the start",
                self.metrics.descriptor_budget(),
            ),
            (
                "corelog_memory_budget_bytes",
                "Memory that each part of the broker may take, as divided at the start",
                self.metrics.memory_budget(),
            ),
        ];
        for (name, help, parts) in budgets {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            for &(part, value) in parts {
                ConstGauge::new(value).encode(family.encode_family(&[("part", part)])?)?;
            }
        }
        Ok(())
    }

    fn encode_directory(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let space = self.metrics.directory().space();
        let growth = self.growth.lock().unwrap_or_else(PoisonError::into_inner);
        let growth = growth.bytes_per_second();
        let mut gauge = |name, help, value: f64| {
            ConstGauge::new(value).encode(encoder.encode_descriptor(
                name,
                help,
                None,
                MetricType::Gauge,
            )?)
        };
        gauge(
            "corelog_log_directory_used_ratio",
            "Share of the log directory's file system that is in use, by whomever",
            space.used_ratio(),
        )?;
        gauge(
            "corelog_log_directory_used_bytes",
            "Bytes of the log directory's file system that are in use, by whomever",
            space.used_bytes as f64,
        )?;
        gauge(
            "corelog_log_directory_free_bytes",
            "Bytes of the log directory's file system that are free",
            space.free_bytes as f64,
        )?;
        gauge(
            "corelog_disk_guard_level",
            "0: everything is appended; 1: produce is refused, since the file system is used up to log.dirs.high.watermark; 2: the \
             broker's own topics are refused too, from log.dirs.reserve.watermark on",
            space.guard_level as f64,
        )?;
        gauge(
            "corelog_log_growth_bytes_per_second",
            "Bytes appended less bytes deleted a second, over the last 5 minutes",
            growth,
        )?;
        gauge(
            "corelog_seconds_until_full",
            "Seconds until produce is refused for want of space, at the growth of the last 5 minutes; +Inf where nothing grows",
            space.seconds_until_full(growth),
        )
    }

    fn encode_shards(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        for &counter in Counter::ALL {
            let name = format!("corelog_{}", counter.name());
            let mut family =
                encoder.encode_descriptor(&name, counter.help(), None, MetricType::Counter)?;
            for shard in self.metrics.shards() {
                write_counter(
                    family.encode_family(&shard_label(shard))?,
                    shard.counter(counter),
                )?;
            }
        }
        for &gauge in Gauge::ALL {
            let name = format!("corelog_{}", gauge.name());
            let mut family =
                encoder.encode_descriptor(&name, gauge.help(), None, MetricType::Gauge)?;
            for shard in self.metrics.shards() {
                ConstGauge::new(shard.gauge(gauge))
                    .encode(family.encode_family(&shard_label(shard))?)?;
            }
        }
        type ReadDeleted = fn(&ShardFigures, Deletion) -> u64;
        let deleted: [(&str, &str, ReadDeleted); 2] = [
            (
                "corelog_segments_deleted",
                "Segments deleted",
                ShardFigures::deleted_segments,
            ),
            (
                "corelog_deleted_bytes",
                "Bytes of deleted segments",
                ShardFigures::deleted_bytes,
            ),
        ];
        let reasons: Vec<String> = Deletion::ALL
            .iter()
            .map(|why| format!("{}: {}", why.name(), lower_first(why.help())))
            .collect();
        for (name, what, read) in deleted {
            let help = format!("{what}, by reason. {}", reasons.join(". "));
            let mut family = encoder.encode_descriptor(name, &help, None, MetricType::Counter)?;
            for shard in self.metrics.shards() {
                for &why in Deletion::ALL {
                    let [shard_label] = shard_label(shard);
                    let labels = [shard_label, ("reason", why.name().to_owned())];
                    write_counter(family.encode_family(&labels)?, read(shard, why))?;
                }
            }
        }
        for &latency in Latency::ALL {
            let name = format!("corelog_{}_seconds", latency.name());
            let mut family =
                encoder.encode_descriptor(&name, latency.help(), None, MetricType::Histogram)?;
            for shard in self.metrics.shards() {
                write_histogram(
                    family.encode_family(&shard_label(shard))?,
                    shard.latency(latency),
                )?;
            }
        }
        Ok(())
    }

    fn encode_apis(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        type Read = fn(&ApiFigures) -> u64;
        let counters: [(&str, &str, Read); 3] = [
            (
                "corelog_requests",
                "Requests answered",
                ApiFigures::requests,
            ),
            (
                "corelog_request_bytes",
                "Bytes of requests received",
                ApiFigures::bytes_in,
            ),
            (
                "corelog_response_bytes",
                "Bytes of replies sent",
                ApiFigures::bytes_out,
            ),
        ];
        for (name, help, read) in counters {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            for (shard, key, api) in self.apis() {
                write_counter(family.encode_family(&api_labels(shard, key))?, read(api))?;
            }
        }

        let help = "Error codes in replies, each place where one stands counted";
        let mut family =
            encoder.encode_descriptor("corelog_request_errors", help, None, MetricType::Counter)?;
        for (shard, key, api) in self.apis() {
            for (code, count) in api.errors() {
                let [shard, api] = api_labels(shard, key);
                let labels = [
                    shard,
                    api,
                    ("code", code.to_string()),
                    ("error", error_name(code)),
                ];
                write_counter(family.encode_family(&labels)?, count)?;
            }
        }

        let stages: Vec<String> = Stage::ALL
            .iter()
            .map(|stage| format!("{}: {}", stage.name(), lower_first(stage.help())))
            .collect();
        let help = format!("Time of requests by stage. {}", stages.join(". "));
        let name = "corelog_request_duration_seconds";
        let mut family = encoder.encode_descriptor(name, &help, None, MetricType::Histogram)?;
        for (shard, key, api) in self.apis() {
            for &stage in Stage::ALL {
                // An API without, say, a disk stage would fill the page with zeros.
                if stage == Stage::Total || api.stage(stage).count() > 0 {
                    let [shard, api_name] = api_labels(shard, key);
                    let labels = [shard, api_name, ("stage", stage.name().to_owned())];
                    write_histogram(family.encode_family(&labels)?, api.stage(stage))?;
                }
            }
        }
        Ok(())
    }

    fn apis(&self) -> impl Iterator<Item = (&ShardFigures, i16, &ApiFigures)> {
        self.metrics
            .shards()
            .iter()
            .flat_map(|shard| shard.apis().map(|(key, api)| (shard.as_ref(), key, api)))
    }
}

type Label = (&'static str, String);

fn shard_label(shard: &ShardFigures) -> [Label; 1] {
    [("shard", shard.shard().to_string())]
}

fn api_labels(shard: &ShardFigures, api_key: i16) -> [Label; 2] {
    [
        ("shard", shard.shard().to_string()),
        ("api", api_name(api_key)),
    ]
}

/// The name of an API, as Kafka spells it.
pub(super) fn api_name(api_key: i16) -> String {
    ApiKey::try_from(api_key).map_or_else(|()| "other".to_owned(), |api| format!("{api:?}"))
}

/// The name of an error code as Kafka spells it, such as `NOT_LEADER_OR_FOLLOWER`.
fn error_name(code: i16) -> String {
    let Some(error) = ResponseError::try_from_code(code) else {
        return "NONE".to_owned();
    };
    let camel = match error {
        ResponseError::Unknown(_) => return "OTHER".to_owned(),
        known => format!("{known:?}"),
    };
    let mut name = String::with_capacity(camel.len() + 8);
    for letter in camel.chars() {
        if letter.is_ascii_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(letter.to_ascii_uppercase());
    }
    name
}

fn lower_first(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_lowercase().chain(letters).collect()
    })
}

fn write_counter(encoder: MetricEncoder<'_>, value: u64) -> fmt::Result {
    ConstCounter::new(value).encode(encoder)
}

fn write_gauge(
    mut family: MetricEncoder<'_>,
    labels: &impl EncodeLabelSet,
    value: u64,
) -> fmt::Result {
    ConstGauge::new(value).encode(family.encode_family(labels)?)
}

fn write_histogram(mut encoder: MetricEncoder<'_>, histogram: &LatencyHistogram) -> fmt::Result {
    let (octaves, rest) = histogram.octaves(OCTAVE_FIRST, OCTAVE_LAST);
    let count = octaves.iter().map(|&(_, count)| count).sum::<u64>() + rest;
    let buckets: Vec<(f64, u64)> = octaves
        .iter()
        .map(|&(bound_ns, count)| (seconds(bound_ns), count))
        .collect();
    encoder.encode_histogram::<NoLabelSet>(seconds(histogram.sum_ns()), count, &buckets, None)
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::DirectorySpace;
    use crate::model::ShardId;
    use prometheus_client::encoding::prometheus_text;
    use prometheus_client::registry::Registry;

    fn page(metrics: &MetricsRegistry) -> String {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(Figures {
            metrics: metrics.clone(),
            started: SystemTime::now(),
            growth: Arc::default(),
        }));
        let mut page = String::new();
        prometheus_text::encode(&mut page, &registry).unwrap();
        page
    }

    #[test]
    fn the_page_shows_each_shard_and_api_with_its_labels() {
        let registry = MetricsRegistry::new(2);
        let metrics = registry.shard(ShardId(1));
        metrics.record_request(0, 1000, 60, 20_000);
        metrics.record_error(0, 6);
        metrics.set_gauge(Gauge::Partitions, 16);
        metrics.record_disk_write(4096, 1 << 20);
        metrics.count_deleted(Deletion::RetentionMs, 2, 5_000);
        metrics.record_directory(DirectorySpace {
            used_bytes: 80,
            free_bytes: 20,
            refused_from_bytes: 95,
            guard_level: 0,
        });
        let page = page(&registry);
        for line in [
            "corelog_requests_total{shard=\"1\",api=\"Produce\"} 1",
            "corelog_request_bytes_total{shard=\"1\",api=\"Produce\"} 1000",
            "corelog_request_errors_total{shard=\"1\",api=\"Produce\",code=\"6\",error=\"NOT_LEADER_OR_FOLLOWER\"} 1",
            "corelog_partitions{shard=\"0\"} 0",
            "corelog_partitions{shard=\"1\"} 16",
            "corelog_disk_write_bytes_total{shard=\"1\"} 4096",
            "corelog_segments_deleted_total{shard=\"1\",reason=\"retention_ms\"} 2",
            "corelog_deleted_bytes_total{shard=\"1\",reason=\"retention_ms\"} 5000",
            "corelog_log_directory_used_ratio 0.8",
            "corelog_disk_guard_level 0.0",
            "corelog_seconds_until_full +Inf",
            "corelog_disk_write_seconds_count{shard=\"1\"} 1",
            "corelog_request_duration_seconds_count{shard=\"1\",api=\"Produce\",stage=\"total\"} 1",
        ] {
            assert!(
                page.lines().any(|found| found == line),
                "{line} is missing in:\n{page}"
            );
        }
        assert!(
            !page.contains("stage=\"disk\""),
            "a stage that never happened takes no room"
        );
    }

    #[test]
    fn buckets_are_cumulative_and_end_at_the_count() {
        let registry = MetricsRegistry::new(1);
        let metrics = registry.shard(ShardId(0));
        for ns in [1_000, 20_000, 40_000, u64::MAX / 4] {
            metrics.record_fdatasync(ns);
        }
        let page = page(&registry);
        let bucket = |bound: &str| {
            let line = format!("corelog_fdatasync_seconds_bucket{{shard=\"0\",le=\"{bound}\"}} ");
            page.lines()
                .find_map(|found| found.strip_prefix(&line))
                .unwrap_or_else(|| panic!("{line} in\n{page}"))
        };
        assert_eq!(
            [bucket("1.6384e-05"), bucket("3.2768e-05"), bucket("+Inf")],
            ["1", "2", "4"]
        );
        assert_eq!(
            page.lines()
                .filter(|line| line.starts_with("corelog_fdatasync_seconds_bucket"))
                .count(),
            24
        );
    }

    #[test]
    fn every_family_stands_once_with_help_and_type() {
        let page = page(&MetricsRegistry::new(3));
        let mut helped: Vec<&str> = page
            .lines()
            .filter_map(|line| line.strip_prefix("# HELP "))
            .collect();
        let families = helped.len();
        helped.sort_by_key(|line| line.split(' ').next());
        helped.dedup_by_key(|line| line.split(' ').next());
        assert_eq!(helped.len(), families);
        assert_eq!(
            page.lines()
                .filter(|line| line.starts_with("# TYPE "))
                .count(),
            families
        );
    }

    #[test]
    fn error_codes_have_kafkas_names() {
        assert_eq!(error_name(3), "UNKNOWN_TOPIC_OR_PARTITION");
        assert_eq!(error_name(-1), "UNKNOWN_SERVER_ERROR");
        assert_eq!(error_name(0), "NONE");
        assert_eq!(error_name(158), "OTHER");
    }
}
