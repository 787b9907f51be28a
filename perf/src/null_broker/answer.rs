//! What each request is answered.

use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::messages::api_versions_response::ApiVersion;
use kafka_protocol::messages::create_topics_response::CreatableTopicResult;
use kafka_protocol::messages::delete_topics_response::DeletableTopicResult;
use kafka_protocol::messages::describe_configs_response::DescribeConfigsResult;
use kafka_protocol::messages::fetch_response::{FetchableTopicResponse, PartitionData};
use kafka_protocol::messages::list_offsets_response::{
    ListOffsetsPartitionResponse, ListOffsetsTopicResponse,
};
use kafka_protocol::messages::metadata_response::{
    MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use kafka_protocol::messages::produce_response::{PartitionProduceResponse, TopicProduceResponse};
use kafka_protocol::messages::{
    ApiKey, ApiVersionsResponse, BrokerId, CreateTopicsRequest, CreateTopicsResponse,
    DeleteTopicsRequest, DeleteTopicsResponse, DescribeConfigsRequest, DescribeConfigsResponse,
    FetchRequest, FetchResponse, InitProducerIdResponse, ListOffsetsRequest, ListOffsetsResponse,
    MetadataRequest, MetadataResponse, ProduceRequest, ProduceResponse, RequestHeader,
    ResponseHeader, TopicName,
};
use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion, StrBytes};

use super::Totals;
use super::topics::Topics;
use crate::client::wire::{Cursor, Truncated};

const UNSUPPORTED_VERSION: i16 = 35;
const UNKNOWN_TOPIC_OR_PARTITION: i16 = 3;
const TOPIC_ALREADY_EXISTS: i16 = 36;

/// The node id of the one broker.
const NODE: BrokerId = BrokerId(0);

/// A record batch's count of records lies here (Kafka's record format v2).
const RECORD_COUNT_AT: usize = 57;

/// An empty fetch waits as long as the client says, but not longer.
const FETCH_WAIT_MAX: Duration = Duration::from_millis(500);

/// What is served, with its versions.
const SERVED: [(ApiKey, i16, i16); 9] = [
    (ApiKey::Produce, 3, 12),
    (ApiKey::Fetch, 4, 12),
    (ApiKey::ListOffsets, 1, 8),
    (ApiKey::Metadata, 0, 12),
    (ApiKey::ApiVersions, 0, 4),
    (ApiKey::CreateTopics, 2, 7),
    (ApiKey::DeleteTopics, 1, 5),
    (ApiKey::InitProducerId, 0, 4),
    (ApiKey::DescribeConfigs, 1, 4),
];

#[derive(Debug, thiserror::Error)]
pub enum AnswerError {
    #[error("a request's header is cut short")]
    Header(#[from] Truncated),
    #[error("API key {key} in version {version} is not served")]
    NotServed { key: i16, version: i16 },
    #[error("a request with API key {key} in version {version} does not decode: {reason}")]
    Decode {
        key: i16,
        version: i16,
        reason: String,
    },
    #[error("an answer does not encode: {0}")]
    Encode(String),
}

/// Takes one request, appends its answer to `out`; none to a Produce request with acks=0.
pub fn answer(
    mut frame: Bytes,
    topics: &Topics,
    totals: &Totals,
    out: &mut BytesMut,
) -> Result<(), AnswerError> {
    let mut start = Cursor::new(&frame);
    let (key, version, correlation_id) = (start.i16()?, start.i16()?, start.i32()?);
    let not_served = AnswerError::NotServed { key, version };
    let Some((api, min, max)) = SERVED.into_iter().find(|(api, ..)| *api as i16 == key) else {
        return Err(not_served);
    };
    let reply = Reply {
        version,
        correlation_id,
        out,
    };
    if !(min..=max).contains(&version) {
        // KIP-511: in the oldest version, so that every client can read which ones are served.
        return match api {
            ApiKey::ApiVersions => Reply {
                version: 0,
                ..reply
            }
            .put(&served(UNSUPPORTED_VERSION)),
            _ => Err(not_served),
        };
    }
    let request = Request { key, version };
    request.decode_header(&mut frame, api)?;
    match api {
        ApiKey::Produce => match produce(request.decode(frame)?, topics, totals) {
            Some(response) => reply.put(&response),
            None => Ok(()),
        },
        ApiKey::Fetch => reply.put(&fetch(request.decode(frame)?, topics)),
        ApiKey::ListOffsets => reply.put(&list_offsets(request.decode(frame)?, topics)),
        ApiKey::Metadata => reply.put(&metadata(request.decode(frame)?, topics)),
        ApiKey::ApiVersions => reply.put(&served(0)),
        ApiKey::CreateTopics => reply.put(&create_topics(request.decode(frame)?, topics)),
        ApiKey::DeleteTopics => reply.put(&delete_topics(request.decode(frame)?, topics)),
        ApiKey::InitProducerId => {
            let response = InitProducerIdResponse::default()
                .with_producer_id(topics.new_producer_id().into())
                .with_producer_epoch(0);
            reply.put(&response)
        }
        ApiKey::DescribeConfigs => reply.put(&describe_configs(request.decode(frame)?)),
        _ => unreachable!("{api:?} is not in the table of what is served"),
    }
}

struct Request {
    key: i16,
    version: i16,
}

impl Request {
    fn decode_header(&self, frame: &mut Bytes, api: ApiKey) -> Result<(), AnswerError> {
        let header_version = api.request_header_version(self.version);
        RequestHeader::decode(frame, header_version)
            .map(drop)
            .map_err(|error| self.refused(&error))
    }

    fn decode<R: Decodable>(&self, mut body: Bytes) -> Result<R, AnswerError> {
        R::decode(&mut body, self.version).map_err(|error| self.refused(&error))
    }

    fn refused(&self, reason: &dyn std::fmt::Display) -> AnswerError {
        AnswerError::Decode {
            key: self.key,
            version: self.version,
            reason: reason.to_string(),
        }
    }
}

struct Reply<'a> {
    version: i16,
    correlation_id: i32,
    out: &'a mut BytesMut,
}

impl Reply<'_> {
    fn put<R: Encodable + HeaderVersion>(self, response: &R) -> Result<(), AnswerError> {
        let size_at = self.out.len();
        self.out.put_u32(0);
        let failed = |error: &dyn std::fmt::Display| AnswerError::Encode(error.to_string());
        ResponseHeader::default()
            .with_correlation_id(self.correlation_id)
            .encode(self.out, R::header_version(self.version))
            .map_err(|error| failed(&error))?;
        response
            .encode(self.out, self.version)
            .map_err(|error| failed(&error))?;
        let body_at = size_at + size_of::<u32>();
        let size_bytes = (self.out.len() - body_at) as u32;
        self.out[size_at..body_at].copy_from_slice(&size_bytes.to_be_bytes());
        Ok(())
    }
}

fn served(error_code: i16) -> ApiVersionsResponse {
    let ranges = SERVED.map(|(api, min, max)| {
        ApiVersion::default()
            .with_api_key(api as i16)
            .with_min_version(min)
            .with_max_version(max)
    });
    ApiVersionsResponse::default()
        .with_error_code(error_code)
        .with_api_keys(ranges.to_vec())
}

fn produce(request: ProduceRequest, topics: &Topics, totals: &Totals) -> Option<ProduceResponse> {
    let is_answered = request.acks != 0;
    let answers = request.topic_data.into_iter().map(|data| {
        let topic = topics.get(&data.name);
        let answers = data.partition_data.into_iter().map(|part| {
            let record_count = part.records.as_deref().map_or(0, record_count);
            totals.records.fetch_add(record_count as u64, Relaxed);
            let answer = PartitionProduceResponse::default().with_index(part.index);
            match topic.append(part.index, record_count) {
                Some(base_offset) => answer
                    .with_base_offset(base_offset)
                    .with_log_start_offset(0),
                None => answer
                    .with_base_offset(-1)
                    .with_error_code(UNKNOWN_TOPIC_OR_PARTITION),
            }
        });
        TopicProduceResponse::default()
            .with_partition_responses(answers.collect())
            .with_name(data.name)
    });
    let response = ProduceResponse::default().with_responses(answers.collect());
    is_answered.then_some(response)
}

/// What the header of the first batch says; clients send one batch for a partition.
fn record_count(records: &[u8]) -> i64 {
    let count = records
        .get(RECORD_COUNT_AT..)
        .and_then(|rest| rest.first_chunk());
    count.map_or(0, |count| i64::from(i32::from_be_bytes(*count)).max(0))
}

/// Nothing, after the time that the client is ready to wait.
fn fetch(request: FetchRequest, topics: &Topics) -> FetchResponse {
    let wait = Duration::from_millis(request.max_wait_ms.max(0) as u64);
    thread::sleep(wait.min(FETCH_WAIT_MAX));
    let answers = request.topics.into_iter().map(|asked| {
        let topic = topics.get(&asked.topic);
        let parts = asked.partitions.iter().map(|part| {
            let answer = PartitionData::default()
                .with_partition_index(part.partition)
                .with_records(Some(Bytes::new()));
            match topic.end(part.partition) {
                Some(end) => answer.with_high_watermark(end).with_last_stable_offset(end),
                None => answer.with_error_code(UNKNOWN_TOPIC_OR_PARTITION),
            }
        });
        FetchableTopicResponse::default()
            .with_partitions(parts.collect())
            .with_topic(asked.topic)
    });
    FetchResponse::default().with_responses(answers.collect())
}

fn list_offsets(request: ListOffsetsRequest, topics: &Topics) -> ListOffsetsResponse {
    /// The timestamps that stand for the end and for the start of a log.
    const LATEST: i64 = -1;
    const EARLIEST: i64 = -2;
    let answers = request.topics.into_iter().map(|asked| {
        let topic = topics.get(&asked.name);
        let parts = asked.partitions.iter().map(|part| {
            let answer = ListOffsetsPartitionResponse::default()
                .with_partition_index(part.partition_index)
                .with_leader_epoch(0);
            match (topic.end(part.partition_index), part.timestamp) {
                (None, _) => answer.with_error_code(UNKNOWN_TOPIC_OR_PARTITION),
                (Some(end), LATEST) => answer.with_offset(end),
                (Some(_), EARLIEST) => answer.with_offset(0),
                (Some(_), _) => answer.with_offset(-1),
            }
        });
        ListOffsetsTopicResponse::default()
            .with_partitions(parts.collect())
            .with_name(asked.name)
    });
    ListOffsetsResponse::default().with_topics(answers.collect())
}

fn metadata(request: MetadataRequest, topics: &Topics) -> MetadataResponse {
    let names: Vec<String> = match request.topics {
        Some(asked) => asked
            .into_iter()
            .filter_map(|topic| topic.name)
            .map(|name| name.to_string())
            .collect(),
        None => topics.names(),
    };
    let broker = MetadataResponseBroker::default()
        .with_node_id(NODE)
        .with_host(StrBytes::from_string(topics.address().ip().to_string()))
        .with_port(topics.address().port().into());
    let answers = names.into_iter().map(|name| {
        let topic = topics.get(&name);
        let parts = (0..topic.partition_count()).map(|index| {
            MetadataResponsePartition::default()
                .with_partition_index(index)
                .with_leader_id(NODE)
                .with_leader_epoch(0)
                .with_replica_nodes(vec![NODE])
                .with_isr_nodes(vec![NODE])
        });
        MetadataResponseTopic::default()
            .with_topic_id(topic.id)
            .with_partitions(parts.collect())
            .with_name(Some(TopicName(StrBytes::from_string(name))))
    });
    MetadataResponse::default()
        .with_brokers(vec![broker])
        .with_controller_id(NODE)
        .with_cluster_id(Some(StrBytes::from_static_str("null-broker")))
        .with_topics(answers.collect())
}

fn create_topics(request: CreateTopicsRequest, topics: &Topics) -> CreateTopicsResponse {
    let answers = request.topics.into_iter().map(|asked| {
        let partitions = u32::try_from(asked.num_partitions).ok();
        let created = topics.create(&asked.name, partitions);
        let answer = CreatableTopicResult::default().with_name(asked.name);
        match created {
            Some(topic) => answer
                .with_topic_id(topic.id)
                .with_num_partitions(topic.partition_count())
                .with_replication_factor(1),
            None => answer.with_error_code(TOPIC_ALREADY_EXISTS),
        }
    });
    CreateTopicsResponse::default().with_topics(answers.collect())
}

fn delete_topics(request: DeleteTopicsRequest, topics: &Topics) -> DeleteTopicsResponse {
    let answers = request.topic_names.into_iter().map(|name| {
        let error_code = match topics.delete(&name) {
            true => 0,
            false => UNKNOWN_TOPIC_OR_PARTITION,
        };
        DeletableTopicResult::default()
            .with_name(Some(name))
            .with_error_code(error_code)
    });
    DeleteTopicsResponse::default().with_responses(answers.collect())
}

/// Nothing is configured.
fn describe_configs(request: DescribeConfigsRequest) -> DescribeConfigsResponse {
    let answers = request.resources.into_iter().map(|resource| {
        DescribeConfigsResult::default()
            .with_resource_type(resource.resource_type)
            .with_resource_name(resource.resource_name)
    });
    DescribeConfigsResponse::default().with_results(answers.collect())
}
