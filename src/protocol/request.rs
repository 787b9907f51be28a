//! The header of a request, and its place in the frame.

use bytes::Bytes;
use kafka_protocol::messages::ApiKey;
use kafka_protocol::protocol::StrBytes;

use super::shape::{self, ShapeError};
use super::versions::{self, ServedApi};

/// A request whose header is decoded and whose body is walked: the crate's decoder may have it.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    pub key: ApiKey,
    pub version: i16,
    pub correlation_id: i32,
    /// The client's own name; null and empty are the same.
    pub client_id: StrBytes,
    /// What follows the header: a part of the frame's memory, not a copy.
    pub body: Bytes,
}

/// Why a request is not decoded. All but one close the connection.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    #[error("a request of {frame_bytes} bytes ends inside its header")]
    CutShort { frame_bytes: usize },
    #[error("api key {key} is not served")]
    UnknownKey { key: i16 },
    #[error("version {version} of {key:?} is not served")]
    UnknownVersion { key: ApiKey, version: i16 },
    /// To be answered by [`super::api_versions::unsupported`]: so a client learns what it may ask (KIP-511).
    #[error("version {version} of ApiVersions is not served")]
    UnknownApiVersions { version: i16, correlation_id: i32 },
    #[error("{key:?} version {version}: {shape}")]
    Shape {
        key: ApiKey,
        version: i16,
        shape: ShapeError,
    },
}

impl Request {
    /// Decodes the header of `frame`, a frame without its length prefix, and walks the body.
    ///
    /// ```text
    /// | api key 2 | version 2 | correlation id 4 | client id: length 2, -1: null | bytes | flexible: tagged fields | body
    /// ```
    pub fn decode(frame: &Bytes) -> Result<Self, RequestError> {
        let cut_short = RequestError::CutShort {
            frame_bytes: frame.len(),
        };
        let Some((start, mut rest)) = frame.split_first_chunk::<8>() else {
            return Err(cut_short);
        };
        let [k0, k1, v0, v1, correlation_id @ ..] = *start;
        let (key, version) = (i16::from_be_bytes([k0, k1]), i16::from_be_bytes([v0, v1]));
        let correlation_id = i32::from_be_bytes(correlation_id);
        let api = served(key, version, correlation_id)?;
        let client_id = read_client_id(&mut rest).ok_or(cut_short)?;
        if api.key.request_header_version(version) >= 2 {
            shape::skip_tagged_fields(&mut rest).map_err(|shape| RequestError::Shape {
                key: api.key,
                version,
                shape,
            })?;
        }
        shape::walk(api.key, version, rest).map_err(|shape| RequestError::Shape {
            key: api.key,
            version,
            shape,
        })?;
        let client_id = StrBytes::from_utf8(frame.slice_ref(client_id)).unwrap_or_else(|_| {
            StrBytes::from_string(String::from_utf8_lossy(client_id).into_owned())
        });
        Ok(Self {
            key: api.key,
            version,
            correlation_id,
            client_id,
            body: frame.slice_ref(rest),
        })
    }
}

fn served(key: i16, version: i16, correlation_id: i32) -> Result<&'static ServedApi, RequestError> {
    let api = versions::served(key).ok_or(RequestError::UnknownKey { key })?;
    match api.key {
        _ if api.serves(version) => Ok(api),
        ApiKey::ApiVersions => Err(RequestError::UnknownApiVersions {
            version,
            correlation_id,
        }),
        key => Err(RequestError::UnknownVersion { key, version }),
    }
}

/// The client id has the old encoding in flexible headers too.
fn read_client_id<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, behind) = rest.split_first_chunk::<2>()?;
    let length = i16::from_be_bytes(*length);
    let (client_id, behind) = match length {
        -1 => (&behind[..0], behind),
        _ => behind.split_at_checked(usize::try_from(length).ok()?)?,
    };
    *rest = behind;
    Some(client_id)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Metadata of all topics.
    fn frame(version: i16, client_id: &[u8], behind: &[u8]) -> Bytes {
        let mut frame = vec![0, 3];
        frame.extend(version.to_be_bytes());
        frame.extend(42i32.to_be_bytes());
        frame.extend(client_id);
        frame.extend(behind);
        frame.into()
    }

    #[test]
    fn the_header_is_decoded_and_the_body_is_a_part_of_the_frame() {
        let body = [0xff, 0xff, 0xff, 0xff];
        let frame = frame(1, b"\0\x04kcat", &body);
        let request = Request::decode(&frame).unwrap();
        assert_eq!(
            (request.key, request.version, request.correlation_id),
            (ApiKey::Metadata, 1, 42)
        );
        assert_eq!(request.client_id.as_str(), "kcat");
        assert_eq!(request.body, body[..]);
        assert_eq!(request.body.as_ptr_range().end, frame.as_ptr_range().end);
    }

    #[test]
    fn a_flexible_header_has_tagged_fields_and_the_old_client_id() {
        let request = Request::decode(&frame(12, b"\0\x01a", b"\x01\x05\x02xy\0\x01\0\0")).unwrap();
        assert_eq!(request.client_id.as_str(), "a");
        assert_eq!(request.body, b"\0\x01\0\0"[..]);
    }

    #[test]
    fn a_null_client_id_is_an_empty_one() {
        assert_eq!(
            Request::decode(&frame(1, b"\xff\xff", &[0xff; 4]))
                .unwrap()
                .client_id
                .as_str(),
            ""
        );
    }

    #[test]
    fn a_client_id_that_is_not_utf_8_is_shown_as_java_shows_it() {
        let request = Request::decode(&frame(1, b"\0\x02a\xff", &[0xff; 4])).unwrap();
        assert_eq!(request.client_id.as_str(), "a\u{fffd}");
    }

    #[test]
    fn a_header_that_lies_is_refused() {
        let cut_short = |frame_bytes| Err(RequestError::CutShort { frame_bytes });
        assert_eq!(
            Request::decode(&Bytes::from_static(&[0, 3, 0])),
            cut_short(3)
        );
        assert_eq!(Request::decode(&frame(1, b"\0", b"")), cut_short(9));
        assert_eq!(
            Request::decode(&frame(1, b"\x7f\xff", b"abc")),
            cut_short(13)
        );
        assert_eq!(Request::decode(&frame(1, b"\xff\xfe", b"")), cut_short(10));
        let tags = Request::decode(&frame(12, b"\0\0", b"\xff\xff\xff\xff\x0f"));
        assert!(
            matches!(
                tags,
                Err(RequestError::Shape {
                    shape: ShapeError::TagCount { .. },
                    ..
                })
            ),
            "{tags:?}"
        );
    }

    #[test]
    fn what_is_not_served_is_named() {
        let refused = Request::decode(&Bytes::from_static(&[0x12, 0x34, 0, 0, 0, 0, 0, 1]));
        assert_eq!(refused, Err(RequestError::UnknownKey { key: 0x1234 }));
        let refused = Request::decode(&frame(14, b"", b""));
        assert_eq!(
            refused,
            Err(RequestError::UnknownVersion {
                key: ApiKey::Metadata,
                version: 14
            })
        );
        let produce_2 = Bytes::from_static(&[0, 0, 0, 2, 0, 0, 0, 1]);
        let refused = Request::decode(&produce_2);
        assert_eq!(
            refused,
            Err(RequestError::UnknownVersion {
                key: ApiKey::Produce,
                version: 2
            })
        );
    }
}
