//! The newest record of a log by its timestamp, among those that may be shown.

use crate::io::executor;
use crate::model::limits::READ_BLOCK_BYTES;
use crate::model::{Offset, TimestampMs};
use crate::record::InflateBounds;
use crate::record::header::RecordBatchHeader;
use crate::record::records::RecordReader;
use crate::storage::batch_selection::Wanted;
use crate::storage::log::{Floor, SegmentKey, SegmentRead, SegmentView};
use crate::storage::read_ahead::ReadAhead;
use crate::storage::reader::{ReadError, read_batches};
use crate::storage::record_steps::inflate_next;

/// What one segment says of its largest timestamp.
pub enum NewestOf {
    /// All that the segment has may be shown, and this is the largest.
    Whole(TimestampMs),
    /// Part of it may not be shown, and its largest timestamp may be there: what may be is looked at from `from` on, beside which `newest` is
    /// known.
    Part {
        view: SegmentView,
        from: Offset,
        newest: TimestampMs,
    },
}

impl NewestOf {
    /// The segment that is to be read, if any is.
    pub fn key(&self) -> Option<SegmentKey> {
        match self {
            Self::Whole(_) => None,
            Self::Part { view, .. } => Some(view.key),
        }
    }
}

/// The largest timestamp of the records from `start` on and below `below`, as far as headers tell it; of the batches that begin at
/// `misleading`, as far as their records do. `NONE`: there is no record, or none has a timestamp.
pub async fn newest_timestamp(
    segments: Vec<NewestOf>,
    start: Offset,
    below: Offset,
    misleading: &[Offset],
    bounds: InflateBounds,
    ahead: &ReadAhead,
) -> Result<TimestampMs, ReadError> {
    let mut newest = TimestampMs::NONE;
    for segment in segments {
        let of_segment = match segment {
            NewestOf::Whole(timestamp) => timestamp,
            NewestOf::Part {
                view,
                from,
                newest: known,
            } => {
                let shown = Shown {
                    start,
                    below,
                    misleading,
                    bounds,
                };
                known.max(shown.newest_from(view, from, ahead).await?)
            }
        };
        newest = newest.max(of_segment);
    }
    Ok(newest)
}

/// What may be shown.
#[derive(Clone, Copy)]
struct Shown<'a> {
    start: Offset,
    below: Offset,
    misleading: &'a [Offset],
    bounds: InflateBounds,
}

impl Shown<'_> {
    async fn newest_from(
        self,
        view: SegmentView,
        from: Offset,
        ahead: &ReadAhead,
    ) -> Result<TimestampMs, ReadError> {
        let SegmentView {
            key,
            path,
            mut floor,
            readable_end,
        } = view;
        let mut newest = TimestampMs::NONE;
        let mut next = from;
        loop {
            let read = SegmentRead {
                key,
                path: path.clone(),
                floor,
                readable_end,
                wanted: Wanted {
                    offset: next,
                    max_bytes: READ_BLOCK_BYTES,
                    first_whole: true,
                    below: self.below,
                },
            };
            let run = read_batches(read, ahead).await?;
            if run.is_empty() {
                return Ok(newest);
            }
            let bytes = run.to_contiguous();
            let mut rest = &bytes[..];
            while let Ok(header) = RecordBatchHeader::parse(rest) {
                let (batch, behind) = rest.split_at(header.size_bytes());
                newest = newest.max(self.newest_of(&header, batch).await);
                next = header.next_offset();
                rest = behind;
                executor::yield_if_needed().await;
            }
            floor = Floor::At(run.end());
        }
    }

    /// The header's word for it, unless the log starts inside the batch or the header is known to promise too much.
    async fn newest_of(self, header: &RecordBatchHeader, batch: &[u8]) -> TimestampMs {
        if header.base_offset >= self.start && !self.misleading.contains(&header.base_offset) {
            return header.newest_record();
        }
        let mut newest = TimestampMs::NONE;
        let Ok(mut records) = RecordReader::new(batch, self.bounds) else {
            return newest;
        };
        while inflate_next(&mut records).await.is_ok()
            && let Ok(Some(record)) = records.next_record()
        {
            if record.offset >= self.start {
                newest = newest.max(record.timestamp);
            }
        }
        newest
    }
}
