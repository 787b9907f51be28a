//! What cannot be sized is refused with the name of its flag, never answered with a number.

use super::{parse, sized};

const LOAD: [&str; 4] = ["--ingest", "1GB/s", "--disk-space", "20TB"];

/// The exit code of a refusal by the parser, and what it says.
fn refused_by_parser(arguments: &[&str]) -> (i32, String) {
    match parse(arguments) {
        Ok(_) => panic!("{arguments:?} is accepted"),
        Err(error) => (error.exit_code(), error.to_string()),
    }
}

fn refused(arguments: &[&str]) -> String {
    sized(arguments)
        .expect_err("it cannot be sized")
        .to_string()
}

#[test]
fn zero_negative_and_unitless_values_are_refused_with_their_flag() {
    let with_units = [
        "--ingest",
        "--message-size",
        "--topic-ingest",
        "--consumer-rate",
        "--segment-bytes",
        "--disk-rate",
        "--disk-space",
        "--nic",
        "--memory",
        "--partition-memory",
        "--c-lead",
        "--c-fetch",
        "--c-send",
        "--c-follow",
        "--c-cold",
        "--c-request",
        "--c-fetch-request",
        "--c-partition",
        "--request-size",
        "--headroom",
    ];
    let zero_of = |flag: &str| match flag {
        "--headroom" => "0%",
        "--c-request" | "--c-fetch-request" | "--c-partition" => "0us",
        flag if flag.starts_with("--c-") => "0s/GB",
        "--request-size" | "--message-size" | "--segment-bytes" | "--disk-space" | "--memory"
        | "--partition-memory" => "0MB",
        _ => "0MB/s",
    };
    for flag in with_units {
        for value in [zero_of(flag), "-1MB/s", "100", "-5", "x", ""] {
            let (code, error) = refused_by_parser(&[flag, value]);
            assert_eq!(code, 2);
            assert!(error.contains(flag), "{flag} {value}: {error}");
        }
    }
    for flag in [
        "--copies",
        "--readers",
        "--partitions",
        "--brokers",
        "--cores",
        "--partitions-per-broker",
        "--peak-factor",
        "--compression-ratio",
    ] {
        for value in ["0", "-1", "1.5x", ""] {
            let (code, error) = refused_by_parser(&[flag, value]);
            assert_eq!(code, 2);
            assert!(error.contains(flag), "{flag} {value}: {error}");
        }
    }
}

#[test]
fn more_than_all_is_no_headroom() {
    assert!(
        refused_by_parser(&["--headroom", "101%"])
            .1
            .contains("--headroom")
    );
}

#[test]
fn a_time_of_zero_is_refused_with_its_flag() {
    for flag in ["--retention", "--cached"] {
        let arguments: Vec<&str> = LOAD.into_iter().chain([flag, "0d"]).collect();
        assert!(refused(&arguments).contains(flag));
        assert!(refused_by_parser(&[flag, "7"]).1.contains(flag));
        assert!(refused_by_parser(&[flag, "-7d"]).1.contains(flag));
    }
}

#[test]
fn a_missing_value_is_named() {
    assert!(refused(&[]).starts_with("--ingest is missing"));
    assert!(refused(&["--ingest", "1GB/s"]).starts_with("--disk-space is missing"));
    let messages = ["--ingest", "1Mmsg/s", "--disk-space", "20TB"];
    assert!(refused(&messages).starts_with("--message-size is missing"));
}

#[test]
fn a_rate_that_only_a_run_knows_is_no_ingest() {
    for rate in ["max", "20%"] {
        assert!(
            refused_by_parser(&["--ingest", rate])
                .1
                .contains("--ingest")
        );
    }
}

#[test]
fn values_that_contradict_each_other_are_refused_with_both_flags() {
    for (more, flags) in [
        (
            ["--copies", "4", "--brokers", "3"],
            ["--copies", "--brokers"],
        ),
        (
            ["--topic-ingest", "2GB/s", "--readers", "1"],
            ["--topic-ingest", "--ingest"],
        ),
        (
            ["--cold-readers", "3", "--readers", "2"],
            ["--cold-readers", "--readers"],
        ),
        (
            ["--partitions", "5", "--consumer-rate", "50MB/s"],
            ["--partitions", "--consumer-rate"],
        ),
        (
            ["--message-size", "2MB", "--segment-bytes", "1MB"],
            ["--message-size", "--segment-bytes"],
        ),
    ] {
        let arguments: Vec<&str> = LOAD.into_iter().chain(more).collect();
        let error = refused(&arguments);
        for flag in flags {
            assert!(error.contains(flag), "{error}");
        }
    }
}

#[test]
fn the_walkthrough_has_a_load_and_brokers_of_its_own() {
    for more in [["--ingest", "1GB/s"], ["--disk-rate", "1GB/s"]] {
        let (code, error) = refused_by_parser(&["--walkthrough", more[0], more[1]]);
        assert_eq!(code, 2);
        assert!(error.contains(more[0]), "{error}");
    }
}

#[test]
fn the_largest_values_do_not_overflow() {
    let largest = [
        "--ingest",
        "1000TB/s",
        "--peak-factor",
        "100",
        "--copies",
        "100",
        "--readers",
        "10000",
        "--retention",
        "36500d",
        "--disk-space",
        "1B",
        "--disk-rate",
        "1B/s",
        "--cached",
        "36500d",
        "--c-lead",
        "1000s/GB",
        "--c-send",
        "1000s/GB",
        "--c-follow",
        "1000s/GB",
        "--c-fetch",
        "1000s/GB",
        "--request-size",
        "1B",
        "--message-size",
        "1B",
        "--c-request",
        "1000ms",
        "--c-fetch-request",
        "1000ms",
        "--c-partition",
        "1000ms",
        "--headroom",
        "0.01%",
        "--partitions",
        "100000000",
        "--topic-ingest",
        "1MB/s",
        "--cores",
        "1",
    ];
    assert!(sized(&largest).is_ok());
    assert!(refused(&["--ingest", "1001TB/s", "--disk-space", "1TB"]).contains("--ingest"));
}
