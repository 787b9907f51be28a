use std::fmt;

use crate::model::Offset;

/// Kafka's names are 20 digits wide, so that they sort as their offsets do.
const DIGITS: usize = 20;

/// The end of a file's name that was renamed for its deletion (Kafka's convention); it is no part of the log any more.
pub const DELETED_SUFFIX: &str = ".deleted";

/// The end of a file's name that was being written when the process died; it never was part of the log.
pub const UNFINISHED_SUFFIX: &str = ".tmp";

/// The end of a file's name that compaction writes; it becomes part of the log only by a swap.
pub const CLEANED_SUFFIX: &str = ".cleaned";

/// The end of a cleaned segment's name while it takes the place of others: a start finishes that.
pub const SWAP_SUFFIX: &str = ".swap";

/// What a file of a segment holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SegmentFileKind {
    /// The record batches, end to end.
    Log,
    /// Offsets to positions, sparse.
    OffsetIndex,
    /// Timestamps to offsets, sparse.
    TimeIndex,
    /// The producers' state at exactly this offset. Not Kafka's `.snapshot`: that one keeps a single batch per producer, and
    /// its tool would misread ours.
    Producers,
}

impl SegmentFileKind {
    pub const ALL: [Self; 4] = [
        Self::Log,
        Self::OffsetIndex,
        Self::TimeIndex,
        Self::Producers,
    ];

    pub fn suffix(self) -> &'static str {
        match self {
            Self::Log => ".log",
            Self::OffsetIndex => ".index",
            Self::TimeIndex => ".timeindex",
            Self::Producers => ".producers",
        }
    }
}

/// No log gets there, and whatever follows in a segment can still be counted. A file with a higher number is not one of ours.
const BASE_OFFSET_MAX: i64 = 1 << 62;

/// The name of a file in a partition's directory that belongs to an offset: `<20 digits>.<kind>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SegmentFileName {
    pub base_offset: Offset,
    pub kind: SegmentFileKind,
}

impl SegmentFileName {
    pub fn new(base_offset: Offset, kind: SegmentFileKind) -> Self {
        debug_assert!(base_offset.0 >= 0, "a segment starts at an offset");
        Self { base_offset, kind }
    }

    /// Reads a name; `None` for every other file. A name that would be written otherwise is not one of ours.
    pub fn parse(name: &str) -> Option<Self> {
        let (digits, suffix) = name.split_at_checked(DIGITS)?;
        let kind = SegmentFileKind::ALL
            .into_iter()
            .find(|kind| kind.suffix() == suffix)?;
        if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let base_offset = digits
            .parse()
            .ok()
            .filter(|offset| *offset <= BASE_OFFSET_MAX)?;
        Some(Self {
            base_offset: Offset(base_offset),
            kind,
        })
    }
}

impl fmt::Display for SegmentFileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:0DIGITS$}{}", self.base_offset.0, self.kind.suffix())
    }
}

/// The file that the next segment will be made of; a crash leaves it behind.
pub fn spare_file() -> String {
    format!("next-segment{UNFINISHED_SUFFIX}")
}

/// Whether a file is the leftover of something that a crash interrupted, to be removed at the next start.
pub fn is_leftover(name: &str) -> bool {
    [DELETED_SUFFIX, UNFINISHED_SUFFIX, CLEANED_SUFFIX]
        .iter()
        .any(|suffix| name.ends_with(suffix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_twenty_digits_and_a_kind() {
        let name = SegmentFileName::new(Offset(4_096), SegmentFileKind::TimeIndex);
        assert_eq!(name.to_string(), "00000000000000004096.timeindex");
    }

    #[test]
    fn every_name_reads_back() {
        for kind in SegmentFileKind::ALL {
            for offset in [0, 1, 12_345, BASE_OFFSET_MAX] {
                let name = SegmentFileName::new(Offset(offset), kind);
                assert_eq!(SegmentFileName::parse(&name.to_string()), Some(name));
            }
        }
    }

    #[test]
    fn other_files_are_not_taken_for_segments() {
        for other in [
            "",
            "0.log",
            "leader-epoch-checkpoint",
            "00000000000000000000",
            "00000000000000000000.logs",
            "00000000000000000000.log.deleted",
            "00000000000000000000.snapshot",
            "+0000000000000000001.log",
            "-0000000000000000001.log",
            "99999999999999999999.log",
            "04611686018427387905.log",
            "09223372036854775806.log",
            "09223372036854775807.log",
            "000000000000000000000.log",
            "0000000000000000000\u{e9}.log",
        ] {
            assert_eq!(SegmentFileName::parse(other), None, "{other:?}");
        }
    }

    #[test]
    fn leftovers_are_known_by_their_end() {
        assert!(is_leftover("00000000000000000000.log.deleted"));
        assert!(is_leftover("partition.checkpoint.tmp"));
        assert!(is_leftover("00000000000000000000.index.cleaned"));
        assert!(!is_leftover("00000000000000000000.log.swap"));
        assert!(!is_leftover("00000000000000000000.log"));
    }
}
