//! Data directories that a broker cannot have: it says which and why, and changes nothing.

use std::fs;

use crate::broker::{Broker, Refused, new_directory};
use crate::small_disk::SmallDisk;

fn expect_refused(refused: Result<Broker, Refused>, named: &str) -> String {
    let Err(Refused { code, log }) = refused else {
        panic!("it became ready")
    };
    assert_eq!(code, Some(1), "{log}");
    assert!(log.contains(named), "{named} in:\n{log}");
    assert!(!log.contains("panicked"), "{log}");
    log
}

#[test]
fn a_file_in_the_place_of_the_data_directory_is_named() {
    let parent = new_directory();
    let data = parent.path().join("data");
    fs::write(&data, "precious").unwrap();
    expect_refused(Broker::try_start(&data, &[]), data.to_str().unwrap());
    assert_eq!(fs::read(&data).unwrap(), b"precious");
}

#[test]
fn a_read_only_file_system_is_named() {
    let disk = SmallDisk::new(16 * 1024 * 1024);
    let data = disk.path().join("data");
    fs::create_dir(&data).unwrap();
    disk.make_read_only();
    let log = expect_refused(Broker::try_start(&data, &[]), data.to_str().unwrap());
    assert!(log.to_lowercase().contains("read-only"), "{log}");
}

#[test]
fn a_second_broker_is_told_that_the_first_has_the_directory() {
    let data = new_directory();
    let first = Broker::start(data.path(), &[]);
    let log = expect_refused(
        Broker::try_start(data.path(), &[]),
        data.path().to_str().unwrap(),
    );
    assert!(
        log.contains("in use"),
        "it says that another process has it:\n{log}"
    );
    first
        .client()
        .ask(2, &kafka_protocol::messages::ApiVersionsRequest::default());
    first.stop();
}
