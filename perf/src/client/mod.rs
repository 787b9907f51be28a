//! A Kafka client in small, on blocking sockets: it measures a broker, so nothing in it may hide what the
//! broker does.
//!
//! Owns: which versions are spoken, and the few APIs that a load needs; connections are those of the product's own
//! client, which knows nothing of this broker or that. Must never know: what the load is. Runs on:
//! the thread that calls it. Every API is spoken in a version before "flexible" ones, which all brokers since
//! Kafka 2.1 serve.

pub mod batches;
pub mod cluster;
pub mod connection;
pub mod coordinator;
pub mod error;
pub mod failure;
#[cfg(test)]
pub mod fake_broker;
#[cfg(test)]
pub mod fake_coordinator;
pub mod fetch;
pub mod offsets;
pub mod wire;
