//! A disk without room for a cleaned segment: the log stays as it was, and is compacted once there is room.

use std::fs::File;
use std::io::Write;
use std::thread;
use std::time::{Duration, Instant};

use bytes::Buf;
use corelog::record::header::RecordBatchHeader;

use crate::broker::Broker;
use crate::produce::{batch_of, create_topic, fetch, log_end, produce};
use crate::small_disk::SmallDisk;
use crate::wire::Client;

const DISK_BYTES: u64 = 64 * 1024 * 1024;
const SEGMENT_BYTES: usize = 4 * 1024 * 1024;
const VALUE_BYTES: usize = 200_000;
const RECORD_COUNT: i64 = 60;
/// Longer than a log is left alone after a failure.
const WAIT_MAX: Duration = Duration::from_secs(60);

const FAILURES: &str = "corelog_cleaner_failures_total";
const RUNS: &str = "corelog_cleaner_runs_total";

fn wait_for(broker: &Broker, figure: &str) {
    let deadline = Instant::now() + WAIT_MAX;
    while broker.figure(figure, "") == 0.0 {
        assert!(
            Instant::now() < deadline,
            "{figure} stays 0\n{}",
            broker.log()
        );
        thread::sleep(Duration::from_millis(50));
    }
}

/// The base offsets of all batches that have records.
fn offsets(client: &mut Client) -> Vec<i64> {
    let (mut offsets, mut next, end) = (Vec::new(), 0, log_end(client, "t"));
    while next < end {
        let mut records = fetch(client, "t", next).unwrap().records.unwrap();
        assert!(!records.is_empty(), "nothing at offset {next}");
        while let Ok(header) = RecordBatchHeader::parse(&records) {
            if header.size_bytes() > records.len() {
                break;
            }
            if header.record_count > 0 {
                offsets.push(header.base_offset.0);
            }
            next = header.next_offset().0;
            records.advance(header.size_bytes());
        }
    }
    offsets
}

#[test]
fn a_log_stays_whole_where_the_disk_has_no_room_to_compact_it_and_is_compacted_later() {
    let disk = SmallDisk::new(DISK_BYTES);
    let (data, ballast) = (disk.path().join("data"), disk.path().join("ballast"));
    let cleaner = [
        "log.cleaner.backoff.ms=100",
        "log.cleaner.min.cleanable.ratio=1",
    ];
    let broker = Broker::start(&data, &cleaner);
    let mut client = broker.client();
    let segment_bytes = SEGMENT_BYTES.to_string();
    let settings = [
        ("cleanup.policy", "compact"),
        ("segment.bytes", segment_bytes.as_str()),
    ];
    create_topic(&mut client, "t", 1, &settings);
    for number in 0..RECORD_COUNT {
        let value = vec![number as u8; VALUE_BYTES];
        produce(&mut client, "t", batch_of(&[&value])).unwrap();
    }
    let all: Vec<i64> = (0..RECORD_COUNT).collect();
    assert_eq!(offsets(&mut client), all);
    broker.stop();

    // Too little for a segment, enough for a checkpoint.
    let mut file = File::create(&ballast).unwrap();
    while disk.free_bytes() > SEGMENT_BYTES as u64 / 2 {
        file.write_all(&[0x5a; 256 * 1024]).unwrap();
        file.sync_all().unwrap();
    }
    let broker = Broker::start(
        &data,
        &[
            "log.cleaner.backoff.ms=100",
            "log.cleaner.min.cleanable.ratio=0",
        ],
    );
    wait_for(&broker, FAILURES);
    let mut client = broker.client();
    assert_eq!(offsets(&mut client), all);
    assert!(
        broker.log().contains("compaction failed"),
        "{}",
        broker.log()
    );

    drop(file);
    std::fs::remove_file(&ballast).unwrap();
    wait_for(&broker, RUNS);
    // 20 records fill a segment: of the two sealed ones only the newest record stays, and the active one is whole.
    let left: Vec<i64> = (39..RECORD_COUNT).collect();
    assert_eq!(offsets(&mut client), left);
    broker.stop();
}
