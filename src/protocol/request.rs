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
    #[error("the client id is not UTF-8")]
    ClientId,
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
        let client_id =
            StrBytes::from_utf8(frame.slice_ref(client_id)).map_err(|_| RequestError::ClientId)?;
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
