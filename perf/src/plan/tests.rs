//! What is overridden by what, and what is refused.

use std::time::Duration;

use clap::Parser;

use super::*;
use crate::cli::{Cli, Command};

fn plan(arguments: &[&str]) -> Result<LoadPlan, PlanError> {
    let cli = Cli::try_parse_from(["corelog-perf", "run"].iter().chain(arguments))
        .expect("clap accepts it");
    let Command::Run(run) = cli.command else {
        panic!("another command")
    };
    run.plan()
}

#[test]
fn flags_override_the_workload() {
    let plan = plan(&[
        "1-topic-16-partitions-1kb",
        "--partitions",
        "3",
        "--batch-bytes",
        "1MB",
        "--rate",
        "max,20%",
    ])
    .unwrap();
    assert_eq!(
        (plan.partitions, plan.message_bytes, plan.batch_bytes_max),
        (3, 1024, 1_000_000)
    );
    assert_eq!(plan.rates, [Rate::Max, Rate::PercentOfMax(20.0)]);
}

#[test]
fn what_cannot_be_run_is_refused_with_its_flag() {
    assert!(matches!(plan(&["no-such"]), Err(PlanError::Workload(_))));
    assert!(matches!(
        plan(&["--message-size", "31"]),
        Err(PlanError::MessageTooSmall { got: 31 })
    ));
    assert!(matches!(
        plan(&["--partitions", "0"]),
        Err(PlanError::Zero { name: "partitions" })
    ));
    assert!(matches!(
        plan(&["--duration", "0s"]),
        Err(PlanError::Zero { name: "duration" })
    ));
    assert!(matches!(
        plan(&["--idempotence"]),
        Err(PlanError::IdempotenceNeedsAcksAll)
    ));
    assert!(matches!(
        plan(&["--idempotence", "--acks", "all", "--in-flight", "6"]),
        Err(PlanError::IdempotenceInFlight { got: 6 })
    ));
    assert!(matches!(
        plan(&["--rate", "20%,max"]),
        Err(PlanError::PercentWithoutMax { .. })
    ));
    assert!(matches!(
        plan(&["--batch-bytes", "1GB"]),
        Err(PlanError::TooLarge {
            name: "batch size",
            ..
        })
    ));
    assert!(matches!(
        plan(&["--bootstrap", "localhost"]),
        Err(PlanError::Bootstrap(_))
    ));
}

#[test]
fn a_key_flag_that_would_have_no_effect_is_refused() {
    let zipf = plan(&[
        "--keys",
        "zipf",
        "--key-count",
        "7",
        "--zipf-exponent",
        "1.5",
    ])
    .unwrap();
    assert_eq!((zipf.keys.count, zipf.keys.zipf_exponent), (7, 1.5));
    for arguments in [
        &["--key-count", "7"][..],
        &["--keys", "uniform", "--zipf-exponent", "1"],
    ] {
        assert!(matches!(
            plan(arguments),
            Err(PlanError::WithoutKeys { .. })
        ));
    }
    assert!(plan(&["--keys", "uniform", "--key-count", "0"]).is_err());
    assert!(plan(&["--keys", "zipf", "--zipf-exponent", "NaN"]).is_err());
}

#[test]
fn the_driver_overrides_the_defaults_and_a_flag_the_driver() {
    let file =
        std::env::temp_dir().join(format!("corelog-perf-driver-{}.yaml", std::process::id()));
    let text = "name: Kafka\nreplicationFactor: 3\ncommonConfig: bootstrap.servers=one:9092,two:9092\n\
                producerConfig: |\n  acks=all\n  linger.ms=1\n  batch.size=2000\n\
                consumerConfig: fetch.max.bytes=3000\ntopicConfig: min.insync.replicas=2\n";
    std::fs::write(&file, text).expect("the temporary directory takes a file");
    let path = file.to_str().expect("its name is UTF-8");
    let merged = plan(&["--driver", path, "--linger-ms", "7", "--fetch-bytes", "1MB"]);
    std::fs::remove_file(&file).expect("it was just written");
    let merged = merged.unwrap();
    assert_eq!(merged.driver.as_deref(), Some("Kafka"));
    assert_eq!(merged.bootstrap, "one:9092,two:9092");
    assert_eq!((merged.acks, merged.replication), (Acks::All, 3));
    assert_eq!(merged.linger, Duration::from_millis(7));
    assert_eq!(merged.batch_bytes_max, 2000);
    assert_eq!(merged.fetch.response_bytes_max, 1_000_000);
    assert_eq!(
        merged.topic_settings,
        [("min.insync.replicas".to_owned(), "2".to_owned())]
    );
    assert_eq!((merged.in_flight_max, merged.idempotence), (5, false));
}
