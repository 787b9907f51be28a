//! Topics that are created on a disk without room for a directory: clients are told, nothing else suffers, and the partitions are made
//! by themselves when there is space.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use kafka_protocol::ResponseError::{
    CoordinatorLoadInProgress, CoordinatorNotAvailable, KafkaStorageError, TopicAlreadyExists,
};
use kafka_protocol::messages::create_partitions_request::CreatePartitionsTopic;
use kafka_protocol::messages::{
    CreatePartitionsRequest, DeleteTopicsRequest, FindCoordinatorRequest,
};
use kafka_protocol::protocol::StrBytes;

use crate::broker::{Broker, WAIT_MAX};
use crate::groups::commit;
use crate::produce::{
    batch_of, create_topic, expect_value, fetch, log_end, produce, topic_name, try_create_topic,
};
use crate::settings::{alter_topic, try_alter_topic};
use crate::small_disk::SmallDisk;
use crate::wire::Client;

const DISK_BYTES: u64 = 64 * 1024 * 1024;

/// Takes the last block of the disk.
fn fill(ballast: &Path) {
    let mut file = File::create(ballast).unwrap();
    for piece_bytes in [1 << 20, 1 << 16, 1 << 12] {
        let piece = vec![0x5a; piece_bytes];
        while file.write_all(&piece).is_ok() {}
    }
    file.sync_all().unwrap();
    while file.write_all(&[0x5a; 4096]).is_ok() {}
}

fn until(broker: &Broker, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + WAIT_MAX;
    while !holds() {
        assert!(Instant::now() < deadline, "{}", broker.log());
        thread::sleep(Duration::from_millis(50));
    }
}

/// A broker on a disk that was filled after its first topic got a record.
fn start_and_fill(data: &Path, ballast: &Path, settings: &[&str]) -> Broker {
    let broker = Broker::start(data, settings);
    let mut client = broker.client();
    create_topic(&mut client, "first", 1, &[]);
    produce(&mut client, "first", batch_of(&[b"kept"])).unwrap();
    fill(ballast);
    broker
}

/// A topic that is stored and whose only partition could not be made. What the broker gives back of its prepared space may be just enough
/// for one: then the disk is filled again, and another topic is tried.
fn create_without_room(client: &mut Client, ballast: &Path, name: &str) -> String {
    for attempt in 0..20 {
        let topic = format!("{name}-{attempt}");
        let code = try_create_topic(client, &topic, 1, &[]);
        if code == KafkaStorageError.code() {
            return topic;
        }
        assert_eq!(code, 0, "{topic}");
        fill(&ballast.with_extension(&topic));
    }
    panic!("the disk is never full")
}

fn empty(ballast: &Path) {
    for entry in fs::read_dir(ballast.parent().unwrap()).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            fs::remove_file(path).unwrap();
        }
    }
}

#[test]
fn a_topic_without_directories_is_no_success_and_is_made_when_space_returns() {
    let disk = SmallDisk::new(DISK_BYTES);
    let (data, ballast) = (disk.path().join("data"), disk.path().join("ballast"));
    let broker = start_and_fill(&data, &ballast, &[]);
    let mut client = broker.client();
    let second = create_without_room(&mut client, &ballast, "second");
    // Who tries again is told that there is nothing left to do.
    let again = try_create_topic(&mut client, &second, 1, &[]);
    assert_eq!(again, TopicAlreadyExists.code());
    let refused = produce(&mut client, &second, batch_of(&[b"x"])).unwrap_err();
    assert_eq!(refused.error_code, KafkaStorageError.code(), "{refused:?}");
    let refused = fetch(&mut client, &second, 0).unwrap_err();
    assert_eq!(refused, KafkaStorageError.code());
    expect_value(&mut client, "first", 0, b"kept");
    let more = CreatePartitionsTopic::default()
        .with_name(topic_name("first"))
        .with_count(200)
        .with_assignments(None);
    let request = CreatePartitionsRequest::default()
        .with_topics(vec![more])
        .with_timeout_ms(30_000);
    let answer = client.ask(3, &request);
    let answer = &answer.results[0];
    assert_eq!(answer.error_code, KafkaStorageError.code(), "{answer:?}");
    until(&broker, || broker.metric("corelog_partitions_not_open") > 0);

    empty(&ballast);
    until(&broker, || {
        produce(&mut client, &second, batch_of(&[b"new"])).is_ok()
    });
    assert_eq!(log_end(&mut client, &second), 1);
    // The image was not left behind: what is created next is there at once.
    create_topic(&mut client, "third", 2, &[]);
    assert_eq!(produce(&mut client, "third", batch_of(&[b"x"])).unwrap(), 0);
    until(&broker, || {
        broker.metric("corelog_partitions_not_open") == 0
    });
    assert!(data.join("first-199/partition.metadata").exists());
    broker.stop();
    let broker = Broker::start(&data, &[]);
    expect_value(&mut broker.client(), &second, 0, b"new");
    broker.stop();
}

/// A topic can be deleted on a full disk, which may be what makes room again; so the zeros ahead in the metadata log outlast a change that
/// is too large for them.
#[test]
fn a_change_that_finds_no_room_leaves_room_for_a_deletion() {
    let disk = SmallDisk::new(DISK_BYTES);
    let (data, ballast) = (disk.path().join("data"), disk.path().join("ballast"));
    let broker = start_and_fill(&data, &ballast, &[]);
    let mut client = broker.client();
    let number = format!("{:032000}", 2_000_000);
    let names = [
        "delete.retention.ms",
        "file.delete.delay.ms",
        "flush.ms",
        "max.compaction.lag.ms",
        "message.timestamp.after.max.ms",
        "message.timestamp.before.max.ms",
        "retention.bytes",
        "retention.ms",
        "segment.ms",
        "segment.bytes",
    ];
    let settings = names.map(|name| (name, &number[..]));
    let answer = try_alter_topic(&mut client, "first", &settings);
    assert_eq!(answer.error_code, KafkaStorageError.code(), "{answer:?}");
    fill(&ballast.with_extension("more"));
    // It takes more than what is left of the log's last block.
    alter_topic(&mut client, "first", &settings[..1]);
    let request = DeleteTopicsRequest::default()
        .with_topic_names(vec![topic_name("first")])
        .with_timeout_ms(30_000);
    let code = client.ask(5, &request).responses[0].error_code;
    assert_eq!(code, 0, "{}", broker.log());
    broker.stop();
}

#[test]
fn a_broker_starts_though_the_disk_has_no_room_for_a_topics_directories() {
    const TOPICS: usize = 100;
    let disk = SmallDisk::new(DISK_BYTES);
    let (data, ballast) = (disk.path().join("data"), disk.path().join("ballast"));
    let broker = start_and_fill(&data, &ballast, &[]);
    let mut client = broker.client();
    let topics: Vec<String> = (0..TOPICS)
        .map(|number| create_without_room(&mut client, &ballast, &format!("t{number}")))
        .collect();
    broker.kill();
    // What the killed broker had prepared ahead is free again; take that too.
    fill(&ballast.with_extension("more"));
    let broker = Broker::start(&data, &[]);
    let mut client = broker.client();
    expect_value(&mut client, "first", 0, b"kept");
    assert!(broker.log().contains("partitions could not be opened"));
    empty(&ballast);
    for topic in &topics {
        until(&broker, || {
            produce(&mut client, topic, batch_of(&[b"new"])).is_ok()
        });
    }
    until(&broker, || {
        broker.metric("corelog_partitions_not_open") == 0
    });
    broker.stop();
}

#[test]
fn groups_wait_for_the_topic_of_offsets_on_a_full_disk_and_go_on_when_space_returns() {
    let disk = SmallDisk::new(DISK_BYTES);
    let (data, ballast) = (disk.path().join("data"), disk.path().join("ballast"));
    let broker = start_and_fill(&data, &ballast, &["offsets.topic.num.partitions=4"]);
    let mut client = broker.client();
    let find = FindCoordinatorRequest::default().with_key(StrBytes::from_static_str("group"));
    let found = client.ask(2, &find).error_code;
    assert!(
        [0, CoordinatorNotAvailable.code()].contains(&found),
        "{found}\n{}",
        broker.log()
    );
    let waits = [
        CoordinatorNotAvailable.code(),
        CoordinatorLoadInProgress.code(),
    ];
    let code = commit(&mut client, "group", "first", 0, 1);
    assert!(waits.contains(&code), "{code}\n{}", broker.log());

    empty(&ballast);
    until(&broker, || {
        let code = commit(&mut client, "group", "first", 0, 1);
        assert!(code == 0 || waits.contains(&code), "{code}");
        code == 0
    });
    assert_eq!(client.ask(2, &find).error_code, 0);
    broker.stop();
}
