//! `corelog log verify` and `corelog log dump` over a partition of the model: nothing in a good one, and every planted fault.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use corelog::model::{LeaderEpoch, Offset, TimestampMs};
use corelog::record::encode::BatchBuilder;
use corelog::storage::checkpoint::CHECKPOINT_FILE;
use corelog::storage::leader_epochs::LEADER_EPOCHS_FILE;
use corelog::storage::segment_name::{SegmentFileKind, SegmentFileName};
use rand::SeedableRng;
use rand::rngs::StdRng;
use serde_json::Value;

use crate::writer::Writer;

const FOUND_FAULT: Option<i32> = Some(3);

fn corelog_log(command: &str, path: &Path, options: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_corelog"))
        .args(["log", command])
        .arg(path)
        .args(options)
        .output()
        .expect("the program starts")
}

fn text(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).expect("output is text")
}

/// A cleanly stopped partition of some segments.
fn stopped_partition(seed: u64) -> Writer {
    let random = &mut StdRng::seed_from_u64(seed);
    let mut writer = Writer::new(random);
    while writer.segments.len() < 4 || writer.active().indexes.times().is_empty() {
        writer.append_some(random);
    }
    writer.write_all();
    writer.checkpoint();
    writer
}

fn file(writer: &Writer, segment: usize, kind: SegmentFileKind) -> PathBuf {
    let name = SegmentFileName::new(writer.segments[segment].base_offset, kind);
    writer.dir().join(name.to_string())
}

fn edit(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).unwrap();
    change(&mut bytes);
    fs::write(path, bytes).unwrap();
}

/// Plants a fault and demands that verify reports it, with its place, and exits by it. Returns all reports.
fn assert_found(
    plant: impl FnOnce(&Writer) -> PathBuf,
    (position, offset): (u64, Option<i64>),
    problem: &str,
    options: &[&str],
) {
    let writer = stopped_partition(7);
    let path = plant(&writer);
    let output = corelog_log("verify", writer.dir(), &[options, &["--json"]].concat());
    assert_eq!(output.status.code(), FOUND_FAULT, "{}", text(&output));
    let report: Value = serde_json::from_str(text(&output)).unwrap();
    let problems = report["problems"].as_array().unwrap();
    let is_planted = |found: &&Value| {
        found["path"] == path.display().to_string()
            && found["position"] == position
            && found["offset"] == serde_json::json!(offset)
            && found["problem"].as_str().unwrap().contains(problem)
    };
    assert!(
        problems.iter().any(|found| is_planted(&found)),
        "{path:?} {position} {offset:?}: {problems:#?}"
    );
}

#[test]
fn a_good_partition_has_no_problem_and_every_batch_is_shown() {
    let writer = stopped_partition(7);
    let output = corelog_log("verify", writer.dir(), &["--json", "--records"]);
    let report: Value = serde_json::from_str(text(&output)).unwrap();
    assert_eq!(output.status.code(), Some(0), "{report:#}");
    assert_eq!(report["problems"], serde_json::json!([]));
    assert_eq!(report["segments"], writer.segments.len());
    assert_eq!(report["batches"], writer.batches.len());
    assert_eq!(report["records"], writer.log_end_offset().0);
    assert_eq!(report["bytes"], writer.log_bytes().len());

    let output = corelog_log("dump", writer.dir(), &["--json", "--records"]);
    assert_eq!(output.status.code(), Some(0));
    let lines: Vec<Value> = text(&output)
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), writer.batches.len());
    let records = |line: &Value| line["records"].as_array().unwrap().len();
    assert_eq!(
        lines.iter().map(records).sum::<usize>() as i64,
        writer.log_end_offset().0
    );
    assert_eq!(
        (&lines[0]["base_offset"], &lines[0]["crc_fits"]),
        (&0.into(), &true.into())
    );

    let output = corelog_log("dump", &file(&writer, 1, SegmentFileKind::Log), &[]);
    let first = text(&output).lines().nth(1).unwrap();
    let base_offset = writer.segments[1].base_offset;
    assert!(
        first.starts_with(&format!("offsets {base_offset}..")) && first.ends_with("fits"),
        "{first}"
    );
}

#[test]
fn an_index_is_shown_entry_by_entry() {
    let writer = stopped_partition(7);
    for kind in [SegmentFileKind::OffsetIndex, SegmentFileKind::TimeIndex] {
        let output = corelog_log("dump", &file(&writer, 1, kind), &["--json"]);
        let indexes = &writer.segments[1].indexes;
        let entries = match kind {
            SegmentFileKind::OffsetIndex => indexes.offsets().len(),
            _ => indexes.times().len(),
        };
        assert_eq!(text(&output).lines().count(), entries);
    }
}

#[test]
fn a_data_directory_is_verified_as_a_whole() {
    let data = crate::writer::temp_dir();
    for (seed, name) in [(7, "a-0"), (8, "a-1")] {
        let writer = stopped_partition(seed);
        let dir = data.path().join(name);
        fs::create_dir(&dir).unwrap();
        for entry in fs::read_dir(writer.dir()).unwrap() {
            let path = entry.unwrap().path();
            fs::copy(&path, dir.join(path.file_name().unwrap())).unwrap();
        }
    }
    let output = corelog_log("verify", data.path(), &[]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    assert!(
        text(&output).starts_with("0 problems in 2 partitions"),
        "{}",
        text(&output)
    );
}

#[test]
fn what_is_no_log_is_refused_by_name() {
    let dir = crate::writer::temp_dir();
    fs::write(dir.path().join("notes.txt"), "x").unwrap();
    for (path, reason) in [
        ("notes.txt", "no .log, .index or .timeindex"),
        ("absent", "cannot look up"),
        ("", "no directory of"),
    ] {
        for command in ["dump", "verify"] {
            let output = corelog_log(command, &dir.path().join(path), &[]);
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{stderr}");
            assert!(stderr.contains(reason) && stderr.contains(path), "{stderr}");
        }
    }
}

#[test]
fn faults_of_batches_are_found() {
    let writer = stopped_partition(7);
    let third = writer
        .batches
        .iter()
        .filter(|batch| batch.segment == 1)
        .nth(2)
        .unwrap()
        .clone();
    let at = third.position;
    let offset = i64::from_be_bytes(*third.bytes.first_chunk().unwrap());
    let place = (at as u64, Some(offset));
    let path = |writer: &Writer| file(writer, 1, SegmentFileKind::Log);
    let plant = |change: fn(&mut Vec<u8>, usize)| {
        move |writer: &Writer| {
            edit(&path(writer), |bytes| change(bytes, at));
            path(writer)
        }
    };
    assert_found(
        plant(|bytes, at| bytes[at + 70] ^= 1),
        place,
        "CRC-32C",
        &[],
    );
    assert_found(plant(|bytes, at| bytes[at + 16] = 1), place, "magic 1", &[]);
    assert_found(
        plant(|bytes, at| bytes.truncate(at + 100)),
        place,
        "the file ends after 100",
        &[],
    );
    assert_found(
        plant(|bytes, at| bytes.truncate(at)),
        place,
        "the next segment starts at",
        &[],
    );
    assert_found(
        plant(|bytes, at| bytes.truncate(at + 30)),
        place,
        "too few for a record batch header",
        &[],
    );
    assert_found(
        plant(|bytes, at| bytes[at + 12..at + 16].fill(0xff)),
        place,
        "leader epoch -1 is older",
        &[],
    );
    assert_found(
        plant(|bytes, at| bytes[at + 12] = 0x70),
        place,
        "leader-epoch-checkpoint says",
        &[],
    );
    assert_found(
        plant(|bytes, at| bytes[at + 60] += 1),
        place,
        "records and a last offset delta",
        &[],
    );
    // The batch that is moved is out of order, and so is the one behind.
    let moved = (at as u64, Some(offset + 1));
    assert_found(
        plant(|bytes, at| bytes[at + 7] = bytes[at + 7].wrapping_add(1)),
        moved,
        "its base offset is",
        &[],
    );
    let end = (
        writer.segments[1].bytes.len() as u64,
        Some(writer.segments[2].base_offset.0),
    );
    assert_found(
        plant(|bytes, _| bytes.extend([0; 5_000])),
        end,
        "5000 bytes of reserved space",
        &[],
    );
}

#[test]
fn faults_over_segments_are_found() {
    let writer = stopped_partition(7);
    let (first_end, third) = (
        writer.segments[0].bytes.len() as u64,
        writer.segments[2].base_offset,
    );
    let missing = |writer: &Writer| {
        fs::remove_file(file(writer, 1, SegmentFileKind::Log)).unwrap();
        file(writer, 0, SegmentFileKind::Log)
    };
    let place = (first_end, Some(writer.segments[1].base_offset.0));
    assert_found(
        missing,
        place,
        &format!("the next segment starts at offset {third}"),
        &[],
    );

    let last = writer.batches.last().unwrap();
    let shorter = |writer: &Writer| {
        let path = file(writer, writer.segments.len() - 1, SegmentFileKind::Log);
        edit(&path, |bytes| bytes.truncate(last.position));
        path
    };
    let offset = i64::from_be_bytes(*last.bytes.first_chunk().unwrap());
    assert_found(
        shorter,
        (last.position as u64, Some(offset)),
        "below the recovery point",
        &[],
    );
}

#[test]
fn faults_of_indexes_are_found() {
    let writer = stopped_partition(7);
    let active = writer.segments.len() - 1;
    for segment in [1, active] {
        let base_offset = writer.segments[segment].base_offset.0;
        let indexes = &writer.segments[segment].indexes;
        let (offsets, times) = (indexes.offsets(), indexes.times());
        let last_offset_entry = (offsets.len() - 1) * 8;
        let last_time_entry = (times.len() - 1) * 12;
        for (kind, last_entry, offset) in [
            (
                SegmentFileKind::OffsetIndex,
                last_offset_entry,
                offsets.last().unwrap().offset.0,
            ),
            (
                SegmentFileKind::TimeIndex,
                last_time_entry,
                times.last().unwrap().offset.0,
            ),
        ] {
            let plant = |change: fn(&mut Vec<u8>, usize)| {
                move |writer: &Writer| {
                    edit(&file(writer, segment, kind), |bytes| {
                        change(bytes, last_entry)
                    });
                    file(writer, segment, kind)
                }
            };
            let at_start = (0, Some(base_offset));
            let damaged = "the index is damaged";
            assert_found(plant(|bytes, _| bytes.truncate(5)), at_start, damaged, &[]);
            assert_found(plant(|bytes, _| bytes.fill(0)), at_start, damaged, &[]);
            let removed = |writer: &Writer| {
                fs::remove_file(file(writer, segment, kind)).unwrap();
                file(writer, segment, kind)
            };
            assert_found(removed, at_start, "the file is missing", &[]);
            let place = (last_entry as u64, Some(offset));
            match kind {
                // A position one byte off.
                SegmentFileKind::OffsetIndex => {
                    assert_found(
                        plant(|bytes, at| bytes[at + 7] ^= 1),
                        place,
                        "names no batch",
                        &[],
                    );
                }
                _ => assert_found(
                    plant(|bytes, at| bytes[at + 7] ^= 1),
                    place,
                    "the largest up to there",
                    &[],
                ),
            }
        }
    }
    let times = writer.segments[1].indexes.times().len() as u64 * 12;
    let cut = |writer: &Writer| {
        let path = file(writer, 1, SegmentFileKind::TimeIndex);
        edit(&path, |bytes| bytes.truncate(bytes.len() - 12));
        path
    };
    let place = (times - 12, Some(writer.segments[2].base_offset.0));
    assert_found(cut, place, "the segment's largest is", &[]);
}

#[test]
fn faults_of_state_files_are_found() {
    for (name, problem) in [
        (CHECKPOINT_FILE, "the checkpoint is damaged"),
        (LEADER_EPOCHS_FILE, "the leader epochs are damaged"),
    ] {
        let plant = |writer: &Writer| {
            edit(&writer.dir().join(name), |bytes| {
                bytes.truncate(bytes.len() - 1)
            });
            writer.dir().join(name)
        };
        assert_found(plant, (0, None), problem, &[]);
    }
    let plant = |writer: &Writer| {
        let name = SegmentFileName::new(writer.log_end_offset(), SegmentFileKind::Producers);
        let path = writer.dir().join(name.to_string());
        edit(&path, |bytes| bytes[30] ^= 1);
        path
    };
    assert_found(plant, (0, None), "the producers are damaged", &[]);
}

#[test]
fn faults_of_records_are_found_where_they_are_asked_for() {
    let writer = stopped_partition(7);
    let end = writer.active().bytes.len() as u64;
    let offset = writer.log_end_offset();
    let epoch = writer.epochs.latest().unwrap().epoch;
    let appended = |change: fn(&mut Vec<u8>)| {
        move |writer: &Writer| {
            let path = file(writer, writer.segments.len() - 1, SegmentFileKind::Log);
            edit(&path, |bytes| {
                bytes.extend(sealed_batch(offset, epoch, change))
            });
            path
        }
    };
    let place = (end, Some(offset.0));
    assert_found(
        appended(|batch| batch[61] = 0x7f),
        place,
        "the records do not read",
        &["--records"],
    );
    assert_found(
        appended(|batch| batch[42] += 1),
        place,
        "the header's largest timestamp is",
        &["--records"],
    );

    let writer = stopped_partition(7);
    appended(|batch| batch[61] = 0x7f)(&writer);
    assert_eq!(
        corelog_log("verify", writer.dir(), &[]).status.code(),
        Some(0),
        "its CRC fits"
    );
}

/// A batch whose CRC fits, whatever was changed in it.
fn sealed_batch(
    base_offset: Offset,
    epoch: LeaderEpoch,
    change: impl FnOnce(&mut Vec<u8>),
) -> Vec<u8> {
    let mut batch = BatchBuilder::new()
        .base_offset(base_offset)
        .leader_epoch(epoch)
        .record(TimestampMs(1_000), None, Some(b"value"))
        .build();
    change(&mut batch);
    corelog::record::encode::seal(&mut batch);
    batch
}
