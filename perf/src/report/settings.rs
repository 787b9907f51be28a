//! The settings that were in force, for a reader.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::groups::assignment;
use super::{WorkloadReport, number};

/// Everything that was in force, wherever it came from.
pub fn write(out: &mut String, load: &WorkloadReport) -> std::fmt::Result {
    let (warmup_s, duration_s) = (load.warmup_seconds, load.test_duration_seconds);
    let driver = load.driver.as_deref().unwrap_or("none");
    if load.producers_per_topic == 0 {
        return writeln!(
            out,
            "driver {driver}; warm-up {warmup_s} s, then {duration_s} s; consumer: {}",
            list(&load.consumer_config)
        );
    }
    writeln!(
        out,
        "driver {driver}; payload {}; keys {}; warm-up {warmup_s} s, then {duration_s} s for each rate: {}",
        load.payload,
        keys(load),
        load.producer_rates.join(", "),
    )?;
    if load.subscriptions_per_topic > 0 && load.consumer_per_subscription > 0 {
        writeln!(out, "{}", assignment(load.consumer_assignment))?;
    }
    if let Some(size_gb) = load.consumer_backlog_size_gb {
        writeln!(
            out,
            "consumers pause after the warm-up until {} GB are unread, then drain {} % of it, before the {duration_s} s begin",
            number(size_gb * f64::from(1 << 30) / 1e9),
            load.backlog_drain_ratio.unwrap_or(1.0) * 100.0
        )?;
    }
    if let (Some(consumers), Some(from)) = (load.replay_consumers, load.replay_from) {
        let how = match load.replay_once {
            Some(true) => "once",
            _ => "over and over",
        };
        writeln!(
            out,
            "replay consumers of each topic: {consumers}, from {from}, {how}"
        )?;
    }
    for (of, settings) in [
        ("producer", &load.producer_config),
        ("consumer", &load.consumer_config),
        ("topic", &load.topic_config),
    ] {
        if !settings.is_empty() {
            writeln!(out, "{of}: {}", list(settings))?;
        }
    }
    Ok(())
}

fn list(settings: &BTreeMap<String, String>) -> String {
    let settings: Vec<_> = settings
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    settings.join(" ")
}

fn keys(load: &WorkloadReport) -> String {
    let name = load.key_distributor.name();
    let count = load
        .key_count
        .map_or_else(String::new, |count| format!(" of {count}"));
    let exponent = load
        .zipf_exponent
        .map_or_else(String::new, |exponent| format!(", exponent {exponent}"));
    format!("{name}{count}{exponent}")
}
