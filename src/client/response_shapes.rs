//! What the client speaks: each API in a range of versions, with the shape of its response.
//!
//! The codec makes room for as many elements as an array declares, so a response is walked by this table before it is decoded, as the broker
//! does with requests. Names are those of Kafka's message schemas, and a test compares field by field with them. A range ends where what is
//! asked would have to be said in another way: by topic ids, or for several groups at once.

use kafka_protocol::messages::ApiKey;

use crate::protocol::request_shapes::{
    BOOL, Field, INT8, INT16, INT32, INT64, Kind, UUID, array, field, one,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpokenApi {
    pub key: ApiKey,
    pub min: i16,
    pub max: i16,
    /// The first version whose response is flexible.
    pub flexible_since: i16,
    pub fields: &'static [Field],
}

const fn api(
    key: ApiKey,
    (min, max): (i16, i16),
    flexible_since: i16,
    fields: &'static [Field],
) -> SpokenApi {
    SpokenApi {
        key,
        min,
        max,
        flexible_since,
        fields,
    }
}

const PRODUCE: &[Field] = &[
    array(
        "Responses",
        &Kind::Struct(&[
            field("Name", Kind::String),
            array(
                "PartitionResponses",
                &Kind::Struct(&[
                    field("Index", INT32),
                    field("ErrorCode", INT16),
                    field("BaseOffset", INT64),
                    field("LogAppendTimeMs", INT64),
                    field("LogStartOffset", INT64).since(5),
                    array(
                        "RecordErrors",
                        &Kind::Struct(&[
                            field("BatchIndex", INT32).since(8),
                            field("BatchIndexErrorMessage", Kind::String)
                                .since(8)
                                .nullable_since(8),
                        ]),
                    )
                    .since(8),
                    field("ErrorMessage", Kind::String)
                        .since(8)
                        .nullable_since(8),
                    one(
                        "CurrentLeader",
                        &[
                            field("LeaderId", INT32).since(10),
                            field("LeaderEpoch", INT32).since(10),
                        ],
                    )
                    .since(10)
                    .tag(0),
                ]),
            ),
        ]),
    ),
    field("ThrottleTimeMs", INT32),
    array(
        "NodeEndpoints",
        &Kind::Struct(&[
            field("NodeId", INT32).since(10),
            field("Host", Kind::String).since(10),
            field("Port", INT32).since(10),
            field("Rack", Kind::String).since(10).nullable_since(10),
        ]),
    )
    .since(10)
    .tag(0),
];

const FETCH: &[Field] = &[
    field("ThrottleTimeMs", INT32),
    field("ErrorCode", INT16).since(7),
    field("SessionId", INT32).since(7),
    array(
        "Responses",
        &Kind::Struct(&[
            field("Topic", Kind::String),
            array(
                "Partitions",
                &Kind::Struct(&[
                    field("PartitionIndex", INT32),
                    field("ErrorCode", INT16),
                    field("HighWatermark", INT64),
                    field("LastStableOffset", INT64),
                    field("LogStartOffset", INT64).since(5),
                    one(
                        "DivergingEpoch",
                        &[
                            field("Epoch", INT32).since(12),
                            field("EndOffset", INT64).since(12),
                        ],
                    )
                    .since(12)
                    .tag(0),
                    one(
                        "CurrentLeader",
                        &[
                            field("LeaderId", INT32).since(12),
                            field("LeaderEpoch", INT32).since(12),
                        ],
                    )
                    .since(12)
                    .tag(1),
                    one(
                        "SnapshotId",
                        &[field("EndOffset", INT64), field("Epoch", INT32)],
                    )
                    .since(12)
                    .tag(2),
                    array(
                        "AbortedTransactions",
                        &Kind::Struct(&[field("ProducerId", INT64), field("FirstOffset", INT64)]),
                    )
                    .nullable(),
                    field("PreferredReadReplica", INT32).since(11),
                    field("Records", Kind::Records).nullable(),
                ]),
            ),
        ]),
    ),
];

const LIST_OFFSETS: &[Field] = &[
    field("ThrottleTimeMs", INT32).since(2),
    array(
        "Topics",
        &Kind::Struct(&[
            field("Name", Kind::String),
            array(
                "Partitions",
                &Kind::Struct(&[
                    field("PartitionIndex", INT32),
                    field("ErrorCode", INT16),
                    field("Timestamp", INT64),
                    field("Offset", INT64),
                    field("LeaderEpoch", INT32).since(4),
                ]),
            ),
        ]),
    ),
];

const METADATA: &[Field] = &[
    field("ThrottleTimeMs", INT32).since(3),
    array(
        "Brokers",
        &Kind::Struct(&[
            field("NodeId", INT32),
            field("Host", Kind::String),
            field("Port", INT32),
            field("Rack", Kind::String).nullable(),
        ]),
    ),
    field("ClusterId", Kind::String).since(2).nullable_since(2),
    field("ControllerId", INT32),
    array(
        "Topics",
        &Kind::Struct(&[
            field("ErrorCode", INT16),
            field("Name", Kind::String).nullable_since(12),
            field("TopicId", UUID).since(10),
            field("IsInternal", BOOL),
            array(
                "Partitions",
                &Kind::Struct(&[
                    field("ErrorCode", INT16),
                    field("PartitionIndex", INT32),
                    field("LeaderId", INT32),
                    field("LeaderEpoch", INT32).since(7),
                    array("ReplicaNodes", &INT32),
                    array("IsrNodes", &INT32),
                    array("OfflineReplicas", &INT32).since(5),
                ]),
            ),
            field("TopicAuthorizedOperations", INT32).since(8),
        ]),
    ),
    field("ClusterAuthorizedOperations", INT32)
        .since(8)
        .until(10),
];

const OFFSET_COMMIT: &[Field] = &[
    field("ThrottleTimeMs", INT32).since(3),
    array(
        "Topics",
        &Kind::Struct(&[
            field("Name", Kind::String),
            array(
                "Partitions",
                &Kind::Struct(&[field("PartitionIndex", INT32), field("ErrorCode", INT16)]),
            ),
        ]),
    ),
];

const OFFSET_FETCH: &[Field] = &[
    field("ThrottleTimeMs", INT32).since(3),
    array(
        "Topics",
        &Kind::Struct(&[
            field("Name", Kind::String),
            array(
                "Partitions",
                &Kind::Struct(&[
                    field("PartitionIndex", INT32),
                    field("CommittedOffset", INT64),
                    field("CommittedLeaderEpoch", INT32).since(5),
                    field("Metadata", Kind::String).nullable(),
                    field("ErrorCode", INT16),
                ]),
            ),
        ]),
    ),
    field("ErrorCode", INT16).since(2),
];

const FIND_COORDINATOR: &[Field] = &[
    field("ThrottleTimeMs", INT32).since(1),
    field("ErrorCode", INT16),
    field("ErrorMessage", Kind::String)
        .since(1)
        .nullable_since(1),
    field("NodeId", INT32),
    field("Host", Kind::String),
    field("Port", INT32),
];

const JOIN_GROUP: &[Field] = &[
    field("ThrottleTimeMs", INT32),
    field("ErrorCode", INT16),
    field("GenerationId", INT32),
    field("ProtocolType", Kind::String)
        .since(7)
        .nullable_since(7),
    field("ProtocolName", Kind::String).nullable_since(7),
    field("Leader", Kind::String),
    field("SkipAssignment", BOOL).since(9),
    field("MemberId", Kind::String),
    array(
        "Members",
        &Kind::Struct(&[
            field("MemberId", Kind::String),
            field("GroupInstanceId", Kind::String)
                .since(5)
                .nullable_since(5),
            field("Metadata", Kind::Bytes),
        ]),
    ),
];

const HEARTBEAT: &[Field] = &[
    field("ThrottleTimeMs", INT32).since(1),
    field("ErrorCode", INT16),
];

const LEAVE_GROUP: &[Field] = &[
    field("ThrottleTimeMs", INT32).since(1),
    field("ErrorCode", INT16),
    array(
        "Members",
        &Kind::Struct(&[
            field("MemberId", Kind::String).since(3),
            field("GroupInstanceId", Kind::String)
                .since(3)
                .nullable_since(3),
            field("ErrorCode", INT16).since(3),
        ]),
    )
    .since(3),
];

const SYNC_GROUP: &[Field] = &[
    field("ThrottleTimeMs", INT32).since(1),
    field("ErrorCode", INT16),
    field("ProtocolType", Kind::String)
        .since(5)
        .nullable_since(5),
    field("ProtocolName", Kind::String)
        .since(5)
        .nullable_since(5),
    field("Assignment", Kind::Bytes),
];

const DESCRIBE_GROUPS: &[Field] = &[
    field("ThrottleTimeMs", INT32).since(1),
    array(
        "Groups",
        &Kind::Struct(&[
            field("ErrorCode", INT16),
            field("ErrorMessage", Kind::String)
                .since(6)
                .nullable_since(6),
            field("GroupId", Kind::String),
            field("GroupState", Kind::String),
            field("ProtocolType", Kind::String),
            field("ProtocolData", Kind::String),
            array(
                "Members",
                &Kind::Struct(&[
                    field("MemberId", Kind::String),
                    field("GroupInstanceId", Kind::String)
                        .since(4)
                        .nullable_since(4),
                    field("ClientId", Kind::String),
                    field("ClientHost", Kind::String),
                    field("MemberMetadata", Kind::Bytes),
                    field("MemberAssignment", Kind::Bytes),
                ]),
            ),
            field("AuthorizedOperations", INT32).since(3),
        ]),
    ),
];

const LIST_GROUPS: &[Field] = &[
    field("ThrottleTimeMs", INT32).since(1),
    field("ErrorCode", INT16),
    array(
        "Groups",
        &Kind::Struct(&[
            field("GroupId", Kind::String),
            field("ProtocolType", Kind::String),
            field("GroupState", Kind::String).since(4),
            field("GroupType", Kind::String).since(5),
        ]),
    ),
];

const API_VERSIONS: &[Field] = &[
    field("ErrorCode", INT16),
    array(
        "ApiKeys",
        &Kind::Struct(&[
            field("ApiKey", INT16),
            field("MinVersion", INT16),
            field("MaxVersion", INT16),
        ]),
    ),
    field("ThrottleTimeMs", INT32).since(1),
];

const CREATE_TOPICS: &[Field] = &[
    field("ThrottleTimeMs", INT32),
    array(
        "Topics",
        &Kind::Struct(&[
            field("Name", Kind::String),
            field("TopicId", UUID).since(7),
            field("ErrorCode", INT16),
            field("ErrorMessage", Kind::String).nullable(),
            field("TopicConfigErrorCode", INT16).since(5).tag(0),
            field("NumPartitions", INT32).since(5),
            field("ReplicationFactor", INT16).since(5),
            array(
                "Configs",
                &Kind::Struct(&[
                    field("Name", Kind::String).since(5),
                    field("Value", Kind::String).since(5).nullable_since(5),
                    field("ReadOnly", BOOL).since(5),
                    field("ConfigSource", INT8).since(5),
                    field("IsSensitive", BOOL).since(5),
                ]),
            )
            .since(5)
            .nullable_since(5),
        ]),
    ),
];

const DELETE_TOPICS: &[Field] = &[
    field("ThrottleTimeMs", INT32),
    array(
        "Responses",
        &Kind::Struct(&[
            field("Name", Kind::String),
            field("ErrorCode", INT16),
            field("ErrorMessage", Kind::String)
                .since(5)
                .nullable_since(5),
        ]),
    ),
];

const INIT_PRODUCER_ID: &[Field] = &[
    field("ThrottleTimeMs", INT32),
    field("ErrorCode", INT16),
    field("ProducerId", INT64),
    field("ProducerEpoch", INT16),
];

const DESCRIBE_CONFIGS: &[Field] = &[
    field("ThrottleTimeMs", INT32),
    array(
        "Results",
        &Kind::Struct(&[
            field("ErrorCode", INT16),
            field("ErrorMessage", Kind::String).nullable(),
            field("ResourceType", INT8),
            field("ResourceName", Kind::String),
            array(
                "Configs",
                &Kind::Struct(&[
                    field("Name", Kind::String),
                    field("Value", Kind::String).nullable(),
                    field("ReadOnly", BOOL),
                    field("ConfigSource", INT8),
                    field("IsSensitive", BOOL),
                    array(
                        "Synonyms",
                        &Kind::Struct(&[
                            field("Name", Kind::String),
                            field("Value", Kind::String).nullable(),
                            field("Source", INT8),
                        ]),
                    ),
                    field("ConfigType", INT8).since(3),
                    field("Documentation", Kind::String).since(3).nullable(),
                ]),
            ),
        ]),
    ),
];

const CREATE_PARTITIONS: &[Field] = &[
    field("ThrottleTimeMs", INT32),
    array(
        "Results",
        &Kind::Struct(&[
            field("Name", Kind::String),
            field("ErrorCode", INT16),
            field("ErrorMessage", Kind::String).nullable(),
        ]),
    ),
];

const DELETE_GROUPS: &[Field] = &[
    field("ThrottleTimeMs", INT32),
    array(
        "Results",
        &Kind::Struct(&[field("GroupId", Kind::String), field("ErrorCode", INT16)]),
    ),
];

const INCREMENTAL_ALTER_CONFIGS: &[Field] = &[
    field("ThrottleTimeMs", INT32),
    array(
        "Responses",
        &Kind::Struct(&[
            field("ErrorCode", INT16),
            field("ErrorMessage", Kind::String).nullable(),
            field("ResourceType", INT8),
            field("ResourceName", Kind::String),
        ]),
    ),
];

const OFFSET_DELETE: &[Field] = &[
    field("ErrorCode", INT16),
    field("ThrottleTimeMs", INT32),
    array(
        "Topics",
        &Kind::Struct(&[
            field("Name", Kind::String),
            array(
                "Partitions",
                &Kind::Struct(&[field("PartitionIndex", INT32), field("ErrorCode", INT16)]),
            ),
        ]),
    ),
];

const CONSUMER_GROUP_DESCRIBE: &[Field] = &[
    field("ThrottleTimeMs", INT32),
    array(
        "Groups",
        &Kind::Struct(&[
            field("ErrorCode", INT16),
            field("ErrorMessage", Kind::String).nullable(),
            field("GroupId", Kind::String),
            field("GroupState", Kind::String),
            field("GroupEpoch", INT32),
            field("AssignmentEpoch", INT32),
            field("AssignorName", Kind::String),
            array(
                "Members",
                &Kind::Struct(&[
                    field("MemberId", Kind::String),
                    field("InstanceId", Kind::String).nullable(),
                    field("RackId", Kind::String).nullable(),
                    field("MemberEpoch", INT32),
                    field("ClientId", Kind::String),
                    field("ClientHost", Kind::String),
                    array("SubscribedTopicNames", &Kind::String),
                    field("SubscribedTopicRegex", Kind::String).nullable(),
                    one(
                        "Assignment",
                        &[array(
                            "TopicPartitions",
                            &Kind::Struct(&[
                                field("TopicId", UUID),
                                field("TopicName", Kind::String),
                                array("Partitions", &INT32),
                            ]),
                        )],
                    ),
                    one(
                        "TargetAssignment",
                        &[array(
                            "TopicPartitions",
                            &Kind::Struct(&[
                                field("TopicId", UUID),
                                field("TopicName", Kind::String),
                                array("Partitions", &INT32),
                            ]),
                        )],
                    ),
                    field("MemberType", INT8).since(1),
                ]),
            ),
            field("AuthorizedOperations", INT32),
        ]),
    ),
];

/// In the order of the keys.
pub const SPOKEN: &[SpokenApi] = &[
    api(ApiKey::Produce, (3, 12), 9, PRODUCE),
    api(ApiKey::Fetch, (4, 12), 12, FETCH),
    api(ApiKey::ListOffsets, (1, 10), 6, LIST_OFFSETS),
    api(ApiKey::Metadata, (1, 12), 9, METADATA),
    api(ApiKey::OffsetCommit, (2, 9), 8, OFFSET_COMMIT),
    api(ApiKey::OffsetFetch, (1, 7), 6, OFFSET_FETCH),
    api(ApiKey::FindCoordinator, (0, 3), 3, FIND_COORDINATOR),
    api(ApiKey::JoinGroup, (2, 9), 6, JOIN_GROUP),
    api(ApiKey::Heartbeat, (0, 4), 4, HEARTBEAT),
    api(ApiKey::LeaveGroup, (0, 5), 4, LEAVE_GROUP),
    api(ApiKey::SyncGroup, (0, 5), 4, SYNC_GROUP),
    api(ApiKey::DescribeGroups, (0, 6), 5, DESCRIBE_GROUPS),
    api(ApiKey::ListGroups, (0, 5), 3, LIST_GROUPS),
    api(ApiKey::ApiVersions, (0, 2), 3, API_VERSIONS),
    api(ApiKey::CreateTopics, (2, 7), 5, CREATE_TOPICS),
    api(ApiKey::DeleteTopics, (1, 5), 4, DELETE_TOPICS),
    api(ApiKey::InitProducerId, (0, 5), 2, INIT_PRODUCER_ID),
    api(ApiKey::DescribeConfigs, (1, 4), 4, DESCRIBE_CONFIGS),
    api(ApiKey::CreatePartitions, (0, 3), 2, CREATE_PARTITIONS),
    api(ApiKey::DeleteGroups, (0, 2), 2, DELETE_GROUPS),
    api(
        ApiKey::IncrementalAlterConfigs,
        (0, 1),
        1,
        INCREMENTAL_ALTER_CONFIGS,
    ),
    api(ApiKey::OffsetDelete, (0, 0), i16::MAX, OFFSET_DELETE),
    api(
        ApiKey::ConsumerGroupDescribe,
        (0, 1),
        0,
        CONSUMER_GROUP_DESCRIBE,
    ),
];

/// The row of an API. Panics if the client does not speak it: what it sends stands in the table.
pub fn spoken(key: ApiKey) -> &'static SpokenApi {
    SPOKEN
        .iter()
        .find(|api| api.key == key)
        .unwrap_or_else(|| panic!("the client sends {key:?} and has no row for it"))
}
