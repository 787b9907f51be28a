//! Apache Kafka's own dump tool reads what we write: segments, offset indexes and time indexes.
//!
//! Needs `CORELOG_KAFKA_LIBS`, a directory with the jars of Kafka 4.4 (`scripts/test` installs them), and Java.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use corelog::model::{
    FilePosition, LeaderEpoch, Offset, ProducerEpoch, ProducerId, Sequence, TimestampMs,
};
use corelog::record::encode::BatchBuilder;
use corelog::record::{Codec, RecordBatchHeader};
use corelog::storage::index_builder::{IndexBuilder, IndexLengths};
use corelog::storage::index_files::IndexTail;
use corelog::storage::segment_name::{SegmentFileKind, SegmentFileName};
use rand::rngs::StdRng;
use rand::{Rng, RngExt, SeedableRng};

/// A segment with both indexes, and what is in them.
struct Segment {
    dir: PathBuf,
    base_offset: Offset,
    batches: usize,
    records: usize,
    indexes: IndexBuilder,
}

impl Segment {
    /// Batches of every codec, with keys, headers, null values, gaps and steps back in time, and idempotent producers.
    fn write(dir: &Path, base_offset: i64, random: &mut StdRng) -> Self {
        let base_offset = Offset(base_offset);
        let mut segment = Self {
            dir: dir.to_owned(),
            base_offset,
            batches: 0,
            records: 0,
            indexes: IndexBuilder::new(base_offset, 4096),
        };
        let (mut bytes, mut next_offset, mut sequence) = (Vec::new(), base_offset, 0);
        for number in 0..400 {
            let codec = Codec::ALL[number % Codec::ALL.len()];
            let mut builder = BatchBuilder::new()
                .codec(codec)
                .base_offset(next_offset)
                .leader_epoch(LeaderEpoch(number as i32 / 150));
            if number % 3 == 0 {
                builder = builder.producer(ProducerId(9), ProducerEpoch(1), Sequence(sequence));
            }
            let record_count = random.random_range(1..20);
            for record in 0..record_count {
                let timestamp =
                    1_790_000_000_000 + number as i64 * 100 + random.random_range(-5_000..5_000);
                let mut value = vec![0; random.random_range(0..300)];
                random.fill_bytes(&mut value);
                let value = (record % 7 != 6).then_some(&value[..]);
                let headers: [(&str, Option<&[u8]>); 2] =
                    [("trace", Some(b"\x00\xff")), ("none", None)];
                let headers = &headers[..record as usize % 3];
                builder.push(
                    TimestampMs(timestamp),
                    (record % 2 == 0).then_some(b"key"),
                    value,
                    headers,
                );
            }
            let batch = builder.build();
            let header = RecordBatchHeader::parse(&batch).unwrap();
            let position = FilePosition(bytes.len() as u64);
            segment
                .indexes
                .on_batch(header.last_offset(), header.max_timestamp, position);
            bytes.extend_from_slice(&batch);
            next_offset = header.next_offset();
            sequence += if number % 3 == 0 { record_count } else { 0 };
            segment.batches += 1;
            segment.records += record_count as usize;
        }
        segment.indexes.seal();
        fs::write(segment.path(SegmentFileKind::Log), bytes).unwrap();
        IndexTail::of(&segment.indexes, IndexLengths::default())
            .write(dir)
            .unwrap();
        segment
    }

    fn path(&self, kind: SegmentFileKind) -> PathBuf {
        self.dir
            .join(SegmentFileName::new(self.base_offset, kind).to_string())
    }
}

/// What the tool printed. Every complaint of its goes to stderr.
struct Dump {
    stdout: String,
    stderr: String,
}

impl Dump {
    fn of(files: &[PathBuf], options: &[&str]) -> Self {
        let libs = std::env::var("CORELOG_KAFKA_LIBS")
            .expect("CORELOG_KAFKA_LIBS names a directory with Kafka's jars; scripts/test installs them and sets it");
        let files: Vec<String> = files
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        let output = Command::new("java")
            .args([
                "-cp",
                &format!("{libs}/*"),
                "org.apache.kafka.tools.DumpLogSegments",
            ])
            .args(["--files", &files.join(",")])
            .args(options)
            .output()
            .expect("java is installed");
        let dump = Self {
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        };
        assert!(
            output.status.success(),
            "DumpLogSegments {options:?} failed: {}{}",
            dump.stdout,
            dump.stderr
        );
        dump
    }

    fn count(&self, text: &str) -> usize {
        self.stdout.matches(text).count()
    }

    /// `expected` are lines on stderr that stand for no fault of ours.
    fn assert_no_complaint(&self, expected: &[String]) {
        let is_expected = |line: &&str| expected.iter().any(|expected| expected == line);
        let logger = |line: &&str| line.starts_with("SLF4J: ");
        let complaints: Vec<&str> = self
            .stderr
            .lines()
            .filter(|line| !logger(line) && !is_expected(line))
            .collect();
        assert_eq!(complaints, [""; 0]);
        // Trailing bytes are told on stdout.
        for complaint in ["Found ", "isvalid: false"] {
            assert_eq!(self.count(complaint), 0, "{complaint:?} in {}", self.stdout);
        }
    }
}

#[test]
fn kafkas_dump_tool_reads_segments_and_indexes_without_a_complaint() {
    let dir = tempfile::tempdir().unwrap();
    let random = &mut StdRng::seed_from_u64(44);
    // The second starts where relative offsets matter.
    let segments = [
        Segment::write(dir.path(), 0, random),
        Segment::write(dir.path(), 7_000_000_000, random),
    ];
    let paths = |kind| segments.iter().map(move |segment| segment.path(kind));
    let logs: Vec<PathBuf> = paths(SegmentFileKind::Log).collect();
    let indexes: Vec<PathBuf> = paths(SegmentFileKind::OffsetIndex)
        .chain(paths(SegmentFileKind::TimeIndex))
        .collect();

    let dump = Dump::of(&logs, &["--deep-iteration", "--print-data-log"]);
    // The tool takes every segment that does not start at 0 for one with a gap in front, Kafka's own too.
    dump.assert_no_complaint(&[
        format!("Non-consecutive offsets in {}", logs[1].display()),
        format!("  -1 is followed by {}", segments[1].base_offset),
    ]);
    assert_eq!(
        dump.count("isvalid: true"),
        segments
            .iter()
            .map(|segment| segment.batches)
            .sum::<usize>()
    );
    assert_eq!(
        dump.count("| offset: "),
        segments
            .iter()
            .map(|segment| segment.records)
            .sum::<usize>()
    );

    let dump = Dump::of(&indexes, &[]);
    dump.assert_no_complaint(&[]);
    let entries = |index: fn(&Segment) -> usize| segments.iter().map(index).sum::<usize>();
    assert_eq!(
        dump.count(" position: "),
        entries(|segment| segment.indexes.offsets().len())
    );
    assert_eq!(
        dump.count("timestamp: "),
        entries(|segment| segment.indexes.times().len())
    );
    assert!(
        dump.count(" position: ") > 100 && dump.count("timestamp: ") > 30,
        "{}",
        dump.stdout
    );

    let dump = Dump::of(&indexes, &["--index-sanity-check"]);
    dump.assert_no_complaint(&[]);
    assert_eq!(dump.count("passed sanity check"), 4);

    Dump::of(&indexes, &["--verify-index-only"]).assert_no_complaint(&[]);
}

#[test]
fn kafkas_dump_tool_would_complain_about_a_wrong_index() {
    let dir = tempfile::tempdir().unwrap();
    let segment = Segment::write(dir.path(), 0, &mut StdRng::seed_from_u64(45));
    for (kind, last_byte_of_first_offset) in [
        (SegmentFileKind::OffsetIndex, 3),
        (SegmentFileKind::TimeIndex, 11),
    ] {
        let mut bytes = fs::read(segment.path(kind)).unwrap();
        bytes[last_byte_of_first_offset] ^= 1;
        fs::write(segment.path(kind), bytes).unwrap();
        let dump = Dump::of(&[segment.path(kind)], &["--verify-index-only"]);
        assert_ne!(dump.stderr, "", "{kind:?}");
    }
}
