//! A broker for tests: speaks ApiVersions and Produce on a real socket and does to each batch what the test says.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::api_versions_response::ApiVersion;
use kafka_protocol::messages::produce_response::{PartitionProduceResponse, TopicProduceResponse};
use kafka_protocol::messages::{
    ApiKey, ApiVersionsResponse, ProduceRequest, ProduceResponse, RequestHeader, ResponseHeader,
};
use kafka_protocol::protocol::{Decodable, Encodable};

/// What becomes of a request.
pub enum Reaction {
    Append,
    AppendAfter(Duration),
    Refuse(i16),
    /// Closes the connection without an answer; whether the batches were appended is the test's choice.
    HangUp {
        append: bool,
    },
}

/// The appended batches of one partition's log, in order.
pub struct Appended {
    pub partition: i32,
    pub base_offset: i64,
    pub records: Bytes,
}

pub struct FakeBroker {
    pub address: String,
    pub appended: Receiver<Appended>,
}

impl FakeBroker {
    /// `react` is asked for each Produce request, numbered from 0 over all connections, which are served one
    /// after the other.
    pub fn start(react: impl FnMut(usize) -> Reaction + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it is bound").to_string();
        let (append, appended) = channel();
        let mut server = Server {
            react: Box::new(react),
            append,
            request_count: 0,
            next_offsets: Default::default(),
        };
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // A client that goes away ends its connection, not the broker.
                let _ = server.serve(stream);
            }
        });
        Self { address, appended }
    }
}

struct Server {
    react: Box<dyn FnMut(usize) -> Reaction + Send>,
    append: Sender<Appended>,
    request_count: usize,
    next_offsets: std::collections::HashMap<i32, i64>,
}

impl Server {
    fn serve(&mut self, mut stream: TcpStream) -> std::io::Result<()> {
        loop {
            let mut size = [0; 4];
            stream.read_exact(&mut size)?;
            let mut frame = vec![0; u32::from_be_bytes(size) as usize];
            stream.read_exact(&mut frame)?;
            let mut frame = Bytes::from(frame);
            let header = RequestHeader::decode(&mut frame, 1).expect("a request header");
            let version = header.request_api_version;
            let mut answer = BytesMut::new();
            ResponseHeader::default()
                .with_correlation_id(header.correlation_id)
                .encode(&mut answer, 0)
                .expect("it encodes");
            if header.request_api_key == ApiKey::ApiVersions as i16 {
                let produce = ApiVersion::default()
                    .with_api_key(ApiKey::Produce as i16)
                    .with_min_version(0)
                    .with_max_version(8);
                ApiVersionsResponse::default()
                    .with_api_keys(vec![produce])
                    .encode(&mut answer, version)
                    .expect("it encodes");
            } else {
                let request =
                    ProduceRequest::decode(&mut frame, version).expect("a Produce request");
                let is_answered = request.acks != 0;
                let Some(response) = self.produce(request) else {
                    return Ok(());
                };
                if !is_answered {
                    continue;
                }
                response.encode(&mut answer, version).expect("it encodes");
            }
            stream.write_all(&(answer.len() as u32).to_be_bytes())?;
            stream.write_all(&answer)?;
        }
    }

    /// None: hang up.
    fn produce(&mut self, request: ProduceRequest) -> Option<ProduceResponse> {
        let reaction = (self.react)(self.request_count);
        self.request_count += 1;
        if let Reaction::AppendAfter(delay) = reaction {
            thread::sleep(delay);
        }
        let appends = matches!(
            reaction,
            Reaction::Append | Reaction::AppendAfter(_) | Reaction::HangUp { append: true }
        );
        let error_code = if let Reaction::Refuse(code) = reaction {
            code
        } else {
            0
        };
        let topic = &request.topic_data[0];
        let mut answers = Vec::new();
        for part in &topic.partition_data {
            let records = part.records.clone().expect("records");
            let mut base_offset = -1;
            if appends {
                let next = self.next_offsets.entry(part.index).or_default();
                base_offset = *next;
                *next += i64::from(u32::from_be_bytes(
                    records[57..61].try_into().expect("four bytes"),
                ));
                let _ = self.append.send(Appended {
                    partition: part.index,
                    base_offset,
                    records,
                });
            }
            let answer = PartitionProduceResponse::default()
                .with_index(part.index)
                .with_error_code(error_code);
            answers.push(answer.with_base_offset(base_offset));
        }
        let topic = TopicProduceResponse::default()
            .with_name(topic.name.clone())
            .with_partition_responses(answers);
        let hangs_up = matches!(reaction, Reaction::HangUp { .. });
        (!hangs_up).then(|| ProduceResponse::default().with_responses(vec![topic]))
    }
}
