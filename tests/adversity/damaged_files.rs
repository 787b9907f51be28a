//! Files that were damaged while the broker was away: never served as good, never a silent empty broker, and never a reason to refuse
//! what is whole.

use std::fs::{self, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use corelog::record::header::RecordBatchHeader;

use crate::broker::{Broker, Refused, corelog, new_directory};
use crate::produce::{
    batch_of, create_topic, expect_value, fetch, list_offset, log_end, now, produce,
};
use crate::wire::Client;

const BATCHES: i64 = 60;
const VALUE_BYTES: usize = 100_000;

/// Kafka's smallest: ten batches fill one.
const SEGMENT_BYTES: &str = "log.segment.bytes=1048576";

fn value(number: i64) -> Vec<u8> {
    vec![number as u8; VALUE_BYTES]
}

/// A broker that wrote several segments of topic `t`.
fn start_with_batches(data: &Path) -> Broker {
    let broker = Broker::start(data, &[SEGMENT_BYTES]);
    let mut client = broker.client();
    create_topic(&mut client, "t", 1, &[]);
    for number in 0..BATCHES {
        assert_eq!(
            produce(&mut client, "t", batch_of(&[&value(number)])).unwrap(),
            number
        );
    }
    broker
}

fn files(data: &Path, suffix: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(data.join("t-0"))
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = entries
        .filter(|path| path.to_str().unwrap().ends_with(suffix))
        .collect();
    files.sort();
    files
}

fn flip_bit(path: &Path, position: u64) {
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .unwrap();
    let mut byte = [0];
    file.seek(SeekFrom::Start(position)).unwrap();
    file.read_exact(&mut byte).unwrap();
    byte[0] ^= 0x10;
    file.seek(SeekFrom::Start(position)).unwrap();
    file.write_all(&byte).unwrap();
}

/// The metadata log keeps zeros ready behind its end.
fn used_bytes(file: &[u8]) -> usize {
    file.iter().rposition(|byte| *byte != 0).unwrap() + 1
}

fn batch_at(records: &Bytes) -> (RecordBatchHeader, &[u8]) {
    let header = RecordBatchHeader::parse(records).unwrap();
    (header, &records[..header.size_bytes()])
}

fn expect_batch(client: &mut Client, number: i64) {
    expect_value(client, "t", number, &value(number));
}

#[test]
fn a_damaged_batch_at_the_end_is_cut_with_all_behind_it_and_the_log_says_so() {
    let data = new_directory();
    start_with_batches(data.path()).kill();
    let last_segment = files(data.path(), ".log").pop().unwrap();
    let base: i64 = last_segment
        .file_stem()
        .unwrap()
        .to_str()
        .unwrap()
        .parse()
        .unwrap();
    // In the value of the last batch but one: behind every recovery point, and with a good batch behind it.
    let damaged = BATCHES - 2;
    assert!(base < damaged, "the last segment starts at {base}");
    let batch_bytes = batch_of(&[&value(0)]).len() as u64;
    flip_bit(&last_segment, (damaged - base) as u64 * batch_bytes + 1_000);

    let broker = Broker::start(data.path(), &[SEGMENT_BYTES]);
    let log = broker.log();
    assert!(
        log.contains(last_segment.to_str().unwrap()) && log.contains("cut"),
        "{log}"
    );
    let mut client = broker.client();
    assert_eq!(log_end(&mut client, "t"), damaged);
    for number in 0..damaged {
        expect_batch(&mut client, number);
    }
    // New records take the place of what was cut, over its old bytes, and no old one comes back.
    assert_eq!(
        produce(&mut client, "t", batch_of(&[&value(damaged)])).unwrap(),
        damaged
    );
    broker.kill();
    let broker = Broker::start(data.path(), &[SEGMENT_BYTES]);
    let mut client = broker.client();
    assert_eq!(log_end(&mut client, "t"), damaged + 1);
    expect_batch(&mut client, damaged);
    broker.stop();
}

#[test]
fn a_damaged_batch_in_a_closed_segment_is_found_by_verify_and_its_neighbours_are_served() {
    let data = new_directory();
    start_with_batches(data.path()).stop();
    let segments = files(data.path(), ".log");
    assert!(segments.len() >= 4, "{segments:?}");
    let base: i64 = segments[1]
        .file_stem()
        .unwrap()
        .to_str()
        .unwrap()
        .parse()
        .unwrap();
    let verify = || corelog(&["log", "verify", data.path().join("t-0").to_str().unwrap()]);
    assert_eq!(
        verify().status.code(),
        Some(0),
        "{verify:?}",
        verify = verify()
    );
    flip_bit(&segments[1], 1_000);
    let found = verify();
    assert_eq!(found.status.code(), Some(3), "{found:?}");
    let said = String::from_utf8(found.stdout).unwrap() + &String::from_utf8(found.stderr).unwrap();
    assert!(
        said.contains(segments[1].file_name().unwrap().to_str().unwrap()),
        "{said}"
    );

    let broker = Broker::start(data.path(), &[SEGMENT_BYTES]);
    let mut client = broker.client();
    assert_eq!(log_end(&mut client, "t"), BATCHES);
    for number in (0..BATCHES).filter(|number| *number != base) {
        expect_batch(&mut client, number);
    }
    // The batch itself is either refused or sent with the CRC that its bytes no longer have: a client sees that either way.
    if let Ok(data) = fetch(&mut client, "t", base) {
        let records = data.records.unwrap();
        let (header, batch) = batch_at(&records);
        assert_ne!(
            corelog::record::crc::crc32c(&batch[21..]),
            header.crc,
            "damage was given a new CRC"
        );
    }
    broker.stop();
}

/// Its last batch, or all of them.
#[test]
fn a_reader_goes_on_after_what_is_missing_at_the_end_of_a_closed_segment() {
    let data = new_directory();
    start_with_batches(data.path()).stop();
    let logs = files(data.path(), ".log");
    let first_of = |path: &Path| -> i64 {
        let name = path.file_stem().unwrap().to_str().unwrap();
        name.parse().unwrap()
    };
    let bases: Vec<i64> = logs.iter().map(|path| first_of(path)).collect();
    let batch_bytes = fs::metadata(&logs[0]).unwrap().len() / (bases[1] - bases[0]) as u64;
    for (index, left) in [(0, bases[1] - bases[0] - 1), (2, 0)] {
        let file = OpenOptions::new().write(true).open(&logs[index]).unwrap();
        file.set_len(left as u64 * batch_bytes).unwrap();
        for suffix in ["index", "timeindex"] {
            fs::remove_file(logs[index].with_extension(suffix)).unwrap();
        }
    }
    let broker = Broker::start(data.path(), &[]);
    let mut client = broker.client();
    // From the disk, and then from where an earlier read has left it in memory.
    for _ in 0..2 {
        for (missing, next) in [(bases[1] - 1, bases[1]), (bases[2], bases[3])] {
            let data = fetch(&mut client, "t", missing).unwrap();
            let records = data.records.unwrap();
            assert_eq!(batch_at(&records).0.base_offset.0, next, "{}", broker.log());
        }
    }
    for number in [0, bases[1], bases[3], BATCHES - 1] {
        expect_batch(&mut client, number);
    }
    broker.stop();
}

#[test]
fn damaged_and_missing_indexes_are_made_anew() {
    let data = new_directory();
    let before = now().0;
    start_with_batches(data.path()).stop();
    let (indexes, time_indexes) = (
        files(data.path(), ".index"),
        files(data.path(), ".timeindex"),
    );
    for path in [&indexes[0], &time_indexes[0]] {
        fs::write(path, [0xa5; 777]).unwrap();
    }
    for path in [&indexes[1], &time_indexes[1]] {
        fs::remove_file(path).unwrap();
    }
    for path in [&indexes[2], &time_indexes[2]] {
        OpenOptions::new()
            .write(true)
            .open(path)
            .unwrap()
            .set_len(0)
            .unwrap();
    }
    let broker = Broker::start(data.path(), &[SEGMENT_BYTES]);
    let mut client = broker.client();
    for number in 0..BATCHES {
        expect_batch(&mut client, number);
    }
    assert_eq!(list_offset(&mut client, "t", before), 0);
    let records = fetch(&mut client, "t", 25).unwrap().records.unwrap();
    let at_25 = batch_at(&records).0.max_timestamp.0;
    let found = list_offset(&mut client, "t", at_25);
    assert!(
        (0..=25).contains(&found),
        "offset {found} for the time of 25"
    );
    broker.stop();
}

#[test]
fn a_cut_short_metadata_log_is_named_and_is_no_empty_broker() {
    let data = new_directory();
    start_with_batches(data.path()).stop();
    let metadata_log = data.path().join("__metadata/metadata.log");
    let whole = fs::read(&metadata_log).unwrap();
    let used = used_bytes(&whole);
    for length in [used - 1, used / 2, 1, 0] {
        fs::write(&metadata_log, &whole[..length]).unwrap();
        let Err(Refused { code, log }) = Broker::try_start(data.path(), &[SEGMENT_BYTES]) else {
            panic!("it became ready with {length} of {used} bytes");
        };
        assert_eq!(code, Some(1), "{log}");
        assert!(
            log.contains(metadata_log.to_str().unwrap()),
            "it names the file:\n{log}"
        );
        assert!(!log.contains("panicked"), "{log}");
    }
    fs::remove_file(&metadata_log).unwrap();
    assert!(
        Broker::try_start(data.path(), &[SEGMENT_BYTES]).is_err(),
        "it became ready without a metadata log"
    );
    // The file is put back, and nothing was lost by the refusals.
    fs::write(&metadata_log, &whole).unwrap();
    let broker = Broker::start(data.path(), &[SEGMENT_BYTES]);
    let mut client = broker.client();
    assert_eq!(log_end(&mut client, "t"), BATCHES);
    expect_batch(&mut client, BATCHES - 1);
    broker.stop();
}

#[test]
fn a_flipped_bit_in_the_metadata_log_is_named() {
    let data = new_directory();
    start_with_batches(data.path()).stop();
    let metadata_log = data.path().join("__metadata/metadata.log");
    let used = used_bytes(&fs::read(&metadata_log).unwrap());
    flip_bit(&metadata_log, used as u64 / 2);
    let Err(Refused { code, log }) = Broker::try_start(data.path(), &[]) else {
        panic!("it became ready")
    };
    assert_eq!(code, Some(1), "{log}");
    assert!(
        log.contains(metadata_log.to_str().unwrap()),
        "it names the file:\n{log}"
    );
}
