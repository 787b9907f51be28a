//! What is overridden by what, and what is refused.

use std::time::Duration;

use clap::Parser;

use super::*;
use crate::cli::{Cli, Command};
use crate::consumer::group::Assignor;
use crate::offer::{Hold, RateUnit};
use crate::quantity::Rate;

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
    assert_eq!(plan.offer.rates(), [Rate::Max, Rate::PercentOfMax(20.0)]);
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
        plan(&["--bootstrap", "localhost:"]),
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

#[test]
fn a_ramp_stands_among_other_rates() {
    let plan = plan(&["--rate", "max,ramp:10%..50%:3,90%"]).unwrap();
    let percent = [10.0, 30.0, 50.0, 90.0].map(Rate::PercentOfMax);
    assert_eq!(plan.offer.rates()[0], Rate::Max);
    assert_eq!(plan.offer.rates()[1..], percent);
}

#[test]
fn a_search_tries_shortly_and_confirms_at_full_length() {
    let search = |arguments: &[&str]| {
        let plan = plan(arguments).expect("a plan");
        assert!(plan.offer.rates().is_empty());
        plan.offer.search().expect("a search")
    };
    let usual = search(&["--rate", "search", "--hold", "p99:10ms"]);
    assert_eq!(usual.hold.to_string(), "p99 <= 10 ms");
    assert_eq!((usual.unit, usual.start_per_s), (RateUnit::BytesPerS, None));
    assert_eq!(usual.try_duration, Duration::from_secs(5));
    assert_eq!(usual.try_warmup, Duration::from_secs(1));
    let short = search(&["--rate", "search:2kmsg/s", "--duration", "3s"]);
    assert_eq!(
        (short.unit, short.start_per_s, short.hold),
        (RateUnit::RecordsPerS, Some(2000), Hold::KeepUp)
    );
    assert_eq!(short.try_duration, Duration::from_secs(3));
    let longer = search(&["--rate", "search", "--try-duration", "30s"]);
    assert_eq!(longer.try_duration, Duration::from_secs(30));
}

#[test]
fn a_producer_rate_of_zero_searches_in_messages_unless_a_rate_is_said() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("load.yaml");
    let text = "topics: 1\npartitionsPerTopic: 1\nmessageSize: 1024\nsubscriptionsPerTopic: 1\n\
                producersPerTopic: 1\nproducerRate: 0\n";
    std::fs::write(&file, text).expect("the directory takes a file");
    let path = file.to_str().expect("its name is UTF-8");
    let found = plan(&[path]).unwrap().offer.search().expect("a search");
    assert_eq!(
        (found.unit, found.start_per_s, found.hold),
        (RateUnit::RecordsPerS, None, Hold::KeepUp)
    );
    let bounded = plan(&[path, "--hold", "p99.9:20ms"]).unwrap();
    let hold = bounded.offer.search().expect("a search").hold;
    assert_eq!(hold.to_string(), "p99.9 <= 20 ms");
    let fixed = plan(&[path, "--rate", "max"]).unwrap();
    assert_eq!(fixed.offer.rates(), [Rate::Max]);
}

#[test]
fn a_search_beside_rates_and_its_flags_without_a_search_are_refused() {
    for rates in [
        "search,max",
        "max,search",
        "search,search",
        "search:1MB/s,2MB/s",
    ] {
        assert!(matches!(
            plan(&["--rate", rates]),
            Err(PlanError::SearchNotAlone)
        ));
    }
    for (flag, value) in [("--hold", "p99:10ms"), ("--try-duration", "3s")] {
        let refused = plan(&[flag, value, "--rate", "max"]).unwrap_err();
        assert!(matches!(refused, PlanError::WithoutSearch { .. }));
    }
    assert!(matches!(
        plan(&["--rate", "search", "--try-duration", "0s"]),
        Err(PlanError::Zero { .. })
    ));
}

#[test]
fn a_backlog_needs_consumers_and_its_ratio_a_backlog() {
    let backlog = plan(&["--backlog", "2GB", "--backlog-drain-ratio", "0.5"]).unwrap();
    let expected = Backlog {
        bytes: 2_000_000_000,
        drain_ratio: 0.5,
    };
    assert_eq!(backlog.backlog, Some(expected));
    assert!(matches!(
        plan(&["--backlog", "2GB", "--consumers", "0"]),
        Err(PlanError::BacklogWithoutConsumers)
    ));
    assert!(matches!(
        plan(&["--backlog", "2GB", "--rate", "search"]),
        Err(PlanError::BacklogWithSearch)
    ));
    assert!(matches!(
        plan(&["--backlog-drain-ratio", "1"]),
        Err(PlanError::WithoutEffect { .. })
    ));
    assert!(matches!(
        plan(&["--backlog", "2GB", "--backlog-drain-ratio", "1.5"]),
        Err(PlanError::BacklogDrainRatio(_))
    ));
}

#[test]
fn replay_flags_without_replay_consumers_are_refused() {
    let replay = plan(&["--replay-consumers", "2", "--replay-from", "-10m"]).unwrap();
    let expected = ReplayPlan {
        consumers: 2,
        from: ReplayFrom::Ago(Duration::from_secs(600)),
        once: false,
    };
    assert_eq!(replay.replay, Some(expected));
    for flags in [&["--replay-from", "0"][..], &["--replay-once"]] {
        assert!(matches!(plan(flags), Err(PlanError::WithoutEffect { .. })));
    }
}

#[test]
fn reading_alone_needs_a_topic_and_readers_and_takes_no_rate() {
    let readers = ["--producers", "0", "--replay-consumers", "1"];
    let with = |more: &[&str]| plan(&[&readers, more].concat());
    let reading = with(&["--topic", "t"]).unwrap();
    assert!(reading.only_reads() && reading.offer.rates().is_empty() && reading.consumers == 0);
    assert!(matches!(with(&[]), Err(PlanError::ReadsWithoutTopic)));
    for flags in [
        ["--rate", "max"],
        ["--backlog", "1GB"],
        ["--consumers", "1"],
    ] {
        let refused = with(&[&["--topic", "t"], &flags[..]].concat());
        assert!(matches!(refused, Err(PlanError::WithoutEffect { .. })));
    }
    assert!(matches!(
        plan(&["--producers", "0", "--topic", "t"]),
        Err(PlanError::ReadsWithoutConsumers)
    ));
}

#[test]
fn workers_are_addresses_each_once_and_not_more_than_producers() {
    let workers = |addresses| plan(&["--producers", "2", "--workers", addresses]);
    let two = workers("a:1, b:2")
        .expect("two producers for two workers")
        .workers;
    assert_eq!(two, ["a:1", "b:2"]);
    assert!(matches!(workers("a:1,b"), Err(PlanError::Worker(text)) if text == "b"));
    assert!(matches!(workers("a:1,"), Err(PlanError::Worker(text)) if text.is_empty()));
    assert!(matches!(workers("a:1,a:1"), Err(PlanError::WorkerTwice(_))));
    assert!(matches!(
        workers("a:1,b:1,c:1"),
        Err(PlanError::MoreWorkersThanProducers {
            workers: 3,
            producers: 2
        })
    ));
}

const WORKLOAD_FILE: &str = "topics: 1\npartitionsPerTopic: 4\nmessageSize: 100\nproducersPerTopic: 1\n\
     subscriptionsPerTopic: 2\nconsumerPerSubscription: 2\nproducerRate: 100\n";

/// With a workload file in place of the name.
fn plan_of_file(arguments: &[&str]) -> Result<LoadPlan, PlanError> {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("load.yaml");
    std::fs::write(&path, WORKLOAD_FILE).expect("it is written");
    let path = path.display().to_string();
    plan(&[&[path.as_str()], arguments].concat())
}

#[test]
fn the_subscriptions_of_a_workload_file_are_groups_and_built_in_ones_are_not() {
    let assignor = |plan: LoadPlan| plan.groups.map(|groups| groups.assignor);
    assert_eq!(assignor(plan_of_file(&[]).unwrap()), Some(Assignor::Range));
    let fixed = plan_of_file(&["--group-assignment", "none"]).unwrap();
    assert_eq!(assignor(fixed), None);
    assert_eq!(assignor(plan_of_file(&["--consumers", "0"]).unwrap()), None);
    assert_eq!(assignor(plan(&["--consumers", "3"]).unwrap()), None);
    let dealt = plan(&["--group-assignment", "roundrobin"]).unwrap();
    assert_eq!(assignor(dealt), Some(Assignor::RoundRobin));
}

#[test]
fn a_members_settings_are_under_kafkas_names() {
    let config = plan_of_file(&["--commit-interval", "250ms"])
        .unwrap()
        .consumer_config();
    let value = |name: &str| config.get(name).map(String::as_str);
    assert_eq!(value("partition.assignment.strategy"), Some("range"));
    assert_eq!(value("auto.commit.interval.ms"), Some("250"));
    let each = plan_of_file(&["--commit-interval", "0s"])
        .unwrap()
        .consumer_config();
    assert_eq!(each["enable.auto.commit"], "false");
    assert!(!each.contains_key("auto.commit.interval.ms"));
}

#[test]
fn what_only_groups_do_is_refused_without_them() {
    for flag in ["--commit-interval", "--rebalance-every"] {
        let refused = plan(&[flag, "1s"]);
        assert!(
            matches!(refused, Err(PlanError::WithoutEffect { .. })),
            "{flag}"
        );
        assert!(plan_of_file(&[flag, "1s"]).is_ok(), "{flag}");
    }
    assert!(matches!(
        plan_of_file(&["--rebalance-every", "0s"]),
        Err(PlanError::Zero { .. })
    ));
}
