use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use std::path::Path;

use crate::io::fs::File;
use crate::model::limits::{RECORD_BATCH_HEADER_BYTES, SCAN_BUFFER_BYTES};
use crate::model::{FilePosition, LeaderEpoch, Offset};
use crate::record::header::CRC_COVERS_FROM;
use crate::record::{HeaderError, RecordBatchHeader};

use super::file_error::FileError;

/// Where a scan of a segment starts, and what it knows of the log in front of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScanStart {
    /// The segment's base offset.
    pub segment: Offset,
    pub position: FilePosition,
    /// The base offset that the first batch must have.
    pub next_offset: Offset,
    /// The epoch of the batch in front; the first one must not be older.
    pub leader_epoch: LeaderEpoch,
}

impl ScanStart {
    /// The whole segment.
    pub fn of_segment(base_offset: Offset, leader_epoch: LeaderEpoch) -> Self {
        Self {
            segment: base_offset,
            position: FilePosition::ZERO,
            next_offset: base_offset,
            leader_epoch,
        }
    }
}

/// Where a scan ended: everything in front of it is whole and in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScanEnd {
    pub position: FilePosition,
    pub next_offset: Offset,
    pub leader_epoch: LeaderEpoch,
    pub stop: ScanStop,
    /// What was read, the bytes of a bad batch included.
    pub bytes_read: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScanStop {
    /// The last batch ends where the file does.
    EndOfFile,
    /// The next batch belongs to the next segment.
    SegmentEnd,
    /// Space that was reserved ahead and never written.
    ZeroTail,
    BadBatch(BadBatch),
}

/// Why the bytes at a position are not the log's next batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadBatch {
    #[error(transparent)]
    Header(#[from] HeaderError),
    #[error("its base offset is {found} and not {expected}")]
    BaseOffset { expected: Offset, found: Offset },
    #[error("it declares {record_count} records and a last offset delta of {last_offset_delta}")]
    Counts {
        record_count: i32,
        last_offset_delta: i32,
    },
    #[error(
        "its last offset {last_offset} or its position {position} is too high for a segment that starts at {segment}"
    )]
    TooFar {
        last_offset: Offset,
        position: FilePosition,
        segment: Offset,
    },
    #[error(
        "its last offset {last_offset} lies behind the segment's, which ends in front of {segment_end}"
    )]
    BehindSegment {
        last_offset: Offset,
        segment_end: Offset,
    },
    #[error("its leader epoch {found} is older than {last}, the one in front")]
    LeaderEpoch {
        last: LeaderEpoch,
        found: LeaderEpoch,
    },
    #[error("it has {size_bytes} bytes, but the file ends after {have_bytes}")]
    Torn { size_bytes: u64, have_bytes: u64 },
    #[error("its CRC-32C is {computed:08x} and not {declared:08x}")]
    Crc { declared: u32, computed: u32 },
}

/// Reads the batches of a segment file in order and checks each: header, base offset, counts, leader epoch, whole length, CRC. It
/// stops at the first that is not the log's next batch; what lies behind is never looked at. `on_batch` gets each good one.
///
/// `source` stands at `start.position`; `segment_end` is the next segment's base offset, if there is one. The memory it takes is
/// `source`'s buffer, whatever length a batch declares.
///
/// A recycled file holds old batches behind the end of the log, whole and with valid CRCs. They are told by their base offset, which
/// is why a file is only ever recycled within its partition: there, old offsets are lower ones.
pub fn scan(
    source: &mut impl BufRead,
    start: ScanStart,
    segment_end: Option<Offset>,
    on_batch: impl FnMut(&RecordBatchHeader, FilePosition),
) -> io::Result<ScanEnd> {
    scan_batches(source, start, segment_end, Continuity::Unbroken, on_batch)
}

/// How the batches of a segment must follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Continuity {
    /// As they were appended: offset by offset.
    Unbroken,
    /// As compaction left them: upwards.
    WithGaps,
}

fn scan_batches(
    source: &mut impl BufRead,
    start: ScanStart,
    segment_end: Option<Offset>,
    continuity: Continuity,
    mut on_batch: impl FnMut(&RecordBatchHeader, FilePosition),
) -> io::Result<ScanEnd> {
    let ScanStart {
        segment,
        mut position,
        mut next_offset,
        mut leader_epoch,
    } = start;
    let mut bytes_read = 0;
    let stop = loop {
        if segment_end.is_some_and(|end| next_offset >= end) {
            break ScanStop::SegmentEnd;
        }
        let mut header_bytes = [0; RECORD_BATCH_HEADER_BYTES];
        let have_bytes = read_up_to(source, &mut header_bytes)?;
        bytes_read += have_bytes as u64;
        if have_bytes == 0 {
            break ScanStop::EndOfFile;
        }
        if header_bytes[..have_bytes].iter().all(|&byte| byte == 0) {
            break ScanStop::ZeroTail;
        }
        let expected = ScanStart {
            segment,
            position,
            next_offset,
            leader_epoch,
        };
        let header = match check_header(
            &header_bytes[..have_bytes],
            expected,
            segment_end,
            continuity,
        ) {
            Ok(header) => header,
            Err(bad) => break ScanStop::BadBatch(bad),
        };
        let size_bytes = header.size_bytes() as u64;
        let rest_bytes = size_bytes - RECORD_BATCH_HEADER_BYTES as u64;
        let (computed, rest_read) = crc_of_rest(source, &header_bytes, rest_bytes)?;
        bytes_read += rest_read;
        if rest_read < rest_bytes {
            let have_bytes = RECORD_BATCH_HEADER_BYTES as u64 + rest_read;
            break ScanStop::BadBatch(BadBatch::Torn {
                size_bytes,
                have_bytes,
            });
        }
        if computed != header.crc {
            break ScanStop::BadBatch(BadBatch::Crc {
                declared: header.crc,
                computed,
            });
        }
        on_batch(&header, position);
        position = position.plus(size_bytes);
        next_offset = header.next_offset();
        leader_epoch = header.leader_epoch;
    };
    Ok(ScanEnd {
        position,
        next_offset,
        leader_epoch,
        stop,
        bytes_read,
    })
}

/// Scans a segment file from its start position on.
pub fn scan_file(
    path: &Path,
    start: ScanStart,
    segment_end: Option<Offset>,
    on_batch: impl FnMut(&RecordBatchHeader, FilePosition),
) -> Result<ScanEnd, FileError> {
    scan_batches_of_file(path, start, segment_end, Continuity::Unbroken, on_batch)
}

/// Scans the file of a segment that compaction has made: offsets may be missing between its batches, and records in them.
pub fn scan_cleaned_file(
    path: &Path,
    start: ScanStart,
    segment_end: Option<Offset>,
    on_batch: impl FnMut(&RecordBatchHeader, FilePosition),
) -> Result<ScanEnd, FileError> {
    scan_batches_of_file(path, start, segment_end, Continuity::WithGaps, on_batch)
}

fn scan_batches_of_file(
    path: &Path,
    start: ScanStart,
    segment_end: Option<Offset>,
    continuity: Continuity,
    on_batch: impl FnMut(&RecordBatchHeader, FilePosition),
) -> Result<ScanEnd, FileError> {
    let mut file = File::open(path).map_err(FileError::of("open", path))?;
    file.seek(SeekFrom::Start(start.position.0))
        .map_err(FileError::of("seek in", path))?;
    let mut source = BufReader::with_capacity(SCAN_BUFFER_BYTES, file);
    scan_batches(&mut source, start, segment_end, continuity, on_batch)
        .map_err(FileError::of("read", path))
}

fn check_header(
    bytes: &[u8],
    expected: ScanStart,
    segment_end: Option<Offset>,
    continuity: Continuity,
) -> Result<RecordBatchHeader, BadBatch> {
    let header = RecordBatchHeader::parse(bytes)?;
    let may_have_gaps = continuity == Continuity::WithGaps;
    let is_gap = may_have_gaps && header.base_offset > expected.next_offset;
    if header.base_offset != expected.next_offset && !is_gap {
        return Err(BadBatch::BaseOffset {
            expected: expected.next_offset,
            found: header.base_offset,
        });
    }
    let RecordBatchHeader {
        record_count,
        last_offset_delta,
        ..
    } = header;
    let is_whole = i64::from(record_count) == i64::from(last_offset_delta) + 1;
    if !header.counts_fit() || !is_whole && !may_have_gaps {
        return Err(BadBatch::Counts {
            record_count,
            last_offset_delta,
        });
    }
    // What the indexes can hold: both are below 2^31 in Kafka's format.
    let ScanStart {
        segment,
        position,
        leader_epoch,
        ..
    } = expected;
    let last_offset = header.last_offset();
    let in_reach =
        last_offset.since(segment) <= i64::from(i32::MAX) && position.0 <= i32::MAX as u64;
    if !in_reach || last_offset.0 == i64::MAX {
        return Err(BadBatch::TooFar {
            last_offset,
            position,
            segment,
        });
    }
    if let Some(segment_end) = segment_end.filter(|&end| header.next_offset() > end) {
        return Err(BadBatch::BehindSegment {
            last_offset,
            segment_end,
        });
    }
    if header.leader_epoch < leader_epoch {
        return Err(BadBatch::LeaderEpoch {
            last: leader_epoch,
            found: header.leader_epoch,
        });
    }
    Ok(header)
}

/// The CRC of a batch whose header is read, over `rest_bytes` more; and how many of them there were.
fn crc_of_rest(
    source: &mut impl BufRead,
    header: &[u8; RECORD_BATCH_HEADER_BYTES],
    rest_bytes: u64,
) -> io::Result<(u32, u64)> {
    let mut crc = crc32c::crc32c(&header[CRC_COVERS_FROM..]);
    let mut read = 0;
    while read < rest_bytes {
        let buffered = match source.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            buffered => buffered?,
        };
        if buffered.is_empty() {
            break;
        }
        let taken = (rest_bytes - read).min(buffered.len() as u64) as usize;
        crc = crc32c::crc32c_append(crc, &buffered[..taken]);
        source.consume(taken);
        read += taken as u64;
    }
    Ok((crc, read))
}

/// Fills `out` as far as the source goes.
fn read_up_to(source: &mut impl BufRead, out: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < out.len() {
        match source.read(&mut out[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::TimestampMs;
    use crate::record::encode::BatchBuilder;

    fn batch(base_offset: i64, epoch: i32, record_count: usize) -> Vec<u8> {
        let mut builder = BatchBuilder::new()
            .base_offset(Offset(base_offset))
            .leader_epoch(LeaderEpoch(epoch));
        for record in 0..record_count {
            builder.push(
                TimestampMs(base_offset),
                None,
                Some(&[record as u8; 100]),
                &[],
            );
        }
        builder.build()
    }

    fn scan_from(bytes: &[u8], next_offset: i64, segment_end: Option<i64>) -> (Vec<i64>, ScanEnd) {
        let mut seen = Vec::new();
        let start = ScanStart::of_segment(Offset(next_offset), LeaderEpoch(0));
        // A buffer smaller than a header and than every batch.
        let mut source = io::BufReader::with_capacity(13, bytes);
        let end = scan(&mut source, start, segment_end.map(Offset), |header, _| {
            seen.push(header.base_offset.0)
        })
        .unwrap();
        (seen, end)
    }

    #[test]
    fn whole_batches_in_order_are_read_to_the_end() {
        let log = [batch(10, 0, 3), batch(13, 0, 1), batch(14, 2, 20)].concat();
        let (seen, end) = scan_from(&log, 10, None);
        assert_eq!(seen, [10, 13, 14]);
        let expected = ScanEnd {
            position: FilePosition(log.len() as u64),
            next_offset: Offset(34),
            leader_epoch: LeaderEpoch(2),
            stop: ScanStop::EndOfFile,
            bytes_read: log.len() as u64,
        };
        assert_eq!(end, expected);
    }

    #[test]
    fn reserved_space_is_no_damage() {
        for zeros in [1, 11, 61, 5_000] {
            let log = [batch(0, 0, 3), vec![0; zeros]].concat();
            let (seen, end) = scan_from(&log, 0, None);
            assert_eq!(
                (seen, end.stop),
                (vec![0], ScanStop::ZeroTail),
                "{zeros} zeros"
            );
            assert_eq!(end.position.0 as usize, log.len() - zeros);
        }
    }

    #[test]
    fn every_cut_of_the_last_batch_is_refused() {
        let (first, second) = (batch(0, 0, 3), batch(3, 0, 3));
        // Up to 7 bytes of the second batch are the zeros of its base offset's high bytes.
        for kept in 8..second.len() {
            let (seen, end) = scan_from(&[first.as_slice(), &second[..kept]].concat(), 0, None);
            assert_eq!(
                (seen, end.position.0 as usize),
                (vec![0], first.len()),
                "{kept} bytes kept"
            );
            assert!(
                matches!(
                    end.stop,
                    ScanStop::BadBatch(BadBatch::Torn { .. } | BadBatch::Header(_))
                ),
                "{:?}",
                end.stop
            );
        }
    }

    #[test]
    fn every_flipped_bit_is_refused() {
        let (first, second) = (batch(0, 1, 3), batch(3, 1, 2));
        for bit in 0..second.len() * 8 {
            let mut flipped = second.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let (seen, end) = scan_from(
                &[first.as_slice(), &flipped, &batch(5, 1, 1)].concat(),
                0,
                None,
            );
            // The leader epoch is not covered by the CRC: a newer one cannot be told.
            let newer_epoch = (12 * 8..16 * 8).contains(&bit)
                && i32::from_be_bytes(*flipped[12..].first_chunk().unwrap()) > 1;
            if !newer_epoch {
                assert_eq!(
                    (seen, end.position.0 as usize),
                    (vec![0], first.len()),
                    "bit {bit}"
                );
                assert!(matches!(end.stop, ScanStop::BadBatch(_)), "bit {bit}");
            }
        }
    }

    #[test]
    fn old_batches_of_a_recycled_file_are_refused() {
        let old = [batch(100, 0, 5), batch(105, 0, 5), batch(110, 0, 5)].concat();
        let mut recycled = old.clone();
        let new = batch(900, 0, 5);
        assert_eq!(new.len(), old.len() / 3);
        recycled[..new.len()].copy_from_slice(&new);
        let (seen, end) = scan_from(&recycled, 900, None);
        assert_eq!(seen, [900]);
        let bad = BadBatch::BaseOffset {
            expected: Offset(905),
            found: Offset(105),
        };
        assert_eq!(end.stop, ScanStop::BadBatch(bad));
    }

    #[test]
    fn a_leader_epoch_does_not_go_back() {
        let (seen, end) = scan_from(&[batch(0, 3, 1), batch(1, 2, 1)].concat(), 0, None);
        assert_eq!(seen, [0]);
        let bad = BadBatch::LeaderEpoch {
            last: LeaderEpoch(3),
            found: LeaderEpoch(2),
        };
        assert_eq!(end.stop, ScanStop::BadBatch(bad));
    }

    #[test]
    fn a_batch_belongs_to_its_segment() {
        let log = [batch(0, 0, 3), batch(3, 0, 3)].concat();
        let (seen, end) = scan_from(&log, 0, Some(3));
        assert_eq!((seen, end.stop), (vec![0], ScanStop::SegmentEnd));
        let (seen, end) = scan_from(&log, 0, Some(5));
        assert_eq!(seen, [0]);
        let bad = BadBatch::BehindSegment {
            last_offset: Offset(5),
            segment_end: Offset(5),
        };
        assert_eq!(end.stop, ScanStop::BadBatch(bad));
    }

    #[test]
    fn lying_counts_are_refused_even_with_a_valid_crc() {
        let mut header = RecordBatchHeader::parse(&batch(0, 0, 3)).unwrap();
        for (record_count, last_offset_delta) in
            [(3, 3), (3, -1), (0, -1), (-1, 2), (i32::MIN, i32::MAX)]
        {
            header.record_count = record_count;
            header.last_offset_delta = last_offset_delta;
            let (seen, end) = scan_from(&header.to_array(), 0, None);
            assert!(seen.is_empty());
            assert_eq!(
                end.stop,
                ScanStop::BadBatch(BadBatch::Counts {
                    record_count,
                    last_offset_delta
                })
            );
        }
    }

    #[test]
    fn offsets_and_positions_stay_in_reach_of_the_indexes() {
        let mut header = RecordBatchHeader::parse(&batch(0, 0, 1)).unwrap();
        (header.record_count, header.last_offset_delta) = (i32::MAX, i32::MAX - 1);
        let mut lying = header.to_array();
        let crc = crc32c::crc32c(&lying[CRC_COVERS_FROM..]);
        lying[17..21].copy_from_slice(&crc.to_be_bytes());
        header.batch_length = 49;
        lying[8..12].copy_from_slice(&header.batch_length.to_be_bytes());
        let mut second = lying;
        second[..8].copy_from_slice(&i64::from(i32::MAX).to_be_bytes());
        let (seen, end) = scan_from(&[lying, second].concat(), 0, None);
        assert_eq!(seen, [0]);
        assert!(
            matches!(end.stop, ScanStop::BadBatch(BadBatch::TooFar { .. })),
            "{:?}",
            end.stop
        );

        lying[..8].copy_from_slice(&(i64::MAX - 5).to_be_bytes());
        let (seen, end) = scan_from(&lying, i64::MAX - 5, None);
        assert!(seen.is_empty());
        assert!(
            matches!(end.stop, ScanStop::BadBatch(BadBatch::TooFar { .. })),
            "{:?}",
            end.stop
        );
    }

    #[test]
    fn a_lying_length_costs_no_memory() {
        let mut lying = batch(0, 0, 3);
        lying[8..12].copy_from_slice(&i32::MAX.to_be_bytes());
        let (seen, end) = scan_from(&lying, 0, None);
        assert!(seen.is_empty());
        let size_bytes = i32::MAX as u64 + 12;
        let torn = BadBatch::Torn {
            size_bytes,
            have_bytes: lying.len() as u64,
        };
        assert_eq!(end.stop, ScanStop::BadBatch(torn));
    }
}
