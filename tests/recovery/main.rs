//! Recovery of one partition against a model: whatever a crash leaves, the log that comes back is an exact prefix of what was
//! appended, at least up to the recovery point, and everything that is derived from the batches fits them.
//!
//! `CORELOG_TEST_SEED` runs one seed.

mod abandoned;
mod crash;
mod verify;
mod writer;

use corelog::model::{FilePosition, LeaderEpoch, Offset, TimestampMs};
use corelog::record::encode::BatchBuilder;
use corelog::storage::checkpoint::{CHECKPOINT_FILE, CheckpointDamage};
use corelog::storage::index_files;
use corelog::storage::leader_epochs::LEADER_EPOCHS_FILE;
use corelog::storage::offset_index::{IndexDamage, SegmentEnd};
use corelog::storage::recovery::{CutReason, Recovered, RecoveryError, recover};
use corelog::storage::scan::BadBatch;
use corelog::storage::segment_name::{SegmentFileKind, SegmentFileName};
use corelog::storage::{Distrust, producer_snapshot};
use crash::Crash;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use writer::{RULES, Writer, partition};

const SEEDS: u64 = 30;
const CRASHES_PER_SEED: u64 = 8;

/// Runs a test body with many seeds; the one that fails is printed.
fn for_each_seed(body: impl Fn(&mut StdRng)) {
    let chosen = std::env::var("CORELOG_TEST_SEED")
        .ok()
        .map(|seed| seed.parse().expect("CORELOG_TEST_SEED is a number"));
    for seed in chosen.map_or(0..SEEDS, |seed| seed..seed + 1) {
        println!("CORELOG_TEST_SEED={seed}");
        body(&mut StdRng::seed_from_u64(seed));
    }
}

/// Everything that follows from the batches must be as if they had just been appended.
fn assert_fits(recovered: &Recovered, writer: &Writer) {
    assert_eq!(recovered.log_end_offset, writer.log_end_offset());
    for segment in &writer.segments {
        let file = std::fs::read(writer.dir().join(writer::log_name(segment.base_offset)))
            .unwrap_or_default();
        let place = file
            .iter()
            .zip(&segment.bytes)
            .position(|(file, written)| file != written);
        let sizes = (file.len(), segment.bytes.len());
        assert!(
            file == segment.bytes,
            "segment {}: sizes {sizes:?}, differs at {place:?}",
            segment.base_offset
        );
    }
    assert_eq!(
        writer.log_files(),
        recovered.sealed.len() + usize::from(recovered.active.size_bytes > 0),
        "no other file is left"
    );
    let offset = recovered.log_end_offset;
    let snapshot = producer_snapshot::encode(&writer.producers, offset);
    assert!(
        producer_snapshot::encode(&recovered.producers, offset) == snapshot,
        "the producers"
    );
    assert_eq!(recovered.active.base_offset, writer.active().base_offset);
    assert_eq!(
        recovered.active.size_bytes,
        writer.active().bytes.len() as u64
    );
    assert_eq!(
        recovered.active.indexes.offsets(),
        writer.active().indexes.offsets()
    );
    assert_eq!(
        recovered.active.indexes.latest(),
        writer.active().indexes.latest()
    );
    assert_eq!(recovered.sealed.len(), writer.segments.len() - 1);
    for (info, segment) in recovered.sealed.iter().zip(&writer.segments) {
        assert_eq!(
            (info.base_offset, info.size_bytes),
            (segment.base_offset, segment.bytes.len() as u64)
        );
        assert_eq!(info.latest, segment.indexes.latest(), "{info:?}");
        let end = SegmentEnd {
            position: FilePosition(info.size_bytes),
            offset: info.end_offset,
        };
        let (offsets, times) = index_files::load_sealed(
            writer.dir(),
            info.base_offset,
            end,
            RULES.index_interval_bytes,
        )
        .unwrap()
        .expect("the index of a sealed segment is whole");
        assert_eq!(&offsets, segment.indexes.offsets());
        assert_eq!(&times, segment.indexes.times());
    }
}

#[test]
fn a_crash_leaves_a_prefix_that_reaches_the_recovery_point() {
    for_each_seed(|random| {
        let mut writer = Writer::new(random);
        for _ in 0..CRASHES_PER_SEED {
            writer.append_some(random);
            let point = writer.recovery_point;
            let crash = Crash::behind(&writer, random);
            crash.write(&writer);
            let kept = crash.intact_batches(&writer);
            let recovered = recover(writer.dir(), partition(), &RULES).unwrap();
            writer.cut_to(kept);
            println!(
                "  {} of {} bytes, cuts {:?}",
                writer.log_bytes().len(),
                crash.bytes(),
                recovered.cuts
            );
            assert!(recovered.log_end_offset >= point.offset);
            assert_eq!(recovered.distrust, None);
            assert_eq!(recovered.damaged, []);
            assert_fits(&recovered, &writer);
            // An epoch whose batches never reached the disk may stay, without one.
            let mut epochs = recovered.leader_epochs.clone();
            epochs.truncate_from_end(recovered.log_end_offset);
            assert_eq!(epochs, writer.epochs);

            let again = recover(writer.dir(), partition(), &RULES).unwrap();
            assert_eq!(again.cuts, [], "nothing is left to cut");
            assert_fits(&again, &writer);
            writer.go_on(again);
        }
    });
}

#[test]
fn a_lost_or_damaged_state_file_costs_time_and_no_record() {
    for_each_seed(|random| {
        let mut writer = Writer::new(random);
        for _ in 0..CRASHES_PER_SEED {
            writer.append_some(random);
            writer.write_all();
            let damaged = writer.damage_state_files(random);
            println!("  damaged {damaged:?}");
            let recovered = recover(writer.dir(), partition(), &RULES).unwrap();
            assert_eq!(
                (recovered.cuts.as_slice(), recovered.damaged.as_slice()),
                ([].as_slice(), [].as_slice())
            );
            assert_fits(&recovered, &writer);
            assert_eq!(recovered.leader_epochs.latest(), writer.epochs.latest());
            writer.go_on(recovered);
        }
    });
}

#[test]
fn after_a_clean_stop_nothing_is_read_and_nothing_is_written() {
    for_each_seed(|random| {
        let mut writer = Writer::new(random);
        writer.append_some(random);
        writer.write_all();
        writer.checkpoint();
        let before = writer.file_times();
        let recovered = recover(writer.dir(), partition(), &RULES).unwrap();
        assert_eq!(recovered.bytes_scanned, 0);
        assert_eq!(recovered.recovery_point.offset, recovered.log_end_offset);
        assert_fits(&recovered, &writer);
        assert_eq!(writer.file_times(), before);
    });
}

#[test]
fn a_new_partition_is_empty_and_needs_no_file() {
    let dir = writer::temp_dir();
    let recovered = recover(dir.path(), partition(), &RULES).unwrap();
    assert_eq!(
        (recovered.log_start_offset, recovered.log_end_offset),
        (Offset(0), Offset(0))
    );
    assert_eq!(
        (
            recovered.sealed.len(),
            recovered.cuts.len(),
            recovered.distrust
        ),
        (0, 0, None)
    );
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn another_partitions_directory_is_refused() {
    let random = &mut StdRng::seed_from_u64(1);
    let mut writer = Writer::new(random);
    writer.append_some(random);
    writer.write_all();
    writer.checkpoint();
    let mut other = partition();
    other.partition.0 += 1;
    let error = recover(writer.dir(), other, &RULES).unwrap_err();
    assert!(
        matches!(error, RecoveryError::OtherPartition { .. }),
        "{error}"
    );
}

#[test]
fn damage_below_the_recovery_point_cuts_the_log_there() {
    let random = &mut StdRng::seed_from_u64(2);
    let mut writer = Writer::new(random);
    while writer.segments.len() < 3 {
        writer.append_some(random);
    }
    writer.write_all();
    writer.checkpoint();
    // With the checkpoint all is trusted; without it, everything is read.
    let second = writer.segments[1].base_offset;
    let path = writer
        .dir()
        .join(SegmentFileName::new(second, SegmentFileKind::Log).to_string());
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[100] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    assert_eq!(recover(writer.dir(), partition(), &RULES).unwrap().cuts, []);

    std::fs::remove_file(writer.dir().join(CHECKPOINT_FILE)).unwrap();
    let recovered = recover(writer.dir(), partition(), &RULES).unwrap();
    assert_eq!(
        recovered.distrust,
        Some(Distrust::Checkpoint(CheckpointDamage::Missing))
    );
    let first = &recovered.cuts[0];
    assert_eq!(
        (&first.path, first.position.0, first.offset),
        (&path, 0, second)
    );
    assert!(
        matches!(first.reason, CutReason::BadBatch(BadBatch::Crc { .. })),
        "{first:?}"
    );
    assert!(matches!(
        recovered.cuts[1].reason,
        CutReason::NotContinuous { .. }
    ));
    assert_eq!(recovered.log_end_offset, second);
    let kept = writer
        .batches
        .iter()
        .take_while(|batch| batch.segment == 0)
        .count();
    writer.cut_to(kept);
    assert_fits(&recovered, &writer);
}

#[test]
fn a_log_that_lost_its_files_goes_on_behind_what_it_had() {
    let random = &mut StdRng::seed_from_u64(3);
    let mut writer = Writer::new(random);
    while writer.segments.len() < 2 {
        writer.append_some(random);
    }
    writer.write_all();
    writer.checkpoint();
    let end = writer.log_end_offset();
    writer.remove_segments(0..writer.segments.len());
    let recovered = recover(writer.dir(), partition(), &RULES).unwrap();
    assert!(matches!(
        recovered.distrust,
        Some(Distrust::SegmentMissing { .. })
    ));
    assert_eq!(
        (recovered.log_start_offset, recovered.log_end_offset),
        (end, end)
    );
    assert_eq!(
        recovered.cuts[0].reason,
        CutReason::Missing {
            expected: Offset(0)
        }
    );
    let again = recover(writer.dir(), partition(), &RULES).unwrap();
    assert_eq!(
        (again.log_end_offset, again.cuts.len(), again.distrust),
        (end, 0, None)
    );
}

#[test]
fn segments_below_the_log_start_are_removed_and_the_start_stays() {
    let random = &mut StdRng::seed_from_u64(4);
    let mut writer = Writer::new(random);
    while writer.segments.len() < 4 {
        writer.append_some(random);
    }
    writer.log_start_offset = writer.segments[2].base_offset.plus(1);
    writer.write_all();
    writer.checkpoint();
    let recovered = recover(writer.dir(), partition(), &RULES).unwrap();
    assert_eq!(recovered.log_start_offset, writer.log_start_offset);
    assert_eq!(
        recovered.sealed[0].base_offset,
        writer.segments[2].base_offset
    );
    assert!(recovered.cuts.is_empty());
    assert_eq!(
        recovered.leader_epochs.entries()[0].start_offset,
        writer.log_start_offset
    );
}

#[test]
fn a_log_that_ends_below_its_start_goes_on_empty_at_its_start() {
    let random = &mut StdRng::seed_from_u64(5);
    let mut writer = Writer::new(random);
    writer.append_some(random);
    // DeleteRecords moved the start to the end, and then a power cut took the records that were not synced.
    writer.log_start_offset = writer.log_end_offset();
    writer.write_checkpoint_only();
    writer.cut_to(writer.batches.len() - 1);
    writer.write_all();
    let recovered = recover(writer.dir(), partition(), &RULES).unwrap();
    assert_eq!(
        (recovered.log_start_offset, recovered.log_end_offset),
        (writer.log_start_offset, writer.log_start_offset)
    );
    assert!(matches!(
        recovered.cuts.last().unwrap().reason,
        CutReason::BelowLogStart { .. }
    ));
    assert_eq!(recovered.active.base_offset, writer.log_start_offset);
    let again = recover(writer.dir(), partition(), &RULES).unwrap();
    assert_eq!(
        (again.log_end_offset, again.cuts.len()),
        (writer.log_start_offset, 0)
    );
}

#[test]
fn an_epoch_without_a_batch_survives_and_one_that_was_cut_does_not() {
    let random = &mut StdRng::seed_from_u64(6);
    let mut writer = Writer::new(random);
    writer.append_some(random);
    let end = writer.log_end_offset();
    let next = LeaderEpoch(writer.epochs.latest().unwrap().epoch.0 + 1);
    writer.epochs.assign(next, end);
    writer.epochs.write(writer.dir()).unwrap();
    writer.write_all();
    writer.checkpoint();
    let recovered = recover(writer.dir(), partition(), &RULES).unwrap();
    assert_eq!(recovered.leader_epochs.latest().unwrap().epoch, next);

    let path = writer
        .dir()
        .join(SegmentFileName::new(writer.active().base_offset, SegmentFileKind::Log).to_string());
    let mut bytes = std::fs::read(&path).unwrap();
    bytes.extend_from_slice(b"no batch at all");
    std::fs::write(&path, bytes).unwrap();
    let recovered = recover(writer.dir(), partition(), &RULES).unwrap();
    assert_eq!(recovered.log_end_offset, end);
    assert!(recovered.leader_epochs.latest().unwrap().epoch < next);
    let text = std::fs::read_to_string(writer.dir().join(LEADER_EPOCHS_FILE)).unwrap();
    assert_eq!(text, recovered.leader_epochs.encode());
}

#[test]
fn an_index_that_lost_its_end_is_found_when_it_is_used() {
    let random = &mut StdRng::seed_from_u64(7);
    let mut writer = Writer::new(random);
    while writer.segments.len() < 3 {
        writer.append_some(random);
    }
    writer.write_all();
    let segment = &writer.segments[1];
    let end = SegmentEnd {
        position: FilePosition(segment.bytes.len() as u64),
        offset: writer.segments[2].base_offset,
    };
    let load = || {
        index_files::load_sealed(
            writer.dir(),
            segment.base_offset,
            end,
            RULES.index_interval_bytes,
        )
        .unwrap()
    };
    let path = |kind| {
        let name = SegmentFileName::new(segment.base_offset, kind);
        writer.dir().join(name.to_string())
    };
    let offsets = segment.indexes.offsets().encode_from(0);
    let times = segment.indexes.times().encode_from(0);
    assert!(load().is_ok());

    let write_offsets =
        |bytes: &[u8]| std::fs::write(path(SegmentFileKind::OffsetIndex), bytes).unwrap();
    for lost_entries in [1, 2, segment.indexes.offsets().len()] {
        write_offsets(&offsets[..offsets.len() - lost_entries * 8]);
        assert_eq!(load().unwrap_err(), IndexDamage::EndLost);
    }
    let mut wrong = offsets.clone();
    *wrong.last_mut().unwrap() ^= 1;
    write_offsets(&wrong);
    assert!(matches!(load(), Err(IndexDamage::NoBatch { .. })));
    write_offsets(&offsets);
    std::fs::write(path(SegmentFileKind::TimeIndex), b"").unwrap();
    assert_eq!(load().unwrap_err(), IndexDamage::EndLost);

    let index_files::Rebuilt {
        indexes: rebuilt,
        scanned,
        is_stored,
    } = index_files::rebuild_sealed(
        writer.dir(),
        segment.base_offset,
        end,
        RULES.index_interval_bytes,
    )
    .unwrap();
    assert_eq!(
        (scanned.position, scanned.next_offset),
        (end.position, end.offset)
    );
    assert_eq!((&rebuilt, is_stored), (&segment.indexes, true));
    assert_eq!(
        std::fs::read(path(SegmentFileKind::TimeIndex)).unwrap(),
        times
    );
    assert!(load().is_ok());
}

#[test]
fn a_file_whose_number_no_log_can_reach_is_none_of_its_segments() {
    let dir = writer::temp_dir();
    let last = i64::MAX - 1;
    let batch = BatchBuilder::new().base_offset(Offset(last));
    let batch = batch.record(TimestampMs(1), None, Some(b"value")).build();
    std::fs::write(dir.path().join(format!("{last:020}.log")), batch).unwrap();
    let recovered = recover(dir.path(), partition(), &RULES).unwrap();
    assert_eq!(recovered.log_end_offset, Offset::ZERO);
}

/// Bytes that no log ever held: the same inputs as a fuzzer's, from fixed seeds.
#[test]
fn any_bytes_at_all_recover_without_a_panic() {
    for_each_seed(|random| {
        let dir = writer::temp_dir();
        let names = [
            "00000000000000000000.log",
            "00000000000000000000.index",
            "00000000000000000000.timeindex",
            "00000000000000000007.log",
            "09223372036854775806.log",
            "00000000000000000000.producers",
            CHECKPOINT_FILE,
            LEADER_EPOCHS_FILE,
        ];
        for name in names {
            let mut bytes = vec![0; random.random_range(0..300)];
            if random.random_bool(0.7) {
                random.fill(&mut bytes[..]);
            }
            if random.random_bool(0.8) {
                std::fs::write(dir.path().join(name), bytes).unwrap();
            }
        }
        let recovered = recover(dir.path(), partition(), &RULES).unwrap();
        let again = recover(dir.path(), partition(), &RULES).unwrap();
        assert_eq!(again.log_end_offset, recovered.log_end_offset);
    });
}
