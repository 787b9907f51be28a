use std::fmt;

/// Milliseconds since 1970-01-01T00:00:00Z, as Kafka stamps records. -1 is "no timestamp".
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimestampMs(pub i64);

impl TimestampMs {
    pub const NONE: Self = Self(-1);
}

impl fmt::Display for TimestampMs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
