/// A record of `__consumer_offsets` that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadRecord {
    #[error("the {part} ends at byte {at}, in the middle of {field}")]
    Truncated {
        part: RecordPart,
        field: &'static str,
        at: usize,
    },
    #[error("the {part} gives {field} a length of {length}")]
    Length {
        part: RecordPart,
        field: &'static str,
        length: i64,
    },
    #[error("{field} of the {part} is not what it may be")]
    Illegal {
        part: RecordPart,
        field: &'static str,
    },
    #[error("the value has version {0}, which is not known")]
    ValueVersion(i16),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordPart {
    Key,
    Value,
}

impl std::fmt::Display for RecordPart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Key => "key",
            Self::Value => "value",
        })
    }
}
