//! What went wrong, as it is counted: under Kafka's name where Kafka has one.

use std::fmt;

use super::error::{ClientError, ErrorCode};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Failure {
    /// The broker said so.
    Code(ErrorCode),
    /// The broker's answer says nothing about the partition.
    NoAnswerForPartition,
    NeverAnswered,
    ConnectionLost,
    /// Nobody took the connection.
    NoConnection,
    /// What came is no answer of a Kafka broker.
    NotKafka,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "{code}"),
            Self::NoAnswerForPartition => f.write_str("NO_ANSWER_FOR_PARTITION"),
            Self::NeverAnswered => f.write_str("NEVER_ANSWERED"),
            Self::ConnectionLost => f.write_str("CONNECTION_LOST"),
            Self::NoConnection => f.write_str("NO_CONNECTION"),
            Self::NotKafka => f.write_str("NOT_KAFKA"),
        }
    }
}

impl From<&ClientError> for Failure {
    fn from(error: &ClientError) -> Self {
        match error {
            ClientError::Connect { .. }
            | ClientError::Address { .. }
            | ClientError::NoBroker { .. }
            | ClientError::UnknownNode { .. } => Self::NoConnection,
            ClientError::Io { .. } | ClientError::Closed { .. } => Self::ConnectionLost,
            ClientError::Silent { .. } => Self::NeverAnswered,
            ClientError::Protocol { .. }
            | ClientError::Shape { .. }
            | ClientError::Records { .. } => Self::NotKafka,
            ClientError::Version { .. } | ClientError::Inexpressible { .. } => {
                Self::Code(ErrorCode::UNSUPPORTED_VERSION)
            }
            ClientError::Refused { code, .. } => Self::Code(*code),
            ClientError::Group { .. } => Self::Code(ErrorCode::COORDINATOR_NOT_AVAILABLE),
            ClientError::Topic { .. } => Self::Code(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION),
        }
    }
}

#[cfg(test)]
mod tests {
    use kafka_protocol::messages::ApiKey;

    use super::*;

    #[test]
    fn a_refusal_is_counted_under_kafkas_name_and_a_broken_connection_under_its_own() {
        let refused = ClientError::Refused {
            address: "a:1".to_owned(),
            api: ApiKey::Fetch,
            about: "t-0".to_owned(),
            code: ErrorCode(6),
            message: Some("moved".to_owned()),
        };
        assert_eq!(
            Failure::from(&refused).to_string(),
            "NOT_LEADER_OR_FOLLOWER"
        );
        let broken = ClientError::Io {
            address: "a:1".to_owned(),
            during: "receive",
            source: std::io::ErrorKind::ConnectionReset.into(),
        };
        assert_eq!(Failure::from(&broken).to_string(), "CONNECTION_LOST");
    }
}
