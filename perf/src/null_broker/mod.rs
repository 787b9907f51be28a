//! A broker that does nothing: it takes Kafka's frames, keeps no record and answers at once. What a client does against it is what the
//! client and the wire cost; what a broker costs more is the broker.
//!
//! Owns: the listener, a thread for each connection, topics by name with the offsets that come next. Must never know: what a load is,
//! what a record holds. Runs on: threads of its own. Nothing survives its end.
//!
//! It is made for the clients of one machine. It trusts them: a frame is bounded in size, its content is not checked.

mod answer;
mod session;
mod topics;

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::cpu::this_thread_cpu_seconds;
use crate::interrupt::Interrupt;
use session::Session;
use topics::Topics;

/// How soon a Ctrl-C is noticed.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// How soon it is noticed that connections have ended.
const AWAIT_EVERY: Duration = Duration::from_millis(1);

#[derive(Debug, thiserror::Error)]
pub enum NullBrokerError {
    #[error("cannot listen on {address}: {source}")]
    Listen {
        address: SocketAddr,
        source: io::Error,
    },
}

pub struct NullBroker {
    address: SocketAddr,
    totals: Arc<Totals>,
    ending: Arc<AtomicBool>,
    accepting: Option<JoinHandle<()>>,
}

/// What came and went, over all connections.
#[derive(Debug, Default)]
pub struct Totals {
    pub connections: AtomicU64,
    pub requests: AtomicU64,
    pub received_bytes: AtomicU64,
    pub records: AtomicU64,
    open_sessions: AtomicU64,
    ended_sessions_cpu_ns: AtomicU64,
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} connections, {} requests, {} records, {:.1} MB received",
            self.connections.load(Relaxed),
            self.requests.load(Relaxed),
            self.records.load(Relaxed),
            self.received_bytes.load(Relaxed) as f64 / 1e6
        )
    }
}

impl NullBroker {
    /// Listens and serves from now on. A topic that nobody created gets `partitions`. With port 0 the system chooses one.
    pub fn start(address: SocketAddr, partitions: u32) -> Result<Self, NullBrokerError> {
        let failed = |source| NullBrokerError::Listen { address, source };
        let listener = TcpListener::bind(address).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let totals = Arc::new(Totals::default());
        let topics = Arc::new(Topics::new(address, partitions));
        let ending = Arc::new(AtomicBool::new(false));
        let accepting = {
            let (totals, ending) = (totals.clone(), ending.clone());
            move || {
                for stream in listener.incoming().flatten() {
                    if ending.load(Relaxed) {
                        return;
                    }
                    totals.connections.fetch_add(1, Relaxed);
                    let mut session = Session::new(stream, topics.clone(), totals.clone());
                    let serving = thread::Builder::new().name("null-conn".to_owned());
                    let of_session = totals.clone();
                    of_session.open_sessions.fetch_add(1, Relaxed);
                    let serve = move || {
                        if let Err(end) = session.serve() {
                            eprintln!("corelog-perf null-broker: a connection ended: {end}");
                        }
                        let cpu_ns = (this_thread_cpu_seconds() * 1e9) as u64;
                        of_session.ended_sessions_cpu_ns.fetch_add(cpu_ns, Relaxed);
                        of_session.open_sessions.fetch_sub(1, Release);
                    };
                    // Without a thread the stream is dropped, which the client sees.
                    if serving.spawn(serve).is_err() {
                        totals.open_sessions.fetch_sub(1, Relaxed);
                    }
                }
            }
        };
        let accepting = thread::Builder::new()
            .name("null-accept".to_owned())
            .spawn(accepting)
            .map_err(failed)?;
        Ok(Self {
            address,
            totals,
            ending,
            accepting: Some(accepting),
        })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    /// CPU time of the threads whose connections have ended.
    pub fn ended_sessions_cpu_s(&self) -> f64 {
        self.totals.ended_sessions_cpu_ns.load(Relaxed) as f64 / 1e9
    }

    /// Whether all connections have ended before the deadline.
    pub fn await_sessions(&self, deadline: Instant) -> bool {
        while self.totals.open_sessions.load(Acquire) > 0 {
            if Instant::now() > deadline {
                return false;
            }
            thread::sleep(AWAIT_EVERY);
        }
        true
    }

    /// Returns at Ctrl-C.
    pub fn run(&self, interrupt: &Interrupt) {
        while !interrupt.is_asked() {
            thread::sleep(LOOK_EVERY);
        }
    }
}

/// Nobody is served any more; who is connected is served until the client goes.
impl Drop for NullBroker {
    fn drop(&mut self) {
        self.ending.store(true, Relaxed);
        // The connection wakes the thread that accepts; without one it waits for the next client.
        if let (Some(accepting), Ok(_)) = (self.accepting.take(), TcpStream::connect(self.address))
        {
            let _ = accepting.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::connection::Connection;
    use bytes::{Bytes, BytesMut};
    use kafka_protocol::messages::create_topics_request::CreatableTopic;
    use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
    use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
    use kafka_protocol::messages::{
        CreateTopicsRequest, ListOffsetsRequest, MetadataRequest, ProduceRequest, TopicName,
    };
    use kafka_protocol::protocol::StrBytes;

    fn broker() -> (NullBroker, Connection) {
        let any_port = "127.0.0.1:0".parse().expect("an address");
        let broker = NullBroker::start(any_port, 7).expect("it listens");
        let connection = Connection::open(&broker.address().to_string()).expect("it answers");
        (broker, connection)
    }

    fn topic(name: &str) -> TopicName {
        TopicName(StrBytes::from_string(name.to_owned()))
    }

    /// As much of a record batch as a broker that does nothing looks at.
    fn batch(record_count: i32) -> Bytes {
        let mut batch = BytesMut::zeroed(100);
        batch[57..61].copy_from_slice(&record_count.to_be_bytes());
        batch.freeze()
    }

    #[test]
    fn a_created_topic_has_the_partitions_asked_for_and_another_the_default() {
        let (_broker, mut connection) = broker();
        let three = CreatableTopic::default()
            .with_name(topic("three"))
            .with_num_partitions(3)
            .with_replication_factor(1);
        let create = CreateTopicsRequest::default().with_topics(vec![three]);
        let created = connection.call(&create, 2, 4).expect("an answer");
        assert_eq!(created.topics[0].error_code, 0);
        let wanted = ["three", "other"].map(|name| {
            kafka_protocol::messages::metadata_request::MetadataRequestTopic::default()
                .with_name(Some(topic(name)))
        });
        let request = MetadataRequest::default()
            .with_allow_auto_topic_creation(true)
            .with_topics(Some(wanted.to_vec()));
        let metadata = connection.call(&request, 4, 8).expect("an answer");
        let counts: Vec<_> = metadata
            .topics
            .iter()
            .map(|it| it.partitions.len())
            .collect();
        assert_eq!(counts, [3, 7]);
        assert_eq!(metadata.brokers.len(), 1);
    }

    #[test]
    fn offsets_go_on_by_the_records_of_each_batch() {
        let (broker, mut connection) = broker();
        let mut base_offsets = Vec::new();
        for record_count in [10, 5, 1] {
            let data = PartitionProduceData::default()
                .with_index(2)
                .with_records(Some(batch(record_count)));
            let data = TopicProduceData::default()
                .with_name(topic("t"))
                .with_partition_data(vec![data]);
            let request = ProduceRequest::default()
                .with_acks(1)
                .with_topic_data(vec![data]);
            let response = connection.call(&request, 3, 8).expect("an answer");
            base_offsets.push(response.responses[0].partition_responses[0].base_offset);
        }
        assert_eq!(base_offsets, [0, 10, 15]);
        let end = ListOffsetsPartition::default()
            .with_partition_index(2)
            .with_timestamp(-1);
        let end = ListOffsetsTopic::default()
            .with_name(topic("t"))
            .with_partitions(vec![end]);
        let request = ListOffsetsRequest::default()
            .with_replica_id((-1).into())
            .with_topics(vec![end]);
        let response = connection.call(&request, 1, 5).expect("an answer");
        assert_eq!(response.topics[0].partitions[0].offset, 16);
        assert_eq!(broker.totals().records.load(Relaxed), 16);
    }
}
