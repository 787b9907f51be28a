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
    api(ApiKey::OffsetCommit, 2, 9),
    api(ApiKey::OffsetFetch, 1, 9),
    api(ApiKey::FindCoordinator, 0, 6),
    api(ApiKey::JoinGroup, 0, 9),
    api(ApiKey::Heartbeat, 0, 4),
    api(ApiKey::LeaveGroup, 0, 5),
    api(ApiKey::SyncGroup, 0, 5),
    api(ApiKey::DescribeGroups, 0, 6),
    api(ApiKey::ListGroups, 0, 5),
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
    api(ApiKey::DeleteGroups, 0, 2),
    api(ApiKey::IncrementalAlterConfigs, 0, 1),
    api(ApiKey::OffsetDelete, 0, 0),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn serves(key: ApiKey, version: i16) -> bool {
        served(key as i16).is_some_and(|api| api.serves(version))
    }

    #[test]
    fn the_codec_reaches_every_served_version() {
        for api in SERVED {
            let reach = api.key.valid_versions();
            assert!(
                reach.min <= api.min && api.max <= reach.max,
                "{api:?}, the codec has {reach}"
            );
            assert!(
                api.advertised_min <= api.min && api.min <= api.max,
                "{api:?}"
            );
        }
    }

    #[test]
    fn keys_ascend_so_each_is_there_once() {
        assert!(SERVED.is_sorted_by(|a, b| (a.key as i16) < b.key as i16));
    }

    #[test]
    fn produce_is_advertised_from_0_and_served_from_3() {
        let produce = served(0).expect("Produce is served");
        assert_eq!((produce.advertised_min, produce.min), (0, 3));
        assert!(!produce.serves(2));
    }

    #[test]
    fn the_single_versions_that_old_librdkafka_looks_for_are_served() {
        use ApiKey::*;
        for (key, version) in [
            (Produce, 3),
            (Produce, 7),
            (Fetch, 4),
            (Fetch, 10),
            (ListOffsets, 1),
            (InitProducerId, 0),
            // Without it lz4 is off, in silence.
            (FindCoordinator, 0),
        ] {
            assert!(serves(key, version), "{key:?} {version}");
        }
    }

    #[test]
    fn kafkajs_ignores_minimums_and_finds_its_maximums_served() {
        use ApiKey::*;
        let of_kafkajs = [
            (Produce, 7),
            (Fetch, 11),
            (Metadata, 6),
            (ListOffsets, 3),
            (OffsetCommit, 5),
            (OffsetFetch, 4),
            (FindCoordinator, 2),
            (JoinGroup, 5),
            (SyncGroup, 3),
            (Heartbeat, 3),
            (LeaveGroup, 3),
            (DescribeGroups, 2),
            (ListGroups, 2),
            (DeleteGroups, 1),
            (CreateTopics, 3),
            (DeleteTopics, 1),
        ];
        for (key, version) in of_kafkajs {
            assert!(serves(key, version), "{key:?} {version}");
            assert_eq!(
                key.request_header_version(version),
                1,
                "KafkaJS sends no flexible versions: {key:?}"
            );
        }
    }

    #[test]
    fn the_fixed_versions_of_kafka_python_2_0_2_are_served() {
        use ApiKey::*;
        for (key, version) in [
            (Fetch, 4),
            (ListOffsets, 1),
            (FindCoordinator, 0),
            (JoinGroup, 2),
            (SyncGroup, 1),
            (Heartbeat, 1),
            (LeaveGroup, 1),
            (OffsetCommit, 2),
            (OffsetFetch, 1),
        ] {
            assert!(serves(key, version), "{key:?} {version}");
        }
        assert_eq!(
            served(ApiKey::ListOffsets as i16).map(|api| api.max),
            Some(10),
            "read as broker version 4.0"
        );
    }

    #[test]
    fn topic_ids_in_fetch_come_with_topic_ids_in_metadata() {
        assert!(serves(ApiKey::Fetch, 13) && serves(ApiKey::Metadata, 10));
    }

    #[test]
    fn groups_of_the_consumer_protocol_are_left_out_so_that_clients_take_the_classic_one() {
        use ApiKey::*;
        for key in [ConsumerGroupHeartbeat, ConsumerGroupDescribe] {
            assert_eq!(served(key as i16), None, "{key:?}");
        }
    }

    #[test]
    fn telemetry_is_left_out_without_a_receiver() {
        assert_eq!(served(ApiKey::GetTelemetrySubscriptions as i16), None);
        assert_eq!(served(ApiKey::PushTelemetry as i16), None);
    }

    #[test]
    fn what_only_brokers_ask_each_other_is_not_served() {
        use ApiKey::*;
        for key in [
            WriteTxnMarkers,
            AlterPartition,
            Vote,
            BeginQuorumEpoch,
            FetchSnapshot,
            BrokerHeartbeat,
            Envelope,
        ] {
            assert_eq!(served(key as i16), None, "{key:?}");
        }
    }
}
