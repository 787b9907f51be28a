//! Unit costs: from flags, and from reports of them, which are refused where they are not valid.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::super::constraint::Resource;
use super::super::source::Source;
use super::{estimate, sized, walkthrough};

const LOAD: [&str; 4] = ["--ingest", "1GB/s", "--disk-space", "350TB"];

/// What sizing reads of a report.
fn report() -> Value {
    json!({
        "schema": "corelog-perf-unit-costs", "schema_version": 1, "complete": true, "valid": true, "reason": null,
        "provenance": {"machine": {"cores": 4, "memory_bytes": 8_000_000_000u64}},
        "costs": {
            "partition_cores": 20e-6,
            "produce": [
                {"request_bytes_min": 100_000, "cpu_s_per_gb": 1.0, "request_cpu_s": 100e-6},
                {"request_bytes_min": 50_000, "cpu_s_per_gb": 1.5, "request_cpu_s": 40e-6}
            ],
            "fetch": [{"request_bytes_min": 50_000, "cpu_s_per_gb": 0.5, "request_cpu_s": 50e-6}]
        },
        "partitions": {"idle_memory_bytes": 10_000, "written_memory_bytes": 300_000},
        "reads": [
            {"what": "memory", "broker_cpu_s_per_gb": 0.3, "from_disk": 0.0},
            {"what": "start", "broker_cpu_s_per_gb": 2.0, "from_disk": 0.98}
        ]
    })
}

fn write(directory: &Path, name: &str, report: &Value) -> PathBuf {
    let path = directory.join(name);
    fs::write(&path, report.to_string()).unwrap();
    path
}

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    LOAD.iter().chain(more).copied().collect()
}

fn cpu_cores(arguments: &[&str]) -> f64 {
    let constraints = estimate(arguments).constraints;
    let mut cpu = constraints.iter().filter(|it| it.resource == Resource::Cpu);
    cpu.next().unwrap().cluster_needs
}

/// Plants a value in a good report and says why it is refused.
fn refused_with(pointer: &str, value: Value) -> String {
    let directory = tempfile::tempdir().unwrap();
    let mut report = report();
    *report.pointer_mut(pointer).expect("it is in the report") = value;
    let path = write(directory.path(), "report.json", &report);
    let error = sized(&with(&["--from", path.to_str().unwrap()])).unwrap_err();
    assert!(error.to_string().contains(path.to_str().unwrap()));
    error.to_string()
}

#[test]
fn costs_come_from_a_report_and_name_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = write(directory.path(), "report.json", &report());
    let broker = estimate(&with(&["--from", path.to_str().unwrap()])).broker;
    let cost = &broker.cost;
    for (found, value) in [
        (&cost.lead_ns_per_gb, 1_000_000_000),
        (&cost.fetch_ns_per_gb, 500_000_000),
        (&cost.cold_ns_per_gb, 2_000_000_000),
        (&cost.request_ns, 100_000),
        (&cost.fetch_request_ns, 50_000),
        (&cost.partition_ns_per_s, 20_000),
        (&broker.partition_memory_bytes, 300_000),
        (&broker.cores, 4),
    ] {
        assert_eq!(found.value, value);
        assert!(matches!(&found.source, Source::Report(from) if from.files == [path.clone()]));
    }
    assert_eq!(cost.send_ns_per_gb.source, Source::Default);
}

#[test]
fn requests_partitions_and_cold_readers_cost_cpu() {
    let directory = tempfile::tempdir().unwrap();
    let path = write(directory.path(), "report.json", &report());
    let from = [
        "--from",
        path.to_str().unwrap(),
        "--copies",
        "1",
        "--partitions",
        "1000",
        "--request-size",
        "10KB",
    ];
    // 1.5 + 0.5 for the bytes, 100,000 requests of 40 and 50 us, as the nearest segment has them, 1,000 partitions of 20 us.
    assert!((cpu_cores(&with(&from)) - (2.0 + 9.0 + 0.02)).abs() < 1e-9);
    let cold = [&from[..], &["--cold-readers", "1"]].concat();
    // A cold reader takes few large answers.
    assert!((cpu_cores(&with(&cold)) - (3.5 + 4.0 + 0.02)).abs() < 1e-9);
}

#[test]
fn a_partition_whose_cost_is_not_seen_is_measured_at_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let mut report = report();
    report["costs"]["partition_cores"] = json!(0.0);
    let path = write(directory.path(), "report.json", &report);
    let cost = estimate(&with(&["--from", path.to_str().unwrap()]))
        .broker
        .cost;
    assert_eq!(cost.partition_ns_per_s.value, 0);
    assert!(matches!(cost.partition_ns_per_s.source, Source::Report(_)));
}

#[test]
fn a_message_larger_than_the_request_is_a_request() {
    let large = with(&[
        "--message-size",
        "2MB",
        "--c-request",
        "1ms",
        "--c-lead",
        "1s/GB",
        "--copies",
        "1",
    ]);
    // 1.0 and 0.5 for the bytes, 500 requests of 1 ms.
    assert_eq!(cpu_cores(&large), 2.0);
}

#[test]
fn unit_costs_come_before_those_of_a_run_and_the_disk_stays_the_runs() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), "units.json", &report());
    let mut run = super::reports::report();
    run["provenance"] = json!({"machine": {"cores": 4, "memory_bytes": 8_000_000_000u64}});
    write(directory.path(), "run.json", &run);
    let broker = estimate(&with(&["--from", directory.path().to_str().unwrap()])).broker;
    assert_eq!(broker.cost.lead_ns_per_gb.value, 1_000_000_000);
    assert_eq!(broker.disk_bytes_per_s.value, 800_000_000);
    run["provenance"]["machine"]["cores"] = json!(8);
    write(directory.path(), "run.json", &run);
    let error = sized(&with(&["--from", directory.path().to_str().unwrap()])).unwrap_err();
    assert!(error.to_string().contains("/provenance/machine/cores"));
}

#[test]
fn the_walkthroughs_cpu_counts_requests_too() {
    let directory = tempfile::tempdir().unwrap();
    let path = write(directory.path(), "report.json", &report());
    let measured = walkthrough(&["--from", path.to_str().unwrap()])
        .measured
        .unwrap();
    let line = |what| measured.cpu.iter().find(|line| line.what == what).unwrap();
    // Bytes: 1.0 + 2 * (0.5 + 1.2) + 0.5; 1,000 requests of 150 us; 10 partitions of three copies at 20 us.
    assert!((line("cores of all brokers").value - (4.9 + 0.15 + 0.0006)).abs() < 1e-9);
    assert_eq!(line("c_request").value, 100.0);
}

#[test]
fn a_cold_read_from_memory_is_remarked() {
    let directory = tempfile::tempdir().unwrap();
    let mut warm = report();
    warm["reads"][1]["from_disk"] = json!(0.2);
    let path = write(directory.path(), "report.json", &warm);
    let remarks = estimate(&with(&["--from", path.to_str().unwrap()])).remarks;
    assert!(remarks.iter().any(|remark| remark.contains("only 20 %")));
}

#[test]
fn a_report_that_is_not_valid_or_of_another_version_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let mut missed = report();
    missed["valid"] = json!(false);
    missed["reason"] = json!("the mixed load cost +40 %");
    let path = write(directory.path(), "report.json", &missed);
    let error = sized(&with(&["--from", path.to_str().unwrap()])).unwrap_err();
    assert!(error.to_string().contains("the mixed load cost +40 %"));
    assert!(refused_with("/schema_version", json!(2)).contains("version 2, not"));
    assert!(
        refused_with("/schema", json!("another")).contains("corelog-perf-unit-costs version 1")
    );
    assert!(refused_with("/complete", json!(false)).contains("ended early"));
    assert!(refused_with("/costs", json!("none")).contains("not JSON of a report"));
}
