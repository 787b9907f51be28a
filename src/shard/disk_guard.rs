//! What may still be appended to a log directory whose file system fills up.
//!
//! ```text
//!   used   0 ......... high watermark ......... reserve watermark ......... 1
//!   room   | Free      | Reserve: the broker's  | Full: nothing is appended
//!          |           | own topics only        |
//!   back   <---- below the mark by HYSTERESIS --|
//! ```
//!
//! Reads, deletions, retention and changes of metadata go on everywhere: they are how space comes back. The metadata log has a
//! reserve of its own, see `METADATA_RESERVE_BYTES`.

use crate::model::limits::DISK_GUARD_HYSTERESIS_RATIO;

/// Ordered from much to none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Room {
    Free,
    /// Only for the broker's own topics.
    Reserve,
    Full,
}

/// `log.dirs.high.watermark` and `log.dirs.reserve.watermark`: shares of the file system in use.
#[derive(Clone, Copy, Debug)]
pub struct DiskMarks {
    pub high: f64,
    pub reserve: f64,
}

impl Room {
    pub const ALL: [Self; 3] = [Self::Free, Self::Reserve, Self::Full];

    /// The room at `used_ratio`, where it was `self` before.
    #[must_use]
    pub fn at(self, used_ratio: f64, marks: DiskMarks) -> Self {
        // A mark that was passed is left again only some way below it.
        let has_passed = |room: Self, mark: f64| {
            let leave = if self >= room {
                mark - DISK_GUARD_HYSTERESIS_RATIO
            } else {
                mark
            };
            used_ratio >= leave
        };
        if has_passed(Self::Full, marks.reserve) {
            Self::Full
        } else if has_passed(Self::Reserve, marks.high) {
            Self::Reserve
        } else {
            Self::Free
        }
    }

    /// The setting whose mark was passed.
    pub fn setting(self) -> &'static str {
        match self {
            Self::Free | Self::Reserve => "log.dirs.high.watermark",
            Self::Full => "log.dirs.reserve.watermark",
        }
    }

    /// Whether a batch may be appended; `is_own` are those that the broker itself writes.
    pub fn takes(self, is_own: bool) -> bool {
        match self {
            Self::Free => true,
            Self::Reserve => is_own,
            Self::Full => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARKS: DiskMarks = DiskMarks {
        high: 0.95,
        reserve: 0.99,
    };

    fn along(used: &[f64]) -> Vec<Room> {
        let mut room = Room::Free;
        let rooms = used.iter().map(|used| {
            room = room.at(*used, MARKS);
            room
        });
        rooms.collect()
    }

    #[test]
    fn produce_is_refused_from_the_high_mark_on_and_the_brokers_own_topics_from_the_second() {
        use Room::{Free, Full, Reserve};
        let rooms = along(&[0.5, 0.949, 0.95, 0.989, 0.99, 1.0]);
        assert_eq!(rooms, [Free, Free, Reserve, Reserve, Full, Full]);
        let takes = Room::ALL.map(|room| (room.takes(false), room.takes(true)));
        assert_eq!(takes, [(true, true), (false, true), (false, false)]);
    }

    #[test]
    fn a_mark_is_left_only_some_way_below_it() {
        use Room::{Free, Full, Reserve};
        let rooms = along(&[0.95, 0.945, 0.941, 0.939, 0.945]);
        assert_eq!(rooms, [Reserve, Reserve, Reserve, Free, Free]);
        let rooms = along(&[0.99, 0.985, 0.979, 0.945, 0.93]);
        assert_eq!(rooms, [Full, Full, Reserve, Reserve, Free]);
    }

    #[test]
    fn a_mark_at_one_never_refuses_before_the_disk_does() {
        let off = DiskMarks {
            high: 1.0,
            reserve: 1.0,
        };
        assert_eq!(Room::Free.at(0.9999, off), Room::Free);
        assert_eq!(Room::Free.at(1.0, off), Room::Full);
    }
}
