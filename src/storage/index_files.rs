use std::path::Path;

use crate::io::fs::File;
use crate::model::limits::RECORD_BATCH_HEADER_BYTES;
use crate::model::{FilePosition, LeaderEpoch, Offset, TimestampMs};
use crate::record::RecordBatchHeader;

use super::atomic_file;
use super::fault_point;
use super::file_error::FileError;
use super::index_builder::{IndexBuilder, IndexLengths};
use super::offset_index::{IndexDamage, OFFSET_INDEX_ENTRY_BYTES, OffsetIndex, SegmentEnd};
use super::partition_files;
use super::scan::{ScanEnd, ScanStart};
use super::sealed_scan::scan_sealed;
use super::segment_name::{SegmentFileKind, SegmentFileName};
use super::time_index::{TIME_INDEX_ENTRY_BYTES, TimeIndex, TimeIndexEntry};

/// The entries of a segment's indexes that their files do not have yet: taken on the partition's core in one turn, written on a
/// blocking thread.
#[derive(Clone, Debug)]
pub struct IndexTail {
    base_offset: Offset,
    saved: IndexLengths,
    offsets: Vec<u8>,
    times: Vec<u8>,
}

impl IndexTail {
    pub fn of(builder: &IndexBuilder, saved: IndexLengths) -> Self {
        Self::of_both(builder.offsets(), builder.times(), saved)
    }

    pub fn of_both(offsets: &OffsetIndex, times: &TimeIndex, saved: IndexLengths) -> Self {
        Self {
            base_offset: offsets.base_offset(),
            saved,
            offsets: offsets.encode_from(saved.offset_entries as usize),
            times: times.encode_from(saved.time_entries as usize),
        }
    }

    /// Writes and syncs both files; they then end where the indexes did. A file that is new survives a power cut only once its
    /// directory is synced, which the checkpoint does that follows.
    pub fn write(&self, dir: &Path) -> Result<(), FileError> {
        self.write_with_suffix(dir, "")
    }

    /// Writes both files as [`write`](Self::write) does, or leaves neither of them where the disk is full: half an index would pass for one
    /// that is whole, and missing ones are made anew from the log. True if they are there.
    pub fn write_if_there_is_space(&self, dir: &Path) -> Result<bool, FileError> {
        match self.write(dir) {
            Err(error) if error.is_disk_full() => {
                partition_files::remove_indexes(dir, self.base_offset)?;
                Ok(false)
            }
            written => written.map(|()| true),
        }
    }

    /// The same into files whose names end with `suffix`.
    pub fn write_with_suffix(&self, dir: &Path, suffix: &str) -> Result<(), FileError> {
        let path = |kind| {
            let name = SegmentFileName::new(self.base_offset, kind);
            dir.join(format!("{name}{suffix}"))
        };
        let offsets_at = u64::from(self.saved.offset_entries) * OFFSET_INDEX_ENTRY_BYTES as u64;
        let times_at = u64::from(self.saved.time_entries) * TIME_INDEX_ENTRY_BYTES as u64;
        write_end(
            &path(SegmentFileKind::OffsetIndex),
            offsets_at,
            &self.offsets,
        )?;
        write_end(&path(SegmentFileKind::TimeIndex), times_at, &self.times)
    }
}

/// The first entries of both files, as many as a checkpoint says are valid; what follows them is of no account.
pub fn load_saved(
    dir: &Path,
    base_offset: Offset,
    saved: IndexLengths,
    end: SegmentEnd,
) -> Result<Result<(OffsetIndex, TimeIndex), IndexDamage>, FileError> {
    let kinds = [
        (
            SegmentFileKind::OffsetIndex,
            saved.offset_entries,
            OFFSET_INDEX_ENTRY_BYTES,
        ),
        (
            SegmentFileKind::TimeIndex,
            saved.time_entries,
            TIME_INDEX_ENTRY_BYTES,
        ),
    ];
    let mut files = [Vec::new(), Vec::new()];
    for ((kind, entries, entry_bytes), file) in kinds.into_iter().zip(&mut files) {
        let size_bytes = entries as usize * entry_bytes;
        if size_bytes > 0 {
            *file = atomic_file::read(&path(dir, base_offset, kind), size_bytes as u64)?
                .unwrap_or_default();
            if file.len() < size_bytes {
                return Ok(Err(IndexDamage::TooShort {
                    size_bytes: file.len(),
                    expected_bytes: size_bytes,
                }));
            }
            file.truncate(size_bytes);
        }
    }
    let [offsets, times] = files;
    Ok(OffsetIndex::decode(base_offset, &offsets, end)
        .and_then(|offsets| Ok((offsets, TimeIndex::decode(base_offset, &times, end)?))))
}

/// What a start needs of a sealed segment's indexes, without reading them whole: that both are there and end plausibly. Gives the
/// segment's largest timestamp.
pub fn check_ends(
    dir: &Path,
    base_offset: Offset,
    end: SegmentEnd,
) -> Result<Result<Option<TimeIndexEntry>, IndexDamage>, FileError> {
    let offsets = last_entry::<OFFSET_INDEX_ENTRY_BYTES>(&path(
        dir,
        base_offset,
        SegmentFileKind::OffsetIndex,
    ))?;
    let times =
        last_entry::<TIME_INDEX_ENTRY_BYTES>(&path(dir, base_offset, SegmentFileKind::TimeIndex))?;
    let last = (|| {
        OffsetIndex::decode(base_offset, &offsets?, end)?;
        Ok(TimeIndex::decode(base_offset, &times?, end)?.last())
    })();
    // Only a segment whose records have no timestamps has no entry. Taken for one of those, every look-up by time would pass over it.
    if last == Ok(None) && first_batch_has_timestamp(dir, base_offset)? {
        return Ok(Err(IndexDamage::EndLost));
    }
    Ok(last)
}

/// False also where there is no batch to be read: what is wrong with the segment itself is found elsewhere.
fn first_batch_has_timestamp(dir: &Path, base_offset: Offset) -> Result<bool, FileError> {
    let path = path(dir, base_offset, SegmentFileKind::Log);
    let log = File::open(&path).map_err(FileError::of("open", &path))?;
    let mut header = [0; RECORD_BATCH_HEADER_BYTES];
    match log.read_exact_at(&mut header, 0) {
        Ok(()) => Ok(RecordBatchHeader::from_array(&header)
            .is_ok_and(|header| header.newest_record() > TimestampMs::NONE)),
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(FileError::of("read", &path)(error)),
    }
}

/// Both indexes of a sealed segment, whole. Beyond their own order it checks what a lost end would cost most: that the last entry
/// names a batch, and that neither index lacks an entry that was due behind it. (One that was, since the interval is shorter now, is rebuilt too.)
pub fn load_sealed(
    dir: &Path,
    base_offset: Offset,
    end: SegmentEnd,
    interval_bytes: u64,
) -> Result<Result<(OffsetIndex, TimeIndex), IndexDamage>, FileError> {
    let log_path = path(dir, base_offset, SegmentFileKind::Log);
    let log = File::open(&log_path).map_err(FileError::of("open", &log_path))?;
    // No batch is smaller than its header, and each has at most one entry.
    let entries_max = end.position.0 / RECORD_BATCH_HEADER_BYTES as u64 + 1;
    let read = |kind, entry_bytes: usize| {
        let file = atomic_file::read(
            &path(dir, base_offset, kind),
            entries_max * entry_bytes as u64,
        )?;
        Ok(file.ok_or(IndexDamage::Missing))
    };
    let offsets = read(SegmentFileKind::OffsetIndex, OFFSET_INDEX_ENTRY_BYTES)?;
    let times = read(SegmentFileKind::TimeIndex, TIME_INDEX_ENTRY_BYTES)?;
    let decoded = (|| {
        let offsets = OffsetIndex::decode(base_offset, &offsets?, end)?;
        Ok((offsets, TimeIndex::decode(base_offset, &times?, end)?))
    })();
    let (offsets, times) = match decoded {
        Ok(indexes) => indexes,
        Err(damage) => return Ok(Err(damage)),
    };
    let checked = check_last_entry(&log, end.position.0, &offsets, &times, interval_bytes);
    Ok(checked
        .map_err(FileError::of("read", &log_path))?
        .map(|()| (offsets, times)))
}

/// Both indexes of a sealed segment, made from its batches.
pub struct Rebuilt {
    pub indexes: IndexBuilder,
    /// Where the scan stopped short of the segment's end, the segment is damaged there; the indexes then know nothing of what follows.
    pub scanned: ScanEnd,
    /// Whether their files have them too: on a full disk only memory does.
    pub is_stored: bool,
}

/// Makes both indexes of a sealed segment from its batches, and writes them if there is space.
pub fn rebuild_sealed(
    dir: &Path,
    base_offset: Offset,
    end: SegmentEnd,
    interval_bytes: u64,
) -> Result<Rebuilt, FileError> {
    let log_path = path(dir, base_offset, SegmentFileKind::Log);
    let mut builder = IndexBuilder::new(base_offset, interval_bytes);
    let start = ScanStart::of_segment(base_offset, LeaderEpoch::UNKNOWN);
    let scanned = scan_sealed(&log_path, start, end.offset, |header, position| {
        builder.on_batch(header.last_offset(), header.newest_record(), position);
    })?;
    builder.seal();
    let tail = IndexTail::of(&builder, IndexLengths::default());
    Ok(Rebuilt {
        is_stored: tail.write_if_there_is_space(dir)?,
        indexes: builder,
        scanned,
    })
}

fn check_last_entry(
    log: &File,
    segment_bytes: u64,
    offsets: &OffsetIndex,
    times: &TimeIndex,
    interval_bytes: u64,
) -> std::io::Result<Result<(), IndexDamage>> {
    let indexed = offsets
        .last()
        .map_or(FilePosition::ZERO, |entry| entry.position);
    let mut position = indexed;
    while position.0 < segment_bytes && position.0 - indexed.0 <= interval_bytes {
        let mut header = [0; RECORD_BATCH_HEADER_BYTES];
        if segment_bytes - position.0 < header.len() as u64 {
            return Ok(Err(IndexDamage::NoBatch { position }));
        }
        log.read_exact_at(&mut header, position.0)?;
        let Ok(header) = RecordBatchHeader::from_array(&header) else {
            return Ok(Err(IndexDamage::NoBatch { position }));
        };
        let names_another = position == indexed
            && offsets
                .last()
                .is_some_and(|last| last.offset != header.last_offset());
        if names_another {
            return Ok(Err(IndexDamage::NoBatch { position }));
        }
        // The last entry of a sealed segment has the largest timestamp of all its batches.
        if header.newest_record()
            > times
                .last()
                .map_or(TimestampMs::NONE, |latest| latest.timestamp)
        {
            return Ok(Err(IndexDamage::EndLost));
        }
        position = position.plus(header.size_bytes() as u64);
    }
    Ok(if position.0 < segment_bytes {
        Err(IndexDamage::EndLost)
    } else {
        Ok(())
    })
}

/// The last entry's bytes, or none of an empty file.
fn last_entry<const ENTRY_BYTES: usize>(
    path: &Path,
) -> Result<Result<Vec<u8>, IndexDamage>, FileError> {
    let file = match File::open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Ok(Err(IndexDamage::Missing));
        }
        opened => opened.map_err(FileError::of("open", path))?,
    };
    let size_bytes = file
        .metadata()
        .map_err(FileError::of("look up", path))?
        .size_bytes();
    if !size_bytes.is_multiple_of(ENTRY_BYTES as u64) {
        return Ok(Err(IndexDamage::Length {
            size_bytes: size_bytes as usize,
            entry_bytes: ENTRY_BYTES,
        }));
    }
    let Some(at) = size_bytes.checked_sub(ENTRY_BYTES as u64) else {
        return Ok(Ok(Vec::new()));
    };
    let mut entry = vec![0; ENTRY_BYTES];
    file.read_exact_at(&mut entry, at)
        .map_err(FileError::of("read", path))?;
    Ok(Ok(entry))
}

fn write_end(path: &Path, at: u64, bytes: &[u8]) -> Result<(), FileError> {
    let mut options = File::options();
    options.create(true).write(true);
    let file = fault_point::growth(|| options.open(path)).map_err(FileError::of("open", path))?;
    fault_point::write_all_at(&file, bytes, at).map_err(FileError::of("write", path))?;
    fault_point::change(|| file.set_len(at + bytes.len() as u64))
        .map_err(FileError::of("truncate", path))?;
    fault_point::change(|| file.sync_all()).map_err(FileError::of("sync", path))
}

fn path(dir: &Path, base_offset: Offset, kind: SegmentFileKind) -> std::path::PathBuf {
    dir.join(SegmentFileName::new(base_offset, kind).to_string())
}
