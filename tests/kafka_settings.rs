//! Every setting of Apache Kafka's broker is known here: served, without effect, or refused with a reason. Kafka's own class lists them.
//!
//! Needs `CORELOG_KAFKA_LIBS`, a directory with the jars of Kafka 4.4 (`scripts/test` installs them), and Java.

use std::process::Command;

use corelog::config::Loaded;

/// The names that the page of settings has, which Kafka makes from its own definitions.
fn settings_of_kafka() -> Vec<String> {
    let libs = std::env::var("CORELOG_KAFKA_LIBS").expect(
        "CORELOG_KAFKA_LIBS names a directory with Kafka's jars; scripts/test installs them and sets it",
    );
    let page = Command::new("java")
        .args(["-cp", &format!("{libs}/*"), "kafka.server.KafkaConfig"])
        .output()
        .expect("java starts");
    let page = String::from_utf8(page.stdout).expect("the page is text");
    page.split("<h4><a id=\"")
        .skip(1)
        .map(|rest| rest.split('"').next().unwrap_or_default().to_owned())
        .collect()
}

#[test]
fn no_setting_of_apache_kafka_is_unknown() {
    let names = settings_of_kafka();
    assert!(names.len() > 300, "{} settings", names.len());
    assert!(names.iter().any(|name| name == "num.network.threads"));
    for name in names {
        let given = Loaded::from_command_line(None, &[format!("{name}=x")], None);
        if let Err(error) = given {
            let told = error.to_string();
            assert!(!told.contains("unknown setting"), "{told}");
            assert!(told.starts_with(&format!("{name}=x: ")), "{told}");
        }
    }
    let unknown = Loaded::from_command_line(None, &["num.network.thread=x".to_owned()], None);
    assert!(
        unknown.unwrap_err().to_string().contains("unknown setting"),
        "the oracle tells known names from unknown ones"
    );
}
