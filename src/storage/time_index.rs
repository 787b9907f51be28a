use crate::model::{Offset, TimestampMs};

use super::offset_index::{IndexDamage, SegmentEnd};

/// Bytes of one entry of a `.timeindex` file.
pub const TIME_INDEX_ENTRY_BYTES: usize = 12;

/// The largest timestamp of the segment so far, and the **last** offset of the batch that brought it (so Kafka writes its
/// entries). Every record that is later than `timestamp` lies behind `offset`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeIndexEntry {
    pub timestamp: TimestampMs,
    pub offset: Offset,
}

/// The sparse index from timestamps to offsets of one segment; in a file, big-endian, entries end to end:
///
/// ```text
///  0                      8                               12
/// | largest timestamp    | last offset of its batch,      |
/// | so far, ms       i64 | relative to the segment's  i32 |
/// ```
///
/// Timestamps and offsets both strictly increase. The last entry of a sealed segment holds the segment's largest timestamp, by
/// which `retention.ms` judges it; a segment without timestamps has no entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeIndex {
    base_offset: Offset,
    // Two lists, since a pair of i64 and u32 would take 16 bytes.
    timestamps: Vec<i64>,
    relative_offsets: Vec<u32>,
}

impl TimeIndex {
    pub fn new(base_offset: Offset) -> Self {
        Self {
            base_offset,
            timestamps: Vec::new(),
            relative_offsets: Vec::new(),
        }
    }

    pub fn base_offset(&self) -> Offset {
        self.base_offset
    }

    pub fn len(&self) -> usize {
        self.timestamps.len()
    }

    pub fn is_empty(&self) -> bool {
        self.timestamps.is_empty()
    }

    pub fn last(&self) -> Option<TimeIndexEntry> {
        self.len().checked_sub(1).map(|at| self.entry(at))
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = TimeIndexEntry> + '_ {
        (0..self.len()).map(|at| self.entry(at))
    }

    /// Adds an entry if its timestamp is above all others; a segment whose largest timestamp did not change gets none.
    /// Panics if the offset is then not above too: the log's own order is broken.
    pub fn append_if_later(&mut self, entry: TimeIndexEntry) {
        let last = self.last();
        if entry.timestamp <= last.map_or(TimestampMs::NONE, |last| last.timestamp) {
            return;
        }
        assert!(
            last.is_none_or(|last| last.offset < entry.offset),
            "entry {entry:?} is not above {last:?}"
        );
        let relative = entry.offset.since(self.base_offset);
        let relative = u32::try_from(relative)
            .ok()
            .filter(|&relative| relative <= i32::MAX as u32);
        self.relative_offsets
            .push(relative.expect("the offset index holds every offset of the segment"));
        self.timestamps.push(entry.timestamp.0);
    }

    /// The last entry at or below `timestamp`: the first record that is at or after `timestamp` lies in the batch that ends at
    /// the entry's offset, or behind it. `None`: from the segment's start on.
    pub fn lookup(&self, timestamp: TimestampMs) -> Option<TimeIndexEntry> {
        let below = self
            .timestamps
            .partition_point(|&entry| entry <= timestamp.0);
        below.checked_sub(1).map(|at| self.entry(at))
    }

    /// The last entry of a batch that ends below `offset`: the largest timestamp up to there.
    pub fn last_below(&self, offset: Offset) -> Option<TimeIndexEntry> {
        let below = self
            .relative_offsets
            .partition_point(|&entry| i64::from(entry) < offset.since(self.base_offset));
        below.checked_sub(1).map(|at| self.entry(at))
    }

    /// Drops every entry of a batch that ends at `offset` or above.
    pub fn truncate_to(&mut self, offset: Offset) {
        let kept = self
            .relative_offsets
            .partition_point(|&entry| i64::from(entry) < offset.since(self.base_offset));
        self.relative_offsets.truncate(kept);
        self.timestamps.truncate(kept);
    }

    /// The bytes of the file from one entry on.
    pub fn encode_from(&self, first: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity((self.len() - first) * TIME_INDEX_ENTRY_BYTES);
        for (timestamp, relative) in self.timestamps[first..]
            .iter()
            .zip(&self.relative_offsets[first..])
        {
            bytes.extend_from_slice(&timestamp.to_be_bytes());
            bytes.extend_from_slice(&relative.to_be_bytes());
        }
        bytes
    }

    /// Reads the bytes of a file that belongs to a segment with this end.
    pub fn decode(base_offset: Offset, file: &[u8], end: SegmentEnd) -> Result<Self, IndexDamage> {
        let (chunks, rest) = file.as_chunks::<TIME_INDEX_ENTRY_BYTES>();
        if !rest.is_empty() {
            return Err(IndexDamage::Length {
                size_bytes: file.len(),
                entry_bytes: TIME_INDEX_ENTRY_BYTES,
            });
        }
        let mut index = Self::new(base_offset);
        let mut last: Option<TimeIndexEntry> = None;
        for (entry, bytes) in chunks.iter().enumerate() {
            let [t0, t1, t2, t3, t4, t5, t6, t7, r0, r1, r2, r3] = *bytes;
            let relative = u32::from_be_bytes([r0, r1, r2, r3]);
            let decoded = TimeIndexEntry {
                timestamp: TimestampMs(i64::from_be_bytes([t0, t1, t2, t3, t4, t5, t6, t7])),
                offset: Offset(base_offset.0.saturating_add(i64::from(relative))),
            };
            if relative > i32::MAX as u32 || decoded.offset >= end.offset {
                return Err(IndexDamage::OutsideSegment { entry });
            }
            // A first entry of zeros is taken for a file that was never written: far likelier than one record of 1970.
            let above = match last {
                None => {
                    decoded.timestamp > TimestampMs::NONE && *bytes != [0; TIME_INDEX_ENTRY_BYTES]
                }
                Some(last) => last.timestamp < decoded.timestamp && last.offset < decoded.offset,
            };
            if !above {
                return Err(IndexDamage::NotIncreasing { entry });
            }
            last = Some(decoded);
            index.timestamps.push(decoded.timestamp.0);
            index.relative_offsets.push(relative);
        }
        Ok(index)
    }

    fn entry(&self, at: usize) -> TimeIndexEntry {
        TimeIndexEntry {
            timestamp: TimestampMs(self.timestamps[at]),
            offset: self.base_offset.plus(i64::from(self.relative_offsets[at])),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::FilePosition;

    fn end(offset: i64) -> SegmentEnd {
        SegmentEnd {
            position: FilePosition(u64::MAX),
            offset: Offset(offset),
        }
    }

    fn entry(timestamp: i64, offset: i64) -> TimeIndexEntry {
        TimeIndexEntry {
            timestamp: TimestampMs(timestamp),
            offset: Offset(offset),
        }
    }

    fn index() -> TimeIndex {
        let mut index = TimeIndex::new(Offset(100));
        for (timestamp, offset) in [(1_000, 109), (2_000, 119), (5_000, 139)] {
            index.append_if_later(entry(timestamp, offset));
        }
        index
    }

    #[test]
    fn only_a_later_timestamp_gets_an_entry() {
        let mut index = index();
        index.append_if_later(entry(5_000, 150));
        index.append_if_later(entry(4_000, 151));
        assert_eq!(index.last(), Some(entry(5_000, 139)));
        index.append_if_later(entry(5_001, 152));
        assert_eq!(index.len(), 4);
        let mut without = TimeIndex::new(Offset(0));
        without.append_if_later(entry(-1, 3));
        assert!(without.is_empty());
    }

    #[test]
    fn the_largest_timestamp_below_an_offset_is_the_last_entrys() {
        let mut index = TimeIndex::new(Offset(100));
        for (timestamp, offset) in [(5, 109), (9, 139)] {
            index.append_if_later(TimeIndexEntry {
                timestamp: TimestampMs(timestamp),
                offset: Offset(offset),
            });
        }
        let below = |offset| index.last_below(Offset(offset)).map(|it| it.timestamp.0);
        assert_eq!(
            [100, 109, 110, 139, 140, 999].map(below),
            [None, None, Some(5), Some(5), Some(9), Some(9)]
        );
    }

    #[test]
    fn lookup_gives_the_last_entry_at_or_below() {
        let index = index();
        assert_eq!(index.lookup(TimestampMs(999)), None);
        assert_eq!(index.lookup(TimestampMs(1_000)), Some(entry(1_000, 109)));
        assert_eq!(index.lookup(TimestampMs(4_999)), Some(entry(2_000, 119)));
        assert_eq!(index.lookup(TimestampMs(i64::MAX)), Some(entry(5_000, 139)));
    }

    #[test]
    fn truncation_drops_batches_that_end_at_or_above_an_offset() {
        let mut index = index();
        index.truncate_to(Offset(139));
        assert_eq!(index.last(), Some(entry(2_000, 119)));
        index.truncate_to(Offset(0));
        assert!(index.is_empty());
    }

    #[test]
    fn the_file_is_big_endian_triples_of_words() {
        let index = index();
        assert_eq!(
            index.encode_from(0)[..12],
            [0, 0, 0, 0, 0, 0, 3, 0xe8, 0, 0, 0, 9]
        );
        assert_eq!(index.encode_from(2).len(), 12);
        assert_eq!(
            TimeIndex::decode(Offset(100), &index.encode_from(0), end(140)),
            Ok(index)
        );
    }

    #[test]
    fn a_file_that_we_cannot_have_written_is_refused() {
        let file = index().encode_from(0);
        let decode =
            |file: &[u8], offset| TimeIndex::decode(Offset(100), file, end(offset)).unwrap_err();
        assert_eq!(
            decode(&file[..35], 140),
            IndexDamage::Length {
                size_bytes: 35,
                entry_bytes: 12
            }
        );
        assert_eq!(decode(&file, 139), IndexDamage::OutsideSegment { entry: 2 });
        assert_eq!(
            decode(&[file.as_slice(), &[0; 12]].concat(), 140),
            IndexDamage::NotIncreasing { entry: 3 }
        );
        assert_eq!(
            decode(&[0; 12], 140),
            IndexDamage::NotIncreasing { entry: 0 }
        );
        assert_eq!(
            decode(&[0xff; 12], 140),
            IndexDamage::OutsideSegment { entry: 0 }
        );
        assert_eq!(
            decode(&[[0xff; 8].as_slice(), &[0; 4]].concat(), 140),
            IndexDamage::NotIncreasing { entry: 0 }
        );
    }
}
