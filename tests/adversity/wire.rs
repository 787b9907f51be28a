//! A client that sends whatever bytes it is told to, and well-formed requests where a test needs them.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};

use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::messages::{ApiKey, ResponseHeader};
use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion, Request};

use crate::broker::WAIT_MAX;

const SIZE_PREFIX_BYTES: usize = 4;

pub struct Client {
    stream: TcpStream,
    correlation_id: i32,
}

impl Client {
    pub fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(WAIT_MAX)).unwrap();
        stream.set_write_timeout(Some(WAIT_MAX)).unwrap();
        Self {
            stream,
            correlation_id: 0,
        }
    }

    /// A request as the codec writes it, and its answer.
    pub fn ask<R: Request>(&mut self, version: i16, request: &R) -> R::Response {
        self.correlation_id += 1;
        let frame = frame_of(R::KEY, version, self.correlation_id, request);
        self.send(&frame);
        let mut frame = self.receive().expect("an answer, not a closed connection");
        let header_version = R::Response::header_version(version);
        let header = ResponseHeader::decode(&mut frame, header_version).unwrap();
        assert_eq!(header.correlation_id, self.correlation_id);
        let response = R::Response::decode(&mut frame, version).unwrap();
        assert!(frame.is_empty(), "bytes behind the response");
        response
    }

    /// Any bytes. What the broker refuses it may also stop reading, so an error here is no failure: the answer tells.
    pub fn send(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes);
    }

    /// One frame without its length prefix; none if the connection was closed in place of an answer.
    pub fn receive(&mut self) -> Option<Bytes> {
        let mut size = [0; SIZE_PREFIX_BYTES];
        if !self.read_exact(&mut size) {
            return None;
        }
        let mut frame = vec![0; u32::from_be_bytes(size) as usize];
        assert!(
            self.read_exact(&mut frame),
            "the connection ended inside an answer"
        );
        Some(frame.into())
    }

    /// Whether an answer has begun to arrive.
    pub fn has_answer(&self) -> bool {
        self.stream.set_nonblocking(true).unwrap();
        let peeked = self.stream.peek(&mut [0]);
        self.stream.set_nonblocking(false).unwrap();
        match peeked {
            Ok(0) => panic!("a closed connection in place of an answer"),
            Ok(_) => true,
            Err(error) if error.kind() == ErrorKind::WouldBlock => false,
            Err(error) => panic!("{error}"),
        }
    }

    /// Waits until the broker closes the connection, and demands that it says nothing before.
    pub fn expect_closed(&mut self) {
        assert_eq!(
            self.receive(),
            None,
            "an answer in place of a closed connection"
        );
    }

    /// Whether the connection was closed without an answer; false while it stays open and silent.
    pub fn is_closed(&mut self) -> bool {
        self.stream.set_nonblocking(true).unwrap();
        let mut byte = [0];
        let read = self.stream.read(&mut byte);
        self.stream.set_nonblocking(false).unwrap();
        match read {
            Ok(0) => true,
            Ok(_) => panic!("an answer to half a request"),
            Err(error) => error.kind() != ErrorKind::WouldBlock,
        }
    }

    /// False at the end of the connection, however it came.
    fn read_exact(&mut self, buffer: &mut [u8]) -> bool {
        match self.stream.read_exact(buffer) {
            Ok(()) => true,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                panic!("neither an answer nor a closed connection within {WAIT_MAX:?}")
            }
            Err(_) => false,
        }
    }
}

/// The whole frame of a request, length prefix included.
pub fn frame_of<R: Encodable>(key: i16, version: i16, correlation_id: i32, request: &R) -> Bytes {
    let mut body = BytesMut::new();
    request.encode(&mut body, version).unwrap();
    raw_frame(key, version, correlation_id, &body)
}

/// A frame whose header is right, whatever its body is.
pub fn raw_frame(key: i16, version: i16, correlation_id: i32, body: &[u8]) -> Bytes {
    let is_flexible =
        ApiKey::try_from(key).is_ok_and(|key| key.request_header_version(version) >= 2);
    let mut rest = BytesMut::new();
    rest.put_i16(key);
    rest.put_i16(version);
    rest.put_i32(correlation_id);
    rest.put_i16(-1); // no client id
    if is_flexible {
        rest.put_u8(0); // no tagged fields
    }
    rest.put_slice(body);
    let mut frame = BytesMut::new();
    frame.put_i32(rest.len() as i32);
    frame.put_slice(&rest);
    frame.freeze()
}
