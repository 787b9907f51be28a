use std::io;

use kafka_protocol::error::ResponseError;

#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error("no broker answers at {address}: {source}")]
    Connect { address: String, source: io::Error },
    #[error("'{address}' is not a host and port, as 127.0.0.1:9092")]
    Address { address: String },
    #[error("the connection to {address} broke during {during}: {source}")]
    Io {
        address: String,
        during: &'static str,
        source: io::Error,
    },
    #[error("{address} sent what is not a Kafka response: {reason}")]
    Protocol { address: String, reason: String },
    #[error(
        "{address} serves {api} in no version that corelog-perf speaks (it speaks {min} to {max})"
    )]
    Version {
        address: String,
        api: &'static str,
        min: i16,
        max: i16,
    },
    #[error("{api} was refused: {code}{}", message.as_ref().map(|m| format!(" ({m})")).unwrap_or_default())]
    Refused {
        api: &'static str,
        code: ErrorCode,
        message: Option<String>,
    },
    #[error("the topic '{topic}' {reason}")]
    Topic { topic: String, reason: String },
    #[error("the members of group '{group}' did not come together within {seconds} s")]
    Group { group: String, seconds: u64 },
}

/// A Kafka error code, shown under Kafka's name for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ErrorCode(pub i16);

impl ErrorCode {
    pub const NONE: Self = Self(0);
    pub const UNKNOWN_TOPIC_OR_PARTITION: Self = Self(3);
    pub const COORDINATOR_NOT_AVAILABLE: Self = Self(15);
    pub const ILLEGAL_GENERATION: Self = Self(22);
    pub const UNKNOWN_MEMBER_ID: Self = Self(25);
    pub const REBALANCE_IN_PROGRESS: Self = Self(27);
    pub const UNSUPPORTED_VERSION: Self = Self(35);
    pub const TOPIC_ALREADY_EXISTS: Self = Self(36);
    pub const DUPLICATE_SEQUENCE_NUMBER: Self = Self(46);
    pub const MEMBER_ID_REQUIRED: Self = Self(79);
    const OUT_OF_ORDER_SEQUENCE_NUMBER: i16 = 45;
    const UNKNOWN_SERVER_ERROR: i16 = -1;
    const REQUEST_TIMED_OUT: i16 = 7;
    const NETWORK_EXCEPTION: i16 = 13;
    const NOT_ENOUGH_REPLICAS_AFTER_APPEND: i16 = 20;
    const KAFKA_STORAGE_ERROR: i16 = 56;

    pub fn is_ok(self) -> bool {
        self == Self::NONE
    }

    /// Whether the records may be in the log although the broker answered with this error.
    pub fn leaves_open_whether_written(self) -> bool {
        matches!(
            self.0,
            Self::UNKNOWN_SERVER_ERROR
                | Self::REQUEST_TIMED_OUT
                | Self::NETWORK_EXCEPTION
                | Self::NOT_ENOUGH_REPLICAS_AFTER_APPEND
                | Self::KAFKA_STORAGE_ERROR
        )
    }

    /// Whether an idempotent producer sends the batch again. A sequence gap is among them: it is what the
    /// batches behind a failed one get.
    pub fn is_retriable(self) -> bool {
        self.0 == Self::OUT_OF_ORDER_SEQUENCE_NUMBER
            || ResponseError::try_from_code(self.0).is_some_and(|error| error.is_retriable())
    }
}

impl std::fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Some(error) = ResponseError::try_from_code(self.0) else {
            return f.write_str("NONE");
        };
        // The crate has the names in CamelCase; Kafka's own are in capitals.
        for (index, letter) in format!("{error:?}").chars().enumerate() {
            if letter.is_ascii_uppercase() && index > 0 {
                f.write_str("_")?;
            }
            write!(f, "{}", letter.to_ascii_uppercase())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_code_shows_kafkas_name() {
        assert_eq!(ErrorCode(6).to_string(), "NOT_LEADER_OR_FOLLOWER");
        assert_eq!(ErrorCode(56).to_string(), "KAFKA_STORAGE_ERROR");
        assert_eq!(ErrorCode(0).to_string(), "NONE");
    }

    #[test]
    fn a_timeout_leaves_open_whether_the_records_were_written_and_a_refusal_does_not() {
        assert!(ErrorCode(7).leaves_open_whether_written());
        assert!(!ErrorCode(10).leaves_open_whether_written());
    }
}
