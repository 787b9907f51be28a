//! What a run asks of the cluster before and after the load: topics, leaders, offsets, settings, a producer id.

use std::collections::BTreeMap;
use std::thread::sleep;
use std::time::{Duration, Instant};

use kafka_protocol::messages::create_partitions_request::CreatePartitionsTopic;
use kafka_protocol::messages::create_topics_request::{CreatableTopic, CreatableTopicConfig};
use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::{
    ApiKey, CreatePartitionsRequest, CreateTopicsRequest, DeleteTopicsRequest,
    DescribeConfigsRequest, InitProducerIdRequest, MetadataRequest, TopicName,
};
use kafka_protocol::protocol::StrBytes;

use serde::{Deserialize, Serialize};

use super::connection::Connection;
use super::coordinator::find_coordinator;
use super::error::{ClientError, ErrorCode};
use super::offsets::{OffsetAt, list_offsets};

/// How long a new topic may take until all its partitions have leaders that serve.
const READY_TIMEOUT: Duration = Duration::from_secs(20);
/// On top of it: Apache Kafka takes more than 20 s for 10,000 partitions on two cores.
const READY_TIMEOUT_PER_PARTITION: Duration = Duration::from_millis(10);

const READY_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// What the broker may take to carry out a change.
const ADMIN_TIMEOUT_MS: i32 = 20_000;

/// A topic with more partitions gets the others in steps of as many: Kafka's controller takes no request that makes more than 10,000
/// records of metadata (`QuorumController.MAX_RECORDS_PER_USER_OP`).
const PARTITIONS_PER_REQUEST_MAX: u32 = 5_000;

const RESOURCE_TOPIC: i8 = 2;
const RESOURCE_BROKER: i8 = 4;

/// A broker's address, `host:port`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct BrokerAddress(pub String);

/// A topic with the leader of each partition, by index.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Topic {
    pub name: String,
    pub leaders: Vec<BrokerAddress>,
}

impl Topic {
    /// Partition numbers by the broker that leads them.
    pub fn partitions_by_leader(&self) -> BTreeMap<&BrokerAddress, Vec<usize>> {
        let mut by_leader: BTreeMap<_, Vec<usize>> = BTreeMap::new();
        for (partition, leader) in self.leaders.iter().enumerate() {
            by_leader.entry(leader).or_default().push(partition);
        }
        by_leader
    }
}

/// One setting as the broker reports it.
pub type Settings = BTreeMap<String, Option<String>>;

pub struct Cluster {
    bootstrap: String,
}

impl Cluster {
    /// Proves that a broker answers at one of the addresses, separated by commas, and stays with the first that
    /// does.
    pub fn connect(addresses: &str) -> Result<Self, ClientError> {
        let mut last_error = None;
        for address in addresses.split(',').map(str::trim) {
            let cluster = Self {
                bootstrap: address.to_owned(),
            };
            match cluster.open() {
                Ok(_) => return Ok(cluster),
                Err(error) => last_error = Some(error),
            }
        }
        Err(last_error.expect("a split text has at least one part"))
    }

    /// The address that answered.
    pub fn bootstrap(&self) -> &str {
        &self.bootstrap
    }

    fn open(&self) -> Result<Connection, ClientError> {
        Connection::open(&self.bootstrap)
    }

    /// The number of brokers and the address and id of each.
    pub fn brokers(&self) -> Result<Vec<(i32, BrokerAddress)>, ClientError> {
        let metadata = self.open()?.call(
            &MetadataRequest::default().with_topics(Some(Vec::new())),
            1,
            8,
        )?;
        Ok(metadata
            .brokers
            .iter()
            .map(|broker| {
                (
                    broker.node_id.0,
                    BrokerAddress(format!("{}:{}", &*broker.host, broker.port)),
                )
            })
            .collect())
    }

    /// Creates the topic. False: it was there already.
    pub fn create_topic(
        &self,
        name: &str,
        partitions: u32,
        replication: u16,
        settings: &[(String, String)],
    ) -> Result<bool, ClientError> {
        let setting = |(name, value): &(String, String)| {
            CreatableTopicConfig::default()
                .with_name(text(name))
                .with_value(Some(text(value)))
        };
        let topic = CreatableTopic::default()
            .with_name(TopicName(text(name)))
            .with_num_partitions(partitions.min(PARTITIONS_PER_REQUEST_MAX) as i32)
            .with_replication_factor(replication as i16)
            .with_configs(settings.iter().map(setting).collect());
        let request = CreateTopicsRequest::default()
            .with_topics(vec![topic])
            .with_timeout_ms(ADMIN_TIMEOUT_MS);
        let mut controller = self.open_controller()?;
        let response = controller.call(&request, 2, 4)?;
        for result in &response.topics {
            if ErrorCode(result.error_code) == ErrorCode::TOPIC_ALREADY_EXISTS {
                return Ok(false);
            }
            controller.refuse_error(
                ApiKey::CreateTopics,
                result.error_code,
                result.error_message.as_deref(),
            )?;
        }
        let mut count = PARTITIONS_PER_REQUEST_MAX;
        while count < partitions {
            count = partitions.min(count + PARTITIONS_PER_REQUEST_MAX);
            self.grow_topic(&mut controller, name, count)?;
        }
        Ok(true)
    }

    fn grow_topic(
        &self,
        controller: &mut Connection,
        name: &str,
        partitions: u32,
    ) -> Result<(), ClientError> {
        let topic = CreatePartitionsTopic::default()
            .with_name(TopicName(text(name)))
            .with_count(partitions as i32)
            .with_assignments(None);
        let request = CreatePartitionsRequest::default()
            .with_topics(vec![topic])
            .with_timeout_ms(ADMIN_TIMEOUT_MS);
        let response = controller.call(&request, 0, 3)?;
        response.results.iter().try_for_each(|result| {
            let message = result.error_message.as_deref();
            controller.refuse_error(ApiKey::CreatePartitions, result.error_code, message)
        })
    }

    pub fn delete_topic(&self, name: &str) -> Result<(), ClientError> {
        let request = DeleteTopicsRequest::default()
            .with_topic_names(vec![TopicName(text(name))])
            .with_timeout_ms(ADMIN_TIMEOUT_MS);
        let mut controller = self.open_controller()?;
        let response = controller.call(&request, 1, 3)?;
        response.responses.iter().try_for_each(|result| {
            controller.refuse_error(ApiKey::DeleteTopics, result.error_code, None)
        })
    }

    fn open_controller(&self) -> Result<Connection, ClientError> {
        let mut connection = self.open()?;
        let metadata = connection.call(
            &MetadataRequest::default().with_topics(Some(Vec::new())),
            1,
            8,
        )?;
        match metadata
            .brokers
            .iter()
            .find(|broker| broker.node_id == metadata.controller_id)
        {
            Some(broker) => Connection::open(&format!("{}:{}", &*broker.host, broker.port)),
            None => Ok(connection),
        }
    }

    /// The topic's leaders, once each of its `partitions` has one.
    pub fn await_topic(&self, name: &str, partitions: u32) -> Result<Topic, ClientError> {
        let timeout = READY_TIMEOUT + READY_TIMEOUT_PER_PARTITION * partitions;
        let deadline = Instant::now() + timeout;
        let mut connection = self.open()?;
        loop {
            match topic_now(&mut connection, name)? {
                Some(topic) if topic.leaders.len() == partitions as usize => return Ok(topic),
                Some(topic) if topic.leaders.len() > partitions as usize => {
                    let reason = format!(
                        "has {} partitions where {partitions} are wanted",
                        topic.leaders.len()
                    );
                    return Err(ClientError::Topic {
                        topic: name.to_owned(),
                        reason,
                    });
                }
                _ if Instant::now() > deadline => {
                    let reason = format!(
                        "had no {partitions} partitions with leaders after {} s",
                        timeout.as_secs()
                    );
                    return Err(ClientError::Topic {
                        topic: name.to_owned(),
                        reason,
                    });
                }
                _ => sleep(READY_POLL_INTERVAL),
            }
        }
    }

    /// The topic as it is, with however many partitions it has.
    pub fn existing_topic(&self, name: &str) -> Result<Topic, ClientError> {
        topic_now(&mut self.open()?, name)?.ok_or_else(|| ClientError::Topic {
            topic: name.to_owned(),
            reason: "is not there, or not all of its partitions have leaders".to_owned(),
        })
    }

    /// The high watermark of each partition of the topic.
    pub fn end_offsets(&self, topic: &Topic) -> Result<Vec<i64>, ClientError> {
        until_ready(topic.leaders.len(), || self.end_offsets_now(topic))
    }

    fn end_offsets_now(&self, topic: &Topic) -> Result<Vec<i64>, ClientError> {
        let mut offsets = vec![0; topic.leaders.len()];
        for (leader, partitions) in topic.partitions_by_leader() {
            let mut connection = Connection::open(&leader.0)?;
            let ends = list_offsets(&mut connection, &topic.name, &partitions, OffsetAt::Latest)?;
            for (partition, end) in ends {
                offsets[partition] = end.unwrap_or(0);
            }
        }
        Ok(offsets)
    }

    /// A new producer id and epoch.
    pub fn init_producer_id(&self) -> Result<(i64, i16), ClientError> {
        until_ready(0, || self.init_producer_id_now())
    }

    fn init_producer_id_now(&self) -> Result<(i64, i16), ClientError> {
        let request = InitProducerIdRequest::default()
            .with_transactional_id(None)
            .with_transaction_timeout_ms(i32::MAX);
        let mut connection = self.open()?;
        let response = connection.call(&request, 0, 1)?;
        connection.refuse_error(ApiKey::InitProducerId, response.error_code, None)?;
        Ok((response.producer_id.0, response.producer_epoch))
    }

    /// Who coordinates each of the groups; who asks first may have to wait until there is a topic for what they commit.
    pub fn coordinators(&self, groups: &[String]) -> Result<Vec<BrokerAddress>, ClientError> {
        let mut connection = self.open()?;
        let find = |group: &String| until_ready(0, || find_coordinator(&mut connection, group));
        groups.iter().map(find).collect()
    }

    pub fn broker_settings(&self, node_id: i32) -> Result<Settings, ClientError> {
        self.settings(RESOURCE_BROKER, &node_id.to_string())
    }

    pub fn topic_settings(&self, topic: &str) -> Result<Settings, ClientError> {
        self.settings(RESOURCE_TOPIC, topic)
    }

    fn settings(&self, resource_type: i8, name: &str) -> Result<Settings, ClientError> {
        let resource = DescribeConfigsResource::default()
            .with_resource_type(resource_type)
            .with_resource_name(text(name))
            .with_configuration_keys(None);
        let mut connection = self.open()?;
        let response = connection.call(
            &DescribeConfigsRequest::default().with_resources(vec![resource]),
            1,
            3,
        )?;
        let mut settings = Settings::new();
        for result in &response.results {
            connection.refuse_error(
                ApiKey::DescribeConfigs,
                result.error_code,
                result.error_message.as_deref(),
            )?;
            settings.extend(result.configs.iter().map(|setting| {
                (
                    setting.name.to_string(),
                    setting.value.as_ref().map(|v| v.to_string()),
                )
            }));
        }
        Ok(settings)
    }
}

/// Asks again while the broker says that it will be able to answer: a new partition's leader, or a coordinator,
/// may not know yet that it is one. It gets time as a topic of so many partitions does.
fn until_ready<T>(
    partitions: usize,
    mut ask: impl FnMut() -> Result<T, ClientError>,
) -> Result<T, ClientError> {
    let deadline = Instant::now() + READY_TIMEOUT + READY_TIMEOUT_PER_PARTITION * partitions as u32;
    loop {
        match ask() {
            Err(ClientError::Refused { code, .. })
                if code.is_retriable() && Instant::now() < deadline =>
            {
                sleep(READY_POLL_INTERVAL);
            }
            answer => return answer,
        }
    }
}

/// The topic, if it is there and each of its partitions has a leader that is there too.
fn topic_now(connection: &mut Connection, name: &str) -> Result<Option<Topic>, ClientError> {
    let asked = MetadataRequestTopic::default().with_name(Some(TopicName(text(name))));
    let request = MetadataRequest::default()
        .with_topics(Some(vec![asked]))
        .with_allow_auto_topic_creation(false);
    let metadata = connection.call(&request, 4, 8)?;
    let addresses: BTreeMap<i32, BrokerAddress> = metadata
        .brokers
        .iter()
        .map(|broker| {
            (
                broker.node_id.0,
                BrokerAddress(format!("{}:{}", &*broker.host, broker.port)),
            )
        })
        .collect();
    let Some(topic) = metadata
        .topics
        .first()
        .filter(|topic| ErrorCode(topic.error_code).is_ok())
    else {
        return Ok(None);
    };
    let leaders: BTreeMap<i32, Option<&BrokerAddress>> = topic
        .partitions
        .iter()
        .map(|partition| {
            (
                partition.partition_index,
                addresses.get(&partition.leader_id.0),
            )
        })
        .collect();
    let numbered_from_zero = leaders.keys().copied().eq(0..leaders.len() as i32);
    let leaders: Option<Vec<_>> = leaders
        .into_values()
        .map(|leader| leader.cloned())
        .collect();
    Ok(leaders.filter(|_| numbered_from_zero).map(|leaders| Topic {
        name: name.to_owned(),
        leaders,
    }))
}

fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}
