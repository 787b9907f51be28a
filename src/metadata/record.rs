use rkyv::rancor;
use rkyv::util::AlignedVec;

/// One fact that changes the metadata. The metadata log is made of batches of these; a snapshot is one batch that builds the
/// whole image. They hold plain numbers and strings, so that the words of the product can change without the files.
///
/// The archived layout is the file format: changing a record, or adding one, needs a new `RECORD_LAYOUT_VERSION`, and the old
/// layout must stay readable. A test pins the bytes.
#[derive(Clone, Debug, PartialEq, Eq, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub enum MetadataRecord {
    /// The first record of a cluster's life.
    ClusterFormed {
        cluster_id: u128,
    },
    TopicCreated {
        topic_id: u128,
        name: String,
        partitions: Vec<PartitionRecord>,
        settings: Vec<(String, String)>,
    },
    TopicDeleted {
        topic_id: u128,
    },
    /// More partitions of a topic, at its end.
    PartitionsAdded {
        topic_id: u128,
        partitions: Vec<PartitionRecord>,
    },
    /// All that is set for the topic from now on.
    TopicSettingsReplaced {
        topic_id: u128,
        settings: Vec<(String, String)>,
    },
    /// All that is set online for one broker, or (`None`) for all of them, from now on.
    BrokerSettingsReplaced {
        node_id: Option<i32>,
        settings: Vec<(String, String)>,
    },
    /// Every producer id below this one may have been handed out.
    ProducerIdsAllocated {
        next_producer_id: i64,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub struct PartitionRecord {
    pub replicas: Vec<i32>,
    pub isr: Vec<i32>,
    pub leader: Option<i32>,
    pub leader_epoch: i32,
    pub partition_epoch: i32,
}

/// The version of the archived layout of `MetadataRecord`, kept beside it in every frame.
pub const RECORD_LAYOUT_VERSION: u8 = 1;

#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    #[error(
        "the records have layout version {0}; this broker reads version {RECORD_LAYOUT_VERSION}"
    )]
    Version(u8),
    #[error("the records are not readable: {0}")]
    Archive(rancor::Error),
}

/// The archived form of a batch of records.
pub fn encode_records(records: &[MetadataRecord]) -> Result<AlignedVec, RecordError> {
    rkyv::to_bytes::<rancor::Error>(&records.to_vec()).map_err(RecordError::Archive)
}

/// The records of a batch. The bytes may stand at any address and hold anything: they are checked before they are read.
pub fn decode_records(
    layout_version: u8,
    bytes: &[u8],
) -> Result<Vec<MetadataRecord>, RecordError> {
    if layout_version != RECORD_LAYOUT_VERSION {
        return Err(RecordError::Version(layout_version));
    }
    let mut aligned: AlignedVec = AlignedVec::with_capacity(bytes.len());
    aligned.extend_from_slice(bytes);
    rkyv::from_bytes::<Vec<MetadataRecord>, rancor::Error>(&aligned).map_err(RecordError::Archive)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One of each, with every field set.
    fn one_of_each() -> Vec<MetadataRecord> {
        let partition = PartitionRecord {
            replicas: vec![1, 2],
            isr: vec![2],
            leader: Some(2),
            leader_epoch: 3,
            partition_epoch: 4,
        };
        let leaderless = PartitionRecord {
            leader: None,
            ..partition.clone()
        };
        let settings = vec![("retention.ms".to_owned(), "5".to_owned())];
        vec![
            MetadataRecord::ClusterFormed {
                cluster_id: 0x0102_0304_0506_0708_090a_0b0c_0d0e_0f10,
            },
            MetadataRecord::TopicCreated {
                topic_id: 7,
                name: "topic".into(),
                partitions: vec![partition.clone(), leaderless],
                settings: settings.clone(),
            },
            MetadataRecord::TopicDeleted { topic_id: 8 },
            MetadataRecord::PartitionsAdded {
                topic_id: 9,
                partitions: vec![partition],
            },
            MetadataRecord::TopicSettingsReplaced {
                topic_id: 10,
                settings: settings.clone(),
            },
            MetadataRecord::BrokerSettingsReplaced {
                node_id: Some(1),
                settings,
            },
            MetadataRecord::BrokerSettingsReplaced {
                node_id: None,
                settings: Vec::new(),
            },
            MetadataRecord::ProducerIdsAllocated {
                next_producer_id: 1000,
            },
        ]
    }

    #[test]
    fn records_read_back_from_any_address() {
        let records = one_of_each();
        let bytes = encode_records(&records).unwrap();
        for shift in 0..16 {
            let mut shifted = vec![0; shift];
            shifted.extend_from_slice(&bytes);
            assert_eq!(
                decode_records(RECORD_LAYOUT_VERSION, &shifted[shift..]).unwrap(),
                records
            );
        }
    }

    /// Data directories in use hold these bytes. If this fails, the layout has changed: give it a new version, and keep reading
    /// the old one.
    #[test]
    fn the_archived_layout_is_pinned() {
        let bytes = encode_records(&one_of_each()).unwrap();
        assert_eq!((bytes.len(), crc32fast::hash(&bytes)), (744, 1_595_630_146));
    }

    #[test]
    fn a_layout_of_another_version_is_refused() {
        let bytes = encode_records(&one_of_each()).unwrap();
        assert!(matches!(
            decode_records(9, &bytes),
            Err(RecordError::Version(9))
        ));
    }

    proptest::proptest! {
        #[test]
        fn damaged_bytes_never_panic(position: usize, cut: usize, value: u8, noise: Vec<u8>) {
            let mut bytes = encode_records(&one_of_each()).unwrap().to_vec();
            let (position, cut) = (position % bytes.len(), cut % bytes.len());
            bytes[position] = value;
            let _either = decode_records(RECORD_LAYOUT_VERSION, &bytes[..cut]);
            let _either = decode_records(RECORD_LAYOUT_VERSION, &bytes);
            let _either = decode_records(RECORD_LAYOUT_VERSION, &noise);
        }
    }
}
