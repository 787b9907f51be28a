//! A roll to the next segment that fails for want of space: what is confirmed after it in the old segment is there after a restart.

use std::fs::File;
use std::path::{Path, PathBuf};

use corelog::record::header::RecordBatchHeader;
use kafka_protocol::ResponseError::KafkaStorageError;

use crate::broker::Broker;
use crate::produce::{batch_of, create_topic, fetch, log_end, produce};
use crate::small_disk::SmallDisk;
use crate::wire::Client;

const DISK_BYTES: u64 = 64 * 1024 * 1024;
/// Larger than what the disk guard keeps free, so that the next segment may find no room although batches are taken.
const SEGMENT_SETTING: &str = "log.segment.bytes=16777216";
const LARGE_BYTES: usize = 200_000;
const SMALL_BYTES: usize = 500;
/// What is left to the active segment and to nothing as large as a segment.
const LEFT_BYTES: u64 = 15 * 1024 * 1024;

/// The nth record's value: told apart from every other's.
fn value(number: i64, size_bytes: usize) -> Vec<u8> {
    let mut value = vec![number as u8; size_bytes];
    value[..8].copy_from_slice(&number.to_be_bytes());
    value
}

fn confirm(client: &mut Client, next: &mut i64, size_bytes: usize) -> Result<(), i16> {
    match produce(client, "t", batch_of(&[&value(*next, size_bytes)])) {
        Ok(offset) => {
            assert_eq!(offset, *next);
            *next += 1;
            Ok(())
        }
        Err(refusal) => Err(refusal.error_code),
    }
}

/// Reads from `from` on and demands every record up to `end`, each with its own value.
fn expect_records(client: &mut Client, end: i64) {
    assert_eq!(log_end(client, "t"), end);
    let mut next = 0;
    while next < end {
        let mut records = fetch(client, "t", next).unwrap().records.unwrap();
        assert!(!records.is_empty(), "nothing at offset {next} of {end}");
        while !records.is_empty() {
            let header = RecordBatchHeader::parse(&records).unwrap();
            if records.len() < header.size_bytes() {
                break;
            }
            let batch = records.split_to(header.size_bytes());
            assert_eq!(header.base_offset.0, next);
            let number = next.to_be_bytes();
            assert!(
                batch.windows(8).any(|window| window == number),
                "record {next} is another one"
            );
            next += 1;
        }
    }
}

/// A broker whose active segment holds small batches that were confirmed after a large one found no room for the next segment.
struct FailedRoll {
    disk: SmallDisk,
    data: PathBuf,
    ballast: PathBuf,
    broker: Broker,
    confirmed: i64,
}

impl FailedRoll {
    fn new() -> Self {
        let disk = SmallDisk::new(DISK_BYTES);
        let (data, ballast) = (disk.path().join("data"), disk.path().join("ballast"));
        let broker = Broker::start(&data, &[SEGMENT_SETTING]);
        let mut client = broker.client();
        create_topic(&mut client, "t", 1, &[]);
        let mut next = 0;
        for _ in 0..35 {
            confirm(&mut client, &mut next, LARGE_BYTES).unwrap();
        }
        leave_free(&disk, &ballast, LEFT_BYTES);
        let refusal = loop {
            if let Err(code) = confirm(&mut client, &mut next, LARGE_BYTES) {
                break code;
            }
            assert!(next < 200, "no roll was due");
        };
        assert_eq!(refusal, KafkaStorageError.code());
        let names = std::fs::read_dir(data.join("t-0")).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let segments: Vec<_> = names.filter(|name| name.ends_with(".log")).collect();
        assert_eq!(segments.len(), 1, "{segments:?}");
        for _ in 0..20 {
            let small = confirm(&mut client, &mut next, SMALL_BYTES);
            assert_eq!(small, Ok(()), "{}", broker.log());
        }
        Self {
            disk,
            data,
            ballast,
            broker,
            confirmed: next,
        }
    }
}

/// Takes what is free of the disk but for `left_bytes`.
fn leave_free(disk: &SmallDisk, ballast: &Path, left_bytes: u64) {
    let file = File::create(ballast).unwrap();
    let take_bytes = disk.free_bytes() - left_bytes;
    rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, take_bytes).unwrap();
    file.sync_all().unwrap();
}

#[test]
fn what_is_confirmed_after_a_roll_that_failed_outlives_a_clean_restart() {
    let roll = FailedRoll::new();
    expect_records(&mut roll.broker.client(), roll.confirmed);
    roll.broker.stop();
    let broker = Broker::start(&roll.data, &[SEGMENT_SETTING]);
    expect_records(&mut broker.client(), roll.confirmed);
    broker.stop();
    drop(roll.disk);
}

#[test]
fn what_is_confirmed_after_a_roll_that_failed_outlives_a_kill() {
    let roll = FailedRoll::new();
    roll.broker.kill();
    let broker = Broker::start(&roll.data, &[SEGMENT_SETTING]);
    expect_records(&mut broker.client(), roll.confirmed);
    broker.stop();
    drop(roll.disk);
}

#[test]
fn a_roll_that_follows_one_that_failed_leaves_every_offset_readable() {
    let FailedRoll {
        disk,
        data,
        ballast,
        broker,
        confirmed,
    } = FailedRoll::new();
    std::fs::remove_file(&ballast).unwrap();
    let mut client = broker.client();
    let mut next = confirmed;
    for _ in 0..3 {
        confirm(&mut client, &mut next, LARGE_BYTES).unwrap();
    }
    expect_records(&mut client, next);
    broker.stop();
    let broker = Broker::start(&data, &[SEGMENT_SETTING]);
    let mut client = broker.client();
    expect_records(&mut client, next);
    confirm(&mut client, &mut next, SMALL_BYTES).unwrap();
    broker.stop();
    drop(disk);
}
