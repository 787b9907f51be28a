use crate::model::{FilePosition, Offset};

/// Bytes of one entry of an `.index` file.
pub const OFFSET_INDEX_ENTRY_BYTES: usize = 8;

/// Where a batch lies: it starts at `position`, and `offset` is its **last** offset (so Kafka writes its entries, and its
/// dump tool checks them so).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OffsetIndexEntry {
    pub offset: Offset,
    pub position: FilePosition,
}

/// Where a segment ends: behind its last batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentEnd {
    pub position: FilePosition,
    pub offset: Offset,
}

/// Why an `.index` or `.timeindex` file cannot be one that we wrote, whole. The caller rebuilds it from the segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IndexDamage {
    #[error("its {size_bytes} bytes are no multiple of {entry_bytes}")]
    Length {
        size_bytes: usize,
        entry_bytes: usize,
    },
    #[error("it has {size_bytes} bytes, fewer than the {expected_bytes} that were saved")]
    TooShort {
        size_bytes: usize,
        expected_bytes: usize,
    },
    #[error("entry {entry} is not above the one before")]
    NotIncreasing { entry: usize },
    #[error("entry {entry} points outside the segment")]
    OutsideSegment { entry: usize },
    #[error("the last entry names position {position}, where no such batch starts")]
    NoBatch { position: FilePosition },
    #[error("entries are missing at its end")]
    EndLost,
    #[error("the file is missing")]
    Missing,
}

/// The sparse index from offsets to positions of one segment; in a file, big-endian, entries end to end:
///
/// ```text
///  0                              4                      8
/// | last offset of a batch,      | position of that     |
/// | relative to the segment's i32| batch in the file i32|
/// ```
///
/// Offsets and positions both strictly increase, and no entry stands for the first batch: it lies at 0, needs no look-up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OffsetIndex {
    base_offset: Offset,
    /// Relative offset and position. Both are below 2^31.
    entries: Vec<(u32, u32)>,
}

impl OffsetIndex {
    pub fn new(base_offset: Offset) -> Self {
        Self {
            base_offset,
            entries: Vec::new(),
        }
    }

    pub fn base_offset(&self) -> Offset {
        self.base_offset
    }

    /// Whether the index can name `offset` at all; if not, the segment is full.
    pub fn can_hold(&self, offset: Offset) -> bool {
        (0..=i64::from(i32::MAX)).contains(&offset.since(self.base_offset))
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub fn last(&self) -> Option<OffsetIndexEntry> {
        self.entries.last().map(|&entry| self.expand(entry))
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = OffsetIndexEntry> + '_ {
        self.entries.iter().map(|&entry| self.expand(entry))
    }

    /// Adds an entry above all others. Panics if it is not above, or cannot be held: the log's own order is broken then.
    pub fn append(&mut self, entry: OffsetIndexEntry) {
        assert!(
            self.can_hold(entry.offset),
            "offset {} does not fit a segment from {}",
            entry.offset,
            self.base_offset
        );
        let position = u32::try_from(entry.position.0)
            .ok()
            .filter(|&position| position <= i32::MAX as u32);
        let position = position.expect("a segment is below 2 GiB");
        let relative = entry.offset.since(self.base_offset) as u32;
        let last = self.entries.last().copied().unwrap_or((0, 0));
        assert!(
            last.0 < relative && last.1 < position,
            "entry {entry:?} is not above the last of the index"
        );
        self.entries.push((relative, position));
    }

    /// The last entry at or below `offset`: the batch that ends there is the last known not to lie behind `offset`. Below the
    /// first entry it is the segment's start. From its position one reads forward.
    ///
    /// The reader checks that the batch there really ends at the entry's offset: an index is not covered by a checksum.
    pub fn lookup(&self, offset: Offset) -> OffsetIndexEntry {
        let below = self
            .entries
            .partition_point(|entry| i64::from(entry.0) <= offset.since(self.base_offset));
        let start = OffsetIndexEntry {
            offset: self.base_offset,
            position: FilePosition::ZERO,
        };
        below
            .checked_sub(1)
            .map_or(start, |at| self.expand(self.entries[at]))
    }

    /// Drops every entry of a batch that ends at `offset` or above.
    pub fn truncate_to(&mut self, offset: Offset) {
        let kept = self
            .entries
            .partition_point(|entry| i64::from(entry.0) < offset.since(self.base_offset));
        self.entries.truncate(kept);
    }

    /// Drops every entry of a batch that starts at `position` or behind.
    pub fn truncate_at(&mut self, position: FilePosition) {
        let kept = self
            .entries
            .partition_point(|entry| u64::from(entry.1) < position.0);
        self.entries.truncate(kept);
    }

    /// The bytes of the file from one entry on.
    pub fn encode_from(&self, first: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity((self.entries.len() - first) * OFFSET_INDEX_ENTRY_BYTES);
        for (relative, position) in &self.entries[first..] {
            bytes.extend_from_slice(&relative.to_be_bytes());
            bytes.extend_from_slice(&position.to_be_bytes());
        }
        bytes
    }

    /// Reads the bytes of a file that belongs to a segment with this end.
    pub fn decode(base_offset: Offset, file: &[u8], end: SegmentEnd) -> Result<Self, IndexDamage> {
        let (chunks, rest) = file.as_chunks::<OFFSET_INDEX_ENTRY_BYTES>();
        if !rest.is_empty() {
            return Err(IndexDamage::Length {
                size_bytes: file.len(),
                entry_bytes: OFFSET_INDEX_ENTRY_BYTES,
            });
        }
        let mut index = Self {
            base_offset,
            entries: Vec::with_capacity(chunks.len()),
        };
        let mut last = (0, 0);
        for (entry, &[r0, r1, r2, r3, p0, p1, p2, p3]) in chunks.iter().enumerate() {
            let (relative, position) = (
                u32::from_be_bytes([r0, r1, r2, r3]),
                u32::from_be_bytes([p0, p1, p2, p3]),
            );
            let inside = u64::from(position) < end.position.0
                && i64::from(relative) < end.offset.since(base_offset);
            if !inside || relative > i32::MAX as u32 || position > i32::MAX as u32 {
                return Err(IndexDamage::OutsideSegment { entry });
            }
            if relative <= last.0 || position <= last.1 {
                return Err(IndexDamage::NotIncreasing { entry });
            }
            last = (relative, position);
            index.entries.push(last);
        }
        Ok(index)
    }

    fn expand(&self, (relative, position): (u32, u32)) -> OffsetIndexEntry {
        OffsetIndexEntry {
            offset: self.base_offset.plus(i64::from(relative)),
            position: FilePosition(u64::from(position)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(offset: i64, position: u64) -> OffsetIndexEntry {
        OffsetIndexEntry {
            offset: Offset(offset),
            position: FilePosition(position),
        }
    }

    fn end(position: u64, offset: i64) -> SegmentEnd {
        SegmentEnd {
            position: FilePosition(position),
            offset: Offset(offset),
        }
    }

    fn index() -> OffsetIndex {
        let mut index = OffsetIndex::new(Offset(100));
        for (offset, position) in [(109, 5_000), (119, 10_000), (139, 20_000)] {
            index.append(entry(offset, position));
        }
        index
    }

    #[test]
    fn lookup_gives_the_last_entry_at_or_below() {
        let index = index();
        assert_eq!(index.lookup(Offset(100)), entry(100, 0));
        assert_eq!(index.lookup(Offset(108)), entry(100, 0));
        assert_eq!(index.lookup(Offset(109)), entry(109, 5_000));
        assert_eq!(index.lookup(Offset(138)), entry(119, 10_000));
        assert_eq!(index.lookup(Offset(i64::MAX)), entry(139, 20_000));
        assert_eq!(index.lookup(Offset(0)), entry(100, 0));
    }

    #[test]
    fn truncation_drops_batches_that_end_at_or_above_an_offset() {
        let mut index = index();
        index.truncate_to(Offset(140));
        assert_eq!(index.len(), 3);
        index.truncate_to(Offset(139));
        assert_eq!(index.last(), Some(entry(119, 10_000)));
        index.truncate_at(FilePosition(10_000));
        assert_eq!(index.last(), Some(entry(109, 5_000)));
        index.truncate_to(Offset(0));
        assert!(index.is_empty());
    }

    #[test]
    fn the_file_is_big_endian_pairs() {
        let index = index();
        assert_eq!(index.encode_from(0)[..8], [0, 0, 0, 9, 0, 0, 0x13, 0x88]);
        assert_eq!(index.encode_from(2), [0, 0, 0, 39, 0, 0, 0x4e, 0x20]);
        assert_eq!(
            OffsetIndex::decode(Offset(100), &index.encode_from(0), end(20_001, 140)),
            Ok(index)
        );
    }

    #[test]
    fn a_file_that_we_cannot_have_written_is_refused() {
        let file = index().encode_from(0);
        let decode = |file: &[u8], end| OffsetIndex::decode(Offset(100), file, end).unwrap_err();
        let fits = end(20_001, 140);
        assert_eq!(
            decode(&file[..23], fits),
            IndexDamage::Length {
                size_bytes: 23,
                entry_bytes: 8
            }
        );
        assert_eq!(
            decode(&file, end(20_000, 140)),
            IndexDamage::OutsideSegment { entry: 2 }
        );
        assert_eq!(
            decode(&file, end(20_001, 139)),
            IndexDamage::OutsideSegment { entry: 2 }
        );
        assert_eq!(
            decode(&[0; 8], fits),
            IndexDamage::NotIncreasing { entry: 0 }
        );
        assert_eq!(
            decode(&[file.as_slice(), &[0; 8]].concat(), fits),
            IndexDamage::NotIncreasing { entry: 3 }
        );
        assert_eq!(
            decode(&[file.as_slice(), &file].concat(), fits),
            IndexDamage::NotIncreasing { entry: 3 }
        );
        assert_eq!(
            decode(&[0xff; 8], end(u64::MAX, i64::MAX)),
            IndexDamage::OutsideSegment { entry: 0 }
        );
    }

    #[test]
    #[should_panic(expected = "not above the last")]
    fn entries_only_go_up() {
        index().append(entry(139, 30_000));
    }

    #[test]
    fn a_segment_is_full_where_relative_offsets_end() {
        let index = index();
        assert!(index.can_hold(Offset(100 + i64::from(i32::MAX))));
        assert!(!index.can_hold(Offset(101 + i64::from(i32::MAX))));
        assert!(!index.can_hold(Offset(99)));
    }
}
