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
