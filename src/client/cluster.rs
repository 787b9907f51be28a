//! The brokers of a cluster, and which of them to ask.

use std::collections::{BTreeMap, BTreeSet};
use std::thread::sleep;
use std::time::{Duration, Instant};

use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::{ApiKey, FindCoordinatorRequest, MetadataRequest};

use crate::model::NodeId;

use super::connection::{ClientOptions, Connection};
use super::error::{ClientError, ErrorCode};
use super::metadata::{
    Broker, ClusterMetadata, TopicMetadata, TopicPartition, host_and_port, text, topic_name,
};

/// How long the client rests before it asks again.
const RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// Which topics a Metadata request names.
#[derive(Clone, Copy, Debug)]
pub enum Topics<'a> {
    None,
    All,
    Named(&'a [String]),
}

/// Connections to the brokers that were needed so far, and what is known of who leads what. What is known is forgotten when a broker says
/// that it does not hold any more.
pub struct Cluster {
    options: ClientOptions,
    /// The broker that answered first; it is asked what any broker can answer.
    contact: String,
    /// Where brokers were named or met, for when the contact answers no more.
    known: BTreeSet<String>,
    connections: BTreeMap<String, Connection>,
    leaders: BTreeMap<TopicPartition, String>,
    coordinators: BTreeMap<String, String>,
    controller: Option<String>,
}

impl Cluster {
    /// Connects to the first of the addresses, `host:port` each, at which a broker answers.
    pub fn connect(addresses: &[String], options: ClientOptions) -> Result<Self, ClientError> {
        let (contact, connection) = first_that_answers(addresses, &options)?;
        Ok(Self {
            options,
            connections: BTreeMap::from([(contact.clone(), connection)]),
            contact,
            known: addresses.iter().cloned().collect(),
            leaders: BTreeMap::new(),
            coordinators: BTreeMap::new(),
            controller: None,
        })
    }

    /// Begins anew with the first of all known brokers that answers.
    pub(super) fn reconnect(&mut self) -> Result<(), ClientError> {
        let known: Vec<String> = self.known.iter().cloned().collect();
        let (contact, connection) = first_that_answers(&known, &self.options)?;
        self.forget_routes();
        self.connections = BTreeMap::from([(contact.clone(), connection)]);
        self.contact = contact;
        Ok(())
    }

    pub fn options(&self) -> &ClientOptions {
        &self.options
    }

    /// The connection to a broker, made if it is not there.
    pub(super) fn at(&mut self, address: &str) -> Result<&mut Connection, ClientError> {
        if !self.connections.contains_key(address) {
            let connection = Connection::open(address, &self.options)?;
            self.connections.insert(address.to_owned(), connection);
        }
        Ok(self
            .connections
            .get_mut(address)
            .expect("it was found or made above"))
    }

    /// Asks the broker at `address`. A connection that broke is closed, so that the next question opens another.
    pub(super) fn ask<T>(
        &mut self,
        address: &str,
        question: impl FnOnce(&mut Connection) -> Result<T, ClientError>,
    ) -> Result<T, ClientError> {
        let answer = question(self.at(address)?);
        if answer.as_ref().is_err_and(ClientError::breaks_connection) {
            self.connections.remove(address);
        }
        answer
    }

    /// Closes a connection on which an answer may still come that nobody waits for.
    pub(super) fn hang_up(&mut self, address: &str) {
        self.connections.remove(address);
    }

    pub(super) fn contact(&self) -> String {
        self.contact.clone()
    }

    /// Asks again while the cluster says that it will be able to answer, until the time for a response is over.
    pub(super) fn until_ready<T>(
        &mut self,
        mut question: impl FnMut(&mut Self) -> Result<T, ClientError>,
    ) -> Result<T, ClientError> {
        let deadline = Instant::now() + self.options.response_timeout;
        loop {
            match question(self) {
                Err(error) if error.is_transient() && Instant::now() < deadline => {
                    self.forget_routes();
                    sleep(RETRY_INTERVAL);
                }
                answer => return answer,
            }
        }
    }

    /// What is known of leaders, coordinators and the controller is asked for again.
    pub fn forget_routes(&mut self) {
        self.leaders.clear();
        self.coordinators.clear();
        self.controller = None;
    }

    /// Creates nothing, whatever `auto.create.topics.enable` says.
    pub fn metadata(&mut self, topics: Topics<'_>) -> Result<ClusterMetadata, ClientError> {
        let topics = match topics {
            Topics::None => Some(Vec::new()),
            Topics::All => None,
            Topics::Named(names) => Some(
                names
                    .iter()
                    .map(|name| MetadataRequestTopic::default().with_name(Some(topic_name(name))))
                    .collect(),
            ),
        };
        let request = MetadataRequest::default()
            .with_topics(topics)
            .with_allow_auto_topic_creation(false);
        let response = self.ask(&self.contact(), |broker| broker.call(&request))?;
        let metadata = ClusterMetadata::from(&response);
        let met = metadata.brokers.iter().map(|broker| &broker.address);
        self.known.extend(met.cloned());
        Ok(metadata)
    }

    pub fn brokers(&mut self) -> Result<Vec<Broker>, ClientError> {
        Ok(self.metadata(Topics::None)?.brokers)
    }

    /// A topic that exists. Remembers who leads its partitions.
    pub fn topic(&mut self, name: &str) -> Result<TopicMetadata, ClientError> {
        self.until_ready(|cluster| cluster.topic_now(name))
    }

    fn topic_now(&mut self, name: &str) -> Result<TopicMetadata, ClientError> {
        let names = [name.to_owned()];
        let mut metadata = self.metadata(Topics::Named(&names))?;
        let contact = self.contact();
        let Some(topic) = metadata.topics.pop() else {
            return Err(ClientError::Protocol {
                address: contact,
                reason: format!("Metadata without the topic '{name}' that it was asked for"),
            });
        };
        let about = format!("topic '{name}'");
        self.at(&contact)?
            .refuse_error(ApiKey::Metadata, &about, topic.error.0, None)?;
        if topic.partitions.is_empty() {
            return Err(ClientError::Protocol {
                address: contact,
                reason: format!("Metadata of a topic '{name}' without partitions"),
            });
        }
        for partition in &topic.partitions {
            if let Some(address) = partition.leader.and_then(|node| metadata.address_of(node)) {
                let at = TopicPartition::new(name, partition.index);
                self.leaders.insert(at, address.to_owned());
            }
        }
        Ok(topic)
    }

    /// The address of the partition's leader.
    pub(super) fn leader(&mut self, at: &TopicPartition) -> Result<String, ClientError> {
        if let Some(address) = self.leaders.get(at) {
            return Ok(address.clone());
        }
        let topic = self.topic_now(&at.topic)?;
        if let Some(address) = self.leaders.get(at) {
            return Ok(address.clone());
        }
        let code = match topic.partitions.iter().any(|p| p.index == at.partition) {
            true => ErrorCode::LEADER_NOT_AVAILABLE,
            false => ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
        };
        Err(ClientError::Refused {
            address: self.contact(),
            api: ApiKey::Metadata,
            about: format!("partition {at}"),
            code,
            message: None,
        })
    }

    /// The partitions by the address of their leader.
    pub(super) fn by_leader<'a>(
        &mut self,
        partitions: impl IntoIterator<Item = &'a TopicPartition>,
    ) -> Result<BTreeMap<String, Vec<&'a TopicPartition>>, ClientError> {
        let mut leaders: BTreeMap<String, Vec<_>> = BTreeMap::new();
        for at in partitions {
            leaders.entry(self.leader(at)?).or_default().push(at);
        }
        Ok(leaders)
    }

    /// The address of the broker that changes topics.
    pub(super) fn controller(&mut self) -> Result<String, ClientError> {
        if let Some(address) = &self.controller {
            return Ok(address.clone());
        }
        let metadata = self.metadata(Topics::None)?;
        let address = metadata
            .controller
            .and_then(|node| metadata.address_of(node))
            .map_or_else(|| self.contact(), str::to_owned);
        self.controller = Some(address.clone());
        Ok(address)
    }

    /// The address of one broker, by its id.
    pub(super) fn node(&mut self, node: NodeId) -> Result<String, ClientError> {
        let metadata = self.metadata(Topics::None)?;
        metadata
            .address_of(node)
            .map(str::to_owned)
            .ok_or_else(|| ClientError::UnknownNode {
                node,
                known: metadata.brokers.iter().map(|broker| broker.node).collect(),
            })
    }

    /// The address of the broker that coordinates the group.
    pub(super) fn coordinator(&mut self, group: &str) -> Result<String, ClientError> {
        if let Some(address) = self.coordinators.get(group) {
            return Ok(address.clone());
        }
        let request = FindCoordinatorRequest::default().with_key(text(group));
        let response = self.ask(&self.contact(), |broker| {
            let response = broker.call(&request)?;
            broker.refuse_error(
                ApiKey::FindCoordinator,
                &format!("group '{group}'"),
                response.error_code,
                response.error_message.as_deref(),
            )?;
            Ok(response)
        })?;
        let address = host_and_port(&response.host, response.port);
        self.coordinators.insert(group.to_owned(), address.clone());
        Ok(address)
    }
}

fn first_that_answers(
    addresses: &[String],
    options: &ClientOptions,
) -> Result<(String, Connection), ClientError> {
    let mut errors = Vec::new();
    for address in addresses {
        match Connection::open(address, options) {
            Ok(connection) => return Ok((address.clone(), connection)),
            Err(error) => errors.push(error),
        }
    }
    match errors.len() {
        1 => Err(errors.remove(0)),
        _ => Err(ClientError::NoBroker {
            reasons: errors.iter().map(ClientError::to_string).collect(),
        }),
    }
}
