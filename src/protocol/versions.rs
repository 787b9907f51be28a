//! The table of served APIs. What is not here is not advertised and not answered.

use kafka_protocol::messages::ApiKey;

/// One API and its versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServedApi {
    pub key: ApiKey,
    /// The lowest version that ApiVersions names.
    pub advertised_min: i16,
    /// The lowest version that is answered. Differs from what is advertised for Produce alone.
    pub min: i16,
    pub max: i16,
}

const fn api(key: ApiKey, min: i16, max: i16) -> ServedApi {
    ServedApi {
        key,
        advertised_min: min,
        min,
        max,
    }
}

/// The ranges of Kafka 4.x, as far as the codec reaches; in the order of the keys.
pub const SERVED: &[ServedApi] = &[
    // Advertised from 0: librdkafka up to 2.11.0 looks for version 0 to 2 before it compresses, but sends 3 and up (KAFKA-18659).
    ServedApi {
        key: ApiKey::Produce,
        advertised_min: 0,
        min: 3,
        max: 13,
    },
    api(ApiKey::Fetch, 4, 18),
    api(ApiKey::ListOffsets, 1, 10),
    api(ApiKey::Metadata, 0, 13),
    api(ApiKey::ApiVersions, 0, 4),
    api(ApiKey::CreateTopics, 2, 7),
    api(ApiKey::DeleteTopics, 1, 6),
    api(ApiKey::DeleteRecords, 0, 2),
    api(ApiKey::InitProducerId, 0, 5),
    api(ApiKey::OffsetForLeaderEpoch, 2, 4),
    api(ApiKey::DescribeConfigs, 1, 4),
    api(ApiKey::AlterConfigs, 0, 2),
    api(ApiKey::DescribeLogDirs, 1, 4),
    api(ApiKey::CreatePartitions, 0, 3),
    api(ApiKey::IncrementalAlterConfigs, 0, 1),
    api(ApiKey::DescribeCluster, 0, 2),
    api(ApiKey::DescribeProducers, 0, 0),
    api(ApiKey::ListConfigResources, 0, 1),
    api(ApiKey::DescribeTopicPartitions, 0, 0),
];

impl ServedApi {
    pub fn serves(&self, version: i16) -> bool {
        (self.min..=self.max).contains(&version)
    }
}

/// The row of an API key as it stands on the wire.
pub fn served(key: i16) -> Option<&'static ServedApi> {
    SERVED.iter().find(|api| api.key as i16 == key)
}
