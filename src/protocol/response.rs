//! Encoding a response into one buffer, length prefix and header included.

use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::messages::ApiKey;
use kafka_protocol::protocol::Encodable;

use super::frame::SIZE_PREFIX_BYTES;

/// The codec refused a response: a field is set that the version does not have, or something is too long for its length. A bug here,
/// not of the client.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a response to {key:?} version {version} does not encode: {reason}")]
pub struct ResponseError {
    pub key: ApiKey,
    pub version: i16,
    pub reason: String,
}

/// The whole frame of `body`, which answers the request of `key` and `version`.
///
/// The response header has tagged fields in flexible versions, but for ApiVersions: a client reads that answer before it knows what
/// the broker speaks.
pub fn encode(
    key: ApiKey,
    version: i16,
    correlation_id: i32,
    body: &impl Encodable,
) -> Result<Bytes, ResponseError> {
    let refused = |reason: String| ResponseError {
        key,
        version,
        reason,
    };
    let is_flexible = key.response_header_version(version) >= 1;
    let header_bytes = SIZE_PREFIX_BYTES + 4 + usize::from(is_flexible);
    let body_bytes = body
        .compute_size(version)
        .map_err(|error| refused(error.to_string()))?;
    let mut out = BytesMut::with_capacity(header_bytes + body_bytes);
    let size = i32::try_from(header_bytes - SIZE_PREFIX_BYTES + body_bytes)
        .map_err(|_| refused(format!("{body_bytes} bytes do not fit into a frame")))?;
    out.put_i32(size);
    out.put_i32(correlation_id);
    if is_flexible {
        out.put_u8(0);
    }
    body.encode(&mut out, version)
        .map_err(|error| refused(error.to_string()))?;
    debug_assert_eq!(
        out.len(),
        header_bytes + body_bytes,
        "the codec computes the size that it encodes"
    );
    Ok(out.freeze())
}
