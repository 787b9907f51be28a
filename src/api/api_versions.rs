//! ApiVersions (key 18), versions 0 to 4. KIP-511 (the client's name and version, from version 3 on).

use kafka_protocol::ResponseError;
use kafka_protocol::messages::api_versions_request::ApiVersionsRequest;
use kafka_protocol::messages::api_versions_response::ApiVersionsResponse;

use crate::api::admin_context::AdminContext;
use crate::protocol::api_versions;

/// From this version on a client says what it is.
const CLIENT_NAMED_FROM: i16 = 3;

pub async fn handle(
    _context: impl AdminContext,
    request: ApiVersionsRequest,
    version: i16,
) -> ApiVersionsResponse {
    let named = [
        &request.client_software_name,
        &request.client_software_version,
    ];
    if version >= CLIENT_NAMED_FROM && !named.iter().all(|name| is_software_name(name)) {
        return ApiVersionsResponse::default()
            .with_error_code(ResponseError::InvalidRequest.code());
    }
    api_versions::response()
}

/// KIP-511: letters, digits, '-' and '.', the last two not at an end.
fn is_software_name(name: &str) -> bool {
    let bytes = name.as_bytes();
    let is_inner = |byte: &u8| byte.is_ascii_alphanumeric() || b"-.".contains(byte);
    let ends = [bytes.first(), bytes.last()];
    ends.iter()
        .all(|end| end.is_some_and(u8::is_ascii_alphanumeric))
        && bytes.iter().all(is_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::test_context::{TestContext, read_back, run, string};

    #[test]
    fn from_version_3_on_a_client_has_a_legal_name_and_version() {
        let cases = [
            ("librdkafka", "2.15.0", true),
            ("a", "1", true),
            ("apache-kafka-java", "4.4.0-SNAPSHOT.1", true),
            ("", "1", false),
            ("a", "", false),
            ("-a", "1", false),
            ("a.", "1", false),
            ("a b", "1", false),
            ("a_b", "1", false),
            ("ä", "1", false),
            ("a", "1.0\n", false),
            ("a", "v1+dirty", false),
        ];
        let context = TestContext::new();
        for version in 0..=4 {
            for (name, software_version, is_legal) in cases {
                let request = ApiVersionsRequest::default()
                    .with_client_software_name(string(name))
                    .with_client_software_version(string(software_version));
                let response = run(handle(context.clone(), request, version));
                let response = read_back(&response, version);
                let expected = match is_legal || version < CLIENT_NAMED_FROM {
                    true => 0,
                    false => ResponseError::InvalidRequest.code(),
                };
                assert_eq!(response.error_code, expected, "{name} {software_version}");
                assert_eq!(response.api_keys.is_empty(), expected != 0);
            }
        }
    }
}
