//! What a handler gives back: pieces of an encoded frame, or nothing.

use std::future::Future;
use std::pin::Pin;

use bytes::Bytes;
use kafka_protocol::protocol::Encodable;

use crate::api::reply_budget::HeldReply;
use crate::protocol::request::Request;
use crate::protocol::response::{self, ResponseError};

/// The encoded response to one request, length prefix first; its pieces are sent one behind the other. Empty for a request that asks
/// for no response (produce with acks=0).
#[derive(Debug, Default)]
pub struct Reply {
    pub pieces: Vec<Bytes>,
    /// Error codes in it, for the metrics.
    pub error_codes: Vec<i16>,
    /// The connection is to be closed after it: how a producer that asked for no answers learns that one failed.
    pub closes: bool,
    /// What it counts as until it is sent, where the handler has counted it.
    pub held: Option<HeldReply>,
}

/// Completes when the reply is ready to be sent.
pub type PendingReply = Pin<Box<dyn Future<Output = Result<Reply, ResponseError>>>>;

impl Reply {
    pub fn of(request: &RequestId, body: &impl Encodable) -> Result<Self, ResponseError> {
        let bytes = response::encode(request.key, request.version, request.correlation_id, body)?;
        Ok(Self {
            pieces: vec![bytes],
            ..Self::default()
        })
    }

    pub fn with_error_codes(mut self, codes: impl IntoIterator<Item = i16>) -> Self {
        self.error_codes
            .extend(codes.into_iter().filter(|code| *code != 0));
        self
    }

    pub fn len(&self) -> usize {
        self.pieces.iter().map(Bytes::len).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }
}

/// What of a request its response repeats.
#[derive(Clone, Copy, Debug)]
pub struct RequestId {
    pub key: kafka_protocol::messages::ApiKey,
    pub version: i16,
    pub correlation_id: i32,
}

impl From<&Request> for RequestId {
    fn from(request: &Request) -> Self {
        Self {
            key: request.key,
            version: request.version,
            correlation_id: request.correlation_id,
        }
    }
}
