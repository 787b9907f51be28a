//! One connection: size-prefixed frames out and in, versions agreed once.

use std::collections::HashMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use bytes::{Buf, Bytes, BytesMut};
use kafka_protocol::messages::{ApiKey, ApiVersionsRequest, RequestHeader, ResponseHeader};
use kafka_protocol::protocol::{Decodable, Encodable, Request, StrBytes};

use crate::model::limits::{RESPONSE_BYTES_MAX, RESPONSE_ELEMENTS_MAX};
use crate::protocol::shape;

use super::error::{ClientError, ErrorCode};
use super::response_shapes::spoken;

/// Who the client is and how long it waits.
#[derive(Clone, Copy, Debug)]
pub struct ClientOptions {
    /// What brokers see in their logs and quotas.
    pub client_id: &'static str,
    /// How long a broker may take to accept a connection, so that a wrong address is told soon.
    pub connect_timeout: Duration,
    /// How long it may take to say what it serves: one that accepts and stays silent is told soon too.
    pub greeting_timeout: Duration,
    /// How long it may take to answer a request that does not wait by design.
    pub response_timeout: Duration,
}

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
                api,
                min,
                max,
            }),
        }
    }
}

pub struct Connection {
    stream: TcpStream,
    address: String,
    options: ClientOptions,
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

/// A request whose response is still to be read.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    correlation_id: i32,
    version: i16,
}

impl Connection {
    /// Connects and asks what the broker serves.
    pub fn open(address: &str, options: &ClientOptions) -> Result<Self, ClientError> {
        let mut connection = Self {
            stream: connect(address, options.connect_timeout)?,
            address: address.to_owned(),
            options: *options,
            versions: ServedVersions::default(),
            next_correlation_id: 0,
            traffic: Traffic::default(),
        };
        let request = ApiVersionsRequest::default();
        let version = spoken(ApiKey::ApiVersions).max;
        connection.set_timeout(options.greeting_timeout)?;
        let sent = connection.send_version(&request, version)?;
        let served = connection.answer::<ApiVersionsRequest>(sent, options.greeting_timeout)?;
        connection.set_timeout(options.response_timeout)?;
        connection.refuse_error(ApiKey::ApiVersions, "a client", served.error_code, None)?;
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

    fn set_timeout(&self, timeout: Duration) -> Result<(), ClientError> {
        self.stream
            .set_read_timeout(Some(timeout))
            .and_then(|()| self.stream.set_write_timeout(Some(timeout)))
            .map_err(|source| self.io("set-up", source))
    }

    /// From now on a response may take so long.
    pub fn set_response_timeout(&mut self, timeout: Duration) -> Result<(), ClientError> {
        self.options.response_timeout = timeout;
        self.set_timeout(timeout)
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

    /// Sends `request` in the highest version that both sides speak and waits for its response.
    pub fn call<R: Request>(&mut self, request: &R) -> Result<R::Response, ClientError> {
        let sent = self.send(request)?;
        self.receive_response::<R>(sent)
    }

    /// The same in a version of this range: for who measures, and so asks every broker in the same way.
    pub fn call_between<R: Request>(
        &mut self,
        request: &R,
        min: i16,
        max: i16,
    ) -> Result<R::Response, ClientError> {
        let api = spoken(api_of::<R>());
        let (min, max) = (min.max(api.min), max.min(api.max));
        let version = self.versions.choose(&self.address, api.key, min, max)?;
        let sent = self.send_version(request, version)?;
        self.receive_response::<R>(sent)
    }

    /// The same for a request that waits by design, for up to `wait`, before it is answered.
    pub fn call_that_waits<R: Request>(
        &mut self,
        request: &R,
        wait: Duration,
    ) -> Result<R::Response, ClientError> {
        let sent = self.send(request)?;
        let timeout = self.options.response_timeout + wait;
        self.set_timeout(timeout)?;
        let response = self.answer::<R>(sent, timeout)?;
        self.set_timeout(self.options.response_timeout)?;
        Ok(response)
    }

    /// Sends `request` without waiting, in the highest version that both sides speak.
    pub fn send<R: Request>(&mut self, request: &R) -> Result<Sent, ClientError> {
        let api = spoken(api_of::<R>());
        let version = self
            .versions
            .choose(&self.address, api.key, api.min, api.max)?;
        self.send_version(request, version)
    }

    /// Reads the response of a request that was sent. Responses come in the order of the requests.
    pub fn receive_response<R: Request>(&mut self, sent: Sent) -> Result<R::Response, ClientError> {
        self.answer::<R>(sent, self.options.response_timeout)
    }

    fn answer<R: Request>(
        &mut self,
        sent: Sent,
        timeout: Duration,
    ) -> Result<R::Response, ClientError> {
        let api = api_of::<R>();
        let mut frame = Vec::new();
        let size_bytes = match self.receive_within(&mut frame, timeout) {
            Ok(size_bytes) => size_bytes,
            Err(error) => return Err(self.unanswered(api, timeout, error)),
        };
        frame.truncate(size_bytes);
        self.decode::<R>(sent, Bytes::from(frame))
    }

    fn decode<R: Request>(&self, sent: Sent, mut body: Bytes) -> Result<R::Response, ClientError> {
        let api = spoken(api_of::<R>());
        let undecodable =
            |error: &dyn std::fmt::Display| self.protocol(format!("{:?}: {error}", api.key));
        let header_version = api.key.response_header_version(sent.version);
        let correlation_id = body
            .get(..4)
            .map(|bytes| i32::from_be_bytes(bytes.try_into().expect("a slice of four bytes")));
        if correlation_id != Some(sent.correlation_id) {
            return Err(self.protocol(format!(
                "the answer to request {} is numbered {}",
                sent.correlation_id,
                correlation_id.map_or("not at all".to_owned(), |id| id.to_string())
            )));
        }
        let misshapen = |source| ClientError::Shape {
            address: self.address.clone(),
            api: api.key,
            source,
        };
        if header_version >= 1 {
            shape::skip_tagged_fields(&mut &body[4..]).map_err(misshapen)?;
        }
        ResponseHeader::decode(&mut body, header_version).map_err(|error| undecodable(&error))?;
        shape::walk_fields(
            api.fields,
            sent.version,
            sent.version >= api.flexible_since,
            RESPONSE_ELEMENTS_MAX,
            &body,
        )
        .map_err(misshapen)?;
        let response =
            R::Response::decode(&mut body, sent.version).map_err(|error| undecodable(&error))?;
        match body.has_remaining() {
            true => Err(self.protocol(format!(
                "{} bytes follow the {:?} response",
                body.remaining(),
                api.key
            ))),
            false => Ok(response),
        }
    }

    /// Sends `request` in a version that the caller answers for, without waiting, and returns what its response is known by.
    pub fn send_version<R: Request>(
        &mut self,
        request: &R,
        version: i16,
    ) -> Result<Sent, ClientError> {
        let correlation_id = self.next_correlation_id;
        self.next_correlation_id = correlation_id.wrapping_add(1);
        let api = api_of::<R>();
        let header = RequestHeader::default()
            .with_request_api_key(R::KEY)
            .with_request_api_version(version)
            .with_correlation_id(correlation_id)
            .with_client_id(Some(StrBytes::from_static_str(self.options.client_id)));
        let mut frame = BytesMut::new();
        frame.extend_from_slice(&[0; 4]);
        header
            .encode(&mut frame, api.request_header_version(version))
            .and_then(|()| request.encode(&mut frame, version))
            .map_err(|error| ClientError::Inexpressible {
                address: self.address.clone(),
                api,
                version,
                reason: error.to_string(),
            })?;
        let size = frame.len() as u32 - 4;
        frame[..4].copy_from_slice(&size.to_be_bytes());
        self.stream
            .write_all(&frame)
            .map_err(|source| self.io("send", source))?;
        self.traffic.sent_bytes += frame.len() as u64;
        Ok(Sent::new(correlation_id, version))
    }

    /// Reads the next frame, without its size, into the start of `buffer` and returns its length. The buffer
    /// only grows, so that its memory is cleared once and not for every frame.
    pub fn receive(&mut self, buffer: &mut Vec<u8>) -> Result<usize, ClientError> {
        self.receive_within(buffer, self.options.response_timeout)
    }

    fn receive_within(
        &mut self,
        buffer: &mut Vec<u8>,
        timeout: Duration,
    ) -> Result<usize, ClientError> {
        let mut size = [0; 4];
        let deadline = Instant::now() + timeout;
        fill(&mut self.stream, &mut size, deadline).map_err(|source| self.io("receive", source))?;
        let size_bytes = frame_size(size).map_err(|reason| self.protocol(reason))?;
        if buffer.len() < size_bytes {
            buffer.resize(size_bytes, 0);
        }
        fill(&mut self.stream, &mut buffer[..size_bytes], deadline)
            .map_err(|source| self.io("receive", source))?;
        self.traffic.received_bytes += (size.len() + size_bytes) as u64;
        Ok(size_bytes)
    }

    /// Says of an error while reading what it means for the request that waits.
    fn unanswered(&self, api: ApiKey, waited: Duration, error: ClientError) -> ClientError {
        let ClientError::Io { source, .. } = &error else {
            return error;
        };
        let address = self.address.clone();
        match source.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => ClientError::Silent {
                address,
                api,
                waited,
            },
            ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset => {
                ClientError::Closed { address, api }
            }
            _ => error,
        }
    }

    /// Turns an error code other than 0 into an error.
    pub fn refuse_error(
        &self,
        api: ApiKey,
        about: &str,
        code: i16,
        message: Option<&str>,
    ) -> Result<(), ClientError> {
        match ErrorCode(code) {
            ErrorCode::NONE => Ok(()),
            code => Err(ClientError::Refused {
                address: self.address.clone(),
                api,
                about: about.to_owned(),
                code,
                message: message.filter(|text| !text.is_empty()).map(str::to_owned),
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

impl Sent {
    pub fn new(correlation_id: i32, version: i16) -> Self {
        Self {
            correlation_id,
            version,
        }
    }

    pub fn correlation_id(&self) -> i32 {
        self.correlation_id
    }
}

/// `read_exact` that a peer cannot draw out byte by byte: the socket's timeout bounds each read, and the deadline all of them.
fn fill(stream: &mut TcpStream, mut buffer: &mut [u8], deadline: Instant) -> std::io::Result<()> {
    while !buffer.is_empty() {
        match stream.read(buffer) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => buffer = &mut buffer[count..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        if !buffer.is_empty() && Instant::now() > deadline {
            return Err(ErrorKind::TimedOut.into());
        }
    }
    Ok(())
}

/// A TCP connection that sends small frames at once.
fn connect(address: &str, timeout: Duration) -> Result<TcpStream, ClientError> {
    let bad_address = || ClientError::Address {
        address: address.to_owned(),
    };
    let resolved = match address.to_socket_addrs() {
        Ok(resolved) => resolved,
        Err(error) if error.kind() == ErrorKind::InvalidInput => return Err(bad_address()),
        Err(source) => {
            return Err(ClientError::Connect {
                address: address.to_owned(),
                source,
            });
        }
    };
    let mut last = None;
    for candidate in resolved {
        match TcpStream::connect_timeout(&candidate, timeout) {
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

#[cfg(test)]
mod tests;
