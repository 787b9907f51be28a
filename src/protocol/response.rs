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

#[cfg(test)]
mod tests {
    use bytes::Buf;
    use kafka_protocol::messages::{InitProducerIdResponse, ProducerId};
    use kafka_protocol::protocol::Decodable;

    use super::*;

    #[test]
    fn the_frame_has_its_length_the_correlation_id_and_tags_where_the_version_is_flexible() {
        let body = InitProducerIdResponse::default()
            .with_producer_id(ProducerId(5))
            .with_producer_epoch(1);
        for (version, header_tag_bytes) in [(0, 0), (1, 0), (2, 1), (5, 1)] {
            let mut frame = encode(ApiKey::InitProducerId, version, 1234, &body).unwrap();
            assert_eq!(frame.get_i32() as usize, frame.len());
            assert_eq!(frame.get_i32(), 1234);
            frame.advance(header_tag_bytes);
            assert_eq!(
                InitProducerIdResponse::decode(&mut frame, version).unwrap(),
                body
            );
            assert!(frame.is_empty());
        }
    }

    #[test]
    fn a_response_that_the_version_cannot_hold_is_an_error() {
        let refused = encode(
            ApiKey::InitProducerId,
            99,
            0,
            &InitProducerIdResponse::default(),
        )
        .unwrap_err();
        assert_eq!((refused.key, refused.version), (ApiKey::InitProducerId, 99));
    }
}
