//! Compaction of one partition against a model in memory: what readers find, what recovery makes of every state that a crash leaves.
//!
//! `CORELOG_TEST_SEED` runs one seed.

mod partition;

use std::collections::BTreeMap;
use std::fs;

use corelog::io::executor::block_on;
use corelog::model::{
    FilePosition, LeaderEpoch, Offset, ProducerEpoch, ProducerId, Sequence, TimestampMs,
};
use corelog::record::encode::BatchBuilder;
use corelog::record::{Codec, RecordBatchHeader};
use corelog::storage::checkpoint::CHECKPOINT_FILE;
use corelog::storage::cleaner::cleaning::CleaningError;
use corelog::storage::cleaner::offset_map::SLOT_BYTES;
use corelog::storage::cleaner::swap::{Step, Swap};
use corelog::storage::leader_epochs::LEADER_EPOCHS_FILE;
use corelog::storage::verify::verify_partition;
use partition::{
    CleanRules, OpenLog, Partition, Row, clean, copy_of, recovered, rows_of, swap_at_once,
};
use rand::rngs::StdRng;
use rand::{Rng, RngExt, SeedableRng};
use rustc_hash::FxHashMap;

const SEEDS: u64 = 4;
const LARGE_MAP: usize = 1 << 20;
const DELETE_RETENTION_MS: u64 = 1_000;

fn for_each_seed(body: impl Fn(&mut StdRng)) {
    let chosen = std::env::var("CORELOG_TEST_SEED")
        .ok()
        .map(|seed| seed.parse().expect("CORELOG_TEST_SEED is a number"));
    for seed in chosen.map_or(0..SEEDS, |seed| seed..seed + 1) {
        println!("CORELOG_TEST_SEED={seed}");
        body(&mut StdRng::seed_from_u64(seed));
    }
}

fn rules(map_bytes: usize, now: i64) -> CleanRules {
    CleanRules {
        map_bytes,
        now,
        delete_retention_ms: DELETE_RETENTION_MS,
    }
}

/// Cleans a stopped partition from its start.
fn clean_now(partition: &Partition, rules: CleanRules) -> usize {
    let last = partition.producers().last_offsets();
    block_on(clean(
        partition.dir(),
        Offset::ZERO,
        rules,
        &last,
        &mut swap_at_once,
    ))
    .unwrap()
}

fn read_all(partition: &Partition) -> Vec<Row> {
    block_on(OpenLog::open(partition.dir()).read_from(Offset::ZERO, 4_000))
}

fn single(partition: &mut Partition, key: &str, value: Option<&str>) {
    let batch = BatchBuilder::new()
        .base_offset(partition.end())
        .leader_epoch(LeaderEpoch(0))
        .record(
            TimestampMs(partition.end().0),
            Some(key.as_bytes()),
            value.map(str::as_bytes),
        );
    partition.append(&batch.build());
}

fn table(partition: &Partition) -> Vec<String> {
    let rows = read_all(partition).into_iter();
    let text = |row: Row| match row.value {
        Some(value) => format!(
            "{} {}: {}",
            row.offset,
            row.key,
            String::from_utf8(value).unwrap()
        ),
        None => format!("{} {}: -", row.offset, row.key),
    };
    rows.map(text).collect()
}

/// The table of users' settings: 0 ana: dark, 1 bo: light, 2 ana: light, 3 cy: dark, 4 bo: dark.
fn settings() -> Partition {
    let mut partition = Partition::new();
    for (key, value) in [
        ("ana", "dark"),
        ("bo", "light"),
        ("ana", "light"),
        ("cy", "dark"),
        ("bo", "dark"),
    ] {
        single(&mut partition, key, Some(value));
    }
    partition
}

#[test]
fn the_latest_setting_of_each_user_stays_at_its_offset() {
    let mut partition = settings();
    partition.roll();
    partition.stop();
    assert_eq!(clean_now(&partition, rules(LARGE_MAP, 0)), 1);
    assert_eq!(
        table(&partition),
        ["2 ana: light", "3 cy: dark", "4 bo: dark"]
    );
}

#[test]
fn a_tombstone_deletes_its_key_and_goes_when_its_retention_is_over() {
    let mut partition = settings();
    single(&mut partition, "cy", None);
    partition.roll();
    partition.stop();
    clean_now(&partition, rules(LARGE_MAP, 0));
    let with_tombstone = ["2 ana: light", "4 bo: dark", "5 cy: -"];
    assert_eq!(table(&partition), with_tombstone);
    clean_now(&partition, rules(LARGE_MAP, DELETE_RETENTION_MS as i64 - 1));
    assert_eq!(table(&partition), with_tombstone);
    clean_now(&partition, rules(LARGE_MAP, DELETE_RETENTION_MS as i64));
    assert_eq!(table(&partition), with_tombstone[..2]);
}

#[test]
fn the_active_segment_is_left_alone_and_replaces_nothing() {
    let mut partition = settings();
    partition.roll();
    single(&mut partition, "ana", Some("blue"));
    single(&mut partition, "ana", Some("red"));
    partition.stop();
    clean_now(&partition, rules(LARGE_MAP, 0));
    let expected = [
        "2 ana: light",
        "3 cy: dark",
        "4 bo: dark",
        "5 ana: blue",
        "6 ana: red",
    ];
    assert_eq!(table(&partition), expected);
}

#[test]
fn reads_at_removed_offsets_go_on_at_the_next_record_that_stays() {
    let mut partition = Partition::new();
    for n in 0..10 {
        single(&mut partition, "hot", Some(&n.to_string()));
        single(&mut partition, &format!("cold {n}"), Some("once"));
        // Whole segments hold nothing that stays but their end.
        for _ in 0..40 {
            single(&mut partition, "hot", Some(&"x".repeat(400)));
        }
        partition.roll();
    }
    single(&mut partition, "hot", Some("newest"));
    partition.roll();
    partition.stop();
    clean_now(&partition, rules(LARGE_MAP, 0));
    let kept = read_all(&partition);
    let keys: Vec<&str> = kept.iter().map(|row| row.key.as_str()).collect();
    assert_eq!(keys.len(), 11);
    assert_eq!(keys.last(), Some(&"hot"));
    let end = partition.end();
    block_on(async {
        let log = OpenLog::open(partition.dir());
        for offset in 0..end.0 {
            let rows = log.read_from(Offset(offset), 1).await;
            let expected = kept.iter().find(|row| row.offset >= offset);
            assert_eq!(rows.first(), expected, "from offset {offset}");
        }
    });
}

/// What was appended, and what is to be left of it.
#[derive(Default)]
struct Model {
    rows: Vec<Row>,
}

impl Model {
    /// What a cleaning of everything below `until` leaves, before any tombstone may go.
    fn clean(&mut self, until: Offset) {
        let mut latest = BTreeMap::new();
        for row in self.rows.iter().filter(|row| row.offset < until.0) {
            latest.insert(row.key.clone(), row.offset);
        }
        self.rows
            .retain(|row| row.offset >= until.0 || latest[&row.key] == row.offset);
    }
}

struct Load {
    next_sequences: BTreeMap<i64, i32>,
    keys: i64,
    clock: i64,
}

impl Load {
    fn append(&mut self, partition: &mut Partition, model: &mut Model, random: &mut StdRng) {
        let codec = Codec::ALL[random.random_range(0..Codec::ALL.len())];
        let mut builder = BatchBuilder::new()
            .base_offset(partition.end())
            .leader_epoch(LeaderEpoch(2))
            .codec(codec);
        let count = random.random_range(1..12);
        if random.random_bool(0.5) {
            let producer = random.random_range(0..5);
            let sequence = self.next_sequences.entry(producer).or_insert(0);
            builder = builder.producer(ProducerId(producer), ProducerEpoch(0), Sequence(*sequence));
            *sequence += count;
        }
        for _ in 0..count {
            let key = format!("key {}", random.random_range(0..self.keys));
            let value = (!random.random_bool(0.1)).then(|| {
                let mut value = vec![0; random.random_range(0..300)];
                random.fill_bytes(&mut value);
                value
            });
            self.clock += random.random_range(0..3);
            let timestamp = self.clock - random.random_range(0..20);
            builder.push(
                TimestampMs(timestamp),
                Some(key.as_bytes()),
                value.as_deref(),
                &[("h", None)],
            );
        }
        let batch = builder.build();
        model.rows.extend(rows_of(&batch));
        partition.append(&batch);
    }
}

#[test]
fn what_is_left_is_what_the_model_keeps() {
    for_each_seed(|random| {
        let mut partition = Partition::new();
        let mut model = Model::default();
        let mut load = Load {
            next_sequences: BTreeMap::new(),
            keys: random.random_range(3..400),
            clock: 1_000,
        };
        for round in 0..4 {
            for _ in 0..random.random_range(20..120) {
                load.append(&mut partition, &mut model, random);
                if random.random_bool(0.03) {
                    partition.roll();
                }
            }
            if random.random_bool(0.7) {
                partition.roll();
            }
            partition.stop();
            // Some maps hold few keys, so that it takes several passes.
            let slots = random.random_range(20..200);
            let map_bytes = if random.random_bool(0.5) {
                slots * SLOT_BYTES
            } else {
                LARGE_MAP
            };
            // Tombstones stay here: which of them may go is a batch's matter, and has tests of its own.
            let passes = clean_now(&partition, rules(map_bytes, 0));
            let until = partition.active_base();
            model.clean(until);
            println!(
                "  round {round}: {} rows left, {passes} passes",
                model.rows.len()
            );
            check_against(&partition, &model, random);
        }
    });
}

/// Everything that may be asked of the log.
fn check_against(partition: &Partition, model: &Model, random: &mut StdRng) {
    assert_eq!(read_all(partition), model.rows);
    block_on(async {
        let log = OpenLog::open(partition.dir());
        for _ in 0..20 {
            let offset = random.random_range(0..partition.end().0);
            let (rows, _) = log.fetch(Offset(offset), 1 << 20).await;
            if let Some(first) = rows.first() {
                let expected = model.rows.iter().find(|row| row.offset >= offset);
                assert_eq!(Some(first), expected, "at offset {offset}");
            }
        }
        let newest = model
            .rows
            .iter()
            .map(|row| row.timestamp)
            .max()
            .unwrap_or(0);
        for _ in 0..20 {
            let timestamp = random.random_range(900..newest + 5);
            let found = log.offset_of_time(timestamp).await;
            let expected = model.rows.iter().find(|row| row.timestamp >= timestamp);
            assert_eq!(
                found.map(|found| (found.offset.0, found.timestamp.0)),
                expected.map(|row| (row.offset, row.timestamp)),
                "at time {timestamp}"
            );
        }
    });
    let verification = verify_partition(partition.dir(), true).unwrap();
    let problems: Vec<String> = verification
        .problems
        .iter()
        .map(|problem| format!("{problem:?}"))
        .collect();
    assert_eq!(problems, Vec::<String>::new());
    // A start that can trust no state file reads the gaps as gaps, and finds every producer's last sequence.
    let copy = copy_of(partition.dir());
    for name in [CHECKPOINT_FILE, LEADER_EPOCHS_FILE] {
        std::fs::remove_file(copy.path().join(name)).unwrap();
    }
    let found = recovered(copy.path());
    assert_eq!(found.log_end_offset, partition.end());
    let sequences = |producers: &corelog::storage::producer_state::ProducerState| {
        let active = producers.active_producers().into_iter();
        active
            .map(|it| (it.producer_id, it.epoch, it.last_sequence))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        sequences(&found.producers),
        sequences(partition.producers())
    );
    let rows = block_on(OpenLog::open(copy.path()).read_from(Offset::ZERO, 1 << 20));
    assert_eq!(rows, model.rows);
}

#[test]
fn a_crash_at_any_step_leaves_the_old_segments_or_the_cleaned_one() {
    let mut partition = Partition::new();
    let mut load = Load {
        next_sequences: BTreeMap::new(),
        keys: 30,
        clock: 1_000,
    };
    let mut model = Model::default();
    let random = &mut StdRng::seed_from_u64(3);
    for _ in 0..60 {
        load.append(&mut partition, &mut model, random);
        if random.random_bool(0.1) {
            partition.roll();
        }
    }
    partition.roll();
    partition.stop();
    let read = |dir: &std::path::Path| block_on_elsewhere(dir);
    let mut states = 0;
    let mut groups = Vec::new();
    let last = partition.producers().last_offsets();
    block_on(clean(
        partition.dir(),
        Offset::ZERO,
        rules(LARGE_MAP, 0),
        &last,
        &mut |dir, group| {
            let untouched = copy_of(dir);
            let old = read(untouched.path());
            let whole = copy_of(dir);
            swap_at_once(whole.path(), group);
            let new = read(whole.path());
            assert_ne!(old, new, "the group changes");
            for taken in 0..=Swap::new(dir, group).steps().len() {
                let crashed = copy_of(dir);
                let steps = Swap::new(crashed.path(), group).steps();
                steps[..taken].iter().for_each(|step| step.take().unwrap());
                let is_decided = steps[..taken]
                    .iter()
                    .any(|step| matches!(step, Step::Decide { .. }));
                let found = read(crashed.path());
                assert_eq!(
                    found,
                    if is_decided { new.clone() } else { old.clone() },
                    "after {taken} steps"
                );
                // A crash of the recovery itself changes nothing: what it did, it would do again.
                assert_eq!(read(crashed.path()), found);
                states += 1;
            }
            groups.push(group.len());
            swap_at_once(dir, group);
        },
    ))
    .unwrap();
    model.clean(partition.active_base());
    assert_eq!(read_all(&partition), model.rows);
    assert!(groups.iter().any(|segments| *segments > 1), "{groups:?}");
    println!("{states} states of {} swaps", groups.len());
}

/// What a start after a crash finds: on a thread of its own, since an executor runs here already.
fn block_on_elsewhere(dir: &std::path::Path) -> (Vec<Row>, Vec<String>) {
    let dir = dir.to_owned();
    std::thread::spawn(move || {
        let rows = block_on(OpenLog::open(&dir).read_from(Offset::ZERO, 1 << 20));
        let mut names: Vec<String> = std::fs::read_dir(&dir)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        (rows, names)
    })
    .join()
    .unwrap()
}

#[test]
fn a_producer_is_known_by_its_last_sequence_though_its_records_are_gone() {
    let mut partition = Partition::new();
    let batch = BatchBuilder::new()
        .base_offset(Offset::ZERO)
        .producer(ProducerId(9), ProducerEpoch(3), Sequence(70))
        .record(TimestampMs(5), Some(b"key"), Some(b"old"))
        .record(TimestampMs(5), Some(b"key"), Some(b"old too"))
        .build();
    partition.append(&batch);
    single(&mut partition, "key", Some("new"));
    partition.roll();
    partition.stop();
    clean_now(&partition, rules(LARGE_MAP, 0));
    assert_eq!(table(&partition), ["2 key: new"]);
    std::fs::remove_file(partition.dir().join(CHECKPOINT_FILE)).unwrap();
    let producers = recovered(partition.dir()).producers.active_producers();
    assert_eq!(producers.len(), 1);
    assert_eq!(
        (producers[0].producer_id, producers[0].last_sequence),
        (ProducerId(9), Sequence(71))
    );
    // Once the producer is forgotten, so is its batch.
    block_on(clean(
        partition.dir(),
        Offset::ZERO,
        rules(LARGE_MAP, 0),
        &FxHashMap::default(),
        &mut swap_at_once,
    ))
    .unwrap();
    let batches = verify_partition(partition.dir(), true).unwrap().batch_count;
    assert_eq!(batches, 1);
}

/// No checksum covers the base offset of a batch.
#[test]
fn a_damaged_base_offset_ends_the_cleaning_and_not_the_broker() {
    let mut partition = Partition::new();
    for number in 0..100 {
        single(
            &mut partition,
            &format!("key {}", number % 7),
            Some("value"),
        );
    }
    partition.roll();
    partition.stop();
    let log = partition.dir().join("00000000000000000000.log");
    let whole = fs::read(&log).unwrap();
    let first = RecordBatchHeader::parse(&whole).unwrap();
    let second_at = first.size_bytes();
    for damaged in [i64::MAX, i64::MAX - 1, 1 << 40, 100, 0, -1, i64::MIN] {
        let mut bytes = whole.clone();
        bytes[second_at..second_at + 8].copy_from_slice(&damaged.to_be_bytes());
        fs::write(&log, &bytes).unwrap();
        let last = partition.producers().last_offsets();
        let cleaned = block_on(clean(
            partition.dir(),
            Offset::ZERO,
            rules(LARGE_MAP, 0),
            &last,
            &mut swap_at_once,
        ));
        let expected = FilePosition(second_at as u64);
        assert!(
            matches!(cleaned, Err(CleaningError::Corrupt { position, .. }) if position == expected),
            "{damaged}: {cleaned:?}"
        );
    }
    fs::write(&log, &whole).unwrap();
    assert_eq!(clean_now(&partition, rules(LARGE_MAP, 0)), 1);
}
