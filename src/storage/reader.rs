//! Reads batches that are on disk: finds the batch by the sparse index, then hops from header to header.

use crate::io::disk::DiskError;
use crate::io::executor;
use crate::io::os_error::Shortage;
use crate::model::limits::{
    READ_BLOCK_BYTES, READ_CHECKED_BYTES_PER_SLICE, RECORD_BATCH_HEADER_BYTES,
};
use crate::model::{FilePosition, Offset, TimestampMs};
use crate::record::InflateBounds;
use crate::record::header::{CrcCheck, RecordBatchHeader};
use crate::record::records::{RecordReader, RecordsError};
use crate::storage::batch_selection::{Selection, Wanted, select};
use crate::storage::byte_run::ByteRun;
use crate::storage::file_error::FileError;
use crate::storage::log::{Floor, SegmentRead, SegmentView};
use crate::storage::read_ahead::ReadAhead;
use crate::storage::read_steps::ReadSteps;
use crate::storage::record_steps::inflate_next;

#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error(transparent)]
    Disk(#[from] DiskError),
    #[error(transparent)]
    Index(#[from] FileError),
    #[error("{path}: the batch at position {position} is damaged", path = path.display())]
    Corrupt {
        path: std::path::PathBuf,
        position: FilePosition,
    },
}

impl ReadError {
    /// What the system was short of, if that is all: the same read may succeed later.
    pub fn shortage(&self) -> Option<Shortage> {
        match self {
            Self::Disk(error) => error.shortage(),
            Self::Index(error) => error.shortage(),
            Self::Corrupt { .. } => None,
        }
    }
}

/// A record found by its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimestampedOffset {
    pub timestamp: TimestampMs,
    pub offset: Offset,
}

/// The batches that `read` asks for, checksums verified; an empty run if there are none to show.
pub async fn read_batches(read: SegmentRead, ahead: &ReadAhead) -> Result<ByteRun, ReadError> {
    let SegmentRead {
        key,
        path,
        floor,
        readable_end,
        wanted,
    } = read;
    let mut start = floor_of(&floor, wanted.offset).await?;
    let mut end = start.plus(
        wanted
            .max_bytes
            .clamp(READ_BLOCK_BYTES / 16, READ_BLOCK_BYTES) as u64,
    );
    while start < readable_end {
        let run = ahead
            .read(key, &path, start, end.min(readable_end), readable_end)
            .await?;
        match select(&run, wanted, readable_end, &mut ReadSteps::unbounded()) {
            Selection::Batches { start, end, .. } => {
                let end = intact_end(&run, start, end).await;
                if end == start {
                    return Err(ReadError::Corrupt {
                        path,
                        position: start,
                    });
                }
                return Ok(run.cut(start, end));
            }
            Selection::Nothing => break,
            Selection::Corrupt { position } => return Err(ReadError::Corrupt { path, position }),
            Selection::Needs {
                start: from,
                end: to,
            } => {
                start = from;
                end = to.max(from.plus(wanted.max_bytes.min(READ_BLOCK_BYTES) as u64));
            }
            Selection::Paused { position } => start = position,
        }
    }
    Ok(ByteRun::starting_at(start))
}

/// The end of those of the batches from `start` to `end` that fit their checksums, up to the first that does not: bytes from a disk are not
/// trusted. Gives way to others meanwhile.
async fn intact_end(run: &ByteRun, start: FilePosition, end: FilePosition) -> FilePosition {
    let mut cursor = run.cursor();
    let mut position = start;
    let mut checked_bytes = 0;
    while position < end {
        let mut header = [0; RECORD_BATCH_HEADER_BYTES];
        let is_there = cursor.copy_at(position, &mut header);
        assert!(is_there, "a selected batch lies in the run");
        let header = RecordBatchHeader::from_array(&header).expect("a selected batch has a header");
        let batch_end = position.plus(header.size_bytes() as u64);
        let mut check = CrcCheck::default();
        for piece in cursor.pieces(position, batch_end) {
            for part in piece.chunks(READ_CHECKED_BYTES_PER_SLICE) {
                check.add(part);
                checked_bytes += part.len();
                if checked_bytes >= READ_CHECKED_BYTES_PER_SLICE {
                    checked_bytes = 0;
                    executor::yield_if_needed().await;
                }
            }
        }
        if !check.fits(&header) {
            break;
        }
        position = batch_end;
    }
    position
}

/// What a lookup by time came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundByTime {
    pub record: Option<TimestampedOffset>,
    /// The base offsets of the batches before it whose headers promise such a record, but that have none which reads.
    pub misleading: Vec<Offset>,
}

/// The first record, in offset order from `from` on and below `below`, whose timestamp is `timestamp` or later. A batch whose records do not
/// read, which no consumer could read either, or not within `bounds`, is passed over.
pub async fn find_by_time(
    views: Vec<SegmentView>,
    timestamp: TimestampMs,
    from: Offset,
    below: Offset,
    bounds: InflateBounds,
    ahead: &ReadAhead,
) -> Result<FoundByTime, ReadError> {
    let mut found = FoundByTime::default();
    for view in views {
        let mut next = match &view.floor {
            Floor::At(_) => from,
            Floor::InIndexOf(segment) => {
                segment.indexes().await?.floor_by_time(timestamp).max(from)
            }
        };
        let mut floor = view.floor;
        loop {
            let wanted = Wanted {
                offset: next,
                max_bytes: READ_BLOCK_BYTES,
                first_whole: true,
                below,
            };
            let SegmentView {
                key,
                ref path,
                readable_end,
                ..
            } = view;
            let read = SegmentRead {
                key,
                path: path.clone(),
                floor,
                readable_end,
                wanted,
            };
            let run = read_batches(read, ahead).await?;
            if run.is_empty() {
                break;
            }
            let bytes = run.to_contiguous();
            let mut rest = &bytes[..];
            while let Ok(header) = RecordBatchHeader::parse(rest) {
                executor::yield_if_needed().await;
                let (batch, behind) = rest.split_at(header.size_bytes());
                if header.max_timestamp >= timestamp {
                    match first_record_at(batch, timestamp, from, bounds).await {
                        Ok(None) if header.base_offset < from => {}
                        Ok(None) => found.misleading.push(header.base_offset),
                        Ok(Some(record)) => {
                            found.record = (record.offset < below).then_some(record);
                            return Ok(found);
                        }
                        Err(reason) => {
                            let base_offset = header.base_offset;
                            tracing::debug!(path = %path.display(), %base_offset, %reason, "a lookup by time passes over a batch that does not read");
                            found.misleading.push(base_offset);
                        }
                    }
                }
                next = header.next_offset();
                rest = behind;
            }
            floor = Floor::At(run.end());
        }
    }
    Ok(found)
}

async fn first_record_at(
    batch: &[u8],
    timestamp: TimestampMs,
    from: Offset,
    bounds: InflateBounds,
) -> Result<Option<TimestampedOffset>, RecordsError> {
    let mut records = RecordReader::new(batch, bounds)?;
    loop {
        inflate_next(&mut records).await?;
        let Some(record) = records.next_record()? else {
            break;
        };
        if record.timestamp >= timestamp && record.offset >= from {
            return Ok(Some(TimestampedOffset {
                timestamp: record.timestamp,
                offset: record.offset,
            }));
        }
    }
    Ok(None)
}

async fn floor_of(floor: &Floor, offset: Offset) -> Result<FilePosition, FileError> {
    match floor {
        Floor::At(position) => Ok(*position),
        Floor::InIndexOf(segment) => Ok(segment.indexes().await?.floor(offset)),
    }
}
