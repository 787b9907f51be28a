//! What ApiVersions answers: the table of served APIs.

use bytes::Bytes;
use kafka_protocol::messages::ApiKey;
use kafka_protocol::messages::api_versions_response::{ApiVersion, ApiVersionsResponse};

use super::response::{self, ResponseError};
use super::versions::SERVED;

/// Kafka's UNSUPPORTED_VERSION.
const UNSUPPORTED_VERSION: i16 = 35;

/// The body for versions 0 to 4. No finalized features: with `transaction.version` 2 among them, Java and franz-go would use flows that are not
/// served (KIP-890).
pub fn response() -> ApiVersionsResponse {
    let api_keys = SERVED.iter().map(|api| {
        ApiVersion::default()
            .with_api_key(api.key as i16)
            .with_min_version(api.advertised_min)
            .with_max_version(api.max)
    });
    ApiVersionsResponse::default().with_api_keys(api_keys.collect())
}

/// The frame that answers a version which is not served: a body of version 0, with the error and the range of ApiVersions itself, so that the
/// client can ask again (KIP-511).
pub fn unsupported(correlation_id: i32) -> Result<Bytes, ResponseError> {
    let mut body = response().with_error_code(UNSUPPORTED_VERSION);
    body.api_keys
        .retain(|api| api.api_key == ApiKey::ApiVersions as i16);
    response::encode(ApiKey::ApiVersions, 0, correlation_id, &body)
}

#[cfg(test)]
mod tests {
    use bytes::Buf;
    use kafka_protocol::messages::{ApiVersionsResponse, RequestHeader};
    use kafka_protocol::protocol::{Decodable, Encodable};

    use super::super::request::{Request, RequestError};
    use super::*;

    #[test]
    fn every_version_decodes_to_the_table() {
        for version in 0..=4 {
            let mut frame =
                response::encode(ApiKey::ApiVersions, version, 7, &super::response()).unwrap();
            assert_eq!(frame.get_i32() as usize, frame.len());
            assert_eq!(frame.get_i32(), 7);
            // The header has no tagged fields, whatever the version.
            let body = ApiVersionsResponse::decode(&mut frame, version).unwrap();
            assert!(frame.is_empty());
            assert_eq!(body.error_code, 0);
            assert_eq!(body.api_keys.len(), SERVED.len());
            let produce = &body.api_keys[0];
            assert_eq!(
                (produce.api_key, produce.min_version, produce.max_version),
                (0, 0, 13)
            );
        }
    }

    #[test]
    fn no_feature_is_finalized_so_clients_use_the_older_transaction_flow() {
        let body = super::response();
        assert!(body.finalized_features.is_empty() && body.supported_features.is_empty());
        assert_eq!(body.finalized_features_epoch, -1);
    }

    #[test]
    fn an_unknown_version_is_answered_with_version_0_error_35_and_its_own_range() {
        let header = RequestHeader::default()
            .with_request_api_key(18)
            .with_correlation_id(99);
        let mut frame = bytes::BytesMut::new();
        header
            .with_request_api_version(77)
            .encode(&mut frame, 2)
            .unwrap();
        frame.extend_from_slice(b"a body that nobody here can read");
        let refused = Request::decode(&frame.freeze());
        assert_eq!(
            refused,
            Err(RequestError::UnknownApiVersions {
                version: 77,
                correlation_id: 99
            })
        );

        let mut answer = unsupported(99).unwrap();
        assert_eq!(answer.get_i32() as usize, answer.len());
        assert_eq!(answer.get_i32(), 99);
        let body = ApiVersionsResponse::decode(&mut answer, 0).unwrap();
        assert!(answer.is_empty());
        assert_eq!(body.error_code, 35);
        let ranges: Vec<_> = body
            .api_keys
            .iter()
            .map(|api| (api.api_key, api.min_version, api.max_version))
            .collect();
        assert_eq!(ranges, [(18, 0, 4)]);
    }
}
