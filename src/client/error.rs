//! What can go wrong between a client and a cluster, each with the address and the API in it.

use std::io;
use std::time::Duration;

use kafka_protocol::error::ResponseError;
use kafka_protocol::messages::ApiKey;

use crate::model::NodeId;
use crate::protocol::shape::ShapeError;

#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error("no broker answers at {address}: {source}")]
    Connect { address: String, source: io::Error },
    #[error("'{address}' is not a host and port, as 127.0.0.1:9092")]
    Address { address: String },
    #[error("none of the brokers answers: {}", reasons.join("; "))]
    NoBroker { reasons: Vec<String> },
    #[error("the connection to {address} broke during {during}: {source}")]
    Io {
        address: String,
        during: &'static str,
        source: io::Error,
    },
    #[error("{address} closed the connection instead of answering {api:?}")]
    Closed { address: String, api: ApiKey },
    #[error("{address} did not answer {api:?} within {} ms", waited.as_millis())]
    Silent {
        address: String,
        api: ApiKey,
        waited: Duration,
    },
    #[error("{address} sent what is not a Kafka response: {reason}")]
    Protocol { address: String, reason: String },
    #[error("{address} sent a {api:?} response that cannot be read: {source}")]
    Shape {
        address: String,
        api: ApiKey,
        source: ShapeError,
    },
    #[error("{address} serves {api:?} in no version that is spoken here ({min} to {max})")]
    Version {
        address: String,
        api: ApiKey,
        min: i16,
        max: i16,
    },
    #[error("{api:?} {version}, which {address} serves, cannot say this: {reason}")]
    Inexpressible {
        address: String,
        api: ApiKey,
        version: i16,
        reason: String,
    },
    #[error("{address} refused {api:?} of {about}: {code}: {}", message.as_deref().or(code.explanation()).unwrap_or("no reason given"))]
    Refused {
        address: String,
        api: ApiKey,
        about: String,
        code: ErrorCode,
        message: Option<String>,
    },
    #[error("the broker's records of {partition} cannot be read: {reason}")]
    Records { partition: String, reason: String },
    #[error("the cluster has no broker {node}; it has {}", known.iter().map(|node| node.to_string()).collect::<Vec<_>>().join(", "))]
    UnknownNode { node: NodeId, known: Vec<NodeId> },
    #[error("the topic '{topic}' {reason}")]
    Topic { topic: String, reason: String },
    #[error("the group '{group}' {reason}")]
    Group { group: String, reason: String },
}

impl ClientError {
    /// The code with which the cluster refused; none if it is not the cluster that said no.
    pub fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::Refused { code, .. } => Some(*code),
            _ => None,
        }
    }

    /// Whether the same request may be answered in a moment: a leader or a coordinator is being found.
    pub fn is_transient(&self) -> bool {
        self.code().is_some_and(|code| {
            code.is_retriable()
                && code != ErrorCode::UNKNOWN_TOPIC_OR_PARTITION
                && code != ErrorCode::KAFKA_STORAGE_ERROR
                && code != ErrorCode::CORRUPT_MESSAGE
        })
    }

    /// Whether a broker does not answer, or has stopped answering, as one that is restarted. Whether it did what it was asked is open.
    pub fn is_outage(&self) -> bool {
        matches!(
            self,
            Self::Connect { .. }
                | Self::NoBroker { .. }
                | Self::Io { .. }
                | Self::Closed { .. }
                | Self::Silent { .. }
        )
    }

    /// Whether the connection is of no use any more.
    pub fn breaks_connection(&self) -> bool {
        match self {
            Self::Connect { .. }
            | Self::Address { .. }
            | Self::NoBroker { .. }
            | Self::Io { .. }
            | Self::Closed { .. }
            | Self::Silent { .. }
            | Self::Protocol { .. }
            | Self::Shape { .. } => true,
            Self::Version { .. }
            | Self::Inexpressible { .. }
            | Self::Refused { .. }
            | Self::Records { .. }
            | Self::UnknownNode { .. }
            | Self::Group { .. }
            | Self::Topic { .. } => false,
        }
    }
}

/// A Kafka error code, shown under Kafka's name for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ErrorCode(pub i16);

impl ErrorCode {
    pub const NONE: Self = Self(0);
    pub const UNKNOWN_SERVER_ERROR: Self = Self(-1);
    pub const OFFSET_OUT_OF_RANGE: Self = Self(1);
    pub const CORRUPT_MESSAGE: Self = Self(2);
    pub const UNKNOWN_TOPIC_OR_PARTITION: Self = Self(3);
    pub const LEADER_NOT_AVAILABLE: Self = Self(5);
    pub const REQUEST_TIMED_OUT: Self = Self(7);
    pub const NETWORK_EXCEPTION: Self = Self(13);
    pub const COORDINATOR_NOT_AVAILABLE: Self = Self(15);
    pub const NOT_ENOUGH_REPLICAS_AFTER_APPEND: Self = Self(20);
    pub const ILLEGAL_GENERATION: Self = Self(22);
    pub const UNKNOWN_MEMBER_ID: Self = Self(25);
    pub const REBALANCE_IN_PROGRESS: Self = Self(27);
    pub const UNSUPPORTED_VERSION: Self = Self(35);
    pub const TOPIC_ALREADY_EXISTS: Self = Self(36);
    pub const OUT_OF_ORDER_SEQUENCE_NUMBER: Self = Self(45);
    pub const DUPLICATE_SEQUENCE_NUMBER: Self = Self(46);
    pub const KAFKA_STORAGE_ERROR: Self = Self(56);
    pub const GROUP_ID_NOT_FOUND: Self = Self(69);
    pub const MEMBER_ID_REQUIRED: Self = Self(79);
    pub const GROUP_SUBSCRIBED_TO_TOPIC: Self = Self(86);

    pub fn is_ok(self) -> bool {
        self == Self::NONE
    }

    /// Whether the records may be in the log although the broker answered with this error.
    pub fn leaves_open_whether_written(self) -> bool {
        matches!(
            self,
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
        self == Self::OUT_OF_ORDER_SEQUENCE_NUMBER
            || ResponseError::try_from_code(self.0).is_some_and(|error| error.is_retriable())
    }

    /// What the code means, for where the broker gave no message of its own.
    pub fn explanation(self) -> Option<&'static str> {
        Some(match self.0 {
            -1 => "the broker met an error that it did not expect; its log says more",
            1 => "the offset is outside what the partition holds",
            2 => "the record batch failed its checksum or its format is broken",
            3 => "there is no such topic or partition",
            5 => "the partition has no leader at the moment",
            6 => "the broker does not lead the partition",
            7 => "the broker could not do it in time",
            8 => "the broker is not available",
            10 => "a record batch is larger than max.message.bytes of the topic",
            12 => "the metadata of a committed offset is too large",
            14 => "the coordinator of the group is still loading it",
            15 => "no broker coordinates the group at the moment",
            16 => "the broker does not coordinate the group",
            17 => "the topic's name is not legal, or the topic is internal",
            18 => "the record batch is larger than a segment of the topic",
            19 => "fewer replicas are in sync than min.insync.replicas",
            20 => "it was written, but to fewer replicas than min.insync.replicas",
            22 => "the group has rebalanced since",
            23 => "the members of the group have no assignor in common",
            24 => "the group's name is not legal",
            25 => "the group has no such member, or has members and is not to be changed by others",
            26 => "the session timeout is outside what the broker allows",
            27 => "the group is rebalancing",
            29 => "not allowed for this topic",
            30 => "not allowed for this group",
            31 => "not allowed for this cluster",
            32 => "a timestamp is outside what the topic allows",
            35 => "the broker does not serve this version",
            36 => "the topic exists already",
            37 => "the number of partitions is not possible",
            38 => "there are fewer brokers than replicas asked for",
            40 => "the setting does not exist, or the value is not legal",
            41 => "the broker is not the controller",
            42 => "the broker finds the request wrong; its log may say more",
            44 => "a policy of the cluster forbids it",
            56 => "the broker's disk failed or is full",
            68 => "the group still has members",
            69 => "there is no such group",
            73 => "the cluster does not delete topics (delete.topic.enable)",
            81 => "the group has as many members as it may have",
            86 => "a member of the group is subscribed to the topic",
            87 => "a record is not one that the topic takes",
            _ => return None,
        })
    }
}

impl std::fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = match ResponseError::try_from_code(self.0) {
            None => return f.write_str("NONE"),
            Some(ResponseError::Unknown(code)) => return write!(f, "error code {code}"),
            Some(error) => format!("{error:?}"),
        };
        // The crate has the names in CamelCase; Kafka's own are in capitals.
        for (index, letter) in name.chars().enumerate() {
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
        assert_eq!(ErrorCode(9_999).to_string(), "error code 9999");
    }

    #[test]
    fn a_timeout_leaves_open_whether_the_records_were_written_and_a_refusal_does_not() {
        assert!(ErrorCode(7).leaves_open_whether_written());
        assert!(!ErrorCode(10).leaves_open_whether_written());
    }

    #[test]
    fn a_refusal_names_the_broker_the_api_the_code_and_a_reason() {
        let refused = |message: Option<&str>| {
            ClientError::Refused {
                address: "a:1".to_owned(),
                api: ApiKey::DeleteTopics,
                about: "topic 'x'".to_owned(),
                code: ErrorCode(3),
                message: message.map(str::to_owned),
            }
            .to_string()
        };
        let start = "a:1 refused DeleteTopics of topic 'x': UNKNOWN_TOPIC_OR_PARTITION: ";
        assert_eq!(
            refused(None),
            format!("{start}there is no such topic or partition")
        );
        assert_eq!(refused(Some("gone")), format!("{start}gone"));
    }
}
