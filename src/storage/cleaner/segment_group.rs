//! Which segments become one.

use std::rc::Rc;

use crate::model::{Offset, TimestampMs};
use crate::storage::log::{LogId, SegmentKey};
use crate::storage::sealed_segment::SealedSegment;

/// A run of sealed segments that one cleaned segment replaces. It fits even if nothing is removed.
#[derive(Clone)]
pub struct SegmentGroup {
    segments: Vec<Rc<SealedSegment>>,
}

impl SegmentGroup {
    /// Divides a log's segments, in order, into as few groups as fit: none is larger than `bytes_max` (`segment.bytes`), or spans more
    /// offsets than an index can name. Segments that are nearly empty after a cleaning so become one.
    pub fn divide(segments: &[Rc<SealedSegment>], bytes_max: u64) -> Vec<Self> {
        let bytes_max = bytes_max.min(i32::MAX as u64);
        let mut groups: Vec<Self> = Vec::new();
        for segment in segments {
            match groups.last_mut() {
                Some(group) if group.has_room_for(segment, bytes_max) => {
                    group.segments.push(segment.clone());
                }
                _ => groups.push(Self {
                    segments: vec![segment.clone()],
                }),
            }
        }
        groups
    }

    fn has_room_for(&self, segment: &SealedSegment, bytes_max: u64) -> bool {
        let offsets = segment.next_offset().since(self.base_offset());
        self.size_bytes() + segment.size().0 <= bytes_max && offsets <= i64::from(i32::MAX)
    }

    pub fn segments(&self) -> &[Rc<SealedSegment>] {
        &self.segments
    }

    pub fn base_offset(&self) -> Offset {
        self.segments[0].base_offset()
    }

    pub fn next_offset(&self) -> Offset {
        self.segments[self.segments.len() - 1].next_offset()
    }

    pub fn base_offsets(&self) -> Vec<Offset> {
        let segments = self.segments.iter();
        segments.map(|segment| segment.base_offset()).collect()
    }

    pub fn size_bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.size().0).sum()
    }

    /// What its newest segment's age counts from.
    pub fn newest(&self) -> TimestampMs {
        let newest = self.segments.iter().map(|segment| segment.newest());
        newest.max().expect("a group is not empty")
    }

    /// The key of the segment that will replace them.
    pub fn cleaned_key(&self, log: LogId) -> SegmentKey {
        let first = self.segments[0].key(log);
        SegmentKey {
            generation: first.generation + 1,
            ..first
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::model::FilePosition;

    fn divide(ends_and_sizes: &[(i64, u64)], bytes_max: u64) -> Vec<Vec<i64>> {
        let mut base = Offset(0);
        let segments: Vec<_> = ends_and_sizes
            .iter()
            .map(|&(end, size)| {
                let next = Offset(end);
                let size = FilePosition(size);
                let none = TimestampMs::NONE;
                let segment =
                    SealedSegment::new(Path::new("d"), base, next, size, none, 4096, None);
                base = next;
                Rc::new(segment)
            })
            .collect();
        let groups = SegmentGroup::divide(&segments, bytes_max);
        let bases = groups.iter().map(|group| {
            let bases = group.base_offsets();
            bases.iter().map(|base| base.0).collect()
        });
        bases.collect()
    }

    #[test]
    fn small_neighbours_become_one_up_to_the_segments_size() {
        let sizes = [(10, 40), (20, 40), (30, 40), (40, 200), (50, 10), (60, 10)];
        assert_eq!(
            divide(&sizes, 100),
            [vec![0, 10], vec![20], vec![30], vec![40, 50]]
        );
    }

    #[test]
    fn no_group_spans_more_offsets_than_an_index_can_name() {
        let far = i64::from(i32::MAX);
        assert_eq!(
            divide(&[(10, 1), (far, 1), (far + 1, 1)], 100),
            [vec![0, 10], vec![far]]
        );
    }
}
