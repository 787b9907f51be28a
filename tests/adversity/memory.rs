//! A broker in a control group with little memory, as in a container: it lives, whatever is written and read.

use std::fs;
use std::path::{Path, PathBuf};
use std::process;
use std::thread;
use std::time::{Duration, Instant};

use crate::broker::{Broker, Refused, corelog, new_directory};
use crate::produce::{batch_of, create_topic, fetch, log_end, produce};
use crate::small_disk::{as_root, run};

const MIB: u64 = 1024 * 1024;

/// A group of control groups' first version, of which there is one at a time in this process.
struct MemoryGroup {
    directory: PathBuf,
}

impl MemoryGroup {
    /// `None` where the machine has only version 2, in which nobody may make a group beside those that a service manager made.
    fn new(name: &str, limit_bytes: u64) -> Option<Self> {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let mount = mounts.lines().find_map(|line| {
            let (mount, kind) = line.split_once(" - ")?;
            let is_it = kind.starts_with("cgroup ") && kind.ends_with(",memory");
            is_it.then(|| PathBuf::from(mount.split(' ').nth(4).unwrap()))
        })?;
        let directory = mount.join(format!("corelog-test-{name}-{}", process::id()));
        run(as_root("mkdir").arg(&directory));
        let group = Self { directory };
        let line = format!(
            "echo {limit_bytes} > {}",
            group.file("memory.limit_in_bytes").display()
        );
        run(as_root("sh").args(["-c", &line]));
        run(as_root("chmod").arg("666").arg(group.file("cgroup.procs")));
        Some(group)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    fn start(&self, data: &Path, settings: &[&str]) -> Result<Broker, Refused> {
        let enter = format!("echo $$ > {}", self.file("cgroup.procs").display());
        Broker::try_start_limited(&enter, data, settings)
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        // A killed process leaves its group a moment later.
        let deadline = Instant::now() + Duration::from_secs(10);
        while as_root("rmdir")
            .arg(&self.directory)
            .output()
            .unwrap()
            .status
            .code()
            != Some(0)
        {
            if Instant::now() > deadline {
                return;
            }
            thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn a_broker_in_a_small_container_lives_however_much_is_written_and_read() {
    const LIMIT_BYTES: u64 = 400 * MIB;
    const WRITTEN_BYTES: u64 = 600 * MIB;
    const BATCH_BYTES: usize = 1_000_000;
    const WRITERS: u64 = 4;
    let Some(group) = MemoryGroup::new("lives", LIMIT_BYTES) else {
        eprintln!("not tested: this machine has no control groups of version 1");
        return;
    };
    let directory = new_directory();
    let broker = group.start(directory.path(), &["cores=0,1"]).unwrap();
    create_topic(&mut broker.client(), "t", 1, &[]);
    let batch = batch_of(&[&vec![b'v'; BATCH_BYTES]]);
    let batches = WRITTEN_BYTES / BATCH_BYTES as u64;
    thread::scope(|scope| {
        for _ in 0..WRITERS {
            scope.spawn(|| {
                let mut client = broker.client();
                for _ in 0..batches / WRITERS {
                    produce(&mut client, "t", batch.clone()).unwrap();
                }
            });
        }
    });
    let mut client = broker.client();
    let end = log_end(&mut client, "t");
    assert_eq!(end as u64, batches / WRITERS * WRITERS);
    for offset in 0..end {
        let records = fetch(&mut client, "t", offset).unwrap().records.unwrap();
        assert!(records.len() > BATCH_BYTES / 2);
    }
    assert!(broker.figure("corelog_memory_budget_bytes", "") <= LIMIT_BYTES as f64);
    let tail_bytes = broker.figure("corelog_memory_budget_bytes", "part=\"tail_cache\"");
    assert!(
        tail_bytes > 0.0 && tail_bytes < LIMIT_BYTES as f64 / 8.0,
        "{tail_bytes}"
    );
    broker.stop();
}

#[test]
fn a_container_that_is_too_small_for_a_broker_is_refused_with_what_is_needed() {
    let Some(group) = MemoryGroup::new("small", 128 * MIB) else {
        eprintln!("not tested: this machine has no control groups of version 1");
        return;
    };
    let directory = new_directory();
    let refused = group.start(directory.path(), &["cores=0,1"]);
    let refused = refused.err().expect("128 MiB are too little");
    assert_eq!(refused.code, Some(1), "{}", refused.log);
    for told in ["128 MiB", "memory.limit_in_bytes", "at least"] {
        assert!(refused.log.contains(told), "{}", refused.log);
    }
}

#[test]
fn a_tail_cache_that_does_not_fit_into_the_memory_is_told() {
    let directory = new_directory();
    let setting = "log.tail.cache.bytes=9000000000000";
    let broker = Broker::start(directory.path(), &[setting]);
    assert!(
        broker
            .log()
            .contains("log.tail.cache.bytes=9000000000000 does not fit"),
        "{}",
        broker.log()
    );
    broker.stop();
}

#[test]
fn preflight_tells_how_memory_and_descriptors_are_divided() {
    let directory = new_directory();
    let output = corelog(&["preflight", "--data", directory.path().to_str().unwrap()]);
    let told = String::from_utf8(output.stdout).unwrap();
    for part in ["tail cache", "requests", "replies", "for segment files"] {
        assert!(told.contains(part), "{told}");
    }
}
