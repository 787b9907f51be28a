//! Topics that are deleted while the broker dies: what a crash leaves of their directories is never a partition of a later topic, and
//! never a reason not to start.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::{ApiKey, DeleteTopicsRequest, ProduceRequest};

use crate::broker::{Broker, WAIT_MAX, new_directory};
use crate::produce::{
    batch_of, create_topic, expect_value, log_end, produce, topic_name, try_create_topic,
};
use crate::wire::{Client, frame_of};

const DELETE_VERSION: i16 = 5;

fn delete_request(topic: &str) -> DeleteTopicsRequest {
    DeleteTopicsRequest::default()
        .with_topic_names(vec![topic_name(topic)])
        .with_timeout_ms(30_000)
}

fn delete_topic(client: &mut Client, topic: &str) {
    let answer = client.ask(DELETE_VERSION, &delete_request(topic));
    assert_eq!(answer.responses[0].error_code, 0);
}

fn copy_directory(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

/// The directories in the data directory whose names end so, sorted.
fn directories(data: &Path, suffix: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(data).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.is_dir() && path.to_str().unwrap().ends_with(suffix));
    paths.sort();
    paths
}

/// How the broker that wrote the deleted topic ended, and so whether there is a checkpoint in what is left of it.
#[derive(Clone, Copy)]
enum End {
    Killed,
    Stopped,
}

/// A data directory in which topic `t` was deleted, by a broker that died before it renamed the directory of `t-0`.
fn delete_and_die_before_the_rename(data: &Path, end: End) {
    let broker = Broker::start(data, &[]);
    let mut client = broker.client();
    create_topic(&mut client, "t", 1, &[]);
    create_topic(&mut client, "other", 1, &[]);
    for topic in ["t", "other"] {
        for value in [b"first", b"other"] {
            produce(&mut client, topic, batch_of(&[value])).unwrap();
        }
    }
    match end {
        End::Killed => broker.kill(),
        End::Stopped => broker.stop(),
    }
    let aside = new_directory();
    copy_directory(&data.join("t-0"), aside.path());
    let broker = Broker::start(data, &[]);
    delete_topic(&mut broker.client(), "t");
    broker.stop();
    copy_directory(aside.path(), &data.join("t-0"));
}

#[test]
fn a_directory_left_of_a_deleted_topic_is_never_the_next_ones_of_that_name() {
    for end in [End::Killed, End::Stopped] {
        let data = new_directory();
        let data = data.path();
        delete_and_die_before_the_rename(data, end);

        let broker = Broker::start(data, &[]);
        let mut client = broker.client();
        assert_eq!(directories(data, "-stray").len(), 1, "{}", broker.log());
        let told: Vec<_> = broker.log().lines().map(str::to_owned).collect();
        let told = told.iter().filter(|line| line.contains("stray")).count();
        assert_eq!(told, 1, "told once\n{}", broker.log());
        create_topic(&mut client, "t", 1, &[]);
        assert_eq!(log_end(&mut client, "t"), 0);
        assert_eq!(produce(&mut client, "t", batch_of(&[b"new"])).unwrap(), 0);
        assert_eq!(log_end(&mut client, "other"), 2);
        broker.kill();

        let broker = Broker::start(data, &[]);
        let mut client = broker.client();
        assert_eq!(log_end(&mut client, "t"), 1);
        expect_value(&mut client, "t", 0, b"new");
        broker.stop();
    }
}

#[test]
fn a_directory_of_another_topic_is_displaced_at_start_and_at_creation() {
    let data = new_directory();
    let data = data.path();
    delete_and_die_before_the_rename(data, End::Stopped);
    let aside = new_directory();
    copy_directory(&data.join("t-0"), aside.path());
    fs::remove_dir_all(data.join("t-0")).unwrap();

    // At creation: it comes to lie there while the broker runs.
    let broker = Broker::start(data, &[]);
    let mut client = broker.client();
    copy_directory(aside.path(), &data.join("t-0"));
    create_topic(&mut client, "t", 1, &[]);
    assert_eq!(log_end(&mut client, "t"), 0);
    assert_eq!(directories(data, "-stray").len(), 1, "{}", broker.log());
    assert_eq!(produce(&mut client, "t", batch_of(&[b"new"])).unwrap(), 0);
    broker.stop();

    // At start: it has the name of a topic that is there.
    fs::remove_dir_all(data.join("t-0")).unwrap();
    copy_directory(aside.path(), &data.join("t-0"));
    let broker = Broker::start(data, &[]);
    let mut client = broker.client();
    assert_eq!(log_end(&mut client, "t"), 0);
    assert_eq!(log_end(&mut client, "other"), 2);
    assert_eq!(directories(data, "-stray").len(), 2, "{}", broker.log());
    assert_eq!(produce(&mut client, "t", batch_of(&[b"new"])).unwrap(), 0);
    broker.stop();
}

#[test]
fn stray_directories_go_after_the_delay_and_nothing_else_does() {
    let data = new_directory();
    let data = data.path();
    delete_and_die_before_the_rename(data, End::Stopped);
    // A copy that somebody made by hand, and a directory that was never a partition's.
    copy_directory(&data.join("other-0"), &data.join("other-copy-1"));
    fs::create_dir(data.join("backup-2024")).unwrap();
    fs::write(data.join("backup-2024/notes.txt"), "precious").unwrap();

    let broker = Broker::start(data, &["log.segment.delete.delay.ms=100"]);
    let deadline = Instant::now() + WAIT_MAX;
    while !directories(data, "-stray").is_empty() || data.join("t-0").exists() {
        assert!(Instant::now() < deadline, "{}", broker.log());
        thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(log_end(&mut broker.client(), "other"), 2);
    broker.stop();
    assert!(data.join("other-copy-1/partition.metadata").exists());
    let notes = fs::read_to_string(data.join("backup-2024/notes.txt"));
    assert_eq!(notes.unwrap(), "precious");
}

/// Whoever put them back in the wrong places finds the records of both topics again.
#[test]
fn a_stray_directory_of_a_topic_that_is_there_is_never_removed() {
    let data = new_directory();
    let data = data.path();
    let broker = Broker::start(data, &[]);
    let mut client = broker.client();
    for topic in ["a", "b"] {
        create_topic(&mut client, topic, 1, &[]);
        produce(&mut client, topic, batch_of(&[topic.as_bytes()])).unwrap();
    }
    create_topic(&mut client, "gone", 1, &[]);
    broker.stop();
    let swap = |first: &str, second: &str| {
        fs::rename(data.join(first), data.join("aside")).unwrap();
        fs::rename(data.join(second), data.join(first)).unwrap();
        fs::rename(data.join("aside"), data.join(second)).unwrap();
    };
    swap("a-0", "b-0");

    // A stray of no topic shows that the time of all three has come.
    let aside = new_directory();
    copy_directory(&data.join("gone-0"), aside.path());
    let broker = Broker::start(data, &[]);
    delete_topic(&mut broker.client(), "gone");
    broker.stop();
    copy_directory(aside.path(), &data.join("gone-0"));
    let settings = &["log.segment.delete.delay.ms=100"];
    let broker = Broker::start(data, settings);
    let deadline = Instant::now() + WAIT_MAX;
    while directories(data, "-stray").len() > 2 || broker.log().matches("is kept").count() < 2 {
        assert!(Instant::now() < deadline, "{}", broker.log());
        thread::sleep(Duration::from_millis(50));
    }
    broker.stop();

    for topic in ["a-0", "b-0"] {
        fs::remove_dir_all(data.join(topic)).unwrap();
    }
    for stray in directories(data, "-stray") {
        let name = stray.file_name().unwrap().to_str().unwrap();
        let right = if name.starts_with("a-0.") {
            "b-0"
        } else {
            "a-0"
        };
        fs::rename(&stray, data.join(right)).unwrap();
    }
    let broker = Broker::start(data, settings);
    let mut client = broker.client();
    for topic in ["a", "b"] {
        expect_value(&mut client, topic, 0, topic.as_bytes());
    }
    broker.stop();
}

#[test]
fn an_older_directory_gets_its_topics_id_at_the_next_start() {
    let data = new_directory();
    let broker = Broker::start(data.path(), &[]);
    let mut client = broker.client();
    create_topic(&mut client, "t", 1, &[]);
    produce(&mut client, "t", batch_of(&[b"kept"])).unwrap();
    broker.kill();
    let file = data.path().join("t-0/partition.metadata");
    let written = fs::read_to_string(&file).unwrap();
    assert!(written.starts_with("version: 0\ntopic_id: "), "{written}");
    for damaged in [None, Some("version: 0\ntopic_id: noise")] {
        match damaged {
            None => fs::remove_file(&file).unwrap(),
            Some(noise) => fs::write(&file, noise).unwrap(),
        }
        let broker = Broker::start(data.path(), &[]);
        expect_value(&mut broker.client(), "t", 0, b"kept");
        broker.kill();
        assert_eq!(fs::read_to_string(&file).unwrap(), written);
    }
    assert_eq!(directories(data.path(), "-stray").len(), 0);
}

#[test]
fn a_directory_that_a_crash_left_half_made_becomes_a_whole_one() {
    let data = new_directory();
    let broker = Broker::start(data.path(), &[]);
    create_topic(&mut broker.client(), "t", 3, &[]);
    broker.kill();
    // Not there at all, empty, and with what was to become its metadata.
    for (partition, left) in [(0, None), (1, Some(None)), (2, Some(Some("version")))] {
        let directory = data.path().join(format!("t-{partition}"));
        fs::remove_dir_all(&directory).unwrap();
        let Some(file) = left else { continue };
        fs::create_dir(&directory).unwrap();
        if let Some(text) = file {
            fs::write(directory.join("partition.metadata.tmp"), text).unwrap();
        }
    }
    let broker = Broker::start(data.path(), &[]);
    assert_eq!(
        produce(&mut broker.client(), "t", batch_of(&[b"first"])).unwrap(),
        0
    );
    broker.stop();
    for partition in 0..3 {
        let directory = data.path().join(format!("t-{partition}"));
        assert!(directory.join("partition.metadata").exists());
        assert!(!directory.join("partition.metadata.tmp").exists());
    }
    assert_eq!(directories(data.path(), "-stray").len(), 0);
}

/// Produces one record to each partition, and demands that it is the first.
fn produce_firsts(client: &mut Client, topic: &str, partitions: i32) {
    let records = (0..partitions).map(|partition| {
        PartitionProduceData::default()
            .with_index(partition)
            .with_records(Some(batch_of(&[b"old"])))
    });
    let topic = TopicProduceData::default()
        .with_name(topic_name(topic))
        .with_partition_data(records.collect());
    let request = ProduceRequest::default()
        .with_acks(-1)
        .with_timeout_ms(30_000)
        .with_topic_data(vec![topic]);
    let answer = client.ask(9, &request);
    let answers = answer.responses[0].partition_responses.iter();
    let offsets: Vec<_> = answers.map(|it| (it.error_code, it.base_offset)).collect();
    assert_eq!(offsets, vec![(0, 0); partitions as usize]);
}

#[test]
fn a_broker_that_is_killed_while_it_deletes_a_topic_gives_its_name_to_an_empty_one() {
    const PARTITIONS: i32 = 40;
    let data = new_directory();
    let mut broker = Broker::start(data.path(), &[]);
    for round in 0..4_u64 {
        let mut client = broker.client();
        create_topic(&mut client, "t", PARTITIONS, &[]);
        produce_firsts(&mut client, "t", PARTITIONS);
        let delete = delete_request("t");
        client.send(&frame_of(
            ApiKey::DeleteTopics as i16,
            DELETE_VERSION,
            1,
            &delete,
        ));
        thread::sleep(Duration::from_millis(5 * round));
        broker.kill();
        broker = Broker::start(data.path(), &[]);
        let mut client = broker.client();
        // Whether the deletion was stored before the end is not known. If it was, all of the topic is gone.
        if try_create_topic(&mut client, "t", PARTITIONS, &[]) == 0 {
            produce_firsts(&mut client, "t", PARTITIONS);
        } else {
            assert_eq!(log_end(&mut client, "t"), 1, "round {round}");
        }
        delete_topic(&mut client, "t");
    }
    broker.stop();
}
