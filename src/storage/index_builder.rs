use crate::model::{FilePosition, Offset, TimestampMs};

use super::offset_index::{OffsetIndex, OffsetIndexEntry};
use super::time_index::{TimeIndex, TimeIndexEntry};

/// Fills both indexes of one segment from its batches, in order: the same code for a live append, for recovery and for a
/// rebuild, so that an index does not depend on how it came about.
///
/// An entry is due when more than `index.interval.bytes` lie between the last entry's batch and the next one, as in Kafka.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexBuilder {
    interval_bytes: u64,
    offsets: OffsetIndex,
    times: TimeIndex,
    /// The largest timestamp so far; it may be later than the time index's last entry.
    latest: Option<TimeIndexEntry>,
}

/// How many entries of a segment's indexes are in their files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexLengths {
    pub offset_entries: u32,
    pub time_entries: u32,
}

impl IndexBuilder {
    pub fn new(base_offset: Offset, interval_bytes: u64) -> Self {
        Self::resume(
            OffsetIndex::new(base_offset),
            TimeIndex::new(base_offset),
            None,
            interval_bytes,
        )
    }

    /// Goes on behind the batches that the indexes cover. `latest` is the largest timestamp of those, where it is later than the time
    /// index's last entry.
    pub fn resume(
        offsets: OffsetIndex,
        times: TimeIndex,
        latest: Option<TimeIndexEntry>,
        interval_bytes: u64,
    ) -> Self {
        debug_assert_eq!(
            offsets.base_offset(),
            times.base_offset(),
            "both indexes belong to one segment"
        );
        let indexed = times.last();
        let later = |latest: &TimeIndexEntry| {
            indexed.is_none_or(|indexed| {
                latest.timestamp > indexed.timestamp && latest.offset > indexed.offset
            })
        };
        Self {
            interval_bytes,
            latest: latest.filter(later).or(indexed),
            offsets,
            times,
        }
    }

    /// Takes the next batch of the segment, which starts at `position`.
    pub fn on_batch(
        &mut self,
        last_offset: Offset,
        max_timestamp: TimestampMs,
        position: FilePosition,
    ) {
        if max_timestamp
            > self
                .latest
                .map_or(TimestampMs::NONE, |latest| latest.timestamp)
        {
            self.latest = Some(TimeIndexEntry {
                timestamp: max_timestamp,
                offset: last_offset,
            });
        }
        let indexed = self
            .offsets
            .last()
            .map_or(FilePosition::ZERO, |entry| entry.position);
        if position.0 - indexed.0 > self.interval_bytes {
            self.offsets.append(OffsetIndexEntry {
                offset: last_offset,
                position,
            });
            self.index_latest();
        }
    }

    /// Ends the segment (or a clean stop's active one): the time index's last entry then tells its largest timestamp.
    pub fn seal(&mut self) {
        self.index_latest();
    }

    pub fn base_offset(&self) -> Offset {
        self.offsets.base_offset()
    }

    pub fn offsets(&self) -> &OffsetIndex {
        &self.offsets
    }

    pub fn times(&self) -> &TimeIndex {
        &self.times
    }

    /// The largest timestamp of the segment and the last offset of its batch; `None` if no batch has a timestamp.
    pub fn latest(&self) -> Option<TimeIndexEntry> {
        self.latest
    }

    pub fn lengths(&self) -> IndexLengths {
        let count = |entries: usize| {
            u32::try_from(entries).expect("a segment below 2 GiB has fewer batches")
        };
        IndexLengths {
            offset_entries: count(self.offsets.len()),
            time_entries: count(self.times.len()),
        }
    }

    pub fn into_indexes(self) -> (OffsetIndex, TimeIndex) {
        (self.offsets, self.times)
    }

    fn index_latest(&mut self) {
        if let Some(latest) = self.latest {
            self.times.append_if_later(latest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::offset_index::SegmentEnd;
    use super::*;

    /// Appends batches of 10 records and `batch_bytes` each.
    fn build(
        builder: &mut IndexBuilder,
        batches: std::ops::Range<u64>,
        batch_bytes: u64,
        timestamp: impl Fn(u64) -> i64,
    ) {
        for batch in batches {
            let last_offset = builder.base_offset().plus(batch as i64 * 10 + 9);
            builder.on_batch(
                last_offset,
                TimestampMs(timestamp(batch)),
                FilePosition(batch * batch_bytes),
            );
        }
    }

    #[test]
    fn an_entry_is_due_when_more_than_the_interval_was_appended() {
        let mut builder = IndexBuilder::new(Offset(1_000), 4_096);
        build(&mut builder, 0..9, 2_048, |batch| batch as i64);
        let positions: Vec<u64> = builder
            .offsets()
            .iter()
            .map(|entry| entry.position.0)
            .collect();
        // 4,096 bytes are not more than the interval; the third batch behind an entry is the first one that is due.
        assert_eq!(positions, [6_144, 12_288]);
        assert_eq!(builder.offsets().last().unwrap().offset, Offset(1_069));
    }

    #[test]
    fn the_first_batch_never_has_an_entry() {
        let mut builder = IndexBuilder::new(Offset(0), 0);
        build(&mut builder, 0..3, 100, |batch| batch as i64);
        assert_eq!(
            builder
                .offsets()
                .iter()
                .map(|entry| entry.position.0)
                .collect::<Vec<_>>(),
            [100, 200]
        );
    }

    #[test]
    fn the_time_index_names_the_batch_that_brought_the_largest_timestamp() {
        let mut builder = IndexBuilder::new(Offset(0), 4_096);
        build(&mut builder, 0..9, 2_048, |batch| {
            if batch == 2 { 900 } else { batch as i64 }
        });
        let latest = TimeIndexEntry {
            timestamp: TimestampMs(900),
            offset: Offset(29),
        };
        assert_eq!(builder.times().iter().collect::<Vec<_>>(), [latest]);
        assert_eq!(builder.latest(), Some(latest));
    }

    #[test]
    fn sealing_indexes_the_largest_timestamp_once() {
        let mut builder = IndexBuilder::new(Offset(0), 4_096);
        build(&mut builder, 0..2, 2_048, |batch| 50 + batch as i64);
        assert!(builder.times().is_empty());
        builder.seal();
        builder.seal();
        let latest = TimeIndexEntry {
            timestamp: TimestampMs(51),
            offset: Offset(19),
        };
        assert_eq!(builder.times().iter().collect::<Vec<_>>(), [latest]);
        assert_eq!(
            builder.lengths(),
            IndexLengths {
                offset_entries: 0,
                time_entries: 1
            }
        );
    }

    #[test]
    fn a_segment_without_timestamps_has_no_time_entry() {
        let mut builder = IndexBuilder::new(Offset(0), 0);
        build(&mut builder, 0..4, 100, |_| -1);
        builder.seal();
        assert_eq!((builder.latest(), builder.times().len()), (None, 0));
    }

    #[test]
    fn resuming_anywhere_gives_the_same_indexes() {
        let timestamp = |batch: u64| (batch as i64 * 7_919) % 101;
        let mut whole = IndexBuilder::new(Offset(500), 4_096);
        build(&mut whole, 0..60, 1_500, timestamp);
        for stop in 0..60 {
            let mut first = IndexBuilder::new(Offset(500), 4_096);
            build(&mut first, 0..stop, 1_500, timestamp);
            let end = SegmentEnd {
                position: FilePosition(stop * 1_500),
                offset: Offset(500 + stop as i64 * 10),
            };
            let offsets =
                OffsetIndex::decode(Offset(500), &first.offsets().encode_from(0), end).unwrap();
            let times = TimeIndex::decode(Offset(500), &first.times().encode_from(0), end).unwrap();
            let mut second = IndexBuilder::resume(offsets, times, first.latest(), 4_096);
            build(&mut second, stop..60, 1_500, timestamp);
            assert_eq!(second, whole, "resumed at batch {stop}");
        }
    }
}
