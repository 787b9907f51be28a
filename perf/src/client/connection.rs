//! One connection: size-prefixed frames out and in, versions agreed once.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use kafka_protocol::messages::{ApiKey, ApiVersionsRequest, RequestHeader, ResponseHeader};
use kafka_protocol::protocol::{Decodable, Encodable, Request, StrBytes};

use super::error::{ClientError, ErrorCode};

/// How long a broker may take to accept a connection, so that a wrong address is told at once.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long it may take to say what it serves: one that accepts and stays silent is told soon too.
const GREETING_TIMEOUT: Duration = Duration::from_secs(4);

/// How long a broker may take to answer a request that does not wait by design.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);

/// A larger response is no answer of a Kafka broker; the greeting of another protocol reads as one of a gigabyte.
const RESPONSE_BYTES_MAX: usize = 512 * 1024 * 1024;

pub const CLIENT_ID: &str = "corelog-perf";

/// What a broker serves, by API key.
#[derive(Clone, Debug, Default)]
pub struct ServedVersions(HashMap<i16, (i16, i16)>);

impl ServedVersions {
    /// The highest version that both sides speak.
    pub fn choose(
        &self,
        address: &str,
        api: ApiKey,
        min: i16,
        max: i16,
    ) -> Result<i16, ClientError> {
        let (served_min, served_max) = self.0.get(&(api as i16)).copied().unwrap_or((0, -1));
        let version = max.min(served_max);
        match version >= min.max(served_min) {
            true => Ok(version),
            false => Err(ClientError::Version {
                address: address.to_owned(),
                api: name_of(api),
                min,
                max,
            }),
        }
    }
}

pub struct Connection {
    stream: TcpStream,
    address: String,
    versions: ServedVersions,
    next_correlation_id: i32,
    traffic: Traffic,
}

/// Bytes over a socket, since they were asked for last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    pub sent_bytes: u64,
    pub received_bytes: u64,
}

impl Connection {
    /// Connects and asks what the broker serves.
    pub fn open(address: &str) -> Result<Self, ClientError> {
        let stream = connect(address)?;
        let mut connection = Self {
            stream,
            address: address.to_owned(),
            versions: ServedVersions::default(),
            next_correlation_id: 0,
            traffic: Traffic::default(),
        };
        connection.set_timeout(GREETING_TIMEOUT)?;
        let served = connection.call_version(&ApiVersionsRequest::default(), 2)?;
        connection.set_timeout(RESPONSE_TIMEOUT)?;
        connection.refuse_error("ApiVersions", served.error_code, None)?;
        let ranges = served
            .api_keys
            .iter()
            .map(|api| (api.api_key, (api.min_version, api.max_version)));
        connection.versions = ServedVersions(ranges.collect());
        Ok(connection)
    }

    /// For whoever sends and reads by himself from here on.
    pub fn into_nonblocking_stream(self) -> Result<TcpStream, ClientError> {
        self.stream
            .set_nonblocking(true)
            .map_err(|source| self.io("set-up", source))?;
        Ok(self.stream)
    }

    /// For requests whose answer may take so much longer by design.
    pub fn wait_longer_by(&self, by: Duration) -> Result<(), ClientError> {
        self.set_timeout(RESPONSE_TIMEOUT + by)
    }

    fn set_timeout(&self, timeout: Duration) -> Result<(), ClientError> {
        self.stream
            .set_read_timeout(Some(timeout))
            .map_err(|source| self.io("set-up", source))
    }

    pub fn address(&self) -> &str {
        &self.address
    }

    pub fn versions(&self) -> &ServedVersions {
        &self.versions
    }

    /// What went over it since the last call.
    pub fn take_traffic(&mut self) -> Traffic {
        std::mem::take(&mut self.traffic)
    }

    /// Sends `request` in the highest version up to `max` and waits for its answer.
    pub fn call<R: Request>(
        &mut self,
        request: &R,
        min: i16,
        max: i16,
    ) -> Result<R::Response, ClientError> {
        let version = self
            .versions
            .choose(&self.address, api_of::<R>(), min, max)?;
        self.call_version(request, version)
    }

    fn call_version<R: Request>(
        &mut self,
        request: &R,
        version: i16,
    ) -> Result<R::Response, ClientError> {
        let correlation_id = self.send(request, version)?;
        self.answer::<R>(correlation_id, version)
    }

    /// Waits for the answer to the request of that number, which is the oldest one under way.
    pub fn answer<R: Request>(
        &mut self,
        correlation_id: i32,
        version: i16,
    ) -> Result<R::Response, ClientError> {
        let api = api_of::<R>();
        let mut frame = Vec::new();
        let size_bytes = self.receive(&mut frame)?;
        frame.truncate(size_bytes);
        let mut body = Bytes::from(frame);
        let header = ResponseHeader::decode(&mut body, api.response_header_version(version))
            .map_err(|error| self.protocol(format!("{}: {error}", name_of(api))))?;
        if header.correlation_id != correlation_id {
            return Err(self.protocol(format!(
                "the answer to request {correlation_id} is numbered {}",
                header.correlation_id
            )));
        }
        let response = R::Response::decode(&mut body, version)
            .map_err(|error| self.protocol(format!("{}: {error}", name_of(api))))?;
        match body.has_remaining() {
            true => Err(self.protocol(format!(
                "{} bytes follow the {} response",
                body.remaining(),
                name_of(api)
            ))),
            false => Ok(response),
        }
    }

    /// Sends `request` without waiting and returns the number that its answer will carry.
    pub fn send<R: Request>(&mut self, request: &R, version: i16) -> Result<i32, ClientError> {
        let correlation_id = self.next_correlation_id;
        self.next_correlation_id = correlation_id.wrapping_add(1);
        let api = api_of::<R>();
        let header = RequestHeader::default()
            .with_request_api_key(R::KEY)
            .with_request_api_version(version)
            .with_correlation_id(correlation_id)
            .with_client_id(Some(StrBytes::from_static_str(CLIENT_ID)));
        let mut frame = BytesMut::new();
        frame.extend_from_slice(&[0; 4]);
        header
            .encode(&mut frame, api.request_header_version(version))
            .and_then(|()| request.encode(&mut frame, version))
            .map_err(|error| {
                self.protocol(format!(
                    "{} version {version} cannot be encoded: {error}",
                    name_of(api)
                ))
            })?;
        let size = frame.len() as u32 - 4;
        frame[..4].copy_from_slice(&size.to_be_bytes());
        self.stream
            .write_all(&frame)
            .map_err(|source| self.io("send", source))?;
        self.traffic.sent_bytes += frame.len() as u64;
        Ok(correlation_id)
    }

    /// Reads the next frame, without its size, into the start of `buffer` and returns its length. The buffer
    /// only grows, so that its memory is cleared once and not for every frame.
    pub fn receive(&mut self, buffer: &mut Vec<u8>) -> Result<usize, ClientError> {
        let mut size = [0; 4];
        self.stream
            .read_exact(&mut size)
            .map_err(|source| self.io("receive", source))?;
        let size_bytes = frame_size(size).map_err(|reason| self.protocol(reason))?;
        if buffer.len() < size_bytes {
            buffer.resize(size_bytes, 0);
        }
        self.stream
            .read_exact(&mut buffer[..size_bytes])
            .map_err(|source| self.io("receive", source))?;
        self.traffic.received_bytes += (size.len() + size_bytes) as u64;
        Ok(size_bytes)
    }

    /// Turns an error code other than 0 into an error.
    pub fn refuse_error(
        &self,
        api: &'static str,
        code: i16,
        message: Option<&str>,
    ) -> Result<(), ClientError> {
        match ErrorCode(code) {
            ErrorCode::NONE => Ok(()),
            code => Err(ClientError::Refused {
                api,
                code,
                message: message.map(str::to_owned),
            }),
        }
    }

    pub fn protocol(&self, reason: String) -> ClientError {
        ClientError::Protocol {
            address: self.address.clone(),
            reason,
        }
    }

    fn io(&self, during: &'static str, source: std::io::Error) -> ClientError {
        ClientError::Io {
            address: self.address.clone(),
            during,
            source,
        }
    }
}

/// A TCP connection that sends small frames at once.
fn connect(address: &str) -> Result<TcpStream, ClientError> {
    let bad_address = || ClientError::Address {
        address: address.to_owned(),
    };
    let resolved = address.to_socket_addrs().map_err(|_| bad_address())?;
    let mut last = None;
    for candidate in resolved {
        match TcpStream::connect_timeout(&candidate, CONNECT_TIMEOUT) {
            Ok(stream) => {
                return match stream.set_nodelay(true) {
                    Ok(()) => Ok(stream),
                    Err(source) => Err(ClientError::Io {
                        address: address.to_owned(),
                        during: "set-up",
                        source,
                    }),
                };
            }
            Err(error) => last = Some(error),
        }
    }
    Err(match last {
        Some(source) => ClientError::Connect {
            address: address.to_owned(),
            source,
        },
        None => bad_address(),
    })
}

/// The size of a frame, or why it cannot be one.
pub fn frame_size(prefix: [u8; 4]) -> Result<usize, String> {
    let size = i32::from_be_bytes(prefix);
    match usize::try_from(size) {
        Ok(size) if (4..=RESPONSE_BYTES_MAX).contains(&size) => Ok(size),
        _ => Err(format!("a frame of {size} bytes")),
    }
}

fn api_of<R: Request>() -> ApiKey {
    ApiKey::try_from(R::KEY).expect("every request of the crate has a known key")
}

fn name_of(api: ApiKey) -> &'static str {
    match api {
        ApiKey::Produce => "Produce",
        ApiKey::Fetch => "Fetch",
        ApiKey::ListOffsets => "ListOffsets",
        ApiKey::Metadata => "Metadata",
        ApiKey::ApiVersions => "ApiVersions",
        ApiKey::CreateTopics => "CreateTopics",
        ApiKey::DeleteTopics => "DeleteTopics",
        ApiKey::InitProducerId => "InitProducerId",
        ApiKey::DescribeConfigs => "DescribeConfigs",
        ApiKey::FindCoordinator => "FindCoordinator",
        ApiKey::JoinGroup => "JoinGroup",
        ApiKey::SyncGroup => "SyncGroup",
        ApiKey::Heartbeat => "Heartbeat",
        ApiKey::LeaveGroup => "LeaveGroup",
        ApiKey::OffsetCommit => "OffsetCommit",
        ApiKey::OffsetFetch => "OffsetFetch",
        _ => "an API that corelog-perf does not use",
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn an_address_where_nobody_listens_is_told() {
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let error = Connection::open(&format!("127.0.0.1:{port}"))
            .err()
            .unwrap();
        assert!(matches!(error, ClientError::Connect { .. }), "{error}");
        assert!(matches!(
            Connection::open("nonsense").err().unwrap(),
            ClientError::Address { .. }
        ));
    }

    #[test]
    fn another_protocols_greeting_is_not_taken_for_a_frame() {
        assert!(frame_size(*b"HTTP").is_err());
        assert!(frame_size([0x80, 0, 0, 0]).is_err());
        assert!(frame_size([0, 0, 0, 3]).is_err());
        assert_eq!(frame_size([0, 0, 1, 0]), Ok(256));
    }
}
