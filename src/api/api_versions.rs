//! ApiVersions (key 18), versions 0 to 4. KIP-511.

use kafka_protocol::messages::api_versions_request::ApiVersionsRequest;
use kafka_protocol::messages::api_versions_response::ApiVersionsResponse;

use crate::api::context::ApiContext;
use crate::protocol::api_versions;

pub async fn handle(
    _context: ApiContext,
    _request: ApiVersionsRequest,
    _version: i16,
) -> ApiVersionsResponse {
    api_versions::response()
}
