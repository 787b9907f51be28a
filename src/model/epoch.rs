use std::fmt;

/// The term of a partition's leader; each new leader has a higher one (KIP-101).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaderEpoch(pub i32);

impl LeaderEpoch {
    /// What Kafka puts on the wire where no epoch is known.
    pub const UNKNOWN: Self = Self(-1);
    pub const FIRST: Self = Self(0);

    pub fn is_known(self) -> bool {
        self.0 >= 0
    }
}

impl fmt::Display for LeaderEpoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
