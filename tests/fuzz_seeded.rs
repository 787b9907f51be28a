//! Good input, broken at random: what `fuzz/` asserts by coverage, on stable Rust and in bounded time.
//!
//! `CORELOG_SEED` repeats a run, `CORELOG_FUZZ_SECONDS` sets how long each parser is tried.

#[path = "support/fuzzed.rs"]
mod fuzzed;
#[path = "support/request_bytes.rs"]
mod request_bytes;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

use corelog::metadata::{MetadataRecord, PartitionRecord, encode_records};
use corelog::model::{
    FilePosition, LeaderEpoch, Offset, PartitionIndex, ProducerEpoch, ProducerId, Sequence,
    TimestampMs, TopicId, TopicPartition,
};
use corelog::record::encode::BatchBuilder;
use corelog::record::{Codec, RecordBatchHeader};
use corelog::storage::checkpoint::{PartitionCheckpoint, RecoveryPoint};
use corelog::storage::leader_epochs::LeaderEpochs;
use corelog::storage::offset_index::{OffsetIndex, OffsetIndexEntry};
use corelog::storage::producer_snapshot;
use corelog::storage::producer_state::{ProducerBatch, ProducerState};
use corelog::storage::time_index::{TimeIndex, TimeIndexEntry};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

const SECONDS_DEFAULT: f64 = 3.0;

/// What a good input may grow to by insertions.
const INPUT_BYTES_MAX: usize = 64 * 1024;

#[test]
fn frames() {
    let corpus = [
        &[0, 0, 0, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9][..],
        b"GET / HTTP/1.1\r\n",
        &[0x16, 3, 1, 0, 200, 1],
    ];
    fuzz(
        "frames",
        |_| corpus.map(<[u8]>::to_vec).to_vec(),
        fuzzed::frame,
    );
}

#[test]
fn requests() {
    let corpus = |rng: &mut StdRng| {
        let with_header =
            |(shape, version): (&corelog::protocol::request_shapes::RequestShape, i16)| {
                let mut frame = (shape.key as i16).to_be_bytes().to_vec();
                frame.extend(version.to_be_bytes());
                frame.extend(b"\0\0\0\x07\0\x06client");
                if version >= shape.flexible_since {
                    frame.push(0);
                }
                frame.extend(request_bytes::random_body(shape, version, rng));
                frame
            };
        request_bytes::served_requests().map(with_header).collect()
    };
    fuzz("requests", corpus, fuzzed::request);
}

#[test]
fn record_batches() {
    let batch = |codec| {
        BatchBuilder::new()
            .codec(codec)
            .producer(ProducerId(9), ProducerEpoch(0), Sequence(0))
            .record(TimestampMs(1_000), Some(b"key"), Some(&[3; 200]))
            .record_with_headers(
                TimestampMs(1_001),
                Some(b""),
                None,
                &[("header", Some(b"value")), ("", None)],
            )
            .record(TimestampMs(999), None, Some(b""))
            .build()
    };
    let choices = || [0, 1, 3, 5, 9, 11];
    let corpus: Vec<Vec<u8>> = Codec::ALL
        .iter()
        .flat_map(|&codec| choices().map(|choice| [&[choice], &batch(codec)[..]].concat()))
        // Records that are compressed after they were garbled, with each codec.
        .chain((0..4).map(|codec| [&[33 | codec << 6], &batch(Codec::None)[..]].concat()))
        .collect();
    fuzz("record batches", |_| corpus.clone(), fuzzed::record_batch);
}

#[test]
fn indexes() {
    let mut offsets = OffsetIndex::new(Offset(1_000));
    let mut times = TimeIndex::new(Offset(1_000));
    for i in 1..20 {
        offsets.append(OffsetIndexEntry {
            offset: Offset(1_000 + i * 7),
            position: FilePosition(i as u64 * 4_100),
        });
        times.append_if_later(TimeIndexEntry {
            timestamp: TimestampMs(i * 1_000),
            offset: Offset(1_000 + i * 7),
        });
    }
    let corpus = [offsets.encode_from(0), times.encode_from(0)];
    fuzz("indexes", |_| corpus.to_vec(), fuzzed::offset_index);
}

#[test]
fn segment_recovery() {
    let mut offset = 0;
    let mut segment = |epochs: &[i32]| {
        let batches = epochs.iter().map(|&epoch| {
            let batch = BatchBuilder::new()
                .base_offset(Offset(offset))
                .leader_epoch(LeaderEpoch(epoch))
                .producer(ProducerId(9), ProducerEpoch(0), Sequence(offset as i32))
                .record(TimestampMs(1_000), Some(b"key"), Some(&[3; 70]))
                .record(TimestampMs(1_001), Some(b"key"), None);
            offset += 2;
            batch.build()
        });
        batches.collect::<Vec<_>>().concat()
    };
    let log = segment(&[0, 0, 3, 3, 4]);
    let behind = segment(&[4, 2]);
    let index = OffsetIndex::new(Offset(0)).encode_from(0);
    let corpus = [
        [&[0], &log[..]].concat(),
        [&[0], &log[..], &behind[..]].concat(),
        [&[0], &log[..], &[0; 300]].concat(),
        [&[0], &log[..], &log[..]].concat(),
        [&[2], &log[..], &index[..]].concat(),
    ];
    fuzz(
        "segment recovery",
        |_| corpus.to_vec(),
        fuzzed::segment_recovery,
    );
}

#[test]
fn state_files() {
    let mut epochs = LeaderEpochs::default();
    epochs.assign(LeaderEpoch(1), Offset(0));
    epochs.assign(LeaderEpoch(4), Offset(700));
    let topic = TopicPartition {
        topic: TopicId(uuid::Uuid::from_u128(5)),
        partition: PartitionIndex(0),
    };
    let checkpoint = PartitionCheckpoint {
        partition: topic,
        log_start_offset: Offset(3),
        recovery_point: RecoveryPoint::segment_start(Offset(100), LeaderEpoch(2)),
    };
    let mut producers = ProducerState::default();
    let batch = BatchBuilder::new()
        .producer(ProducerId(9), ProducerEpoch(0), Sequence(0))
        .record(TimestampMs(1), None, None)
        .build();
    let header = RecordBatchHeader::parse(&batch).expect("a built batch has a header");
    producers.record(
        &ProducerBatch::of(&header).expect("the batch has a producer"),
        Offset(0),
        Offset(0),
        TimestampMs(1),
        0,
    );
    let replica = PartitionRecord {
        replicas: vec![1],
        isr: vec![1],
        leader: Some(1),
        leader_epoch: 0,
        partition_epoch: 0,
    };
    let records = [
        MetadataRecord::ClusterFormed { cluster_id: 7 },
        MetadataRecord::TopicCreated {
            topic_id: 5,
            name: "topic".into(),
            partitions: vec![replica],
            settings: vec![("retention.ms".into(), "1000".into())],
        },
    ];
    let files = [
        checkpoint.encode(),
        producer_snapshot::encode(&producers, Offset(0)),
        epochs.encode().into_bytes(),
        encode_records(&records).expect("records encode").to_vec(),
    ];
    let corpus: Vec<Vec<u8>> = files
        .iter()
        .flat_map(|file| [0, 1].map(|choice| [&[choice], &file[..]].concat()))
        .collect();
    fuzz("state files", |_| corpus.clone(), fuzzed::state_file);
}

/// Breaks inputs of the corpus until the time is over. A failure shows the input.
fn fuzz(name: &str, corpus: impl FnOnce(&mut StdRng) -> Vec<Vec<u8>>, target: fn(&[u8])) {
    let seed = variable("CORELOG_SEED").unwrap_or_else(rand::random::<u32>);
    let seconds = variable("CORELOG_FUZZ_SECONDS").unwrap_or(SECONDS_DEFAULT);
    println!("{name}: CORELOG_SEED={seed}");
    let mut rng = StdRng::seed_from_u64(seed.into());
    let corpus = corpus(&mut rng);
    corpus
        .iter()
        .for_each(|input| attempt(name, seed, input, target));
    let deadline = Instant::now() + Duration::from_secs_f64(seconds);
    let mut tried_count = 0u64;
    while Instant::now() < deadline {
        let mut input = corpus[rng.random_range(0..corpus.len())].clone();
        for _ in 0..rng.random_range(1..6) {
            mutate(&mut input, &corpus, &mut rng);
        }
        attempt(name, seed, &input, target);
        tried_count += 1;
    }
    println!("{name}: {tried_count} inputs");
}

fn attempt(name: &str, seed: u32, input: &[u8], target: fn(&[u8])) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| target(input))) {
        println!(
            "{name}: CORELOG_SEED={seed} fails on the {} bytes {input:02x?}",
            input.len()
        );
        resume_unwind(panic);
    }
}

fn variable<T: std::str::FromStr>(name: &str) -> Option<T> {
    std::env::var(name).ok()?.parse().ok()
}

/// Numbers at which lengths and counts go wrong.
const EDGES: [u64; 12] = [
    0,
    1,
    0x7f,
    0x80,
    0xff,
    0x7fff,
    0x8000,
    0xffff,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    u64::MAX,
];

fn mutate(input: &mut Vec<u8>, corpus: &[Vec<u8>], rng: &mut StdRng) {
    if input.is_empty() {
        input.push(rng.random());
        return;
    }
    let at = rng.random_range(0..input.len());
    match rng.random_range(0..8) {
        0 => input[at] ^= 1 << rng.random_range(0..8),
        1 => input[at] = rng.random(),
        2 | 3 => {
            let edge = EDGES[rng.random_range(0..EDGES.len())].to_be_bytes();
            let width = [1, 2, 4, 8][rng.random_range(0..4)].min(input.len() - at);
            input[at..at + width].copy_from_slice(&edge[8 - width..]);
        }
        4 => input.truncate(at),
        5 => {
            let end = rng.random_range(at..input.len().min(at + 64) + 1);
            input.drain(at..end);
        }
        6 if input.len() < INPUT_BYTES_MAX => {
            let inserted: Vec<u8> = (0..rng.random_range(1..9)).map(|_| rng.random()).collect();
            input.splice(at..at, inserted);
        }
        _ => {
            let other = &corpus[rng.random_range(0..corpus.len())];
            let from = rng.random_range(0..other.len().max(1)).min(other.len());
            input.truncate(at);
            input.extend_from_slice(&other[from..]);
        }
    }
}
