//! A wall clock that is set wrong, and set right again: nothing goes that would not be due without it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::broker::{Broker, WAIT_MAX, new_directory};
use crate::groups::{commit, commit_for, committed, find_coordinator};
use crate::produce::create_topic;
use crate::retention::{LOOK_OFTEN, await_log_start, log_start, produce_aged};
use crate::settings::{alter_brokers, alter_topic};
use crate::wire::Client;

const DAY_S: i64 = 24 * 3_600;
const SMALLEST_SEGMENT: (&str, &str) = ("segment.bytes", "1048576");

/// The wall clock of a broker, and of that alone.
struct WallClock {
    library: PathBuf,
    off_by: PathBuf,
    _directory: TempDir,
}

impl WallClock {
    fn new() -> Self {
        let directory = new_directory();
        let (library, off_by) = (
            directory.path().join("clock.so"),
            directory.path().join("off-by"),
        );
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/adversity/wall_clock.c");
        let built = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-o"])
            .args([&library, &source])
            .arg("-ldl")
            .status();
        assert!(
            built.unwrap().success(),
            "cc, which links Rust programs too"
        );
        let clock = Self {
            library,
            off_by,
            _directory: directory,
        };
        clock.set(0);
        clock
    }

    fn set(&self, off_by_s: i64) {
        let next = self.off_by.with_extension("next");
        fs::write(&next, off_by_s.to_string()).unwrap();
        fs::rename(next, &self.off_by).unwrap();
    }

    fn start(&self, data: &Path, settings: &[&str]) -> Broker {
        let environment = [
            ("LD_PRELOAD", self.library.as_path()),
            ("CORELOG_TEST_CLOCK_FILE", self.off_by.as_path()),
        ];
        Broker::try_start_with(data, settings, &environment).unwrap()
    }
}

fn await_held_ms(broker: &Broker, is_held: bool) {
    let deadline = Instant::now() + WAIT_MAX;
    while (broker.figure("corelog_clock_held_ms", "") > 0.0) != is_held {
        assert!(Instant::now() < deadline, "{}", broker.log());
        thread::sleep(Duration::from_millis(20));
    }
}

/// Every shard sees a jump by itself; one of them tells.
fn await_log(broker: &Broker, told: &str) {
    let deadline = Instant::now() + WAIT_MAX;
    while !broker.log().contains(told) {
        assert!(Instant::now() < deadline, "{}", broker.log());
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_clock_that_jumps_days_ahead_deletes_nothing_by_age_until_it_is_believed() {
    let clock = WallClock::new();
    let data = new_directory();
    let broker = clock.start(data.path(), &[LOOK_OFTEN]);
    let mut client = broker.client();
    let by_age = [SMALLEST_SEGMENT, ("retention.ms", "86400000")];
    create_topic(&mut client, "t", 1, &by_age);
    create_topic(
        &mut client,
        "by-size",
        1,
        &[SMALLEST_SEGMENT, ("retention.ms", "-1")],
    );
    for topic in ["t", "by-size"] {
        produce_aged(&mut client, topic, &[0; 4]);
    }
    await_held_ms(&broker, false);

    clock.set(3 * DAY_S);
    await_held_ms(&broker, true);
    await_log(&broker, "the wall clock has jumped ahead");
    // Retention goes on meanwhile: by size at once, and by age for what is old without the jump.
    alter_topic(&mut client, "by-size", &[("retention.bytes", "600000")]);
    await_log_start(&broker, &mut client, "by-size", 3);
    create_topic(&mut client, "old", 1, &by_age);
    produce_aged(&mut client, "old", &[2 * DAY_S * 1_000, 0]);
    await_log_start(&broker, &mut client, "old", 1);
    assert_eq!(log_start(&mut client, "t"), 0);

    // Set right again, there is nothing to hold back any more.
    clock.set(0);
    await_held_ms(&broker, false);
    await_log(&broker, "the wall clock was set back");
    alter_topic(&mut client, "by-size", &[("retention.bytes", "0")]);
    await_log_start(&broker, &mut client, "by-size", 4);
    assert_eq!(log_start(&mut client, "t"), 0);

    // A jump that lasts is believed in the end.
    clock.set(3 * DAY_S);
    await_held_ms(&broker, true);
    alter_brokers(&mut client, &[("log.retention.clock.jump.hold.ms", "0")]);
    await_log_start(&broker, &mut client, "t", 4);
    await_held_ms(&broker, false);
}

fn await_expired(broker: &Broker, client: &mut Client, group: &str) {
    let deadline = Instant::now() + WAIT_MAX;
    while committed(client, group, "t") != -1 {
        assert!(Instant::now() < deadline, "{}", broker.log());
        thread::sleep(Duration::from_millis(10));
    }
}

/// Waits until a sweep that began from now on has looked at all groups.
fn await_sweep(broker: &Broker, client: &mut Client) {
    for _ in 0..2 {
        commit_for(client, "probe", "t", 1);
        await_expired(broker, client, "probe");
    }
}

#[test]
fn a_clock_that_jumps_ahead_or_back_expires_no_committed_offset() {
    let clock = WallClock::new();
    let data = new_directory();
    let settings = [
        LOOK_OFTEN,
        "cores=0",
        "offsets.topic.num.partitions=1",
        "offsets.retention.minutes=10080",
        "offsets.retention.check.interval.ms=100",
    ];
    let broker = clock.start(data.path(), &settings);
    let mut client = broker.client();
    create_topic(&mut client, "t", 1, &[]);
    find_coordinator(&mut client, "before");
    assert_eq!(commit(&mut client, "before", "t", 0, 7), 0);
    await_held_ms(&broker, false);

    // What is due by the time that has passed goes meanwhile, and nothing else.
    commit_for(&mut client, "due", "t", 2_000);
    clock.set(10 * DAY_S);
    await_held_ms(&broker, true);
    await_expired(&broker, &mut client, "due");
    assert_eq!(committed(&mut client, "before", "t"), 7);
    clock.set(0);
    await_held_ms(&broker, false);

    // An offset that is committed while the clock is set back is not ten days old when it is set right.
    clock.set(-10 * DAY_S);
    await_log(&broker, "the wall clock was set back");
    assert_eq!(commit(&mut client, "meanwhile", "t", 0, 8), 0);
    clock.set(0);
    await_held_ms(&broker, true);
    alter_brokers(&mut client, &[("log.retention.clock.jump.hold.ms", "0")]);
    await_held_ms(&broker, false);
    await_sweep(&broker, &mut client);
    assert_eq!(committed(&mut client, "meanwhile", "t"), 8);
    assert_eq!(committed(&mut client, "before", "t"), 7);
}
