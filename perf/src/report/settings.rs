//! The settings that were in force, for a reader.

use std::fmt::Write;

use super::WorkloadReport;

/// Everything that was in force, wherever it came from.
pub fn write(out: &mut String, load: &WorkloadReport) -> std::fmt::Result {
    writeln!(
        out,
        "driver {}; payload {}; keys {}; warm-up {} s, then {} s for each rate: {}",
        load.driver.as_deref().unwrap_or("none"),
        load.payload,
        keys(load),
        load.warmup_seconds,
        load.test_duration_seconds,
        load.producer_rates.join(", "),
    )?;
    for (of, settings) in [
        ("producer", &load.producer_config),
        ("consumer", &load.consumer_config),
        ("topic", &load.topic_config),
    ] {
        if !settings.is_empty() {
            let settings: Vec<_> = settings
                .iter()
                .map(|(name, value)| format!("{name}={value}"))
                .collect();
            writeln!(out, "{of}: {}", settings.join(" "))?;
        }
    }
    Ok(())
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
