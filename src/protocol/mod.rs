//! Kafka's wire: frames, headers, the served versions, and what the crate `kafka-protocol` must not be trusted with.
//!
//! Owns: splitting frames off a connection, the table of served APIs, request and response headers, the walk of a request
//! before the crate decodes it, and the fetch response whose records are not copied. Must never know: sockets, partitions,
//! logs, what an API does.
//! Runs on: the shard that has the connection; plain functions over bytes. After a crash: nothing here survives.

pub mod api_versions;
pub mod fetch_response;
pub mod frame;
pub mod request;
pub mod request_shapes;
pub mod response;
pub mod shape;
pub mod varint;
pub mod versions;
