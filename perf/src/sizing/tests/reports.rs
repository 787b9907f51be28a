//! Figures taken from reports of runs, and reports that are refused.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::super::source::Source;
use super::{estimate, sized, walkthrough};

/// What sizing reads of a report, and what must be the same in all: a disk of 800 MB/s, 2 CPU-s/GB of producing
/// beside a consumer that costs 0.5 of them.
pub fn report() -> Value {
    let disk = |mb_per_s: f64| {
        json!({"disk": {"measured": {"o_direct": true, "writes": [
            {"mb_per_s": mb_per_s / 2.0}, {"mb_per_s": mb_per_s}
        ]}}})
    };
    let step = |acked: f64, cost: f64| {
        json!({
            "acked_mb_per_s": acked, "consumed_mb_per_s": acked,
            "generator": {"valid": true},
            "cpu": {"broker_cpu_s_per_gb": cost}
        })
    };
    json!({
        "schema": "corelog-perf-report", "schema_version": 1, "complete": true,
        "provenance": {"machine": {"cores": 8, "memory_bytes": 32_000_000_000u64}, "broker": {"process": {"executable": "broker"}}},
        "workload": {"name": "load", "replicationFactor": 1, "durability": {"acks": 1}},
        "baseline_before": disk(700.0), "baseline_after": disk(900.0),
        "steps": [step(300.0, 2.0), step(50.0, 7.0)],
        "reads": [{"kind": "recent", "cpu": {"broker_cpu_s_per_gb": 0.5}}],
        "audit": {"outcome": "passed"}
    })
}

fn write(directory: &Path, name: &str, report: &Value) -> PathBuf {
    let path = directory.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, report.to_string()).unwrap();
    path
}

fn load<'a>(from: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let load = ["--ingest", "1GB/s", "--disk-space", "350TB", "--from", from];
    load.iter().chain(more).copied().collect()
}

fn refused(from: &Path) -> String {
    let error = sized(&load(from.to_str().unwrap(), &[]));
    error.expect_err("it cannot be sized").to_string()
}

/// Plants a value in a good report and says why it is refused.
fn refused_with(pointer: &str, value: Value) -> String {
    let directory = tempfile::tempdir().unwrap();
    let mut report = report();
    *report.pointer_mut(pointer).expect("it is in the report") = value;
    let path = write(directory.path(), "report.json", &report);
    let error = refused(&path);
    assert!(error.contains(path.to_str().unwrap()), "{error}");
    error
}

#[test]
fn disk_and_costs_come_from_a_report_and_name_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = write(directory.path(), "report.json", &report());
    let estimate = estimate(&load(path.to_str().unwrap(), &[]));
    assert_eq!(estimate.broker.disk_bytes_per_s.value, 800_000_000);
    assert_eq!(estimate.broker.cost.lead_ns_per_gb.value, 1_500_000_000);
    assert_eq!(estimate.broker.cost.fetch_ns_per_gb.value, 500_000_000);
    assert_eq!(estimate.broker.cores.value, 8);
    assert_eq!(estimate.broker.memory_bytes.value, 32_000_000_000);
    let Source::Report(reports) = &estimate.broker.cost.lead_ns_per_gb.source else {
        panic!("not from a report");
    };
    assert_eq!(reports.files, [path]);
    assert_eq!(estimate.broker.cost.send_ns_per_gb.source, Source::Default);
}

#[test]
fn a_flag_comes_before_a_report() {
    let directory = tempfile::tempdir().unwrap();
    let path = write(directory.path(), "report.json", &report());
    let flags = ["--disk-rate", "600MB/s", "--c-lead", "3s/GB"];
    let estimate = estimate(&load(path.to_str().unwrap(), &flags));
    assert_eq!(estimate.broker.disk_bytes_per_s.value, 600_000_000);
    assert_eq!(estimate.broker.disk_bytes_per_s.source, Source::Flag);
    assert_eq!(estimate.broker.cost.lead_ns_per_gb.value, 3_000_000_000);
}

#[test]
fn of_several_reports_the_median_counts() {
    let directory = tempfile::tempdir().unwrap();
    for (run, mb_per_s) in [600.0, 1_000.0, 650.0].into_iter().enumerate() {
        let mut report = report();
        let best = "/baseline_before/disk/measured/writes/1/mb_per_s";
        *report.pointer_mut(best).unwrap() = json!(mb_per_s);
        report["baseline_after"] = Value::Null;
        write(directory.path(), &format!("run-{run}/report.json"), &report);
    }
    let estimate = estimate(&load(directory.path().to_str().unwrap(), &[]));
    let disk = &estimate.broker.disk_bytes_per_s;
    assert_eq!(disk.value, 650_000_000);
    let Source::Report(reports) = &disk.source else {
        panic!("not from a report");
    };
    assert_eq!(
        (reports.files.len(), reports.least, reports.most),
        (3, 600.0, 1_000.0)
    );
}

#[test]
fn the_walkthrough_is_repeated_with_the_measured_disk() {
    let directory = tempfile::tempdir().unwrap();
    let path = write(directory.path(), "report.json", &report());
    let walkthrough = walkthrough(&["--from", path.to_str().unwrap()]);
    assert_eq!(walkthrough.text.brokers.at_full, 6);
    let measured = walkthrough.measured.expect("a measured part");
    // 3 GB/s over 800 MB/s.
    let brokers = measured.brokers;
    assert_eq!((brokers.at_full, brokers.one_lost), (4, 5));
    assert_eq!((brokers.at_headroom, brokers.at_headroom_one_lost), (6, 7));
    // 1.5 + 2 * (0.5 + 1.2) + 0.5 CPU-s/GB.
    let cpu = |what| measured.cpu.iter().find(|line| line.what == what).unwrap();
    assert_eq!(cpu("c_lead").value, 1.5);
    assert_eq!(cpu("cores of all brokers").value, 5.4);
    assert_eq!(cpu("cores of each broker").value, 1.35);
}

#[test]
fn a_disk_faster_than_the_network_does_not_help() {
    let directory = tempfile::tempdir().unwrap();
    let mut fast = report();
    let best = "/baseline_before/disk/measured/writes/1/mb_per_s";
    *fast.pointer_mut(best).unwrap() = json!(3_000.0);
    let path = write(directory.path(), "report.json", &fast);
    let measured = walkthrough(&["--from", path.to_str().unwrap()])
        .measured
        .unwrap();
    assert_eq!(
        (measured.brokers.at_full, measured.brokers.one_lost),
        (3, 4)
    );
}

#[test]
fn a_report_of_another_schema_is_refused() {
    assert!(refused_with("/schema", json!("another")).contains("schema"));
    assert!(refused_with("/schema_version", json!(2)).contains("version 2"));
    assert!(refused_with("/steps", json!("none")).contains("not JSON of a report"));
}

#[test]
fn a_run_that_is_not_valid_is_refused_with_its_reason() {
    let late = json!({"valid": false, "reason": "it was 5 ms late"});
    assert!(refused_with("/steps/1/generator", late).contains("it was 5 ms late"));
    assert!(refused_with("/complete", json!(false)).contains("ended early"));
    assert!(refused_with("/audit/outcome", json!("failed")).contains("audit"));
    assert!(refused_with("/audit/outcome", json!("incomplete")).contains("audit"));
}

#[test]
fn reports_of_different_loads_are_not_mixed() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), "a.json", &report());
    let mut other = report();
    other["workload"]["durability"]["acks"] = json!(-1);
    write(directory.path(), "b.json", &other);
    let error = refused(directory.path());
    assert!(error.contains("a.json") && error.contains("b.json") && error.contains("durability"));
}

#[test]
fn what_is_not_there_or_no_report_is_refused_with_its_path() {
    let directory = tempfile::tempdir().unwrap();
    assert!(refused(directory.path()).contains("no report in this directory"));
    let missing = directory.path().join("missing.json");
    assert!(refused(&missing).contains("missing.json"));
    let text = directory.path().join("text.json");
    fs::write(&text, "not JSON").unwrap();
    assert!(refused(&text).contains("text.json"));
}

#[test]
fn a_page_cache_baseline_is_not_taken_for_a_disk() {
    let directory = tempfile::tempdir().unwrap();
    let mut cached = report();
    for baseline in ["baseline_before", "baseline_after"] {
        cached[baseline]["disk"]["measured"]["o_direct"] = json!(false);
    }
    let path = write(directory.path(), "report.json", &cached);
    let estimate = estimate(&load(path.to_str().unwrap(), &[]));
    assert_eq!(estimate.broker.disk_bytes_per_s.source, Source::Default);
    assert!(estimate.remarks[0].contains("no O_DIRECT disk baseline"));
}

#[test]
fn a_report_without_anything_for_sizing_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let mut empty = report();
    for baseline in ["baseline_before", "baseline_after"] {
        empty[baseline] = Value::Null;
    }
    empty["steps"] = json!([]);
    empty["reads"] = json!([]);
    let path = write(directory.path(), "report.json", &empty);
    assert!(refused(&path).contains("nothing for sizing"));
}
