//! Every step that changes more than one file of a partition's directory, with a fault at each of its changes: whatever the fault, a start
//! finds every record that was synced, and what follows from the records.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use crate::model::{
    FilePosition, LeaderEpoch, Offset, PartitionIndex, ProducerEpoch, ProducerId, Sequence,
    TimestampMs, TopicId, TopicPartition,
};
use crate::record::RecordBatchHeader;
use crate::record::encode::BatchBuilder;

use super::atomic_file;
use super::checkpoint::{CHECKPOINT_FILE, PartitionCheckpoint, RecoveryPoint};
use super::cleaner::swap::{self, Swap};
use super::fault_point::planned::{self, Fault};
use super::index_builder::{IndexBuilder, IndexLengths};
use super::index_files::{self, IndexTail};
use super::leader_epochs::{LEADER_EPOCHS_FILE, LeaderEpochs};
use super::offset_index::SegmentEnd;
use super::partition_files;
use super::producer_snapshot;
use super::producer_state::{ProducerBatch, ProducerState};
use super::recovery::{Recovered, RecoveryRules, recover};
use super::segment_indexes::SegmentIndexes;
use super::segment_name::{CLEANED_SUFFIX, SegmentFileKind, SegmentFileName, spare_file};
use super::snapshot::Snapshot;

const RULES: RecoveryRules = RecoveryRules {
    index_interval_bytes: 100,
    now_ns: 0,
};

const FAULTS: [Fault; 5] = [
    Fault::Fails(ErrorKind::StorageFull),
    Fault::Fails(ErrorKind::Other),
    Fault::FailsAfter(ErrorKind::Other),
    Fault::DiskFull,
    Fault::Dies,
];

/// Damages a directory.
type Prepare<'a> = &'a dyn Fn(&Path);

const SEGMENTS: [i64; 3] = [0, 30, 60];
const END: i64 = 90;

fn partition() -> TopicPartition {
    TopicPartition {
        topic: TopicId(uuid::Uuid::from_u128(7)),
        partition: PartitionIndex(0),
    }
}

fn batch(base_offset: i64) -> Vec<u8> {
    let mut builder = BatchBuilder::new()
        .base_offset(Offset(base_offset))
        .leader_epoch(LeaderEpoch((base_offset / 40) as i32))
        .producer(
            ProducerId(5),
            ProducerEpoch(0),
            Sequence(base_offset as i32),
        );
    for _ in 0..10 {
        builder.push(TimestampMs(base_offset), None, Some(&[7; 50]), &[]);
    }
    builder.build()
}

fn path(dir: &Path, base_offset: i64, kind: SegmentFileKind) -> std::path::PathBuf {
    dir.join(SegmentFileName::new(Offset(base_offset), kind).to_string())
}

/// What follows from the batches of a log up to an offset.
struct State {
    indexes: IndexBuilder,
    epochs: LeaderEpochs,
    producers: ProducerState,
    position: FilePosition,
}

/// With every segment but the last sealed, in `dir` if there is one.
fn state_at(end: i64, dir: Option<&Path>) -> State {
    let mut state = State {
        indexes: IndexBuilder::new(Offset(0), RULES.index_interval_bytes),
        epochs: LeaderEpochs::default(),
        producers: ProducerState::default(),
        position: FilePosition::ZERO,
    };
    let mut bytes = Vec::new();
    let mut segment = 0;
    for base_offset in (0..end).step_by(10) {
        if base_offset > 0 && SEGMENTS.contains(&base_offset) {
            state.indexes.seal();
            if let Some(dir) = dir {
                fs::write(path(dir, segment, SegmentFileKind::Log), &bytes).unwrap();
                let tail = IndexTail::of(&state.indexes, IndexLengths::default());
                tail.write(dir).unwrap();
            }
            segment = base_offset;
            bytes.clear();
            state.indexes = IndexBuilder::new(Offset(segment), RULES.index_interval_bytes);
        }
        let batch = batch(base_offset);
        let header = RecordBatchHeader::parse(&batch).unwrap();
        let position = FilePosition(bytes.len() as u64);
        let last_offset = header.last_offset();
        state
            .indexes
            .on_batch(last_offset, header.max_timestamp, position);
        state.epochs.assign(header.leader_epoch, header.base_offset);
        let of_producer = ProducerBatch::of(&header).unwrap();
        let timestamp = header.max_timestamp;
        state
            .producers
            .record(&of_producer, header.base_offset, last_offset, timestamp, 0);
        bytes.extend(batch);
    }
    if let Some(dir) = dir {
        fs::write(path(dir, segment, SegmentFileKind::Log), &bytes).unwrap();
    }
    state.position = FilePosition(bytes.len() as u64);
    state
}

/// A checkpoint at `end`, which replaces the one at `before`.
fn snapshot(end: i64, log_start: i64, before: i64) -> Snapshot {
    let state = state_at(end, None);
    let recovery_point = RecoveryPoint {
        offset: Offset(end),
        segment: state.indexes.base_offset(),
        position: state.position,
        leader_epoch: state.epochs.latest().unwrap().epoch,
        index_lengths: state.indexes.lengths(),
        latest: state.indexes.latest(),
        producer_count: 1,
    };
    Snapshot::of_parts(
        PartitionCheckpoint {
            partition: partition(),
            log_start_offset: Offset(log_start),
            recovery_point,
        },
        IndexTail::of(&state.indexes, IndexLengths::default()),
        state.epochs,
        Some(producer_snapshot::encode(&state.producers, Offset(end))),
        Offset(before),
    )
}

/// A partition of three segments, all of it synced, with a checkpoint at 70.
fn partition_directory() -> tempfile::TempDir {
    let dir = tempfile::tempdir_in("/dev/shm")
        .or_else(|_| tempfile::tempdir())
        .unwrap();
    state_at(END, Some(dir.path()));
    snapshot(70, 0, 0).write(dir.path()).unwrap();
    dir
}

/// What a start finds is all there from `log_start` on, and what is derived from it fits.
fn assert_whole(recovered: &Recovered, dir: &Path, log_start: i64, what: &str) {
    assert_eq!(recovered.cuts, [], "{what}");
    assert_eq!(recovered.damaged, [], "{what}");
    assert_eq!(recovered.log_start_offset, Offset(log_start), "{what}");
    assert_eq!(recovered.log_end_offset, Offset(END), "{what}");
    let state = state_at(END, None);
    let producers = producer_snapshot::encode(&recovered.producers, Offset(END));
    assert_eq!(
        producers,
        producer_snapshot::encode(&state.producers, Offset(END)),
        "{what}"
    );
    let epochs = &recovered.leader_epochs;
    assert_eq!(epochs.latest(), state.epochs.latest(), "{what}");
    assert_eq!(recovered.active.base_offset, Offset(60), "{what}");
    assert_eq!(recovered.active.indexes, state.indexes, "{what}");
    let mut found = Vec::new();
    for sealed in &recovered.sealed {
        let end = SegmentEnd {
            position: FilePosition(sealed.size_bytes),
            offset: sealed.end_offset,
        };
        let interval_bytes = RULES.index_interval_bytes;
        let loaded = SegmentIndexes::load(dir, sealed.base_offset, end, interval_bytes);
        assert!(loaded.unwrap().0.floor(sealed.base_offset) == FilePosition::ZERO);
        found.extend(fs::read(path(dir, sealed.base_offset.0, SegmentFileKind::Log)).unwrap());
    }
    found.extend(fs::read(path(dir, 60, SegmentFileKind::Log)).unwrap());
    let first = recovered.sealed.first().map_or(60, |it| it.base_offset.0);
    let written: Vec<u8> = (first..END).step_by(10).flat_map(batch).collect();
    assert!(found == written, "{what}: other records");
}

/// Runs `step` on a fresh directory with each fault at each of its changes, and looks at what a start finds then. `may_fail` says whether
/// the step may end with an error under a fault.
fn sweep(
    log_start: i64,
    prepare: impl Fn(&Path),
    may_fail: impl Fn(Fault) -> bool,
    step: impl Fn(&Path) -> Result<(), String>,
) {
    for fault in FAULTS {
        let changes = planned::for_each_change(|at| {
            let dir = partition_directory();
            prepare(dir.path());
            let (result, has_met) = planned::with(at, fault, || step(dir.path()));
            let what = format!("{fault:?} at change {at}: {result:?}");
            assert!(result.is_ok() || may_fail(fault), "{what}");
            // On a disk that stays full, and then with room again.
            if fault == Fault::DiskFull {
                let (recovered, _) =
                    planned::with(0, fault, || recover(dir.path(), partition(), &RULES));
                let recovered = recovered.unwrap_or_else(|error| panic!("{what}, then {error}"));
                assert_whole(&recovered, dir.path(), log_start, &what);
            }
            for _ in 0..2 {
                let recovered = recover(dir.path(), partition(), &RULES).unwrap();
                assert_whole(&recovered, dir.path(), log_start, &what);
            }
            has_met
        });
        assert!(changes > 0, "the step changes something");
    }
}

fn as_text<E: std::fmt::Display>(error: E) -> String {
    error.to_string()
}

#[test]
fn a_checkpoint_that_stops_anywhere_leaves_the_one_before_or_is_whole() {
    let write = |dir: &Path| snapshot(END, 0, 70).write(dir).map_err(as_text);
    sweep(0, |_| {}, |_| true, write);
}

#[test]
fn the_indexes_of_a_sealed_segment_are_whole_or_made_anew() {
    let prepare = |dir: &Path| {
        fs::remove_file(path(dir, 30, SegmentFileKind::TimeIndex)).unwrap();
        fs::write(path(dir, 30, SegmentFileKind::OffsetIndex), [0; 3]).unwrap();
    };
    let seal = |dir: &Path| {
        let mut indexes = IndexBuilder::new(Offset(30), RULES.index_interval_bytes);
        let mut position = FilePosition::ZERO;
        for base_offset in (30..60).step_by(10) {
            let batch = batch(base_offset);
            indexes.on_batch(Offset(base_offset + 9), TimestampMs(base_offset), position);
            position = position.plus(batch.len() as u64);
        }
        indexes.seal();
        let tail = IndexTail::of(&indexes, IndexLengths::default());
        let stored = tail.write_if_there_is_space(dir).map_err(as_text)?;
        let is_there = path(dir, 30, SegmentFileKind::OffsetIndex).exists();
        assert_eq!(stored, is_there);
        Ok(())
    };
    sweep(0, prepare, |fault| fault != Fault::DiskFull, seal);
}

#[test]
fn retention_that_stops_anywhere_leaves_the_log_at_its_new_start() {
    let prepare = |dir: &Path| snapshot(END, 60, 70).write(dir).unwrap();
    let delete = |dir: &Path| {
        [0, 30].into_iter().try_for_each(|base_offset| {
            match partition_files::rename_deleted(dir, Offset(base_offset)) {
                Err(error) if error.is_disk_full() => {
                    partition_files::remove_segment(dir, Offset(base_offset))
                }
                renamed => renamed,
            }
            .map_err(as_text)
        })
    };
    sweep(60, prepare, |fault| fault != Fault::DiskFull, delete);
    let remove = |dir: &Path| partition_files::remove_deleted(dir, Offset(0)).map_err(as_text);
    let delete_first = |dir: &Path| {
        prepare(dir);
        delete(dir).unwrap();
    };
    sweep(60, delete_first, |fault| fault != Fault::DiskFull, remove);
}

#[test]
fn a_recovery_that_stops_anywhere_is_done_again_and_needs_no_space() {
    let lose = |name: &'static str| move |dir: &Path| fs::remove_file(dir.join(name)).unwrap();
    let zero_tail = |dir: &Path| {
        let mut bytes = fs::read(path(dir, 60, SegmentFileKind::Log)).unwrap();
        bytes.resize(bytes.len() + 5_000, 0);
        fs::write(path(dir, 60, SegmentFileKind::Log), bytes).unwrap();
    };
    let prepares: [(&str, Prepare<'_>); 8] = [
        ("no checkpoint", &lose(CHECKPOINT_FILE)),
        ("no epochs", &lose(LEADER_EPOCHS_FILE)),
        ("no producers", &lose("00000000000000000070.producers")),
        ("no active index", &lose("00000000000000000060.index")),
        ("no sealed index", &lose("00000000000000000030.timeindex")),
        ("space ahead", &zero_tail),
        ("an abandoned segment", &|dir| {
            fs::write(path(dir, 80, SegmentFileKind::Log), [0; 100]).unwrap();
            fs::write(path(dir, 40, SegmentFileKind::Log), []).unwrap();
        }),
        ("leftovers and no index", &|dir| {
            fs::write(dir.join(spare_file()), [0; 9_000]).unwrap();
            fs::write(dir.join("00000000000000000000.log.deleted"), [0; 9]).unwrap();
            fs::remove_file(path(dir, 0, SegmentFileKind::OffsetIndex)).unwrap();
        }),
    ];
    for (name, prepare) in prepares {
        println!("{name}");
        let start = |dir: &Path| {
            let recovered = recover(dir, partition(), &RULES).map_err(as_text)?;
            assert_eq!(recovered.log_end_offset, Offset(END));
            assert_eq!(recovered.cuts, []);
            Ok(())
        };
        sweep(0, prepare, |fault| fault != Fault::DiskFull, start);
    }
}

#[test]
fn a_swap_that_stops_anywhere_leaves_the_old_segments_or_the_cleaned_one() {
    let write_cleaned = |dir: &Path| {
        let mut indexes = IndexBuilder::new(Offset(0), RULES.index_interval_bytes);
        let mut bytes = Vec::new();
        for base_offset in (0..60).step_by(10) {
            let position = FilePosition(bytes.len() as u64);
            indexes.on_batch(Offset(base_offset + 9), TimestampMs(base_offset), position);
            bytes.extend(batch(base_offset));
        }
        indexes.seal();
        fs::write(swap::cleaned_log_path(dir, Offset(0)), bytes).unwrap();
        let tail = IndexTail::of(&indexes, IndexLengths::default());
        tail.write_with_suffix(dir, CLEANED_SUFFIX).unwrap();
    };
    let run = |dir: &Path| {
        Swap::new(dir, &[Offset(0), Offset(30)])
            .run()
            .map_err(as_text)
    };
    sweep(0, write_cleaned, |_| true, run);
    // Once it is decided it needs no more space.
    let decide = |dir: &Path| {
        write_cleaned(dir);
        let swap = Swap::new(dir, &[Offset(0), Offset(30)]);
        swap.run_on(&mut 0, Swap::DECIDING_STEPS).unwrap();
    };
    let go_on = |dir: &Path| {
        let swap = Swap::new(dir, &[Offset(0), Offset(30)]);
        let (mut taken, all) = (Swap::DECIDING_STEPS, swap.steps().len());
        swap.run_on(&mut taken, all).map_err(as_text)
    };
    sweep(0, decide, |fault| fault != Fault::DiskFull, go_on);
}

#[test]
fn a_swap_that_found_no_room_has_changed_nothing() {
    let dir = partition_directory();
    fs::write(swap::cleaned_log_path(dir.path(), Offset(0)), batch(0)).unwrap();
    let mut taken = 0;
    let swap = Swap::new(dir.path(), &[Offset(0), Offset(30)]);
    let (decided, _) = planned::with(0, Fault::DiskFull, || {
        swap.run_on(&mut taken, Swap::DECIDING_STEPS)
    });
    assert!(decided.unwrap_err().is_disk_full());
    assert!(Swap::is_undecided(taken));
    swap::remove_cleaned(dir.path(), Offset(0)).unwrap();
    let recovered = recover(dir.path(), partition(), &RULES).unwrap();
    assert_whole(&recovered, dir.path(), 0, "given up");
    assert_eq!(recovered.sealed.len(), 2);
}

/// The log is cut below its recovery point and there is no room for another checkpoint file.
#[test]
fn a_recovery_point_that_is_no_more_is_taken_back_on_a_full_disk_too() {
    let dir = partition_directory();
    snapshot(END, 0, 70).write(dir.path()).unwrap();
    let path = path(dir.path(), 60, SegmentFileKind::Log);
    let kept_bytes = batch(60).len() as u64;
    fs::File::options()
        .write(true)
        .open(path)
        .unwrap()
        .set_len(kept_bytes + 5)
        .unwrap();
    let (recovered, _) = planned::with(0, Fault::DiskFull, || {
        recover(dir.path(), partition(), &RULES)
    });
    let recovered = recovered.unwrap();
    assert_eq!(recovered.log_end_offset, Offset(70));
    let stored = PartitionCheckpoint::read(dir.path()).unwrap().unwrap();
    assert_eq!(stored.recovery_point.offset, Offset(70));
    assert_eq!(recovered.recovery_point.offset, Offset(70));
    let again = recover(dir.path(), partition(), &RULES).unwrap();
    assert_eq!((again.log_end_offset, again.cuts), (Offset(70), vec![]));
}

#[test]
fn a_small_file_is_the_old_or_the_new_one_wherever_its_replacement_stops() {
    for fault in FAULTS {
        let changes = planned::for_each_change(|at| {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("state");
            atomic_file::replace(&path, b"before").unwrap();
            let (replaced, has_met) =
                planned::with(at, fault, || atomic_file::replace(&path, b"behind"));
            let found = fs::read(&path).unwrap();
            assert!(found == b"before" || found == b"behind", "{fault:?} {at}");
            if replaced.is_ok() {
                assert_eq!(found, b"behind");
            } else if fault != Fault::Dies {
                assert_eq!(
                    fs::read_dir(dir.path()).unwrap().count(),
                    1,
                    "{fault:?} {at}"
                );
            }
            has_met
        });
        assert!(changes >= 5);
    }
}

#[test]
fn indexes_that_a_full_disk_has_no_room_for_are_kept_in_memory() {
    let dir = partition_directory();
    for base_offset in [0, 30] {
        fs::remove_file(path(dir.path(), base_offset, SegmentFileKind::OffsetIndex)).unwrap();
    }
    let (recovered, _) = planned::with(0, Fault::DiskFull, || {
        recover(dir.path(), partition(), &RULES)
    });
    let recovered = recovered.unwrap();
    for sealed in &recovered.sealed {
        let indexes = sealed.unstored_indexes.as_ref().unwrap();
        assert!(indexes.offsets().len() > 1);
        let end = SegmentEnd {
            position: FilePosition(sealed.size_bytes),
            offset: sealed.end_offset,
        };
        let (rebuilt, _) = planned::with(0, Fault::DiskFull, || {
            index_files::rebuild_sealed(
                dir.path(),
                sealed.base_offset,
                end,
                RULES.index_interval_bytes,
            )
        });
        let rebuilt = rebuilt.unwrap();
        assert_eq!((&rebuilt.indexes, rebuilt.is_stored), (indexes, false));
    }
}
