//! What fuzzing asserts, one function for each parser of bytes that others wrote. `fuzz/` drives them by coverage,
//! `tests/fuzz_seeded.rs` by mutating good input.

use bytes::Bytes;
use corelog::metadata::{self, MetadataImage};
use corelog::model::{
    FilePosition, LeaderEpoch, Offset, PartitionIndex, TimestampMs, TopicId, TopicPartition,
};
use corelog::protocol::frame::{self, Next};
use corelog::protocol::request::Request;
use corelog::record::encode::seal;
use corelog::record::header::LOG_OVERHEAD_BYTES;
use corelog::record::records::{RecordReader, first_at_or_after, first_of_max_timestamp};
use corelog::record::{
    Codec, InflateBounds, RecordBatchHeader, RecordValidation, TimestampType, ValidationRules,
    validate,
};
use corelog::storage::checkpoint::PartitionCheckpoint;
use corelog::storage::leader_epochs::LeaderEpochs;
use corelog::storage::offset_index::{OffsetIndex, SegmentEnd};
use corelog::storage::producer_snapshot;
use corelog::storage::recovery::{RecoveryRules, recover};
use corelog::storage::segment_name::{SegmentFileKind, SegmentFileName};
use corelog::storage::time_index::TimeIndex;

use super::request_bytes;

const FRAME_BYTES_MAX: usize = 1 << 20;

/// A frame is judged the same however its bytes arrive.
pub fn frame(received: &[u8]) {
    let all = frame::next(received, FRAME_BYTES_MAX);
    for cut in 0..received.len().min(64) {
        match frame::next(&received[..cut], FRAME_BYTES_MAX) {
            Ok(Next::NoLength) => assert!(cut < frame::SIZE_PREFIX_BYTES),
            Ok(Next::Partial { size_bytes }) => {
                assert!(
                    cut < size_bytes && size_bytes <= frame::SIZE_PREFIX_BYTES + FRAME_BYTES_MAX
                );
                assert!(
                    matches!(all, Ok(Next::Partial { size_bytes: all } | Next::Whole { size_bytes: all }) if all == size_bytes)
                );
            }
            Ok(Next::Whole { size_bytes }) => {
                assert!(cut >= size_bytes);
                assert_eq!(all, Ok(Next::Whole { size_bytes }));
            }
            Err(error) => assert_eq!(all, Err(error)),
        }
    }
}

/// What passes the walk is read by the codec without a panic. Strings that are not UTF-8, and tags in versions
/// before their own, are the codec's to refuse.
pub fn request(frame: &[u8]) {
    let frame = Bytes::copy_from_slice(frame);
    if let Ok(request) = Request::decode(&frame) {
        drop(request_bytes::recode(
            request.key,
            request.version,
            &request.body,
        ));
    }
}

/// A produced batch gets an answer under any rules; what passes fits its stamped header, and can be walked. The first byte chooses whether
/// length and CRC are made right before, so that the checks behind them are reached.
pub fn record_batch(input: &[u8]) {
    let Some((choice, batch)) = input.split_first() else {
        return;
    };
    let mut batch = batch.to_vec();
    if choice & 32 != 0 && batch.len() >= 61 {
        // So the walk over what was inflated is reached, whatever the records are.
        let codec = Codec::ALL[1 + usize::from(choice >> 6)];
        let records = codec
            .compress(&batch.split_off(61))
            .expect("memory is enough");
        batch.extend(records);
        batch[22] = batch[22] & !7 | codec.id();
    }
    if choice & 1 == 1 && batch.len() >= 61 {
        let batch_length = (batch.len() - LOG_OVERHEAD_BYTES) as i32;
        batch[8..12].copy_from_slice(&batch_length.to_be_bytes());
        seal(&mut batch);
    }
    let rules = ValidationRules {
        batch_bytes_max: FRAME_BYTES_MAX,
        timestamp_type: if choice & 2 == 0 {
            TimestampType::CreateTime
        } else {
            TimestampType::LogAppendTime
        },
        timestamp_before_max_ms: if choice & 4 == 0 { i64::MAX } else { 0 },
        timestamp_after_max_ms: if choice & 4 == 0 { i64::MAX } else { 0 },
        is_compacted: choice & 8 != 0,
        records: if choice & 16 == 0 {
            RecordValidation::Full
        } else {
            RecordValidation::Header
        },
    };
    let valid = validate(&batch, &rules, TimestampMs(1_000));
    let read = read_all(&batch);
    if let Ok(valid) = valid {
        batch[..61].copy_from_slice(&valid.stamped_header(Offset(7), LeaderEpoch(3)));
        let stored = RecordBatchHeader::parse(&batch).expect("what was valid has a header");
        assert!(stored.crc_fits(&batch));
        assert_eq!(
            stored.next_offset().since(stored.base_offset),
            i64::from(valid.record_count())
        );
        if rules.is_compacted || rules.records == RecordValidation::Full {
            assert_eq!(read, Some(valid.record_count()));
        }
    }
    let _ = first_at_or_after(&batch, TimestampMs(1), InflateBounds::WIDEST);
    let _ = first_of_max_timestamp(&batch, InflateBounds::WIDEST);
}

/// How many records there are, if all can be read.
fn read_all(batch: &[u8]) -> Option<i32> {
    let mut reader = RecordReader::new(batch, InflateBounds::WIDEST).ok()?;
    let mut read_count = 0;
    while let Some(record) = reader.next_body().ok()? {
        assert_eq!(record.headers.iter().count(), record.headers.len());
        read_count += 1;
    }
    Some(read_count)
}

/// An index file decodes to what encodes to the same file, or not at all; look-ups in it are total.
pub fn offset_index(file: &[u8]) {
    let base_offset = Offset(1_000);
    let end = SegmentEnd {
        position: FilePosition(1 << 30),
        offset: Offset(i64::MAX),
    };
    if let Ok(index) = OffsetIndex::decode(base_offset, file, end) {
        assert_eq!(index.encode_from(0), file);
        for offset in [0, 1_000, 1_001, i64::MAX].map(Offset) {
            assert!(index.lookup(offset).position < end.position);
        }
    }
    if let Ok(index) = TimeIndex::decode(base_offset, file, end) {
        assert_eq!(index.encode_from(0), file);
        for timestamp in [i64::MIN, -1, 0, 1_000, i64::MAX].map(TimestampMs) {
            assert!(
                index
                    .lookup(timestamp)
                    .is_none_or(|entry| entry.timestamp <= timestamp)
            );
        }
    }
}

/// A partition whose files hold anything recovers to whole batches in order, a prefix of what was there; and a second recovery finds the
/// same. The first byte chooses how much of the input is the index and not the segment.
pub fn segment_recovery(input: &[u8]) {
    let Some((choice, files)) = input.split_first() else {
        return;
    };
    let (segment, index) = files.split_at(files.len().saturating_sub(usize::from(*choice) * 4));
    let dir = tempfile::tempdir_in("/dev/shm")
        .or_else(|_| tempfile::tempdir())
        .expect("a temporary directory");
    let path = |kind| {
        dir.path()
            .join(SegmentFileName::new(Offset(0), kind).to_string())
    };
    std::fs::write(path(SegmentFileKind::Log), segment).expect("the segment is written");
    std::fs::write(path(SegmentFileKind::OffsetIndex), index).expect("the index is written");
    let partition = TopicPartition {
        topic: TopicId::ZERO,
        partition: PartitionIndex(0),
    };
    let rules = RecoveryRules {
        index_interval_bytes: 100,
        now_ns: 0,
    };
    let recover = || {
        recover(dir.path(), partition, &rules).expect("no file of the directory is beyond reading")
    };

    let first = recover();
    let kept = std::fs::read(path(SegmentFileKind::Log)).expect("the segment is there");
    assert_eq!(kept.len() as u64, first.active.size_bytes);
    assert_eq!(kept, segment[..kept.len()]);
    assert_eq!(end_of_batches(&kept), first.log_end_offset);
    let second = recover();
    assert_eq!(
        (second.log_end_offset, second.active.size_bytes),
        (first.log_end_offset, first.active.size_bytes)
    );
    assert_eq!(second.cuts, []);
}

/// Reads a segment that must be whole; gives the offset behind it.
fn end_of_batches(mut segment: &[u8]) -> Offset {
    let mut end = Offset(0);
    while !segment.is_empty() {
        let header = RecordBatchHeader::parse(segment).expect("a batch follows");
        let (batch, rest) = segment.split_at(header.size_bytes());
        assert!(header.crc_fits(batch));
        assert_eq!(header.base_offset, end);
        end = header.next_offset();
        segment = rest;
    }
    end
}

/// The broker's own small files decode or are told damaged. The first byte chooses whether length and CRC are made right before.
pub fn state_file(input: &[u8]) {
    let Some((choice, file)) = input.split_first() else {
        return;
    };
    let mut file = file.to_vec();
    if choice & 1 == 1 && file.len() >= STATE_FILE_HEAD_BYTES {
        let body_bytes = (file.len() - STATE_FILE_HEAD_BYTES) as u32;
        file[8..12].copy_from_slice(&body_bytes.to_le_bytes());
        let mut crc = crc32fast::Hasher::new();
        crc.update(&file[4..12]);
        crc.update(&file[STATE_FILE_HEAD_BYTES..]);
        file[12..STATE_FILE_HEAD_BYTES].copy_from_slice(&crc.finalize().to_le_bytes());
    }
    if let Ok(checkpoint) = PartitionCheckpoint::decode(&file) {
        assert_eq!(
            PartitionCheckpoint::decode(&checkpoint.encode()).as_ref(),
            Ok(&checkpoint)
        );
    }
    let _ = producer_snapshot::decode(&file, Offset(0), 0);
    if let Ok(epochs) = std::str::from_utf8(&file)
        .map_err(drop)
        .and_then(|text| LeaderEpochs::decode(text).map_err(drop))
    {
        assert_eq!(LeaderEpochs::decode(&epochs.encode()).as_ref(), Ok(&epochs));
    }
    if let Ok(records) = metadata::decode_records(metadata::RECORD_LAYOUT_VERSION, &file) {
        let _ = MetadataImage::from_records(&records);
    }
}

/// Magic, version, length and CRC of [`corelog::storage::checksum_frame`].
const STATE_FILE_HEAD_BYTES: usize = 16;
