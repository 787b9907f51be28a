use std::fmt;

/// The id of an idempotent producer (KIP-98), handed out by InitProducerId.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProducerId(pub i64);

impl ProducerId {
    /// A batch of a producer that is not idempotent.
    pub const NONE: Self = Self(-1);

    pub fn is_some(self) -> bool {
        self.0 >= 0
    }
}

impl fmt::Display for ProducerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Fences an older instance of the same producer (KIP-98, KIP-360).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProducerEpoch(pub i16);

impl ProducerEpoch {
    pub const NONE: Self = Self(-1);
}

impl fmt::Display for ProducerEpoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A record's number within its producer and partition: 0 to 2^31 - 1, then 0 again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sequence(pub i32);

impl Sequence {
    pub const NONE: Self = Self(-1);
    pub const FIRST: Self = Self(0);

    /// The sequence `count` records further on; it wraps from 2^31 - 1 to 0.
    pub fn plus(self, count: i32) -> Self {
        debug_assert!(self.0 >= 0 && count >= 0);
        Self((self.0 as u32).wrapping_add(count as u32) as i32 & i32::MAX)
    }
}

impl fmt::Display for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequence_wraps_at_two_to_the_31() {
        assert_eq!(Sequence(i32::MAX).plus(1), Sequence(0));
        assert_eq!(Sequence(i32::MAX - 1).plus(3), Sequence(1));
        assert_eq!(Sequence(5).plus(2), Sequence(7));
    }
}
