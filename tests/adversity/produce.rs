//! Topics, batches and reading back, for tests that need some around what they are about.

use bytes::Bytes;
use corelog::model::TimestampMs;
use corelog::record::encode::BatchBuilder;
use corelog::record::header::RecordBatchHeader;
use kafka_protocol::messages::create_topics_request::{CreatableTopic, CreatableTopicConfig};
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::fetch_response::PartitionData;
use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::produce_response::PartitionProduceResponse;
use kafka_protocol::messages::{
    BrokerId, CreateTopicsRequest, FetchRequest, ListOffsetsRequest, MetadataRequest,
    ProduceRequest, TopicName,
};
use kafka_protocol::protocol::StrBytes;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::wire::Client;

/// The versions that the helpers here use: the last ones that name topics by their names.
const PRODUCE_VERSION: i16 = 9;
const FETCH_VERSION: i16 = 12;

pub fn topic_name(name: &str) -> TopicName {
    TopicName(StrBytes::from_string(name.to_owned()))
}

/// Creates a topic; panics where it is refused.
pub fn create_topic(client: &mut Client, name: &str, partitions: i32, settings: &[(&str, &str)]) {
    let code = try_create_topic(client, name, partitions, settings);
    assert_eq!(code, 0, "creating {name}");
}

/// The error code.
pub fn try_create_topic(
    client: &mut Client,
    name: &str,
    partitions: i32,
    settings: &[(&str, &str)],
) -> i16 {
    let settings = settings.iter().map(|(name, value)| {
        CreatableTopicConfig::default()
            .with_name(StrBytes::from_string((*name).to_owned()))
            .with_value(Some(StrBytes::from_string((*value).to_owned())))
    });
    let topic = CreatableTopic::default()
        .with_name(topic_name(name))
        .with_num_partitions(partitions)
        .with_replication_factor(1)
        .with_configs(settings.collect());
    let request = CreateTopicsRequest::default()
        .with_topics(vec![topic])
        .with_timeout_ms(30_000);
    client.ask(5, &request).topics[0].error_code
}

pub fn now() -> TimestampMs {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    TimestampMs(since.as_millis() as i64)
}

/// An uncompressed batch with a record of each value.
pub fn batch_of(values: &[&[u8]]) -> Bytes {
    let mut batch = BatchBuilder::new();
    for value in values {
        batch.push(now(), Some(b"key"), Some(value), &[]);
    }
    batch.build().into()
}

/// The base offset, or the whole refusal.
pub fn produce(
    client: &mut Client,
    topic: &str,
    records: Bytes,
) -> Result<i64, Box<PartitionProduceResponse>> {
    let answer = produce_with_version(client, PRODUCE_VERSION, topic, Some(records));
    match answer.error_code {
        0 => Ok(answer.base_offset),
        _ => Err(Box::new(answer)),
    }
}

pub fn produce_with_version(
    client: &mut Client,
    version: i16,
    topic: &str,
    records: Option<Bytes>,
) -> PartitionProduceResponse {
    let topic = topic_data(topic, records);
    let request = ProduceRequest::default()
        .with_acks(-1)
        .with_timeout_ms(30_000)
        .with_topic_data(vec![topic]);
    let mut answer = client.ask(version, &request);
    assert_eq!(answer.responses.len(), 1);
    answer.responses.remove(0).partition_responses.remove(0)
}

/// What a produce request holds for partition 0 of a topic.
pub fn topic_data(topic: &str, records: Option<Bytes>) -> TopicProduceData {
    let data = PartitionProduceData::default()
        .with_index(0)
        .with_records(records);
    TopicProduceData::default()
        .with_name(topic_name(topic))
        .with_partition_data(vec![data])
}

/// A fetch of partition 0, by name or by id as the version has it.
pub fn fetch_request(client: &mut Client, version: i16, topic: &str, offset: i64) -> FetchRequest {
    let partition = FetchPartition::default()
        .with_fetch_offset(offset)
        .with_partition_max_bytes(1024 * 1024);
    let mut fetched = FetchTopic::default().with_partitions(vec![partition]);
    if version >= 13 {
        let asked = MetadataRequestTopic::default().with_name(Some(topic_name(topic)));
        let metadata = client.ask(
            12,
            &MetadataRequest::default().with_topics(Some(vec![asked])),
        );
        fetched.topic_id = metadata.topics[0].topic_id;
    } else {
        fetched.topic = topic_name(topic);
    }
    FetchRequest::default()
        .with_replica_id(BrokerId(-1))
        .with_max_bytes(50 * 1024 * 1024)
        .with_min_bytes(1)
        .with_max_wait_ms(0)
        .with_topics(vec![fetched])
}

/// What a fetch of partition 0 gives at once, or its error code.
pub fn fetch(client: &mut Client, topic: &str, offset: i64) -> Result<PartitionData, i16> {
    let request = fetch_request(client, FETCH_VERSION, topic, offset);
    let mut answer = client.ask(FETCH_VERSION, &request);
    if answer.error_code != 0 {
        return Err(answer.error_code);
    }
    let data = answer.responses.remove(0).partitions.remove(0);
    match data.error_code {
        0 => Ok(data),
        code => Err(code),
    }
}

/// The offset that the next record would get.
pub fn log_end(client: &mut Client, topic: &str) -> i64 {
    const LATEST: i64 = -1;
    list_offset(client, topic, LATEST)
}

pub fn list_offsets_request(topic: &str, partition: i32, timestamp: i64) -> ListOffsetsRequest {
    let partition = ListOffsetsPartition::default()
        .with_partition_index(partition)
        .with_timestamp(timestamp);
    let topic = ListOffsetsTopic::default()
        .with_name(topic_name(topic))
        .with_partitions(vec![partition]);
    ListOffsetsRequest::default()
        .with_replica_id(BrokerId(-1))
        .with_topics(vec![topic])
}

/// The offset of a time, or of one of the special times.
pub fn list_offset(client: &mut Client, topic: &str, timestamp: i64) -> i64 {
    let request = list_offsets_request(topic, 0, timestamp);
    let answer = client.ask(7, &request);
    let partition = &answer.topics[0].partitions[0];
    assert_eq!(partition.error_code, 0);
    partition.offset
}

/// Demands that the batch at `offset` holds this value.
pub fn expect_value(client: &mut Client, topic: &str, offset: i64, value: &[u8]) {
    let data =
        fetch(client, topic, offset).unwrap_or_else(|code| panic!("offset {offset}: error {code}"));
    let records = data.records.unwrap();
    let header = RecordBatchHeader::parse(&records).unwrap();
    assert_eq!(header.base_offset.0, offset);
    assert!(
        records[..header.size_bytes()]
            .windows(value.len())
            .any(|window| window == value),
        "offset {offset} holds other bytes"
    );
}
