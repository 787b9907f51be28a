//! The two passes of a cleaning over a log's segments: the keys into a map, then each group of segments into a cleaned file.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use rustc_hash::FxHashMap;

use crate::io::chunk::ChunkPool;
use crate::io::disk::{DiskError, DiskOperation};
use crate::io::os_error::OsErrorKind;
use crate::model::{FilePosition, Offset, ProducerId, TimestampMs};
use crate::record::records::{RecordReader, RecordsError};
use crate::record::{InflateBounds, RecordBatchHeader};
use crate::storage::cleaner::batch_filter::{BatchFilter, Kept};
use crate::storage::cleaner::cleaned_file::{CleanedFile, CleanedSegment};
use crate::storage::cleaner::offset_map::OffsetMap;
use crate::storage::cleaner::segment_group::SegmentGroup;
use crate::storage::cleaner::segment_source::SegmentSource;
use crate::storage::file_error::FileError;
use crate::storage::log::LogId;
use crate::storage::open_files::OpenFiles;
use crate::storage::record_steps::inflate_next;
use crate::storage::sealed_segment::SealedSegment;

/// Why a cleaning ended early. The log is as it was, but for the groups that were replaced before.
#[derive(Debug, thiserror::Error)]
pub enum CleaningError {
    #[error(transparent)]
    Disk(#[from] DiskError),
    #[error(transparent)]
    File(#[from] FileError),
    #[error("{}: the batch at position {position} is damaged", path.display())]
    Corrupt {
        path: PathBuf,
        position: FilePosition,
    },
    #[error("{}: with the batch that ends at offset {last_offset} it would be larger than a segment may be", path.display())]
    TooLarge { path: PathBuf, last_offset: Offset },
    #[error("records of the batch at offset {base_offset} could not be written anew: {source}")]
    Rewrite {
        base_offset: Offset,
        source: std::io::Error,
    },
    /// Its host ended it: the topic is gone or no longer compacted, segments were deleted, or the broker stops.
    #[error("it was ended")]
    Ended,
}

impl CleaningError {
    /// Whether nobody knows any more what the disk holds of what was written.
    pub fn is_device_failure(&self) -> bool {
        let Self::Disk(error) = self else {
            return false;
        };
        let changes = !matches!(error.operation(), DiskOperation::Read | DiskOperation::Open);
        changes && error.kind() == OsErrorKind::Device
    }
}

/// What a cleaning has done since it last told.
#[derive(Clone, Copy, Debug, Default)]
pub struct Work {
    pub read_bytes: u64,
    pub written_bytes: u64,
    pub removed_records: u64,
}

/// What is cleaned, and with what. Both passes tell their work to a supervisor after each batch, wait as long as it lets them, and end
/// when it gives an error.
pub struct Cleaning<'a> {
    pub log: LogId,
    pub dir: &'a Path,
    pub files: &'a OpenFiles,
    pub pool: &'a ChunkPool,
    pub index_interval_bytes: u64,
    pub judging: TimestampMs,
    pub stamping: TimestampMs,
    pub delete_retention_ms: u64,
    /// A batch that inflates to more stays as it is.
    pub bounds: InflateBounds,
}

impl Cleaning<'_> {
    /// Puts the keys of `segments` from `from` on into a map of at most `bytes_max`. The map's end says how far it came: at least a
    /// batch. What of a batch finds no room in a whole map then stays as it is.
    pub async fn map_keys(
        &self,
        segments: &[Rc<SealedSegment>],
        from: Offset,
        bytes_max: usize,
        supervisor: &mut impl AsyncFnMut(Work) -> Result<(), CleaningError>,
    ) -> Result<OffsetMap, CleaningError> {
        let to = segments.last().map_or(from, |last| last.next_offset());
        let key_count = u64::try_from(to.since(from)).unwrap_or(0);
        let mut map = OffsetMap::new(key_count, bytes_max, from);
        let dirty = segments
            .iter()
            .filter(|segment| segment.next_offset() > from);
        for segment in dirty {
            let mut source = SegmentSource::open(segment, self.log, self.files).await?;
            while let Some((header, batch)) = source.next_batch().await? {
                if header.last_offset() >= from && !header.attributes.is_control() {
                    let is_first = map.end() == from;
                    let has_room = self.put_keys(&mut map, from, &header, batch).await;
                    if !has_room && !is_first {
                        return Ok(map);
                    }
                    map.advance(header.next_offset());
                    if !has_room {
                        return Ok(map);
                    }
                }
                let read_bytes = source.take_read_bytes();
                let work = Work {
                    read_bytes,
                    ..Work::default()
                };
                supervisor(work).await?;
            }
            map.advance(segment.next_offset().max(from));
        }
        Ok(map)
    }

    /// Writes what stays of a group. `None` if that is all of it, in one segment as before: then there is nothing to replace.
    pub async fn clean(
        &self,
        group: &SegmentGroup,
        map: &OffsetMap,
        last_of_producers: &FxHashMap<ProducerId, Offset>,
        supervisor: &mut impl AsyncFnMut(Work) -> Result<(), CleaningError>,
    ) -> Result<Option<CleanedSegment>, CleaningError> {
        let filter = BatchFilter {
            map,
            last_of_producers,
            judging: self.judging,
            stamping: self.stamping,
            delete_retention_ms: self.delete_retention_ms,
            bounds: self.bounds,
        };
        let key = group.cleaned_key(self.log);
        let mut cleaned = CleanedFile::create(
            key,
            self.dir,
            self.index_interval_bytes,
            self.files,
            self.pool,
        )
        .await?;
        let mut is_changed = group.segments().len() > 1;
        for segment in group.segments() {
            let is_last_segment = segment.next_offset() == group.next_offset();
            let mut source = SegmentSource::open(segment, self.log, self.files).await?;
            loop {
                let Some((header, batch)) = source.next_batch().await? else {
                    break;
                };
                let is_last = is_last_segment && header.next_offset() == group.next_offset();
                let filtered = filter
                    .apply(&header, batch, is_last)
                    .await
                    .map_err(|source| CleaningError::Rewrite {
                        base_offset: header.base_offset,
                        source,
                    })?;
                if let Some(reason) = filtered.unreadable {
                    let (path, offset) = (segment.path().display(), header.base_offset);
                    tracing::warn!(%path, %offset, %reason, "a batch whose records do not read is kept as it is");
                }
                match filtered.kept {
                    Kept::AsItIs => cleaned.push(&header, batch).await?,
                    Kept::Nothing => is_changed = true,
                    Kept::Rewritten(rewritten) => {
                        is_changed = true;
                        let header = RecordBatchHeader::parse(&rewritten)
                            .expect("a batch that was just built has a header");
                        cleaned.push(&header, &rewritten).await?;
                    }
                }
                let work = Work {
                    read_bytes: source.take_read_bytes(),
                    written_bytes: cleaned.take_written_bytes(),
                    removed_records: filtered.removed_count,
                };
                supervisor(work).await?;
            }
        }
        // Recovery takes the end of its last batch for the end of a segment.
        if cleaned.end() != group.next_offset() {
            let last = &group.segments()[group.segments().len() - 1];
            return Err(CleaningError::Corrupt {
                path: last.path().to_owned(),
                position: last.size(),
            });
        }
        let segment = cleaned.finish().await?;
        Ok(is_changed.then_some(segment))
    }

    /// Puts the keys of a batch into the map; false if it has no room for one of them.
    async fn put_keys(
        &self,
        map: &mut OffsetMap,
        from: Offset,
        header: &RecordBatchHeader,
        batch: &[u8],
    ) -> bool {
        // Where records do not read, those in front still count; the batch itself stays as it is.
        let put = read_keys(batch, self.bounds, |offset, key| {
            offset < from || map.put(key, offset)
        })
        .await;
        put.unwrap_or_else(|reason| {
            tracing::debug!(offset = %header.base_offset, %reason, "a batch's keys do not read");
            true
        })
    }
}

async fn read_keys(
    batch: &[u8],
    bounds: InflateBounds,
    mut on_key: impl FnMut(Offset, &[u8]) -> bool,
) -> Result<bool, RecordsError> {
    let mut records = RecordReader::new(batch, bounds)?;
    let base_offset = records.header().base_offset;
    loop {
        inflate_next(&mut records).await?;
        let Some(record) = records.next_body()? else {
            break;
        };
        let offset = base_offset.plus(i64::from(record.offset_delta));
        if let Some(key) = record.key
            && !on_key(offset, key)
        {
            return Ok(false);
        }
    }
    Ok(true)
}
