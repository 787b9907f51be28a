use std::fs;
use std::path::PathBuf;

use super::*;
use crate::metadata::{ClusterId, Partition, PartitionRecord};
use crate::model::NodeId;

struct TestLog {
    directory: tempfile::TempDir,
}

impl TestLog {
    /// A log with the cluster's forming and `topic_count` topics, one batch each.
    fn with_topics(topic_count: u128) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let formed = MetadataRecord::ClusterFormed {
            cluster_id: ClusterId::from_bits(77).to_bits(),
        };
        MetadataLog::create(directory.path(), &[formed]).unwrap();
        let log = Self { directory };
        let (mut open, _) = log.open().unwrap();
        (1..=topic_count).for_each(|id| open.append(&[topic(id)]).unwrap());
        log
    }

    fn open(&self) -> Result<(MetadataLog, MetadataImage), MetadataLogError> {
        MetadataLog::open(self.directory.path(), 1 << 20)
    }

    fn topic_count(&self) -> usize {
        self.open().unwrap().1.topic_count()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The frames of the log, without the zeros behind them.
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = fs::read(self.path(LOG)).unwrap();
        let mut end = 0;
        while let Ok(frame) = frame::decode(&bytes[end..]) {
            end += frame.size_bytes;
        }
        bytes.truncate(end);
        bytes
    }

    fn file_bytes(&self) -> u64 {
        fs::metadata(self.path(LOG)).unwrap().len()
    }

    fn write(&self, bytes: &[u8]) {
        fs::write(self.path(LOG), bytes).unwrap();
    }

    /// Where each frame begins, and the end.
    fn frame_positions(&self) -> Vec<usize> {
        let bytes = self.bytes();
        let mut positions = vec![0];
        while positions[positions.len() - 1] < bytes.len() {
            let position = positions[positions.len() - 1];
            positions.push(position + frame::decode(&bytes[position..]).unwrap().size_bytes);
        }
        positions
    }

    /// A frame as a crash leaves it: written, or partly written, and never promised.
    fn unpromised_frame(&self, sequence: u64, id: u128) -> Vec<u8> {
        frame::encode(sequence, &[topic(id)], METADATA_BATCH_BYTES_MAX).unwrap()
    }
}

fn topic(id: u128) -> MetadataRecord {
    MetadataRecord::TopicCreated {
        topic_id: id,
        name: format!("topic-{id}"),
        partitions: vec![PartitionRecord::from(&Partition::new(vec![NodeId(1)]))],
        settings: Vec::new(),
    }
}

#[test]
fn what_was_appended_is_there_after_a_restart() {
    let log = TestLog::with_topics(3);
    let (_, image) = log.open().unwrap();
    assert_eq!(image.cluster_id(), ClusterId::from_bits(77));
    assert!(image.topic("topic-3").is_some());
    assert_eq!(log.topic_count(), 3, "opening changes nothing");
}

#[test]
fn a_torn_last_frame_is_cut_at_whatever_byte_the_crash_came() {
    let log = TestLog::with_topics(2);
    let healthy = log.bytes();
    let torn = log.unpromised_frame(4, 3);
    for written in 1..torn.len() {
        log.write(&[&healthy[..], &torn[..written]].concat());
        assert_eq!(
            log.topic_count(),
            2,
            "{written} bytes of the frame were written"
        );
        assert_eq!(log.bytes(), healthy, "the rest of it is gone");
    }
    log.write(&[&healthy[..], &[0; 5000]].concat());
    assert_eq!(log.topic_count(), 2, "a grown file whose bytes never came");
}

#[test]
fn the_log_goes_on_after_a_cut() {
    let log = TestLog::with_topics(1);
    let torn = log.unpromised_frame(3, 2);
    log.write(&[&log.bytes()[..], &torn[..torn.len() - 1]].concat());
    log.open().unwrap().0.append(&[topic(5)]).unwrap();
    let (_, image) = log.open().unwrap();
    assert!(image.topic("topic-5").is_some() && image.topic("topic-2").is_none());
}

#[test]
fn a_whole_frame_that_was_never_promised_is_kept() {
    let log = TestLog::with_topics(1);
    log.write(&[&log.bytes()[..], &log.unpromised_frame(3, 2)].concat());
    assert_eq!(log.topic_count(), 2);
    let shorter = log.bytes()[..log.frame_positions()[2]].to_vec();
    log.write(&shorter);
    assert!(
        matches!(log.open(), Err(MetadataLogError::Shortened { .. })),
        "once it was seen, it is promised"
    );
}

#[test]
fn a_log_cut_between_frames_is_a_named_error() {
    let log = TestLog::with_topics(3);
    let (bytes, positions) = (log.bytes(), log.frame_positions());
    for kept in 0..3 {
        log.write(&bytes[..positions[kept]]);
        match log.open().map(drop) {
            Err(MetadataLogError::Shortened {
                path,
                position,
                found,
                promised,
            }) => {
                assert_eq!(path, log.path(LOG));
                assert_eq!(
                    (position, found, promised),
                    (positions[kept] as u64, kept as u64, 4)
                );
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_log_cut_inside_a_promised_frame_is_a_named_error() {
    let log = TestLog::with_topics(2);
    let bytes = log.bytes();
    for kept in 1..bytes.len() {
        log.write(&bytes[..kept]);
        assert!(log.open().is_err(), "the first {kept} bytes were kept");
        assert_eq!(
            log.file_bytes(),
            kept as u64,
            "a refused file is left as it is"
        );
    }
}

#[test]
fn a_flipped_bit_anywhere_is_a_named_error() {
    let log = TestLog::with_topics(2);
    let bytes = log.bytes();
    for position in 0..bytes.len() {
        let mut flipped = bytes.clone();
        flipped[position] ^= 0x10;
        log.write(&flipped);
        match log.open().map(drop) {
            Err(MetadataLogError::Damaged {
                path, position: at, ..
            }) => {
                assert_eq!(path, log.path(LOG));
                assert!(at <= position as u64);
            }
            other => panic!("byte {position}: {other:?}"),
        }
    }
}

#[test]
fn damage_with_a_whole_frame_behind_it_is_never_cut() {
    let log = TestLog::with_topics(1);
    let healthy = log.bytes();
    let mut damaged = log.unpromised_frame(3, 2);
    damaged[25] ^= 1;
    log.write(&[&healthy[..], &damaged, &log.unpromised_frame(4, 3)].concat());
    match log.open().map(drop) {
        Err(MetadataLogError::DamagedInside {
            position, behind, ..
        }) => {
            assert_eq!(position, healthy.len() as u64);
            assert_eq!(behind, (healthy.len() + damaged.len()) as u64);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn frames_out_of_order_are_refused() {
    let log = TestLog::with_topics(1);
    log.write(&[&log.bytes()[..], &log.unpromised_frame(5, 2)].concat());
    assert!(matches!(
        log.open(),
        Err(MetadataLogError::Damaged {
            defect: FrameDefect::Sequence {
                expected: 3,
                found: 5
            },
            ..
        })
    ));
}

#[test]
fn a_missing_file_is_a_named_error() {
    for name in [LOG, END] {
        let log = TestLog::with_topics(1);
        fs::remove_file(log.path(name)).unwrap();
        let error = log.open().map(drop).unwrap_err();
        assert!(
            matches!(&error, MetadataLogError::Missing { path, .. } if *path == log.path(name)),
            "{error}"
        );
    }
}

#[test]
fn a_snapshot_takes_the_place_of_the_log() {
    let log = TestLog::with_topics(5);
    let (mut open, image) = log.open().unwrap();
    open.compact(&image).unwrap();
    assert_eq!(log.bytes().len(), 0);
    open.append(&[topic(6)]).unwrap();
    assert_eq!(log.topic_count(), 6);
    open.compact(&log.open().unwrap().1).unwrap();
    assert_eq!(log.topic_count(), 6);
}

#[test]
fn a_crash_between_snapshot_and_emptied_log_loses_nothing() {
    let log = TestLog::with_topics(3);
    let before = log.bytes();
    let (mut open, image) = log.open().unwrap();
    open.compact(&image).unwrap();
    log.write(&before);
    assert_eq!(log.topic_count(), 3);
    log.open().unwrap().0.append(&[topic(4)]).unwrap();
    assert_eq!(log.topic_count(), 4);
}

#[test]
fn a_damaged_or_missing_snapshot_is_a_named_error() {
    let log = TestLog::with_topics(3);
    let (mut open, image) = log.open().unwrap();
    open.compact(&image).unwrap();
    open.append(&[topic(4)]).unwrap();
    let snapshot = fs::read(log.path(SNAPSHOT)).unwrap();
    let mut variants = vec![
        snapshot[..snapshot.len() - 1].to_vec(),
        [&snapshot[..], b"x"].concat(),
        Vec::new(),
    ];
    variants.push(snapshot.iter().map(|byte| byte ^ 1).collect());
    for variant in variants {
        fs::write(log.path(SNAPSHOT), variant).unwrap();
        let error = log.open().map(drop).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with(&log.path(SNAPSHOT).display().to_string()),
            "{error}"
        );
    }
    fs::remove_file(log.path(SNAPSHOT)).unwrap();
    let error = log.open().map(drop).unwrap_err();
    assert!(
        matches!(
            error,
            MetadataLogError::Damaged {
                defect: FrameDefect::Sequence {
                    expected: 1,
                    found: 5
                },
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn an_old_snapshot_is_found_out() {
    let log = TestLog::with_topics(2);
    let (mut open, image) = log.open().unwrap();
    open.compact(&image).unwrap();
    let old = fs::read(log.path(SNAPSHOT)).unwrap();
    open.append(&[topic(3)]).unwrap();
    open.compact(&log.open().unwrap().1).unwrap();
    fs::write(log.path(SNAPSHOT), old).unwrap();
    assert!(matches!(
        log.open(),
        Err(MetadataLogError::Shortened {
            found: 3,
            promised: 4,
            ..
        })
    ));
}

#[test]
fn a_log_that_grows_past_its_limit_is_replaced_by_a_snapshot() {
    let log = TestLog::with_topics(1);
    let (mut open, mut image) = MetadataLog::open(log.directory.path(), 500).unwrap();
    for id in 2..40 {
        open.append(&[topic(id)]).unwrap();
        image = image.apply(&[topic(id)]).unwrap().0;
        open.compact_if_long(&image);
    }
    assert!(log.bytes().len() < 700, "{}", log.bytes().len());
    assert_eq!(log.topic_count(), 39);
}

#[test]
fn a_change_that_is_taken_back_leaves_the_zeros_to_the_next_one() {
    let log = TestLog::with_topics(2);
    let (mut open, _) = log.open().unwrap();
    let before = (log.bytes(), log.file_bytes());
    let torn = vec![0xa5; METADATA_RESERVE_BYTES as usize * 2];
    open.file.write_all_at(&torn, open.length_bytes).unwrap();
    open.take_back().unwrap();
    assert_eq!((log.bytes(), log.file_bytes()), before);
    let (mut open, _) = log.open().unwrap();
    open.append(&[topic(3)]).unwrap();
    assert_eq!(log.file_bytes(), before.1);
    assert_eq!(log.topic_count(), 3);
}

#[test]
fn an_unfinished_write_is_overwritten_with_zeros() {
    let log = TestLog::with_topics(2);
    let before = (log.bytes(), log.file_bytes());
    let (open, _) = log.open().unwrap();
    open.file
        .write_all_at(&[0xa5; 500], open.length_bytes)
        .unwrap();
    let (open, _) = log.open().unwrap();
    assert_eq!((log.bytes(), log.file_bytes()), before);
    assert_eq!(open.reserved_bytes, before.1);
}

#[test]
fn a_snapshot_leaves_zeros_for_small_changes() {
    let log = TestLog::with_topics(3);
    let (mut open, image) = log.open().unwrap();
    open.compact(&image).unwrap();
    assert_eq!(log.file_bytes(), METADATA_RESERVE_BYTES);
    assert_eq!(log.topic_count(), 3);
}

#[test]
fn the_zeros_ahead_are_no_damage_and_stay_ahead() {
    let log = TestLog::with_topics(3);
    let frames_bytes = log.bytes().len() as u64;
    assert!(log.file_bytes() >= frames_bytes + METADATA_RESERVE_BYTES / 2);
    let before = log.file_bytes();
    log.open().unwrap().0.append(&[topic(4)]).unwrap();
    assert_eq!(log.file_bytes(), before, "an append overwrites zeros");
    assert_eq!(log.topic_count(), 4);
}

#[test]
fn a_large_change_goes_past_the_zeros() {
    let log = TestLog::with_topics(1);
    let topics: Vec<_> = (2..10_000).map(topic).collect();
    let (mut open, _) = log.open().unwrap();
    open.append(&topics).unwrap();
    open.append(&[topic(10_000)]).unwrap();
    assert_eq!(log.topic_count(), 10_000);
}

#[test]
fn a_torn_frame_among_the_zeros_becomes_zeros() {
    let log = TestLog::with_topics(1);
    let healthy = log.bytes();
    let torn = log.unpromised_frame(3, 2);
    let written = [&healthy[..], &torn[..torn.len() / 2], &[0; 5000]].concat();
    log.write(&written);
    assert_eq!(log.topic_count(), 1);
    let bytes = fs::read(log.path(LOG)).unwrap();
    assert_eq!(bytes.len(), written.len());
    assert!(bytes.starts_with(&healthy));
    assert!(bytes[healthy.len()..].iter().all(|byte| *byte == 0));
}

#[test]
fn a_promised_frame_that_became_zeros_is_a_named_error() {
    let log = TestLog::with_topics(3);
    let (mut bytes, positions) = (log.bytes(), log.frame_positions());
    bytes[positions[3]..].fill(0);
    log.write(&bytes);
    assert!(
        matches!(log.open(), Err(MetadataLogError::Damaged { position, .. }) if position == positions[3] as u64)
    );
}
