use std::fmt;

/// The number of a record in its partition. The log end offset is the one to be assigned next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Offset(pub i64);

impl Offset {
    pub const ZERO: Self = Self(0);
    /// What Kafka puts on the wire where there is no offset.
    pub const UNKNOWN: Self = Self(-1);

    /// The offset `count` records further on. Panics on overflow: a log of 2^63 records is a bug.
    pub fn plus(self, count: i64) -> Self {
        Self(self.0.checked_add(count).expect("an offset overflowed i64"))
    }

    /// How many offsets lie from `earlier` up to here; negative if `earlier` is the later one.
    pub fn since(self, earlier: Self) -> i64 {
        self.0 - earlier.0
    }
}

impl fmt::Display for Offset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A byte's place in one segment file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FilePosition(pub u64);

impl FilePosition {
    pub const ZERO: Self = Self(0);

    pub fn plus(self, bytes: u64) -> Self {
        Self(self.0 + bytes)
    }
}

impl fmt::Display for FilePosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
