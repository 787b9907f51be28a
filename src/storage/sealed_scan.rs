//! Reading a sealed segment forward, whether it lies as it was appended or as compaction left it.

use std::path::Path;

use crate::model::{FilePosition, Offset};
use crate::record::RecordBatchHeader;

use super::file_error::FileError;
use super::scan::{BadBatch, ScanEnd, ScanStart, ScanStop, scan_cleaned_file, scan_file};

/// Scans a segment that another one follows, at `segment_end`. Gaps are taken for compaction's if everything behind the first one is whole
/// and leads to the segment's end, which compaction never takes away. Otherwise the first one is where the segment is damaged: a base
/// offset lies outside the CRC, and one that was flipped would pass for a gap.
pub fn scan_sealed(
    path: &Path,
    start: ScanStart,
    segment_end: Offset,
    mut on_batch: impl FnMut(&RecordBatchHeader, FilePosition),
) -> Result<ScanEnd, FileError> {
    let unbroken = scan_file(path, start, Some(segment_end), &mut on_batch)?;
    if !may_be_gap(unbroken.stop) {
        return Ok(unbroken);
    }
    let from = ScanStart {
        segment: start.segment,
        position: unbroken.position,
        next_offset: unbroken.next_offset,
        leader_epoch: unbroken.leader_epoch,
    };
    let seen = scan_cleaned_file(path, from, Some(segment_end), |_, _| {})?;
    if seen.next_offset != segment_end {
        return Ok(unbroken);
    }
    let rest = scan_cleaned_file(path, from, Some(segment_end), on_batch)?;
    Ok(ScanEnd {
        bytes_read: unbroken.bytes_read + seen.bytes_read + rest.bytes_read,
        ..rest
    })
}

fn may_be_gap(stop: ScanStop) -> bool {
    match stop {
        ScanStop::BadBatch(BadBatch::BaseOffset { expected, found }) => found > expected,
        ScanStop::BadBatch(BadBatch::Counts { .. }) => true,
        ScanStop::BadBatch(_) | ScanStop::EndOfFile | ScanStop::SegmentEnd | ScanStop::ZeroTail => {
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{LeaderEpoch, TimestampMs};
    use crate::record::InflateBounds;
    use crate::record::encode::BatchBuilder;
    use crate::record::kept_records::KeptRecords;
    use crate::record::records::RecordReader;

    fn batch(base_offset: i64, record_count: usize) -> Vec<u8> {
        let mut builder = BatchBuilder::new().base_offset(Offset(base_offset));
        for _ in 0..record_count {
            builder.push(TimestampMs(1), Some(b"key"), Some(&[7; 100]), &[]);
        }
        builder.build()
    }

    fn thinned(batch: &[u8]) -> Vec<u8> {
        let mut reader = RecordReader::new(batch, InflateBounds::up_to(1 << 20)).unwrap();
        let mut kept = KeptRecords::of(*reader.header());
        let (body, encoded) = reader.next_encoded().unwrap().unwrap();
        kept.push(&body, encoded);
        kept.build().unwrap()
    }

    fn scan(bytes: &[u8], segment_end: i64) -> (Vec<i64>, ScanEnd) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        std::fs::write(&path, bytes).unwrap();
        let start = ScanStart::of_segment(Offset(0), LeaderEpoch::UNKNOWN);
        let mut seen = Vec::new();
        let end = scan_sealed(&path, start, Offset(segment_end), |header, _| {
            seen.push(header.base_offset.0);
        });
        (seen, end.unwrap())
    }

    #[test]
    fn gaps_that_lead_to_the_segments_end_are_compactions() {
        let bytes = [batch(3, 2), thinned(&batch(9, 4)), batch(20, 1)].concat();
        let (seen, end) = scan(&bytes, 21);
        assert_eq!(seen, [3, 9, 20]);
        assert_eq!(
            (end.next_offset, end.position.0),
            (Offset(21), bytes.len() as u64)
        );
    }

    #[test]
    fn a_gap_with_a_damaged_batch_or_a_lost_end_behind_it_is_a_loss() {
        let bytes = [batch(0, 2), batch(5, 2), batch(9, 1)].concat();
        assert_eq!(scan(&bytes, 10).0, [0, 5, 9]);
        let (seen, end) = scan(&bytes, 12);
        assert_eq!(
            (seen, end.next_offset),
            (vec![0], Offset(2)),
            "its end is lost"
        );
        let mut damaged = bytes.clone();
        let last = damaged.len() - 1;
        damaged[last] ^= 1;
        assert_eq!(scan(&damaged, 10).0, [0]);
    }

    #[test]
    fn a_flipped_base_offset_is_no_gap() {
        let whole = [batch(0, 2), batch(2, 2), batch(4, 2)].concat();
        let second = batch(0, 2).len();
        for at in [second, 2 * second] {
            let mut flipped = whole.clone();
            flipped[at + 7] ^= 0x10;
            let (seen, end) = scan(&flipped, 6);
            assert_eq!(seen.len(), at / second);
            assert_eq!(end.position.0, at as u64);
        }
    }
}
