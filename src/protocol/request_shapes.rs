//! The shapes of the served requests: which fields each version has, in the order of the wire.
//!
//! Names are those of Kafka's message schemas, and a test compares field by field with them. Versions that are not served are left out.

use kafka_protocol::messages::ApiKey;

/// What a field is made of. Lengths and counts are varints in flexible versions, else 2 bytes (strings) or 4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Always so many bytes.
    Fixed {
        name: &'static str,
        size_bytes: usize,
    },
    String,
    /// Record batches; on the wire plain bytes.
    Records,
    /// What clients tell each other through the broker, such as an assignment.
    Bytes,
    Array(&'static Kind),
    Struct(&'static [Field]),
}

pub const BOOL: Kind = Kind::Fixed {
    name: "bool",
    size_bytes: 1,
};
pub const INT8: Kind = Kind::Fixed {
    name: "int8",
    size_bytes: 1,
};
pub const INT16: Kind = Kind::Fixed {
    name: "int16",
    size_bytes: 2,
};
pub const INT32: Kind = Kind::Fixed {
    name: "int32",
    size_bytes: 4,
};
pub const INT64: Kind = Kind::Fixed {
    name: "int64",
    size_bytes: 8,
};
pub const UUID: Kind = Kind::Fixed {
    name: "uuid",
    size_bytes: 16,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    pub name: &'static str,
    pub kind: Kind,
    pub since: i16,
    pub until: i16,
    /// The version from which the field may be null.
    pub nullable_since: Option<i16>,
    /// The field is not in the sequence but among the tagged fields at the struct's end.
    pub tag: Option<u32>,
}

impl Field {
    pub fn is_in(&self, version: i16) -> bool {
        self.since <= version && version <= self.until
    }

    pub fn is_nullable_in(&self, version: i16) -> bool {
        self.nullable_since.is_some_and(|since| since <= version)
    }

    pub const fn since(mut self, version: i16) -> Self {
        self.since = version;
        self
    }

    pub const fn until(mut self, version: i16) -> Self {
        self.until = version;
        self
    }

    pub const fn nullable(self) -> Self {
        self.nullable_since(0)
    }

    pub const fn nullable_since(mut self, version: i16) -> Self {
        self.nullable_since = Some(version);
        self
    }

    pub const fn tag(mut self, tag: u32) -> Self {
        self.tag = Some(tag);
        self
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestShape {
    pub key: ApiKey,
    pub flexible_since: i16,
    pub fields: &'static [Field],
}

const fn request(key: ApiKey, flexible_since: i16, fields: &'static [Field]) -> RequestShape {
    RequestShape {
        key,
        flexible_since,
        fields,
    }
}

pub const fn field(name: &'static str, kind: Kind) -> Field {
    Field {
        name,
        kind,
        since: 0,
        until: i16::MAX,
        nullable_since: None,
        tag: None,
    }
}

pub const fn array(name: &'static str, element: &'static Kind) -> Field {
    field(name, Kind::Array(element))
}

/// A nested struct; nullable ones are behind a byte, negative for null.
pub const fn one(name: &'static str, fields: &'static [Field]) -> Field {
    field(name, Kind::Struct(fields))
}

const PRODUCE: &[Field] = &[
    field("TransactionalId", Kind::String).nullable(),
    field("Acks", INT16),
    field("TimeoutMs", INT32),
    array(
        "TopicData",
        &Kind::Struct(&[
            field("Name", Kind::String).until(12),
            field("TopicId", UUID).since(13),
            array(
                "PartitionData",
                &Kind::Struct(&[
                    field("Index", INT32),
                    field("Records", Kind::Records).nullable(),
                ]),
            ),
        ]),
    ),
];

const FETCH: &[Field] = &[
    field("ClusterId", Kind::String).since(12).nullable().tag(0),
    field("ReplicaId", INT32).until(14),
    one(
        "ReplicaState",
        &[field("ReplicaId", INT32), field("ReplicaEpoch", INT64)],
    )
    .since(15)
    .tag(1),
    field("MaxWaitMs", INT32),
    field("MinBytes", INT32),
    field("MaxBytes", INT32),
    field("IsolationLevel", INT8),
    field("SessionId", INT32).since(7),
    field("SessionEpoch", INT32).since(7),
    array(
        "Topics",
        &Kind::Struct(&[
            field("Topic", Kind::String).until(12),
            field("TopicId", UUID).since(13),
            array(
                "Partitions",
                &Kind::Struct(&[
                    field("Partition", INT32),
                    field("CurrentLeaderEpoch", INT32).since(9),
                    field("FetchOffset", INT64),
                    field("LastFetchedEpoch", INT32).since(12),
                    field("LogStartOffset", INT64).since(5),
                    field("PartitionMaxBytes", INT32),
                    field("ReplicaDirectoryId", UUID).since(17).tag(0),
                    field("HighWatermark", INT64).since(18).tag(1),
                ]),
            ),
        ]),
    ),
    array(
        "ForgottenTopicsData",
        &Kind::Struct(&[
            field("Topic", Kind::String).until(12),
            field("TopicId", UUID).since(13),
            array("Partitions", &INT32),
        ]),
    )
    .since(7),
    field("RackId", Kind::String).since(11),
];

const LIST_OFFSETS: &[Field] = &[
    field("ReplicaId", INT32),
    field("IsolationLevel", INT8).since(2),
    array(
        "Topics",
        &Kind::Struct(&[
            field("Name", Kind::String),
            array(
                "Partitions",
                &Kind::Struct(&[
                    field("PartitionIndex", INT32),
                    field("CurrentLeaderEpoch", INT32).since(4),
                    field("Timestamp", INT64),
                ]),
            ),
        ]),
    ),
    field("TimeoutMs", INT32).since(10),
];

const METADATA: &[Field] = &[
    array(
        "Topics",
        &Kind::Struct(&[
            field("TopicId", UUID).since(10),
            field("Name", Kind::String).nullable_since(10),
        ]),
    )
    .nullable_since(1),
    field("AllowAutoTopicCreation", BOOL).since(4),
    field("IncludeClusterAuthorizedOperations", BOOL)
        .since(8)
        .until(10),
    field("IncludeTopicAuthorizedOperations", BOOL).since(8),
];

const OFFSET_COMMIT: &[Field] = &[
    field("GroupId", Kind::String),
    field("GenerationIdOrMemberEpoch", INT32),
    field("MemberId", Kind::String),
    field("GroupInstanceId", Kind::String).since(7).nullable(),
    field("RetentionTimeMs", INT64).until(4),
    array(
        "Topics",
        &Kind::Struct(&[
            field("Name", Kind::String),
            array(
                "Partitions",
                &Kind::Struct(&[
                    field("PartitionIndex", INT32),
                    field("CommittedOffset", INT64),
                    field("CommittedLeaderEpoch", INT32).since(6),
                    field("CommittedMetadata", Kind::String).nullable(),
                ]),
            ),
        ]),
    ),
];

const OFFSET_FETCH: &[Field] = &[
    field("GroupId", Kind::String).until(7),
    array(
        "Topics",
        &Kind::Struct(&[
            field("Name", Kind::String),
            array("PartitionIndexes", &INT32),
        ]),
    )
    .until(7)
    .nullable_since(2),
    array(
        "Groups",
        &Kind::Struct(&[
            field("GroupId", Kind::String),
            field("MemberId", Kind::String).since(9).nullable(),
            field("MemberEpoch", INT32).since(9),
            array(
                "Topics",
                &Kind::Struct(&[
                    field("Name", Kind::String),
                    array("PartitionIndexes", &INT32),
                ]),
            )
            .nullable(),
        ]),
    )
    .since(8),
    field("RequireStable", BOOL).since(7),
];

const OFFSET_DELETE: &[Field] = &[
    field("GroupId", Kind::String),
    array(
        "Topics",
        &Kind::Struct(&[
            field("Name", Kind::String),
            array(
                "Partitions",
                &Kind::Struct(&[field("PartitionIndex", INT32)]),
            ),
        ]),
    ),
];

const JOIN_GROUP: &[Field] = &[
    field("GroupId", Kind::String),
    field("SessionTimeoutMs", INT32),
    field("RebalanceTimeoutMs", INT32).since(1),
    field("MemberId", Kind::String),
    field("GroupInstanceId", Kind::String).since(5).nullable(),
    field("ProtocolType", Kind::String),
    array(
        "Protocols",
        &Kind::Struct(&[field("Name", Kind::String), field("Metadata", Kind::Bytes)]),
    ),
    field("Reason", Kind::String).since(8).nullable(),
];

const SYNC_GROUP: &[Field] = &[
    field("GroupId", Kind::String),
    field("GenerationId", INT32),
    field("MemberId", Kind::String),
    field("GroupInstanceId", Kind::String).since(3).nullable(),
    field("ProtocolType", Kind::String).since(5).nullable(),
    field("ProtocolName", Kind::String).since(5).nullable(),
    array(
        "Assignments",
        &Kind::Struct(&[
            field("MemberId", Kind::String),
            field("Assignment", Kind::Bytes),
        ]),
    ),
];

const HEARTBEAT: &[Field] = &[
    field("GroupId", Kind::String),
    field("GenerationId", INT32),
    field("MemberId", Kind::String),
    field("GroupInstanceId", Kind::String).since(3).nullable(),
];

const LEAVE_GROUP: &[Field] = &[
    field("GroupId", Kind::String),
    field("MemberId", Kind::String).until(2),
    array(
        "Members",
        &Kind::Struct(&[
            field("MemberId", Kind::String),
            field("GroupInstanceId", Kind::String).nullable(),
            field("Reason", Kind::String).since(5).nullable(),
        ]),
    )
    .since(3),
];

const DESCRIBE_GROUPS: &[Field] = &[
    array("Groups", &Kind::String),
    field("IncludeAuthorizedOperations", BOOL).since(3),
];

const LIST_GROUPS: &[Field] = &[
    array("StatesFilter", &Kind::String).since(4),
    array("TypesFilter", &Kind::String).since(5),
];

const DELETE_GROUPS: &[Field] = &[array("GroupsNames", &Kind::String)];

const API_VERSIONS: &[Field] = &[
    field("ClientSoftwareName", Kind::String).since(3),
    field("ClientSoftwareVersion", Kind::String).since(3),
];

const CREATE_TOPICS: &[Field] = &[
    array(
        "Topics",
        &Kind::Struct(&[
            field("Name", Kind::String),
            field("NumPartitions", INT32),
            field("ReplicationFactor", INT16),
            array(
                "Assignments",
                &Kind::Struct(&[field("PartitionIndex", INT32), array("BrokerIds", &INT32)]),
            ),
            array(
                "Configs",
                &Kind::Struct(&[
                    field("Name", Kind::String),
                    field("Value", Kind::String).nullable(),
                ]),
            ),
        ]),
    ),
    field("timeoutMs", INT32),
    field("validateOnly", BOOL),
];

const DELETE_TOPICS: &[Field] = &[
    array(
        "Topics",
        &Kind::Struct(&[
            field("Name", Kind::String).nullable(),
            field("TopicId", UUID),
        ]),
    )
    .since(6),
    array("TopicNames", &Kind::String).until(5),
    field("TimeoutMs", INT32),
];

const DELETE_RECORDS: &[Field] = &[
    array(
        "Topics",
        &Kind::Struct(&[
            field("Name", Kind::String),
            array(
                "Partitions",
                &Kind::Struct(&[field("PartitionIndex", INT32), field("Offset", INT64)]),
            ),
        ]),
    ),
    field("TimeoutMs", INT32),
];

const INIT_PRODUCER_ID: &[Field] = &[
    field("TransactionalId", Kind::String).nullable(),
    field("TransactionTimeoutMs", INT32),
    field("ProducerId", INT64).since(3),
    field("ProducerEpoch", INT16).since(3),
];

const OFFSET_FOR_LEADER_EPOCH: &[Field] = &[
    field("ReplicaId", INT32).since(3),
    array(
        "Topics",
        &Kind::Struct(&[
            field("Topic", Kind::String),
            array(
                "Partitions",
                &Kind::Struct(&[
                    field("Partition", INT32),
                    field("CurrentLeaderEpoch", INT32),
                    field("LeaderEpoch", INT32),
                ]),
            ),
        ]),
    ),
];

const DESCRIBE_CONFIGS: &[Field] = &[
    array(
        "Resources",
        &Kind::Struct(&[
            field("ResourceType", INT8),
            field("ResourceName", Kind::String),
            array("ConfigurationKeys", &Kind::String).nullable(),
        ]),
    ),
    field("IncludeSynonyms", BOOL),
    field("IncludeDocumentation", BOOL).since(3),
];

const ALTER_CONFIGS: &[Field] = &[
    array(
        "Resources",
        &Kind::Struct(&[
            field("ResourceType", INT8),
            field("ResourceName", Kind::String),
            array(
                "Configs",
                &Kind::Struct(&[
                    field("Name", Kind::String),
                    field("Value", Kind::String).nullable(),
                ]),
            ),
        ]),
    ),
    field("ValidateOnly", BOOL),
];

const DESCRIBE_LOG_DIRS: &[Field] = &[array(
    "Topics",
    &Kind::Struct(&[field("Topic", Kind::String), array("Partitions", &INT32)]),
)
.nullable()];

const CREATE_PARTITIONS: &[Field] = &[
    array(
        "Topics",
        &Kind::Struct(&[
            field("Name", Kind::String),
            field("Count", INT32),
            array("Assignments", &Kind::Struct(&[array("BrokerIds", &INT32)])).nullable(),
        ]),
    ),
    field("TimeoutMs", INT32),
    field("ValidateOnly", BOOL),
];

const INCREMENTAL_ALTER_CONFIGS: &[Field] = &[
    array(
        "Resources",
        &Kind::Struct(&[
            field("ResourceType", INT8),
            field("ResourceName", Kind::String),
            array(
                "Configs",
                &Kind::Struct(&[
                    field("Name", Kind::String),
                    field("ConfigOperation", INT8),
                    field("Value", Kind::String).nullable(),
                ]),
            ),
        ]),
    ),
    field("ValidateOnly", BOOL),
];

const FIND_COORDINATOR: &[Field] = &[
    field("Key", Kind::String).until(3),
    field("KeyType", INT8).since(1),
    array("CoordinatorKeys", &Kind::String).since(4),
];

const DESCRIBE_CLUSTER: &[Field] = &[
    field("IncludeClusterAuthorizedOperations", BOOL),
    field("EndpointType", INT8).since(1),
    field("IncludeFencedBrokers", BOOL).since(2),
];

const DESCRIBE_PRODUCERS: &[Field] = &[array(
    "Topics",
    &Kind::Struct(&[
        field("Name", Kind::String),
        array("PartitionIndexes", &INT32),
    ]),
)];

const LIST_CONFIG_RESOURCES: &[Field] = &[array("ResourceTypes", &INT8).since(1)];

const DESCRIBE_TOPIC_PARTITIONS: &[Field] = &[
    array("Topics", &Kind::Struct(&[field("Name", Kind::String)])),
    field("ResponsePartitionLimit", INT32),
    one(
        "Cursor",
        &[
            field("TopicName", Kind::String),
            field("PartitionIndex", INT32),
        ],
    )
    .nullable(),
];

/// One shape for each row of [`super::versions::SERVED`].
pub const REQUEST_SHAPES: &[RequestShape] = &[
    request(ApiKey::Produce, 9, PRODUCE),
    request(ApiKey::Fetch, 12, FETCH),
    request(ApiKey::ListOffsets, 6, LIST_OFFSETS),
    request(ApiKey::Metadata, 9, METADATA),
    request(ApiKey::OffsetCommit, 8, OFFSET_COMMIT),
    request(ApiKey::OffsetFetch, 6, OFFSET_FETCH),
    request(ApiKey::FindCoordinator, 3, FIND_COORDINATOR),
    request(ApiKey::JoinGroup, 6, JOIN_GROUP),
    request(ApiKey::Heartbeat, 4, HEARTBEAT),
    request(ApiKey::LeaveGroup, 4, LEAVE_GROUP),
    request(ApiKey::SyncGroup, 4, SYNC_GROUP),
    request(ApiKey::DescribeGroups, 5, DESCRIBE_GROUPS),
    request(ApiKey::ListGroups, 3, LIST_GROUPS),
    request(ApiKey::ApiVersions, 3, API_VERSIONS),
    request(ApiKey::CreateTopics, 5, CREATE_TOPICS),
    request(ApiKey::DeleteTopics, 4, DELETE_TOPICS),
    request(ApiKey::DeleteRecords, 2, DELETE_RECORDS),
    request(ApiKey::InitProducerId, 2, INIT_PRODUCER_ID),
    request(ApiKey::OffsetForLeaderEpoch, 4, OFFSET_FOR_LEADER_EPOCH),
    request(ApiKey::DescribeConfigs, 4, DESCRIBE_CONFIGS),
    request(ApiKey::AlterConfigs, 2, ALTER_CONFIGS),
    request(ApiKey::DescribeLogDirs, 2, DESCRIBE_LOG_DIRS),
    request(ApiKey::CreatePartitions, 2, CREATE_PARTITIONS),
    request(ApiKey::DeleteGroups, 2, DELETE_GROUPS),
    request(
        ApiKey::IncrementalAlterConfigs,
        1,
        INCREMENTAL_ALTER_CONFIGS,
    ),
    // Never flexible.
    request(ApiKey::OffsetDelete, i16::MAX, OFFSET_DELETE),
    request(ApiKey::DescribeCluster, 0, DESCRIBE_CLUSTER),
    request(ApiKey::DescribeProducers, 0, DESCRIBE_PRODUCERS),
    request(ApiKey::ListConfigResources, 0, LIST_CONFIG_RESOURCES),
    request(
        ApiKey::DescribeTopicPartitions,
        0,
        DESCRIBE_TOPIC_PARTITIONS,
    ),
];

pub fn shape_of(key: ApiKey) -> Option<&'static RequestShape> {
    REQUEST_SHAPES.iter().find(|shape| shape.key == key)
}
