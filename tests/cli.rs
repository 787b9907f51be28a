//! The program as a user runs it: what it prints, on which stream, and how it exits.

use std::path::Path;
use std::process::{Command, Output};

fn corelog(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_corelog"))
        .args(arguments)
        .output()
        .expect("the program starts")
}

fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).expect("output is text")
}

fn stderr(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).expect("output is text")
}

#[test]
fn preflight_exits_by_what_it_found_and_its_json_is_one_document() {
    let parent = tempfile::tempdir().unwrap();
    let data = parent.path().join("data");
    let fine = corelog(&["preflight", "--data", data.to_str().unwrap(), "--json"]);
    assert_eq!(fine.status.code(), Some(0), "{}", stdout(&fine));
    let report: serde_json::Value = serde_json::from_str(stdout(&fine)).unwrap();
    for check in report["checks"].as_array().unwrap() {
        assert!(
            check["check"].is_string() && check["found"].is_string(),
            "{check}"
        );
        assert_eq!(check["fix"].is_null(), check["status"] == "ok", "{check}");
    }

    let file = parent.path().join("file");
    std::fs::write(&file, "").unwrap();
    let failed = corelog(&["preflight", "--data", file.to_str().unwrap()]);
    assert_eq!(failed.status.code(), Some(3));
    assert!(stdout(&failed).contains("FAIL data directory") && stdout(&failed).contains("fix: "));
}

#[test]
fn a_broker_is_refused_where_it_cannot_work() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let refused = corelog(&["broker", "--data", file.path().to_str().unwrap()]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        stderr(&refused).contains("FAIL data directory"),
        "{}",
        stderr(&refused)
    );
}

#[test]
fn a_wrong_setting_exits_with_2_and_is_named_with_its_place() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("broker.properties");
    std::fs::write(&file, "num.partitions=3\nlog.segment.bytes=many\n").unwrap();
    let cases: [(&[&str], &str); 4] = [
        (&["--set", "no.such.setting=1"], "no.such.setting"),
        (&["--set", "num.partitions=x"], "num.partitions"),
        (&["--config", file.to_str().unwrap()], "log.segment.bytes"),
        (
            &["--config", "/no/such/file.properties"],
            "/no/such/file.properties",
        ),
    ];
    for (arguments, named) in cases {
        let refused = corelog(&[&["broker"], arguments].concat());
        assert_eq!(
            refused.status.code(),
            Some(2),
            "{arguments:?}: {}",
            stderr(&refused)
        );
        assert!(
            stderr(&refused).contains(named),
            "{arguments:?}: {}",
            stderr(&refused)
        );
        assert!(stdout(&refused).is_empty());
    }
    assert!(
        !Path::new("corelog-data").exists(),
        "a refused broker makes no directory"
    );
}

#[test]
fn everything_wrong_in_a_file_is_told_in_one_go() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("server.properties");
    std::fs::write(
        &file,
        "num.partitions=x\nssl.keystore.type=JKS\nlog.segmant.bytes=1\n",
    )
    .unwrap();
    let refused = corelog(&["broker", "--config", file.to_str().unwrap()]);
    assert_eq!(refused.status.code(), Some(2));
    let told = stderr(&refused);
    for part in [
        "2 settings are wrong",
        "line 1: num.partitions=x",
        "line 3: unknown setting",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
}

#[test]
fn config_lists_every_setting_as_text_and_as_json() {
    let json = corelog(&["config", "--json"]);
    let settings: serde_json::Value = serde_json::from_str(stdout(&json)).unwrap();
    let text = corelog(&["config"]);
    for setting in settings.as_array().unwrap() {
        let name = setting["name"].as_str().unwrap();
        assert!(stdout(&text).contains(&format!("{name} = ")), "{name}");
    }
}

#[test]
fn a_reader_that_closes_early_is_no_error() {
    let piped = Command::new("sh")
        .args([
            "-c",
            "\"$0\" config | head -n 1",
            env!("CARGO_BIN_EXE_corelog"),
        ])
        .output()
        .unwrap();
    assert!(stderr(&piped).is_empty(), "{}", stderr(&piped));
    assert_eq!(stdout(&piped).lines().count(), 1);
}

#[test]
fn wrong_arguments_exit_with_2() {
    for arguments in [&["frobnicate"][..], &["broker", "--no-such-flag"], &[]] {
        assert_eq!(corelog(arguments).status.code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn config_without_a_command_lists_as_config_list_does() {
    let listed = corelog(&["config", "list"]);
    assert_eq!(listed.status.code(), Some(0));
    assert_eq!(stdout(&listed), stdout(&corelog(&["config"])));
    let json = corelog(&["config", "list", "--json"]);
    assert_eq!(stdout(&json), stdout(&corelog(&["config", "--json"])));
}

#[test]
fn completions_of_every_shell_know_the_commands() {
    for shell in ["bash", "zsh", "fish"] {
        let script = corelog(&["completions", shell]);
        assert_eq!(script.status.code(), Some(0), "{shell}");
        for word in ["topic", "reset-offsets", "until-end", "preflight"] {
            assert!(stdout(&script).contains(word), "{shell}: {word}");
        }
    }
}

#[test]
fn a_cluster_that_cannot_be_reached_exits_with_1_and_is_named() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap().to_string();
    drop(free);
    let commands: [&[&str]; 5] = [
        &["topic", "list"],
        &["config", "describe", "--topic", "t"],
        &["group", "list"],
        &["consume", "t"],
        &["produce", "t"],
    ];
    for command in commands {
        let refused = corelog(&[command, &["--bootstrap", &address]].concat());
        assert_eq!(refused.status.code(), Some(1), "{command:?}");
        assert!(
            stderr(&refused).contains(&address),
            "{command:?}: {}",
            stderr(&refused)
        );
        assert!(stdout(&refused).is_empty());
    }
}

#[test]
fn a_peer_that_speaks_another_protocol_is_no_broker() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        // It may have gone by now.
        let _ = std::io::Write::write_all(&mut stream, b"HTTP/1.1 400 Bad Request\r\n\r\n");
    });
    let refused = corelog(&["topic", "list", "--bootstrap", &address]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        stderr(&refused).contains("not a Kafka response"),
        "{}",
        stderr(&refused)
    );
}
